//! Commands of git: the state of a repository before and after each of them, and the way back.
//!
//! A state lies in the store of private files, under a ref of its own: `refs/piton/<workspace>/git/<2n>` is the state before operation
//! `g-n`, and `<2n + 1>` the one after it. `objects-` before these numbers names the packs of objects that the operation has left without a name,
//! as they were found while it was open, and at its end. `at-` before a number names a state at checkpoints. No checkpoint's content
//! depends on them.

pub mod goal;
mod later;
pub mod log;
pub mod noted;
mod objects;
pub mod operations;
mod parts;
pub mod plan;
mod states;
pub(crate) mod states_log;
mod switch;
pub mod undo;
mod unheld;

pub use operations::{NewGitOperation, RepositoryNow};
