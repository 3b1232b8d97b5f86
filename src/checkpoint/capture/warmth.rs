//! What is kept in memory between captures, so that a checkpoint costs what changed.
//!
//! A scan makes the warm tree; a source of changes, once there is one, tells what changed since; a capture looks at that and at nothing
//! else. Until a look in idle time has shown that nothing was missed between the scan and the first thing heard, every
//! capture scans. After any error the memory is dropped, and the next capture scans.
//!
//! *Invariant:* what an action names is compared with the disk itself, whatever is told of it.

mod idle;
mod named;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

pub use self::idle::Audit;
use super::seen::{Before, Scan, Seen, cost_of, shape};
use super::take::Take;
use crate::checkpoint::catalog::diff::Present;
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::model::build::build;
use crate::model::change::{ChangeSource, Changes, Dirty, Reach, Why};
use crate::model::cost::Cost;
use crate::model::coverage::{Coverage, Extent};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::model::tree::Mode;
use crate::store::Batch;
use crate::sys::clock::file_clock;
use crate::sys::interrupt::Flow;
use crate::worktree::stamps::{Built, Stamps};
use crate::worktree::{Renewed, Request, Stats, Target, Warm, probe};

/// What is kept, taken out of the timeline while a capture is at work.
pub(in crate::checkpoint) struct Warmth {
    /// Without the known paths where the tree holds them.
    stamps: Option<Stamps>,
    tree: Option<Warm>,
    /// What changed since the tree was brought up to date.
    dirty: Changes,
    again: BTreeSet<RelPath>,
    /// Whether the tree was brought up to date, although the capture needed more than it.
    renewed: bool,
    /// Below which others are to be watched from now on.
    ruled: BTreeSet<RelPath>,
    /// What is to be watched from now on, and looked at again.
    reached: BTreeSet<RelPath>,
    /// What asking what changed took, once it was asked.
    sync_us: Option<u64>,
    /// Microseconds of comparing the targets with the disk.
    named_us: u64,
}

impl Warmth {
    /// What is known, for a scan.
    pub(in crate::checkpoint) fn stamps(&self) -> Result<Option<Stamps>> {
        let Some(stamps) = self.stamps.clone() else { return Ok(None) };
        Ok(Some(match &self.tree {
            None => stamps,
            Some(tree) => stamps_of(tree, stamps)?,
        }))
    }

    /// Everything that is to be looked at.
    fn due(&self) -> Changes {
        let again = self.again.iter().map(|path| (path.clone(), Reach::Subtree));
        self.dirty.clone().and(Changes::Paths(Dirty::new(again)))
    }
}

/// Captures whose changes are remembered, for those who were answered before theirs was finished.
const TOUCHED: usize = 64;

impl Timeline {
    /// Keeps what is captured in memory from now on.
    pub fn keep_warm(&mut self) {
        self.keeps_warm = true;
        self.store.puts_off();
    }

    /// Whether a warm tree is there, so that it is known in which directories changes matter.
    pub fn is_warm(&self) -> bool {
        self.warm.is_some()
    }

    /// Whether the next capture looks only at what changed.
    pub fn is_live(&self) -> bool {
        self.warm.is_some() && self.source.is_some() && matches!(self.dirty, Changes::Paths(_))
    }

    /// Whether it hears of changes.
    pub fn has_change_source(&self) -> bool {
        self.source.is_some()
    }

    /// Whether changes in a directory matter; all do while nothing was captured.
    pub fn admits(&self, dir: &RelPath) -> bool {
        self.warm.as_ref().is_none_or(|warm| warm.admits(&self.workspace.path, dir))
    }

    /// Asks `source` for changes from now on; without one, every capture scans.
    pub fn set_change_source(&mut self, source: Option<Box<dyn ChangeSource>>) {
        self.dirty = Changes::Everything(Why::FirstLook);
        self.source = source.map(RefCell::new);
        self.source_follows = true;
    }

