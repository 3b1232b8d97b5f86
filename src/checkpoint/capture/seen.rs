//! Looking at the workspace under its rules: what is known, what is there now, and the trees of it.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use super::take::Take;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::timeline::{Checkpoint, Timeline};
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
use crate::worktree::stamps::{Built, Stamps};
use crate::worktree::{Capture, Early, Request, Stats, capture, rewritten};

/// What a look at the workspace under its rules gave, before anything names it.
pub(in crate::checkpoint) struct Seen {
    pub coverage: Arc<Coverage>,
    /// Captured files and links, and their bytes.
    pub totals: (u64, u64),
    pub stats: Stats,
    pub warnings: Vec<String>,
    /// Whether a name looks like a secret's; scans tell for themselves.
    pub secrets: bool,
    pub root: ObjectId,
    /// Trees (and records) that the store does not have yet.
    pub fresh: HashMap<ObjectId, Vec<u8>>,
    /// What it took so far.
    pub cost: Cost,
    /// What a scan gave; `None` when the warm tree holds it.
    pub scan: Option<Scan>,
}

/// What looking at names and reading content took.
pub(in crate::checkpoint) fn cost_of(stats: &Stats) -> Cost {
    Cost {
        stat_us: stats.walk_us,
        hash_us: stats.hash_us,
        hashed: stats.hashed,
        hashed_bytes: stats.hashed_bytes,
        ..Cost::default()
    }
}

/// What a scan gave.
pub(in crate::checkpoint) struct Scan {
    pub capture: Capture,
    /// What the trees were built from beside the known files, if they hold the whole workspace.
    pub shape: Option<[u8; 20]>,
}

impl Seen {
    fn of(capture: Capture, shape: Option<[u8; 20]>, root: ObjectId, fresh: HashMap<ObjectId, Vec<u8>>) -> Seen {
        Seen {
            coverage: Arc::new(capture.coverage.clone()),
            totals: capture.manifest.totals(),
            stats: capture.stats,
            warnings: capture.warnings.clone(),
            secrets: false,
            root,
            fresh,
            cost: cost_of(&capture.stats),
            scan: Some(Scan { capture, shape }),
        }
    }
}

/// What is known before a capture.
#[derive(Clone)]
pub(in crate::checkpoint) struct Before {
    pub stamps: Stamps,
    /// Captured before, but without stamps.
    pub sticky: BTreeSet<RelPath>,
    /// Scouts that are on their way.
    pub early: Option<Arc<Early>>,
}

/// Where captured content goes.
#[derive(Clone, Copy)]
pub(in crate::checkpoint) enum Into<'b, 's> {
    Batch(&'b Batch<'s>),
    /// Hashed and forgotten: for looking only.
    Nothing,
}

impl Timeline {
    /// What is known from earlier captures, checked against the store when that may have lost objects, and against the content of
    /// what the capture names. What was in memory is handed in.
    pub(in crate::checkpoint) fn known_now(
        &self,
        take: &Take,
        all: &[Checkpoint],
        held: Option<Stamps>,
        control: &dyn Fn() -> Flow,
    ) -> Result<Before> {
        let mut before = self.remembered(take, all, held)?;
        if take.names_targets() {
            let known = &mut before.stamps.known;
            for path in rewritten(&self.workspace.path, known, &take.targets, control)? {
                Arc::make_mut(known).distrust(&path);
            }
        }
        Ok(before)
    }

    fn remembered(&self, take: &Take, all: &[Checkpoint], held: Option<Stamps>) -> Result<Before> {
        let epoch = self.store.epoch()?;
        let boot = boot_id();
        let held = held.filter(|stamps| stamps.boot == boot);
        if let Some(stamps) = held {
            let stamps = if stamps.epoch == epoch { stamps } else { self.doubted(stamps, epoch)? };
            return Ok(Before { stamps, sticky: BTreeSet::new(), early: None });
        }
        let file = self.workspace.dir.join("stamps");
        let (whole, mut early) = (self.extent(take) == Extent::Tree, None);
        let loaded = crate::worktree::stamps::load(&file, &mut |dirs| {
            early = whole.then(|| Early::start(&self.workspace.path, dirs)).flatten().map(Arc::new);
        })?;
        let sticky = if loaded.is_none() { self.sticky_from(all) } else { BTreeSet::new() };
        let mut stamps =
            loaded.unwrap_or_else(|| Stamps { epoch: epoch.clone(), boot: boot.clone(), ..Stamps::default() });
        if stamps.epoch != epoch || stamps.boot != boot {
            stamps = self.doubted(stamps, epoch)?;
            stamps.boot = boot;
        }
        Ok(Before { stamps, sticky, early })
    }

    /// What is known, after the store may have lost objects: files whose content is gone are read again, and every tree is looked for.
    fn doubted(&self, mut stamps: Stamps, epoch: String) -> Result<Stamps> {
        let missing = self.store.missing(&mut stamps.known.entries().iter().map(|(_, known)| known.id))?;
        for known in Arc::make_mut(&mut stamps.known).values_mut().filter(|known| missing.contains(&known.id)) {
            known.proven = false;
        }
        (stamps.epoch, stamps.built) = (epoch, None);
        Ok(stamps)
    }

