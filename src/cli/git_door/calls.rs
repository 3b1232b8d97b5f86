//! The calls of gits that have told of their commands: one small file for each, until its end is told.
//!
//! A process of its own waits for the end of the git. A further git that comes before that has told does it itself: the end is
//! known before anything else moves. It holds a lock on the file meanwhile, so that one process alone tells.

use std::fs::{File, OpenOptions, TryLockError, remove_file};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::checkpoint::Home;
use crate::error::{Error, Result};
use crate::sys::fs::durable::create_private_dir;
use crate::sys::processes::ProcessId;

/// The directory of the files, in piton's home.
const CALLS: &str = "git-calls";

/// The age from which on a file was certainly left over.
const OLD: Duration = Duration::from_hours(48);

/// The longest wait for somebody who tells of an end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time in which whoever waits for a git tells of its end: that knows the very moment.
const FIRST: Duration = Duration::from_millis(300);

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// A call, as its end is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GitCall {
    /// The name of the session.
    pub session: String,
    /// The id of the action.
    pub action: String,
    /// The turn that ends with it; `None` in the session of another client.
    pub turn: Option<String>,
    /// The directory in which it runs.
    pub place: PathBuf,
}

/// The file of a call.
pub(super) struct CallMark(PathBuf);

impl CallMark {
    /// Returns the file of a git, whether it is there or not.
    pub(super) fn of(home: &Path, id: &ProcessId) -> CallMark {
        CallMark::of_key(home, &id.key())
    }

    /// Returns the file of a git by the name of its process.
    pub(super) fn of_key(home: &Path, key: &str) -> CallMark {
        CallMark(home.join(CALLS).join(key))
    }

    /// Makes it; `None` if it was there: the git has called before.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn set(home: &Home, id: &ProcessId) -> Result<Option<CallMark>> {
        let mark = CallMark::of(home.path(), id);
        let make = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path).map(drop::<File>);
        let made = match make(&mark.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                create_private_dir(&home.path().join(CALLS))?;
                make(&mark.0)
            }
            made => made,
        };
        match made {
            Ok(()) => Ok(Some(mark)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
            Err(error) => Err(Error::io(error, "marking a call of git", &mark.0)),
        }
    }

    /// Returns true if it is there.
    pub(super) fn is_set(&self) -> bool {
        self.0.symlink_metadata().is_ok()
    }

    /// Writes down by what the end is told. A part of another git's command has none.
    pub(super) fn fill(&self, call: &GitCall) {
        let text = serde_json::to_vec(call).unwrap_or_default();
        let written = OpenOptions::new().write(true).open(&self.0).and_then(|mut file| file.write_all(&text));
        if let Err(error) = written {
            tracing::warn!(%error, "the end of a git command will not be known");
        }
    }

    /// Takes the telling over; `None` if somebody else has, or there is nothing to tell.
    pub(super) fn claim(self) -> Option<ClaimedCall> {
        // One that is gone is told.
        let mut file = File::open(&self.0).ok()?;
        // The kernel frees the lock of one that was killed over it.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) || !self.is_set() {
            return None;
        }
        let mut text = Vec::new();
        let read = file.read_to_end(&mut text).map_err(serde_json::Error::io);
        let Ok(call) = read.and_then(|_| serde_json::from_slice(&text)) else {
            self.remove();
            return None;
        };
        Some(ClaimedCall { call, mark: self, _lock: file })
    }

    /// Removes it.
    pub(super) fn remove(&self) {
        // One that stays is swept later.
        let _ = remove_file(&self.0);
    }
}

/// A call whose end this process tells, and no other one does.
pub(super) struct ClaimedCall {
    pub call: GitCall,
    mark: CallMark,
    _lock: File,
}

impl ClaimedCall {
    /// Its end is told.
    pub(super) fn told(self) {
        self.mark.remove();
    }
}

/// Has the ends of gits told that have ended, before a further git goes on. `tell` tells of one.
pub(super) fn settle(home: &Path, tell: impl Fn(&GitCall)) {
    let began = Instant::now();
    while let Some(open) = ended(&home.join(CALLS)) {
        if began.elapsed() > FIRST
            && let Some(claimed) = open.claim()
        {
            tell(&claimed.call);
            claimed.told();
            continue;
        }
        // Another process tells of it now.
        if began.elapsed() > PATIENCE {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Returns a call whose git has ended and whose end is not told.
fn ended(dir: &Path) -> Option<CallMark> {
    let is_old = |path: &Path| {
        let at = path.metadata().and_then(|facts| facts.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        at.elapsed().is_ok_and(|age| age > OLD)
    };
    let listing = std::fs::read_dir(dir).ok()?;
    listing.flatten().map(|entry| entry.path()).find_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        if is_old(&path) {
            CallMark(path).remove();
            return None;
        }
        // One of another container may run still.
        let has_ended = ProcessId::of_key(&name).is_none_or(|id| id.is_alive() == Some(false));
        // Its end may be told by now.
        has_ended.then_some(CallMark(path)).filter(CallMark::is_set)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_at_a_time_tells_of_an_end() {
        let home = tempfile::tempdir().unwrap();
        let mark = || CallMark::of_key(home.path(), "1-2");
        let call = GitCall { session: "s".into(), ..GitCall::default() };
        assert!(mark().claim().is_none(), "none is there");
        std::fs::create_dir(home.path().join(CALLS)).unwrap();
        std::fs::write(&mark().0, serde_json::to_vec(&call).unwrap()).unwrap();
        let first = mark().claim().unwrap();
        assert_eq!(first.call, call);
        assert!(mark().claim().is_none(), "it is being told");
        drop(first);
        let second = mark().claim().expect("the first was killed over it");
        second.told();
        assert!(mark().claim().is_none() && !mark().is_set());
        std::fs::write(&mark().0, "").unwrap();
        assert!(mark().claim().is_none() && !mark().is_set(), "a part of another command has no end of its own");
    }

    #[test]
    fn an_end_that_somebody_tells_is_told_once() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(CALLS)).unwrap();
        let mark = || CallMark::of_key(home.path(), "1-2");
        std::fs::write(&mark().0, serde_json::to_vec(&GitCall::default()).unwrap()).unwrap();
        let told = std::sync::atomic::AtomicU32::new(0);
        let tell = |_: &GitCall| {
            told.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            // A capture that takes longer than the first wait of all others.
            let until = Instant::now() + 2 * FIRST;
            while Instant::now() < until {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| settle(home.path(), tell));
            }
        });
        assert_eq!((told.into_inner(), mark().is_set()), (1, false));
    }
}
