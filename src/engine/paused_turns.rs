//! The turns of a client that reports none: they end after a pause.

use std::time::{Duration, Instant};

/// The longest time in which an action counts as running although its client reports no end.
const LONGEST_ACTION: Duration = Duration::from_mins(10);

/// The turns of a client that reports none: one begins with its first action, and ends after a pause.
pub(super) struct PausedTurns {
    /// The pause between two actions that ends a turn.
    pause: Duration,
    /// The number of actions that run, of those whose end the client reports.
    pub(super) running: usize,
    /// The moment at which the open turn ends; `None` while none is open.
    pub(super) ends_at: Option<Instant>,
}

impl PausedTurns {
    /// Makes the turns of a client that has done nothing yet.
    pub(super) fn new(pause: Duration) -> PausedTurns {
        PausedTurns { pause, running: 0, ends_at: None }
    }

    /// Returns the moment at which the open turn ends.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.ends_at
    }

    /// Puts the end of the turn off: by the pause, or longer while an action runs.
    pub(super) fn put_off(&mut self, now: Instant) {
        self.ends_at = Some(now + if self.running > 0 { LONGEST_ACTION.max(self.pause) } else { self.pause });
    }
}
