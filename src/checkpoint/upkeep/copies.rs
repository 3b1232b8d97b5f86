//! Checkouts that are copies of others, such as worktrees: what their records take is bounded.
//!
//! Their content costs nothing, because others have it too. But the stamps of a copy take as much as some files in a
//! hundred, a ref takes a file and two directories, and a log takes a block. So maintenance packs the refs of copies,
//! empties their logs, and removes derived files as long as the records of all copies take more than a part of the store.
//! Without its stamps the next checkpoint of a copy reads every file once.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::refs;
use super::usage::{Usage, WorkspaceUsage};
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::marks::{AtWork, at_work, guard_mark};
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{Code, IoContext, Result};
use crate::store::{Log, Store};
use crate::sys::interrupt::{Flow, Interrupt};

/// The records of all copies may take one part in so many of the store's bytes.
const PARTS: u64 = 25;

/// The bytes of a block. Even the shortest file takes one.
const BLOCK: u64 = 4096;

/// The derived files of a workspace.
const DERIVED: [&str; 2] = ["stamps", "commits"];

/// The records of a copy.
struct CopyRecords {
    dir: PathBuf,
    /// Bytes on the disk.
    taken: u64,
    /// Bytes of its derived files on the disk.
    derived: u64,
    /// The time of its last use, as far as is known.
    used: SystemTime,
}

/// Returns true if almost all content of a workspace is that of others.
fn is_copy(usage: &WorkspaceUsage) -> bool {
    usage.own < usage.shared / 20
}

/// Makes the records of copies small. First come those that were not used for the longest time. Where a process is at work,
/// nothing is removed.
///
/// # Errors
/// `permission`, and those of the lock.
pub(super) fn shrink(store: &Store, known: &[Workspace], usage: &Usage, control: Interrupt<'_>) -> Result<()> {
    let is_copy = |of: &&Workspace| usage.workspaces.get(&of.id).is_some_and(is_copy);
    let copies: Vec<&Workspace> = known.iter().filter(is_copy).collect();
    refs::pack(store, &copies, 1, control)?;
    for of in &copies {
        if control() == Flow::Stop {
            return Ok(());
        }
        empty_log(store, of)?;
    }
    let mut copies: Vec<CopyRecords> = copies.into_iter().map(CopyRecords::of).collect();
    copies.sort_by_key(|of| of.used);
    let mut taken: u64 = copies.iter().map(|of| of.taken).sum();
    for of in &copies {
        if taken <= usage.stored / PARTS {
            break;
        }
        if of.derived > 0 && of.remove_derived()? {
            taken -= of.derived;
        }
    }
    Ok(())
}

/// Takes the lock of a workspace in which no process is at work; `None` if one is.
fn lock_if_idle(dir: &Path, verb: &str) -> Result<Option<WorkspaceLock>> {
    if at_work(&guard_mark(dir)) == AtWork::Now {
        return Ok(None);
    }
    match WorkspaceLock::acquire(dir, verb, Duration::ZERO) {
        Err(error) if error.code() == Code::StoreLocked => Ok(None),
        lock => lock.map(Some),
    }
}

/// Makes the content of a log durable elsewhere, where it mostly is by now, and empties the log.
fn empty_log(store: &Store, of: &Workspace) -> Result<()> {
    let path = of.dir.join("log");
    let is_empty = || !path.metadata().is_ok_and(|facts| facts.len() > 0);
    if is_empty() {
        return Ok(());
    }
    let Some(_lock) = lock_if_idle(&of.dir, "emptying the log")? else { return Ok(()) };
    // A killed process may have left a record whose ref did not move.
    store.complete(&path)?;
    store.flush(&mut Log::open(&path)?)
}

