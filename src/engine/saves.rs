//! Autosaves: checkpoints of a changed tree, for sessions that asked for them.
//!
//! A save is due [`QUIET`] after the last change, and at the latest [`LATEST`] after the first one that waits. The watcher
//! tells of changes. Where it cannot tell of all of them, the tree is looked at each [`LATEST`] instead.
//!
//! *Invariant:* where the watcher covers everything and nothing changes, no timer runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::checkpoint::capture::request::{Take, Taken};
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;

/// The rest after a change that a save waits for.
pub const QUIET: Duration = Duration::from_secs(2);

/// The longest wait of a change for its save, and the pause between two looks where changes are not told.
pub const LATEST: Duration = Duration::from_secs(10);

/// The rest after a change before the question who made it, where no session wants saves. Events, and the files of sessions, come
/// later than the change itself.
const SUSPECT: Duration = Duration::from_secs(40);

/// The longest wait of a change for that question.
const SUSPECT_LATEST: Duration = Duration::from_mins(2);

/// The longest pause after a save that failed.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// A look at a tree that takes long is repeated after this many times its duration at the earliest.
const LOOK_SHARE: u32 = 20;

/// The reason that such a checkpoint has.
const REASON: &str = "files changed";

/// Receives the outcome of a save on the worker's thread; `None` for one that was put off. It locks the session, which may wait
/// for the queue: so it is called without the queue's lock.
pub(super) type Told = Arc<dyn Fn(Option<&Result<Arc<Taken>>>) + Send + Sync>;

/// A session that wants changes to be saved.
pub(super) struct Saver {
    /// The number of the session.
    pub number: u64,
    /// The run that the saves are recorded for.
    pub run: String,
    /// The way to tell it.
    pub told: Told,
}

/// The saves of one workspace: which sessions want them, and when the next is due.
#[derive(Default)]
pub(super) struct Saves {
    savers: Vec<Saver>,
    /// The times of the first and the last change that is not saved.
    unsaved: Option<(Instant, Instant)>,
    /// The time of the next look, where the watcher does not tell of all changes, or a save failed.
    look_at: Option<Instant>,
    /// The number of saves that failed in a row.
    failed: u32,
    /// No save comes before this time, because the last one failed.
    not_before: Option<Instant>,
}

impl Saves {
    /// Adds a session. The tree as it is now is saved first.
    pub(super) fn add(&mut self, saver: Saver, now: Instant) {
        self.savers.push(saver);
        self.look_at = Some(now);
        self.not_before = None;
    }

    /// Removes a session.
    pub(super) fn remove(&mut self, number: u64) {
        self.savers.retain(|saver| saver.number != number);
        if self.savers.is_empty() {
            *self = Saves::default();
        }
    }

    /// Notes a change; true if the worker has to look at its clock again.
    pub(super) fn changed(&mut self, now: Instant) -> bool {
        let is_first = self.unsaved.is_none();
        let first = self.unsaved.map_or(now, |(first, _)| first);
        self.unsaved = Some((first, now));
        is_first
    }

    /// Returns the time of the next save.
    pub(super) fn due(&self) -> Option<Instant> {
        let (rest, latest) = if self.savers.is_empty() { (SUSPECT, SUSPECT_LATEST) } else { (QUIET, LATEST) };
        let unsaved = self.unsaved.map(|(first, last)| (last + rest).min(first + latest));
        let due = [unsaved, self.look_at].into_iter().flatten().min()?;
        Some(self.not_before.map_or(due, |not_before| due.max(not_before)))
    }

    /// Begins a save: changes from now on are for the next one. Returns the run that it is recorded for, the last session's; `None` if no
    /// session wants saves.
    pub(super) fn begin(&mut self) -> Option<String> {
        (self.unsaved, self.look_at) = (None, None);
        self.savers.last().map(|saver| saver.run.clone())
    }

