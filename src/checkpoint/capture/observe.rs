//! Observes the workspace under its rules: gathers earlier knowledge, scans, and builds the trees.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::knowledge::{PriorKnowledge, PrivateOnce};
use super::request::{Selection, Take};
use crate::checkpoint::catalog::layers::covered;
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
use crate::model::sink::ObjectSink;
use crate::model::tree;
use crate::store::Batch;
use crate::sys::interrupt::Flow;
use crate::sys::memory;
use crate::worktree::repository::Objects;
use crate::worktree::{Capture, PrivatePart, Request, Sinks, Spare, Stats, capture};

/// The workspace as a capture found it under its rules, before a commit names it.
pub(crate) struct Observation {
    /// The rules that the capture kept to, and what neither part holds.
    pub coverage: Arc<Coverage>,
    /// Captured files and links, and the bytes of their content.
    pub totals: (u64, u64),
    /// The private files.
    pub private: Arc<PrivatePart>,
    /// The root of their tree; `None` where there are none.
    pub private_root: Option<ObjectId>,
    /// The cost of looking and reading.
    pub stats: Stats,
    /// Sentences for the user on what could not be captured.
    pub warnings: Vec<String>,
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
    /// The whole workspace, where patterns narrow what is recorded.
    pub whole: Option<WholePart>,
}

/// The shared part of the whole workspace, beside a narrowed checkpoint.
pub(crate) struct WholePart {
    /// The root tree.
    pub root: ObjectId,
    /// Captured files and links, and the bytes of their content.
    pub totals: (u64, u64),
    /// The rules that the capture kept to.
    pub coverage: Arc<Coverage>,
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

/// The place to which captured content goes.
#[derive(Clone, Copy)]
pub(super) enum Destination<'b, 's> {
    /// Content becomes objects of these batches, for the shared and for the private part.
    Batch(&'b Batch<'s>, &'b LocalBatch<'s>),
    /// Content is hashed and dropped, for looking only.
    Nowhere,
}

impl Observation {
    /// Returns the number of parts that are freed with it. Only a scan has many: a capture of changes shares its parts with the memory.
    pub(crate) fn parts(&self) -> u64 {
        let scanned = self.scan.as_ref().map_or(0, |scan| scan.capture.stats.files);
        scanned + self.fresh.len() as u64
    }

