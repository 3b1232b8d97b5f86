//! One client's session: its workspace, run and turn. It takes the client's events, and answers each by its own
//! closure.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Engine;
use super::deadlines::Deadlines;
use super::decision::{BaseCapture, Decision, Notice, SessionFacts, WorkspaceFacts};
use super::doors::SessionDoor;
use super::event::{Event, Opening};
use super::job::{Answer, bug, busy};
use super::names::{guard_in_force, recorded};
use super::paused_turns::PausedTurns;
use super::queue::SaveWish;
use super::runs::{OpenRun, SubAgentRun};
use super::state::{SessionState, SharedState};
use super::told::Note;
use super::watcher::WatcherNews;
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::history::interrupted::interrupted;
use crate::checkpoint::history::journal::OperationStart;
use crate::error::{Code, Error, Result};
use crate::model::door::Door;
use crate::settings::Mistake;
use crate::sys::interrupt::Interrupt;
use crate::sys::processes::ProcessId;

/// Numbers the sessions that this process has begun.
static SESSIONS: AtomicU64 = AtomicU64::new(1);

/// The most faults that are remembered.
const MAX_FAULTS: usize = 20;

/// Answers an event or a request. Called once, with the session locked.
pub type Reply<T> = Box<dyn FnOnce(&mut Session, Result<T>) + Send>;

/// Acts on a shared session, if it still exists.
pub type Later = Arc<dyn Fn(Box<dyn FnOnce(&mut Session)>) + Send + Sync>;

/// Receives notices, which answer no request.
pub type Tell = Box<dyn FnMut(Notice) + Send>;

/// The workspace of a session, as far as it is known.
#[derive(Clone, Debug)]
pub enum Root {
    /// The root itself, named by the client or by the command line.
    Known(PathBuf),
    /// The workspace of this directory.
    Around(PathBuf),
    /// The client has to name it.
    Unknown,
}

impl Root {
    /// Returns the root that the command line names, or the one of the process's own directory.
    pub fn of_process(named: Option<PathBuf>) -> Root {
        match named {
            Some(root) => Root::Known(root),
            // A missing directory is reported when it is needed.
            None => std::env::current_dir().map_or(Root::Unknown, Root::Around),
        }
    }
}

/// The session.
pub struct Session {
    /// The workspaces, shared with the process's other sessions.
    pub(super) engine: Arc<Engine>,
    /// The way back to the session's thread, for what workers finish.
    pub(super) later: Later,
    /// Receives the notices, in the order in which they come.
    tell: Tell,
    /// The events that wait for their checkpoints.
    pub(super) deadlines: Deadlines,
    /// Jobs whose ends are waited for.
    pub(super) jobs: usize,
    /// By its real name once it was opened.
    root: Root,
    /// The client's directory, from which its relative paths count.
    cwd: Option<PathBuf>,
    /// The record directory of the session's workspace, when an interrupted restore was found in it.
    interrupted_in: Option<PathBuf>,
    /// True once the workspace was looked at for mistakes and interrupted restores.
    is_inspected: bool,
    /// True once the client was told that the cap cannot be met.
    is_cap_told: bool,
    /// The part that connections of one name share.
    state: SharedState,
    /// The number by which this session and the others of the process are told apart.
    pub(super) number: u64,
    /// The name by which the client calls itself.
    pub(super) client: Option<String>,
    /// The process of the client, as far as it is known.
    pub(super) process: Option<ProcessId>,
    /// The run of the sub-agent that this session is of, where it works in the turn of its agent.
    pub(super) sub_agent: Option<SubAgentRun>,
    /// The runs whose turns end with this connection, unless another one took them over.
    pub(super) held_runs: BTreeSet<String>,
    /// The run whose abandoned turn this connection has taken over, until its client goes on with the turn.
    pub(super) taken_over: Option<String>,
    /// Runs that this session has open: those that it has begun, and those of its codons.
    pub(super) open_runs: BTreeMap<String, OpenRun>,
    /// True if replies reach the model.
    pub(super) reaches_model: bool,
    /// True if the client says of each connection whether its replies reach the model: then all that is for the model is in `notices`.
    pub(super) tells_model: bool,
    /// True if the client waits for answers before it acts.
    pub(super) waits: bool,
    /// True if no other process tells of this session's actions.
    pub(super) is_alone: bool,
    /// True if its requests may not take saved content away for good.
    pub(super) keeps_content: bool,
    /// The turns of a client that reports none.
    pub(super) paused: Option<PausedTurns>,
    /// The door that the client comes through.
    pub(super) door: SessionDoor,
    /// The news of the watcher that were told.
    pub(super) watcher_news: WatcherNews,
    /// True while the base capture waits or is at work.
    pub(super) is_base_running: bool,
    /// True once a base capture was taken.
    pub(super) has_base: bool,
    /// The wish that changes be saved, if the client has it.
    pub(super) saves: Option<SaveWish>,
    /// Errors that belong to no reply.
    faults: Vec<String>,
}

