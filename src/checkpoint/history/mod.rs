//! The history of operations: the journal, restores, and going back over them.

pub mod agreed;
pub mod export;
pub mod interrupted;
pub mod journal;
pub mod operations;
pub mod restore;
pub mod undo;
