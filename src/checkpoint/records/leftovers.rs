//! Leftovers of killed processes beside the store: temporary files, directories of fetches, records of removed workspaces.
//!
//! The next process that writes in a workspace removes those of the workspace and of piton's home; a round of maintenance
//! removes those of all workspaces. *Invariant:* nothing that a living process uses goes: a temporary file has its writer's
//! lock, a fetch holds `fetch.lock`.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::home::Home;
use crate::error::{Code, IoContext, Result};
use crate::sys::fs::aside::remove_abandoned;
use crate::sys::fs::lock::{FileLock, Mode};

/// The beginning of the names of directories into which git fetches.
pub const FETCH: &str = "fetch-";

/// The beginning of the name of a directory whose files are being removed.
pub const REMOVED: &str = ".removed-";

/// The directories of a workspace's records in which files are replaced.
const INNER: [&str; 4] = ["", "runs", "view.git", super::repositories::NAME];

/// Removes what killed processes have left in piton's home and in all workspaces, outside of the store.
///
/// # Errors
/// When a directory cannot be listed, or a leftover not removed.
pub fn sweep_all(home: &Home) -> Result<()> {
    sweep_home(home.path())?;
    // Without workspaces there is nothing.
    let listing = std::fs::read_dir(home.workspaces()).into_iter().flatten().flatten();
    listing.map(|entry| entry.path()).filter(|path| path.is_dir()).try_for_each(|path| sweep_workspace(&path))
}

/// Removes what killed processes have left in piton's home, outside of the store and of workspaces.
///
/// # Errors
/// When a directory cannot be listed, or a leftover not removed.
pub fn sweep_home(home: &Path) -> Result<()> {
    remove_abandoned(home)?;
    remove_abandoned(&home.join("sessions"))?;
    sweep_removed(home)
}

/// Removes what killed removals of workspaces have left.
///
/// # Errors
/// As [`sweep_home`].
pub fn sweep_removed(home: &Path) -> Result<()> {
    for entry in std::fs::read_dir(home).at("listing", home)? {
        let entry = entry.at("listing", home)?;
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            clear(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes a directory that another process may be removing too.
///
/// # Errors
/// Returns the errors of removing.
pub fn clear(dir: &Path) -> Result<()> {
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.at("removing", dir),
    }
}

/// Removes what killed processes have left among the records of a workspace, the directory `dir`.
///
/// # Errors
/// As [`sweep_home`].
pub fn sweep_workspace(dir: &Path) -> Result<()> {
    for inner in INNER {
        remove_abandoned(&dir.join(inner))?;
    }
    if !has_fetches(dir)? {
        return Ok(());
    }
    match FileLock::acquire(&dir.join("fetch.lock"), Mode::Exclusive, "removing leftovers", Duration::ZERO) {
        Err(error) if error.code() == Code::StoreLocked => Ok(()), // a fetch is at work
        lock => sweep_fetches(dir, &lock?),
    }
}

fn has_fetches(dir: &Path) -> Result<bool> {
    match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        listing => {
            let mut names = listing.at("listing", dir)?.flatten().map(|entry| (entry.file_name(), entry.path()));
            Ok(names.any(|(name, path)| name.to_string_lossy().starts_with(FETCH) && path.is_dir()))
        }
    }
}

/// Removes what killed fetches left. The git of a killed piton may still write there: then it stays for the next time.
///
/// # Errors
/// When the directory cannot be listed.
pub fn sweep_fetches(dir: &Path, _fetch: &FileLock) -> Result<()> {
    for entry in std::fs::read_dir(dir).at("listing", dir)? {
        let entry = entry.at("listing", dir)?;
        if entry.file_name().to_string_lossy().starts_with(FETCH)
            && entry.path().is_dir()
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            tracing::warn!(%error, "could not remove the files of a killed fetch yet");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_go_and_what_is_in_use_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, dir) = (scratch.path(), scratch.path().join("workspaces/w"));
        for inner in ["workspaces/w/runs", "workspaces/w/fetch-1-1.git/objects", "sessions", ".removed-x/runs"] {
            std::fs::create_dir_all(home.join(inner)).unwrap();
        }
        let left = ["usage.tmp-1-1", "sessions/s.tmp-1-1"];
        let of_workspace = ["state.json.tmp-1-1", "runs/r.tmp-1-1"];
        left.iter().for_each(|path| std::fs::write(home.join(path), "torn").unwrap());
        of_workspace.iter().for_each(|path| std::fs::write(dir.join(path), "torn").unwrap());
        std::fs::write(dir.join("state.json"), "{}").unwrap();
        let fetch = FileLock::acquire(&dir.join("fetch.lock"), Mode::Exclusive, "fetching", Duration::ZERO).unwrap();
        sweep_workspace(&dir).unwrap();
        assert!(of_workspace.iter().all(|path| !dir.join(path).exists()));
        assert!(dir.join("fetch-1-1.git").exists() && dir.join("state.json").exists());
        drop(fetch);
        // A process that another test starts holds a copy of the lock until its `exec`.
        let until = std::time::Instant::now() + Duration::from_mins(1);
        while dir.join("fetch-1-1.git").exists() && std::time::Instant::now() < until {
            sweep_workspace(&dir).unwrap();
        }
        assert!(!dir.join("fetch-1-1.git").exists() && dir.join("fetch.lock").exists());
        sweep_home(home).unwrap();
        assert!(left.iter().all(|path| !home.join(path).exists()) && !home.join(".removed-x").exists());
    }
}
