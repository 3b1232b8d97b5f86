//! Marks of workspaces whose newest records are synced a moment later, so that other workspaces do not rely on their objects
//! unsynced.
//!
//! The file `lazy/<workspace>` exists from a workspace's first unsynced record until the first start after a power cut. Its time is
//! that of the newest unsynced record, and an old one once the log is emptied. It has two readers. A writer that syncs makes these workspaces' logs durable before its own record, since it may
//! share objects with them; marks that were not renewed for [`RECENT`] are of logs that are durable by now. The first start after a
//! boot checks every loose object if it finds such a file.

use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::repository::Store;
use crate::error::{Error, IoContext, Result};
use crate::sys::fs::durable::{create_private_dir, replace_file, sync_dir};

/// Returns the names of the marked workspaces.
pub(super) fn marked(dir: &Path) -> Result<Vec<String>> {
    let listing = match std::fs::read_dir(dir) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(error, "listing", dir)),
    };
    let names = listing.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<Result<_, _>>().at("listing", dir)
}

/// The age of a mark from which on the log was synced: by its process after a moment, or else by the system.
const RECENT: Duration = Duration::from_mins(2);

/// The age from which on a mark is renewed.
const RENEW: Duration = Duration::from_secs(30);

fn mark_of(dir: &Path, log: &Path) -> PathBuf {
    dir.join(log.parent().and_then(Path::file_name).unwrap_or_default())
}

/// Returns true if a file was modified less than so long ago; also if the clock does not say.
fn is_younger(facts: &Metadata, than: Duration) -> bool {
    let age = facts.modified().map(|modified| modified.elapsed());
    !age.is_ok_and(|age| age.is_ok_and(|age| age >= than))
}

/// Makes or renews the mark of the workspace that `log` belongs to.
pub(super) fn announce(dir: &Path, log: &Path) -> Result<()> {
    let mark = mark_of(dir, log);
    match std::fs::metadata(&mark) {
        Ok(facts) if is_younger(&facts, RENEW) => return Ok(()),
        Ok(_) => {
            let file = OpenOptions::new().write(true).open(&mark).at("opening", &mark)?;
            return file.set_modified(SystemTime::now()).at("renewing", &mark);
        }
        Err(_) => {}
    }
    if !dir.is_dir() {
        create_private_dir(dir)?;
        sync_dir(dir.parent().unwrap_or(dir))?;
    }
    replace_file(&mark, b"")
}

/// Gives the mark of the workspace that `log` belongs to an old time: no other workspace waits for this log, and the next unsynced record
/// has no new mark to sync. Without a mark there is nothing to do; if it fails, others wait for more than they need.
pub(super) fn rest(dir: &Path, log: &Path) {
    if let Ok(file) = OpenOptions::new().write(true).open(mark_of(dir, log)) {
        // With its own time the mark still says the truth, and others wait for this log once more.
        let _ = file.set_modified(SystemTime::UNIX_EPOCH);
    }
}

impl Store {
    /// Makes the unsynced records of all logs but `own` durable.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub(super) fn sync_logs(&self, own: Option<&Path>) -> Result<()> {
        let dir = self.home.join(self.names.lazy);
        for name in marked(&dir)? {
            let path = self.home.join("workspaces").join(&name).join(self.names.log);
            let is_recent = || std::fs::metadata(dir.join(&name)).is_ok_and(|facts| is_younger(&facts, RECENT));
            if own == Some(&path) || !is_recent() {
                continue;
            }
            match File::open(&path) {
                Ok(file) => file.sync_data().at("syncing the log", &path)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(error, "opening the log", &path)),
            }
        }
        Ok(())
    }

    /// Removes the mark of the workspace that `log` belongs to, whose name is the workspace's id. The caller holds the lock of the
    /// workspace and has flushed the log, so that no object relies on the mark.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn remove_mark(&self, log: &Path) -> Result<()> {
        let dir = self.home.join(self.names.lazy);
        let mark = mark_of(&dir, log);
        match std::fs::remove_file(&mark) {
            Ok(()) => sync_dir(&dir),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(error, "removing", &mark)),
        }
    }
}

/// Removes all marks.
pub(super) fn forget(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Ok(()) => sync_dir(dir.parent().unwrap_or(dir)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(error, "removing", dir)),
    }
}
