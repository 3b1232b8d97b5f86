//! The labelled sets: how well lines are told apart, and that it does not get worse.

pub mod evaluation;
