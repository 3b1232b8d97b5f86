//! The answers of a watcher, as the log of actions gets them: what changed between which two questions.
//!
//! They are noted only while turns or actions are open, and written with the next line of the log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::checkpoint::records::process_names::own_name;
use crate::checkpoint::records::windows::Interval;
use crate::model::change::{Changes, Dirty, Why};
use crate::model::path::RelPath;
use crate::sys::clock::since_boot_ns;
use crate::sys::fs::mark::FileMark;
use crate::worktree::{HeadMove, head_log};

/// The most answers that wait to be written; with more, everything counts as changed in them.
const MOST: usize = 4096;

/// The answers of one watcher that are not written yet.
#[derive(Default)]
pub(crate) struct SeenChanges {
    /// The moment since which all changes are known; `None` before the first answer.
    known_since: Option<i64>,
    /// The moment of the last question.
    asked: i64,
    /// The moment of the last question with a complete answer.
    answered: i64,
    waiting: Vec<Interval>,
    /// True while turns or actions are open.
    is_on: bool,
    /// The log of HEAD, to which git appends a line whenever HEAD moves.
    head: Option<HeadLog>,
}

impl SeenChanges {
    /// Forgets what an earlier watcher knew.
    pub(super) fn begin_anew(&mut self) {
        self.known_since = None;
    }

    /// Notes the answers from now on.
    pub(crate) fn begin(&mut self, root: &Path) {
        if !std::mem::replace(&mut self.is_on, true) {
            self.head = head_log(root).map(HeadLog::at);
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

    /// Notes an answer. `always` are the paths that the watcher reports each time. A late answer is skipped: the next one reports its
    /// changes, and its interval begins where the last complete answer ended.
    pub(super) fn note(&mut self, changes: &Changes, always: &dyn Fn(&RelPath) -> bool) {
        let to = since_boot_ns();
        self.asked = to;
        if *changes == Changes::Everything(Why::Late) {
            return;
        }
        let from = std::mem::replace(&mut self.answered, to);
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
        let head_moved = self.head.as_mut().is_some_and(HeadLog::has_written_files);
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

/// The log of HEAD, as it was read last.
struct HeadLog {
    file: PathBuf,
    mark: Option<FileMark>,
    /// The bytes that were read of it, or were there at the beginning.
    length: u64,
}

/// The most bytes that are read of new lines; with more, HEAD counts as moved.
const MOST_LOG: u64 = 256 << 10;

impl HeadLog {
    fn at(file: PathBuf) -> HeadLog {
        let length = file.metadata().map_or(0, |facts| facts.len()); // one that is missing begins at 0
        HeadLog { mark: mark(&file), file, length }
    }

    /// Returns true if HEAD has moved since the last question, and git may have written files of the work tree with it. A commit
    /// writes none, and a log that was deleted with its repository is no move.
    fn has_written_files(&mut self) -> bool {
        let now = mark(&self.file);
        if std::mem::replace(&mut self.mark, now) == now {
            return false;
        }
        let from = std::mem::take(&mut self.length);
        if now.is_none() {
            return false;
        }
        let Ok(appended) = self.appended(from) else { return true };
        let mut lines = appended.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.any(|line| !HeadMove::parse(line).is_some_and(|one| one.is_commit()))
    }

    /// Reads what was appended after a byte; all of a log that is shorter than that by now.
    fn appended(&mut self, from: u64) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&self.file)?;
        self.length = file.metadata()?.len();
        let from = if self.length < from { 0 } else { from };
        if self.length - from > MOST_LOG {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        let mut appended = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(self.length - from).read_to_end(&mut appended)?;
        Ok(appended)
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
        std::fs::write(dir.path().join(".git/logs/HEAD"), "one\ntwo: no line of git\n").unwrap();
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

    #[test]
    fn the_answer_after_a_late_one_covers_its_time_too() {
        let dir = tempfile::tempdir().unwrap();
        let (mut seen, none) = (SeenChanges::default(), |_: &RelPath| false);
        seen.note(&Changes::Everything(Why::FirstLook), &none);
        seen.begin(dir.path());
        let began = seen.asked();
        seen.note(&Changes::Everything(Why::Late), &none);
        let late = seen.asked();
        assert!(late >= began && seen.take().is_empty());
        seen.note(&changed(&["a"]), &none);
        let noted = seen.take();
        assert_eq!((noted.len(), noted[0].from, noted[0].to), (1, began, seen.asked()), "{noted:?}");
    }

    #[test]
    fn head_moves_that_write_no_files_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("HEAD");
        let line = |message: &str| format!("{0} {0} t <t> 1 +0000\t{message}\n", "0".repeat(40));
        let mut text = line("commit (initial): a");
        std::fs::write(&file, &text).unwrap();
        let mut log = HeadLog::at(file.clone());
        assert!(!log.has_written_files(), "nothing was appended");
        for (message, expected) in [
            ("commit: b", false),
            ("checkout: moving from a to b", true),
            ("commit (amend): c", false),
            ("commit (merge): d", false),
            ("merge x: Fast-forward", true),
            ("pull: Fast-forward", true),
            ("rebase (pick): e", true),
            ("reset: moving to HEAD~1", true),
            ("", true),
        ] {
            text += &line(message);
            std::fs::write(&file, &text).unwrap();
            assert_eq!(log.has_written_files(), expected, "{message}");
        }
        std::fs::remove_file(&file).unwrap();
        assert!(!log.has_written_files(), "the repository no longer exists");
        std::fs::write(&file, line("commit (initial): f")).unwrap();
        assert!(!log.has_written_files(), "a new repository has its first commit");
        std::fs::write(&file, line("clone: from x")).unwrap();
        assert!(log.has_written_files());
    }
}
