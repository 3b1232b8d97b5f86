//! Cookies: changes made on purpose. The event of a cookie comes after the events of all changes before it.
//!
//! The kernel queues the events of one inotify instance in order. When a sync writes a cookie and then sees its event,
//! all earlier events have been handled. One file is written again and again. After a sync that timed out, another file
//! takes its place, so that its late event cannot end a later sync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::events::{PendingChanges, SharedChanges};
use crate::error::{IoContext, Result};
use crate::model::change::Why;

/// The beginning of every cookie's name.
const NAME: &str = "cookie-";

/// The number of deleted directories up to which a sync keeps waiting for its cookie.
const FEW: usize = 20;

/// The age after which cookies of dead watchers are deleted.
const STALE: Duration = Duration::from_hours(7 * 24);

/// The cookies of one watcher.
pub(super) struct Cookies {
    dir: Arc<Path>,
    prefix: String,
    number: u64,
    file: Option<File>,
}

impl Cookies {
    /// Makes the cookies of a watcher.
    pub(super) fn new(dir: Arc<Path>, watcher: u64) -> Cookies {
        sweep(&dir);
        Cookies { dir, prefix: format!("{NAME}{watcher:016x}-"), number: 0, file: None }
    }

    /// Returns the directory in which cookies are written.
    pub(super) fn dir(&self) -> &Arc<Path> {
        &self.dir
    }

    /// Returns the beginning of the names of cookies.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Writes a cookie and waits until its event comes, or until everything is lost. Gives up after `patience` if
    /// notify is busy with the watches of many deleted directories.
    ///
    /// # Errors
    /// `Late` when the deadline passes, `NoCookie` when the file cannot be written.
    pub(super) fn wait(&mut self, shared: &SharedChanges, patience: Instant, deadline: Instant) -> Result<(), Why> {
        let before = self.write(shared).map_err(|error| {
            tracing::warn!(%error, "cannot write the watcher's marker file");
            Why::NoCookie
        })?;
        let number = self.number;
        let done =
            |pending: &PendingChanges| pending.afresh || (pending.cookie.0 == number && pending.cookie.1 > before);
        if shared.wait(patience.min(deadline), done) {
            return Ok(());
        }
        {
            let mut pending = shared.lock();
            // Each deleted directory costs notify a look at all watches; starting afresh is faster than to wait for
            // that.
            if pending.deleted > FEW {
                pending.lose(Why::ManyGone);
                return Ok(());
            }
        }
        if shared.wait(deadline, done) {
            return Ok(());
        }
        // Its late event, and that of its deletion, must not count for a later cookie.
        shared.lock().cookie = (number + 1, 0);
        self.forget();
        Err(Why::Late)
    }

    /// Writes the cookie, and returns how many of its events came before.
    fn write(&mut self, shared: &SharedChanges) -> Result<u64> {
        let path = self.path();
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                shared.lock().cookie = (self.number, 0);
                let mut options = File::options();
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                options.write(true).create_new(true).open(&path).at("making the cookie", &path)?
            }
        };
        // Read before the write: the event may come before this thread continues.
        let before = shared.lock().cookie.1;
        file.write_all_at(b".", 0).at("writing the cookie", &path)?;
        self.file = Some(file);
        Ok(before)
    }

    /// Deletes the file, so that the next cookie is a new one.
    pub(super) fn forget(&mut self) {
        let old = self.path();
        self.number += 1;
        if self.file.take().is_some() {
            // A cookie that is gone already needs no deletion.
            let _ = std::fs::remove_file(old);
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}{}", self.prefix, self.number))
    }
}

impl Drop for Cookies {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Deletes cookies that were not written for long. A live watcher whose cookie is deleted makes a new one.
fn sweep(dir: &Path) {
    // A directory that cannot be listed is left as it is: old cookies do no harm.
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(NAME.as_bytes())) {
        let written = entry.metadata().and_then(|facts| facts.modified()).unwrap_or_else(|_| SystemTime::now());
        if written.elapsed().is_ok_and(|age| age > STALE) {
            // A cookie that cannot be deleted does no harm either.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
