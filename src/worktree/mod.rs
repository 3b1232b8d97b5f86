//! The files of the user: capturing them, and bringing them back (rank 2). Knows no store: content goes to an
//! [`ObjectSink`](crate::model::sink::ObjectSink) and comes from a reader.
//!
//! Invariant: nothing is ever opened through a symbolic link. Invariant: capturing writes nothing into the tree.

mod capture;
pub mod git_dir;
pub mod git_index;
mod read;
pub mod restore;
pub mod stamps;
mod walk;

pub use capture::{Capture, Flow, Request, Stats, Target, capture};
pub use read::read_small;
