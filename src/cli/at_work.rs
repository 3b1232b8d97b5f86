//! The processes of piton that have changes saved as long as they live: each has a note in piton's home, by which
//! `piton uninstall --all` finds it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::checkpoint::Home;
use crate::error::{Code, Error, Result};
use crate::sys::clock::now_ms;
use crate::sys::fs::aside::is_aside;
use crate::sys::fs::durable::{create_private_dir, replace_cache, unique_suffix};
use crate::sys::process::ask_to_end;
use crate::sys::processes::ProcessId;

/// The directory of the notes.
const DIR: &str = "at-work";

/// The time that a process may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// The pause between two looks whether it has ended.
const RETRY: Duration = Duration::from_millis(5);

/// A process of piton's.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProcessAtWork {
    process: ProcessId,
    /// The verb that it was called with.
    pub verb: String,
}

/// The note of this process; it is removed when the value is dropped.
pub(super) struct WorkNote(PathBuf);

impl WorkNote {
    /// Notes that this process is at work with a verb. Without the note it works all the same.
    pub(super) fn write(home: &Home, verb: &str) -> Option<WorkNote> {
        let process = ProcessId::of(std::process::id())?;
        let noted = ProcessAtWork { process, verb: verb.to_owned() };
        let dir = home.path().join(DIR);
        let path = dir.join(format!("{}-{}", now_ms(), unique_suffix()));
        let text = serde_json::to_vec(&noted).unwrap_or_default();
        let written = create_private_dir(&dir).and_then(|()| replace_cache(&path, &text));
        if let Err(error) = written {
            tracing::warn!(%error, "could not record this process, so `piton uninstall` will not stop it");
        }
        Some(WorkNote(path))
    }
}

impl Drop for WorkNote {
    fn drop(&mut self) {
        // One that was not written is not there. A note of a process that has ended is passed over.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl ProcessAtWork {
    /// Returns those that live, or may live where that cannot be told from here. Notes of others are removed.
    pub(super) fn all(home: &Home) -> Vec<ProcessAtWork> {
        let entries = std::fs::read_dir(home.path().join(DIR)).into_iter().flatten().flatten();
        let written = entries.filter(|entry| !is_aside(&entry.file_name().to_string_lossy()));
        let mut found: Vec<ProcessAtWork> = written.filter_map(|entry| noted(&entry.path())).collect();
        found.sort_by_key(|at_work| at_work.process.pid);
        found
    }

    /// Returns its number.
    pub(super) fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Has it end, and waits for that.
    ///
    /// # Errors
    /// `permission` where it belongs to another user, or cannot be seen from here; `busy` where it goes on.
    pub(super) fn end(&self) -> Result<()> {
        let what = format!("`piton {}` (pid {})", self.verb, self.pid());
        if self.process.is_alive() != Some(true) {
            return Err(Error::new(
                Code::Permission,
                format!("{what} might be running where this process cannot see it"),
            )
            .hint("end it there"));
        }
        ask_to_end(self.pid().cast_signed()).map_err(|error| error.hint(format!("end {what} yourself")))?;
        let until = Instant::now() + PATIENCE;
        while self.process.is_alive() == Some(true) {
            if Instant::now() > until {
                return Err(Error::new(Code::Busy, format!("{what} was asked to end but is still running")));
            }
            std::thread::sleep(RETRY);
        }
        Ok(())
    }
}

fn noted(path: &Path) -> Option<ProcessAtWork> {
    let read: Option<ProcessAtWork> = std::fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let living = read.filter(|noted| noted.process.is_alive() != Some(false));
    if living.is_none() {
        // It is looked at again the next time.
        let _ = std::fs::remove_file(path);
    }
    living
}