impl Session {
    /// Makes a session before its first event.
    pub fn new(engine: Arc<Engine>, root: Root, later: Later, tell: Tell) -> Session {
        let cwd = if let Root::Around(dir) = &root { Some(dir.clone()) } else { None };
        Session {
            engine,
            later,
            tell,
            deadlines: Deadlines::default(),
            jobs: 0,
            root,
            cwd,
            interrupted_in: None,
            is_inspected: false,
            is_cap_told: false,
            state: Arc::new(Mutex::new(SessionState::unnamed())),
            number: SESSIONS.fetch_add(1, Ordering::Relaxed),
            client: None,
            process: None,
            sub_agent: None,
            held_runs: BTreeSet::new(),
            taken_over: None,
            open_runs: BTreeMap::new(),
            reaches_model: true,
            tells_model: false,
            waits: true,
            is_alone: false,
            keeps_content: false,
            paused: None,
            door: SessionDoor::default(),
            watcher_news: WatcherNews::default(),
            is_base_running: false,
            has_base: false,
            saves: None,
            faults: Vec::new(),
        }
    }

    /// Returns the longest accepted line; read once, before any workspace is known.
    pub fn line_limit(&self) -> usize {
        let settings = crate::settings::load(None, self.engine.home().path(), self.engine.flags());
        settings.map_or(8 << 20, |effective| effective.policy.limits.line_bytes)
    }

    /// Applies edits of the settings since the last event.
    pub fn renew(&mut self) {
        if let Root::Known(root) = &self.root
            && let Some(workspace) = self.engine.opened(root)
        {
            self.follow_settings(&workspace);
            self.tell_cap(&workspace);
            if let Some(reason) = self.watcher_news.next(workspace.worker.watcher()) {
                self.tell(Notice::WatcherDegraded { reason });
            }
        }
    }

    /// Says once that the cap of the store cannot be met, as soon as a round of maintenance has found it.
    fn tell_cap(&mut self, workspace: &OpenWorkspace) {
        if self.is_cap_told {
            return;
        }
        let total = workspace.in_force().policy.retention.total_bytes;
        if let Some(unmet) = self.engine.rounds().unmet_cap(total) {
            self.is_cap_told = true;
            self.tell(Notice::StoreCap(unmet));
        }
    }

    /// Acts upon an event.
    pub fn on(&mut self, event: Event, reply: Reply<Decision>) {
        if !matches!(event, Event::Opened(_)) {
            self.note_event();
        }
        match event {
            Event::Opened(opening) => {
                let opened = self.open(opening);
                let interrupted = opened.as_ref().map(|facts| facts.interrupted.clone()).unwrap_or_default();
                reply(self, opened.map(|facts| Decision::Opened(Box::new(facts))));
                interrupted.into_iter().for_each(|begin| self.tell(Notice::RestoreInterrupted(begin)));
            }
            Event::TurnStarted(start) => self.start_turn(start, reply),
            Event::TurnEnded { turn } => self.end_turn(turn, reply),
            Event::Before(action) => {
                self.follow_turn();
                self.before(action, reply);
            }
            Event::After { call, ended } => {
                // The action has run already. If its workspace cannot be opened, only the notes of a workspace are left out.
                let workspace = self.workspace().ok();
                let notices = self.notices(workspace.as_deref(), Vec::new());
                self.rest_after_action();
                self.end_action(call, ended, Decision::After { notices }, reply);
            }
        }
    }

    /// Notes the door of an event in the session's workspace. The event goes on whether that succeeds or not.
    pub(super) fn note_event(&mut self) {
        let Ok(workspace) = self.workspace() else { return };
        self.door.note(&workspace.workspace.id, &workspace.workspace.dir, self.client.as_deref());
    }

