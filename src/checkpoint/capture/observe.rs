//! Observes the workspace under its rules: gathers earlier knowledge, scans, and builds the trees.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::request::{Selection, Take};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::repositories::{Staged, stage};
use crate::error::{Code, Error, Result};
use crate::model::build::build;
use crate::model::cost::Cost;
use crate::model::coverage::{Coverage, Extent, SkipReason};
use crate::model::effect::Takes;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, Manifest};
use crate::model::meta;
use crate::model::path::RelPath;
use crate::model::sink::{HashOnly, ObjectSink};
use crate::model::tree;
use crate::store::Batch;
use crate::sys::clock::boot_id;
use crate::sys::interrupt::Flow;
use crate::sys::memory;
use crate::worktree::repository::Kept;
use crate::worktree::stamps::{Built, Stamps};
use crate::worktree::{Capture, Early, Request, Stats, capture, rewritten};

/// The workspace as a capture found it under its rules, before a commit names it.
pub(crate) struct Observation {
    /// The rules that the capture kept to, and what it left out.
    pub coverage: Arc<Coverage>,
    /// Captured files and links, and the bytes of their content.
    pub totals: (u64, u64),
    /// The cost of looking and reading.
    pub stats: Stats,
    /// Sentences for the user on what could not be captured.
    pub warnings: Vec<String>,
    /// True if a name looks like a secret's; scans have this in their result.
    pub secrets: bool,
    /// The root tree as a checkpoint would name it, piton's own entry included.
    pub root: ObjectId,
    /// Trees (and records) that the store does not have yet.
    pub fresh: HashMap<ObjectId, Vec<u8>>,
    /// The time that it took so far.
    pub cost: Cost,
    /// The result of a scan; `None` when the warm tree holds it.
    pub scan: Option<Scan>,
    /// The repositories that were kept, because the action is about to destroy them.
    pub repositories: Vec<Staged>,
}

/// Returns the time of looking at names and of reading content.
pub(super) fn cost_of(stats: &Stats) -> Cost {
    Cost {
        stat_us: stats.walk_us,
        hash_us: stats.hash_us,
        hashed: stats.hashed,
        hashed_bytes: stats.hashed_bytes,
        ..Cost::default()
    }
}

/// The result of a scan.
pub(crate) struct Scan {
    /// The paths with all that was found out about them.
    pub capture: Capture,
    /// The digest of what the trees were built from beside the known files, if they hold the whole workspace.
    pub shape: Option<[u8; 20]>,
}

impl Scan {
    /// Returns true if any captured name looks like a secret's.
    pub(super) fn has_secrets(&self) -> bool {
        self.capture.manifest.iter().any(|(path, _)| crate::filter::secret::is_secret(path.name()))
    }
}

/// The knowledge before a capture.
#[derive(Clone, Default)]
pub(super) struct PriorKnowledge {
    /// The stamps of the last capture; empty if there are none that can be used.
    pub(super) stamps: Stamps,
    /// Paths that were captured before, but without stamps.
    sticky: BTreeSet<RelPath>,
    /// Scouts that were started early.
    early: Option<Arc<Early>>,
}

/// The place to which captured content goes.
#[derive(Clone, Copy)]
pub(super) enum Destination<'b, 's> {
    /// Content becomes objects of this batch.
    Batch(&'b Batch<'s>),
    /// Content is hashed and dropped, for looking only.
    Nowhere,
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
        let (epoch, boot) = (catalog.store.epoch()?, boot_id());
        if let Some(stamps) = held.filter(|stamps| stamps.boot == boot) {
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
        if stamps.epoch != epoch || stamps.boot != boot {
            stamps = doubted(catalog, stamps, epoch)?;
            stamps.boot = boot;
        }
        Ok(PriorKnowledge { stamps, sticky, early })
    }

