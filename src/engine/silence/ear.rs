//! The ear of an open workspace: looks for silent clients beside the work, and keeps the last result.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::judge::Silence;
use super::{Scene, look};
use crate::checkpoint::{Home, Workspace};

/// The least time between two looks.
const PAUSE: Duration = Duration::from_secs(20);

/// The silence of one workspace.
#[derive(Default)]
pub struct Ear(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    /// The time of the last look, which may not have ended yet.
    looked: Option<Instant>,
    found: Vec<Silence>,
}

impl Ear {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the clients that were at work without events when that was last looked for.
    pub fn found(&self) -> Vec<Silence> {
        self.lock().found.clone()
    }

    /// Returns true if a look is due, which begins then.
    fn is_due(&self) -> bool {
        let mut heard = self.lock();
        let is_due = heard.looked.is_none_or(|looked| looked.elapsed() >= PAUSE);
        if is_due {
            heard.looked = Some(Instant::now());
        }
        is_due
    }

    /// Looks now, unless that was done a moment ago, and returns the clients that are at work without events.
    pub fn listen(&self, home: &Home, workspace: &Workspace) -> Vec<Silence> {
        if self.is_due() {
            let found = look(&Scene { home, root: &workspace.path, workspace: Some(workspace) });
            self.lock().found = found;
        }
        self.found()
    }

    /// As [`Ear::listen`], on a thread of its own: nobody waits for it.
    pub fn listen_aside(self: &Arc<Ear>, home: &Home, workspace: &Workspace) {
        if !self.is_due() {
            return;
        }
        let (ear, home, workspace) = (Arc::clone(self), home.clone(), workspace.clone());
        let work = move || {
            let found = look(&Scene { home: &home, root: &workspace.path, workspace: Some(&workspace) });
            ear.lock().found = found;
        };
        if let Err(error) = std::thread::Builder::new().name("silence".to_owned()).spawn(work) {
            tracing::debug!(%error, "cannot check for changes without events");
        }
    }
}

#[cfg(test)]
impl Ear {
    /// Makes an ear that has just found these.
    pub(in crate::engine) fn with(found: Vec<Silence>) -> Ear {
        Ear(Mutex::new(Heard { looked: Some(Instant::now()), found }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_events_cause_one_look() {
        let ear = Ear::default();
        assert_eq!((0..100).filter(|_| ear.is_due()).count(), 1);
        ear.lock().looked = Instant::now().checked_sub(PAUSE);
        assert_eq!((0..100).filter(|_| ear.is_due()).count(), 1);
    }
}
