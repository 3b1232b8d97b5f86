//! Finding files whose content is not what was captured although no time says so.
//!
//! A store through a mapping into a page that is already dirty moves no time, and no watcher tells of it. Two things show it: the
//! content, and for as long as the mapping stands, a lease that the kernel refuses. Both cost more than a look, so they are asked
//! of few files: those that an action names, databases, and files that were written a moment ago.
//!
//! *Invariant:* a stamp that has moved is the caller's business; here are only files whose stamp is the captured one. *Invariant:*
//! in doubt a file is named, and the next capture reads it.
//!
//! Limits: nothing here finds such a store in a file above [`COMPARED_BYTES`] once its mapping is gone.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use super::beneath::Root;
use super::probe::stamp_of;
use super::read::{self, Refusal};
use super::request::Target;
use super::stopped::unless_stopped;
use crate::error::Result;
use crate::filter::database;
use crate::model::id::{ObjectHasher, ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::stamp::{KnownFile, KnownPaths};
use crate::sys::clock::file_clock;
use crate::sys::interrupt::Interrupt;
use crate::sys::lease;

/// Largest file that is compared because an action names it.
const COMPARED_BYTES: u64 = 1 << 20;

/// Most files that are compared for one action.
const COMPARED_FILES: usize = 64;

/// The most files that one action checks for a process that has them open for writing.
const ASKED_FILES: usize = 64;

/// The time after its last change for which a file may have a dirty page: the kernel writes pages back within some 35 s, and the next
/// store moves the time again. Not on a file system in memory, whose pages stay dirty.
const DIRTY_FOR: i64 = 120_000_000_000;

/// Bytes that are hashed between two calls of `control`.
const PIECE: usize = 1 << 20;

/// Files whose content is doubted, those named by themselves first.
pub(super) struct Doubts {
    /// The file system's clock when the doubts began, in nanoseconds.
    now: i64,
    /// Files whose content is compared.
    compared: Vec<(RelPath, KnownFile)>,
    /// Files of databases: compared as far as there is room, else asked about.
    databases: Vec<(RelPath, KnownFile)>,
    /// Files of which the kernel is asked for writers, with a weight: the greater, the earlier.
    asked: Vec<(i64, RelPath, KnownFile)>,
}

impl Doubts {
    /// Makes an empty set of doubts.
    pub(super) fn new() -> Doubts {
        Doubts { now: file_clock(), compared: Vec::new(), databases: Vec::new(), asked: Vec::new() }
    }

    /// Doubts a file that is named by itself.
    pub(super) fn named(&mut self, path: &RelPath, known: &KnownFile) {
        if !is_doubtful(known) {
            return;
        }
        if known.stamp.size <= COMPARED_BYTES && self.compared.len() < COMPARED_FILES {
            self.compared.push((path.clone(), *known));
        } else if self.asked.len() < ASKED_FILES {
            self.asked.push((i64::MAX, path.clone(), *known));
        }
    }

    /// Doubts a file that is named by itself, and whose stamp proves nothing because it was read too shortly after its last change.
    /// `false` if it is not compared: then it has to be captured again.
    pub(super) fn unproven(&mut self, path: &RelPath, known: &KnownFile) -> bool {
        let is_compared = is_file(known) && known.stamp.size <= COMPARED_BYTES && self.compared.len() < COMPARED_FILES;
        if is_compared {
            self.compared.push((path.clone(), *known));
        }
        is_compared
    }

    /// Doubts a file below a directory that is named, if it is a database's or was written a moment ago.
    pub(super) fn below(&mut self, path: &RelPath, known: &KnownFile) {
        if !self.matters_below(path.name(), known) {
            return;
        }
        if database::is_database(path.name()) && self.databases.len() < COMPARED_FILES {
            self.databases.push((path.clone(), *known));
        } else {
            self.asked.push((newest(known), path.clone(), *known));
        }
    }

    /// Returns true if a file of this name is doubted below a named directory.
    pub(super) fn matters_below(&self, name: &[u8], known: &KnownFile) -> bool {
        (self.is_recent(known) || database::is_database(name)) && is_doubtful(known)
    }

    /// Doubts a file that an event says was closed after writing, if it was written a moment ago.
    pub(super) fn closed_after_writing(&mut self, path: &RelPath, known: &KnownFile) {
        let small = known.stamp.size <= COMPARED_BYTES && self.compared.len() < COMPARED_FILES;
        if small && is_doubtful(known) && self.is_recent(known) {
            self.compared.push((path.clone(), *known));
        }
    }

    fn is_recent(&self, known: &KnownFile) -> bool {
        newest(known).saturating_add(DIRTY_FOR) > self.now
    }

    /// Returns the files that are not what was captured, or may not be.
    ///
    /// # Errors
    /// `shutting-down` when `control` said so.
    pub(super) fn settle(mut self, root: &Root, control: Interrupt<'_>) -> Result<Vec<RelPath>> {
        let mut found = Vec::new();
        let room = COMPARED_FILES.saturating_sub(self.compared.len());
        for (n, (path, known)) in self.databases.into_iter().enumerate() {
            if n < room && known.stamp.size <= COMPARED_BYTES {
                self.compared.push((path, known));
            } else {
                self.asked.push((i64::MAX, path, known));
            }
        }
        for (path, known) in self.compared {
            if is_other(root, &path, &known, control)? {
                found.push(path);
            }
        }
        self.asked.sort_by_key(|(weight, _, _)| std::cmp::Reverse(*weight));
        for (_, path, known) in self.asked.into_iter().take(ASKED_FILES) {
            // Something else may stand there by now, which is not to be opened.
            let is_there = root.lstat(&path).is_ok_and(|stat| stamp_of(&stat) == known.stamp);
            let is_written = || root.open_file(&path).map_or(true, |file| lease::is_written(file.as_fd()));
            // A large one is not read twice.
            let other = || match known.stamp.size > COMPARED_BYTES {
                true => Ok(true),
                false => is_other(root, &path, &known, control),
            };
            if !is_there || (is_written() && other()?) {
                found.push(path);
            }
        }
        Ok(found)
    }
}

/// Returns true if only a stamp speaks for a file's content. A link's content moves with its inode.
fn is_doubtful(known: &KnownFile) -> bool {
    known.proven && is_file(known) && known.stamp.size > 0
}

fn is_file(known: &KnownFile) -> bool {
    known.stamp.mode & libc::S_IFMT == libc::S_IFREG
}

/// Returns the newest of a file's times.
pub(super) fn newest(known: &KnownFile) -> i64 {
    known.stamp.mtime.max(known.stamp.ctime)
}

/// Returns true if a file differs from its captured content, or cannot be read.
///
/// # Errors
/// `shutting-down` when `control` said so; a large file is read piece by piece.
pub(super) fn is_other(root: &Root, path: &RelPath, known: &KnownFile, control: Interrupt<'_>) -> Result<bool> {
    unless_stopped(control)?;
    let size = known.stamp.size;
    if size <= COMPARED_BYTES {
        return Ok(match read::whole(root, path, COMPARED_BYTES) {
            Ok(content) => !ObjectId::of(ObjectKind::Blob, &content.bytes).is_ok_and(|id| id == known.id),
            Err(Refusal::Gone | Refusal::Skip(_) | Refusal::Fatal(_)) => true,
        });
    }
    let Ok(file) = root.open_file(path) else { return Ok(true) };
    let (mut file, mut left) = (std::fs::File::from(file).take(size.saturating_add(1)), size);
    let mut hasher = ObjectHasher::new(ObjectKind::Blob, size);
    let mut piece = vec![0; PIECE];
    loop {
        unless_stopped(control)?;
        match file.read(&mut piece) {
            Ok(0) => return Ok(left > 0 || !hasher.finish().is_ok_and(|id| id == known.id)),
            Ok(n) if n as u64 > left => return Ok(true),
            Ok(n) => {
                left -= n as u64;
                hasher.update(&piece[..n]);
            }
            Err(_) => return Ok(true),
        }
    }
}

/// Returns the files at and below `targets` of which `known` holds something else than the disk although their times
/// prove it, as far as that is looked for.
///
/// # Errors
/// When the root cannot be opened; `shutting-down` when `control` said so.
pub fn rewritten(root: &Path, known: &KnownPaths, targets: &[Target], control: Interrupt<'_>) -> Result<Vec<RelPath>> {
    let (mut doubts, open) = (Doubts::new(), Root::open(root)?);
    // One whose stamp has moved is read anyway.
    let as_captured =
        |path: &RelPath, known: &KnownFile| open.lstat(path).is_ok_and(|stat| stamp_of(&stat) == known.stamp);
    for target in targets {
        match known.get(&target.path) {
            Some(itself) if !as_captured(&target.path, itself) => {}
            Some(itself) => doubts.named(&target.path, itself),
            None if target.recursive => {
                let below = known.below(&target.path).iter().filter(|(path, _)| path.starts_with(&target.path));
                below.for_each(|(path, known)| doubts.below(path, known));
            }
            None => {}
        }
    }
    let found = doubts.settle(&open, control)?;
    Ok(found.into_iter().collect::<BTreeSet<RelPath>>().into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::interrupt::Flow;
    use crate::worktree::probe::probe;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    /// Returns what would be known of a file that a mapping wrote to later: its stamp, and another content.
    fn known(root: &Path, name: &str, content: &[u8]) -> (RelPath, KnownFile) {
        let path = path(name);
        let stamp = probe(root, &path).unwrap().unwrap().stamp;
        (path, KnownFile { stamp, id: ObjectId::of(ObjectKind::Blob, content).unwrap(), proven: true, private: false })
    }

    fn found(root: &Path, known: Vec<(RelPath, KnownFile)>, targets: &[(&str, bool)]) -> Vec<String> {
        let targets: Vec<Target> =
            targets.iter().map(|(name, recursive)| Target { path: path(name), recursive: *recursive }).collect();
        let found = rewritten(root, &KnownPaths::new(known), &targets, &|| Flow::Continue).unwrap();
        found.iter().map(RelPath::display).collect()
    }

    #[test]
    fn named_files_and_databases_are_compared_and_others_below_are_asked_for_writers() {
        signal_hook::flag::register(signal_hook::consts::SIGIO, std::sync::Arc::default()).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        std::fs::create_dir(root.join("d")).unwrap();
        for name in ["a", "b", "d/a", "d/x.db", "d/w"] {
            std::fs::write(root.join(name), "now").unwrap();
        }
        let all = || ["a", "d/a", "d/x.db", "d/w"].map(|name| known(root, name, b"old")).to_vec();
        let mut same = all();
        same.push(known(root, "b", b"now"));
        assert_eq!(found(root, same.clone(), &[("a", true), ("b", false), ("gone", true)]), ["a"]);
        // No process has `d/a` open for writing, which the kernel tells the owner on file systems with leases.
        let alone = !lease::is_written(std::fs::File::open(root.join("d/a")).unwrap().as_fd());
        let _writer = std::fs::File::options().append(true).open(root.join("d/w")).unwrap();
        let expected: &[&str] = if alone { &["d/w", "d/x.db"] } else { &["d/a", "d/w", "d/x.db"] };
        assert_eq!(found(root, same.clone(), &[("d", true)]), expected);
        assert_eq!(found(root, same, &[("", true)]), expected);
        // An unproven file is read anyway.
        let unproven = all().into_iter().map(|(path, known)| (path, KnownFile { proven: false, ..known })).collect();
        assert_eq!(found(root, unproven, &[("a", true), ("d", true)]), [""; 0]);
    }

    #[test]
    fn what_is_compared_is_bounded() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let names: Vec<String> = (0..200).map(|n| format!("f{n:03}")).collect();
        names.iter().for_each(|name| std::fs::write(root.join(name), "now").unwrap());
        let all: Vec<_> = names.iter().map(|name| known(root, name, b"old")).collect();
        let targets: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), true)).collect();
        let alone = !lease::is_written(std::fs::File::open(root.join("f000")).unwrap().as_fd());
        assert_eq!(found(root, all, &targets).len(), if alone { COMPARED_FILES } else { COMPARED_FILES + ASKED_FILES });
    }

    #[test]
    fn large_files_are_read_in_pieces() {
        let temp = tempfile::tempdir().unwrap();
        let (old, now) = (vec![b'a'; 3 << 20], [vec![b'a'; (3 << 20) - 1], vec![b'b']].concat());
        std::fs::write(temp.path().join("f"), &now).unwrap();
        let root = Root::open(temp.path()).unwrap();
        for (content, other) in [(&now, false), (&old, true)] {
            let (path, known) = known(temp.path(), "f", content);
            assert_eq!(is_other(&root, &path, &known, &|| Flow::Continue).unwrap(), other);
            let longer = KnownFile { stamp: crate::model::stamp::Stamp { size: 2 << 20, ..known.stamp }, ..known };
            assert!(is_other(&root, &path, &longer, &|| Flow::Continue).unwrap(), "cut short");
            let calls = std::cell::Cell::new(0);
            let stop = || {
                calls.set(calls.get() + 1);
                if calls.get() > 2 { Flow::Stop } else { Flow::Continue }
            };
            assert!(is_other(&root, &path, &known, &stop).is_err());
        }
    }
}
