//! The history of operations: the journal, restores, and going back over them.

pub mod agreed;
mod before;
mod blobs;
pub mod export;
mod in_use;
pub mod interrupted;
pub mod journal;
pub mod operations;
pub mod request;
mod restore;
mod target;
pub mod undo;
