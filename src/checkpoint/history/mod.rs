//! The history of operations: the journal, restores, and going back over them.

pub mod actions;
pub mod agreed;
mod attribution;
mod before;
mod blobs;
pub mod collision;
mod destroyed;
mod elsewhere;
pub mod export;
pub mod group;
pub mod hunks;
mod in_use;
pub mod interrupted;
pub mod journal;
pub mod lost_place;
pub mod operations;
mod owner;
pub mod recorded;
pub mod repositories;
pub mod request;
mod restore;
mod target;
mod turn_clock;
pub mod turn_end;
mod turn_git;
pub mod turns;
pub mod undo;
