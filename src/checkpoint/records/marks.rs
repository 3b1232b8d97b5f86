//! The mark of who guards a workspace: a lock that every engine shares which has it open. The kernel takes it back with its process.

use std::fs::{File, FileTimes, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::error::{IoContext, Result};
use crate::sys::fs::lock::{FileLock, Mode};

/// The mark, in the directory of a workspace's records. Its time is when somebody began to guard it last.
const MARK: &str = "guarded";

/// The time for which somebody who looks at the mark is waited for.
const LOOKED_AT: Duration = Duration::from_millis(100);

/// The guarding of a workspace by this process; it ends with the value.
pub struct GuardMark {
    _lock: FileLock,
}

impl GuardMark {
    /// Says that this process guards the workspace whose records are in `dir`.
    ///
    /// # Errors
    /// Returns the errors of making and locking the mark.
    pub fn set(dir: &Path) -> Result<GuardMark> {
        let path = dir.join(MARK);
        let lock = FileLock::acquire(&path, Mode::Shared, "guarding", LOOKED_AT)?;
        let now = FileTimes::new().set_modified(SystemTime::now());
        File::options().write(true).open(&path).and_then(|file| file.set_times(now)).at("touching", &path)?;
        Ok(GuardMark { _lock: lock })
    }
}

/// The guarding of a workspace, as its mark tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarding {
    /// No engine has ever had it open.
    Never,
    /// None has it open now; the last one opened it then.
    Since(SystemTime),
    /// A daemon, sidecar or proxy has it open.
    Now,
}

/// Looks at the mark of the workspace whose records are in `dir`.
///
/// # Errors
/// When it cannot be read.
pub fn guarding(dir: &Path) -> Result<Guarding> {
    let path = dir.join(MARK);
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Guarding::Never),
        opened => opened.at("opening", &path)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Guarding::Since(file.metadata().and_then(|facts| facts.modified()).at("looking at", &path)?)),
        Err(TryLockError::WouldBlock) => Ok(Guarding::Now),
        Err(TryLockError::Error(error)) => Err(crate::error::Error::io(error, "locking", &path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_as_long_as_somebody_guards() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(guarding(dir.path()).unwrap(), Guarding::Never);
        let (one, other) = (GuardMark::set(dir.path()).unwrap(), GuardMark::set(dir.path()).unwrap());
        drop(one);
        assert_eq!(guarding(dir.path()).unwrap(), Guarding::Now);
        drop(other);
        assert!(matches!(guarding(dir.path()).unwrap(), Guarding::Since(_)));
    }
}
