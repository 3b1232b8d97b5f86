//! The numbers of checkpoints: none is given twice while its checkpoint is kept, nor after it was dropped.
//!
//! The checkpoints themselves tell the highest number. Beside it counts what their loss would take away: the state file keeps the
//! number of a newest one that was dropped, durably; the file `ordinal` the highest one given, without waiting for the disk; and
//! memory what this process has used.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::{IoContext, Result};

/// The last number that this process has given in each workspace's directory.
static USED: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());

/// Reads the number in the name of a leaf.
pub(in crate::checkpoint) fn number_in(name: &str) -> Option<u64> {
    name.rsplit('/').next().and_then(|number| number.parse().ok())
}

impl Timeline {
    /// The number of the next checkpoint.
    ///
    /// A capture beside a longer one takes numbers that the longer one has not seen: what this process has used counts too.
    pub(in crate::checkpoint) fn next_ordinal(&self, all: &[Checkpoint]) -> u64 {
        let newest = all.iter().map(|checkpoint| checkpoint.record.ordinal).max().unwrap_or(0);
        let used = USED.lock().unwrap_or_else(PoisonError::into_inner).get(&self.workspace.dir).copied().unwrap_or(0);
        self.state().next_ordinal.max(newest.max(used).max(self.highest_noted()).saturating_add(1))
    }

    /// Notes that a number is taken.
    pub(in crate::checkpoint) fn use_ordinal(&self, ordinal: u64) {
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        let last = used.entry(self.workspace.dir.clone()).or_default();
        *last = ordinal.max(*last);
    }

    /// Notes the highest number given so far, for when the checkpoints are lost.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(in crate::checkpoint) fn note_numbers(&self, all: &[Checkpoint]) -> Result<()> {
        let highest = self.next_ordinal(all) - 1;
        if self.highest_noted() >= highest {
            return Ok(());
        }
        let path = self.workspace.dir.join("ordinal");
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        // As wide as any number: what was there before is covered.
        file.and_then(|mut file| file.write_all(format!("{highest:20}\n").as_bytes())).at("noting the number", &path)
    }

    fn highest_noted(&self) -> u64 {
        let text = std::fs::read_to_string(self.workspace.dir.join("ordinal")).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }

    /// Keeps the number of a leaf that is about to be dropped, durably.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(in crate::checkpoint) fn keep_number(&self, name: &str) -> Result<()> {
        let number = number_in(name);
        let mut state = self.state();
        if let Some(number) = number.filter(|number| *number >= state.next_ordinal) {
            state.next_ordinal = number + 1;
            state.save(&self.workspace.dir)?;
        }
        Ok(())
    }
}
