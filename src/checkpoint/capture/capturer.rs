//! The memory of a workspace's captures, and the source that reports the changes since.
//!
//! A scan makes the warm tree. A source of changes, once there is one, reports the changes since, and a capture looks
//! at those alone. Every capture scans until a look in idle time has found the changes between the scan and the first
//! reported one. After any error the memory is dropped, and the next capture scans.
//!
//! *Invariant:* a path that an action names is compared with the disk itself, whatever the watcher reports of it.

use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::request::Taken;
use super::seen::SeenChanges;
use super::warmth::Warmth;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::Result;
use crate::model::change::{ChangeSource, Changes, Why};
use crate::model::cost::Cost;
use crate::model::path::RelPath;
use crate::sys::clock::file_clock;
use crate::sys::memory;
use crate::worktree::{Warm, probe};

/// The number of captures whose changes are remembered, for clients that were answered before their capture was
/// finished.
const TOUCHED: usize = 64;

/// The state of capturing one workspace.
#[derive(Default)]
pub(crate) struct Capturer {
    /// The memory of the last capture, by which the next one is cheaper.
    pub(super) warmth: Warmth,
    /// True if a scan keeps its tree in memory, so that changes can be applied to it.
    pub(super) keeps_tree: bool,
    /// The watcher, if one was started; without it every capture scans.
    pub(super) source: Option<TreeSource>,
    /// The watcher's answers, for the log of actions.
    pub(super) seen: SeenChanges,
    /// True while the capture at work scans, whatever the memory promised before it. Read by whoever may stop it.
    pub(super) is_scanning: Arc<AtomicBool>,
    /// True if the memory is newer than the stamps file.
    pub(super) unsaved: bool,
    /// The time of a sync ahead of a capture: all changes before it are in the memory.
    pub(super) synced: Option<Instant>,
    /// The changes that the last captures looked at, and when (the file system's clock).
    touched: VecDeque<(i64, Changes)>,
    /// The place at which the next audit in idle time goes on.
    pub(super) audits: AuditPosition,
    /// The cost of the last checkpoint.
    cost: Option<Cost>,
}

/// A source of changes.
pub(super) struct TreeSource {
    /// The watcher as a plain source of changes.
    port: Box<dyn ChangeSource>,
    /// True if it was started for the present warm tree.
    pub(super) follows_tree: bool,
    /// The paths that it reports each time.
    always: BTreeSet<RelPath>,
    /// True if the last answer was that the root is gone, and it still was.
    is_root_gone: bool,
}

/// The end of the last audit.
#[derive(Default)]
pub(super) struct AuditPosition {
    /// Files that audits have read again.
    pub(super) files: u64,
    /// The moment when the last one began (the file system's clock).
    pub(super) began: Option<i64>,
}

impl TreeSource {
    /// Returns the changes since the last call, under the rules of the tree, and notes them for the log of actions.
    pub(super) fn sync(&mut self, root: &Path, tree: &Warm, seen: &mut SeenChanges) -> Changes {
        let changes = self.port.sync(&|dir| tree.admits(root, dir));
        // While the root is missing nothing more changes in it, although each answer says that it is gone.
        let is_gone = changes == Changes::Everything(Why::RootMoved) && root.symlink_metadata().is_err();
        let was_gone = mem::replace(&mut self.is_root_gone, is_gone);
        let noted = if is_gone && was_gone { &Changes::none() } else { &changes };
        // Paths that are reported each time do not tell when they changed.
        seen.note(noted, &|path| self.always.contains(path) || self.port.is_unwatched(path));
        match changes {
            Changes::Paths(dirty) => Changes::Paths(dirty.with_ruled()),
            everything @ Changes::Everything(_) => everything,
        }
    }

    /// Has a directory watched.
    pub(super) fn watch(&mut self, dir: &RelPath, root: &Path, tree: &Warm) {
        self.port.watch(dir, &|dir| tree.admits(root, dir));
    }

    /// Places watches on all directories of a tree; returns whether all of them are watched.
    pub(super) fn place_watches(&mut self, root: &Path, tree: &Warm) -> bool {
        self.port.place_watches(&|dir| tree.admits(root, dir))
    }

    /// Gives the source the paths of the tree that it has to report each time, if they are others than before.
    pub(super) fn report_eventless(&mut self, tree: &mut Warm) {
        if let Some(paths) = tree.take_eventless() {
            self.port.always_report(paths);
            self.always.clone_from(paths);
        }
    }
}

impl Capturer {
    /// Keeps captures in memory from now on.
    pub(crate) fn keep_tree(&mut self) {
        self.keeps_tree = true;
    }

    /// Returns true if there is a tree, which tells in which directories changes matter.
    pub(crate) fn is_warm(&self) -> bool {
        self.warmth.tree().is_some()
    }

    /// Returns true if the next capture looks only at what changed.
    pub(crate) fn is_live(&self) -> bool {
        self.source.is_some() && matches!(self.warmth, Warmth::Live(..))
    }