    fn open(&mut self, opening: Opening) -> Result<SessionFacts> {
        match (opening.workspace.clone(), opening.cwd.clone()) {
            (Some(path), _) if !path.is_absolute() => {
                let text = "`workspace` must be an absolute path";
                return Err(Error::new(Code::WorkspaceRefused, text).field("workspace"));
            }
            (Some(path), cwd) => (self.root, self.cwd) = (Root::Known(path), cwd.filter(|cwd| cwd.is_absolute())),
            (None, Some(cwd)) if cwd.is_absolute() => (self.root, self.cwd) = (Root::Around(cwd.clone()), Some(cwd)),
            (None, _) => {}
        }
        self.client = opening.client.as_deref().map(|client| recorded(client, 64)).or(self.client.take());
        (self.reaches_model, self.tells_model) =
            (opening.reaches_model.unwrap_or(true), opening.reaches_model.is_some());
        self.waits = opening.waits.unwrap_or(self.waits);
        self.paused = opening.turn_pause.map(PausedTurns::new).or(self.paused.take());
        self.process = opening.pid.and_then(ProcessId::of).or(self.process.take());
        self.door.is_through(opening.door);
        if let Some(pid) = opening.pid.filter(|_| opening.door == Some(Door::Hook)) {
            self.engine.clients().note(pid);
        }
        let known = opening.session.as_deref().is_some_and(|session| self.continue_as(session, &opening));
        // The git of a client, and a step of a run, come through a door of their own into its session, and name no client.
        if opening.client.is_some() {
            self.state().is_of_person(matches!(opening.door, Some(Door::Shell | Door::Git)));
        }
        let workspace = self.workspace()?;
        self.note_event();
        if self.keeps_connection() {
            self.take_turn_over(&workspace);
            self.end_left_runs(&workspace);
        }
        // For a client that does not wait, the turn's own checkpoint has to come first.
        if !known && self.waits {
            self.capture_base(&workspace);
        }
        if opening.autosave {
            self.autosave(&workspace);
        }
        Ok(self.facts(&workspace))
    }

    fn facts(&self, workspace: &OpenWorkspace) -> SessionFacts {
        let (rules, record) = (workspace.in_force(), &workspace.workspace);
        let interrupted = interrupted_in(&record.dir);
        SessionFacts {
            workspace: WorkspaceFacts { id: record.id.clone(), path: record.path.clone(), scope: record.scope },
            run: self.run_and_turn().0,
            guard: guard_in_force(&rules.policy, &record.dir),
            base: self.base(),
            autosave: self.is_saved(),
            watching: rules.policy.watching,
            watcher: workspace.worker.watcher(),
            line_bytes: rules.policy.limits.line_bytes,
            deadline: rules.policy.deadline,
            interrupted,
            faults: self.faults().iter().chain(&rules.warnings).cloned().collect(),
        }
    }

