//! Keeps piton's home small: drops checkpoints, and has the store delete what no checkpoint reaches.

pub mod adoption;
pub mod clear;
mod copies;
pub mod drops;
pub mod forget;
mod layers;
mod leftover_copy;
pub mod orphans;
pub mod prune;
mod refs;
pub mod relocate;
pub mod rounds;
pub mod schedule;
pub mod standing;
pub mod survey;
pub mod usage;
