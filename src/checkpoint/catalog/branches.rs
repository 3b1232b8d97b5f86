//! The branches of runs: their checkpoints, and the place where each run stands.
//!
//! A run's checkpoints are a chain on `<run>`; after a rollback it continues as `<run>.2`, `<run>.3`, …. A branch
//! belongs to the run whose checkpoint its tip is, so that a run that calls itself `a.2` and the second timeline of `a`
//! keep apart.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use super::checkpoint::Checkpoint;
use super::commits::CommitFacts;
use super::lazy_record::LazyRecord;
use super::numbers::number_in;
use super::open::{AllCheckpoints, Catalog};
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::state::WorkspaceState;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::Record;
use crate::model::id::{IdSet, ObjectId};
use crate::store::{RefEntry, RefName};

/// The number of commits read from the store from which on they are kept at once, not only in idle time.
const MANY: usize = 256;

impl Catalog {
    /// Reads all checkpoints; refs that cannot be read are named.
    pub(crate) fn read_all(&self) -> Result<AllCheckpoints> {
        let epoch = self.store.epoch()?;
        // Only a look-up: a missing one is told where its ref is read.
        let is_there = |id: &ObjectId| self.store.has(id).unwrap_or(false);
        self.commits.borrow_mut().load(&self.commits_file(), &epoch, &is_there)?;
        let mut all = Vec::new();
        let (mut broken, mut unread) = (Vec::new(), 0);
        let mut fault = |name: &str, error: &Error| broken.push(format!("{name}: {}", error.fact()));
        let leaves = self.listed(&self.leaf_prefix())?;
        all.reserve(leaves.len());
        let mut unpacked: Vec<ObjectId> = leaves.iter().filter_map(|leaf| leaf.target.as_ref().ok()).copied().collect();
        self.store.strike_out_packed(&mut unpacked)?;
        let checkpoint = |id: ObjectId, name: &RefName| match unpacked.binary_search(&id) {
            Ok(_) => self.tip(id, name),
            Err(_) => self.read(id, name),
        };
        // Names of equal length are in the order of their numbers already, and what is sorted is sorted fast below.
        let mut by_length: BTreeMap<usize, Vec<&RefEntry>> = BTreeMap::new();
        leaves.iter().for_each(|leaf| by_length.entry(leaf.name.len()).or_default().push(leaf));
        for leaf in by_length.into_values().flatten() {
            match tip_of(leaf).and_then(|id| checkpoint(id, &leaf.name)) {
                Ok(checkpoint) => all.push(checkpoint),
                Err(error) => {
                    // The name of an unreadable ref is still taken: the next checkpoint needs another number.
                    unread = unread.max(number_in(&leaf.name).unwrap_or_default());
                    fault(&leaf.name, &error);
                }
            }
        }
        let mut tips = Vec::new();
        for branch in self.refs(&self.branch_prefix())? {
            match tip_of(&branch).and_then(|id| self.tip(id, &branch.name)) {
                Ok(tip) => tips.push(tip),
                Err(error) => fault(&branch.name, &error),
            }
        }
        // If timelines share checkpoints, they belong to the one that ended first.
        tips.sort_by_key(|tip| tip.record.ordinal());
        let mut claimed = IdSet::default();
        for tip in tips {
            let name = tip.name.clone();
            if let Err(error) = self.chain(tip, &mut claimed, &mut all) {
                fault(&name, &error);
            }
        }
        all.sort_by_key(|checkpoint| checkpoint.record.ordinal());
        all.dedup_by_key(|checkpoint| checkpoint.id);
        let all = AllCheckpoints { checkpoints: all, broken, unread };
        if self.commits.borrow().is_outdated(&epoch, MANY) {
            self.keep_commits_if_free(&all, &epoch);
        }
        Ok(all)
    }

