//! Capturing: observing the workspace, keeping in memory what was observed, and recording it.

pub(crate) mod capturer;
pub mod changed;
mod idle;
mod knowledge;
mod look;
pub(crate) mod observe;
pub mod request;
pub(crate) mod seen;
mod take;
mod tidy;
mod warm;
mod warmth;

pub use idle::Audit;

#[cfg(test)]
mod tests;