    /// Without stamps: what the newest whole checkpoint holds stays captured. One that is damaged is passed over for the one before it.
    fn sticky_from(&self, all: &[Checkpoint]) -> BTreeSet<RelPath> {
        let whole = |checkpoint: &&Checkpoint| {
            let record = &checkpoint.record;
            !record.kind.is_typed() && record.is_whole() && !record.flags.iter().any(|flag| flag == "targeted")
        };
        let readable = all.iter().rev().filter(whole).find_map(|newest| self.load(&newest.tree, &|_| true).ok());
        let Some((manifest, _)) = readable else { return BTreeSet::new() };
        manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir).map(|(path, _)| path.clone()).collect()
    }

    /// Captures the workspace and builds its trees.
    pub(in crate::checkpoint) fn capture_with(
        &self,
        take: &Take,
        before: &Before,
        into: Into<'_, '_>,
        control: &dyn Fn() -> Flow,
    ) -> Result<Seen> {
        let never = [self.home.path().to_owned()];
        let request = self.request(take, before, &never);
        let mut capture = match into {
            Into::Batch(batch) => capture(&request, batch, control)?,
            Into::Nothing => capture(&request, &HashOnly, control)?,
        };
        if let Some(narrow) = self.narrowing(take)? {
            narrow.apply(&mut capture.manifest, &mut capture.coverage);
        }
        let is_own = |path: &RelPath| path.parent().is_none_or(|parent| parent.is_root());
        let goes = |path: &RelPath| match take.takes {
            Takes::Repositories => true,
            Takes::Nested => !is_own(path),
            Takes::Nothing => false,
        };
        capture.coverage.skipped.retain(|path, why| !matches!(why, SkipReason::Repository(_)) || goes(path));
        let shape = if request.extent == Extent::Tree && !take.kind.is_typed() && capture.stats.targeted == 0 {
            Some(shape(&capture.manifest, &capture.coverage)?)
        } else {
            None
        };
        if capture.same {
            let same = std::mem::replace(&mut capture.known, Arc::clone(&before.stamps.known));
            memory::drop_beside(same, capture.stats.files);
            let built = before.stamps.built.filter(|built| Some(built.shape) == shape);
            if let Some(built) = built.filter(|_| capture.stats.hashed == 0)
                && self.store.has(&built.root)?
            {
                return Ok(Seen::of(capture, shape, built.root, HashMap::new()));
            }
        }
        let building = Instant::now();
        let mut fresh = HashMap::new();
        let root = build(&capture.manifest, &capture.coverage, &mut |kind, id, bytes| {
            let there = match into {
                Into::Batch(batch) => emit(batch, kind, id, bytes)?,
                Into::Nothing => self.store.has(&id)?,
            };
            if !there {
                fresh.insert(id, bytes.to_vec());
            }
            Ok(())
        })?;
        let mut seen = Seen::of(capture, shape, root, fresh);
        seen.cost.trees_us = building.elapsed().as_micros() as u64;
        Ok(seen)
    }

    /// What a capture is asked for.
    pub(in crate::checkpoint) fn request<'r>(
        &'r self,
        take: &'r Take,
        before: &'r Before,
        never: &'r [PathBuf],
    ) -> Request<'r> {
        Request {
            root: &self.workspace.path,
            known: &before.stamps.known,
            sticky: &before.sticky,
            targets: &take.targets,
            unlimited_targets: take.unlimited,
            extent: self.extent(take),
            limits: self.policy.limits,
            secrets: self.policy.secrets,
            exclude: &self.policy.exclude,
            never,
            defaults: before.stamps.defaults,
            early: before.early.as_deref(),
        }
    }

    pub(in crate::checkpoint) fn extent(&self, take: &Take) -> Extent {
        match self.workspace.scope {
            Scope::TargetsOnly => Extent::Paths(take.targets.iter().map(|target| target.path.clone()).collect()),
            Scope::Tree if take.only.is_empty() => Extent::Tree,
            Scope::Tree => Extent::Paths(take.only.clone()),
        }
    }

    /// Remembers stamps for the next capture; [`Timeline::settle`] writes them.
    pub(in crate::checkpoint) fn remember(&mut self, before: Before, seen: &Seen, take: &Take) {
        let mut stamps = before.stamps;
        if self.extent(take) == Extent::Tree
            && let Some(Scan { capture, shape }) = &seen.scan
        {
            let built = shape.map(|shape| Built { shape, root: seen.root });
            let moved = capture.known != stamps.known;
            self.unsaved = self.unsaved || moved || (built.is_some() && built != stamps.built);
            stamps.built = if moved { built } else { built.or(stamps.built) };
            stamps.known = Arc::clone(&capture.known);
            stamps.defaults = Some(capture.coverage.defaults);
        }
        self.stamps = Some(stamps);
    }
}

/// What trees are built from beside the files that a capture knows: directories, their permissions, and the coverage.
pub(in crate::checkpoint) fn shape(manifest: &Manifest, coverage: &Coverage) -> Result<[u8; 20]> {
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

/// Writes a built object; a tree that is new must not name content the store does not have. Says whether the object was
/// there before.
pub(in crate::checkpoint) fn emit(sink: &dyn ObjectSink, kind: ObjectKind, id: ObjectId, bytes: &[u8]) -> Result<bool> {
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

impl Before {
    /// The same paths, but nothing about their content is taken for known.
    pub(in crate::checkpoint) fn distrusted(&self) -> Before {
        let mut before = self.clone();
        let known = std::mem::take(&mut before.stamps.known);
        before.sticky.extend(known.entries().iter().map(|(path, _)| path.clone()));
        before
    }
}
