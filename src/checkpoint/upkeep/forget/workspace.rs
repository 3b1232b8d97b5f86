//! Forgets a whole workspace: its checkpoints, its records, its sessions. The ledger of piton's home keeps the ids.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::intent::{ForgetIntent, IntentKind};
use super::proof::{ForgetProof, Trace, prove};
use super::records::{flush, listed, remove};
use super::{Pace, lock, opened, prefixes, purge};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::dropped::note_forgotten;
use crate::checkpoint::catalog::numbers::Noted;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::identity::{self, AddingLock};
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::checkpoint::records::state::WorkspaceState;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::upkeep::layers;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::policy::Policy;
use crate::store::Upkept;
use crate::sys::clock::now_ms;

/// Files that stay while a process has the workspace open: it needs them, and they say nothing of the content.
const LEFT_OPEN: [&str; 6] = ["workspace.json", "lock", "guarded", "runs", "ordinal", "state.json"];

/// The plan to forget a workspace.
pub struct WorkspacePlan {
    /// The workspace.
    pub workspace: Workspace,
    /// All of its checkpoints.
    pub checkpoints: Vec<Checkpoint>,
}

/// The result of forgetting a workspace.
#[derive(Debug)]
pub struct ForgottenWorkspace {
    /// True if a process has the workspace open, so that its identity stayed.
    pub is_open: bool,
    /// The work of the store.
    pub upkept: Upkept,
    /// The proof.
    pub proof: ForgetProof,
}

impl WorkspacePlan {
    /// Makes the plan.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub fn make(home: &Home, workspace: Workspace, policy: Policy, pace: Pace<'_>) -> Result<WorkspacePlan> {
        super::complete(home, pace)?;
        let catalog = Catalog::over(home, workspace, policy, opened(home, pace)?);
        let checkpoints = catalog.all()?.checkpoints.clone();
        Ok(WorkspacePlan { workspace: catalog.workspace, checkpoints })
    }

    /// Returns the digest of the plan.
    ///
    /// # Errors
    /// When it cannot be computed.
    pub fn digest(&self) -> Result<String> {
        let text: String = self.checkpoints.iter().map(|one| format!("{}\n", one.id)).collect();
        let text = format!("piton forget 1\nworkspace {}\n{text}", self.workspace.id);
        Ok(ObjectId::of(ObjectKind::Blob, text.as_bytes())?.to_string())
    }

    /// Refuses if a person has agreed to another plan.
    ///
    /// # Errors
    /// `stale-plan`.
    pub fn require(&self, digest: &str) -> Result<()> {
        if self.digest()? == digest {
            return Ok(());
        }
        Err(Error::new(Code::StalePlan, "the plan has changed since it was shown; nothing was removed")
            .hint("check it with `piton forget --workspace DIR --dry-run`"))
    }

    /// Forgets the workspace, and proves it.
    ///
    /// # Errors
    /// Returns the errors of locks and of writing. The next `forget`, `prune` or round of maintenance completes the rest.
    pub fn carry_out(&self, home: &Home, pace: Pace<'_>) -> Result<ForgottenWorkspace> {
        let _one = lock(home, "forget.lock", pace)?;
        let at = now_ms();
        let id = Some(self.workspace.id.clone());
        note_forgotten(home, &self.workspace, &self.checkpoints, at)?;
        let intent = ForgetIntent { at, kind: IntentKind::Workspace, workspace: id, map: Vec::new(), has_moved: false };
        intent.save(home)?;
        let is_open = take_away(home, &self.workspace, pace)?;
        let upkept = purge(home, pace)?;
        if upkept.left.is_none() {
            ForgetIntent::remove(home)?;
        }
        // The identity of an open workspace stays, in both of its copies.
        let (records, index) = (&self.workspace.dir, home.path().join("workspaces.index"));
        let spared: &[&Path] = if is_open { &[records, &index] } else { &[] };
        let proof = prove(home, &Trace::Workspace { id: &self.workspace.id, spared }, pace.progress)?;
        Ok(ForgottenWorkspace { is_open, upkept, proof })
    }
}

/// Completes a killed one.
pub(super) fn complete(home: &Home, of: Option<Workspace>, pace: Pace<'_>) -> Result<()> {
    if let Some(workspace) = of {
        take_away(home, &workspace, pace)?;
    }
    match purge(home, pace)?.left {
        None => ForgetIntent::remove(home),
        Some(_) => Ok(()),
    }
}

