//! Temporary files that killed processes leave behind and nothing names.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::repository::Store;
use crate::error::{Code, IoContext, Result};
use crate::sys::fs::lock::{FileLock, Mode};

/// The age from which on temporary files outside of the object directories belong to no writer any more.
const OLD: Duration = Duration::from_hours(1);

impl Store {
    /// Removes temporary objects and packs of killed writers, and returns their number. Does nothing while another
    /// process writes.
    ///
    /// # Errors
    /// When the directories cannot be listed, or a file cannot be removed.
    pub fn sweep(&self) -> Result<u64> {
        let objects = self.git_dir.join("objects");
        let mut found = listed(&objects, &|name| name.starts_with("tmp_"))?;
        found.extend(listed(&objects.join("pack"), &|name| name.starts_with("tmp_"))?);
        let aside = |name: &str| name.contains(".tmp-");
        let mut old = listed(&self.home, &aside)?;
        old.extend(listed(&self.git_dir, &aside)?);
        old.retain(|path| is_old(path));
        if found.is_empty() && old.is_empty() {
            return Ok(0);
        }
        // Writers hold the lock shared: with it held alone, every temporary object is a dead writer's.
        let lock = FileLock::acquire(&self.home.join("store.lock"), Mode::Exclusive, "sweeping", Duration::ZERO);
        let _lock = match lock {
            Ok(lock) => lock,
            Err(error) if error.code() == Code::StoreLocked => return Ok(0),
            Err(error) => return Err(error),
        };
        let mut removed = 0;
        for path in found.into_iter().chain(old) {
            let outcome = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            match outcome {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).at("removing what a killed process left", &path),
            }
        }
        tracing::info!(removed, "removed temporary files of killed processes");
        Ok(removed)
    }
}

fn listed(dir: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).at("listing", dir)? {
        let entry = entry.at("listing", dir)?;
        if wanted(&entry.file_name().to_string_lossy()) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

fn is_old(path: &Path) -> bool {
    // A file that cannot be looked at, or has a time in the future, is left alone.
    let modified = path.symlink_metadata().and_then(|facts| facts.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > OLD))
}