    /// Gives the worker a job, and calls `then` with its result. If the queue is full, `then` gets that error.
    pub fn queue<T: Send + 'static>(
        &mut self,
        workspace: &OpenWorkspace,
        work: impl FnOnce(&mut Timeline, Interrupt<'_>) -> Result<T> + Send + 'static,
        then: impl FnOnce(&mut Session, Result<T>) + Send + 'static,
    ) {
        // Shared, because a full queue drops the job, and the caller still has to be answered.
        let then: Arc<Mutex<Option<Reply<T>>>> = Arc::new(Mutex::new(Some(Box::new(then))));
        let (later, kept) = (Arc::clone(&self.later), Arc::clone(&then));
        let job = move |timeline: &mut Timeline, control: Interrupt<'_>| -> Answer {
            let done = catch_unwind(AssertUnwindSafe(|| work(timeline, control))).unwrap_or_else(|_| Err(bug()));
            Box::new(move || {
                later(Box::new(move |session| {
                    session.jobs -= 1;
                    go_on(&kept, session, done);
                }));
            })
        };
        match workspace.worker.submit(Box::new(job)) {
            Ok(()) => self.jobs += 1,
            Err(_) => go_on(&then, self, Err(busy())),
        }
    }

    /// Has the worker of the session's own workspace answer a request. `work` is called with the session's run.
    pub fn ask<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Timeline, &str, Interrupt<'_>) -> Result<T> + Send + 'static,
        reply: Reply<T>,
    ) {
        let (run, _) = self.run_and_turn();
        match self.workspace() {
            Ok(workspace) => self.queue(&workspace, move |timeline, control| work(timeline, &run, control), reply),
            Err(error) => reply(self, Err(error)),
        }
    }

    /// Gives the worker a job that no client waits for.
    pub(super) fn quietly(
        &mut self,
        workspace: &OpenWorkspace,
        work: impl FnOnce(&mut Timeline, Interrupt<'_>) -> Result<()> + Send + 'static,
    ) {
        self.queue(workspace, work, |session, done| {
            if let Err(error) = done {
                session.fault(error.text());
                session.tell(Notice::JobFailed { reason: error.text(), kind: None });
            }
        });
    }

    /// Returns the workspace with exactly this root, if anybody has it open.
    pub fn opened(&self, root: &Path) -> Option<Arc<OpenWorkspace>> {
        self.engine.opened(root)
    }

    /// Returns the session's workspace, open.
    ///
    /// # Errors
    /// `workspace-gone`, `workspace-refused`, `bad-path`; errors of the store.
    pub fn workspace(&mut self) -> Result<Arc<OpenWorkspace>> {
        let root = match &self.root {
            Root::Known(root) => root.clone(),
            Root::Around(dir) => self.engine.root_around(dir)?,
            Root::Unknown => {
                let text = "no workspace: the working directory no longer exists, or the client gave none";
                return Err(Error::new(Code::WorkspaceGone, text).hint("say `hello` with `workspace` or `cwd` first"));
            }
        };
        // Kept even if opening fails, so that the next event reports the same workspace.
        self.root = Root::Known(root.clone());
        let open = self.engine.open(&root)?;
        self.root = Root::Known(open.workspace.path.clone());
        // Once per session: each look reads the journal.
        if !std::mem::replace(&mut self.is_inspected, true) {
            if !interrupted_in(&open.workspace.dir).is_empty() {
                self.interrupted_in = Some(open.workspace.dir.clone());
            }
            // Mistakes in the settings from the start are reported too.
            if !open.in_force().warnings.is_empty() {
                self.follow_settings(&open);
            }
        }
        Ok(open)
    }

    /// Applies edits of the settings since the last event.
    pub(super) fn follow_settings(&mut self, workspace: &OpenWorkspace) {
        let followed = match self.engine.renew(workspace) {
            Ok(followed) => followed,
            Err(error) => return self.told_fault(error),
        };
        // `hello` and `status` list them among their warnings until they are corrected.
        followed.mistakes.iter().for_each(|mistake| self.tell(Notice::Fault(mistake.error())));
        let notes = followed.unknown.iter().map(Mistake::note);
        self.keep_notes(Note::others(notes));
        if let Some(read) = followed.read {
            self.tell(Notice::ConfigReloaded { warnings: read.warnings.clone() });
        }
    }

    /// Reads the settings of all open workspaces anew, and returns what was left aside.
    ///
    /// # Errors
    /// `bad-request` for the first mistake.
    pub fn reload(&mut self) -> Result<Vec<String>> {
        self.engine.reload()
    }

    /// Returns the directory of an event by its real name: the one that it names, else the client's, if that is in the workspace.
    /// The workspace's root is taken as it is, even if something else is there now.
    pub(super) fn directory(&self, workspace: &OpenWorkspace, cwd: Option<&Path>) -> PathBuf {
        let root = workspace.workspace.path.clone();
        let real = |dir: PathBuf| if dir == root { dir } else { dir.canonicalize().unwrap_or(dir) };
        match (cwd, &self.cwd) {
            (Some(cwd), _) => real(root.join(cwd)),
            (None, Some(cwd)) => Some(real(cwd.clone())).filter(|cwd| cwd.starts_with(&root)).unwrap_or(root),
            (None, None) => root,
        }
    }

    /// Sends a notice.
    pub fn tell(&mut self, notice: Notice) {
        (self.tell)(notice);
    }

    /// Notes an error that belongs to no reply: each once, and only the newest few.
    pub(super) fn fault(&mut self, text: String) {
        self.faults.retain(|known| *known != text);
        self.faults.truncate(MAX_FAULTS - 1);
        self.faults.insert(0, text);
    }

    /// Reports an error of the input, and remembers it.
    pub fn told_fault(&mut self, error: Error) {
        self.fault(error.text());
        self.tell(Notice::Fault(error));
    }

    /// Returns the errors that belong to no reply.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }

    /// Returns the state of the capture that the session begins with.
    pub fn base(&self) -> BaseCapture {
        match (self.is_base_running, self.has_base) {
            (true, _) => BaseCapture::Running,
            (false, true) => BaseCapture::Ready,
            (false, false) => BaseCapture::None,
        }
    }

    /// Returns true if such a capture was taken.
    pub fn has_base(&self) -> bool {
        self.has_base
    }

    /// Returns the interrupted restores: every reply names them until they are ended.
    pub fn interrupted(&self) -> Vec<OperationStart> {
        self.interrupted_in.as_deref().map(interrupted_in).unwrap_or_default()
    }

    /// Returns true if anything is still waited for.
    pub fn is_pending(&self) -> bool {
        self.jobs > 0 || !self.deadlines.is_empty()
    }

    /// Locks the state that the session's connections share. Other methods of the session lock it too: do not call one
    /// with it.
    pub(super) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the session's run and its open turn.
    pub fn run_and_turn(&self) -> (String, Option<String>) {
        let state = self.state();
        (state.run.clone(), state.turns.current().map(str::to_owned))
    }

    /// Continues the session of a run; `true` when it was known before.
    pub(super) fn go_on_with(&mut self, run: &str) -> bool {
        let (state, known) = self.engine.sessions().get(run);
        self.state = state;
        known
    }
}

fn go_on<T>(then: &Mutex<Option<Reply<T>>>, session: &mut Session, done: Result<T>) {
    let then = then.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(then) = then {
        then(session, done);
    }
}

/// Returns the interrupted restore in the records of a workspace, if there is one.
pub fn interrupted_in(dir: &Path) -> Vec<OperationStart> {
    let begun = interrupted(dir).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot determine whether a restore was interrupted");
        None
    });
    begun.into_iter().collect()
}
