//! The checkpoints of one workspace: reading them, finding one, knowing the newest.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::checkpoint::catalog::all::{All, Listing};
use crate::checkpoint::catalog::commits::Commits;
use crate::checkpoint::catalog::recent::Recent;
use crate::checkpoint::history::journal::{Journal, Line, Place};
use crate::checkpoint::history::operations::History;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::state::State;
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{Code, Result};
use crate::model::change::{ChangeSource, Changes, Why};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::cost::Cost;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::policy::{Durability, Policy};
use crate::store::{Batch, BatchStats, Landing, Log, Store};
use crate::sys::clock::boot_id;
use crate::sys::fs::lock::{FileLock, Held, Mode};
use crate::worktree::Warm;
use crate::worktree::stamps::Stamps;

/// How long an operation waits for a lock that somebody else holds.
pub const LOCK_WAIT: Duration = Duration::from_secs(60);

/// A process that ends leaves a log of fewer bytes to the next one: reading it takes less than a millisecond.
const MUCH: u64 = 256 << 10;

/// One checkpoint, as its commit says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub id: ObjectId,
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    pub record: Arc<Record>,
    /// The ref that keeps it (for a typed one: its run's branch).
    pub name: Arc<str>,
}

/// The checkpoints of one workspace, and everything that acts on them.
pub struct Timeline {
    pub(super) home: Home,
    pub(super) workspace: Workspace,
    pub(super) store: Store,
    pub(super) policy: Policy,
    pub(super) stamps: Option<Stamps>,
    /// Whether what is known is newer than the stamps file.
    pub(super) unsaved: bool,
    /// Whether what was captured is kept in memory, for changes to be applied to.
    pub(super) keeps_warm: bool,
    /// The workspace as it was captured last; `stamps` then holds everything but the known paths.
    pub(super) warm: Option<Warm>,
    /// What changed since `warm`.
    pub(super) dirty: Changes,
    /// Of that, what is looked at again because it was not watched when it was looked at before.
    pub(super) again: BTreeSet<RelPath>,
    pub(super) source: Option<RefCell<Box<dyn ChangeSource>>>,
    /// Whether they were begun for the tree that is warm now.
    pub(super) source_follows: bool,
    /// Since when everything was heard that is in `dirty`, if that was done ahead of a capture.
    pub(super) ahead: Cell<Option<Instant>>,
    /// What the last captures looked at because it had changed, and when (the file system's clock).
    pub(super) touched: VecDeque<(i64, Changes)>,
    /// How many files audits have read again.
    pub(super) audited: u64,
    /// When the last audit began (the file system's clock).
    pub(super) audited_at: Option<i64>,
    /// What the last checkpoint cost.
    pub(super) cost: Option<Cost>,
    pub(super) commits: RefCell<Commits>,
    /// Refs as they were listed, by prefix.
    pub(super) listings: RefCell<BTreeMap<String, Listing>>,
    /// What the listings came to, as long as both of them stand.
    pub(super) all: RefCell<Option<Arc<All>>>,
    pub(super) recent: RefCell<Recent>,
    /// The last holding of the workspace's lock.
    held: RefCell<Held>,
    /// What is not durable elsewhere yet; open as long as nobody else had the lock.
    log: RefCell<Option<Log>>,
    /// The journal, added up as far as it was read.
    history: RefCell<(Place, Arc<History>)>,
    /// Codons that this process has begun, by run: the client that did, and the run's lock.
    pub(super) codons: BTreeMap<String, (u64, FileLock)>,
}

impl Timeline {
    /// Opens the timeline of a workspace; the store is made when it does not exist.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn open(home: &Home, workspace: Workspace, policy: Policy) -> Result<Timeline> {
        let store = Store::open(home.path())?;
        store.recover(&home.workspaces(), &boot_id())?;
        Ok(Timeline {
            home: home.clone(),
            workspace,
            store,
            policy,
            stamps: None,
            unsaved: false,
            keeps_warm: false,
            warm: None,
            dirty: Changes::Everything(Why::FirstLook),
            again: BTreeSet::new(),
            source: None,
            source_follows: false,
            ahead: Cell::default(),
            touched: VecDeque::new(),
            audited: 0,
            audited_at: None,
            cost: None,
            commits: RefCell::default(),
            history: RefCell::default(),
            codons: BTreeMap::new(),
            listings: RefCell::default(),
            all: RefCell::default(),
            recent: RefCell::default(),
            held: RefCell::default(),
            log: RefCell::default(),
        })
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// piton's own directory.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The store, for reading.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// What the last checkpoint that was taken through this timeline cost.
    pub fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// Puts another policy in force.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// The workspace's lock: all writes of refs, journal, state and stamps happen under it.
    pub(super) fn lock(&self, verb: &str) -> Result<FileLock> {
        self.lock_within(verb, LOCK_WAIT)
    }

