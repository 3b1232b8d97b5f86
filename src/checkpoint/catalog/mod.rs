//! The catalog lists checkpoints, reads their content and finds them. Nothing here writes.

pub mod all;
pub(crate) mod bounds;
pub(crate) mod branches;
pub mod checkpoint;
mod commits;
mod count;
pub mod damage;
pub mod diff;
pub mod dropped;
pub(crate) mod entries;
pub mod find;
pub(crate) mod foreign;
pub mod gaps;
pub mod held;
pub mod layers;
pub mod lazy_record;
pub mod listing;
pub mod moment;
pub(crate) mod numbers;
pub mod open;
pub(crate) mod ref_name;
mod refs;
mod resolve;
pub mod retention;
pub(crate) mod rules;
pub mod selector;
mod trees;