    pub(in crate::checkpoint) fn take_warmth(&mut self) -> Warmth {
        Warmth {
            stamps: self.stamps.take(),
            tree: self.warm.take(),
            dirty: mem::replace(&mut self.dirty, Changes::Everything(Why::FirstLook)),
            again: mem::take(&mut self.again),
            renewed: false,
            ruled: BTreeSet::new(),
            reached: BTreeSet::new(),
            sync_us: None,
            named_us: 0,
        }
    }

    /// Puts everything back as it was; what a look found out is forgotten.
    pub(in crate::checkpoint) fn keep(&mut self, warmth: Warmth, before: Before) {
        let warm = warmth.tree.is_some();
        self.stamps = if warm { warmth.stamps } else { Some(before.stamps) };
        (self.warm, self.dirty, self.again) = (warmth.tree, warmth.dirty, warmth.again);
    }

    /// What changed since the last call, under the rules of the warm tree.
    fn sync(&self, warm: &Warm) -> Changes {
        let admits = |dir: &RelPath| warm.admits(&self.workspace.path, dir);
        self.source.as_ref().map_or(Changes::Everything(Why::FirstLook), |source| source.borrow_mut().sync(&admits))
    }

    /// Asks what changed for a capture that is about to be asked for, while its cause is still being thought about.
    pub fn sync_ahead(&mut self) {
        let Some(tree) = self.warm.as_ref().filter(|_| self.is_live()) else { return };
        self.ahead.set(Some(Instant::now()));
        let heard = self.sync(tree);
        self.dirty = mem::replace(&mut self.dirty, Changes::none()).and(heard);
    }

    /// Asks what changed, if anybody can tell and it was not done since the capture was asked for; and compares with the disk what
    /// the capture names.
    pub(in crate::checkpoint) fn hear(
        &self,
        warmth: &mut Warmth,
        take: &Take,
        control: &dyn Fn() -> Flow,
    ) -> Result<()> {
        let ahead = self.ahead.take().filter(|ahead| take.asked.is_some_and(|asked| *ahead >= asked));
        let epoch = self.store.epoch()?;
        let current = warmth.stamps.as_ref().is_some_and(|stamps| stamps.epoch == epoch);
        let (Some(tree), true) = (&mut warmth.tree, current && self.source.is_some()) else {
            return Ok(());
        };
        let started = Instant::now();
        if ahead.is_none() {
            let heard = self.sync(tree);
            warmth.dirty = mem::replace(&mut warmth.dirty, Changes::none()).and(heard);
        }
        warmth.sync_us = Some(started.elapsed().as_micros() as u64);
        if !take.names_targets() || self.extent(take) != Extent::Tree || matches!(warmth.dirty, Changes::Everything(_))
        {
            return Ok(());
        }
        let started = Instant::now();
        let named = self.inspect(tree, &take.targets, control)?;
        warmth.dirty = mem::replace(&mut warmth.dirty, Changes::none()).and(named);
        warmth.named_us = started.elapsed().as_micros() as u64;
        Ok(())
    }

    /// What the warm tree holds, if nothing has changed and the capture asks for nothing more.
    pub(in crate::checkpoint) fn see_quiet(&self, take: &Take, warmth: &mut Warmth) -> Option<Seen> {
        let (Some(tree), Some(sync_us)) = (&warmth.tree, warmth.sync_us) else { return None };
        let quiet = matches!(&warmth.dirty, Changes::Paths(dirty) if dirty.is_empty()) && warmth.again.is_empty();
        let plain = quiet && !take.kind.is_typed() && self.extent(take) == Extent::Tree;
        let (nothing, never) = (Before::nothing(), []);
        let bare = Take::any();
        if !plain || !tree.serves(&self.request(&bare, &nothing, &never)) || !tree.is_settled() {
            return None;
        }
        let root = tree.built().filter(|root| self.store.has(root).unwrap_or(false))?;
        if !tree.holds_all(&self.workspace.path, &take.targets) {
            return None;
        }
        warmth.renewed = true;
        Some(Seen {
            coverage: Arc::clone(tree.coverage()),
            totals: tree.totals(),
            stats: Stats::default(),
            warnings: tree.warnings().to_vec(),
            secrets: tree.has_secrets(),
            root,
            fresh: HashMap::new(),
            cost: Cost { sync_us, stat_us: warmth.named_us, dirty: Some(0), ..Cost::default() },
            scan: None,
        })
    }

