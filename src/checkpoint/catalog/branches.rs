//! The branches of runs: what they hold, and where a run stands.
//!
//! A run's checkpoints are a chain on `<run>`; after a rollback it goes on as `<run>.2`, `<run>.3`, …. A branch belongs to the
//! run whose checkpoint its tip is, so that a run that calls itself `a.2` and the second timeline of `a` keep apart.

use std::collections::HashSet;
use std::sync::Arc;

use super::all::All;
use super::commits::Said;
use crate::checkpoint::records::state::{Detached, State};
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::Record;
use crate::model::id::ObjectId;
use crate::store::RefEntry;

/// From how many commits on that had to be read from the store they are kept at once, not only in idle time.
const MANY: usize = 64;

impl Timeline {
    /// Reads all checkpoints; refs that cannot be read are named.
    pub(in crate::checkpoint) fn read_all(&self) -> Result<All> {
        let epoch = self.store.epoch()?;
        self.commits.borrow_mut().load(&self.commits_file(), &epoch)?;
        let mut all = Vec::new();
        let mut broken = Vec::new();
        let mut fault = |name: &str, error: &Error| broken.push(format!("{name}: {}", error.text()));
        for leaf in self.refs(&self.leaf_prefix())? {
            match tip_of(&leaf).and_then(|id| self.read(id, &leaf.name.as_str().into())) {
                Ok(checkpoint) => all.push(checkpoint),
                Err(error) => {
                    // Its name is taken all the same: the next checkpoint needs another number.
                    super::number::number_in(&leaf.name).into_iter().for_each(|number| self.use_ordinal(number));
                    fault(&leaf.name, &error);
                }
            }
        }
        let mut tips = Vec::new();
        for branch in self.refs(&self.branch_prefix())? {
            let name: Arc<str> = branch.name.as_str().into();
            match tip_of(&branch).and_then(|id| self.tip(id, &name)) {
                Ok(tip) => tips.push(tip),
                Err(error) => fault(&branch.name, &error),
            }
        }
        // Where timelines share checkpoints, the one that ended first made them.
        tips.sort_by_key(|tip| tip.record.ordinal);
        // As many as the file told of, mostly.
        let many = self.commits.borrow().len();
        let mut claimed = HashSet::with_capacity(many);
        all.reserve(many);
        for tip in tips {
            let name = Arc::clone(&tip.name);
            if let Err(error) = self.chain(tip, &mut claimed, &mut all) {
                fault(&name, &error);
            }
        }
        all.sort_by_cached_key(|checkpoint| checkpoint.record.ordinal);
        all.dedup_by_key(|checkpoint| checkpoint.id);
        if self.commits.borrow().unsaved() >= MANY {
            self.keep_commits_if_free(&epoch);
        }
        Ok(All { checkpoints: all, broken })
    }

    /// The next process is spared the reading; if it cannot be, nothing is lost.
    fn keep_commits_if_free(&self, epoch: &str) {
        let kept = self.lock_if_free("keeping what commits say").and_then(|lock| match lock {
            Some(_lock) => self.commits.borrow_mut().save(&self.commits_file(), epoch),
            None => Ok(()),
        });
        if let Err(error) = kept {
            tracing::debug!(%error, "what commits say is not kept");
        }
    }

    /// Keeps what commits of run branches say, under the workspace lock.
    pub(in crate::checkpoint) fn keep_commits(&self) -> Result<()> {
        if self.commits.borrow().unsaved() == 0 {
            return Ok(());
        }
        let epoch = self.store.epoch()?;
        self.commits.borrow_mut().save(&self.commits_file(), &epoch)
    }

    /// A branch's tip, if the store still has it.
    fn tip(&self, id: ObjectId, name: &Arc<str>) -> Result<Checkpoint> {
        if !self.store.has(&id)? {
            return Err(Error::new(Code::StoreDamaged, format!("commit {id} is missing from the store")));
        }
        self.read(id, name)
    }

    /// Follows first parents from a branch's tip, up to what another branch has claimed.
    fn chain(&self, tip: Checkpoint, claimed: &mut HashSet<ObjectId>, all: &mut Vec<Checkpoint>) -> Result<()> {
        let name = Arc::clone(&tip.name);
        let mut next = Some(tip);
        while let Some(checkpoint) = next {
            if !checkpoint.record.kind.is_typed() || !claimed.insert(checkpoint.id) {
                return Ok(());
            }
            let parent = checkpoint.parents.first().copied();
            all.push(checkpoint);
            next = parent.map(|parent| self.read(parent, &name)).transpose()?;
        }
        Ok(())
    }

    fn said(&self, id: ObjectId) -> Result<Said> {
        if let Some(said) = self.commits.borrow().get(&id) {
            return Ok(said.clone());
        }
        let commit = self.store.read_commit(&id)?;
        let record = Record::parse(&commit.message)
            .ok_or_else(|| Error::new(Code::NotACheckpoint, format!("commit {} was not made by piton", id.short())))?;
        let said = Said { tree: commit.tree, parents: commit.parents, record: Arc::new(record) };
        self.commits.borrow_mut().put(id, said.clone());
        Ok(said)
    }

    /// The checkpoint that a commit is; `name` is the ref that keeps it.
    pub(in crate::checkpoint) fn read(&self, id: ObjectId, name: &Arc<str>) -> Result<Checkpoint> {
        self.read_of(id, name, &self.workspace.id)
    }

