//! One line on the terminal that says how far long work has come.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// The time before the first line, and between two.
const PAUSE: Duration = Duration::from_millis(500);

/// The line. It goes with the value; where stderr is no terminal, nothing is ever written.
pub(super) struct Progress {
    /// `None` where nobody watches.
    next: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    /// Begins; nothing is shown yet.
    pub(super) fn new(as_json: bool) -> Progress {
        let is_watched = !as_json && stderr().is_terminal();
        Progress { next: is_watched.then(|| Instant::now() + PAUSE), is_shown: false }
    }

    /// Shows how far the work has come, unless a line was shown just before.
    pub(super) fn tell(&mut self, text: impl FnOnce() -> String) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            // If stderr is closed, no reader is left.
            let _ = write!(stderr(), "\r\x1b[K{} …", text());
            (self.next, self.is_shown) = (Some(Instant::now() + PAUSE), true);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            // As above.
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
