//! Captures from the memory: asks for the changes, looks at those alone, and keeps the result.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use super::capturer::Capturer;
use super::knowledge::PriorKnowledge;
use super::look::inspect;
use super::observe::{LocalBatch, Observation, PlainRequest, WholePart, cost_of, told};
use super::request::Take;
use super::warmth::{PendingLook, Tree, Warmth};
use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::model::build::build;
use crate::model::change::{Changes, Dirty, Why};
use crate::model::cost::Cost;
use crate::model::coverage::{Coverage, Extent};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::store::Batch;
use crate::sys::interrupt::Flow;
use crate::worktree::stamps::Stamps;
use crate::worktree::{Renewed, Sinks, Stats, Warm};

/// A capture at work. The memory is taken out of the capturer meanwhile and put back once the checkpoint is recorded.
pub(super) struct Attempt {
    /// The memory, as it is while the capture works with it.
    pub(super) warmth: Warmth,
    /// Microseconds of the sync, once it was done.
    sync_us: Option<u64>,
    /// Microseconds of comparing the targets with the disk.
    named_us: u64,
    /// True if the directory of the workspace was deleted: the capture finds nothing, and the memory is of no use for it.
    is_deleted: bool,
    /// The directories that rules admit anew, once the tree is up to date. The capture may still need more than the
    /// tree.
    renewed: Option<NewReach>,
}

/// Directories whose rules changed.
#[derive(Default)]
pub(super) struct NewReach {
    /// Directories below which other ones need watches from now on.
    ruled: BTreeSet<RelPath>,
    /// Directories that need watches from now on, and another look.
    reached: BTreeSet<RelPath>,
}

impl Capturer {
    /// Begins a capture: asks for the changes, if there is a source and no sync since the request, and compares the
    /// named paths with the disk.
    pub(super) fn begin(&mut self, catalog: &Catalog, take: &Take, control: &dyn Fn() -> Flow) -> Result<Attempt> {
        let warmth = mem::take(&mut self.warmth);
        let is_deleted = catalog.finds_nothing(take.draft.kind);
        let mut attempt = Attempt { warmth, sync_us: None, named_us: 0, is_deleted, renewed: None };
        // A sync from before the request may lack changes that the action depends on.
        let ahead = self.synced.take().filter(|synced| take.asked.is_some_and(|asked| *synced >= asked));
        let epoch = catalog.epoch()?;
        let warmth = &mut attempt.warmth;
        // After a change of the epoch the tree may name lost objects, so it is not used.
        let (Some(source), Some(tree)) = (&mut self.source, warmth.tree().filter(|tree| tree.stamps.epoch == epoch))
        else {
            return Ok(attempt);
        };
        let started = Instant::now();
        if ahead.is_none() {
            let changes = source.sync(&catalog.workspace.path, &tree.warm, &mut self.seen);
            warmth.add(changes);
        }
        if is_deleted {
            return Ok(attempt);
        }
        attempt.sync_us = Some(started.elapsed().as_micros() as u64);
        let selection = &take.selection;
        if !selection.names_targets() || selection.extent(catalog.workspace.scope) != Extent::Tree {
            return Ok(attempt);
        }
        // Only a live tree is compared: without one the capture scans anyway.
        if let Warmth::Live(tree, _) = warmth {
            let started = Instant::now();
            let named = inspect(catalog, &mut tree.warm, &selection.targets, control)?;
            warmth.add(Changes::Paths(named));
            attempt.named_us = started.elapsed().as_micros() as u64;
        }
        Ok(attempt)
    }

