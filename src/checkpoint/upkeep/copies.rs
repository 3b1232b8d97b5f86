//! Checkouts that are copies of others, such as worktrees: what is kept for speed alone goes while nobody works there.
//!
//! Their content costs nothing, because others have it too. Their stamps take as much as the content of some files in a
//! hundred, and a ref takes a file and two directories. Without its stamps the next checkpoint of a copy reads every file
//! once.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::usage::WorkspaceUsage;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::error::{Code, IoContext, Result};
use crate::store::Store;

/// The time without a checkpoint after which nobody works in a copy.
const UNUSED: Duration = Duration::from_hours(24);

/// The derived files of a workspace.
const DERIVED: [&str; 2] = ["stamps", "commits"];

/// Returns true if almost all content of a workspace is that of others.
fn is_copy(usage: &WorkspaceUsage) -> bool {
    usage.own < usage.shared / 20
}

/// Removes the derived files of copies that nobody uses, and packs their refs. Where a process writes, nothing is done.
///
/// # Errors
/// `permission`, and those of the lock.
pub(super) fn shrink(home: &Home, store: &Store, workspaces: &BTreeMap<String, WorkspaceUsage>) -> Result<()> {
    for (id, _) in workspaces.iter().filter(|(_, usage)| is_copy(usage)) {
        let dir = home.workspaces().join(id);
        if !is_unused(&dir) || at_work(&guard_mark(&dir)) == AtWork::Now {
            continue;
        }
        let _lock = match WorkspaceLock::acquire(&dir, "removing stamps", Duration::ZERO) {
            Err(error) if error.code() == Code::StoreLocked => continue,
            lock => lock?,
        };
        for path in DERIVED.map(|name| dir.join(name)) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.at("removing", &path)?,
            }
        }
        pack_refs(store, id)?;
    }
    Ok(())
}

/// Packs the refs of a workspace whose lock is held, and removes the directories that are empty then.
fn pack_refs(store: &Store, id: &str) -> Result<()> {
    let prefix = format!("refs/piton/{id}/");
    store.pack_refs(std::slice::from_ref(&prefix), usize::MAX)?;
    let dir = store.git_dir().join(&prefix);
    for kind in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
        // One that is not empty stays.
        let _ = std::fs::remove_dir(kind.path());
    }
    let _ = std::fs::remove_dir(&dir); // as above
    Ok(())
}

/// Returns true if there are stamps, and they were written long ago.
fn is_unused(dir: &Path) -> bool {
    let written = dir.join("stamps").metadata().and_then(|facts| facts.modified());
    // Stamps from the future are as good as new, and missing ones take no room.
    written.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > UNUSED))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::sys::fs::durable::create_private_dir;

    #[test]
    fn only_unused_copies_lose_their_stamps() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::at(temp.path()).unwrap();
        let copy = WorkspaceUsage { own: 4, shared: 100, ..WorkspaceUsage::default() };
        let unlike = WorkspaceUsage { own: 6, ..copy };
        let day = Duration::from_hours(24);
        let cases = [("a", copy, 2 * day, true), ("b", copy, day / 2, false), ("c", unlike, 2 * day, false)];
        for (id, _, age, _) in &cases {
            let dir = home.workspaces().join(id);
            create_private_dir(&dir).unwrap();
            let file = File::create(dir.join("stamps")).unwrap();
            file.set_modified(SystemTime::now() - *age).unwrap();
        }
        let usage: BTreeMap<_, _> = cases.iter().map(|(id, usage, _, _)| ((*id).to_owned(), *usage)).collect();
        let store = Store::open(home.path()).unwrap();
        let held = WorkspaceLock::acquire(&home.workspaces().join("a"), "test", Duration::ZERO).unwrap();
        shrink(&home, &store, &usage).unwrap();
        assert!(home.workspaces().join("a/stamps").exists(), "a process writes");
        drop(held);
        shrink(&home, &store, &usage).unwrap();
        for (id, _, _, goes) in &cases {
            assert_eq!(!home.workspaces().join(id).join("stamps").exists(), *goes, "{id}");
        }
    }
}