    /// The lock, if nobody has it now.
    pub(super) fn lock_if_free(&self, verb: &str) -> Result<Option<FileLock>> {
        match self.lock_within(verb, Duration::ZERO) {
            Err(error) if error.code() == Code::StoreLocked => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    fn lock_file(&self) -> PathBuf {
        self.workspace.dir.join("lock")
    }

    fn lock_within(&self, verb: &str, wait: Duration) -> Result<FileLock> {
        let lock = FileLock::acquire(&self.lock_file(), Mode::Exclusive, verb, wait)?;
        if !lock.follows(&self.held.borrow()) {
            // Somebody else may have moved refs since.
            self.listings.borrow_mut().clear();
            *self.log.borrow_mut() = None;
        }
        *self.held.borrow_mut() = lock.held();
        Ok(lock)
    }

    /// Where what commits say is kept.
    pub(super) fn commits_file(&self) -> PathBuf {
        self.workspace.dir.join("commits")
    }

    /// Writes the objects of a checkpoint and moves its ref, under the workspace lock.
    pub(super) fn land(
        &self,
        batch: Batch<'_>,
        name: &str,
        expect: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<BatchStats> {
        self.forget_moved();
        let synced = self.policy.durability == Durability::Power;
        let stats = self.with_log(|log| batch.land(&self.store, Landing { log, name, expect, new, synced }))?;
        self.note_ref(name, Some(new));
        Ok(stats)
    }

    /// Makes durable what is not yet, under the workspace lock.
    pub(super) fn flush(&self) -> Result<()> {
        self.with_log(|log| self.store.flush(log))
    }

    /// Makes durable what is not yet, if there is much of it.
    pub(super) fn flush_much(&self) -> Result<()> {
        self.with_log(|log| if log.length() >= MUCH { self.store.flush(log) } else { Ok(()) })
    }

    fn with_log<T>(&self, work: impl FnOnce(&mut Log) -> Result<T>) -> Result<T> {
        let mut log = self.log.borrow_mut();
        let open = match log.take().filter(Log::is_current) {
            Some(open) => open,
            None => Log::open(&self.workspace.dir.join("log"))?,
        };
        work(log.insert(open))
    }

    /// Deletes a ref, under the workspace lock. What brings it back after a power cut is dealt with before.
    /// Its number is kept, so that no later checkpoint takes it.
    pub(super) fn drop_ref(&self, name: &str, expect: ObjectId) -> Result<()> {
        self.keep_number(name)?;
        self.flush()?;
        self.forget_moved();
        self.store.delete_ref(name, expect)?;
        self.note_ref(name, None);
        Ok(())
    }

    /// The workspace's journal, added up.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn history(&self) -> Result<Arc<History>> {
        let (place, history) = &mut *self.history.borrow_mut();
        let contents = Journal::in_dir(&self.workspace.dir).read_on(place)?;
        if contents.damaged > 0 {
            tracing::warn!(lines = contents.damaged, "the journal has damaged lines, which are passed over");
        }
        if contents.from == 0 {
            *history = Arc::default();
        }
        if !contents.lines.is_empty() {
            Arc::make_mut(history).extend(contents.lines);
        }
        Ok(Arc::clone(history))
    }

    /// Appends to the journal, under the workspace lock.
    ///
    /// # Errors
    /// Returns the errors of the lock and the journal.
    pub fn note(&self, lines: &[Line]) -> Result<()> {
        let _lock = self.lock("noting an effect")?;
        Journal::in_dir(&self.workspace.dir).append(lines)
    }

    /// The state file.
    pub fn state(&self) -> State {
        State::load(&self.workspace.dir)
    }

    /// Changes the state file under the workspace lock.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing.
    pub fn change_state(&self, change: impl FnOnce(&mut State)) -> Result<()> {
        let _lock = self.lock("changing the state")?;
        let mut state = self.state();
        change(&mut state);
        state.save(&self.workspace.dir)
    }

    pub(super) fn leaf_prefix(&self) -> String {
        format!("refs/piton/{}/", self.workspace.id)
    }

    pub(super) fn branch_prefix(&self) -> String {
        format!("refs/heads/{}/", self.workspace.id)
    }

    /// The newest checkpoint that `unchanged` is measured by: of this run, base captures left out.
    pub(super) fn newest_of_run<'c>(&self, all: &'c [Checkpoint], run: &str) -> Option<&'c Checkpoint> {
        let counts = |record: &Record| record.run == run && record.kind != CheckpointKind::Turn && record.is_whole();
        all.iter().rev().find(|checkpoint| counts(&checkpoint.record))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A checkpoint made up for pure tests.
    pub fn checkpoint(ordinal: u64, kind: CheckpointKind, run: &str) -> Checkpoint {
        let id = ObjectId::of(crate::model::id::ObjectKind::Blob, &ordinal.to_le_bytes()).unwrap();
        let record = Record {
            kind,
            ordinal,
            workspace: "w".into(),
            run: run.into(),
            turn: None,
            codon_id: None,
            codon_name: None,
            reason: "r".into(),
            time: "2026-01-01T00:00:00.000Z".into(),
            duration_ms: None,
            effects: vec![],
            files: 0,
            bytes: 0,
            skipped: 0,
            flags: vec![],
            pinned: false,
        };
        Checkpoint { id, tree: ObjectId::EMPTY_TREE, parents: vec![], record: Arc::new(record), name: "".into() }
    }
}