    /// Keeps the result of a capture, once its checkpoint is recorded. `before` is the knowledge with which a scan
    /// began.
    pub(super) fn put_back(
        &mut self,
        catalog: &Catalog,
        attempt: Attempt,
        before: Option<PriorKnowledge>,
        observed: &Observation,
        take: &Take,
    ) -> Result<()> {
        if attempt.is_deleted {
            // Files that are restored are recognised as captured before.
            self.warmth = Warmth::Cold(before.map(|before| before.stamps));
            return Ok(());
        }
        let before = match (attempt.renewed, attempt.warmth, before) {
            (Some(reach), Warmth::Live(tree, pending), _) => {
                let changes = Changes::Paths(pending.dirty);
                self.unsaved = self.unsaved || observed.stats.hashed > 0 || changes != Changes::none();
                self.note_touched(changes);
                self.trust(catalog, tree, Dirty::default(), reach);
                return Ok(());
            }
            (_, warmth, None) => {
                self.warmth = warmth;
                return Ok(());
            }
            (_, warmth, Some(before)) => {
                self.warmth = warmth;
                before
            }
        };
        let is_whole = take.selection.extent(catalog.workspace.scope) == Extent::Tree;
        let plain = is_whole && take.selection.targets.is_empty() && !take.draft.kind.is_typed();
        let scan = observed.scan.as_ref().filter(|_| plain && self.keeps_tree);
        // A narrowed or targeted capture must not replace the memory of the whole workspace.
        if scan.is_none() && self.is_warm() {
            return Ok(());
        }
        let (stamps, is_newer) = before.after(observed, is_whole);
        self.unsaved = self.unsaved || is_newer;
        self.warmth = Warmth::Cold(Some(stamps));
        let Some(scan) = scan else { return Ok(()) };
        self.note_touched(Changes::Everything(Why::FirstLook));
        let plain = PlainRequest::new(catalog);
        let warm = Warm::new(&plain.on_workspace(), &scan.capture, &observed.private)?;
        if let Some(source) = &mut self.source {
            // The source was started for another tree: it has to place its watches anew before it is trusted.
            source.follows_tree = false;
        }
        if let Some(warm) = warm
            && let Warmth::Cold(Some(stamps)) = mem::take(&mut self.warmth)
        {
            // The tree has both from now on; the built trees of a scan would soon be outdated.
            let stamps = Stamps { known: Arc::default(), built: None, ..stamps };
            self.warmth = Warmth::Scanned(Box::new(Tree { warm, stamps }), Why::FirstLook);
        }
        Ok(())
    }

    /// Trusts the source from now on: has it watch directories that rules admit anew, and marks them for another look,
    /// because they may have changed meanwhile.
    pub(super) fn trust(&mut self, catalog: &Catalog, mut tree: Box<Tree>, dirty: Dirty, reach: NewReach) {
        let root = &catalog.workspace.path;
        if let Some(source) = &mut self.source {
            source.report_eventless(&mut tree.warm);
            reach.ruled.iter().chain(&reach.reached).for_each(|dir| source.watch(dir, root, &tree.warm));
        }
        self.warmth = Warmth::Live(tree, PendingLook { dirty, again: reach.reached });
    }
}

impl Attempt {
    /// Returns the tree's content, if nothing has changed and the capture asks for nothing more.
    pub(super) fn quiet(&mut self, catalog: &Catalog, take: &Take) -> Option<Observation> {
        let (Some(tree), Some(sync_us)) = (self.warmth.unchanged(), self.sync_us) else { return None };
        let (tree, selection) = (&tree.warm, &take.selection);
        if take.draft.kind.is_typed() || selection.extent(catalog.workspace.scope) != Extent::Tree {
            return None;
        }
        if !tree.serves(&PlainRequest::new(catalog).on_workspace()) || !tree.is_settled() {
            return None;
        }
        // A root that the store lost is not used; the full way below finds out more.
        let root = tree.built().filter(|root| catalog.store.has(root).unwrap_or(false))?;
        if !tree.holds_all(&catalog.workspace.path, &selection.targets) {
            return None;
        }
        let cost = Cost { sync_us, stat_us: self.named_us, dirty: Some(0), ..Cost::default() };
        let private = tree.built_private()?;
        let has = |root: &ObjectId| catalog.local().and_then(|local| local.has(root)).unwrap_or(false);
        if private.is_some_and(|root| !has(&root)) {
            return None;
        }
        let observed = observation(tree, (root, private), cost);
        self.renewed = Some(NewReach::default());
        Some(observed)
    }

