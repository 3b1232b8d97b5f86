//! The places of checkpoints in the sequence of their workspace, and the numbers by which people name them. None is used twice,
//! whether its checkpoint is kept or was dropped. Every checkpoint has a place. Those that lists show have a number too, in the same
//! order. A step has the number of its turn's checkpoint and one of its own, and a base capture has none.
//!
//! The checkpoints themselves have the highest number. Three other sources cover a loss of checkpoints. The state file
//! keeps, durably, the number of a dropped newest one. The file `ordinal` keeps the highest one given, without a sync.
//! The catalog remembers the numbers that it has given itself.

use std::path::Path;

use super::open::{AllCheckpoints, Catalog};
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::number::Number;

/// The content of the file `ordinal`: numbers that are noted without a sync.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Noted {
    /// The highest place of a checkpoint in the sequence.
    pub(crate) highest: u64,
    /// Bytes that checkpoints have stored, in all the time of the workspace.
    pub(crate) stored: u64,
    /// The highest number of a checkpoint; `None` in a file from before steps.
    pub(crate) number: Option<u64>,
}

impl Noted {
    /// Reads what was noted in the records of a workspace; nothing where that cannot be read.
    pub(crate) fn read(dir: &Path) -> Noted {
        let text = std::fs::read_to_string(dir.join("ordinal")).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
        let (highest, stored) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Noted { highest, stored, number: numbers.next() }
    }
}

impl Noted {
    /// Returns the highest number of a checkpoint. Until steps that was its place in the sequence.
    pub(crate) fn highest_number(self) -> u64 {
        self.number.unwrap_or(self.highest)
    }
}

/// Reads the place in the sequence off the name of a leaf.
pub(crate) fn number_in(name: &str) -> Option<u64> {
    name.rsplit('/').next().and_then(|number| number.parse().ok())
}

impl Catalog {
    /// Returns the place of the next checkpoint in the sequence.
    pub(crate) fn next_ordinal(&self, all: &AllCheckpoints) -> u64 {
        let newest = all.checkpoints.last().map_or(0, |checkpoint| checkpoint.record.ordinal());
        let highest = newest.max(all.unread).max(self.given.get().0).max(self.noted().highest);
        self.state().next_ordinal.max(highest.saturating_add(1))
    }

    /// Returns the number of the next checkpoint that lists show by itself.
    pub(crate) fn next_number(&self, all: &AllCheckpoints) -> u64 {
        let (mut highest, noted) = (self.given.get().1, self.noted());
        for checkpoint in all.checkpoints.iter().rev() {
            match checkpoint.record.kind() {
                CheckpointKind::Turn if checkpoint.record.number.is_none() => {}
                // The checkpoint of its turn may be gone.
                CheckpointKind::Step => highest = highest.max(checkpoint.record.number.main),
                // All older ones have smaller numbers.
                _ => {
                    highest = highest.max(checkpoint.record.number.main);
                    break;
                }
            }
        }
        // The number of one that cannot be read is at most its place in the sequence.
        let highest = highest.max(noted.highest_number()).max(all.unread);
        self.state().least_number().max(highest.saturating_add(1))
    }

    /// Returns the number of the next step below a checkpoint.
    pub(crate) fn number_of_step(&self, all: &AllCheckpoints, main: u64) -> Number {
        let numbers = all.checkpoints.iter().rev().map(|checkpoint| checkpoint.record.number);
        let later = numbers.take_while(|number| number.step > 0 || number.is_none() || number.main > main);
        let steps = later.filter(|number| number.main == main).map(|number| number.step);
        let given = Some(self.given_step.get()).filter(|given| given.main == main).map(|given| given.step);
        Number { main, step: steps.chain(given).max().unwrap_or(0).saturating_add(1) }
    }

    /// Remembers what was used: a checkpoint may be lost before its number is noted on disk.
    pub(crate) fn give(&self, ordinal: u64, number: Number) {
        let (last, main) = self.given.get();
        self.given.set((ordinal.max(last), number.main.max(main)));
        if number.step > 0 {
            self.given_step.set(number);
        }
    }

    /// Returns the place of the newest checkpoint in the sequence; 0 when there is none.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn newest_ordinal(&self) -> Result<u64> {
        let all = self.all()?;
        Ok(self.next_ordinal(&all) - 1)
    }

    /// Returns the place in the sequence of the first checkpoint from a number on; `None` if there is none.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn place_of(&self, number: Number) -> Result<Option<u64>> {
        let all = self.all()?;
        let from = all.checkpoints.iter().find(|one| !one.record.number.is_none() && one.record.number >= number);
        Ok(from.map(|one| one.record.ordinal()))
    }

    /// Returns what was noted.
    pub(crate) fn noted(&self) -> Noted {
        Noted::read(&self.workspace.dir)
    }
}
