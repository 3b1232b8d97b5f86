//! The numbers of checkpoints: none is given twice while its checkpoint is kept, nor after it was dropped.
//!
//! The checkpoints themselves tell the highest number. Beside it counts what their loss would take away. The state file keeps the
//! number of a newest one that was dropped, durably. The file `ordinal` keeps the highest one given, without waiting for the disk.
//! The catalog remembers what it has given itself.

use super::open::{AllCheckpoints, Catalog};
use crate::error::Result;

/// Reads the number in the name of a leaf.
pub(crate) fn number_in(name: &str) -> Option<u64> {
    name.rsplit('/').next().and_then(|number| number.parse().ok())
}

impl Catalog {
    /// Returns the number of the next checkpoint.
    pub(crate) fn next_ordinal(&self, all: &AllCheckpoints) -> u64 {
        let newest = all.checkpoints.last().map_or(0, |checkpoint| checkpoint.record.ordinal);
        let highest = newest.max(all.unread).max(self.given.get()).max(self.highest_noted());
        self.state().next_ordinal.max(highest.saturating_add(1))
    }

    /// Remembers a number that was given: its checkpoint may be lost before it is noted.
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

    /// Returns the highest number that was noted.
    pub(crate) fn highest_noted(&self) -> u64 {
        let text = std::fs::read_to_string(self.workspace.dir.join("ordinal")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}