    fn of(
        mut capture: Capture,
        shape: Option<[u8; 20]>,
        (root, private_root): (ObjectId, Option<ObjectId>),
        fresh: HashMap<ObjectId, Vec<u8>>,
    ) -> Observation {
        let private = Arc::new(std::mem::take(&mut capture.private));
        Observation {
            coverage: told(&Arc::new(capture.coverage.clone()), &private),
            private,
            private_root,
            totals: capture.manifest.totals(),
            stats: capture.stats,
            warnings: capture.warnings.clone(),
            root,
            fresh,
            cost: cost_of(&capture.stats),
            scan: Some(Scan { capture, shape }),
            repositories: Vec::new(),
            whole: None,
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
        let (never, private) = ([catalog.home.path().to_owned()], PrivateOnce::of(catalog));
        // A step may hold what the turn's checkpoint did not look at.
        let dates = take.draft.standing.is_some();
        let is_deleted = catalog.finds_nothing(take.draft.kind);
        let request = Request { is_deleted, dates, ..request(&private, &take.selection, before, &never) };
        let mut capture = match destination {
            Destination::Batch(batch, local) => {
                capture(&request, Sinks { shared: batch, local: &|| local.sink() }, control)?
            }
            Destination::Nowhere => capture(&request, Sinks::nowhere(), control)?,
        };
        let everything = match catalog.narrowing(&take.draft)? {
            Some(narrow) => {
                let everything = (capture.manifest.clone(), capture.coverage.clone());
                let is_narrowed = narrow.apply(&mut capture.manifest, &mut capture.coverage);
                Some(everything).filter(|_| is_narrowed && request.extent == Extent::Tree)
            }
            None => None,
        };
        leave_out_staying(&mut capture, take.selection.takes);
        let repositories = match destination {
            Destination::Batch(..) => keep_repositories(catalog, &mut capture, take.selection.in_place, control)?,
            Destination::Nowhere => Vec::new(),
        };
        let is_typed = take.draft.kind.is_typed();
        let shape = if request.extent == Extent::Tree && !is_typed && capture.stats.targeted == 0 {
            Some(shape(&capture.manifest, &capture.coverage)?)
        } else {
            None
        };
        let mut fresh = HashMap::new();
        let private_root = capture.private.build(&mut |kind, id, bytes| {
            let there = match destination {
                Destination::Batch(_, local) => emit(local.batch()?, kind, id, bytes)?,
                Destination::Nowhere => false,
            };
            if !there {
                fresh.insert(id, bytes.to_vec());
            }
            Ok(())
        })?;
        if capture.same {
            let same = std::mem::replace(&mut capture.known, Arc::clone(&before.stamps.known));
            memory::drop_beside(same, capture.stats.files);
            let built = before.stamps.built.filter(|built| Some(built.shape) == shape);
            if let Some(built) = built.filter(|_| capture.stats.hashed == 0)
                && catalog.store.has(&built.root)?
            {
                let observed = Observation::of(capture, shape, (built.root, private_root), fresh);
                return Ok(Observation { repositories, ..observed });
            }
        }
        let building = Instant::now();
        let mut emit_shared = |kind: ObjectKind, id: ObjectId, bytes: &[u8]| {
            let there = match destination {
                Destination::Batch(batch, _) => emit(batch, kind, id, bytes)?,
                Destination::Nowhere => catalog.store.has(&id)?,
            };
            if !there {
                fresh.insert(id, bytes.to_vec());
            }
            Ok(())
        };
        let root = build(&capture.manifest, &capture.coverage, &mut emit_shared)?;
        let whole = |(manifest, coverage): (Manifest, Coverage)| {
            let root = build(&manifest, &coverage, &mut emit_shared)?;
            Ok::<_, Error>(WholePart { root, totals: manifest.totals(), coverage: Arc::new(coverage) })
        };
        let whole = everything.map(whole).transpose()?;
        let mut observed = Observation::of(capture, shape, (root, private_root), fresh);
        observed.cost.trees_us = building.elapsed().as_micros() as u64;
        Ok(Observation { repositories, whole, ..observed })
    }
}

/// Leaves repositories out of the coverage that the action leaves alone, although the directories around them are emptied.
fn leave_out_staying(capture: &mut Capture, takes: Takes) {
    let is_own = |path: &RelPath| path.parent().is_none_or(|parent| parent.is_root());
    let goes = |path: &RelPath| match takes {
        Takes::Repositories => true,
        Takes::Nested => !is_own(path),
        Takes::Nothing => false,
    };
    capture.coverage.skipped.retain(|path, why| !matches!(why, SkipReason::Repository(_)) || goes(path));
}

/// Returns the coverage of both parts.
pub(super) fn told(shared: &Arc<Coverage>, private: &PrivatePart) -> Arc<Coverage> {
    if private.manifest.is_empty() && private.coverage.skipped.is_empty() {
        return Arc::clone(shared);
    }
    Arc::new(covered(Coverage::clone(shared), private, shared.private))
}

/// The private part of a capture on its way into its store, which is opened when there is something to write.
pub(super) struct LocalBatch<'s> {
    catalog: &'s Catalog,
    batch: OnceCell<Batch<'s>>,
}

impl<'s> LocalBatch<'s> {
    /// Makes one that has nothing to write yet.
    pub(super) fn new(catalog: &'s Catalog) -> LocalBatch<'s> {
        LocalBatch { catalog, batch: OnceCell::new() }
    }

    /// Returns the batch, which is begun if it is not yet.
    pub(super) fn batch(&self) -> Result<&Batch<'s>> {
        if let Some(batch) = self.batch.get() {
            return Ok(batch);
        }
        let batch = self.catalog.local()?.batch()?;
        Ok(self.batch.get_or_init(|| batch))
    }