impl CopyRecords {
    /// Looks at the records of a workspace. Files that cannot be looked at count for nothing.
    fn of(workspace: &Workspace) -> CopyRecords {
        let dir = workspace.dir.clone();
        let on_disk = |bytes: u64| bytes.next_multiple_of(BLOCK);
        let facts = DERIVED.iter().filter_map(|name| dir.join(name).metadata().ok()); // as above
        let (derived, written): (Vec<u64>, Vec<Option<SystemTime>>) =
            facts.map(|facts| (on_disk(facts.len()), facts.modified().ok())).unzip(); // without a time it was never used
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let files = entries.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file); // as above
        let taken = BLOCK + files.map(|facts| on_disk(facts.len())).sum::<u64>();
        let opened = match at_work(&guard_mark(&dir)) {
            AtWork::Since(time) => Some(time),
            AtWork::Now | AtWork::Never => None,
        };
        let used = written.into_iter().chain([opened]).flatten().max().unwrap_or(SystemTime::UNIX_EPOCH);
        CopyRecords { taken, derived: derived.into_iter().sum(), used, dir }
    }

    /// Removes the derived files. Returns false if a process is at work.
    fn remove_derived(&self) -> Result<bool> {
        let Some(_lock) = lock_if_idle(&self.dir, "removing stamps")? else { return Ok(false) };
        for path in DERIVED.map(|name| self.dir.join(name)) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.at("removing", &path)?,
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::checkpoint::records::home::Home;
    use crate::checkpoint::records::marks::WorkMark;
    use crate::checkpoint::records::workspace::Scope;
    use crate::sys::fs::durable::create_private_dir;

    const COPY: WorkspaceUsage = WorkspaceUsage { own: 4, shared: 100, checkpoints: 1, by_then: 0 };

    /// Makes the records of workspaces, each with the stamps of three blocks, the first one used last.
    fn records(home: &Home, ids: &[&str]) -> Vec<Workspace> {
        let make = |(age, id): (u64, &&str)| {
            let dir = home.workspaces().join(id);
            create_private_dir(&dir).unwrap();
            let file = File::create(dir.join("stamps")).unwrap();
            file.set_len(2 * BLOCK + 1).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_mins(age)).unwrap();
            let (id, path, since) = ((*id).to_owned(), home.path().join(id), String::new());
            Workspace { id, path, scope: Scope::Tree, since, dir, place: None, was: None, part_of: None, mode: None }
        };
        (0..).zip(ids).map(make).collect()
    }

    fn with_stamps(known: &[Workspace]) -> String {
        known.iter().filter(|of| of.dir.join("stamps").exists()).map(|of| of.id.as_str()).collect()
    }

    #[test]
    fn the_records_of_copies_take_a_part_of_the_store_and_the_last_used_keep_their_stamps() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::at(temp.path()).unwrap();
        let known = records(&home, &["a", "b", "c", "d", "e"]);
        let mut usage = Usage::default();
        for of in &known {
            let own = if of.id == "e" { 6 } else { COPY.own };
            usage.workspaces.insert(of.id.clone(), WorkspaceUsage { own, ..COPY });
        }
        let store = Store::open(home.path()).unwrap();
        let mut left = |blocks: u64| {
            usage.stored = blocks * BLOCK * PARTS;
            shrink(&store, &known, &usage, &|| Flow::Continue).unwrap();
            with_stamps(&known)
        };
        assert_eq!(left(16), "abcde", "four directories, and the stamps of each");
        let lock = WorkspaceLock::acquire(&known[3].dir, "test", Duration::ZERO).unwrap();
        // From here on the lock file of `d` takes a block too.
        assert_eq!(left(17), "abcde");
        assert_eq!(left(16), "abde", "a process writes in the one that was used first");
        drop(lock);
        let mark = WorkMark::set(&guard_mark(&known[3].dir)).unwrap();
        assert_eq!(left(14), "ade", "a process is at work there");
        drop(mark);
        assert_eq!(left(0), "e", "which is no copy");
    }

    #[test]
    fn the_refs_of_a_copy_are_packed_and_its_log_is_emptied() {
        let temp = tempfile::tempdir().unwrap();
        let home = Home::at(temp.path()).unwrap();
        let known = records(&home, &["a"]);
        let store = Store::open(home.path()).unwrap();
        let mut log = Log::open(&known[0].dir.join("log")).unwrap();
        let new = crate::model::id::ObjectId::of(crate::model::id::ObjectKind::Commit, b"").unwrap();
        let record =
            crate::store::log::Record { name: "refs/piton/a/manual/1".into(), old: None, new, objects: Vec::new() };
        log.append(&record, true).unwrap();
        let usage = Usage { stored: 1 << 40, workspaces: [("a".to_owned(), COPY)].into(), ..Usage::default() };
        let target = || store.refs("refs/piton/a/").unwrap().into_iter().map(|entry| entry.target.unwrap()).next();
        shrink(&store, &known, &usage, &|| Flow::Continue).unwrap();
        assert_eq!(known[0].dir.join("log").metadata().unwrap().len(), 0);
        assert_eq!(target(), Some(new), "the killed process's ref");
        // The next round packs it.
        shrink(&store, &known, &usage, &|| Flow::Continue).unwrap();
        assert!(!store.git_dir().join("refs/piton/a").exists());
        assert_eq!(target(), Some(new));
        assert_eq!(with_stamps(&known), "a");
    }
}
