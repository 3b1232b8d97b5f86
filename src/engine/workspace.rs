//! An open workspace: its settings, and the worker that owns its timeline.

use std::path::Path;
use std::sync::Arc;

use super::reach;
use super::rules::{FollowedSettings, InForce};
use super::silence::ear::Ear;
use super::worker::Worker;
use crate::checkpoint::records::marks::WorkMark;
use crate::checkpoint::records::state::WorkspaceState;
use crate::checkpoint::records::unguarded::UnguardedMemory;
use crate::checkpoint::{Home, Workspace};
use crate::classify::Context;
use crate::model::policy::Guard;
use crate::sys::clock::{local_minute, now_ms};

/// An open workspace.
pub struct OpenWorkspace {
    /// The workspace's identity, as it is recorded.
    pub workspace: Workspace,
    /// The thread that works on its timeline.
    pub worker: Worker,
    pub(super) rules: FollowedSettings,
    /// Looks for clients that are at work without events.
    pub ear: Arc<Ear>,
    /// The actions that ran unguarded and could be kept nowhere else yet.
    pub(super) unguarded: Arc<UnguardedMemory>,
    /// Tells others that somebody guards it.
    pub(super) _mark: Option<WorkMark>,
}

impl OpenWorkspace {
    /// Returns the configuration as it is now.
    pub fn in_force(&self) -> Arc<InForce> {
        self.rules.in_force()
    }

    /// Returns the surroundings of an action that starts in `cwd`, which is a real name.
    pub fn context(&self, home: &Home, cwd: &Path) -> Context {
        Context {
            cwd: cwd.to_owned(),
            workspace: self.workspace.path.clone(),
            aliases: Vec::new(),
            links: Vec::new(),
            tops: Vec::new(),
            files: Vec::new(),
            existing: Vec::new(),
            checkouts: Vec::new(),
            home: std::env::home_dir(),
            temp_dirs: reach::temp_dirs(),
            piton: home.own_dirs(),
        }
    }

    /// Returns why the guard is off, if it is.
    pub fn why_off(&self) -> Option<String> {
        let rules = self.in_force();
        why_off(rules.policy.guard, &self.workspace.dir, &rules.origin("guard"))
    }
}

/// Returns why the guard is off, until when, and the command that switches it on; `None` where it is on. `set` is the
/// origin of the setting.
pub fn why_off(guard: Guard, dir: &Path, set: &str) -> Option<String> {
    if guard == Guard::Off {
        return Some(format!("the guard is off in the settings (`guard: off`, {set}); change that to switch it on"));
    }
    let (state, now) = (WorkspaceState::load(dir), now_ms());
    let until = state.off_until.filter(|_| state.is_off(now))?;
    Some(match until {
        i64::MAX => "the guard is off until a person runs `piton on`".to_owned(),
        until => format!("the guard is off until {}; to switch it on earlier, run `piton on`", local_minute(until)),
    })
}
