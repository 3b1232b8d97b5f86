//! Does the writes that may be late, and drops the checkpoints that retention does not keep.

use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::dropped::{self, DroppedCheckpoint};
use crate::checkpoint::catalog::retention::{DropReason, plan};
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::state::Detached;
use crate::error::Result;
use crate::store::BOUNDS;
use crate::sys::clock::now_ms;

impl Locked<'_> {
    /// Does the writes that may be late: the stamps, the log, and the drops of retention. Called in idle time.
    pub(crate) fn settle(&mut self) -> Result<()> {
        // While a watcher reports changes, the stamps are written in idle time or at the end: they are large, and only
        // a scan needs them.
        if !self.capturer.is_live() {
            self.save_stamps()?;
        }
        // Before the drops: a ref that a record could bring back must not be deleted.
        self.flush()?;
        self.tidy()?;
        self.catalog.keep_commits(&self.lock)?;
        self.catalog.store.prepare();
        Ok(())
    }

    /// Does the writes that may be late, for a process that is about to end while a client waits: a short log stays.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.save_stamps()?;
        self.flush_long()?;
        self.catalog.keep_commits(&self.lock)?;
        let tidied = self.tidy();
        self.capturer.free_stamps();
        tidied
    }

    /// Writes the stamps if the memory is newer than their file.
    pub(crate) fn save_stamps(&mut self) -> Result<()> {
        self.capturer.save_stamps(&self.catalog.workspace.dir, &self.lock)
    }

    /// Applies retention, and removes leftovers of killed processes.
    fn tidy(&mut self) -> Result<()> {
        let catalog = &*self.catalog;
        let known = catalog.all()?;
        let all = known.checkpoints.as_slice();
        self.note_numbers(&known)?;
        let mut needed = catalog.history()?.needed();
        // A run whose next checkpoint follows one keeps it.
        needed.extend(catalog.state().detached.values().flat_map(Detached::points));
        let going = plan(all, &needed, &catalog.policy.retention);
        let going = going.into_iter().filter_map(|(id, why)| all.iter().find(|one| one.id == id).map(|one| (one, why)));
        let going: Vec<(&Checkpoint, DropReason)> = going.collect();
        let noted: Vec<DroppedCheckpoint> = going.iter().filter_map(|(one, why)| why.noted(one, now_ms())).collect();
        // Before the refs are deleted: a killed process must not leave an unexplained gap.
        if let Err(error) = dropped::note(&catalog.workspace.dir, &noted, &self.lock) {
            // An explanation is lost by that; a full disk must not keep retention from making room.
            tracing::warn!(%error, "which checkpoints were dropped could not be written down");
        }
        for (checkpoint, reason) in going {
            tracing::info!(ordinal = checkpoint.record.ordinal, ?reason, "dropping a checkpoint");
            self.drop_ref(&checkpoint.name, checkpoint.id)?;
        }
        if let Err(error) = catalog.store.sweep() {
            tracing::warn!(%error, "temporary files of killed processes stay");
        }
        if let Err(error) = self.catalog.store.consolidate(BOUNDS) {
            tracing::warn!(%error, "packs could not be consolidated");
        }
        Ok(())
    }
}
