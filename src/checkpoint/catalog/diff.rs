//! The differences between two checkpoints, or between one and the present state.

use std::collections::{BTreeMap, HashMap};
use std::io::ErrorKind;
use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::find::Presence;
use super::open::Catalog;
use crate::checkpoint::records::workspace::Scope;
use crate::error::Result;
use crate::filter::Tracked;
use crate::model::build;
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::line_counts::LineCounts;
use crate::model::manifest::Manifest;
use crate::model::name;
use crate::model::path::RelPath;
use crate::model::stamp::KnownPaths;
pub use crate::model::tree::Side;
use crate::model::tree::{self, Mode, TreeEntry};
use crate::model::weight::{self, Meter};
use crate::store::{FilePatch, patch_header};
use crate::worktree::PrivatePart;

/// A path that differs, except for directories that are directories on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The path in the workspace.
    pub path: RelPath,
    /// Its state before; `None` if it was not there.
    pub old: Side,
    /// Its state after; `None` if it is not there.
    pub new: Side,
}

/// Files and lines that changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Files and links that differ, absent ones among them.
    pub files: u64,
    /// Lines that were added; binary files have none.
    pub plus: u64,
    /// Lines that were removed; binary files have none.
    pub minus: u64,
    /// True if lines were counted in the first [`MAX_COUNTED_FILES`] files only.
    pub cut: bool,
}

impl Stat {
    /// Adds up the lines of the files among some changes.
    pub(crate) fn of(changes: &[Change], lines: &BTreeMap<RelPath, LineCounts>) -> Stat {
        let files = changes.iter().filter(|change| is_file_change(change)).count();
        let sum = |side: fn(&LineCounts) -> u64| lines.values().map(side).sum();
        Stat {
            files: files as u64,
            plus: sum(|lines| lines.plus),
            minus: sum(|lines| lines.minus),
            cut: files > lines.len(),
        }
    }
}

/// A change with its patch.
#[derive(Clone, Debug)]
pub struct FileDiff {
    /// The path, with both sides.
    pub change: Change,
    /// The differences of its content.
    pub patch: FilePatch,
}

/// The side of a comparison that is the work tree as it is now. Only its content may be missing in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveSide {
    /// Both sides are checkpoints.
    Neither,
    /// The old side is.
    Old,
    /// The new side is.
    New,
}

/// The most files whose lines are counted; with more a stat counts only files, so that a list stays quick.
pub const MAX_COUNTED_FILES: usize = 400;
/// The size above which content is not compared line by line.
const MAX_COMPARED_BYTES: u64 = 8_000_000;

/// The present state of a workspace, looked at without storing anything.
pub struct Present {
    /// Every path that a capture would hold, private ones among them.
    pub(crate) manifest: Manifest,
    /// The private ones.
    pub(crate) private: Arc<PrivatePart>,
    /// The rules under which it was looked at.
    pub(crate) coverage: Arc<Coverage>,
    /// The root tree of the whole moment that a checkpoint of it would have.
    pub(crate) root: ObjectId,
    /// Trees and records that the store does not have, by id.
    pub(crate) fresh: HashMap<ObjectId, Vec<u8>>,
    /// The paths that a scan has found; `None` where the warm tree has.
    pub(crate) known: Option<Arc<KnownPaths>>,
}

impl Catalog {
    /// Loads a checkpoint's manifest and coverage.
    pub(crate) fn load(&self, tree: &ObjectId, wanted: &dyn Fn(&RelPath) -> bool) -> Result<(Manifest, Coverage)> {
        build::load(tree, wanted, self.memory(), &|id| self.read_tree(id), &|id| self.read_record(id))
    }

