//! The operating system: files and directories, locks, processes, clocks (rank 0).
//!
//! Calls that only Linux has are in `linux`, behind plain functions: a port to another system is one more such folder.

pub mod child;
pub mod clock;
pub mod etc;
pub mod fs;
pub mod interrupt;
pub mod libgit2;
mod linux;
pub mod memory;
pub mod parallel;
pub mod pipe;
pub mod process;
pub mod progress;
pub mod raw_terminal;
pub mod running;
pub mod runtime;
pub mod stand_in;
pub mod terminal;

pub use linux::{beneath, descriptor, holders, inotify, lease, listing, mount, nameless, processes, share, writeback};