    /// A checkpoint that must be of the workspace with this id.
    pub(in crate::checkpoint) fn read_of(&self, id: ObjectId, name: &Arc<str>, workspace: &str) -> Result<Checkpoint> {
        let Said { tree, parents, record } = self.said(id)?;
        if record.workspace != workspace {
            return Err(Error::new(Code::OtherWorkspace, format!("checkpoint {} is of another workspace", id.short())));
        }
        Ok(Checkpoint { id, tree, parents, record, name: Arc::clone(name) })
    }

    /// The tree of a checkpoint.
    pub(in crate::checkpoint) fn tree_of(&self, id: &ObjectId) -> Result<ObjectId> {
        let known = self.commits.borrow().get(id).map(|said| said.tree);
        known.map_or_else(|| Ok(self.store.read_commit(id)?.tree), Ok)
    }

    /// The typed checkpoints from `from` back to the root, the newest first: `from` itself, if it is one, or what it was taken on.
    pub(in crate::checkpoint) fn thread(&self, from: Option<ObjectId>) -> Result<Vec<Checkpoint>> {
        let (mut thread, name) = (Vec::new(), Arc::from(""));
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

    /// The branch on which a run's next typed checkpoint goes, and its parent.
    pub(in crate::checkpoint) fn run_tip(&self, run: &str) -> Result<(String, Option<ObjectId>)> {
        let refs = self.refs(&self.branch_prefix())?;
        let state = self.state();
        // Once its branch is there, a run is not detached any more, whatever the state file says.
        if let Some(detached) = state.detached.get(run).filter(|detached| find(&refs, &detached.branch).is_none()) {
            return Ok((detached.branch.clone(), Some(detached.from)));
        }
        let mut newest = None;
        for name in self.branch_names(run) {
            let Some(entry) = find(&refs, &name) else { break };
            // A branch whose tip is lost stays as it is: the run goes on upon the next one.
            let Ok(tip) = tip_of(entry) else { continue };
            let is_there = self.store.has(&tip)?;
            if is_there && self.said(tip).is_ok_and(|said| said.record.run == run) {
                newest = Some((name, Some(tip)));
            }
        }
        Ok(newest.unwrap_or_else(|| (self.free_branch(run, &refs, &state), None)))
    }

    /// The names of a run's branches, in the order in which they come to be.
    fn branch_names(&self, run: &str) -> impl Iterator<Item = String> + use<> {
        let first = format!("{}{run}", self.branch_prefix());
        let later = first.clone();
        std::iter::once(first).chain((2u32..).map(move |n| format!("{later}.{n}")))
    }

    /// The first name that nobody has, or is about to have.
    fn free_branch(&self, run: &str, refs: &[RefEntry], state: &State) -> String {
        let promised = |name: &str| state.detached.iter().any(|(other, next)| other != run && next.branch == name);
        let taken = |name: &String| find(refs, name).is_some() || promised(name);
        self.branch_names(run).find(|name| !taken(name)).unwrap_or_default()
    }

    /// The name of the branch on which a run's next typed checkpoint goes, without `refs/heads/`.
    ///
    /// # Errors
    /// Returns the errors of listing refs.
    pub fn branch_of(&self, run: &str) -> Result<String> {
        Ok(short(&self.run_tip(run)?.0).to_owned())
    }

    /// Has a run's next typed checkpoint open a new branch from `from`, under the workspace lock. Its old branch stays. The operation
    /// that is at work may have done it already, before it was cut off.
    pub(in crate::checkpoint) fn detach(&self, run: &str, from: ObjectId) -> Result<()> {
        let refs = self.refs(&self.branch_prefix())?;
        let mut state = self.state();
        let op = self.history()?.interrupted.as_ref().map(|begin| begin.op.clone());
        let old = state.detached.get(run).filter(|old| find(&refs, &old.branch).is_none()).cloned();
        if op.is_some() && old.as_ref().is_some_and(|old| old.op == op && old.from == from) {
            return Ok(());
        }
        let tracked = self.run_state(run)?.tracked;
        let new = Detached { op, tracked, ..Detached::new(self.free_branch(run, &refs, &state), from) };
        let new = match old {
            Some(old) => new.after(old),
            None => new,
        };
        state.detached.insert(run.to_owned(), new);
        state.save(&self.workspace.dir)
    }

    /// Takes it back, if nothing was recorded since: the run goes on where it was before. Returns the patterns that it had there,
    /// if they were noted.
    pub(in crate::checkpoint) fn reattach(&self, run: &str, from: ObjectId) -> Result<Option<Vec<String>>> {
        let mut state = self.state();
        let Some(detached) = state.detached.get_mut(run).filter(|detached| detached.from == from) else {
            return Ok(None);
        };
        let tracked = detached.tracked.take();
        match detached.before.pop() {
            Some(left) => (detached.from, detached.op, detached.tracked) = (left.from, left.op, left.tracked),
            None => _ = state.detached.remove(run),
        }
        state.save(&self.workspace.dir)?;
        Ok(tracked)
    }
}

/// A branch's name as it is shown.
pub(in crate::checkpoint) fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

fn find<'r>(refs: &'r [RefEntry], name: &str) -> Option<&'r RefEntry> {
    refs.binary_search_by(|entry| entry.name.as_str().cmp(name)).ok().map(|at| &refs[at])
}

pub(in crate::checkpoint) fn tip_of(entry: &RefEntry) -> Result<ObjectId> {
    entry.target.clone().map_err(|what| Error::new(Code::StoreDamaged, format!("a broken ref: {what}")))
}