    /// Captures by looking at the changes; `None` where everything has to be scanned.
    pub(super) fn changed(
        &mut self,
        catalog: &Catalog,
        take: &Take,
        (batch, local): (&Batch<'_>, &LocalBatch<'_>),
        control: &dyn Fn() -> Flow,
    ) -> Result<Option<Observation>> {
        let Some(sync_us) = self.sync_us else { return Ok(None) };
        let (tree, pending) = match &mut self.warmth {
            Warmth::Cold(_) => return Ok(None),
            Warmth::Scanned(_, why) => {
                tracing::debug!(%why, "everything is checked");
                return Ok(None);
            }
            Warmth::Live(tree, pending) => (&mut tree.warm, pending),
        };
        // Files that the memory holds as private belong to the shared part, where patterns name them.
        let is_widened = take.selection.wanted && !take.selection.targets.is_empty();
        if is_widened || take.selection.extent(catalog.workspace.scope) != Extent::Tree {
            return Ok(None);
        }
        let (dirty, plain) = (pending.due(), PlainRequest::new(catalog));
        let sinks = Sinks { shared: batch, local: &|| local.sink() };
        let (stats, reach) = match tree.renew(&plain.on_workspace(), &dirty, sinks, control)? {
            Renewed::Done { stats, ruled, reached } => (stats, NewReach { ruled, reached }),
            Renewed::Rescan(why) => {
                tracing::debug!(why, "everything is checked");
                self.warmth.forget_changes(Why::FirstLook);
                return Ok(None);
            }
        };
        self.renewed = Some(reach);
        if !tree.holds_all(&catalog.workspace.path, &take.selection.targets) {
            return Ok(None);
        }
        let mut observed = build_tree(catalog, take, tree, stats, (batch, local))?;
        // One lookup guards against a tree that was built but never stored.
        let has_private = observed.private_root.map_or(Ok(true), |root| local.batch()?.contains(&root))?;
        if !batch.contains(&observed.root)? || !has_private {
            tracing::error!(root = %observed.root, "the store lost a tree that was just written; scanning everything");
            self.renewed = None;
            if let Warmth::Live(tree, _) = mem::take(&mut self.warmth) {
                self.warmth = Warmth::Cold(Some(tree.stamps));
            }
            return Ok(None);
        }
        (observed.cost.sync_us, observed.cost.dirty) = (sync_us, Some(dirty.len() as u64));
        observed.cost.stat_us += self.named_us;
        Ok(Some(observed))
    }
}

/// Builds the trees of an up-to-date tree, and returns its content.
fn build_tree(
    catalog: &Catalog,
    take: &Take,
    tree: &mut Warm,
    stats: Stats,
    (batch, local): (&Batch<'_>, &LocalBatch<'_>),
) -> Result<Observation> {
    let building = Instant::now();
    let mut fresh = HashMap::new();
    let private = tree.build_private(&mut |kind, id, bytes| {
        let batch = local.batch()?;
        if !batch.contains(&id)? {
            batch.write(kind, id, bytes)?;
            fresh.insert(id, bytes.to_vec());
        }
        Ok(())
    })?;
    let mut emit = |kind: ObjectKind, id: ObjectId, bytes: &[u8]| {
        // Objects that the tree knows are in the store of this epoch: only new ones have to be looked up.
        if !batch.contains(&id)? {
            batch.write(kind, id, bytes)?;
            fresh.insert(id, bytes.to_vec());
        }
        Ok(())
    };
    let exists = |path: &RelPath| path.under(&catalog.workspace.path).symlink_metadata().is_ok();
    let mut whole = None;
    let (root, totals, coverage) = match catalog.narrowing(&take.draft)?.filter(|narrow| !narrow.spares(&exists)) {
        Some(narrow) => {
            // The tree itself is not narrowed.
            let (mut manifest, mut coverage) = (tree.manifest(), Coverage::clone(tree.coverage()));
            if narrow.apply(&mut manifest, &mut coverage) {
                let (totals, coverage) = (tree.totals(), Arc::clone(tree.coverage()));
                whole = Some(WholePart { root: tree.build(&mut emit)?, totals, coverage });
            }
            (build(&manifest, &coverage, &mut emit)?, manifest.totals(), Arc::new(coverage))
        }
        None => (tree.build(&mut emit)?, tree.totals(), Arc::clone(tree.coverage())),
    };
    let cost = Cost { trees_us: building.elapsed().as_micros() as u64, ..cost_of(&stats) };
    let coverage = told(&coverage, &tree.private());
    Ok(Observation { coverage, totals, stats, fresh, whole, ..observation(tree, (root, private), cost) })
}

/// Returns a tree's content, without the additions of a capture.
fn observation(tree: &Warm, (root, private_root): (ObjectId, Option<ObjectId>), cost: Cost) -> Observation {
    let private = tree.private();
    Observation {
        coverage: told(tree.coverage(), &private),
        private,
        private_root,
        totals: tree.totals(),
        stats: Stats::default(),
        warnings: tree.warnings().to_vec(),
        root,
        fresh: HashMap::new(),
        cost,
        scan: None,
        repositories: Vec::new(),
        whole: None,
    }
}