    /// Returns the same paths, without knowledge of their content.
    pub(super) fn distrusted(&self) -> PriorKnowledge {
        let mut before = self.clone();
        let known = std::mem::take(&mut before.stamps.known);
        before.sticky.extend(known.entries().iter().map(|(path, _)| path.clone()));
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
    let missing = catalog.store.missing(&mut stamps.known.entries().iter().map(|(_, known)| known.id))?;
    for known in Arc::make_mut(&mut stamps.known).values_mut().filter(|known| missing.contains(&known.id)) {
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

impl Observation {
    fn of(capture: Capture, shape: Option<[u8; 20]>, root: ObjectId, fresh: HashMap<ObjectId, Vec<u8>>) -> Observation {
        Observation {
            coverage: Arc::new(capture.coverage.clone()),
            totals: capture.manifest.totals(),
            stats: capture.stats,
            warnings: capture.warnings.clone(),
            secrets: false,
            root,
            fresh,
            cost: cost_of(&capture.stats),
            scan: Some(Scan { capture, shape }),
            repositories: Vec::new(),
        }
    }

    /// Scans the workspace and builds its trees.
    pub(super) fn scan(
        catalog: &Catalog,
        take: &Take,
        before: &PriorKnowledge,
        destination: Destination<'_, '_>,
        control: &dyn Fn() -> Flow,
    ) -> Result<Observation> {
        let never = [catalog.home.path().to_owned()];
        let request = request(catalog, &take.selection, before, &never);
        let mut capture = match destination {
            Destination::Batch(batch) => capture(&request, batch, control)?,
            Destination::Nowhere => capture(&request, &HashOnly, control)?,
        };
        if let Some(narrow) = catalog.narrowing(&take.draft)? {
            narrow.apply(&mut capture.manifest, &mut capture.coverage);
        }
        let is_own = |path: &RelPath| path.parent().is_none_or(|parent| parent.is_root());
        let goes = |path: &RelPath| match take.selection.takes {
            Takes::Repositories => true,
            Takes::Nested => !is_own(path),
            Takes::Nothing => false,
        };
        capture.coverage.skipped.retain(|path, why| !matches!(why, SkipReason::Repository(_)) || goes(path));
        let repositories = match destination {
            Destination::Batch(_) => keep_repositories(catalog, &mut capture, control)?,
            Destination::Nowhere => Vec::new(),
        };
        let is_typed = take.draft.kind.is_typed();
        let shape = if request.extent == Extent::Tree && !is_typed && capture.stats.targeted == 0 {
            Some(shape(&capture.manifest, &capture.coverage)?)
        } else {
            None
        };
        if capture.same {
            let same = std::mem::replace(&mut capture.known, Arc::clone(&before.stamps.known));
            memory::drop_beside(same, capture.stats.files);
            let built = before.stamps.built.filter(|built| Some(built.shape) == shape);
            if let Some(built) = built.filter(|_| capture.stats.hashed == 0)
                && catalog.store.has(&built.root)?
            {
                let observed = Observation::of(capture, shape, built.root, HashMap::new());
                return Ok(Observation { repositories, ..observed });
            }
        }
        let building = Instant::now();
        let mut fresh = HashMap::new();
        let root = build(&capture.manifest, &capture.coverage, &mut |kind, id, bytes| {
            let there = match destination {
                Destination::Batch(batch) => emit(batch, kind, id, bytes)?,
                Destination::Nowhere => catalog.store.has(&id)?,
            };
            if !there {
                fresh.insert(id, bytes.to_vec());
            }
            Ok(())
        })?;
        let mut observed = Observation::of(capture, shape, root, fresh);
        observed.cost.trees_us = building.elapsed().as_micros() as u64;
        observed.repositories = repositories;
        Ok(observed)
    }
}

/// Keeps the repositories that the action is about to destroy, and takes those that are kept whole out of what is left out.
fn keep_repositories(catalog: &Catalog, capture: &mut Capture, control: &dyn Fn() -> Flow) -> Result<Vec<Staged>> {
    let is_repository = |why: &SkipReason| matches!(why, SkipReason::Repository(_));
    let skipped = &mut capture.coverage.skipped;
    let going: Vec<RelPath> =
        skipped.iter().filter(|(_, why)| is_repository(why)).map(|(path, _)| path.clone()).collect();
    let (records, root, mut staged) = (&catalog.workspace.dir, &catalog.workspace.path, Vec::new());
    let mut budget = catalog.policy.limits.git_copy;
    for path in going {
        let kept = stage(records, root, &path, budget, control);
        budget -= kept.as_ref().map_or(0, |(_, kept)| kept.copied.min(budget));
        match kept {
            Ok((kept, Kept { left: None, .. })) => {
                skipped.remove(&path);
                staged.push(kept);
            }
            Ok((kept, Kept { left: Some(weight), .. })) => {
                skipped.insert(path, SkipReason::Repository(weight));
                staged.push(kept);
            }
            Err(error) if error.code() == Code::ShuttingDown => return Err(error),
            // It stays listed as left out, and the checkpoint is taken all the same.
            Err(error) => capture.warnings.push(format!("`{}` was not kept: {}", path.display(), error.text())),
        }
    }
    Ok(staged)
}

/// Makes the request of a capture.
pub(super) fn request<'r>(
    catalog: &'r Catalog,
    selection: &'r Selection,
    before: &'r PriorKnowledge,
    never: &'r [PathBuf],
) -> Request<'r> {
    let policy = &catalog.policy;
    Request {
        root: &catalog.workspace.path,
        known: &before.stamps.known,
        sticky: &before.sticky,
        targets: &selection.targets,
        unlimited_targets: selection.unlimited,
        extent: selection.extent(catalog.workspace.scope),
        limits: policy.limits,
        secrets: policy.secrets,
        exclude: &policy.exclude,
        never,
        defaults: before.stamps.defaults,
        early: before.early.as_deref(),
    }
}

/// A request for all that the rules admit, without earlier knowledge.
pub(super) struct PlainRequest {
    selection: Selection,
    before: PriorKnowledge,
    never: [PathBuf; 1],
}

impl PlainRequest {
    /// Makes a request with the rules of the settings.
    pub(super) fn new(catalog: &Catalog) -> PlainRequest {
        let never = [catalog.home.path().to_owned()];
        PlainRequest { selection: Selection::default(), before: PriorKnowledge::default(), never }
    }

