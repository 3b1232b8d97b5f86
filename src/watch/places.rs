//! The watched directories. Each gets its watch first and is listed after, so that nothing is missed in between.
//!
//! Every directory has a watch of its own in one instance of notify, so the caller's rules decide which directories
//! cost none. A directory that cannot be watched is *uncovered*: it counts as changed at every sync.
//!
//! notify knows watches by their paths. When a directory is removed or moved, notify drops the watches below it by
//! itself. A second request for a path that it knows does nothing. A watch may have been placed while the event of its
//! directory's removal was still queued. It is therefore removed by name before it is placed again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::{ErrorKind, PathOp, RecommendedWatcher, RecursiveMode, WatchPathConfig, Watcher};

use super::WatchRules;
use super::git_files;
use crate::model::path::RelPath;
use crate::sys::fs::dir::Dir;
use crate::sys::mount;

/// The number of directories that get their watches together, before they are listed.
const BATCH: usize = 256;

/// To remove one watch, notify looks at every other. Starting afresh and scanning costs as much as removing this many.
const MANY: usize = 200;

/// Fewer looks than this cost too little to matter.
const CHEAP_LOOKS: usize = 400_000;

/// The reason why a directory has no watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncovered {
    /// The system (or the option) allows no more watches.
    Limit,
    /// It cannot be opened, or its path is too long.
    Unreadable,
    /// It is on a file system whose changes this kernel does not all see.
    Foreign(&'static str),
    /// It is the same directory as another that is watched: a bind mount.
    Twin,
}

impl fmt::Display for Uncovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncovered::Limit => f.write_str("no watches are left"),
            Uncovered::Unreadable => f.write_str("cannot be read"),
            Uncovered::Foreign(name) => write!(f, "on a {name} file system"),
            Uncovered::Twin => f.write_str("mounted twice"),
        }
    }
}

/// A watched directory: device and inode, and in which round its watch was placed.
struct Placed {
    identity: (u64, u64),
    round: u64,
}

/// One instance of notify and its watches.
pub(super) struct Places {
    notify: RecommendedWatcher,
    root: Arc<Path>,
    dir: Dir,
    /// Device and inode of the root.
    identity: (u64, u64),
    placed: BTreeMap<RelPath, Placed>,
    by_identity: HashMap<(u64, u64), RelPath>,
    uncovered: BTreeMap<RelPath, Uncovered>,
    budget: usize,
    round: u64,
    worn: bool,
}

impl Places {
    /// Watches the cookies' directory, and nothing else yet.
    pub(super) fn new(
        mut notify: RecommendedWatcher,
        root: &Arc<Path>,
        cookies: &Path,
        budget: usize,
    ) -> notify::Result<Places> {
        notify.watch_with(cookies, config())?;
        let failed = |error: crate::error::Error| notify::Error::generic(&error.text());
        let dir = Dir::open_root(root).map_err(failed)?;
        let facts = dir.stat_self().map_err(failed)?;
        Ok(Places {
            notify,
            root: Arc::clone(root),
            dir,
            identity: (facts.dev, facts.ino),
            placed: BTreeMap::new(),
            by_identity: HashMap::new(),
            uncovered: BTreeMap::new(),
            budget,
            round: 0,
            worn: false,
        })
    }

    /// Tells whether the root's path still leads to the watched directory.
    pub(super) fn root_stands(&self) -> bool {
        let found = Dir::open_root(&self.root).and_then(|dir| dir.stat_self());
        found.is_ok_and(|facts| (facts.dev, facts.ino) == self.identity)
    }

    /// Returns the number of watches.
    pub(super) fn watches(&self) -> usize {
        self.placed.len()
    }

    /// Returns the directories that are not watched, with the reasons.
    pub(super) fn uncovered(&self) -> &BTreeMap<RelPath, Uncovered> {
        &self.uncovered
    }

    /// Tells whether `path` is a directory the watcher knows of.
    pub(super) fn is_dir(&self, path: &RelPath) -> bool {
        self.placed.contains_key(path) || self.uncovered.contains_key(path)
    }

    /// Returns how many directories may be removed before a new instance is cheaper than removing each watch.
    pub(super) fn patience(&self) -> usize {
        patience(self.placed.len())
    }

    /// Estimates the time that it takes to place all watches anew.
    pub(super) fn restart_costs(&self) -> Duration {
        Duration::from_millis(20) + Duration::from_micros(15) * u32::try_from(self.placed.len()).unwrap_or(u32::MAX)
    }

    /// Tells whether so many watches have to be removed that a new instance is cheaper.
    pub(super) fn is_worn(&self) -> bool {
        self.worn
    }

