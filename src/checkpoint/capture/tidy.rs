//! Does the writes that may be late, and drops the checkpoints that retention does not keep.

use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::all::MANY_REFS;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::leftovers::{sweep_home, sweep_workspace};
use crate::checkpoint::records::repositories;
use crate::error::Result;
use crate::sys::interrupt::Flow;

impl Timeline {
    /// Does the writes that may be late: the stamps, the log, and the drops of retention. Called in idle time. Many drops
    /// are done for a moment at a time, and `control` may stop them; the next call does the rest.
    ///
    /// # Errors
    /// Returns the errors of the lock, the stamps file and the refs; no checkpoint is lost by them.
    pub fn settle(&mut self, control: &dyn Fn() -> Flow) -> Result<()> {
        self.catalog().sync_late()?;
        self.keep_repository();
        let mut is_done = self.lock("settling")?.settle()?;
        while !is_done && control() == Flow::Continue {
            is_done = self.lock("settling")?.thin_out()?;
        }
        Ok(())
    }

    /// Empties the log, once its checkpoints are durable elsewhere. Called after a longer rest, and at the end.
    ///
    /// # Errors
    /// As [`Timeline::settle`].
    pub fn flush(&mut self) -> Result<()> {
        self.lock("settling")?.flush()
    }

    /// As [`Timeline::settle`], for a process that is about to end while a client waits: a short log stays, and if
    /// another process is running, that process does all of it.
    ///
    /// # Errors
    /// As [`Timeline::settle`].
    pub fn leave(&mut self) -> Result<()> {
        self.catalog().sync_late()?;
        self.keep_repository_at_end();
        self.lock_if_free("settling")?.map_or(Ok(()), |mut locked| locked.leave())
    }
}

impl Locked<'_> {
    /// Does the writes that may be late: the stamps, a long log, and the drops of retention. Called in idle time. Returns
    /// false if checkpoints that are too many are left.
    pub(crate) fn settle(&mut self) -> Result<bool> {
        // While a watcher reports changes, the stamps are written in idle time or at the end: they are large, and only
        // a scan needs them.
        if !self.capturer.is_live() {
            self.save_stamps()?;
        }
        self.flush_long()?;
        let is_done = self.tidy()?;
        self.drop_old_layers()?;
        self.catalog.keep_commits(&self.lock)?;
        self.catalog.prepare();
        Ok(is_done)
    }

    /// Does the writes that may be late, for a process that is about to end while a client waits: a short log stays.
    pub(crate) fn leave(&mut self) -> Result<()> {
        self.save_stamps()?;
        self.flush_long()?;
        self.catalog.keep_commits(&self.lock)?;
        let tidied = self.tidy();
        self.capturer.free_stamps();
        tidied.map(drop)
    }

    /// Writes the stamps if the memory is newer than their file.
    pub(crate) fn save_stamps(&mut self) -> Result<()> {
        self.capturer.save_stamps(&self.catalog.workspace.dir, &self.lock)
    }

    /// Applies the counts of retention, and removes leftovers of killed processes. Returns false if checkpoints that are too
    /// many are left for another time.
    fn tidy(&mut self) -> Result<bool> {
        self.note_numbers(&*self.catalog.all()?)?;
        let is_done = self.thin_out()?;
        self.thin_out_repositories()?;
        if let Err(error) = self.tidy_states() {
            tracing::warn!(%error, "could not remove old states of the repository");
        }
        if let Err(error) = self.sweep() {
            tracing::warn!(%error, "could not remove temporary files of killed processes");
        }
        Ok(is_done)
    }

    /// Removes the kept repositories of checkpoints that are gone.
    fn thin_out_repositories(&self) -> Result<()> {
        let dir = &self.catalog.workspace.dir;
        if repositories::of(dir).is_empty() {
            return Ok(());
        }
        let all = self.catalog.all()?;
        let is_there = |ordinal| all.checkpoints.iter().any(|one| one.record.ordinal() == ordinal);
        repositories::thin_out(dir, &is_there, &self.lock)
    }

    /// Removes what killed processes have left in the store, in piton's home and among the records of this workspace.
    fn sweep(&self) -> Result<()> {
        self.catalog.store.sweep()?;
        sweep_home(self.catalog.store.home())?;
        sweep_workspace(&self.catalog.workspace.dir)
    }

    /// Drops checkpoints that are too many, and packs refs that are many, for a moment. Returns false if some are left.
    pub(crate) fn thin_out(&mut self) -> Result<bool> {
        let is_done = self.drop_surplus()?;
        let is_packed = self.catalog.pack_refs(MANY_REFS, &self.lock).unwrap_or_else(|error| {
            tracing::warn!(%error, "could not pack refs");
            true
        });
        Ok(is_done && is_packed)
    }
}
