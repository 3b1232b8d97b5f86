//! The answers of a watcher, as the log of actions gets them: what changed between which two questions.
//!
//! They are noted only while turns or actions are open, and written with the next line of the log.

use std::path::{Path, PathBuf};

use crate::checkpoint::records::windows::{Interval, own_name};
use crate::model::change::{Changes, Dirty, Why};
use crate::model::path::RelPath;
use crate::sys::clock::since_boot_ns;
use crate::sys::fs::mark::FileMark;
use crate::worktree::head_log;

/// The most answers that wait to be written; with more, everything counts as changed in them.
const MOST: usize = 4096;

/// The answers of one watcher that are not written yet.
#[derive(Default)]
pub(crate) struct SeenChanges {
    /// The moment since which all changes are known; `None` before the first answer.
    known_since: Option<i64>,
    /// The moment of the last question.
    asked: i64,
    waiting: Vec<Interval>,
    /// True while turns or actions are open.
    is_on: bool,
    /// The file that git appends to whenever HEAD moves, and its mark at the last question.
    head: Option<(PathBuf, Option<FileMark>)>,
}

impl SeenChanges {
    /// Forgets what an earlier watcher knew.
    pub(super) fn begin_anew(&mut self) {
        self.known_since = None;
    }

    /// Notes the answers from now on.
    pub(crate) fn begin(&mut self, root: &Path) {
        if !std::mem::replace(&mut self.is_on, true) {
            self.head = head_log(root).map(|log| (log.clone(), mark(&log)));
        }
    }

    /// Notes no more answers, because nothing is open.
    pub(crate) fn end(&mut self) {
        (self.is_on, self.head) = (false, None);
        self.waiting.clear();
    }

    /// Returns the moment up to which changes were asked for; now, without a watcher that knows all of them.
    pub(crate) fn asked(&self) -> i64 {
        if self.known_since.is_some() { self.asked } else { since_boot_ns() }
    }

    /// Takes the answers that are not written yet.
    pub(crate) fn take(&mut self) -> Vec<Interval> {
        std::mem::take(&mut self.waiting)
    }

    /// Notes an answer. `always` are the paths that the watcher reports each time.
    pub(super) fn note(&mut self, changes: &Changes, always: &dyn Fn(&RelPath) -> bool) {
        let (from, to) = (self.asked, since_boot_ns());
        self.asked = to;
        let Some(since) = self.known_since else {
            self.known_since = Some(to);
            return;
        };
        if let Changes::Everything(Why::FirstLook | Why::OtherWatcher) = changes {
            self.known_since = Some(to);
        }
        if !self.is_on {
            return;
        }
        let head_moved = self.head.as_mut().is_some_and(|(log, known)| {
            let now = mark(log);
            std::mem::replace(known, now) != now
        });
        let changes = match changes {
            Changes::Paths(dirty) if dirty.iter().any(|(path, _)| always(path)) => {
                let told = dirty.iter().filter(|(path, _)| !always(path));
                Changes::Paths(Dirty::new(told.map(|(path, reach)| (path.clone(), reach))))
            }
            changes => changes.clone(),
        };
        let by = own_name().to_owned();
        let is_quiet = |interval: &Interval| interval.changes == Changes::none() && !interval.head_moved;
        let is_quiet_too = changes == Changes::none() && !head_moved;
        let is_full = self.waiting.len() >= MOST;
        match self.waiting.last_mut() {
            // Nothing changed in either: one line tells both.
            Some(last) if is_quiet_too && is_quiet(last) => last.to = to,
            Some(last) if is_full => {
                let (from, changes) = (last.from, Changes::Everything(Why::TooManyPaths));
                *last = Interval { by, since, from, to, changes, head_moved };
            }
            _ => self.waiting.push(Interval { by, since, from, to, changes, head_moved }),
        }
    }
}

/// Returns the mark of a file; one that cannot be looked at counts as missing.
fn mark(file: &Path) -> Option<FileMark> {
    FileMark::behind(file).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::change::Reach;

    fn changed(paths: &[&str]) -> Changes {
        let entry = |path: &&str| (RelPath::parse(path.as_bytes()).unwrap(), Reach::Entry);
        Changes::Paths(Dirty::new(paths.iter().map(entry)))
    }

    #[test]
    fn answers_follow_each_other_without_a_gap_while_something_is_open() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join(".git/logs")).unwrap();
        std::fs::write(dir.path().join(".git/logs/HEAD"), "one\n").unwrap();
        let (mut seen, none) = (SeenChanges::default(), |_: &RelPath| false);
        seen.note(&Changes::Everything(Why::FirstLook), &none);
        seen.note(&changed(&["early"]), &none);
        assert!(seen.take().is_empty(), "nothing is open");
        seen.begin(dir.path());
        seen.note(&changed(&["a", "linked"]), &|path| path.as_bytes() == b"linked");
        seen.note(&changed(&[]), &none);
        seen.note(&changed(&[]), &none);
        std::fs::write(dir.path().join(".git/logs/HEAD"), "one\ntwo\n").unwrap();
        seen.note(&changed(&["b"]), &none);
        let noted = seen.take();
        let told: Vec<_> = noted.iter().map(|one| (one.changes.clone(), one.head_moved)).collect();
        assert_eq!(told, [(changed(&["a"]), false), (changed(&[]), false), (changed(&["b"]), true)]);
        assert!(noted.windows(2).all(|pair| pair[0].to == pair[1].from), "{noted:?}");
        assert!(noted.iter().all(|one| one.since <= noted[0].from));
        seen.note(&Changes::Everything(Why::OtherWatcher), &none);
        seen.note(&changed(&["c"]), &none);
        let noted = seen.take();
        assert_eq!(noted[1].since, noted[1].from, "{noted:?}");
        seen.end();
        seen.note(&changed(&["d"]), &none);
        assert!(seen.take().is_empty());
    }
}
