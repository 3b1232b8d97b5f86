//! Jobs of a worker.

use crate::checkpoint::Timeline;
use crate::error::{Code, Error};
use crate::sys::interrupt::Interrupt;

/// A job: runs on the worker's thread, and should never panic.
pub type Job = Box<dyn FnOnce(&mut Timeline, Interrupt<'_>) -> Answer + Send>;

/// Tells whoever asked. Called when the worker is free again: who was told may ask at once.
pub type Answer = Box<dyn FnOnce() + Send>;

/// Says that a job ended in a panic.
pub fn bug() -> Error {
    Error::new(Code::Internal, "the work ended in a bug; piton goes on").hint("please report it")
}
