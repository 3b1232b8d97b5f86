//! The catalog of one workspace: its checkpoints, and the caches of them.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::checkpoint::Checkpoint;
use super::commits::CommitCache;
use super::layers::LayerCache;
use super::refs::RefCache;
use super::trees::RecentTrees;
use crate::checkpoint::history::journal::Journal;
use crate::checkpoint::history::operations::History;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::identity;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::read_position::ReadPosition;
use crate::checkpoint::records::state::WorkspaceState;
use crate::checkpoint::records::window_log::WindowLog;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::repository::states_log::StateLine;
use crate::error::{Code, Result};
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::model::policy::{Backup, Policy};
use crate::model::repository::RepositoryState;
use crate::store::{Log, Store};
use crate::sys::clock::boot_id;
use crate::sys::fs::lock::Held;
use crate::sys::interrupt::Interrupt;
use crate::sys::progress::WorkControl;
use crate::worktree::repository_marks::StandingMark;
use crate::worktree::repository_state::RepositoryPlace;

/// All checkpoints, and the faults of unreadable refs.
#[derive(Clone, Default)]
pub struct AllCheckpoints {
    /// Ordered by number, the oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// One sentence for each ref that cannot be read.
    pub broken: Vec<String>,
    /// The highest number in the name of an unreadable ref: it still counts as used.
    pub(super) unread: u64,
}

/// The checkpoints of one workspace for reading. Every writer is a method of
/// `Locked` (`checkpoint/locked`).
pub struct Catalog {
    pub(crate) home: Home,
    pub(crate) workspace: Workspace,
    pub(crate) store: Store,
    /// The workspace's policy as of the last reload.
    pub(crate) policy: Policy,
    /// The facts of commits that were read before.
    pub(super) commits: RefCell<CommitCache>,
    /// The last listing of each prefix of refs.
    pub(super) refs: RefCell<RefCache>,
    /// The checkpoints of the listed refs, as long as those listings hold.
    pub(super) all: RefCell<Option<Arc<AllCheckpoints>>>,
    /// Tree objects that were read lately.
    pub(super) trees: RefCell<RecentTrees>,
    /// The highest place in the sequence, and the highest number, that were given through this catalog.
    pub(super) given: Cell<(u64, u64)>,
    /// The last step that was given through it.
    pub(super) given_step: Cell<Number>,
    /// Bytes that checkpoints stored through this catalog, and that are not noted yet.
    pub(crate) stored: Cell<u64>,
    /// The journal, added up as far as it was read.
    history: RefCell<(ReadPosition, Arc<History>)>,
    /// The log of the actions at work.
    pub(crate) windows: RefCell<WindowLog>,
    /// The last holding of the workspace's lock.
    held: RefCell<Held>,
    /// True if another process may have held the lock between the last two holdings here.
    pub(crate) is_news: Cell<bool>,
    /// The store of private files, once it was needed.
    pub(super) local: OnceCell<Store>,
    /// Its log in this workspace.
    pub(super) local_log: RefCell<Option<Log>>,
    /// The state of a repository that was kept last.
    pub(crate) recent_state: RefCell<Option<RecentState>>,
    /// The state of the repository that the last checkpoints have found, until it is written.
    pub(crate) pending_state: RefCell<Option<PendingState>>,
    /// The number of the newest state of a repository when all were counted last.
    pub(crate) states_counted: Cell<u64>,
    /// The moment until which no look at the repository is tried.
    pub(crate) rests_until: Cell<Option<Instant>>,
    /// The repository as it stood when the last line about it was written or read.
    pub(crate) standing: RefCell<Option<StandingRepository>>,
    /// The private layers that were read.
    pub(super) layers: RefCell<LayerCache>,
    /// The log of checkpoints that are not durable elsewhere yet. It stays open as long as no other process had the
    /// lock.
    log: RefCell<Option<Log>>,
    /// True if a person waits for this process: a restore that is stopped in the middle stays open then, so that
    /// `restore --continue` and `--abort` end it. Else it ends where it was stopped.
    pub(crate) is_attended: bool,
}

/// A state of a repository, and where it is kept.
pub(crate) struct RecentState {
    /// Its commit in the store of private files.
    pub(crate) commit: ObjectId,
    pub(crate) state: Arc<RepositoryState>,
    /// The blob of its index.
    pub(crate) index: Option<ObjectId>,
}

/// A repository that may stand as it was, so that a look is cheap.
pub(crate) struct StandingRepository {
    pub(crate) place: RepositoryPlace,
    pub(crate) mark: StandingMark,
    /// The line about it.
    pub(crate) line: StateLine,
    /// The checkpoints that were taken after a cheap look alone.
    pub(crate) unproved: Vec<u64>,
}

/// A repository that was read for some checkpoints, and that is not written yet.
pub(crate) struct PendingState {
    pub(crate) place: RepositoryPlace,
    pub(crate) state: Arc<RepositoryState>,
    /// The mark of its files; `None` if one of them was from just now.
    pub(crate) mark: Option<ObjectId>,
    /// The mark by which it is seen that it stands so.
    pub(crate) standing: Option<StandingMark>,
    /// The places of the checkpoints in the sequence of the workspace.
    pub(crate) checkpoints: Vec<u64>,
}