    /// Returns the flag that a capture sets when it begins to scan; it can be read meanwhile.
    pub(crate) fn scanning(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_scanning)
    }

    /// Notes that the capture at work scans, or that the next one does not yet.
    pub(super) fn note_scanning(&self, is_scanning: bool) {
        self.is_scanning.store(is_scanning, Ordering::SeqCst);
    }

    /// Returns true if there is a source of changes.
    pub(crate) fn has_source(&self) -> bool {
        self.source.is_some()
    }

    /// Returns the tree.
    pub(crate) fn tree(&self) -> Option<&Warm> {
        self.warmth.tree().map(|tree| &tree.warm)
    }

    /// Asks `source` for changes from now on; without one, every capture scans.
    pub(crate) fn set_source(&mut self, source: Option<Box<dyn ChangeSource>>) {
        self.warmth.forget_changes(Why::FirstLook);
        self.source =
            source.map(|port| TreeSource { port, follows_tree: true, always: BTreeSet::new(), is_root_gone: false });
        self.seen.begin_anew();
    }

    /// Asks for the changes, so that those from before this moment are told apart from later ones.
    pub(crate) fn mark_moment(&mut self, root: &Path) {
        self.sync(root);
    }

    /// Returns the watcher's answers, for the log of actions.
    pub(crate) fn seen(&mut self) -> &mut SeenChanges {
        &mut self.seen
    }

    /// Returns the links of the workspace that the memory has.
    pub(crate) fn links(&self) -> Vec<RelPath> {
        match &self.warmth {
            Warmth::Cold(None) => Vec::new(),
            Warmth::Cold(Some(stamps)) => stamps.known.links().cloned().collect(),
            Warmth::Scanned(tree, _) | Warmth::Live(tree, _) => tree.warm.links().iter().cloned().collect(),
        }
    }

    /// Returns the cost of the last checkpoint.
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.cost
    }

    /// Remembers the cost of a checkpoint.
    pub(super) fn account(&mut self, taken: &Taken) {
        let record = &taken.checkpoint.record;
        tracing::debug!(kind = record.kind.as_str(), n = record.ordinal, cost = ?taken.cost, "checkpoint");
        self.cost = Some(taken.cost);
    }

    /// Asks the source, if there is one and a tree, and adds its changes to the memory.
    pub(super) fn sync(&mut self, root: &Path) {
        // Taken out meanwhile: a bug in the source loses changes, and the next capture has to scan then.
        let mut warmth = mem::take(&mut self.warmth);
        if let (Some(source), Some(tree)) = (&mut self.source, warmth.tree()) {
            let changes = source.sync(root, &tree.warm, &mut self.seen);
            warmth.add(changes);
        }
        self.warmth = warmth;
    }

    /// Asks for the changes ahead of a capture, while the action that causes it is still being judged.
    pub(crate) fn sync_ahead(&mut self, root: &Path) {
        if self.is_live() {
            self.synced = Some(Instant::now());
            self.sync(root);
        }
    }

    /// Lists the paths that changed at or after `since` (the file system's clock, nanoseconds), as far as is known:
    /// reported and gone, or with newer times. Without a source, deleted files leave no trace.
    pub(crate) fn touched_since(&mut self, root: &Path, since: i64) -> Vec<RelPath> {
        self.sync(root);
        let Some(tree) = self.warmth.tree().map(|tree| &tree.warm) else {
            let Warmth::Cold(Some(stamps)) = &self.warmth else { return Vec::new() };
            let known = stamps.known.entries().iter();
            return known.filter(|(_, known)| known.stamp.ctime >= since).map(|(path, _)| path.clone()).collect();
        };
        let dirty = self.warmth.changes();
        let forgotten = self.touched.len() >= TOUCHED && self.touched.front().is_some_and(|(at, _)| *at >= since);
        let start = if forgotten { Changes::Everything(Why::Forgotten) } else { dirty.clone() };
        let later = self.touched.iter().filter(|(at, _)| *at >= since).map(|(_, changes)| changes.clone());
        let Changes::Paths(told) = later.fold(start, Changes::and) else {
            let known = tree.known();
            let late = known.entries().iter().filter(|(_, known)| known.stamp.ctime >= since);
            return late.map(|(path, _)| path.clone()).collect();
        };
        // A change that is reported late or twice may be captured already: then the file's times are older than
        // `since`.
        let as_captured =
            |path: &RelPath, stamp| probe(root, path).is_ok_and(|now| now.is_some_and(|now| now.stamp == stamp));
        let late = told.iter().map(|(path, _)| path).filter(|path| match tree.known_of(path) {
            Some(known) if known.stamp.ctime < since => dirty.covers(path) && !as_captured(path, known.stamp),
            _ => true,
        });
        late.cloned().collect()
    }

    /// Remembers the changes that a capture has looked at.
    pub(super) fn note_touched(&mut self, changes: Changes) {
        if changes == Changes::none() {
            return;
        }
        if self.touched.len() >= TOUCHED {
            self.touched.pop_front();
        }
        self.touched.push_back((file_clock(), changes));
    }

    /// Writes the stamps if the memory is newer than their file.
    pub(crate) fn save_stamps(&mut self, dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
        let stamps = match &self.warmth {
            _ if !self.unsaved => return Ok(()),
            Warmth::Cold(None) => return Ok(()),
            Warmth::Cold(Some(stamps)) => crate::worktree::stamps::save(&dir.join("stamps"), stamps),
            Warmth::Scanned(tree, _) | Warmth::Live(tree, _) => {
                crate::worktree::stamps::save(&dir.join("stamps"), &tree.as_stamps()?)
            }
        };
        stamps?;
        self.unsaved = false;
        Ok(())
    }

    /// Frees the stamps on a thread of its own: the process is about to end.
    pub(super) fn free_stamps(&mut self) {
        if let Warmth::Cold(stamps) = &mut self.warmth {
            let stamps = stamps.take();
            let known = stamps.as_ref().map_or(0, |stamps| stamps.known.entries().len());
            memory::drop_beside(stamps, known as u64);
        }
    }
}
