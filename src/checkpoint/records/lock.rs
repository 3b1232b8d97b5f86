//! The lock of one workspace's records, as a type.
//!
//! Refs, log, journal, numbers, state, runs and stamps of a workspace are written while it is held, and by functions that ask for
//! it. It is a kernel lock on a file that is never deleted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Code, Error, Result};
use crate::sys::fs::lock::{FileLock, Held, Mode, holder};

/// The longest wait of an operation for a lock that another process holds.
pub(crate) const LOCK_WAIT: Duration = Duration::from_mins(1);

/// The exclusive lock of a workspace, held for the life of the value.
#[derive(Debug)]
pub struct WorkspaceLock(FileLock);

impl WorkspaceLock {
    /// Takes the lock of the workspace whose records stand in `dir`, waiting at most `wait`. Others read `verb` as the reason.
    ///
    /// # Errors
    /// `store-locked` when the wait is over; `workspace-gone` if there are no records any more; I/O errors.
    pub fn acquire(dir: &Path, verb: &str, wait: Duration) -> Result<WorkspaceLock> {
        let lock = FileLock::acquire(&file_in(dir), Mode::Exclusive, verb, wait).map(WorkspaceLock);
        lock.map_err(|error| if dir.exists() { error } else { gone() })
    }

    /// Refuses if the records went away while the lock was waited for: it is of another file than that of others.
    ///
    /// # Errors
    /// `workspace-gone`.
    pub(crate) fn require_place(&self) -> Result<()> {
        if self.0.stands() { Ok(()) } else { Err(gone()) }
    }

    /// Returns true if no other process has held the lock since the holding that gave `earlier`.
    pub(crate) fn follows(&self, earlier: &Held) -> bool {
        self.0.follows(earlier)
    }

    /// Returns the mark that tells a later holder if another one held the lock in between.
    pub(crate) fn held(&self) -> Held {
        self.0.held()
    }
}

fn gone() -> Error {
    let text = "another process cleared or moved the records of this workspace";
    Error::new(Code::WorkspaceGone, text).hint("open the workspace again")
}

/// Runs `look` while no process writes; `None` if one does.
///
/// # Errors
/// Returns the errors of `look` and of opening the lock.
pub(crate) fn while_nobody_writes<T>(dir: &Path, look: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    match FileLock::acquire(&file_in(dir), Mode::Shared, "looking", Duration::ZERO) {
        Ok(_lock) => look().map(Some),
        Err(error) if error.code() == Code::StoreLocked => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if the holder of the lock said that this verb is its reason.
pub(crate) fn is_held_for(dir: &Path, verb: &str) -> bool {
    holder(&file_in(dir)).contains(&format!("doing {verb}"))
}

fn file_in(dir: &Path) -> PathBuf {
    dir.join("lock")
}
