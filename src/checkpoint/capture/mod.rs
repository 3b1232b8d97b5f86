//! Capturing: observing the workspace and recording what was observed.

pub mod gaps;
pub mod held;
pub(in crate::checkpoint) mod seen;
pub mod take;
pub(in crate::checkpoint) mod warmth;
