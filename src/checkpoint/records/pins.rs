//! The pins of a workspace: checkpoints that retention never drops.
//!
//! `checkpoint --pin` writes the pin into the checkpoint's own record, which never changes. The file `pins` has the
//! numbers of those that were pinned or unpinned later.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::lock::WorkspaceLock;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::checkpoint::Record;
use crate::sys::fs::durable::replace_file;

/// The pins of a workspace, by the permanent numbers of checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pins {
    /// The ones that were pinned after they were taken.
    pinned: BTreeSet<u64>,
    /// The ones that were taken with a pin and unpinned later.
    unpinned: BTreeSet<u64>,
}

impl Pins {
    /// Reads the pins of the workspace whose records stand in `dir`.
    ///
    /// # Errors
    /// `store-damaged` for a file that is none; I/O errors. Nothing may be dropped then.
    pub fn load(dir: &Path) -> Result<Pins> {
        let path = file_in(dir);
        match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Pins::default()),
            read => serde_json::from_slice(&read.at("reading", &path)?).map_err(|error| {
                Error::new(Code::StoreDamaged, "cannot read the pins of checkpoints")
                    .path(&path)
                    .hint("remove the file and pin the checkpoints again; until then, nothing is dropped")
                    .caused_by(error)
            }),
        }
    }

    /// Writes them, durably.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(crate) fn save(&self, dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Code::Internal, "writing the pins").caused_by(error))?;
        replace_file(&file_in(dir), &text)
    }

    /// Returns true if a checkpoint is pinned.
    pub fn holds(&self, record: &Record) -> bool {
        let n = &record.ordinal;
        self.pinned.contains(n) || (record.pinned && !self.unpinned.contains(n))
    }

    /// Pins a checkpoint or unpins it. Returns false if it is so already.
    pub(crate) fn put(&mut self, record: &Record, pinned: bool) -> bool {
        if self.holds(record) == pinned {
            return false;
        }
        let Pins { pinned: more, unpinned: fewer } = self;
        let (to, from) = if pinned { (more, fewer) } else { (fewer, more) };
        from.remove(&record.ordinal);
        to.insert(record.ordinal)
    }
}

fn file_in(dir: &Path) -> PathBuf {
    dir.join("pins")
}
