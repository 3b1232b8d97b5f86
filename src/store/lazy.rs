//! Marks of workspaces that write without syncing (`durability: process`), so that other workspaces do not rely on
//! their objects unsynced.
//!
//! The file `lazy/<workspace>` exists from a workspace's first unsynced record until the first start after a power cut.
//! It has two readers. A writer that syncs makes these workspaces' logs durable before its own record, since it may
//! share objects with them. The first start after a boot checks every loose object if it finds such a file.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

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

/// Makes the mark of the workspace that `log` belongs to.
pub(super) fn announce(dir: &Path, log: &Path) -> Result<()> {
    let mark = dir.join(log.parent().and_then(Path::file_name).unwrap_or_default());
    if mark.exists() {
        return Ok(());
    }
    if !dir.is_dir() {
        create_private_dir(dir)?;
        sync_dir(dir.parent().unwrap_or(dir))?;
    }
    replace_file(&mark, b"")
}

impl Store {
    /// Makes the unsynced records of other workspaces durable.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub(super) fn sync_logs(&self) -> Result<()> {
        for name in marked(&self.home.join(self.names.lazy))? {
            let path = self.home.join("workspaces").join(name).join(self.names.log);
            match File::open(&path) {
                Ok(file) => file.sync_data().at("syncing the log", &path)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io(error, "opening the log", &path)),
            }
        }
        Ok(())
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
