//! From an event to a decision: which workspace it belongs to, whether a checkpoint is due, and the worker that takes it
//! (rank 4). Sees no JSON, no sockets, no terminal.
//!
//! Invariant: one worker thread per workspace owns its timeline. Invariant: whoever sends an event never waits for a
//! worker longer than the event's deadline.

pub mod act;
pub mod guard;
pub mod hearing;
pub mod place;
pub mod worker;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::checkpoint::{Home, Timeline, Workspace};
use crate::classify::{Classifier, Context};
use crate::error::Result;
use crate::model::policy::Policy;
use crate::settings::{self, Effective};
use worker::Worker;

/// The workspaces of one client, each with its policy, rules and worker.
pub struct Engine<A: Send + 'static> {
    home: Home,
    flags: Vec<(String, String)>,
    finished: worker::Finished<A>,
    open: HashMap<PathBuf, Place<A>>,
}

/// An open workspace.
pub struct Place<A: Send + 'static> {
    pub workspace: Workspace,
    pub policy: Policy,
    pub classifier: Classifier,
    pub worker: Worker<A>,
    /// What the configuration's reading left aside.
    pub warnings: Vec<String>,
}

impl<A: Send + 'static> Place<A> {
    /// The surroundings of an action that starts in `cwd`, which is a real name.
    pub fn context(&self, home: &Home, cwd: &Path) -> Context {
        Context {
            cwd: cwd.to_owned(),
            workspace: self.workspace.path.clone(),
            aliases: Vec::new(),
            home: std::env::home_dir(),
            temp_dirs: place::temp_dirs(),
            piton_home: Some(home.path().to_owned()),
        }
    }
}

impl<A: Send + 'static> Engine<A> {
    /// An engine whose workers report to `finished`. `flags` are settings from the command line.
    pub fn new(home: Home, flags: Vec<(String, String)>, finished: worker::Finished<A>) -> Engine<A> {
        Engine { home, flags, finished, open: HashMap::new() }
    }

    /// piton's own directory.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The workspace rooted at exactly `root`; opened, and its worker started, when it is not yet.
    ///
    /// # Errors
    /// `workspace-gone`, `workspace-refused`, `bad-path`; mistakes of the user's configuration; errors of the store.
    pub fn open(&mut self, root: &Path) -> Result<&mut Place<A>> {
        // What is open keeps its place, whatever stands there now.
        let known = self.open.contains_key(root);
        let root = root.canonicalize().ok().filter(|_| !known).unwrap_or_else(|| root.to_owned());
        if !self.open.contains_key(&root) {
            let place = self.start(&root)?;
            self.open.insert(root.clone(), place);
        }
        // Just inserted when it was missing.
        Ok(self.open.get_mut(&root).expect("the workspace was opened above"))
    }

    fn start(&self, root: &Path) -> Result<Place<A>> {
        let workspace = Workspace::open(&self.home, root)?;
        let effective = settings::load(Some(root), self.home.path(), &self.flags)?;
        let classifier = classifier(&effective)?;
        let timeline = Timeline::open(&self.home, workspace.clone(), effective.policy.clone())?;
        let worker = Worker::start(timeline, self.finished.clone());
        Ok(Place { workspace, policy: effective.policy, classifier, worker, warnings: effective.warnings })
    }

    /// The root of the workspace that an event in `cwd` (by its real name) belongs to, `session` being the client's own.
    pub fn root_of(&self, session: &Path, cwd: &Path) -> PathBuf {
        if cwd == session || place::belongs(session, cwd) {
            return session.to_owned();
        }
        let known = Workspace::known(&self.home).unwrap_or_default();
        crate::checkpoint::workspace::root_for(cwd, &known)
    }

    /// Reads the configuration of every open workspace again; what was wrong is told and the old one stays.
    ///
    /// # Errors
    /// Those of [`settings::load`] and of the rules; the first one met.
    pub fn reload(&mut self) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for (root, place) in &mut self.open {
            let effective = settings::load(Some(root), self.home.path(), &self.flags)?;
            place.classifier = classifier(&effective)?;
            place.policy = effective.policy.clone();
            place.worker.set_policy(effective.policy);
            warnings.extend(effective.warnings);
        }
        Ok(warnings)
    }

    /// All open workspaces.
    pub fn places(&self) -> impl Iterator<Item = &Place<A>> {
        self.open.values()
    }

    /// Ends all workers after what they have begun; gives them back to be waited for.
    pub fn close(self) -> Vec<Worker<A>> {
        self.open.into_values().map(|place| place.worker).collect()
    }
}

/// The rules in force.
///
/// # Errors
/// `bad-request` for a mistake in the user's own rules.
pub fn classifier(effective: &Effective) -> Result<Classifier> {
    let own = &effective.policy.rules_yaml;
    if own.is_empty() {
        return Ok(Classifier::embedded());
    }
    Classifier::with_user_rules(own).map_err(|error| error.context(effective.origin("rules")))
}
