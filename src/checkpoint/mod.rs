//! The domain: taking checkpoints, reading them, restoring, undoing (rank 3).
//!
//! Drives `worktree` → `store`, which never meet. Knows no terminal, no protocol, no watcher.

pub mod agreed;
mod all;
mod bounds;
mod branches;
pub mod codon;
mod commits;
pub mod diff;
pub mod export;
pub mod find;
pub mod gaps;
pub mod health;
pub mod held;
pub mod home;
mod identity;
pub mod interrupted;
pub mod journal;
pub mod listing;
pub mod mishaps;
pub mod narrow;
mod number;
pub mod operations;
pub mod receive;
mod recent;
mod resolve;
pub mod restore;
pub mod retention;
pub mod rollback;
pub mod run;
pub mod runs;
mod seen;
pub mod selector;
pub mod send;
pub mod state;
pub mod take;
pub mod timeline;
pub mod undo;
pub mod validate;
pub mod view;
mod warmth;
pub mod workspace;

pub use home::Home;
pub use timeline::{Checkpoint, Timeline};
pub use warmth::Audit;
pub use workspace::Workspace;