    /// Captures by looking at what changed; `None` where everything has to be looked at.
    pub(in crate::checkpoint) fn see_warm(
        &self,
        take: &Take,
        warmth: &mut Warmth,
        batch: &Batch<'_>,
        control: &dyn Fn() -> Flow,
    ) -> Result<Option<Seen>> {
        let (due, Some(tree), Some(sync_us)) = (warmth.due(), &mut warmth.tree, warmth.sync_us) else {
            return Ok(None);
        };
        let dirty = match due {
            Changes::Paths(dirty) if self.extent(take) == Extent::Tree => dirty,
            Changes::Paths(_) => return Ok(None),
            Changes::Everything(why) => {
                tracing::debug!(%why, "everything is looked at");
                return Ok(None);
            }
        };
        let (nothing, never) = (Before::nothing(), [self.home.path().to_owned()]);
        let plain = Request { targets: &[], ..self.request(take, &nothing, &never) };
        let (stats, ruled, reached) = match tree.renew(&plain, &dirty, batch, control)? {
            Renewed::Done { stats, ruled, reached } => (stats, ruled, reached),
            Renewed::Rescan(why) => {
                tracing::debug!(why, "everything is looked at");
                warmth.dirty = Changes::Everything(Why::FirstLook);
                return Ok(None);
            }
        };
        (warmth.ruled, warmth.reached) = (ruled, reached);
        warmth.renewed = true;
        if !tree.holds_all(&self.workspace.path, &take.targets) {
            return Ok(None);
        }
        let mut seen = self.built(take, tree, stats, batch)?;
        if !batch.contains(&seen.root)? {
            tracing::error!(root = %seen.root, "the store lost a tree that was built; scanning everything");
            (warmth.tree, warmth.renewed) = (None, false);
            return Ok(None);
        }
        (seen.cost.sync_us, seen.cost.dirty) = (sync_us, Some(dirty.len() as u64));
        seen.cost.stat_us += warmth.named_us;
        Ok(Some(seen))
    }

    /// What a tree that is up to date holds, built.
    fn built(&self, take: &Take, tree: &mut Warm, stats: Stats, batch: &Batch<'_>) -> Result<Seen> {
        let building = Instant::now();
        let mut fresh = HashMap::new();
        let mut emit = |kind: ObjectKind, id: ObjectId, bytes: &[u8]| {
            // What the tree knows is in the store of this epoch: only what is new has to be asked for.
            if !batch.contains(&id)? {
                batch.write(kind, id, bytes)?;
                fresh.insert(id, bytes.to_vec());
            }
            Ok(())
        };
        let exists = |path: &RelPath| path.under(&self.workspace.path).symlink_metadata().is_ok();
        let (root, totals, coverage) = match self.narrowing(take)?.filter(|narrow| !narrow.spares(&exists)) {
            Some(narrow) => {
                // The tree itself holds everything, and goes on doing so.
                let (mut manifest, mut coverage) = (tree.manifest(), Coverage::clone(tree.coverage()));
                narrow.apply(&mut manifest, &mut coverage);
                (build(&manifest, &coverage, &mut emit)?, manifest.totals(), Arc::new(coverage))
            }
            None => (tree.build(&mut emit)?, tree.totals(), Arc::clone(tree.coverage())),
        };
        Ok(Seen {
            coverage,
            totals,
            stats,
            warnings: tree.warnings().to_vec(),
            secrets: tree.has_secrets(),
            root,
            fresh,
            cost: Cost { trees_us: building.elapsed().as_micros() as u64, ..cost_of(&stats) },
            scan: None,
        })
    }