impl Catalog {
    /// Opens the catalog of a workspace; the store is made when it does not exist.
    pub(crate) fn open(home: &Home, workspace: Workspace, policy: Policy) -> Result<Catalog> {
        // A home that is there has been tagged already; `piton store status` follows a changed setting.
        if !home.path().join("store.git").exists()
            && let Err(error) = home.tag(policy.backup == Backup::Skip)
        {
            tracing::warn!(%error, "could not mark the store so that backup tools skip it");
        }
        let is_new = !home.path().join("store.git").exists();
        let store = Store::open(home.path())?;
        if is_new {
            // Now, because its epoch is part of what captures remember.
            Store::open_local(home.path())?;
        }
        // Before anything is read: after a power cut refs and objects may be missing until the logs are applied.
        store.recover(&home.workspaces(), &boot_id())?;
        Ok(Catalog::over(home, workspace, policy, store))
    }

    /// Makes the catalog of a workspace over an open store, whose logs are applied.
    pub(crate) fn over(home: &Home, workspace: Workspace, policy: Policy, store: Store) -> Catalog {
        Catalog {
            windows: RefCell::new(WindowLog::in_dir(&workspace.dir)),
            home: home.clone(),
            workspace,
            store,
            policy,
            commits: RefCell::default(),
            refs: RefCell::default(),
            all: RefCell::default(),
            trees: RefCell::default(),
            given: Cell::default(),
            given_step: Cell::default(),
            stored: Cell::default(),
            history: RefCell::default(),
            held: RefCell::default(),
            is_news: Cell::default(),
            local: OnceCell::new(),
            local_log: RefCell::default(),
            recent_state: RefCell::default(),
            pending_state: RefCell::default(),
            states_counted: Cell::default(),
            rests_until: Cell::default(),
            standing: RefCell::default(),
            layers: RefCell::default(),
            log: RefCell::default(),
            is_attended: false,
        }
    }

    /// Returns the control of work that `control` may stop, and that is reported where the store's is.
    pub(crate) fn work<'w>(&'w self, control: Interrupt<'w>) -> WorkControl<'w> {
        WorkControl { interrupt: control, progress: self.store.progress() }
    }

    /// Takes the workspace's lock.
    pub(crate) fn acquire(&self, verb: &str, wait: Duration) -> Result<WorkspaceLock> {
        let lock = WorkspaceLock::acquire(&self.workspace.dir, verb, wait)?;
        self.is_news.set(!lock.follows(&self.held.borrow()));
        if self.is_news.get() {
            lock.require_place()?;
            identity::refuse_adopted(&self.workspace)?;
            // Another process may have moved refs since.
            self.refs.borrow_mut().clear();
            *self.standing.borrow_mut() = None;
            *self.log.borrow_mut() = None;
            if let Err(error) = self.renew_layers() {
                tracing::warn!(%error, "a killed process left an unfinished private layer");
            }
            if let Err(error) = self.store.complete(&self.workspace.dir.join("log")) {
                // Only the killed process's own checkpoint waits for it, and nobody was told of that one.
                tracing::warn!(%error, "a killed process left an unfinished checkpoint");
            }
        }
        self.trim_layers();
        *self.held.borrow_mut() = lock.held();
        Ok(lock)
    }

    /// Takes the workspace's lock if it is free now.
    pub(crate) fn acquire_if_free(&self, verb: &str) -> Result<Option<WorkspaceLock>> {
        match self.acquire(verb, Duration::ZERO) {
            Err(error) if error.code() == Code::StoreLocked => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Works on the log, which is opened if it is not yet.
    pub(crate) fn with_log<T>(&self, _lock: &WorkspaceLock, work: impl FnOnce(&mut Log) -> Result<T>) -> Result<T> {
        let mut log = self.log.borrow_mut();
        // A log of another length was written through another handle: it is opened anew.
        let open = match log.take().filter(Log::is_current) {
            Some(open) => open,
            None => Log::open(&self.workspace.dir.join("log"))?,
        };
        work(log.insert(open))
    }

    /// Makes the checkpoints durable that this process has appended to the logs unsynced.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub(crate) fn sync_late(&self) -> Result<()> {
        let logs = [&self.log, &self.local_log];
        logs.iter().try_for_each(|log| log.borrow().as_ref().map_or(Ok(()), Log::sync_late))
    }

    /// Returns the workspace's journal, added up.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn history(&self) -> Result<Arc<History>> {
        let (position, history) = &mut *self.history.borrow_mut();
        let contents = Journal::in_dir(&self.workspace.dir).read_on(position)?;
        if contents.damaged > 0 || contents.odd_tail {
            tracing::warn!(lines = contents.damaged, "the journal has damaged lines, which are ignored");
        }
        // The journal was read from its beginning, because it is another file now.
        if contents.from == 0 {
            *history = Arc::default();
        }
        if !contents.lines.is_empty() || contents.damaged > 0 || contents.odd_tail {
            Arc::make_mut(history).extend(contents);
        }
        Ok(Arc::clone(history))
    }

    /// Reads the state file.
    pub fn state(&self) -> WorkspaceState {
        WorkspaceState::load(&self.workspace.dir)
    }

    /// Returns the file in which commits of run branches are kept.
    pub(super) fn commits_file(&self) -> PathBuf {
        self.workspace.dir.join("commits")
    }

    /// Returns the prefix of the workspace's checkpoints.
    pub(crate) fn leaf_prefix(&self) -> String {
        format!("refs/piton/{}/", self.workspace.id)
    }

    /// Returns the prefix of the workspace's branches.
    pub(crate) fn branch_prefix(&self) -> String {
        format!("refs/heads/{}/", self.workspace.id)
    }
}
