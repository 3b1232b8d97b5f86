//! The warm tree itself: how it is made, and its queries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::super::beneath::Root;
use super::super::probe::probe;
use super::super::request::{Capture, PrivatePart, Request, Spare, Target};
use super::super::walk::{self, Repo, Visited, WalkDir};
use super::node::{Built, DirNode};
use crate::error::Result;
use crate::filter::verdict::{DirRule, directory_rule, is_never_captured};
use crate::filter::{Level, database, generated, secret};
use crate::model::coverage::{Coverage, Defaults, Extent, SkipReason};
use crate::model::id::ObjectId;
use crate::model::manifest::{Manifest, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::policy::{Limits, Secrets};
use crate::model::stamp::{KnownFile, KnownPaths};
use crate::model::tree::{Mode, TreeEntry};

/// A captured workspace, kept up to date.
pub struct Warm {
    pub(super) root: DirNode,
    /// Device and inode of the root.
    pub(super) identity: (u64, u64),
    pub(super) rules: CaptureRules,
    /// Repositories by the beginning of their work trees.
    pub(super) repos: BTreeMap<RelPath, Arc<Repo>>,
    /// The coverage of the whole, as of the last capture.
    pub(super) coverage: Arc<Coverage>,
    /// The known facts of paths that could not be captured the last time.
    pub(super) retained: BTreeMap<RelPath, KnownFile>,
    /// Captured files whose changes may give no event: with several names, or written through mappings.
    pub(super) eventless: BTreeSet<RelPath>,
    /// Captured links.
    pub(super) links: BTreeSet<RelPath>,
    /// True if `eventless` has changed since it was asked for.
    pub(super) moved: bool,
    /// Sentences for the user, as of the last capture.
    pub(super) warnings: Vec<String>,
    /// Captured files whose names look like secrets'.
    pub(super) secrets: u64,
    /// Captured files and links.
    pub(super) files: u64,
    /// Bytes of their content.
    pub(super) bytes: u64,
    /// piton's own records: the blob of each directory in which something deviates.
    pub(super) shards: BTreeMap<RelPath, ObjectId>,
    /// Directories whose shards may have changed.
    pub(super) unsure: BTreeSet<RelPath>,
    /// The blob of the record of the whole, and the entry of all records; `None` when they may have changed.
    pub(super) own: Option<(Option<ObjectId>, Option<TreeEntry>)>,
    /// The root tree; `None` when something has to be built anew.
    pub(super) tree: Option<ObjectId>,
    /// The private files.
    pub(super) private: PrivateFiles,
}

/// The private files of a warm tree, whose facts are among those of the other files.
#[derive(Default)]
pub(super) struct PrivateFiles {
    /// Their paths.
    pub(super) paths: BTreeSet<RelPath>,
    /// Bytes of their content.
    pub(super) bytes: u64,
    /// The directories that ignore rules close, and that were looked into.
    pub(super) dirs: BTreeSet<RelPath>,
    /// The paths beyond the budget.
    pub(super) beyond: BTreeMap<RelPath, SkipReason>,
    /// The files that never held still while they were read.
    pub(super) unstable: BTreeSet<RelPath>,
    /// All of them, and the root of their layer (`None` where there are none); `None` where it has to be built anew.
    pub(super) tree: Option<(Arc<PrivatePart>, Option<ObjectId>)>,
}

/// The part of a request that decides what is captured.
pub(super) struct CaptureRules {
    pub(super) limits: Limits,
    pub(super) secrets: Secrets,
    pub(super) exclude: Vec<String>,
    pub(super) configured: Option<Arc<Level>>,
}

impl CaptureRules {
    /// Returns whether the rules are those of a request.
    pub(super) fn are_of(&self, request: &Request<'_>) -> bool {
        self.limits == request.limits && self.secrets == request.secrets && self.exclude == request.exclude
    }
}

impl Warm {
    /// Makes a tree from a capture of the whole workspace without targets; `None` when that left out files because
    /// there are too many.
    ///
    /// # Errors
    /// When the root cannot be looked at any more.
    pub fn new(request: &Request<'_>, capture: &Capture, private: &PrivatePart) -> Result<Option<Warm>> {
        let over = capture.coverage.skipped.values().any(|reason| *reason == SkipReason::OverCount);
        let whole = request.extent == Extent::Tree && request.targets.is_empty();
        let Some(first) = capture.visits.0.first().filter(|visited| visited.place.path.is_root() && whole && !over)
        else {
            return Ok(None);
        };
        let mut warm = Warm {
            root: DirNode::of(first),
            identity: Root::open(request.root)?.identity()?,
            rules: CaptureRules {
                limits: request.limits,
                secrets: request.secrets,
                exclude: request.exclude.to_vec(),
                configured: walk::configured(request),
            },
            repos: BTreeMap::new(),
            coverage: Arc::new(capture.coverage.clone()),
            retained: BTreeMap::new(),
            eventless: BTreeSet::new(),
            links: BTreeSet::new(),
            moved: true,
            warnings: capture.warnings.clone(),
            secrets: 0,
            files: 0,
            bytes: 0,
            shards: BTreeMap::new(),
            unsure: BTreeSet::new(),
            own: None,
            tree: None,
            private: PrivateFiles {
                beyond: private.coverage.skipped.clone(),
                unstable: private.coverage.unstable.iter().cloned().collect(),
                ..PrivateFiles::default()
            },
        };
        for visited in &capture.visits.0 {
            warm.put_dir(visited);
        }
        for (path, known) in capture.known.entries() {
            let captured = if known.private { &private.manifest } else { &capture.manifest };
            warm.put_known(path, *known, captured.contains(path));
        }
        Ok(Some(warm))
    }

    /// Tells whether this tree holds the answer to a request.
    pub fn serves(&self, request: &Request<'_>) -> bool {
        request.extent == Extent::Tree && request.targets.is_empty() && self.rules.are_of(request)
    }

    /// Returns the rules under which everything was captured.
    pub fn coverage(&self) -> &Arc<Coverage> {
        &self.coverage
    }

    /// Warnings for the user, as sentences.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns number of captured files and links, and their bytes.
    pub fn totals(&self) -> (u64, u64) {
        (self.files, self.bytes)
    }

    /// Captured files whose changes may give no event; `None` when they are those of the last call.
    pub fn take_eventless(&mut self) -> Option<&BTreeSet<RelPath>> {
        std::mem::take(&mut self.moved).then_some(&self.eventless)
    }

    /// Captured links.
    pub fn links(&self) -> &BTreeSet<RelPath> {
        &self.links
    }

    /// Tells whether a captured file's name looks like a secret's.
    pub fn has_secrets(&self) -> bool {
        self.secrets > 0
    }

    /// Returns mode and id of a path from the tree objects of the shared part, which must be built.
    pub fn side(&self, path: &RelPath) -> Option<(Mode, ObjectId)> {
        match self.node(path).map(|node| node.built) {
            Some(Built::Tree(id)) => return Some((Mode::Dir, id)),
            Some(Built::Absent | Built::Stale) => return None,
            None => {}
        }
        let node = self.node(&path.parent()?)?;
        let leaf = node.leaf(path.name()).filter(|leaf| !leaf.known.private)?;
        let entry = leaf.entry();
        Some((entry.mode(), entry.id))
    }

    /// Everything that is captured.
    pub fn manifest(&self) -> Manifest {
        let mut entries: Vec<(RelPath, ManifestEntry)> = Vec::with_capacity(self.files as usize);
        self.root.visit(&RelPath::root(), &mut |path, leaf| {
            if !leaf.known.private {
                entries.push((path, leaf.entry()));
            }
        });
        self.root.visit_dirs(&RelPath::root(), &mut |path, node| {
            if node.is_in() {
                entries.push((path, ManifestEntry::dir(node.perm)));
            }
        });
        entries.into_iter().collect()
    }

    /// Returns the captured entries at some paths, the directories above them, and all below them.
    pub fn manifest_near(&self, paths: &BTreeSet<RelPath>) -> Manifest {
        let mut near = Manifest::new();
        let put_dir = |near: &mut Manifest, path: RelPath, node: &DirNode| {
            if node.is_in() && !path.is_root() {
                near.insert(path, ManifestEntry::dir(node.perm));
            }
        };
        for path in paths {
            let mut above = path.parent();
            while let Some(dir) = above.filter(|dir| !dir.is_root() && !near.contains(dir)) {
                self.node(&dir).into_iter().for_each(|node| put_dir(&mut near, dir.clone(), node));
                above = dir.parent();
            }
            if let Some(node) = self.node(path) {
                put_dir(&mut near, path.clone(), node);
                node.visit_dirs(path, &mut |path, node| put_dir(&mut near, path, node));
                node.visit(path, &mut |path, leaf| {
                    if !leaf.known.private {
                        near.insert(path, leaf.entry());
                    }
                });
            } else if let Some(leaf) = path.parent().and_then(|dir| self.node(&dir)?.leaf(path.name()))
                && !leaf.known.private
            {
                near.insert(path.clone(), leaf.entry());
            }
        }
        near
    }

    /// The private files, and the directories that only they are in.
    pub fn private(&self) -> Arc<PrivatePart> {
        if let Some((part, _)) = &self.private.tree {
            return Arc::clone(part);
        }
        let dir = |path: &RelPath| {
            let node = self.node(path).filter(|node| !node.is_in())?;
            Some((path.clone(), ManifestEntry::dir(node.perm)))
        };
        let file = |path: &RelPath| {
            let parent = self.node(&path.parent()?)?;
            Some((path.clone(), parent.leaf(path.name())?.entry()))
        };
        // A directory above a named file is not looked at for private files, and comes back all the same.
        let parents = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent);
        let above = self.private.paths.iter().flat_map(parents).filter(|path| !path.is_root());
        let dirs: BTreeSet<RelPath> = above.chain(self.private.dirs.iter().cloned()).collect();
        let dirs = dirs.iter().filter_map(dir);
        let manifest = dirs.chain(self.private.paths.iter().filter_map(file)).collect();
        let unstable = self.private.unstable.iter().cloned().collect();
        let coverage = Coverage { skipped: self.private.beyond.clone(), unstable, ..Coverage::default() };
        Arc::new(PrivatePart { manifest, coverage })
    }

    /// Returns the room that the private files leave for others.
    pub fn spare(&self) -> Spare {
        let captured = (self.private.paths.len() as u64, self.private.bytes);
        // One that could not be taken this time keeps its room.
        let retained = self.retained.values().filter(|known| known.private);
        let taken = retained.fold(captured, |(files, bytes), known| (files + 1, bytes + known.stamp.size));
        Spare::beside(&self.rules.limits.ignored, taken)
    }

    /// Returns the known facts, for the next capture and for the stamps file.
    pub fn known(&self) -> KnownPaths {
        let mut known = Vec::with_capacity(self.files as usize);
        self.root.visit(&RelPath::root(), &mut |path, leaf| known.push((path, leaf.known)));
        known.extend(self.retained.iter().map(|(path, known)| (path.clone(), *known)));
        KnownPaths::new(known)
    }

    /// Returns what is known of a path.
    pub fn known_of(&self, path: &RelPath) -> Option<KnownFile> {
        let parent = path.parent().and_then(|parent| self.node(&parent));
        let leaf = parent.and_then(|parent| parent.leaf(path.name()));
        leaf.map(|leaf| leaf.known).or_else(|| self.retained.get(path).copied())
    }

    /// Returns the usual permission bits, which the next capture keeps.
    pub fn defaults(&self) -> Defaults {
        self.coverage.defaults
    }

    /// Returns the captured entry of a path; the root has none.
    pub fn entry(&self, path: &RelPath) -> Option<ManifestEntry> {
        let node = self.node(&path.parent()?)?;
        let dir = node.dir(path.name()).filter(|dir| dir.is_in()).map(|dir| ManifestEntry::dir(dir.perm));
        dir.or_else(|| node.leaf(path.name()).map(super::node::Leaf::entry))
    }

    /// Tells whether a capture for this target would hold no more than the tree does. That is so for a captured file,
    /// for a directory of which nothing was left out, and for a missing path.
    pub fn holds(&self, root: &Path, target: &Target) -> bool {
        let path = &target.path;
        if let Some(node) = self.node(path) {
            return if target.recursive { node.is_whole() } else { node.recorded || node.local };
        }
        let captured = path.parent().and_then(|parent| self.node(&parent)).and_then(|node| node.leaf(path.name()));
        captured.is_some() || probe(root, path).is_ok_and(|found| found.is_none())
    }

    /// Tells whether [`Warm::holds`] is true for all; neighbours in the same directory are looked up together.
    pub fn holds_all(&self, root: &Path, targets: &[Target]) -> bool {
        let mut beside: Option<(&[u8], &DirNode)> = None;
        targets.iter().all(|target| {
            let bytes = target.path.as_bytes();
            let (above, name) = bytes
                .iter()
                .rposition(|byte| *byte == b'/')
                .map_or((&[][..], bytes), |slash| (&bytes[..slash], &bytes[slash + 1..]));
            let node = match beside {
                Some((dir, node)) if dir == above => Some(node),
                _ => target.path.parent().and_then(|parent| self.node(&parent)),
            };
            beside = node.map(|node| (above, node));
            let is_leaf = node.is_some_and(|node| node.leaf(name).is_some() && node.dir(name).is_none());
            is_leaf || self.holds(root, target)
        })
    }

    /// Marks files to be read at the next look, whatever their stamps say.
    pub fn distrust(&mut self, paths: &[RelPath]) {
        for path in paths {
            let parent = path.parent().and_then(|parent| self.node_mut(&parent));
            if let Some(leaf) = parent.and_then(|parent| parent.leaf_mut(path.name())) {
                leaf.known.proven = false;
            }
        }
    }

    /// Tells whether changes in a directory matter: it was looked into, or it is new and the rules admit it.
    pub fn admits(&self, root: &Path, dir: &RelPath) -> bool {
        if dir.is_root() || self.node(dir).is_some() {
            return true;
        }
        let Some(parent) = dir.parent() else { return true };
        if dir.components().any(is_never_captured) {
            return false;
        }
        let Some(node) = self.node(&parent) else {
            // Below a new directory nothing is known yet.
            return self.is_open_above(&parent);
        };
        let above = parent.under(root);
        let beside = |name: &[u8]| above.join(RelPath::root().join(name).to_path()).symlink_metadata().is_ok();
        let rule = directory_rule(self.rules.configured.as_ref(), node.level.as_ref(), dir, &beside);
        let is_open = node.state.is_open() && matches!(rule, DirRule::Open | DirRule::Forced);
        let looks = self.rules.limits.ignored.files > 0;
        let is_local = || {
            let closed = (node.state.is_open() && rule == DirRule::Ignored) || (node.local && rule == DirRule::Open);
            closed && looks && !generated::made_beside(dir.name(), &beside)
        };
        is_open || is_local()
    }

    /// Tells whether the rules admit the nearest known directory above an unknown one.
    pub(super) fn is_open_above(&self, dir: &RelPath) -> bool {
        let mut above = Some(dir.clone());
        while let Some(dir) = above {
            if let Some(node) = self.node(&dir) {
                return node.state.is_open() || node.local;
            }
            above = dir.parent();
        }
        true
    }

    /// Returns the node of a directory.
    pub(super) fn node(&self, dir: &RelPath) -> Option<&DirNode> {
        let mut components = dir.components();
        components.try_fold(&self.root, |node, name| node.dir(name))
    }

    /// Returns the node of a directory, to be changed.
    pub(super) fn node_mut(&mut self, dir: &RelPath) -> Option<&mut DirNode> {
        let mut components = dir.components();
        components.try_fold(&mut self.root, |node, name| node.dir_mut(name))
    }

    /// Returns a directory with the rules that hold in it, as the walk knew it.
    pub(super) fn place(&self, dir: &RelPath) -> Option<WalkDir> {
        let node = self.node(dir)?;
        Some(WalkDir {
            path: dir.clone(),
            state: node.state,
            level: node.level.clone(),
            repo: self.repo_of(dir),
            in_extent: true,
            forced: false,
            local: node.local,
            pinned: node.pinned,
            depth: dir.components().count(),
        })
    }

    /// Returns the innermost repository to which a directory belongs.
    pub(super) fn repo_of(&self, dir: &RelPath) -> Option<Arc<Repo>> {
        let mut at = Some(dir.clone());
        while let Some(dir) = at {
            if let Some(repo) = self.repos.get(&dir) {
                return Some(Arc::clone(repo));
            }
            at = dir.parent();
        }
        None
    }

    /// Puts a directory in its place. One without a parent is dropped, which never happens after a walk.
    pub(super) fn put_dir(&mut self, visited: &Visited) {
        let path = &visited.place.path;
        if let Some(repo) = visited.place.repo.as_ref().filter(|repo| repo.own.base == *path) {
            self.repos.insert(path.clone(), Arc::clone(repo));
        }
        self.unsure.insert(path.clone());
        if visited.place.local && !visited.recorded && self.private.dirs.insert(path.clone()) {
            self.private.tree = None;
        }
        let node = DirNode::of(visited);
        match path.parent() {
            None => self.root = node,
            Some(parent) => {
                if let Some(parent) = self.node_mut(&parent) {
                    parent.put_dir(path.name(), node);
                }
            }
        }
    }

    /// Puts the facts of a captured file.
    pub(super) fn put_known(&mut self, path: &RelPath, known: KnownFile, captured: bool) {
        let parent = if captured { path.parent().and_then(|parent| self.node_mut(&parent)) } else { None };
        let Some(parent) = parent else {
            self.retained.insert(path.clone(), known);
            return;
        };
        parent.put_leaf(path.name(), known);
        if has_names(&known) || (is_file(&known) && database::is_database(path.name())) {
            self.moved |= self.eventless.insert(path.clone());
        }
        if known.is_link() {
            self.links.insert(path.clone());
        }
        self.secrets += u64::from(secret::is_secret(path.as_bytes()));
        if known.private {
            self.private.paths.insert(path.clone());
            (self.private.bytes, self.private.tree) = (self.private.bytes + known.stamp.size, None);
            return;
        }
        self.files += 1;
        self.bytes += known.stamp.size;
    }
}

fn is_file(known: &KnownFile) -> bool {
    known.stamp.mode & libc::S_IFMT == libc::S_IFREG
}

/// Tells whether it is a file with several names.
pub(super) fn has_names(known: &KnownFile) -> bool {
    is_file(known) && known.stamp.links > 1
}