    /// Returns the request on a workspace.
    pub(super) fn on<'r>(&'r self, catalog: &'r Catalog) -> Request<'r> {
        request(catalog, &self.selection, &self.before, &self.never)
    }
}

/// Returns the digest of the parts of a tree beside the known files: directories, their permissions, and the coverage.
pub(super) fn shape(manifest: &Manifest, coverage: &Coverage) -> Result<[u8; 20]> {
    let mut text = Vec::new();
    for (names, content) in meta::encode(&Manifest::new(), coverage) {
        text.extend(names.join(&b'/'));
        text.push(0);
        text.extend(content);
    }
    for (path, entry) in manifest.iter().filter(|(_, entry)| entry.kind == EntryKind::Dir) {
        text.extend_from_slice(path.as_bytes());
        text.push(0);
        text.extend(entry.perm.to_le_bytes());
    }
    Ok(*ObjectId::of(ObjectKind::Blob, &text)?.as_bytes())
}

/// Writes a built object. A new tree must not name content that the store does not have. Returns true if the object was
/// there before.
fn emit(sink: &dyn ObjectSink, kind: ObjectKind, id: ObjectId, bytes: &[u8]) -> Result<bool> {
    if sink.contains(&id)? {
        return Ok(true);
    }
    if kind == ObjectKind::Tree {
        for entry in tree::decode(bytes)? {
            if !sink.contains(&entry.id)? {
                return Err(Error::new(Code::StoreDamaged, format!("object {} is missing from the store", entry.id)));
            }
        }
    }
    sink.write(kind, id, bytes)?;
    Ok(false)
}
