//! The pace of a forget: that of a person who waits for its end, or that of a round of maintenance, which gives way.

use std::time::Duration;

use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::error::{Code, Error, Result};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::progress::{Progress, WorkControl};

/// The longest wait for a round of maintenance, or another forget, to end.
const PATIENCE: Duration = Duration::from_mins(2);

/// The time that a forget waits for others, and what may stop it.
#[derive(Clone, Copy)]
pub struct Pace<'p> {
    /// The longest wait for the lock of a workspace.
    pub(super) workspace: Duration,
    /// The longest wait for maintenance, or another forget.
    pub(super) others: Duration,
    /// Stops it between two steps; the next process continues.
    pub(super) control: Interrupt<'p>,
    /// Counts what is searched, removed and read.
    pub(super) progress: &'p Progress,
}

impl<'p> Pace<'p> {
    /// Returns the pace of a person, who waits for the end, or stops it.
    pub fn patient(work: WorkControl<'p>) -> Pace<'p> {
        Pace { workspace: LOCK_WAIT, others: PATIENCE, control: work.interrupt, progress: work.progress }
    }

    /// Returns the pace of work that waits for no lock, and ends when `control` says so.
    pub fn giving_way(control: Interrupt<'p>) -> Pace<'p> {
        let WorkControl { interrupt, progress } = WorkControl::unwatched(control);
        Pace { workspace: Duration::ZERO, others: Duration::ZERO, control: interrupt, progress }
    }
}

/// Returns the error of a forget that was stopped.
///
/// # Errors
/// `shutting-down` if `control` stops it.
pub(super) fn go_on(control: Interrupt<'_>) -> Result<()> {
    match control() {
        Flow::Continue => Ok(()),
        Flow::Stop => Err(Error::new(Code::ShuttingDown, "the forget was suspended; the next process continues it")),
    }
}