    /// Returns the same as the place for content.
    pub(super) fn sink(&self) -> Result<&dyn ObjectSink> {
        self.batch().map(|batch| batch as &dyn ObjectSink)
    }

    /// Returns what was begun; `None` where there was nothing to write.
    pub(super) fn begun(self) -> Option<Batch<'s>> {
        self.batch.into_inner()
    }
}

/// Keeps the repositories that the action is about to destroy, and takes those that are kept whole out of what is left out.
fn keep_repositories(
    catalog: &Catalog,
    capture: &mut Capture,
    in_place: bool,
    control: &dyn Fn() -> Flow,
) -> Result<Vec<Staged>> {
    let is_repository = |why: &SkipReason| matches!(why, SkipReason::Repository(_));
    let skipped = &mut capture.coverage.skipped;
    let going: Vec<RelPath> =
        skipped.iter().filter(|(_, why)| is_repository(why)).map(|(path, _)| path.clone()).collect();
    let (records, root, mut staged) = (&catalog.workspace.dir, &catalog.workspace.path, Vec::new());
    let mut budget = catalog.policy.limits.git_copy;
    let objects = if in_place { Objects::Copied } else { Objects::Linked };
    for path in going {
        let kept = stage(records, root, &path, (objects, budget), control);
        budget -= kept.as_ref().map_or(0, |(_, kept)| kept.copied.min(budget));
        match kept {
            Ok((repository, kept)) => {
                match kept.exposed() {
                    None => _ = skipped.remove(&path),
                    Some(weight) => _ = skipped.insert(path, SkipReason::Repository(weight)),
                }
                staged.push(repository);
            }
            Err(error) if error.code() == Code::ShuttingDown => return Err(error),
            // It stays listed as left out, and the checkpoint is taken all the same.
            Err(error) => capture.warnings.push(format!("`{}` was not kept: {}", path.display(), error.text())),
        }
    }
    Ok(staged)
}

/// Makes the request of a capture.
fn request<'r>(
    private: &'r PrivateOnce<'r>,
    selection: &'r Selection,
    before: &'r PriorKnowledge,
    never: &'r [PathBuf],
) -> Request<'r> {
    let catalog = private.catalog;
    let (policy, extent) = (&catalog.policy, selection.extent(catalog.workspace.scope));
    let spare = match extent {
        Extent::Tree => Spare::among(&policy.limits.ignored, &before.stamps.known),
        Extent::Paths(_) => Spare::default(),
    };
    Request {
        root: &catalog.workspace.path,
        is_deleted: false,
        known: &before.stamps.known,
        sticky: &before.sticky,
        private,
        targets: &selection.targets,
        unlimited_targets: selection.unlimited,
        budget: selection.budget,
        wanted_targets: selection.wanted,
        dates: false,
        spare,
        extent,
        limits: policy.limits,
        secrets: policy.secrets,
        exclude: &policy.exclude,
        never,
        defaults: before.stamps.defaults,
        early: before.early.as_deref(),
        progress: catalog.store.progress(),
    }
}

/// A request for all that the rules admit, without earlier knowledge.
pub(super) struct PlainRequest<'c> {
    private: PrivateOnce<'c>,
    selection: Selection,
    before: PriorKnowledge,
    never: [PathBuf; 1],
}

impl<'c> PlainRequest<'c> {
    /// Makes a request with the rules of the settings.
    pub(super) fn new(catalog: &'c Catalog) -> PlainRequest<'c> {
        let never = [catalog.home.path().to_owned()];
        let private = PrivateOnce::of(catalog);
        PlainRequest { private, selection: Selection::default(), before: PriorKnowledge::default(), never }
    }

    /// Returns the request on a workspace.
    pub(super) fn on_workspace(&self) -> Request<'_> {
        request(&self.private, &self.selection, &self.before, &self.never)
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
