//! One capture: walk, choose, read, put together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Instant;

use super::beneath::Root;
use super::hash::{self, Job};
use super::probe::perm_of;
use super::read::{self, HeldStill, ReadMark, Refusal, SizeLimits, Stored};
use super::request::{Capture, PrivatePart, Request, Sinks, Stats, Visits};
use super::select;
use super::stopped::unless_stopped;
use super::units::{self, Unit};
use super::walk::{self, Candidate, Class, ContentSource, Visited, WalkResult, identity};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::coverage::{Coverage, Defaults, SkipReason};
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::stamp::{KnownFile, KnownPaths};
use crate::model::tree::Mode;
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::memory;
use crate::sys::progress::{Amount, Stage, WorkControl};

/// Captures the work tree: what `request` covers is in the manifests, its content in `sinks`.
///
/// `control` is called often from the calling thread, between files and while worker threads read; urgent work can be
/// done in it. The calling thread itself opens only links and ignore files.
///
/// # Errors
/// `workspace-gone` when the root is no directory, `workspace-refused` when it is or lies in a directory never to be
/// captured, `shutting-down` when `control` said so, and the sink's errors. Trouble with the user's files is none: it
/// is in the coverage.
pub fn capture(request: &Request<'_>, sinks: Sinks<'_>, control: Interrupt<'_>) -> Result<Capture> {
    refuse_never(request)?;
    if request.is_deleted {
        return Ok(Gathered::default().finish(request, WalkResult::default()));
    }
    let root = open_root(request.root)?;
    let started = Instant::now();
    request.progress.begin(Stage::Listing, Amount::UNKNOWN);
    let mut found = walk::walk(request, &root, control)?;
    // Before any content is read: a capture over the limit must not first read all of it.
    select::guard(&mut found, request.limits.files);
    let walked = Instant::now();
    let mut files = std::mem::take(&mut found.files);
    let mut gathered = Gathered::with_room(files.len());
    gathered.read(request, &root, &mut files, sinks, control)?;
    gathered.skipped.append(&mut found.skipped);
    let count = files.len() as u64;
    // Freed on another thread: the list of a large workspace takes milliseconds.
    memory::drop_beside(files, count);
    let mut capture = gathered.finish(request, found);
    capture.stats.walk_us = (walked - started).as_micros() as u64;
    capture.stats.hash_us = walked.elapsed().as_micros() as u64;
    Ok(capture)
}

/// Opens the root of a workspace.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn open_root(path: &Path) -> Result<Root> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Root::open(path),
        Ok(_) => Err(Error::new(Code::WorkspaceGone, "the workspace is not a directory").path(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Error::new(Code::WorkspaceGone, "the workspace no longer exists").path(path))
        }
        Err(error) => Err(Error::io(error, "reading the workspace", path)),
    }
}

/// Refuses a root that is piton's home or lies inside of it.
pub(super) fn refuse_never(request: &Request<'_>) -> Result<()> {
    let never: Vec<(u64, u64)> = request.never.iter().filter_map(|path| identity(path)).collect();
    if never.is_empty() || !request.root.exists() {
        return Ok(());
    }
    let real = request.root.canonicalize().at("resolving the workspace", request.root)?;
    for dir in real.ancestors() {
        // An ancestor that cannot be looked at is not one of piton's own directories.
        let found = std::fs::metadata(dir).ok().map(|meta| (meta.dev(), meta.ino()));
        if found.is_some_and(|found| never.contains(&found)) {
            return Err(Error::new(Code::WorkspaceRefused, "piton's own store is never captured").path(request.root));
        }
    }
    Ok(())
}

/// From so many files on, a second thread is worth its beginning.
const MANY: usize = if cfg!(test) { 8 } else { 8192 };

/// The part of a capture that was read so far.
#[derive(Default)]
pub(super) struct Gathered {
    /// Captured paths, in any order.
    pub(super) entries: Vec<(RelPath, ManifestEntry)>,
    /// Captured private paths, in any order.
    pub(super) private: Vec<(RelPath, ManifestEntry)>,
    /// The facts of captured files, for the next capture.
    pub(super) known: Vec<(RelPath, KnownFile)>,
    /// Paths that are left out, with the reasons.
    pub(super) skipped: BTreeMap<RelPath, SkipReason>,
    /// Files that never held still while they were read.
    pub(super) unstable: Vec<RelPath>,
    /// The private ones of those.
    pub(super) unstable_private: Vec<RelPath>,
    /// Paths that only a target brought in, with their ctimes.
    targeted: Vec<(RelPath, i64)>,
    /// Paths that only patterns of tracked files brought in.
    wanted: Vec<RelPath>,
    pub(super) stats: Stats,
}

impl Gathered {
    fn with_room(files: usize) -> Gathered {
        Gathered { entries: Vec::with_capacity(files), known: Vec::with_capacity(files), ..Gathered::default() }
    }

