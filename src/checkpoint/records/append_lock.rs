//! Locks of the files that several processes append to.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Code, Error, Result};

/// Takes a lock of a file that other processes hold for a moment only.
///
/// # Errors
/// `store-locked` if it is not free until then.
pub(super) fn locked(
    file: &File,
    path: &Path,
    until: Instant,
    lock: impl Fn(&File) -> std::result::Result<(), TryLockError>,
) -> Result<()> {
    loop {
        match lock(file) {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(Error::io(error, "locking", path)),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Err(Error::new(Code::StoreLocked, "another process is writing a record").path(path));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