    /// Lists the changed paths between two root trees, in byte order. Equal subtrees are not looked into. Trees with more paths than there is
    /// room for are `too-large`.
    pub(crate) fn changes(
        &self,
        old: ObjectId,
        new: ObjectId,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<Vec<Change>> {
        let read = |id: &ObjectId| match fresh.get(id) {
            Some(bytes) => tree::decode(bytes),
            None => self.read_tree(id),
        };
        let mut meter = Meter::new(self.memory());
        let mut changes = Vec::new();
        let roots = [old, new];
        let mut pending = vec![(RelPath::root(), Some(old), Some(new))];
        while let Some((dir, old, new)) = pending.pop() {
            if old == new {
                continue;
            }
            let mut is_long = meter.add(dir.as_bytes().len());
            for (path, old, new) in paired(&dir, read_side(old, &read)?, read_side(new, &read)?) {
                let subtree = |side: &Side| side.and_then(|(mode, id)| (mode == Mode::Dir).then_some(id));
                let (old_dir, new_dir) = (subtree(&old), subtree(&new));
                if old_dir.is_some() || new_dir.is_some() {
                    pending.push((path.clone(), old_dir, new_dir));
                }
                let (old, new) = (plain(old, new_dir), plain(new, old_dir));
                if old != new {
                    is_long |= meter.add(path.as_bytes().len());
                    changes.push(Change { path, old, new });
                }
            }
            if is_long {
                roots.iter().try_for_each(|root| weight::check(root, self.memory(), &read))?;
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// Lists the changes between two checkpoints.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn changes_between(&self, old: &Checkpoint, new: &Checkpoint) -> Result<Vec<Change>> {
        let changes = self.changes(self.whole(old)?, self.whole(new)?, &HashMap::new())?;
        let (from, to) = (self.coverage_of(old)?, self.coverage_of(new)?);
        let (from, to) = (looked(&from, self.private_part(old)?)?, looked(&to, self.private_part(new)?)?);
        // Where only targets are captured, whatever ignore rules say, a path that was looked at and is not there is absent.
        let is_targets = self.workspace.scope == Scope::TargetsOnly;
        self.judging(old, &mut |in_old| {
            self.judging(new, &mut |in_new| {
                let was_absent = |path: &RelPath, mode| is_targets || in_old(path, mode) == Presence::Absent;
                let is_absent = |path: &RelPath, mode| is_targets || in_new(path, mode) == Presence::Absent;
                let gap = |change: &&Change| is_capture_gap(change, (&from, &to), (&was_absent, &is_absent));
                Ok(changes.iter().filter(|change| !gap(change)).cloned().collect())
            })
        })
    }

    /// Loads the coverage alone; no other tree is read.
    pub(crate) fn coverage(&self, tree: &ObjectId) -> Result<Coverage> {
        Ok(self.load(tree, &|_| false)?.1)
    }

    /// Lists the changes from a checkpoint to the present state.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn changes_to_present(&self, old: &Checkpoint, present: &Present) -> Result<Vec<Change>> {
        let changes = self.changes(self.whole(old)?, present.root, &present.fresh)?;
        let from = self.coverage_of(old)?;
        let gone = |error: &std::io::Error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
        // In doubt (access refused, a path too long for one call) the path may exist.
        let exists = |path: &RelPath| {
            let looked = path.under(&self.workspace.path).symlink_metadata();
            !looked.is_err_and(|error| gone(&error))
        };
        let (from, to) =
            (looked(&from, self.private_part(old)?)?, looked(&present.coverage, Arc::clone(&present.private))?);
        let is_absent = |path: &RelPath, _: Mode| !exists(path);
        self.judging(old, &mut |in_old| {
            let was_absent = |path: &RelPath, mode| in_old(path, mode) == Presence::Absent;
            let gap = |change: &&Change| is_capture_gap(change, (&from, &to), (&was_absent, &is_absent));
            Ok(changes.iter().filter(|change| !gap(change)).cloned().collect())
        })
    }

    /// Counts the files and lines of some changes; lines are counted for the first 400 files only.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn stat(&self, changes: &[Change], live: LiveSide) -> Result<Stat> {
        Ok(Stat::of(changes, &self.line_counts(changes, live)?))
    }

    /// Counts the lines of each file among some changes, of the first 400 files only.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn line_counts(&self, changes: &[Change], live: LiveSide) -> Result<BTreeMap<RelPath, LineCounts>> {
        let files = changes.iter().filter(|change| is_file_change(change)).take(MAX_COUNTED_FILES);
        files.map(|change| Ok((change.path.clone(), self.patch_of(change, live)?.lines))).collect()
    }

    /// Makes the patch of one change. Content of the live side that the store does not have is read from the work tree.
    ///
    /// # Errors
    /// `store-damaged`; I/O errors of the work tree.
    pub fn patch_of(&self, change: &Change, live: LiveSide) -> Result<FilePatch> {
        let old = self.content(change, &change.old, live == LiveSide::Old)?;
        let new = self.content(change, &change.new, live == LiveSide::New)?;
        let path = change.path.as_bytes();
        match (old, new) {
            (SideContent::TooLarge, _) | (_, SideContent::TooLarge) => {
                let text = patch_header(path, "Large files differ\n");
                Ok(FilePatch { lines: LineCounts::default(), binary: true, text })
            }
            (old, new) => self.store.patch(old.bytes(), new.bytes(), path),
        }
    }

