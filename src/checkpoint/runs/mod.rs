//! Runs: their state, their codons, and going back on their timelines.

pub(crate) mod at_work;
mod change;
pub mod client;
pub mod codon;
pub mod list;
pub(crate) mod live;
mod moves;
pub mod narrow;
pub mod rollback;
pub mod run;
