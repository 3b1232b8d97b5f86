//! Plain vocabulary of the whole crate: ids, paths, trees, effects, policies. No I/O, no clock (rank 0).

pub mod effect;
pub mod policy;