    /// Reads the files that may have changed.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn read(
        &mut self,
        request: &Request<'_>,
        root: &Root,
        files: &mut [Candidate],
        sinks: Sinks<'_>,
        control: Interrupt<'_>,
    ) -> Result<()> {
        let units = units::of(files);
        let files = &*files;
        let together: HashSet<usize> = units.iter().flat_map(|unit| unit.files.iter().copied()).collect();
        let cap = |file: &Candidate| if file.targeted { u64::MAX } else { request.limits.file_bytes };
        let (mut jobs, mut private) = (Vec::new(), Vec::new());
        for index in self.reuse(files, control)?.into_iter().filter(|index| !together.contains(index)) {
            let file = &files[index];
            match &file.source {
                ContentSource::Known(_) => {}
                ContentSource::Held(held) => {
                    let sink = if file.class.is_private() { (sinks.local)()? } else { sinks.shared };
                    self.settle(file, read::store_bytes(&held.0, held.1, sink))?;
                }
                ContentSource::Unread => (if file.class.is_private() { &mut private } else { &mut jobs }).push(Job {
                    index,
                    path: &file.path,
                    cap: cap(file),
                    size: file.stamp.size,
                }),
            }
        }
        let control = WorkControl { interrupt: control, progress: request.progress };
        for done in hash::run(root, &jobs, request.limits.memory, sinks.shared, control)? {
            self.settle(&files[done.index], done.outcome)?;
        }
        for unit in &units {
            unless_stopped(control.interrupt)?;
            self.read_unit(root, (unit, files), &cap, sinks)?;
        }
        if private.is_empty() {
            return Ok(());
        }
        for done in hash::run(root, &private, request.limits.memory, (sinks.local)()?, control)? {
            self.settle(&files[done.index], done.outcome)?;
        }
        Ok(())
    }

    /// Reads the files of a database together. `cap` is the largest size of a file, in bytes.
    fn read_unit(
        &mut self,
        root: &Root,
        (unit, files): (&Unit, &[Candidate]),
        cap: &dyn Fn(&Candidate) -> u64,
        sinks: Sinks<'_>,
    ) -> Result<()> {
        let sink = |file: &Candidate| if file.class.is_private() { (sinks.local)() } else { Ok(sinks.shared) };
        if unit.is_small(files) {
            for (index, content) in unit.read(root, &mut |at| read::whole(root, &files[at].path, cap(&files[at]))) {
                let sink = sink(&files[index])?;
                let stored = content.and_then(|content| read::store_bytes(&content.bytes, content.mark, sink));
                self.settle(&files[index], stored)?;
            }
            return Ok(());
        }
        let mut store = |at: usize| {
            let file = &files[at];
            let limits = SizeLimits { cap: cap(file), whole: read::WHOLE };
            read::store(root, &file.path, limits, sink(file).map_err(Refusal::Fatal)?)
        };
        for (index, stored) in unit.read(root, &mut store) {
            self.settle(&files[index], stored)?;
        }
        Ok(())
    }

    /// Takes those whose content is known, many of them on two threads; where the others stand.
    fn reuse(&mut self, files: &[Candidate], control: Interrupt<'_>) -> Result<Vec<usize>> {
        let (first, second) = files.split_at(if files.len() < MANY { files.len() } else { files.len() / 2 });
        std::thread::scope(|scope| {
            let beside = move || {
                let mut gathered = Gathered::with_room(second.len());
                let others = gathered.reuse_in_turn(second, &|| Flow::Continue);
                (gathered, others)
            };
            let thread = if second.is_empty() { None } else { Builder::new().spawn_scoped(scope, beside).ok() };
            let mut others = self.reuse_in_turn(first, control)?;
            let (gathered, more) = match thread.map(ScopedJoinHandle::join) {
                Some(Ok(found)) => found,
                // Without a thread, or after a bug in it, here.
                _ => beside(),
            };
            self.entries.extend(gathered.entries);
            self.private.extend(gathered.private);
            self.known.extend(gathered.known);
            self.targeted.extend(gathered.targeted);
            self.wanted.extend(gathered.wanted);
            self.stats.add(&gathered.stats);
            others.extend(more?.into_iter().map(|index| first.len() + index));
            Ok(others)
        })
    }

    fn reuse_in_turn(&mut self, files: &[Candidate], control: Interrupt<'_>) -> Result<Vec<usize>> {
        let mut others = Vec::new();
        for (index, file) in files.iter().enumerate() {
            // The interrupt may take a lock, so it is not checked for every file.
            if index % 64 == 0 {
                unless_stopped(control)?;
            }
            match file.source {
                ContentSource::Known(id) => self.reused(file, id),
                ContentSource::Held(_) | ContentSource::Unread => others.push(index),
            }
        }
        Ok(others)
    }

    fn reused(&mut self, file: &Candidate, id: ObjectId) {
        self.stats.reused += 1;
        let mark = ReadMark { stamp: file.stamp, held: HeldStill::Proven };
        let bytes = file.stamp.size;
        self.take(file, Stored { id, bytes, mark });
    }

    fn settle(&mut self, file: &Candidate, outcome: Result<Stored, Refusal>) -> Result<()> {
        match outcome {
            Ok(stored) => {
                self.stats.hashed += 1;
                self.stats.hashed_bytes += stored.bytes;
                self.take(file, stored);
            }
            Err(Refusal::Fatal(error)) => return Err(error),
            Err(Refusal::Gone) if !file.targeted => {}
            Err(Refusal::Gone) => _ = self.skipped.insert(file.path.clone(), SkipReason::Vanished),
            Err(Refusal::Skip(reason)) => _ = self.skipped.insert(file.path.clone(), reason),
        }
        Ok(())
    }

    fn take(&mut self, file: &Candidate, stored: Stored) {
        let Stored { id, bytes, mark } = stored;
        let perm = perm_of(mark.stamp.mode);
        let kind = if mark.stamp.mode & libc::S_IFMT == libc::S_IFLNK { EntryKind::Link } else { EntryKind::File };
        let entry = ManifestEntry { kind, perm, id, size: bytes };
        let is_private = file.class.is_private();
        if !is_private {
            self.stats.files += 1;
            self.stats.bytes += bytes;
        }
        if mark.held == HeldStill::Never {
            let unstable = if is_private { &mut self.unstable_private } else { &mut self.unstable };
            unstable.push(file.path.clone());
        }
        if file.class == Class::Wanted {
            self.stats.targeted += 1;
            self.wanted.push(file.path.clone());
        } else if file.class == Class::Targeted {
            self.stats.targeted += 1;
            self.targeted.push((file.path.clone(), mark.stamp.ctime));
        } else {
            let proven = mark.held == HeldStill::Proven;
            self.known.push((file.path.clone(), KnownFile { stamp: mark.stamp, id, proven, private: is_private }));
        }
        self.stats.private += u64::from(is_private);
        let entries = if is_private { &mut self.private } else { &mut self.entries };
        entries.push((file.path.clone(), entry));
    }

    fn finish(mut self, request: &Request<'_>, found: WalkResult) -> Capture {
        self.retain_known(request);
        let many = self.known.len() >= MANY;
        let known = Mutex::new(std::mem::take(&mut self.known));
        let ordered = || {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let known = KnownPaths::new(std::mem::take(&mut *known));
            (known == *request.known, known)
        };
        std::thread::scope(|scope| {
            let thread = if many { Builder::new().spawn_scoped(scope, ordered).ok() } else { None };
            let mut capture = self.put_together(request, found);
            let (same, known) = match thread {
                Some(thread) => thread.join().unwrap_or_else(|bug| resume_unwind(bug)),
                None => ordered(),
            };
            (capture.known, capture.same) = (Arc::new(known), same);
            capture
        })
    }

    /// Returns all but what is known.
    fn put_together(mut self, request: &Request<'_>, mut found: WalkResult) -> Capture {
        let mut private = self.private_part(request, &mut found);
        let dir = |visited: &Visited| (visited.place.path.clone(), ManifestEntry::dir(visited.perm));
        let (recorded, passed): (Vec<_>, Vec<_>) =
            found.visited.iter().filter(|visited| !visited.place.path.is_root()).partition(|visited| visited.recorded);
        let mut manifest: Manifest = self.entries.into_iter().chain(recorded.into_iter().map(dir)).collect();
        for visited in passed {
            let (path, entry) = dir(visited);
            if manifest.inside(&path).next().is_some() {
                manifest.insert(path, entry);
            } else if private.manifest.inside(&path).next().is_some() {
                // Only a named file of it is held: the directory comes back with its permissions all the same.
                private.manifest.insert(path, entry);
            }
        }
        private.keep_own(&manifest);
        let is_dated = request.budget.is_sparing() && request.dates;
        let changed =
            if is_dated { last_moved(request.root, &dated(request.root, &manifest)) } else { BTreeMap::new() };
        self.unstable.sort_unstable();
        self.wanted.sort_unstable();
        let coverage = Coverage {
            extent: request.extent.clone(),
            file_cap: request.limits.file_bytes,
            secrets: false,
            excludes: found.excludes,
            configured: request.exclude.to_vec(),
            tracked: Vec::new(),
            read_only: Vec::new(),
            skipped: self.skipped,
            repositories: found.repositories,
            targeted: self.wanted,
            changed,
            private: request.spare.looks,
            unstable: self.unstable,
            defaults: request.defaults.unwrap_or_else(|| usual(&manifest)),
        };
        self.stats.dirs = manifest.len() as u64 - self.stats.files;
        Capture {
            manifest,
            coverage,
            private,
            known: Arc::default(),
            same: false,
            stats: self.stats,
            warnings: found.warnings,
            visits: Visits(found.visited),
        }
    }

    /// Returns the private files, and the directories of theirs that no other part has.
    fn private_part(&mut self, request: &Request<'_>, found: &mut WalkResult) -> PrivatePart {
        let local = found.visited.iter().filter(|visited| visited.place.local && !visited.recorded);
        let dirs = local.map(|visited| (visited.place.path.clone(), ManifestEntry::dir(visited.perm)));
        let manifest = dirs.chain(std::mem::take(&mut self.private)).collect();
        let mut targeted = std::mem::take(&mut self.targeted);
        targeted.sort_unstable();
        let skipped = std::mem::take(&mut found.beyond);
        let changed = if request.dates { last_moved(request.root, &targeted) } else { BTreeMap::new() };
        let targeted = targeted.into_iter().map(|(path, _)| path).collect();
        let mut unstable = std::mem::take(&mut self.unstable_private);
        unstable.sort_unstable();
        let extent = request.extent.clone();
        let coverage = Coverage { extent, skipped, targeted, changed, unstable, ..Coverage::default() };
        PrivatePart { manifest, coverage }
    }

    /// Keeps what was known of paths that could not be taken this time, so that they stay sticky.
    pub(super) fn retain_known(&mut self, request: &Request<'_>) {
        let hindered = self.skipped.iter().filter(|(_, reason)| match reason {
            SkipReason::TooLarge(_) | SkipReason::Unreadable => true,
            SkipReason::Special
            | SkipReason::OverCount
            | SkipReason::Secret
            | SkipReason::LinkedWorktree
            | SkipReason::IgnoredRepository
            | SkipReason::Store
            | SkipReason::OverBudget(_)
            | SkipReason::Generated(_)
            | SkipReason::Repository(_)
            | SkipReason::Collision
            | SkipReason::Vanished
            | SkipReason::Beyond(_)
            | SkipReason::Forgotten => false,
        });
        for (top, _) in hindered {
            let known = request.known.below(top).iter().filter(|(path, _)| path.starts_with(top));
            self.known.extend(known.map(|(path, known)| (path.clone(), KnownFile { proven: false, ..*known })));
        }
    }
}

