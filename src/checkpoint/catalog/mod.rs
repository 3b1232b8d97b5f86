//! The catalog: which checkpoints there are, what they hold, and how they are found.

pub(in crate::checkpoint) mod all;
pub(in crate::checkpoint) mod bounds;
pub(in crate::checkpoint) mod branches;
pub(in crate::checkpoint) mod commits;
pub mod diff;
pub(in crate::checkpoint) mod dropped;
pub mod find;
pub mod listing;
pub(in crate::checkpoint) mod number;
pub(in crate::checkpoint) mod recent;
mod resolve;
pub mod retention;
pub mod selector;
