//! The numbers of checkpoints. None is used twice, whether its checkpoint is kept or was dropped.
//!
//! The checkpoints themselves have the highest number. Three other sources cover a loss of checkpoints. The state file
//! keeps, durably, the number of a dropped newest one. The file `ordinal` keeps the highest one given, without a sync.
//! The catalog remembers the numbers that it has given itself.

use std::path::Path;

use super::open::{AllCheckpoints, Catalog};
use crate::error::Result;

/// The content of the file `ordinal`: numbers that are noted without a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The highest number of a checkpoint.
    pub(crate) highest: u64,
    /// Bytes that checkpoints have stored, in all the time of the workspace.
    pub(crate) stored: u64,
}

impl Noted {
    /// Reads what was noted in the records of a workspace; nothing where that cannot be read.
    pub(crate) fn read(dir: &Path) -> Noted {
        let text = std::fs::read_to_string(dir.join("ordinal")).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
        Noted { highest: numbers.next().unwrap_or(0), stored: numbers.next().unwrap_or(0) }
    }
}

/// Reads the number in the name of a leaf.
pub(crate) fn number_in(name: &str) -> Option<u64> {
    name.rsplit('/').next().and_then(|number| number.parse().ok())
}

impl Catalog {
    /// Returns the number of the next checkpoint.
    pub(crate) fn next_ordinal(&self, all: &AllCheckpoints) -> u64 {
        let newest = all.checkpoints.last().map_or(0, |checkpoint| checkpoint.record.ordinal());
        let highest = newest.max(all.unread).max(self.given.get()).max(self.noted().highest);
        self.state().next_ordinal.max(highest.saturating_add(1))
    }

    /// Remembers a used number: its checkpoint may be lost before the number is noted on disk.
    pub(crate) fn give(&self, ordinal: u64) {
        self.given.set(ordinal.max(self.given.get()));
    }

    /// Returns the number of the newest checkpoint; 0 when there is none.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn newest_ordinal(&self) -> Result<u64> {
        let all = self.all()?;
        Ok(self.next_ordinal(&all) - 1)
    }

    /// Returns the numbers that were noted.
    pub(crate) fn noted(&self) -> Noted {
        Noted::read(&self.workspace.dir)
    }
}
