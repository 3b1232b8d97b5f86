//! Marks of work under way: locks that are shared by all who do it. The kernel takes them back with their processes.
//!
//! One mark says that an engine has a workspace open. Each run has another, which its clients' sessions share.

use std::fs::{File, FileTimes, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{IoContext, Result};
use crate::sys::fs::lock::{FileLock, Mode};

/// The mark of the guarding, in the directory of a workspace's records.
const MARK: &str = "guarded";

/// The time for which somebody who looks at the mark is waited for.
const LOOKED_AT: Duration = Duration::from_millis(100);

/// The pause between two attempts.
const BETWEEN: Duration = Duration::from_millis(1);

/// Returns the mark of the guarding of the workspace whose records are in `dir`.
pub fn guard_mark(dir: &Path) -> PathBuf {
    dir.join(MARK)
}

/// A part of this process in some work; it ends with the value.
pub struct WorkMark {
    _lock: FileLock,
}

impl WorkMark {
    /// Says that this process is at work. The time of the mark is when somebody began last.
    ///
    /// # Errors
    /// Returns the errors of making and locking the mark.
    pub fn set(mark: &Path) -> Result<WorkMark> {
        let lock = FileLock::acquire(mark, Mode::Shared, "a mark", LOOKED_AT)?;
        let now = FileTimes::new().set_modified(SystemTime::now());
        File::options().write(true).open(mark).and_then(|file| file.set_times(now)).at("touching", mark)?;
        Ok(WorkMark { _lock: lock })
    }
}

/// The work under way, as its mark tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtWork {
    /// The mark was never set.
    Never,
    /// No process is at work now; the last one began then.
    Since(SystemTime),
    /// A process is at work.
    Now,
}

/// Looks at a mark. Where its lock cannot be tried, the answer is the lesser one: when somebody began last.
pub fn at_work(mark: &Path) -> AtWork {
    let began = || mark.metadata().and_then(|facts| facts.modified()).map_or(AtWork::Never, AtWork::Since);
    let (Ok(file), Some(dir)) = (File::open(mark), mark.parent()) else { return began() };
    // Those who look take turns, or two at once would take each other for one at work.
    let (turn, until) = (File::open(dir), Instant::now() + LOOKED_AT);
    let is_taken = |turn: &File| matches!(turn.try_lock(), Err(TryLockError::WouldBlock));
    while turn.as_ref().is_ok_and(is_taken) && Instant::now() < until {
        std::thread::sleep(BETWEEN);
    }
    match file.try_lock() {
        Ok(()) | Err(TryLockError::Error(_)) => began(),
        Err(TryLockError::WouldBlock) => AtWork::Now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_as_long_as_somebody_is_at_work() {
        let dir = tempfile::tempdir().unwrap();
        let mark = guard_mark(dir.path());
        assert_eq!(at_work(&mark), AtWork::Never);
        let (one, other) = (WorkMark::set(&mark).unwrap(), WorkMark::set(&mark).unwrap());
        drop(one);
        assert_eq!(at_work(&mark), AtWork::Now);
        drop(other);
        assert!(matches!(at_work(&mark), AtWork::Since(_)));
    }

    #[test]
    fn looks_at_once_do_not_take_each_other_for_work() {
        let dir = tempfile::tempdir().unwrap();
        let mark = guard_mark(dir.path());
        drop(WorkMark::set(&mark).unwrap());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| assert!(matches!(at_work(&mark), AtWork::Since(_)))));
            }
        });
        let _one = WorkMark::set(&mark).unwrap();
        assert_eq!(at_work(&mark), AtWork::Now);
    }
}
