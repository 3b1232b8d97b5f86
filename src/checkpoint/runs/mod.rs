//! Runs: their state, their codons, and going back on their timelines.

pub mod codon;
pub mod list;
pub mod narrow;
pub mod rollback;
pub mod run;
