//! Workspaces whose directories are gone: how one goes as a whole.
//!
//! First the ids of its checkpoints are noted in piton's home, then the refs go, the line of the index, and the records. A
//! killed removal leaves a workspace with fewer checkpoints, or records in a directory `.removed-<id>`, and the next one
//! does the rest.

use std::collections::HashSet;
use std::time::Duration;

use crate::checkpoint::catalog::dropped::note_history;
use crate::checkpoint::records::ground::Ground;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::identity::{self, AddingLock};
use crate::checkpoint::records::leftovers::{REMOVED, clear};
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::timeline::Timeline;
use crate::checkpoint::upkeep::standing::Standing;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::model::policy::Policy;
use crate::sys::clock::now_ms;

/// Removes a workspace: its checkpoints and its records. Its objects go with the next upkeep of the store. `rule` is the
/// reason that is noted; locks are waited for at most `wait`. Returns the checkpoints that are gone.
///
/// # Errors
/// `store-locked` while another process is at work there; `conflict` if refs cannot be deleted; those of writing.
pub fn remove(
    home: &Home,
    workspace: &Workspace,
    policy: &Policy,
    (rule, wait): (&str, Duration),
) -> Result<HashSet<ObjectId>> {
    let verb = "removing a workspace";
    // No process takes it for a known one meanwhile.
    let adding = AddingLock::acquire(home)?;
    let mut timeline = Timeline::open(home, workspace.clone(), policy.clone())?;
    let locked = timeline.lock_within(verb, wait)?;
    let catalog = &*locked.catalog;
    let known = catalog.all()?;
    if let Some(broken) = known.broken.first() {
        return Err(Error::new(Code::StoreDamaged, broken.clone()).hint("see `piton doctor --refs`"));
    }
    note_history(home, workspace, &known.checkpoints, (rule, now_ms()))?;
    for prefix in [catalog.leaf_prefix(), catalog.branch_prefix(), catalog.foreign_prefix()] {
        let listed = catalog.store.refs(&prefix)?.into_iter();
        let refs: Vec<(String, ObjectId)> =
            listed.filter_map(|entry| Some((entry.name.to_string(), entry.target.ok()?))).collect();
        if locked.drop_refs(&refs)?.len() < refs.len() {
            let text = format!("checkpoints of {} changed in the meantime", workspace.path.display());
            return Err(Error::new(Code::Conflict, text).hint("try again"));
        }
    }
    remove_records(home, workspace, &adding)?;
    drop(locked);
    tracing::info!(path = %workspace.path.display(), checkpoints = known.checkpoints.len(), "removed a workspace");
    Ok(known.checkpoints.iter().map(|one| one.id).collect())
}

/// Removes the records of a workspace that has no checkpoints any more.
///
/// # Errors
/// Returns the errors of writing.
pub(super) fn remove_records(home: &Home, workspace: &Workspace, _lock: &AddingLock) -> Result<()> {
    identity::forget(home, &workspace.id)?;
    let away = home.path().join(format!("{REMOVED}{}", workspace.id));
    // In one step: half a directory of records would be a history without an owner.
    std::fs::rename(&workspace.dir, &away).at("removing", &workspace.dir)?;
    clear(&away)
}

/// Returns the workspaces whose directories are certainly gone, and in which no process is at work.
pub(super) fn proven(known: &[Workspace]) -> HashSet<&str> {
    let ground = Ground::now(known.iter().map(|one| (one.path.as_path(), one.place.as_ref())));
    let is_orphan = |one: &&Workspace| {
        let is_gone = ground.standing(&one.path, one.place.as_ref()).standing == Standing::Orphan;
        is_gone && at_work(&guard_mark(&one.dir)) != AtWork::Now
    };
    known.iter().filter(is_orphan).map(|one| one.id.as_str()).collect()
}