/// Removes refs and records. Returns true if a process has the workspace open: what that needs stays.
fn take_away(home: &Home, workspace: &Workspace, pace: Pace<'_>) -> Result<bool> {
    let store = opened(home, pace)?;
    let dir = &workspace.dir;
    // No process takes it for a known one meanwhile.
    let _known = AddingLock::acquire(home)?;
    let lock = WorkspaceLock::acquire(dir, "forgetting", pace.workspace)?;
    store.complete(&dir.join("log"))?;
    // A number is never used twice, and maintenance does not take the refs for lost.
    let state = WorkspaceState::load(dir);
    let noted = Noted::read(dir);
    let next_ordinal = state.next_ordinal.max(noted.highest + 1);
    let next_number = state.least_number().max(noted.highest_number() + 1);
    WorkspaceState { next_ordinal, next_number, ..state }.save(dir, &lock)?;
    // A record could bring a ref back.
    flush(&store, dir)?;
    store.remove_mark(&dir.join(store.log_name()))?;
    for prefix in prefixes(workspace) {
        let refs =
            store.refs(&prefix)?.into_iter().filter_map(|entry| Some((entry.name.to_string(), entry.target.ok()?)));
        store.delete_refs(&refs.collect::<Vec<_>>())?;
        // git leaves the directories of refs too: only empty ones are left, whose names say nothing.
        remove(&store.git_dir().join(prefix.trim_end_matches('/')))?;
    }
    if let Some(local) = layers::opened(home)? {
        local.complete(&dir.join(local.log_name()))?;
        flush(&local, dir)?;
        local.remove_mark(&dir.join(local.log_name()))?;
        let prefix = &prefixes(workspace)[1];
        let refs = local.refs(prefix)?.into_iter();
        let refs = refs.filter_map(|entry| Some((entry.name.to_string(), entry.target.ok()?)));
        local.delete_refs(&refs.collect::<Vec<_>>())?;
        remove(&local.git_dir().join(prefix.trim_end_matches('/')))?;
    }
    let is_open = at_work(&guard_mark(dir)) == AtWork::Now;
    // A cache, by the ids of workspaces.
    remove(&home.path().join("usage"))?;
    for session in sessions_of(home, dir)? {
        remove(&session)?;
    }
    for path in listed(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match is_open {
            true if LEFT_OPEN.contains(&name.as_str()) => {}
            // The lock goes last, with its directory.
            false if name == "lock" => {}
            _ => remove(&path)?,
        }
    }
    if is_open {
        let runs = listed(&dir.join("runs"))?;
        let is_mark = |path: &&PathBuf| path.extension().is_some_and(|end| end == "lock" || end == "open");
        runs.iter().filter(|path| !is_mark(path)).try_for_each(|path| remove(path))?;
        WorkspaceState { next_ordinal, ..WorkspaceState::default() }.save(dir, &lock)?;
        return Ok(true);
    }
    identity::forget(home, &workspace.id)?;
    remove(dir)?;
    drop(lock);
    Ok(false)
}

/// Returns the files of the sessions that have worked in a workspace, except for those without a name.
fn sessions_of(home: &Home, dir: &Path) -> Result<Vec<PathBuf>> {
    let runs: BTreeSet<_> =
        listed(&dir.join("runs"))?.into_iter().filter_map(|run| Some(run.file_name()?.to_owned())).collect();
    let id = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The record of what a session's model was told has the name of its run and an ending; no run's id has a `~`.
    let is_of_run = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.split('~').next().is_some_and(|run| runs.contains(OsStr::new(run)))
    };
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let all = listed(&home.path().join("sessions"))?;
    let is_here = |path: &PathBuf| path.file_name().is_some_and(is_of_run) || text(path).contains(&id);
    let (mut found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_here);
    // One of a sub-agent that has only read names that of its agent.
    let agents: Vec<String> =
        found.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned()).collect();
    let is_below = |path: &PathBuf| {
        let text = text(path);
        agents.iter().any(|agent| text.contains(&format!(r#""above":"{agent}""#)))
    };
    found.extend(others.into_iter().filter(is_below));
    Ok(found)
}
