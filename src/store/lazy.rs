//! Marks of workspaces that wrote without waiting (`durability: process`), so that others need not trust them.
//!
//! `lazy/<workspace>` stands, durably, from a workspace's first record that was not waited for until the next start
//! after a power cut. It has two readers. A writer that does wait syncs these workspaces' logs before its own record,
//! since it may share objects with them. And the first start of a boot, finding any, checks every loose object.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, IoContext, Result};
use crate::sys::fs::durable::{create_private_dir, replace_file, sync_dir};

/// The marks that stand: names of workspaces.
pub(super) fn marked(home: &Path) -> Result<Vec<String>> {
    let dir = dir(home);
    let listing = match std::fs::read_dir(&dir) {
        Ok(listing) => listing,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(error, "listing", &dir)),
    };
    let names = listing.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<Result<_, _>>().at("listing", &dir)
}

/// Makes the mark of the workspace that `log` belongs to.
pub(super) fn announce(home: &Path, log: &Path) -> Result<()> {
    let mark = dir(home).join(log.parent().and_then(Path::file_name).unwrap_or_default());
    if mark.exists() {
        return Ok(());
    }
    if !dir(home).is_dir() {
        create_private_dir(&dir(home))?;
        sync_dir(home)?;
    }
    replace_file(&mark, b"")
}

/// Makes the records durable that others did not wait for.
pub(super) fn sync_logs(home: &Path) -> Result<()> {
    for name in marked(home)? {
        let path = home.join("workspaces").join(name).join("log");
        match File::open(&path) {
            Ok(file) => file.sync_data().at("syncing the log", &path)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(error, "opening the log", &path)),
        }
    }
    Ok(())
}

/// Removes all marks.
pub(super) fn forget(home: &Path) -> Result<()> {
    let dir = dir(home);
    match std::fs::remove_dir_all(&dir) {
        Ok(()) => sync_dir(home),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(error, "removing", &dir)),
    }
}

fn dir(home: &Path) -> PathBuf {
    home.join("lazy")
}