    /// Notes the outcome of a save. `covered` tells if the watcher told of all changes that it looked for. Returns who is to be
    /// told.
    #[must_use]
    pub(super) fn end(
        &mut self,
        saved: &Result<Arc<Taken>>,
        covered: bool,
        (now, took): (Instant, Duration),
    ) -> Vec<Told> {
        let is_failed = saved.is_err();
        self.failed = if is_failed { self.failed.saturating_add(1) } else { 0 };
        let pause = (LATEST * 2u32.saturating_pow(self.failed.saturating_sub(1).min(16))).min(LONGEST_PAUSE);
        self.not_before = is_failed.then_some(now + pause);
        if !self.savers.is_empty() && (is_failed || !covered) {
            self.look_at = Some(now + LATEST.max(took * LOOK_SHARE));
        }
        let is_news = is_failed || saved.as_ref().is_ok_and(|taken| !taken.unchanged);
        if is_news { self.told() } else { Vec::new() }
    }

    /// Notes that a save was left out because the guard is off. Returns who is to be told.
    #[must_use]
    pub(super) fn put_off(&mut self, now: Instant) -> Vec<Told> {
        self.look_at = Some(now + LATEST);
        self.told()
    }

    fn told(&self) -> Vec<Told> {
        self.savers.iter().map(|saver| Arc::clone(&saver.told)).collect()
    }
}

/// Returns the request for a save.
pub(super) fn take_for(run: &str) -> Take {
    Take::of(CheckpointKind::Autosave, run, REASON)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Error};

    fn saver(number: u64, run: &str) -> Saver {
        Saver { number, run: run.to_owned(), told: Arc::new(|_| {}) }
    }

    fn failed() -> Result<Arc<Taken>> {
        Err(Error::new(Code::DiskFull, "full"))
    }

    #[test]
    fn a_save_comes_after_a_rest_and_at_the_latest_after_ten_seconds() {
        let zero = Instant::now();
        let at = |ms: u64| zero + Duration::from_millis(ms);
        let mut saves = Saves::default();
        assert!(saves.due().is_none());
        assert!(saves.changed(at(0)) && !saves.changed(at(1000)));
        assert_eq!(saves.due(), Some(at(41_000)), "nobody wants saves, and the client may be silent");
        saves.add(saver(1, "one"), at(0));
        assert_eq!(saves.due(), Some(at(0)), "the tree as it is comes first");
        assert_eq!(saves.begin().as_deref(), Some("one"));
        assert_eq!(saves.due(), None);
        assert!(saves.changed(at(100)) && !saves.changed(at(1500)));
        assert_eq!(saves.due(), Some(at(3500)));
        (2..40).for_each(|n| assert!(!saves.changed(at(n * 1000))));
        assert_eq!(saves.due(), Some(at(10_100)));
        // A change while a save is at work is for the next one.
        saves.begin();
        assert!(saves.changed(at(40_000)));
        assert_eq!(saves.due(), Some(at(42_000)));
    }

    #[test]
    fn a_save_that_fails_is_tried_again_and_rarer_each_time() {
        let zero = Instant::now();
        let mut saves = Saves::default();
        saves.add(saver(1, "one"), zero);
        let mut now = zero;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            saves.begin();
            assert_eq!(saves.end(&failed(), true, (now, Duration::ZERO)).len(), 1);
            assert!(saves.changed(now));
            let due = saves.due().unwrap();
            pauses.push((due - now).as_secs());
            now = due;
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
    }

    #[test]
    fn a_tree_whose_changes_are_not_told_is_looked_at_and_not_too_often() {
        let now = Instant::now();
        let mut saves = Saves::default();
        saves.add(saver(1, "one"), now);
        saves.add(saver(2, "two"), now);
        assert_eq!(saves.begin().as_deref(), Some("two"));
        assert_eq!(saves.end(&failed(), false, (now, Duration::from_secs(2))).len(), 2);
        assert_eq!(saves.due(), Some(now + Duration::from_secs(40)));
        saves.remove(2);
        assert_eq!(saves.begin().as_deref(), Some("one"));
        saves.remove(1);
        assert!(saves.due().is_none() && saves.begin().is_none());
    }
}
