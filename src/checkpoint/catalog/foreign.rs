//! Checkpoints of other machines, as they were fetched: read-only timelines beside the workspace's own.

use std::collections::BTreeMap;

use super::branches::tip_of;
use super::checkpoint::Checkpoint;
use super::open::{AllCheckpoints, Catalog};
use crate::error::{Code, Error, Result};

/// The longest history of a run that is taken over.
pub(crate) const LONGEST: usize = 10_000;

impl Catalog {
    /// Returns the prefix of refs that came from other machines.
    pub(crate) fn foreign_prefix(&self) -> String {
        format!("refs/piton-remotes/{}/", self.workspace.id)
    }

    /// Returns the checkpoints of other machines, by workspace and number, and the faults of unreadable refs.
    ///
    /// # Errors
    /// When refs cannot be listed.
    pub fn foreign(&self) -> Result<AllCheckpoints> {
        let prefix = self.foreign_prefix();
        let (mut all, mut broken) = (BTreeMap::new(), Vec::new());
        for entry in self.refs(&prefix)? {
            let workspace = entry.name[prefix.len()..].split('/').next().unwrap_or_default().to_owned();
            let mut next = tip_of(&entry).map(Some);
            let mut left = LONGEST;
            let name = entry.name.clone();
            while let Ok(Some(id)) = next {
                next = self.read_of(id, &name, &workspace).map(|checkpoint| {
                    let parent = checkpoint.parents.first().copied();
                    let typed = checkpoint.record.kind.is_typed();
                    let is_new = all.insert((workspace.clone(), checkpoint.record.ordinal, id), checkpoint).is_none();
                    left -= 1;
                    parent.filter(|_| typed && is_new && left > 0)
                });
            }
            if let Err(error) = next {
                broken.push(format!("{}: {}", entry.name, error.text()));
            }
        }
        Ok(AllCheckpoints { checkpoints: all.into_values().collect(), broken, unread: 0 })
    }

    /// Returns true if a checkpoint was recorded elsewhere.
    pub fn is_foreign(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.record.workspace != self.workspace.id
    }

    /// Refuses a foreign checkpoint, from which this workspace's own timeline must not continue.
    ///
    /// # Errors
    /// `other-workspace`.
    pub fn refuse_foreign(&self, checkpoint: &Checkpoint) -> Result<()> {
        if !self.is_foreign(checkpoint) {
            return Ok(());
        }
        let text = format!(
            "checkpoint {} was fetched from another machine, so no run can continue from it",
            checkpoint.id.short()
        );
        Err(Error::new(Code::OtherWorkspace, text).hint("you cannot roll back to this checkpoint; restore it instead"))
    }
}