    /// Keeps what a capture has found out, once its checkpoint stands. `before` is what a scan began with.
    pub(in crate::checkpoint) fn put_back(
        &mut self,
        mut warmth: Warmth,
        before: Option<Before>,
        seen: &Seen,
        take: &Take,
    ) -> Result<()> {
        let Some(before) = before.filter(|_| !warmth.renewed) else {
            self.unsaved = self.unsaved || seen.stats.hashed > 0 || warmth.dirty != Changes::none();
            self.note_touched(mem::replace(&mut warmth.dirty, Changes::none()));
            (self.stamps, self.warm, self.dirty) = (warmth.stamps, warmth.tree, Changes::none());
            self.heed(&warmth.ruled, warmth.reached);
            return Ok(());
        };
        let plain = self.extent(take) == Extent::Tree && take.targets.is_empty() && !take.kind.is_typed();
        if let Some(scan) = seen.scan.as_ref().filter(|_| plain && self.keeps_warm) {
            self.remember(before, seen, take);
            self.note_touched(Changes::Everything(Why::FirstLook));
            let (nothing, never) = (Before::nothing(), [self.home.path().to_owned()]);
            self.warm = Warm::new(&self.request(take, &nothing, &never), &scan.capture)?;
            self.source_follows = false;
            if let (Some(_), Some(stamps)) = (&self.warm, &mut self.stamps) {
                // The tree knows both from now on; what was built of a scan is soon of another moment.
                (stamps.known, stamps.built) = (Arc::default(), None);
            }
        } else if warmth.tree.is_some() {
            self.keep(warmth, before);
        } else {
            self.remember(before, seen, take);
        }
        Ok(())
    }

    /// Has changes heard that were not until now, and what may have changed there meanwhile looked at again.
    fn heed(&mut self, ruled: &BTreeSet<RelPath>, reached: BTreeSet<RelPath>) {
        let (Some(warm), Some(source)) = (&mut self.warm, &self.source) else { return };
        if let Some(paths) = warm.take_eventless() {
            source.borrow_mut().always_report(paths);
        }
        for dir in ruled.iter().chain(&reached) {
            source.borrow_mut().watch(dir, &|dir| warm.admits(&self.workspace.path, dir));
        }
        self.again = reached;
    }

    /// The present state, where the warm tree is known to hold it.
    pub(in crate::checkpoint) fn look_warm(
        &mut self,
        take: &Take,
        control: &dyn Fn() -> Flow,
    ) -> Result<Option<Present>> {
        if take.kind.is_typed() || self.extent(take) != Extent::Tree {
            return Ok(None);
        }
        self.hear_of(if take.names_targets() { &take.targets } else { &[] }, control)?;
        let Some(tree) = &self.warm else { return Ok(None) };
        let quiet = matches!(&self.dirty, Changes::Paths(dirty) if dirty.is_empty()) && self.again.is_empty();
        let held = quiet && tree.holds_all(&self.workspace.path, &take.targets);
        let Some(root) = tree.built().filter(|_| held) else { return Ok(None) };
        let (manifest, coverage) = (tree.manifest(), Arc::clone(tree.coverage()));
        Ok(Some(Present { manifest, coverage, root, fresh: HashMap::new(), known: None }))
    }