    fn content(&self, change: &Change, side: &Side, is_live: bool) -> Result<SideContent> {
        let Some((mode, id)) = side else {
            return Ok(SideContent::None);
        };
        if *mode == Mode::Dir {
            return Ok(SideContent::None);
        }
        let store = self.store_of(id);
        if !is_live || store.has(id)? {
            if store.blob_size(id)? > MAX_COMPARED_BYTES {
                return Ok(SideContent::TooLarge);
            }
            return store.read_blob_within(id, MAX_COMPARED_BYTES).map(SideContent::Bytes);
        }
        crate::worktree::read_small(&self.workspace.path, &change.path, MAX_COMPARED_BYTES)
            .map(|bytes| bytes.map_or(SideContent::TooLarge, SideContent::Bytes))
    }
}

enum SideContent {
    /// The path is absent on this side, or holds nothing to compare.
    None,
    Bytes(Vec<u8>),
    /// More than [`MAX_COMPARED_BYTES`], on disk or in the store.
    TooLarge,
}

impl SideContent {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            SideContent::Bytes(bytes) => Some(bytes),
            SideContent::None | SideContent::TooLarge => None,
        }
    }
}

/// One side's coverage, its patterns, if it has any, and its private files.
type Looked<'c> = (&'c Coverage, Option<Tracked>, Arc<PrivatePart>);

fn looked(coverage: &Coverage, private: Arc<PrivatePart>) -> Result<Looked<'_>> {
    let narrowed = !coverage.tracked.is_empty() || !coverage.read_only.is_empty();
    let tracked = narrowed.then(|| Tracked::new(&coverage.tracked, &coverage.read_only)).transpose()?;
    Ok((coverage, tracked, private))
}

/// Tells whether a side that does not hold a path had looked for it.
type IsAbsent<'a> = dyn Fn(&RelPath, Mode) -> bool + 'a;

/// Returns true if a path differs only because one side looked at it and the other did not: a target of one, a skip of
/// the other.
fn is_capture_gap(
    change: &Change,
    (from, to): (&Looked, &Looked),
    (was_absent, is_absent): (&IsAbsent<'_>, &IsAbsent<'_>),
) -> bool {
    let path = &change.path;
    match (change.old, change.new) {
        (None, Some(_)) if !from.0.extent.reaches(path) => true,
        (Some(_), None) if !to.0.extent.reaches(path) => true,
        (None, Some(_)) if from.1.as_ref().is_some_and(|tracked| !tracked.matches(path)) => true,
        (Some(_), None) if to.1.as_ref().is_some_and(|tracked| !tracked.matches(path)) => true,
        (None, Some(_)) if to.0.targeted.contains(path) || from.0.skip_of(path).is_some() => true,
        (Some(_), None) if to.0.skip_of(path).is_some() => true,
        (None, Some((mode, _))) => to.2.manifest.contains(path) && !was_absent(path, mode),
        (Some((mode, _)), None) => {
            (from.2.manifest.contains(path) || from.0.targeted.contains(path)) && !is_absent(path, mode)
        }
        _ => false,
    }
}

/// Returns true if a change is of a file or link (not only of an empty directory).
pub fn is_file_change(change: &Change) -> bool {
    let is_file = |side: &Side| side.is_some_and(|(mode, _)| mode != Mode::Dir);
    is_file(&change.old) || is_file(&change.new)
}

/// Returns a side without directories that are no change of their own: those on both sides, and those without another
/// side. Their entries are the changes. An empty directory is reported by the side that has nothing.
pub(crate) fn plain(side: Side, other_dir: Option<ObjectId>) -> Side {
    match side {
        Some((Mode::Dir, id)) if other_dir.is_some() || id != ObjectId::EMPTY_TREE => None,
        other => other,
    }
}

fn read_side(id: Option<ObjectId>, read: &dyn Fn(&ObjectId) -> Result<Vec<TreeEntry>>) -> Result<Vec<TreeEntry>> {
    id.map_or_else(|| Ok(Vec::new()), |id| read(&id))
}

/// Entries of two versions of a directory side by side, equal ones and piton's own left out.
fn paired(dir: &RelPath, old: Vec<TreeEntry>, new: Vec<TreeEntry>) -> Vec<(RelPath, Side, Side)> {
    let mut names: BTreeMap<Vec<u8>, (Side, Side)> = BTreeMap::new();
    for entry in old {
        names.entry(entry.name).or_default().0 = Some((entry.mode, entry.id));
    }
    for entry in new {
        names.entry(entry.name).or_default().1 = Some((entry.mode, entry.id));
    }
    let own = |stored: &[u8]| dir.is_root() && stored == name::RESERVED_ROOT;
    names
        .into_iter()
        .filter(|(stored, (old, new))| old != new && !own(stored))
        .map(|(stored, (old, new))| (dir.join(&name::from_stored(&stored, dir.is_root())), old, new))
        .collect()
}
