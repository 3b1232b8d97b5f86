//! From an event to a decision: the workspace it belongs to, the checkpoint that is due, and the worker that takes it
//! (rank 4). Sees no JSON of its clients but the arguments of a tool, no sockets, no terminal.
//!
//! *Invariant:* one worker thread per workspace owns its timeline. *Invariant:* the sender of an event never waits for
//! a worker longer than the event's deadline.

mod actions;
mod autosave;
mod base_capture;
pub mod before;
mod checkouts;
pub mod clients;
mod collision_notes;
pub mod collisions;
pub mod connection;
pub mod deadlines;
pub mod decision;
mod doors;
pub mod event;
mod finish;
pub mod git_trees;
pub mod guard;
mod hidden_programs;
mod idle;
pub mod job;
mod linked_parts;
mod links;
mod named_paths;
pub mod names;
mod notes;
pub mod parts;
mod pathspec;
mod paused_turns;
pub mod protect;
mod queue;
pub mod reach;
mod record;
pub mod rules;
pub mod runs;
pub mod saves;
mod scan_time;
pub mod session;
pub mod silence;
pub mod state;
mod steps;
mod task;
pub mod told;
mod turns;
mod unguarded;
pub mod watcher;
mod work_trees;
pub mod worker;
pub mod workspace;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::checkpoint::records::marks::{WorkMark, guard_mark};
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::workspace::{Scope, project_of, root_for};
use crate::checkpoint::upkeep::rounds::Rounds;
use crate::checkpoint::{Home, Timeline, Workspace};
use crate::error::Result;
use clients::LiveClients;
use git_trees::GitTrees;
use rules::{Followed, FollowedSettings};
use silence::ear::Ear;
use state::Sessions;
use worker::Worker;
use workspace::OpenWorkspace;

/// The open workspaces, each with its rules and its worker. Any number of clients share one.
pub struct Engine {
    home: Home,
    /// Settings of the command line, as `key` and `value`.
    flags: Vec<(String, String)>,
    /// The workspaces that were opened, by canonical root.
    open: Mutex<HashMap<PathBuf, Arc<OpenSlot>>>,
    /// The rounds of maintenance, which the workers do in idle time.
    rounds: Arc<Rounds>,
    /// The states of named sessions, which several connections may share.
    sessions: Sessions,
    /// The processes of clients whose hooks have called.
    clients: LiveClients,
    /// The work trees whose changes git is told.
    git_trees: GitTrees,
}

/// Locked while its workspace is being opened, so that the others need not wait for it.
type OpenSlot = Mutex<Option<Arc<OpenWorkspace>>>;

impl Engine {
    /// Makes an engine without open workspaces. `flags` are settings from the command line.
    pub fn new(home: Home, flags: Vec<(String, String)>) -> Engine {
        let rounds = Arc::new(Rounds::new(home.clone(), flags.clone()));
        let clients = LiveClients::default();
        let git_trees = GitTrees::new(home.clone(), flags.clone());
        Engine { sessions: Sessions::of(&home), rounds, home, flags, clients, git_trees, open: Mutex::default() }
    }

    /// Returns the rounds of maintenance.
    pub fn rounds(&self) -> &Rounds {
        &self.rounds
    }

    /// Returns piton's own directory.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Returns settings from the command line.
    pub fn flags(&self) -> &[(String, String)] {
        &self.flags
    }

    /// Returns the sessions that have names.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the processes of clients whose hooks have called.
    pub fn clients(&self) -> &LiveClients {
        &self.clients
    }

    /// Returns the work trees whose changes git is told.
    pub fn git_trees(&self) -> &GitTrees {
        &self.git_trees
    }

    /// Returns the workspace rooted at exactly `root`; opened, and its worker started, when it is not yet.
    ///
    /// # Errors
    /// `workspace-gone`, `workspace-refused`, `bad-path`; errors of the store.
    pub fn open(&self, root: &Path) -> Result<Arc<OpenWorkspace>> {
        // An open workspace keeps its entry, even if something else is at its path now.
        let known = self.entries().contains_key(root);
        let real = if known { None } else { root.canonicalize().ok() };
        let root = real.unwrap_or_else(|| root.to_owned());
        let entry = Arc::clone(self.entries().entry(root.clone()).or_default());
        let mut opened = entry.lock().unwrap_or_else(PoisonError::into_inner);
        match opened.as_ref() {
            Some(place) => Ok(Arc::clone(place)),
            None => {
                let place = Arc::new(self.start(&root)?);
                self.forget_moved(&place.workspace);
                Ok(Arc::clone(opened.insert(place)))
            }
        }
    }