    /// Writes the commits file if the lock is free, so that the next process need not read the commits. A failure loses
    /// nothing.
    fn keep_commits_if_free(&self, all: &AllCheckpoints, epoch: &str) {
        let kept = self.acquire_if_free("caching the commits' data").and_then(|lock| match lock {
            Some(lock) => self.save_commits(all, epoch, &lock),
            None => Ok(()),
        });
        if let Err(error) = kept {
            tracing::debug!(%error, "the commits' data was not cached");
        }
    }

    /// Returns true if many commits were read from the store and are not in the file.
    pub(crate) fn has_unkept_commits(&self) -> bool {
        // Without an epoch nothing was read.
        self.store.epoch().is_ok_and(|epoch| self.commits.borrow().is_outdated(&epoch, MANY))
    }

    /// Writes the facts of commits to their file.
    pub(crate) fn keep_commits(&self, lock: &WorkspaceLock) -> Result<()> {
        let epoch = self.store.epoch()?;
        if !self.commits.borrow().is_outdated(&epoch, 1) {
            return Ok(());
        }
        self.save_commits(&*self.all()?, &epoch, lock)
    }

    fn save_commits(&self, all: &AllCheckpoints, epoch: &str, lock: &WorkspaceLock) -> Result<()> {
        let live = LazyCell::new(|| all.checkpoints.iter().map(|one| one.id).collect::<IdSet>());
        // A loose commit is read each time, so that its damage shows; there are never many.
        let kept = |id: &ObjectId, record: &LazyRecord| record.kind().is_typed() || self.store.is_packed(id);
        let path = self.commits_file();
        let is_live = |id: &ObjectId| live.contains(id);
        self.commits.borrow_mut().save((&path, epoch), (all.checkpoints.len(), &is_live), &kept, lock)
    }

    /// Returns a branch's tip, if the store still has it.
    fn tip(&self, id: ObjectId, name: &RefName) -> Result<Checkpoint> {
        if !self.store.has(&id)? {
            return Err(Error::new(Code::StoreDamaged, format!("commit {id} is missing from the store")));
        }
        self.read(id, name)
    }

    /// Follows first parents from a branch's tip, up to the first commit that another branch has claimed.
    fn chain(&self, tip: Checkpoint, claimed: &mut IdSet, all: &mut Vec<Checkpoint>) -> Result<()> {
        let name = tip.name.clone();
        let mut next = Some(tip);
        while let Some(checkpoint) = next {
            if !checkpoint.record.kind().is_typed() || !claimed.insert(checkpoint.id) {
                return Ok(());
            }
            let parent = checkpoint.parents.first().copied();
            all.push(checkpoint);
            next = parent.map(|parent| self.read(parent, &name)).transpose()?;
        }
        Ok(())
    }

    fn said(&self, id: ObjectId) -> Result<CommitFacts> {
        if let Some(said) = self.commits.borrow().get(&id) {
            return Ok(said);
        }
        let commit = self.store.read_commit(&id)?;
        let record = Record::parse(&commit.message)
            .ok_or_else(|| Error::new(Code::NotACheckpoint, format!("commit {} was not made by piton", id.short())))?;
        let said = CommitFacts { tree: commit.tree, parents: commit.parents, record: record.into() };
        self.commits.borrow_mut().put(id, said.clone());
        Ok(said)
    }

    /// Returns the checkpoint that a commit is; `name` is the ref that keeps it.
    pub(crate) fn read(&self, id: ObjectId, name: &RefName) -> Result<Checkpoint> {
        self.read_of(id, name, &self.workspace.id)
    }

    /// Returns a checkpoint that must be of the workspace with this id.
    pub(crate) fn read_of(&self, id: ObjectId, name: &RefName, workspace: &str) -> Result<Checkpoint> {
        let CommitFacts { tree, parents, record } = self.said(id)?;
        if record.workspace() != workspace {
            return Err(Error::new(Code::OtherWorkspace, format!("checkpoint {} is of another workspace", id.short())));
        }
        Ok(Checkpoint { id, tree, parents, record, name: name.clone() })
    }

