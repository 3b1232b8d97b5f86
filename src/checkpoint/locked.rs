//! The guard of a workspace. Every write of a ref, the log, a number, the state or the journal is a method of it.
//!
//! It holds the workspace's lock for its life. A function that needs the lock takes the guard, so that the compiler holds the order:
//! workspace before store.

use std::io::Write;

use super::capture::capturer::Capturer;
use super::catalog::numbers::number_in;
use super::catalog::open::{AllCheckpoints, Catalog};
use super::history::journal::{Journal, Line};
use super::records::lock::WorkspaceLock;
use super::records::state::WorkspaceState;
use super::runs::at_work::Codons;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::store::{Batch, BatchStats, Landing};
use crate::sys::fs::durable::open_private;

/// The bytes of a short log. A process that ends leaves one to the next process, which reads it in less than a
/// millisecond.
const SHORT_LOG: u64 = 256 << 10;

/// The rooms of a timeline while its workspace's lock is held.
pub(crate) struct Locked<'t> {
    pub(crate) catalog: &'t mut Catalog,
    pub(crate) capturer: &'t mut Capturer,
    pub(crate) codons: &'t mut Codons,
    /// The proof that the workspace's lock is held.
    pub(crate) lock: WorkspaceLock,
}

impl Locked<'_> {
    /// Writes the objects of a checkpoint and moves its ref. Without `synced` it survives a power cut a moment later.
    pub(crate) fn land(
        &self,
        batch: Batch<'_>,
        name: &str,
        expect: Option<ObjectId>,
        new: ObjectId,
        synced: bool,
    ) -> Result<BatchStats> {
        self.catalog.forget_moved();
        let store = &self.catalog.store;
        let stats =
            self.catalog.with_log(&self.lock, |log| batch.land(store, Landing { log, name, expect, new, synced }))?;
        self.catalog.note_ref(name, Some(new));
        self.catalog.stored.set(self.catalog.stored.get() + stats.bytes);
        Ok(stats)
    }

    /// Makes the log's checkpoints durable elsewhere, and empties the log.
    pub(crate) fn flush(&self) -> Result<()> {
        self.catalog.flush_local(0)?;
        self.catalog.with_log(&self.lock, |log| self.catalog.store.flush(log))
    }

    /// Makes the log's checkpoints durable elsewhere, unless the log is short.
    pub(crate) fn flush_long(&self) -> Result<()> {
        self.catalog.flush_local(SHORT_LOG)?;
        let store = &self.catalog.store;
        self.catalog
            .with_log(&self.lock, |log| if log.length() >= SHORT_LOG { store.flush(log) } else { log.sync_late() })
    }

    /// Deletes a ref that is at a commit.
    pub(crate) fn drop_ref(&self, name: &str, expect: ObjectId) -> Result<()> {
        match self.drop_refs(&[(name.to_owned(), expect)])?.is_empty() {
            true => Err(Error::new(Code::Conflict, format!("`{name}` was moved by another process")).hint("try again")),
            false => Ok(()),
        }
    }

    /// Deletes refs, each of which is at a commit, and returns the names of those that are gone. The log is flushed first,
    /// or a power cut could bring them back. Their numbers are kept, so that no later checkpoint takes one.
    pub(crate) fn drop_refs(&self, refs: &[(String, ObjectId)]) -> Result<Vec<String>> {
        // Durable before the refs are gone: a number must never be used again.
        self.keep_numbers(refs.iter().filter_map(|(name, _)| number_in(name)).max())?;
        self.flush()?;
        // Before the refs change: afterwards another process's change would look like this one.
        self.catalog.forget_moved();
        let gone = self.catalog.store.delete_refs(refs)?;
        self.catalog.note_gone(&gone);
        Ok(gone)
    }

    /// Appends to the journal.
    pub(crate) fn append(&self, lines: &[Line]) -> Result<()> {
        Journal::in_dir(&self.catalog.workspace.dir).append(lines, &self.lock)
    }

    /// Changes the state file.
    pub(crate) fn change_state(&self, change: impl FnOnce(&mut WorkspaceState)) -> Result<()> {
        let mut state = self.catalog.state();
        change(&mut state);
        state.save(&self.catalog.workspace.dir, &self.lock)
    }

    /// Keeps the numbers of leaves that are about to be dropped, durably; `highest` is the highest of them.
    fn keep_numbers(&self, highest: Option<u64>) -> Result<()> {
        let mut state = self.catalog.state();
        let Some(highest) = highest.filter(|number| *number >= state.next_ordinal) else { return Ok(()) };
        // As high as it can be, so that the next drops need not write it again.
        let all = self.catalog.all()?;
        state.next_number = self.catalog.next_number(&all);
        state.next_ordinal = self.catalog.next_ordinal(&all).max(highest.saturating_add(1));
        state.save(&self.catalog.workspace.dir, &self.lock)
    }

    /// Notes the highest number given so far, for when the checkpoints are lost, and the bytes that they stored.
    pub(crate) fn note_numbers(&self, all: &AllCheckpoints) -> Result<()> {
        let (highest, noted) = (self.catalog.next_ordinal(all) - 1, self.catalog.noted());
        if noted.highest >= highest {
            return Ok(());
        }
        let number = self.catalog.next_number(all) - 1;
        let stored = noted.stored.saturating_add(self.catalog.stored.get());
        let path = self.catalog.workspace.dir.join("ordinal");
        // Written as wide as any numbers, so that they cover the old ones.
        open_private(&path)
            .and_then(|mut file| file.write_all(format!("{highest:20} {stored:20} {number:20}\n").as_bytes()))
            .at("noting the number", &path)?;
        self.catalog.stored.set(0);
        Ok(())
    }
}
