//! The end of a capture that was told to stop.

use crate::error::{Code, Error, Result};
use crate::sys::interrupt::{Flow, Interrupt};

/// Returns the error of a capture that was told to stop.
pub(super) fn stopped() -> Error {
    Error::new(Code::ShuttingDown, "the capture was stopped before it was complete")
}

/// Asks once, and fails when the answer is to stop.
pub(super) fn unless_stopped(control: Interrupt<'_>) -> Result<()> {
    match control() {
        Flow::Continue => Ok(()),
        Flow::Stop => Err(stopped()),
    }
}
