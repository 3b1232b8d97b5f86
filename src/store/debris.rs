//! Temporary files that killed processes leave behind and nothing names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::repository::Store;
use crate::error::{Code, IoContext, Result};
use crate::sys::fs::aside::remove_abandoned;
use crate::sys::fs::lock::{FileLock, Mode};

impl Store {
    /// Removes temporary files of killed writers, and returns their number. Objects and packs stay while another process
    /// writes some.
    ///
    /// # Errors
    /// When the directories cannot be listed, or a file cannot be removed.
    pub fn sweep(&self) -> Result<u64> {
        let objects = self.git_dir.join("objects");
        let mut found = listed(&objects, &|name| name.starts_with("tmp_"))?;
        found.extend(listed(&objects.join("pack"), &|name| name.starts_with("tmp_"))?);
        let mut removed = remove_abandoned(&self.git_dir)?;
        if found.is_empty() {
            return Ok(removed);
        }
        // Writers hold the lock shared: with it held alone, every temporary object is a dead writer's.
        let lock = FileLock::acquire(&self.home.join("store.lock"), Mode::Exclusive, "sweeping", Duration::ZERO);
        let _lock = match lock {
            Ok(lock) => lock,
            Err(error) if error.code() == Code::StoreLocked => return Ok(removed),
            Err(error) => return Err(error),
        };
        for path in found {
            match std::fs::remove_file(&path) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).at("removing the files that a killed process left", &path),
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