    /// Begins a new round with the events since the last one: `gone` are names that were removed or moved away, `came` are new
    /// names. Returns the names of `gone` at which a directory exists now; the caller must watch it.
    ///
    /// The kernel reports the end of a replaced directory only when its last user has closed it. By then another directory may
    /// have the name, and may have been watched in an earlier round. The late event must not take that watch away for good.
    pub(super) fn begin(&mut self, gone: &BTreeSet<RelPath>, came: &BTreeSet<RelPath>) -> BTreeSet<RelPath> {
        self.round += 1;
        if gone.is_empty() && came.is_empty() {
            return BTreeSet::new();
        }
        let existing = self.existing_dirs(gone);
        // Even with no watch to remove, notify is called: it answers after it has dropped the removed directories
        // itself.
        let mut misplaced = Vec::new();
        for top in gone {
            for path in self.below(top) {
                let is_recent = self.forget(&path).is_some_and(|placed| placed.round + 1 >= self.round);
                if is_recent || existing.contains(top) {
                    misplaced.push(path);
                }
            }
            for path in keys_below(&self.uncovered, top) {
                self.uncovered.remove(&path);
            }
        }
        self.unwatch(misplaced);
        self.distrust(came);
        existing
    }

    /// Returns the names at which a directory exists, or may exist where piton cannot look.
    fn existing_dirs(&self, names: &BTreeSet<RelPath>) -> BTreeSet<RelPath> {
        let mut missing: Option<&RelPath> = None;
        let mut existing = BTreeSet::new();
        for name in names {
            // Names are in order: a removed tree costs one look, at its top.
            if missing.is_some_and(|missing| name.starts_with(missing)) {
                continue;
            }
            if self.may_be_dir(name) {
                existing.insert(name.clone());
            } else {
                missing = Some(name);
            }
        }
        existing
    }

    /// Removes the watches of names that events reported as new. A watch that was placed before such an event may
    /// belong to something else that had the name then, even to a file.
    fn distrust(&mut self, came: &BTreeSet<RelPath>) {
        for path in came.iter().filter(|path| !path.is_root()) {
            if self.placed.contains_key(path) {
                self.let_go(path);
            }
        }
    }

    /// Watches `tops` and the directories below them that the rules admit. Returns those that the deadline left out.
    pub(super) fn place(&mut self, tops: BTreeSet<RelPath>, rules: WatchRules<'_>, deadline: Instant) -> Vec<RelPath> {
        let may_be_dir = |top: &RelPath| top.is_root() || self.is_dir(top) || self.may_be_dir(top);
        let mut next: Vec<RelPath> =
            tops.into_iter().filter(|top| top.is_root() || admits(top, rules)).filter(may_be_dir).collect();
        while !next.is_empty() && !self.worn {
            let batch = next.split_off(next.len().saturating_sub(BATCH));
            let refused = self.watch(&batch);
            for path in batch {
                let refused = refused.get(&path).copied();
                self.settle(path, refused, rules, &mut next);
            }
            // Checked only after a batch: even with no time left, each call makes some progress.
            if Instant::now() >= deadline {
                return next;
            }
        }
        Vec::new()
    }

    /// Tells whether a new name may be a directory. If a file becomes a directory later, its parent's watch reports it.
    /// A watch on a file would have to be removed again, which costs a look at every other watch.
    fn may_be_dir(&self, path: &RelPath) -> bool {
        !matches!(self.dir.find_dir(path.to_path()), Ok(None))
    }

    /// Gives watches to the directories that have none. Returns those that got none, with the reasons.
    fn watch(&mut self, batch: &[RelPath]) -> HashMap<RelPath, Uncovered> {
        let mut refused = HashMap::new();
        let wanted: Vec<&RelPath> = batch.iter().filter(|path| !self.placed.contains_key(path)).collect();
        let room = self.budget.saturating_sub(self.placed.len()).min(wanted.len());
        let (mut wanted, over) = wanted.split_at(room);
        refused.extend(over.iter().map(|path| ((*path).clone(), Uncovered::Limit)));
        while !wanted.is_empty() {
            let ops = wanted.iter().map(|path| PathOp::Watch(self.at(path), config())).collect();
            let Err(failed) = self.notify.update_paths(ops) else { break };
            let tried = wanted.len().saturating_sub(failed.remaining.len()).max(1);
            let (limit, failing) = (matches!(failed.source.kind, ErrorKind::MaxFilesWatch), wanted[tried - 1]);
            wanted = if failed.origin.is_some() { &wanted[tried..] } else { &[] };
            let why = if limit { Uncovered::Limit } else { Uncovered::Unreadable };
            refused.insert(failing.clone(), why);
            if limit || failed.origin.is_none() {
                refused.extend(wanted.iter().map(|path| ((*path).clone(), why)));
                break;
            }
        }
        refused
    }

