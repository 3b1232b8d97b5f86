//! The codons at work, and the runs that are open.
//!
//! A codon runs only while a process holds its run's lock, which the kernel frees with that process. In the same way a
//! run is open only while a session of one of its clients has set the run's mark.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::run::{Run, Running, dir};
use crate::checkpoint::records::marks::{AtWork, at_work};
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::lock::{FileLock, Mode};

/// The longest wait for another process that only checks for a running codon.
const LOOKING: Duration = Duration::from_secs(1);

/// The codons that this process has begun, by run.
#[derive(Default)]
pub(crate) struct Codons(BTreeMap<String, CodonAtWork>);

/// A codon that this process has begun.
struct CodonAtWork {
    /// The client that began it.
    client: u64,
    /// The run's lock, held until the codon ends.
    _lock: FileLock,
}

impl Codons {
    /// Returns the client whose codon of the run is at work here.
    pub(super) fn client(&self, run: &str) -> Option<u64> {
        self.0.get(run).map(|codon| codon.client)
    }

    /// Takes the lock of a run, for a codon that a client begins.
    pub(super) fn begin(&mut self, workspace: &Path, run: &str, client: u64) -> Result<()> {
        let lock = FileLock::acquire(&lock_file(workspace, run), Mode::Exclusive, "a codon", LOOKING)?;
        self.0.insert(run.to_owned(), CodonAtWork { client, _lock: lock });
        Ok(())
    }

    /// Lets go of the lock of a run.
    pub(super) fn end(&mut self, run: &str) {
        self.0.remove(run);
    }

    /// Returns the running codon of a run, if a process really holds it.
    pub(crate) fn running(&self, workspace: &Path, run: &str) -> Result<Option<Running>> {
        let Some(running) = Run::load(workspace, run)?.and_then(|state| state.running) else { return Ok(None) };
        if self.0.contains_key(run) {
            return Ok(Some(running));
        }
        match FileLock::acquire(&lock_file(workspace, run), Mode::Shared, "looking", Duration::ZERO) {
            Ok(_free) => Ok(None),
            Err(error) if error.code() == Code::StoreLocked => Ok(Some(running)),
            Err(error) => Err(error),
        }
    }

    /// Refuses while a codon of the run runs.
    pub(crate) fn refuse_running(&self, workspace: &Path, run: &str) -> Result<()> {
        let Some(running) = self.running(workspace, run)? else { return Ok(()) };
        let text = format!("codon `{}` of run `{run}` is running", running.id);
        Err(Error::new(Code::CodonRunning, text)
            .hint("end it first with `codon.complete`, `codon.fail` or `codon.skip`"))
    }
}

/// Looks for the clients that have a run open.
pub(super) fn clients_of(workspace: &Path, run: &str) -> AtWork {
    at_work(&open_mark(workspace, run))
}

/// Returns the ids of the runs that are open: a client has one open, or a codon of it is at work.
///
/// # Errors
/// When the files of the runs cannot be listed.
pub(crate) fn open_runs(workspace: &Path) -> Result<BTreeSet<String>> {
    let path = dir(workspace);
    let listing = match std::fs::read_dir(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        listing => listing.at("listing", &path)?,
    };
    let mut open = BTreeSet::new();
    for entry in listing {
        let name = entry.at("listing", &path)?.file_name().to_string_lossy().into_owned();
        let run = match (name.strip_prefix('.'), name.strip_suffix(".lock")) {
            (Some(mark), _) => mark.strip_suffix(".open").filter(|run| clients_of(workspace, run) == AtWork::Now),
            (None, run) => run.filter(|run| is_locked(workspace, run)),
        };
        open.extend(run.map(str::to_owned));
    }
    Ok(open)
}

/// Returns true if a process holds a run's lock, or may hold it: nobody can tell without trying.
fn is_locked(workspace: &Path, run: &str) -> bool {
    FileLock::acquire(&lock_file(workspace, run), Mode::Shared, "looking", Duration::ZERO).is_err()
}

/// Returns the mark of an open run, which each client that has it open sets. No run's id begins with a dot.
pub(crate) fn open_mark(workspace: &Path, run: &str) -> PathBuf {
    dir(workspace).join(format!(".{run}.open"))
}

/// Returns the lock file of a run. No run's id ends in `.lock`.
fn lock_file(workspace: &Path, run: &str) -> PathBuf {
    dir(workspace).join(format!("{run}.lock"))
}
