//! All checkpoints of a workspace, as its refs name them. They are listed once, and again only when another process has
//! moved a ref.

use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::commits::{CommitCache, CommitFacts};
use super::lazy_record::LazyRecord;
use super::open::{AllCheckpoints, Catalog};
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::store::RefEntry;

/// The number of loose refs of one workspace from which on they are packed.
pub(crate) const MANY_REFS: usize = 256;

/// The number of refs that are packed at once: some ten milliseconds.
const PACKED_AT_ONCE: usize = 512;

impl Catalog {
    /// Returns the refs whose names begin with `prefix`. An earlier listing holds as long as nobody else had the lock
    /// and the directories are unchanged. An ordinary git that writes refs changes these directories.
    pub(crate) fn refs(&self, prefix: &str) -> Result<Vec<RefEntry>> {
        Ok(self.listed(prefix)?.to_vec())
    }

    /// As [`Catalog::refs`], without a copy.
    pub(super) fn listed(&self, prefix: &str) -> Result<Arc<Vec<RefEntry>>> {
        let mut refs = self.refs.borrow_mut();
        if let Some(entries) = refs.standing(prefix) {
            return Ok(Arc::clone(entries));
        }
        self.all.take();
        let (entries, marks) = self.store.refs_marked(prefix)?;
        Ok(refs.put(prefix, entries, marks))
    }

    /// Returns true if no other process has moved such refs since they were listed.
    fn stands(&self, prefix: &str) -> bool {
        self.refs.borrow().standing(prefix).is_some()
    }

    /// Forgets listings that another process has made stale. Must run before our own ref write, which would hide the
    /// other one.
    pub(crate) fn forget_moved(&self) {
        self.refs.borrow_mut().forget_moved();
    }

    /// Notes that a ref was written, or deleted.
    pub(crate) fn note_ref(&self, name: &str, target: Option<ObjectId>) {
        self.all.take();
        self.refs.borrow_mut().note(self.store.git_dir(), name, target);
    }

    /// Packs the refs of checkpoints that stand in files of their own, once there are `many`. A few at a time, so that the
    /// lock is held for a moment: returns false if some are left.
    ///
    /// # Errors
    /// As [`Store::pack_refs`](crate::store::Store::pack_refs).
    pub(crate) fn pack_refs(&self, many: usize, _lock: &WorkspaceLock) -> Result<bool> {
        let prefix = self.leaf_prefix();
        if self.store.loose_refs(&prefix, many) < many {
            return Ok(true);
        }
        // A listing from before another process's write must not pass for one from after it.
        self.forget_moved();
        let packed = self.store.pack_refs(std::slice::from_ref(&prefix), PACKED_AT_ONCE);
        self.refs.borrow_mut().note_packed(self.store.git_dir(), &prefix);
        Ok(packed? < PACKED_AT_ONCE)
    }

    /// Notes that refs were deleted.
    pub(crate) fn note_gone(&self, names: &[String]) {
        self.all.take();
        self.refs.borrow_mut().note_gone(self.store.git_dir(), names);
    }

    /// Returns all checkpoints. Costs only a few `stat` calls if no ref has moved.
    ///
    /// # Errors
    /// When the store cannot be listed. Single broken refs are reported, not fatal.
    pub fn all(&self) -> Result<Arc<AllCheckpoints>> {
        let known = self.all.borrow().clone();
        match known.filter(|_| self.stands(&self.leaf_prefix()) && self.stands(&self.branch_prefix())) {
            Some(all) => Ok(all),
            None => {
                let all = Arc::new(self.read_all()?);
                *self.all.borrow_mut() = Some(Arc::clone(&all));
                Ok(all)
            }
        }
    }

    /// Forgets all commits and refs that were read, after a loss of objects.
    pub(crate) fn forget_commits(&self) {
        *self.all.borrow_mut() = None;
        self.refs.borrow_mut().clear();
        *self.commits.borrow_mut() = CommitCache::default();
    }

    /// Adds just recorded checkpoints, oldest first, to those known before them.
    pub(crate) fn add(&self, mut all: Arc<AllCheckpoints>, newest: &[&Checkpoint]) {
        for newest in newest {
            let Checkpoint { id, tree, parents, record, .. } = Checkpoint::clone(newest);
            self.commits.borrow_mut().put(id, CommitFacts { tree, parents, record });
            Arc::make_mut(&mut all).checkpoints.push(Checkpoint::clone(newest));
        }
        *self.all.borrow_mut() = Some(all);
    }

    /// Returns the checkpoints that may hold what an action of a turn is about to destroy: the workspace's newest, if
    /// `later` ones count, and the turn's own. A checkpoint that retention has dropped protects nothing.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn protecting(&self, slot: Option<ObjectId>, later: bool) -> Result<Vec<Checkpoint>> {
        let all = self.all()?;
        let newest = all.newest_whole().filter(|_| later);
        // A base capture stays only until the next one; the numbered checkpoint before it mostly holds the same.
        let is_base = |one: &&Checkpoint| one.record.kind() == CheckpointKind::Turn;
        let numbered = || all.checkpoints.iter().rev().find(|one| one.record.is_whole() && !is_base(one));
        let before = newest.filter(is_base).and_then(|_| numbered());
        let own = all.checkpoints.iter().rev().find(|checkpoint| Some(checkpoint.id) == slot);
        let own = own.filter(|own| newest.is_none_or(|newest| newest.id != own.id));
        let own = own.filter(|own| before.is_none_or(|before| before.id != own.id));
        Ok(before.into_iter().chain(newest).chain(own).cloned().collect())
    }
}

impl AllCheckpoints {
    /// Returns the newest checkpoint that saw the whole workspace.
    pub(crate) fn newest_whole(&self) -> Option<&Checkpoint> {
        self.checkpoints.iter().rev().find(|checkpoint| checkpoint.record.is_whole())
    }

    /// Returns the newest checkpoint of a run, base captures left out: `unchanged` compares with it.
    pub(crate) fn newest_of_run(&self, run: &str) -> Option<&Checkpoint> {
        let counts =
            |record: &LazyRecord| record.run() == run && record.kind() != CheckpointKind::Turn && record.is_whole();
        self.checkpoints.iter().rev().find(|checkpoint| counts(&checkpoint.record))
    }
}
