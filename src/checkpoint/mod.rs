//! The domain: taking checkpoints, reading them, restoring, undoing (rank 3).
//!
//! Drives `worktree` → `store`, which never meet. Knows no terminal, no protocol, no watcher.

pub mod capture;
pub mod catalog;
pub mod history;
mod locked;
pub mod records;
pub mod remote;
pub mod repository;
pub mod runs;
pub mod timeline;
pub mod upkeep;

pub use capture::Audit;
pub use capture::request::{Draft, Selection, Take, Taken};
pub use catalog::checkpoint::Checkpoint;
pub use records::home::Home;
pub use records::workspace::Workspace;
pub use timeline::Timeline;