/// Returns the paths of a capture, each with its ctime.
fn dated(root: &Path, manifest: &Manifest) -> Vec<(RelPath, i64)> {
    manifest.iter().map(|(path, _)| (path.clone(), ctime(&path.under(root)))).collect()
}

/// Returns when a file or directory last changed, by its ctime. Nothing is proven of one that cannot be looked at.
fn ctime(path: &Path) -> i64 {
    let facts = path.symlink_metadata();
    facts.map_or(i64::MAX, |facts| facts.ctime().saturating_mul(1_000_000_000).saturating_add(facts.ctime_nsec()))
}

/// Returns for each path when it last changed or came to its place, by ctimes: its own, and those of the directories above it up
/// to the root of the workspace. A directory that is renamed takes its files along, whose own times stay.
fn last_moved(root: &Path, files: &[(RelPath, i64)]) -> BTreeMap<RelPath, i64> {
    let mut dirs: HashMap<RelPath, i64> = HashMap::new();
    let mut of = |dir: RelPath| *dirs.entry(dir).or_insert_with_key(|dir| ctime(&dir.under(root)));
    let above = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent).filter(|dir| !dir.is_root());
    files.iter().map(|(path, own)| (path.clone(), above(path).map(&mut of).fold(*own, i64::max))).collect()
}

/// Returns the permission bits that most entries of each kind have; git's own where there is no majority.
fn usual(manifest: &Manifest) -> Defaults {
    let mut counts: [BTreeMap<u16, u64>; 3] = Default::default();
    for (_, entry) in manifest.iter() {
        let class = match entry.mode() {
            Mode::File => 0,
            Mode::Executable => 1,
            Mode::Dir => 2,
            Mode::Link => continue,
        };
        *counts[class].entry(entry.perm).or_default() += 1;
    }
    let standard = Defaults::STANDARD;
    let [file, executable, dir] = counts;
    Defaults {
        file: most_frequent(&file).unwrap_or(standard.file),
        executable: most_frequent(&executable).unwrap_or(standard.executable),
        dir: most_frequent(&dir).unwrap_or(standard.dir),
    }
}

/// Returns the one value that is more frequent than every other.
fn most_frequent(counts: &BTreeMap<u16, u64>) -> Option<u16> {
    let most = counts.values().max()?;
    let mut best = counts.iter().filter(|(_, count)| *count == most);
    let (perm, _) = best.next()?;
    best.next().is_none().then_some(*perm)
}

#[cfg(test)]
mod tests;