    /// Returns the typed checkpoints from `from` back to the root, the newest first: `from` itself, if it is one, or
    /// its parent.
    pub(crate) fn thread(&self, from: Option<ObjectId>) -> Result<Vec<Checkpoint>> {
        let (mut thread, name) = (Vec::new(), RefName::from(""));
        let mut next = from;
        while let Some(id) = next {
            let checkpoint = self.read(id, &name)?;
            next = checkpoint.parents.first().copied();
            if checkpoint.record.kind.is_typed() {
                thread.push(checkpoint);
            }
        }
        Ok(thread)
    }

    /// Returns the branch on which a run's next typed checkpoint goes, and its parent.
    pub(crate) fn run_tip(&self, run: &str) -> Result<(String, Option<ObjectId>)> {
        let refs = self.refs(&self.branch_prefix())?;
        let state = self.state();
        // Once its new branch exists, a run is not detached any more, whatever the state file says.
        if let Some(detached) = state.detached.get(run).filter(|detached| find(&refs, &detached.branch).is_none()) {
            return Ok((detached.branch.clone(), Some(detached.from)));
        }
        let mut newest = None;
        for name in self.branch_names(run) {
            let Some(entry) = find(&refs, &name) else { break };
            // A branch with a lost tip stays as it is: the run continues on the next one.
            let Ok(tip) = tip_of(entry) else { continue };
            let is_there = self.store.has(&tip)?;
            if is_there && self.said(tip).is_ok_and(|said| said.record.run == run) {
                newest = Some((name, Some(tip)));
            }
        }
        Ok(newest.unwrap_or_else(|| (self.free_branch(run, &refs, &state), None)))
    }

    /// Returns the commit that a branch names, for a compare-and-swap.
    pub(crate) fn branch_target(&self, name: &str) -> Result<Option<ObjectId>> {
        let refs = self.refs(&self.branch_prefix())?;
        find(&refs, name).map(tip_of).transpose()
    }

    /// Returns the names of a run's branches, in the order in which they come to be.
    fn branch_names(&self, run: &str) -> impl Iterator<Item = String> + use<> {
        let first = format!("{}{run}", self.branch_prefix());
        let later = first.clone();
        std::iter::once(first).chain((2u32..).map(move |n| format!("{later}.{n}")))
    }

    /// Returns the first branch name that is neither used nor reserved.
    pub(crate) fn free_branch(&self, run: &str, refs: &[RefEntry], state: &WorkspaceState) -> String {
        let promised = |name: &str| state.detached.iter().any(|(other, next)| other != run && next.branch == name);
        let taken = |name: &String| find(refs, name).is_some() || promised(name);
        self.branch_names(run).find(|name| !taken(name)).unwrap_or_default()
    }

    /// Returns the branch that a run stands on, without `refs/heads/`: one that is there, or the one that a rollback has named for what comes
    /// next. `None` for a run without typed checkpoints.
    ///
    /// # Errors
    /// Returns the errors of listing refs.
    pub fn current_branch(&self, run: &str) -> Result<Option<String>> {
        let (name, tip) = self.run_tip(run)?;
        Ok(tip.map(|_| short(&name).to_owned()))
    }

    /// Returns the name of the branch on which a run's next typed checkpoint goes, without `refs/heads/`.
    ///
    /// # Errors
    /// Returns the errors of listing refs.
    pub fn branch_of(&self, run: &str) -> Result<String> {
        Ok(short(&self.run_tip(run)?.0).to_owned())
    }
}

/// Returns a branch's name as it is shown.
pub(crate) fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

/// Returns the ref of a name.
pub(crate) fn find<'r>(refs: &'r [RefEntry], name: &str) -> Option<&'r RefEntry> {
    refs.binary_search_by(|entry| (*entry.name).cmp(name)).ok().map(|at| &refs[at])
}

/// Returns the commit that a branch names.
///
/// # Errors
/// Returns the error of what could not be done.
pub(crate) fn tip_of(entry: &RefEntry) -> Result<ObjectId> {
    entry.target.clone().map_err(|what| Error::new(Code::StoreDamaged, format!("a broken ref: {what}")))
}
