//! The end of an interrupted capture.

use crate::error::{Code, Error, Result};
use crate::sys::interrupt::{Flow, Interrupt};

/// Returns the error of an interrupted capture.
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