    /// Checks that a path with a new watch is a directory of the workspace, and adds the directories below it to
    /// `next`.
    fn settle(&mut self, path: RelPath, refused: Option<Uncovered>, rules: WatchRules<'_>, next: &mut Vec<RelPath>) {
        let known = self.placed.contains_key(&path);
        let dir = match self.dir.find_dir(path.to_path()) {
            Ok(Some(dir)) => dir,
            // Not a directory, or removed again: an event will report it, or has done so.
            Ok(None) if refused.is_some() => {
                self.uncovered.remove(&path);
                return;
            }
            Ok(None) => return self.let_go(&path),
            Err(_) => return self.uncover(path, refused.unwrap_or(Uncovered::Unreadable)),
        };
        if let Some(why) = refused {
            return self.uncover(path, why);
        }
        let (Ok(facts), Ok(names)) = (dir.stat_self(), dir.subdirs()) else {
            return self.uncover(path, Uncovered::Unreadable);
        };
        let identity = (facts.dev, facts.ino);
        if known && self.placed.get(&path).is_some_and(|placed| placed.identity != identity) {
            // Replaced, and the event is still queued: the watch is placed again now, and once more when the event
            // comes.
            self.let_go(&path);
            return next.push(path);
        }
        if let Some(other) = self.by_identity.get(&identity).filter(|other| **other != path).cloned() {
            let there = self.dir.find_dir(other.to_path()).ok().flatten().and_then(|dir| dir.stat_self().ok());
            if there.is_some_and(|there| (there.dev, there.ino) == identity) {
                // Both are uncovered, because no event reports the end of the mount.
                self.uncover(other, Uncovered::Twin);
                return self.uncover(path, Uncovered::Twin);
            }
            // Moved from there, and the event is still queued.
            self.let_go(&other);
        }
        if facts.dev != self.identity.0
            && let Some(name) = mount::foreign(&self.at(&path)).unwrap_or(Some("unknown"))
        {
            return self.uncover(path, Uncovered::Foreign(name));
        }
        self.uncovered.remove(&path);
        if !known {
            self.by_identity.insert(identity, path.clone());
            self.placed.insert(path.clone(), Placed { identity, round: self.round });
        }
        for name in names {
            let child = path.join(&name);
            if admits(&child, rules) {
                next.push(child);
            } else if self.is_dir(&child) {
                self.let_go(&child);
            }
        }
    }

    /// Removes the watches at and below a path.
    fn let_go(&mut self, path: &RelPath) {
        let mut paths = self.below(path);
        for path in &paths {
            self.forget(path);
        }
        for path in keys_below(&self.uncovered, path) {
            self.uncovered.remove(&path);
        }
        if !paths.contains(path) {
            paths.push(path.clone());
        }
        self.unwatch(paths);
    }

    fn uncover(&mut self, path: RelPath, why: Uncovered) {
        self.let_go(&path);
        self.uncovered.insert(path, why);
    }

    fn forget(&mut self, path: &RelPath) -> Option<Placed> {
        let placed = self.placed.remove(path)?;
        if self.by_identity.get(&placed.identity) == Some(path) {
            self.by_identity.remove(&placed.identity);
        }
        Some(placed)
    }

    fn unwatch(&mut self, paths: Vec<RelPath>) {
        // These are already gone from `placed`, but notify still has them, so they count for its costs.
        if paths.len() > patience(self.placed.len() + paths.len()) {
            self.worn = true;
            return;
        }
        let mut ops: Vec<PathOp> = paths.iter().map(|path| PathOp::unwatch(self.at(path))).collect();
        // notify has dropped most of these by itself. It stops at the first such watch with an error, so the rest is
        // tried again.
        while let Err(failed) = self.notify.update_paths(std::mem::take(&mut ops)) {
            if failed.origin.is_none() {
                self.worn = true;
            }
            ops = failed.remaining;
        }
    }

    fn below(&self, path: &RelPath) -> Vec<RelPath> {
        keys_below(&self.placed, path)
    }

    fn at(&self, path: &RelPath) -> PathBuf {
        path.under(&self.root)
    }
}

/// Returns how many of so many watches may be removed one by one.
fn patience(watches: usize) -> usize {
    (CHEAP_LOOKS / watches.max(1)).max(MANY)
}

/// Returns the path and those below it, as far as they are in the map.
fn keys_below<T>(map: &BTreeMap<RelPath, T>, path: &RelPath) -> Vec<RelPath> {
    let inside = map.range(path.inside_bound()..).map(|(below, _)| below);
    let inside = inside.take_while(|below| below.starts_with(path)).filter(|below| *below != path);
    map.get_key_value(path).map(|(own, _)| own).into_iter().chain(inside).cloned().collect()
}

fn admits(path: &RelPath, rules: WatchRules<'_>) -> bool {
    git_files::admits(path).unwrap_or_else(|| rules(path))
}

fn config() -> WatchPathConfig {
    WatchPathConfig::new(RecursiveMode::NonRecursive).with_dereference_symlinks(false)
}
