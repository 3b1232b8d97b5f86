//! The refs of all workspaces: packs them, and notices when they are lost.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use crate::checkpoint::catalog::numbers::Noted;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::state::WorkspaceState;
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{Code, Result};
use crate::store::{RefEntry, Store};
use crate::sys::interrupt::{Flow, Interrupt};

/// The number of loose refs of a workspace from which on maintenance packs them.
pub(super) const FEW: usize = 16;

/// The workspaces whose refs are packed together, so that the file of packed refs is written once for them.
const GROUP: usize = 64;

/// The most refs that are packed while locks are held: some ten milliseconds.
const AT_ONCE: usize = 1024;

/// Packs the refs of workspaces in which nobody writes, where at least `few` are loose.
///
/// # Errors
/// As [`Store::pack_refs`], and those of locks.
pub(super) fn pack(store: &Store, workspaces: &[&Workspace], few: usize, control: Interrupt<'_>) -> Result<()> {
    let prefix = |of: &Workspace| format!("refs/piton/{}/", of.id);
    let due: Vec<&&Workspace> = workspaces.iter().filter(|of| store.loose_refs(&prefix(of), few) >= few).collect();
    for group in due.chunks(GROUP) {
        loop {
            let (mut locks, mut prefixes) = (Vec::new(), Vec::new());
            for of in group {
                match WorkspaceLock::acquire(&of.dir, "packing refs", Duration::ZERO) {
                    Err(error) if error.code() == Code::StoreLocked => {}
                    lock => {
                        locks.push(lock?);
                        prefixes.push(prefix(of));
                    }
                }
            }
            let is_last = store.pack_refs(&prefixes, AT_ONCE)? < AT_ONCE;
            if is_last {
                prefixes.iter().for_each(|prefix| remove_empty_dirs(&store.git_dir().join(prefix)));
            }
            if is_last || control() == Flow::Stop {
                break;
            }
        }
    }
    Ok(())
}

/// Removes the directories of a workspace's refs that have no loose ref any more. Its lock is held.
fn remove_empty_dirs(dir: &Path) {
    for kind in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        // One that is not empty stays.
        let _ = std::fs::remove_dir(kind.path());
    }
    let _ = std::fs::remove_dir(dir); // as above
}

/// Returns a sentence about a workspace that has taken checkpoints and has no ref, though nobody dropped the newest one. Nothing
/// may be deleted then: what its refs named may be all that is left of it.
///
/// # Errors
/// When refs cannot be listed.
pub(super) fn lost(home: &Home, store: &Store) -> Result<Option<String>> {
    // The workspaces come first: one that is made meanwhile is not among them.
    let workspaces = Workspace::known(home)?;
    let refs = store.refs("refs/")?;
    let named: HashSet<&str> = refs.iter().filter_map(|RefEntry { name, .. }| name.split('/').nth(2)).collect();
    let is_lost = |of: &&Workspace| {
        let taken = Noted::read(&of.dir).highest;
        // The state file has the number after that of the newest one that was dropped.
        taken > 0 && !named.contains(of.id.as_str()) && taken >= WorkspaceState::load(&of.dir).next_ordinal
    };
    let lost = workspaces.iter().find(is_lost);
    Ok(lost.map(|of| {
        let path = of.path.display();
        format!(
            "the checkpoints of {path} are lost, so nothing is deleted from the store. Run `piton doctor --refs`, or give \
             them up with `piton store clear --workspace {path}`"
        )
    }))
}