    /// Forgets the place that a history had before it came to a workspace which is just being opened.
    fn forget_moved(&self, workspace: &Workspace) {
        let is_old = |place: &OpenWorkspace| place.workspace.id == workspace.id;
        // Its sessions keep it, and its worker refuses to work on.
        self.entries().retain(|_, entry| !entry.try_lock().is_ok_and(|place| place.as_deref().is_some_and(is_old)));
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<PathBuf, Arc<OpenSlot>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self, root: &Path) -> Result<OpenWorkspace> {
        let workspace = Workspace::open(&self.home, root)?;
        let rules = FollowedSettings::load(root, &self.home, &self.flags)?;
        let timeline = Timeline::open(&self.home, workspace.clone(), rules.in_force().policy.clone())?;
        let ear = Arc::new(Ear::default());
        let worker = Worker::start(timeline, Arc::clone(&self.rounds), Arc::clone(&ear))?;
        let mark = WorkMark::set(&guard_mark(&workspace.dir));
        Ok(OpenWorkspace { workspace, worker, rules, ear, unguarded: Arc::default(), _mark: mark })
    }

    /// Returns the root of the workspace that an event in `cwd` (by its real name) belongs to, `session` being the
    /// client's own.
    pub fn root_of(&self, session: &Workspace, cwd: &Path) -> PathBuf {
        let own = session.path.as_path();
        if cwd == own {
            return own.to_owned();
        }
        let known = || {
            Workspace::known(&self.home).unwrap_or_else(|error| {
                tracing::warn!(%error, "the known workspaces cannot be listed");
                Vec::new()
            })
        };
        match (reach::belongs(own, cwd), session.scope) {
            (true, Scope::Tree) => own.to_owned(),
            // A directory that is too broad to be captured does not stand in for the projects in it.
            (true, Scope::TargetsOnly) => project_of(cwd, &known()).unwrap_or_else(|| own.to_owned()),
            (false, _) => self.root_around(cwd).unwrap_or_else(|_| root_for(cwd, &[])),
        }
    }

    /// Returns the root of the workspace that a directory belongs to.
    ///
    /// # Errors
    /// When the known workspaces cannot be listed.
    pub fn root_around(&self, dir: &Path) -> Result<PathBuf> {
        // The directory of an open workspace needs no look at all the others.
        if self.entries().contains_key(dir) {
            return Ok(dir.to_owned());
        }
        let known = Workspace::known(&self.home)?;
        Ok(root_for(dir, &known))
    }

    /// Reads the configuration of every open workspace again, and returns what was left aside.
    ///
    /// # Errors
    /// `bad-request` for the first mistake; what is sound is in force all the same.
    pub fn reload(&self) -> Result<Vec<String>> {
        let (mut warnings, mut mistakes) = (Vec::new(), Vec::new());
        for place in self.places() {
            let followed = self.follow(&place, true)?;
            warnings.extend(followed.read.into_iter().flat_map(|read| read.warnings.clone()));
            // A value that waits for a person is among the warnings, and no mistake.
            mistakes.extend(followed.mistakes.into_iter().filter(|mistake| mistake.waiting.is_none()));
        }
        mistakes.first().map_or(Ok(warnings), |mistake| Err(mistake.error()))
    }

    /// Reads the configuration of a workspace again if one of its files changed since. A mistake is reported once, and
    /// `status` lists it until it is corrected. The value in force before stays in its place.
    ///
    /// # Errors
    /// Returns the errors of [`crate::settings::load`].
    pub fn renew(&self, place: &OpenWorkspace) -> Result<Followed> {
        let mut followed = self.follow(place, false)?;
        if followed.mistakes.is_empty() {
            return Ok(followed);
        }
        let known = mishaps::newest(&self.home);
        for mistake in &followed.mistakes {
            // The mishap is noted by its head, because each short-lived process finds the same mistake.
            let head = mistake.noted();
            if known.iter().any(|known| known.contains(&head)) {
                continue;
            }
            let text = format!("settings: {}", mistake.text());
            followed.unknown.push(mistake.clone());
            if let Err(error) = mishaps::note(&self.home, &text) {
                tracing::warn!(%error, "could not record a mistake in the settings");
            }
        }
        Ok(followed)
    }

    fn follow(&self, place: &OpenWorkspace, asked: bool) -> Result<Followed> {
        let from = (place.workspace.path.as_path(), &self.home, self.flags.as_slice());
        place.rules.follow(asked, from, |policy| place.worker.set_policy(policy))
    }

    /// Returns a workspace, if it is open.
    pub fn opened(&self, root: &Path) -> Option<Arc<OpenWorkspace>> {
        let entry = Arc::clone(self.entries().get(root)?);
        // A workspace that is just being opened reads its configuration now anyway.
        entry.try_lock().ok()?.clone()
    }

    /// Returns all open workspaces, without those that are just being opened.
    pub fn places(&self) -> Vec<Arc<OpenWorkspace>> {
        self.entries().values().filter_map(|entry| entry.try_lock().ok()?.clone()).collect()
    }

    /// Lets all workers end after their current work, at most until `deadline`; `false` when some had not ended by
    /// then.
    pub fn close(&self, deadline: Instant) -> bool {
        let places = self.places();
        // The rest of the time is for the step that is at work then, and for its writes.
        let now = Instant::now();
        let rest_until = now + deadline.saturating_duration_since(now) / 2;
        // All are asked to end before one is waited for.
        while places.iter().filter(|place| !place.worker.close(rest_until)).count() > 0 {
            if Instant::now() >= deadline {
                places.iter().for_each(|place| place.worker.stop());
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}
