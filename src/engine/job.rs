//! Jobs of a worker.

use crate::checkpoint::Timeline;
use crate::error::{Code, Error};
use crate::sys::interrupt::Interrupt;

/// A job: runs on the worker's thread, and should never panic.
pub type Job = Box<dyn FnOnce(&mut Timeline, Interrupt<'_>) -> Answer + Send>;

/// Delivers the result to the caller. It is called when the worker is free again, because the caller may submit its
/// next job at once.
pub type Answer = Box<dyn FnOnce() + Send>;

/// Says that a job ended in a panic.
pub fn bug() -> Error {
    Error::new(Code::Internal, "internal error; piton continues").hint("please report it")
}

/// Says that the worker has too many jobs waiting.
pub(super) fn busy() -> Error {
    Error::new(Code::Busy, "the workspace's worker has too many jobs waiting").hint("try again in a moment")
}
