//! Removes whole histories on demand, as orphans go.

use super::orphans;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::runs::at_work::open_runs;
use crate::error::{Code, Error, Result};
use crate::model::policy::Policy;

/// The rule by which cleared checkpoints are gone.
const RULE: &str = "piton store clear";

/// Refuses while somebody works in a workspace: a run is open, or a sidecar or daemon guards it.
///
/// # Errors
/// `conflict`; the errors of listing runs.
pub fn refuse_at_work(workspace: &Workspace) -> Result<()> {
    let name = workspace.path.display();
    if let Some(run) = open_runs(&workspace.dir)?.first() {
        return Err(Error::new(Code::Conflict, format!("run `{run}` of {name} is open")).hint("end it first"));
    }
    if at_work(&guard_mark(&workspace.dir)) == AtWork::Now {
        return Err(Error::new(Code::Conflict, format!("a sidecar or the daemon is active in {name}"))
            .hint("end the agent, then stop the daemon with `piton daemon stop`"));
    }
    Ok(())
}

/// Removes the history of a workspace, and returns the number of its checkpoints. Their ids stay explained.
///
/// # Errors
/// `conflict` if somebody is at work there; those of [`orphans::remove`].
pub fn clear(home: &Home, workspace: &Workspace, policy: &Policy) -> Result<u64> {
    refuse_at_work(workspace)?;
    Ok(orphans::remove(home, workspace, policy, (RULE, LOCK_WAIT))?.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::checkpoint::Take;
    use crate::checkpoint::catalog::dropped::{Ledger, SoughtCheckpoint};
    use crate::checkpoint::records::marks::WorkMark;
    use crate::checkpoint::timeline::Timeline;
    use crate::model::checkpoint::CheckpointKind;
    use crate::sys::interrupt::Flow;

    /// Returns true if half a directory of records is left.
    fn is_left(home: &Path) -> bool {
        std::fs::read_dir(home)
            .unwrap()
            .any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(".removed-"))
    }

    #[test]
    fn a_cleared_history_is_gone_and_explained_and_its_directory_begins_anew() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let (root, other) = (scratch.path().join("work"), scratch.path().join("other"));
        let policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
        let take = |root: &Path| {
            std::fs::create_dir_all(root).unwrap();
            std::fs::write(root.join("a"), "1").unwrap();
            let workspace = Workspace::open(&home, root).unwrap();
            let mut timeline = Timeline::open(&home, workspace.clone(), policy.clone()).unwrap();
            let take = Take::of(CheckpointKind::Manual, "local", "first");
            let id = timeline.take(&take, &|| Flow::Continue).unwrap().checkpoint.id;
            (workspace, id, timeline)
        };
        let ((work, id, mut held), (kept, ..)) = (take(&root), take(&other));
        let guarding = WorkMark::set(&guard_mark(&work.dir)).unwrap();
        assert_eq!(clear(&home, &work, &policy).unwrap_err().code(), Code::Conflict);
        drop(guarding);
        // A full or protected home, in which no id can be noted: nothing goes.
        std::fs::create_dir(home.path().join("pruned")).unwrap();
        assert!(clear(&home, &work, &policy).is_err());
        assert_eq!(
            Timeline::open(&home, work.clone(), policy.clone()).unwrap().catalog().all().unwrap().checkpoints.len(),
            1
        );
        std::fs::remove_dir(home.path().join("pruned")).unwrap();
        assert_eq!(clear(&home, &work, &policy).unwrap(), 1);
        assert_eq!(Workspace::known(&home).unwrap(), [kept]);
        assert!(!is_left(home.path()));
        let sought = SoughtCheckpoint { id: Some(id.to_string()), ..SoughtCheckpoint::default() };
        assert_eq!(Ledger::of_home(home.path()).find(&sought).unwrap().rule, RULE);
        // A process that had it open writes nothing any more.
        let again = Take::of(CheckpointKind::Manual, "local", "again");
        assert_eq!(held.take(&again, &|| Flow::Continue).unwrap_err().code(), Code::WorkspaceGone);
        let (anew, ..) = take(&root);
        assert_ne!(anew.id, work.id);
        assert_eq!(anew.place, work.place);
    }
}