    /// Whether a checkpoint holds what stands at `targets`, as far as the warm tree can tell.
    pub(in crate::checkpoint) fn holds_warm(
        &mut self,
        held: &ObjectId,
        targets: &[Target],
        control: &dyn Fn() -> Flow,
    ) -> Result<bool> {
        self.hear_of(targets, control)?;
        let (Some(tree), Changes::Paths(dirty)) = (&self.warm, &self.dirty) else { return Ok(false) };
        let again = |path: &RelPath| self.again.iter().any(|dir| path.starts_with(dir) || dir.starts_with(path));
        let known = targets.iter().all(|target| {
            let path = &target.path;
            !dirty.touches(path) && !again(path) && tree.holds(&self.workspace.path, target)
        });
        let (true, Some(root)) = (known, tree.built()) else { return Ok(false) };
        let commit = self.tree_of(held)?;
        if commit == root {
            return Ok(true);
        }
        // Permissions stand beside the tree. Where those of both differ, the files themselves are compared.
        if self.records_of(&commit)? != self.records_of(&root)? {
            return Ok(false);
        }
        for target in targets {
            // The trees of the root differ, as was seen.
            if target.path.is_root() {
                return Ok(false);
            }
            let now: Option<(Mode, ObjectId)> = tree.side(&target.path);
            if self.entry_at(&commit, &target.path)? != now {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Paths that changed at or after `since` (the file system's clock, nanoseconds) as far as anybody knows: told of and
    /// gone, or with times that say so. Without a source, deleted files leave no trace.
    pub fn touched_since(&mut self, since: i64) -> Vec<RelPath> {
        let Some(tree) = &self.warm else {
            let known = self.stamps.iter().flat_map(|stamps| stamps.known.entries());
            return known.filter(|(_, known)| known.stamp.ctime >= since).map(|(path, _)| path.clone()).collect();
        };
        let heard = self.sync(tree);
        self.dirty = mem::replace(&mut self.dirty, Changes::none()).and(heard);
        let forgotten = self.touched.len() >= TOUCHED && self.touched.front().is_some_and(|(at, _)| *at >= since);
        let start = if forgotten { Changes::Everything(Why::Forgotten) } else { self.dirty.clone() };
        let later = self.touched.iter().filter(|(at, _)| *at >= since).map(|(_, changes)| changes.clone());
        let Changes::Paths(told) = later.fold(start, Changes::and) else {
            let known = tree.known();
            let late = known.entries().iter().filter(|(_, known)| known.stamp.ctime >= since);
            return late.map(|(path, _)| path.clone()).collect();
        };
        // What is told of late, or twice, may be as it was captured: then its times are older than `since`.
        let as_captured = |path: &RelPath, stamp| {
            probe(&self.workspace.path, path).is_ok_and(|now| now.is_some_and(|now| now.stamp == stamp))
        };
        let late = told.iter().map(|(path, _)| path).filter(|path| match tree.known_of(path) {
            Some(known) if known.stamp.ctime < since => self.dirty.covers(path) && !as_captured(path, known.stamp),
            _ => true,
        });
        late.cloned().collect()
    }

    fn note_touched(&mut self, changes: Changes) {
        if changes == Changes::none() {
            return;
        }
        if self.touched.len() >= TOUCHED {
            self.touched.pop_front();
        }
        self.touched.push_back((file_clock(), changes));
    }

    /// Writes what is known, under the workspace lock, where it is newer than its file.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing; the old file stays.
    pub fn save_known(&mut self) -> Result<()> {
        let _lock = self.lock("saving stamps")?;
        self.save_stamps()
    }

    /// Writes what is known where it is newer than its file.
    pub(in crate::checkpoint) fn save_stamps(&mut self) -> Result<()> {
        let Some(stamps) = self.stamps.as_ref().filter(|_| self.unsaved) else { return Ok(()) };
        let file = self.workspace.dir.join("stamps");
        match &self.warm {
            None => crate::worktree::stamps::save(&file, stamps)?,
            Some(tree) => crate::worktree::stamps::save(&file, &stamps_of(tree, stamps.clone())?)?,
        }
        self.unsaved = false;
        Ok(())
    }
}

/// What a tree knows, with what was built of that very state.
fn stamps_of(tree: &Warm, stamps: Stamps) -> Result<Stamps> {
    let shape = shape(&tree.manifest(), tree.coverage())?;
    let built = tree.built().map(|root| Built { shape, root });
    Ok(Stamps { known: Arc::new(tree.known()), defaults: Some(tree.defaults()), built, ..stamps })
}

impl Before {
    /// Nothing is known.
    fn nothing() -> Before {
        Before { stamps: Stamps::default(), sticky: BTreeSet::new(), early: None }
    }
}

impl Scan {
    /// Whether any captured name looks like a secret's.
    pub(in crate::checkpoint) fn has_secrets(&self) -> bool {
        self.capture.manifest.iter().any(|(path, _)| crate::filter::secret::is_secret(path.name()))
    }
}

#[cfg(test)]
mod tests;
