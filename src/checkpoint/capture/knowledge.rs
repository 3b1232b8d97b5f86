//! The knowledge of earlier captures that a capture begins with: their stamps, or without them the paths that were captured.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::observe::{Observation, Scan};
use super::request::Selection;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::model::checkpoint::Layer;
use crate::model::coverage::Extent;
use crate::model::manifest::EntryKind;
use crate::model::path::RelPath;
use crate::model::stamp::KnownFile;
use crate::sys::clock::{boot_id, is_same_boot};
use crate::sys::interrupt::Flow;
use crate::worktree::stamps::{Built, Stamps};
use crate::worktree::{Early, PrivatePart, PrivatePaths, rewritten};

/// The knowledge before a capture.
#[derive(Clone, Default)]
pub(super) struct PriorKnowledge {
    /// The stamps of the last capture; empty if there are none that can be used.
    pub(super) stamps: Stamps,
    /// Paths that were captured before, but without stamps.
    pub(super) sticky: BTreeSet<RelPath>,
    /// Scouts that were started early.
    pub(super) early: Option<Arc<Early>>,
}

impl PriorKnowledge {
    /// Gathers the knowledge from earlier captures. It is checked against the store if that may have lost objects, and
    /// against the content of the named files. `held` is the memory's part.
    pub(super) fn gather(
        catalog: &Catalog,
        selection: &Selection,
        all: &[Checkpoint],
        held: Option<Stamps>,
        control: &dyn Fn() -> Flow,
    ) -> Result<PriorKnowledge> {
        let mut before = PriorKnowledge::remembered(catalog, selection, all, held)?;
        if selection.names_targets() {
            let known = &mut before.stamps.known;
            for path in rewritten(&catalog.workspace.path, known, &selection.targets, control)? {
                Arc::make_mut(known).distrust(&path);
            }
        }
        Ok(before)
    }

    fn remembered(
        catalog: &Catalog,
        selection: &Selection,
        all: &[Checkpoint],
        held: Option<Stamps>,
    ) -> Result<PriorKnowledge> {
        let (epoch, boot) = (catalog.epoch()?, boot_id());
        if let Some(stamps) = held.filter(|stamps| is_same_boot(&stamps.boot, &boot) == Some(true)) {
            let stamps = if stamps.epoch == epoch { stamps } else { doubted(catalog, stamps, epoch)? };
            return Ok(PriorKnowledge { stamps, ..PriorKnowledge::default() });
        }
        let file = catalog.workspace.dir.join("stamps");
        let (whole, mut early) = (selection.extent(catalog.workspace.scope) == Extent::Tree, None);
        let loaded = crate::worktree::stamps::load(&file, &mut |dirs| {
            early = whole.then(|| Early::start(&catalog.workspace.path, dirs)).flatten().map(Arc::new);
        })?;
        let sticky = if loaded.is_none() { sticky_from(catalog, all) } else { BTreeSet::new() };
        let mut stamps =
            loaded.unwrap_or_else(|| Stamps { epoch: epoch.clone(), boot: boot.clone(), ..Stamps::default() });
        if stamps.epoch != epoch || is_same_boot(&stamps.boot, &boot) != Some(true) {
            stamps = doubted(catalog, stamps, epoch)?;
            stamps.boot = boot;
        }
        Ok(PriorKnowledge { stamps, sticky, early })
    }

    /// Returns the same paths, without knowledge of their content.
    pub(super) fn distrusted(&self) -> PriorKnowledge {
        let mut before = self.clone();
        let known = std::mem::take(&mut before.stamps.known);
        // A private path stays private.
        let shared = known.entries().iter().filter(|(_, known)| !known.private);
        before.sticky.extend(shared.map(|(path, _)| path.clone()));
        before
    }

    /// Returns the stamps after a capture, and says whether they are newer than before it.
    pub(super) fn after(self, observed: &Observation, is_whole: bool) -> (Stamps, bool) {
        let (mut stamps, mut is_newer) = (self.stamps, false);
        if let Some(Scan { capture, shape }) = observed.scan.as_ref().filter(|_| is_whole) {
            let built = shape.map(|shape| Built { shape, root: observed.root });
            let moved = capture.known != stamps.known;
            is_newer = moved || (built.is_some() && built != stamps.built);
            stamps.built = if moved { built } else { built.or(stamps.built) };
            stamps.known = Arc::clone(&capture.known);
            stamps.defaults = Some(capture.coverage.defaults);
        }
        (stamps, is_newer)
    }
}

/// Returns the knowledge after a possible loss of objects: files whose content is gone are read again, and every tree
/// is looked up.
fn doubted(catalog: &Catalog, mut stamps: Stamps, epoch: String) -> Result<Stamps> {
    let of = |private: bool| {
        let entries = stamps.known.entries().iter();
        entries.filter(move |(_, known)| known.private == private).map(|(_, known)| known.id)
    };
    let missing = catalog.store.missing(&mut of(false))?;
    let private = match catalog.local_if_any()? {
        Some(local) => local.missing(&mut of(true))?,
        None => of(true).collect(),
    };
    let is_gone = |known: &&mut KnownFile| if known.private { &private } else { &missing }.contains(&known.id);
    for known in Arc::make_mut(&mut stamps.known).values_mut().filter(is_gone) {
        known.proven = false;
    }
    (stamps.epoch, stamps.built) = (epoch, None);
    Ok(stamps)
}

/// Lists the paths that stay captured although there are no stamps: those of the newest whole checkpoint. A damaged one
/// is passed over for the one before it.
fn sticky_from(catalog: &Catalog, all: &[Checkpoint]) -> BTreeSet<RelPath> {
    let whole = |checkpoint: &&Checkpoint| {
        let record = &checkpoint.record;
        !record.kind.is_typed() && record.is_whole() && !record.flags.iter().any(|flag| flag == "targeted")
    };
    let readable = all.iter().rev().filter(whole).find_map(|newest| catalog.load(&newest.tree, &|_| true).ok());
    let Some((manifest, _)) = readable else { return BTreeSet::new() };
    manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir).map(|(path, _)| path.clone()).collect()
}

/// The private files of all checkpoints, which are read when a new file is first asked for.
pub(super) struct PrivateOnce<'c> {
    pub(super) catalog: &'c Catalog,
    parts: OnceCell<Vec<Arc<PrivatePart>>>,
}

impl<'c> PrivateOnce<'c> {
    /// Begins without having read any.
    pub(super) fn of(catalog: &'c Catalog) -> PrivateOnce<'c> {
        PrivateOnce { catalog, parts: OnceCell::new() }
    }

    /// Returns the private parts, each once. One that cannot be read is passed over.
    fn read(&self) -> Vec<Arc<PrivatePart>> {
        let Ok(all) = self.catalog.all() else { return Vec::new() }; // the capture itself reports it
        let mut seen = HashSet::new();
        let mut is_new = |checkpoint: &&Checkpoint| match checkpoint.record.layer {
            Some(Layer::Sequence(sequence)) => seen.insert(sequence),
            _ => false,
        };
        let newest = all.checkpoints.iter().rev().filter(|checkpoint| is_new(checkpoint));
        newest.filter_map(|checkpoint| self.catalog.own_part(checkpoint).ok()).collect()
    }
}

impl PrivatePaths for PrivateOnce<'_> {
    fn have(&self, path: &RelPath) -> bool {
        // A file that was only named is private for its size or its place, which may change.
        let has = |part: &Arc<PrivatePart>| part.manifest.contains(path) && !part.coverage.targeted.contains(path);
        self.parts.get_or_init(|| self.read()).iter().any(has)
    }
}
