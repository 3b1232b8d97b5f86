//! Marks of work under way: locks that are shared by all who do it. The kernel takes them back with their processes.
//!
//! One mark says that an engine has a workspace open. Each run has another, which its clients' sessions share.

use std::fs::{File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{IoContext, Result};
use crate::sys::fs::durable::{create_private_dir, open_private};
use crate::sys::share::{is_shared, share};

/// The mark of the guarding, in the directory of a workspace's records.
const MARK: &str = "guarded";

/// Returns the mark of the guarding of the workspace whose records are in `dir`.
pub fn guard_mark(dir: &Path) -> PathBuf {
    dir.join(MARK)
}

/// A part of this process in some work; it ends with the value.
pub struct WorkMark {
    _file: File,
}

impl WorkMark {
    /// Says that this process is at work. The time of the mark is when somebody began last. `None` where the mark cannot
    /// be set: the work goes on all the same, and only those who look cannot tell.
    pub fn set(mark: &Path) -> Option<WorkMark> {
        let marked =
            WorkMark::try_set(mark).inspect_err(|error| tracing::warn!(%error, "work continues without its mark"));
        marked.ok() // said above
    }

    fn try_set(mark: &Path) -> Result<WorkMark> {
        mark.parent().map_or(Ok(()), create_private_dir)?;
        let file = open_private(mark).at("making the mark", mark)?;
        let now = FileTimes::new().set_modified(SystemTime::now());
        share(&file).and_then(|()| file.set_times(now)).at("setting the mark", mark)?;
        Ok(WorkMark { _file: file })
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

/// Looks at a mark. Where its lock cannot be asked about, the answer is the lesser one: when somebody began last.
pub fn at_work(mark: &Path) -> AtWork {
    let began = || mark.metadata().and_then(|facts| facts.modified()).map_or(AtWork::Never, AtWork::Since);
    let Ok(file) = File::open(mark) else { return began() };
    if is_shared(&file).unwrap_or(false) { AtWork::Now } else { began() } // said above
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Waits until nobody is at work: a process that another test is starting holds a copy of a lock until its `exec`.
    fn ends(mark: &Path) -> bool {
        let until = Instant::now() + Duration::from_mins(1);
        while at_work(mark) == AtWork::Now && Instant::now() < until {
            std::thread::yield_now();
        }
        matches!(at_work(mark), AtWork::Since(_))
    }

    #[test]
    fn a_mark_stands_as_long_as_somebody_is_at_work() {
        let dir = tempfile::tempdir().unwrap();
        let mark = guard_mark(dir.path());
        assert_eq!(at_work(&mark), AtWork::Never);
        let (one, other) = (WorkMark::try_set(&mark).unwrap(), WorkMark::try_set(&mark).unwrap());
        drop(one);
        assert_eq!(at_work(&mark), AtWork::Now);
        drop(other);
        assert!(ends(&mark));
    }

    #[test]
    fn looks_at_once_do_not_take_each_other_for_work() {
        let dir = tempfile::tempdir().unwrap();
        let mark = guard_mark(dir.path());
        drop(WorkMark::try_set(&mark).unwrap());
        assert!(ends(&mark));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| assert!(matches!(at_work(&mark), AtWork::Since(_)))));
            }
        });
        let _one = WorkMark::try_set(&mark).unwrap();
        assert_eq!(at_work(&mark), AtWork::Now);
    }
}
