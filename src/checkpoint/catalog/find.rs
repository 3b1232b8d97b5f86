//! The versions of a path in the checkpoints of a workspace.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

use super::checkpoint::Checkpoint;
use super::diff::Present;
use super::layers::joined;
use super::open::Catalog;
use crate::error::{Code, Result};
use crate::filter::{CaptureJudge, CoverageView, Denial, Verdict};
use crate::model::build::stored_path;
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::name::{RESERVED_ROOT, from_stored};
use crate::model::path::RelPath;
use crate::model::tree::Mode;

/// The largest file whose content is read to prove it.
const PROVED: u64 = 1 << 20;

/// The state of a path in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The checkpoint holds it, with this kind and content.
    Held(Mode, ObjectId),
    /// The checkpoint would hold the path if it had existed.
    Absent,
    /// The checkpoint does not say whether the path was there.
    NotCaptured(Denial),
    /// A directory of the checkpoint cannot be read, so nobody knows.
    Unreadable,
}

/// Tells what the absence of a path of a kind means in a checkpoint that does not hold it.
pub(crate) type AbsenceJudge<'a> = dyn Fn(&RelPath, Mode) -> Presence + 'a;

/// One version of a path, and the checkpoints that have it so.
#[derive(Clone, Debug)]
pub struct Version {
    /// The path's state in all of them.
    pub presence: Presence,
    /// Bytes of a file or link that is held.
    pub size: Option<u64>,
    /// Says why it cannot be read, if that is so.
    pub damage: Option<String>,
    /// Oldest first.
    pub checkpoints: Vec<Checkpoint>,
}

impl Catalog {
    /// Returns the entry at `path` in a checkpoint's tree.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn entry_at(&self, tree: &ObjectId, path: &RelPath) -> Result<Option<(Mode, ObjectId)>> {
        let mut current = (Mode::Dir, *tree);
        for name in stored_path(path).split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            if current.0 != Mode::Dir {
                return Ok(None);
            }
            let entries = self.read_tree(&current.1)?;
            match entries.into_iter().find(|entry| entry.name == name) {
                Some(entry) => current = (entry.mode, entry.id),
                None => return Ok(None),
            }
        }
        Ok(Some(current))
    }

    /// Returns the tree of a checkpoint's records: modes that git has no bits for, and coverage.
    pub(crate) fn records_of(&self, tree: &ObjectId) -> Result<Option<ObjectId>> {
        let entries = self.read_tree(tree)?.into_iter();
        Ok(entries.into_iter().find(|entry| entry.name == RESERVED_ROOT).map(|entry| entry.id))
    }

    /// Returns the versions of a path over all checkpoints, newest version first; equal neighbours are one version.
    /// Narrowed checkpoints that did not look at the path are passed over. Nothing is returned for a path that no
    /// checkpoint holds and that is not there now.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn versions(&self, path: &RelPath) -> Result<Vec<Version>> {
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        let held: Vec<_> =
            all.iter().map(|one| self.whole(one).and_then(|whole| self.entry_at(&whole, path))).collect();
        // Rules judge a directory, a file and a link differently: the kind that the path has in other checkpoints is
        // assumed.
        let held_as =
            |one: &Result<Option<(Mode, ObjectId)>>| one.as_ref().ok().copied().flatten().map(|(mode, _)| mode);
        let sample = held.iter().filter_map(held_as).next_back().or_else(|| self.present_mode(path));
        // A checkpoint that cannot be read may hold it.
        let sample = sample.or_else(|| held.iter().any(Result::is_err).then_some(Mode::File));
        let Some(sample) = sample else { return Ok(Vec::new()) };
        let mut versions: Vec<Version> = Vec::new();
        for (checkpoint, held) in all.iter().zip(held) {
            let (presence, damage) = match self.presence(checkpoint, path, held, sample) {
                Ok(presence) => (presence, None),
                Err(error) if error.code() == Code::StoreDamaged => (Presence::Unreadable, Some(error.fact())),
                Err(error) => return Err(error),
            };
            if !checkpoint.record.is_whole()
                && matches!(presence, Presence::NotCaptured(Denial::Untracked | Denial::OutsideExtent))
            {
                continue;
            }
            match versions.last_mut() {
                Some(last) if last.presence == presence => last.checkpoints.push(checkpoint.clone()),
                _ => versions.push(self.version(presence, damage, checkpoint)?),
            }
        }
        versions.reverse();
        Ok(versions)
    }

    fn presence(
        &self,
        checkpoint: &Checkpoint,
        path: &RelPath,
        held: Result<Option<(Mode, ObjectId)>>,
        sample: Mode,
    ) -> Result<Presence> {
        match held? {
            Some((mode, id)) => Ok(Presence::Held(mode, id)),
            None => self.absence(checkpoint, path, sample),
        }
    }

    /// Makes the version that begins with a checkpoint. Content of a file that is not large is read, to prove it.
    fn version(&self, presence: Presence, damage: Option<String>, first: &Checkpoint) -> Result<Version> {
        let size = match presence {
            Presence::Held(mode, id) if mode != Mode::Dir => match self.store_of(&id).read_blob_within(&id, PROVED) {
                Err(error) if error.code() == Code::TooLarge => self.store_of(&id).blob_size(&id).map(Some),
                read => read.map(|content| Some(content.len() as u64)),
            },
            _ => Ok(None),
        };
        let (size, damage) = match size {
            Ok(size) => (size, damage),
            Err(error) if error.code() == Code::StoreDamaged => (None, Some(error.fact())),
            Err(error) => return Err(error),
        };
        Ok(Version { presence, size, damage, checkpoints: vec![first.clone()] })
    }

    fn present_mode(&self, path: &RelPath) -> Option<Mode> {
        let facts = path.under(&self.workspace.path).symlink_metadata().ok()?; // an unreadable path counts as absent
        Some(match facts.file_type() {
            kind if kind.is_dir() => Mode::Dir,
            kind if kind.is_symlink() => Mode::Link,
            _ => Mode::File,
        })
    }

    /// Returns the newest checkpoint that holds a path in another version than the one on the disk; of a directory, something that is
    /// missing there or differs. One that cannot be read is passed over.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub fn newest_other(&self, path: &RelPath, present: &Present) -> Result<Option<Checkpoint>> {
        let known = self.all()?;
        let is_near = |one: &RelPath| one.starts_with(path) || path.starts_with(one);
        let mut seen: HashSet<(Mode, ObjectId)> = HashSet::new();
        for checkpoint in known.checkpoints.iter().rev() {
            let held_by =
                |one: &Checkpoint| self.whole(one).and_then(|whole| self.entry_at(&whole, path)).ok().flatten();
            let Some((mode, id)) = held_by(checkpoint) else { continue };
            if !seen.insert((mode, id)) {
                continue;
            }
            let Ok((shared, _)) = self.load(&checkpoint.tree, &is_near) else { continue };
            let manifest = joined(shared, &self.private_part(checkpoint)?.manifest);
            let mut entries = manifest.iter().filter(|(one, _)| one.starts_with(path));
            let differs = |one: &RelPath, entry: &ManifestEntry| {
                present.manifest.get(one).is_none_or(|now| (now.kind, now.id) != (entry.kind, entry.id))
            };
            if entries.any(|(one, entry)| differs(one, entry)) {
                // A base capture may be dropped at any moment, and another checkpoint often holds the same.
                let lasts = |one: &&Checkpoint| one.record.kind != CheckpointKind::Turn;
                let mut lasting = known.checkpoints.iter().rev().filter(lasts);
                let lasting = lasting.find(|one| held_by(one) == Some((mode, id)));
                return Ok(Some(lasting.unwrap_or(checkpoint).clone()));
            }
        }
        Ok(None)
    }

    /// Lists the files that some of the checkpoints hold, each with the newest that does. Directories that cannot be read are passed
    /// over.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub fn held_files(&self, counts: &dyn Fn(&Checkpoint) -> bool) -> Result<BTreeMap<RelPath, Checkpoint>> {
        let known = self.all()?;
        let (mut found, mut seen) = (BTreeMap::new(), HashSet::new());
        for checkpoint in known.checkpoints.iter().rev().filter(|one| counts(one)) {
            let Ok(whole) = self.whole(checkpoint) else { continue };
            let mut pending = vec![(RelPath::root(), whole)];
            while let Some((dir, tree)) = pending.pop() {
                // All that is in it was found in a newer checkpoint.
                if !seen.insert((dir.clone(), tree)) {
                    continue;
                }
                for entry in self.read_tree(&tree).unwrap_or_default() {
                    if dir.is_root() && entry.name == RESERVED_ROOT {
                        continue;
                    }
                    let path = dir.join(&from_stored(&entry.name, dir.is_root()));
                    match entry.mode {
                        Mode::Dir => pending.push((path, entry.id)),
                        _ => _ = found.entry(path).or_insert_with(|| checkpoint.clone()),
                    }
                }
            }
        }
        Ok(found)
    }

    /// Finds out why a checkpoint does not hold `path`, by the rules that it recorded.
    fn absence(&self, checkpoint: &Checkpoint, path: &RelPath, sample: Mode) -> Result<Presence> {
        self.judging(checkpoint, &mut |presence| Ok(presence(path, sample)))
    }

    /// Hands on a judge of paths that a checkpoint does not hold: were they absent, or not captured?
    ///
    /// # Errors
    /// `store-damaged`; the errors of `work`.
    pub(crate) fn judging<T>(
        &self,
        checkpoint: &Checkpoint,
        work: &mut dyn FnMut(&AbsenceJudge<'_>) -> Result<T>,
    ) -> Result<T> {
        let (coverage, whole) = (self.coverage_of(checkpoint)?, self.whole(checkpoint)?);
        let is_expired = self.is_layer_expired(checkpoint)?;
        let view = TreeView { catalog: self, whole, is_unread: Cell::new(false) };
        let judge = CaptureJudge::new(&coverage, &view);
        work(&|path, mode| match judge.of_both(path, &sample(mode)) {
            _ if view.is_unread.get() => Presence::NotCaptured(Denial::Partial),
            Verdict::Yes => Presence::Absent,
            Verdict::No(why) if is_expired && why.is_private() => Presence::NotCaptured(Denial::Expired),
            Verdict::No(why) => Presence::NotCaptured(why),
        })
    }
}

/// The rules and entries of one tree, read where they are asked for.
struct TreeView<'a> {
    catalog: &'a Catalog,
    whole: ObjectId,
    /// Something could not be read, which makes each answer uncertain.
    is_unread: Cell<bool>,
}

impl TreeView<'_> {
    fn held(&self, path: &RelPath) -> Option<(Mode, ObjectId)> {
        self.catalog.entry_at(&self.whole, path).unwrap_or_else(|_| {
            self.is_unread.set(true);
            None
        })
    }
}

impl CoverageView for TreeView<'_> {
    fn gitignore(&self, dir: &RelPath) -> Option<Vec<u8>> {
        match self.held(&dir.join(b".gitignore")) {
            Some((Mode::File | Mode::Executable, id)) => {
                self.catalog.read_record(&id).map_err(|_| self.is_unread.set(true)).ok()
            }
            _ => None,
        }
    }

    fn exists(&self, path: &RelPath) -> bool {
        self.held(path).is_some()
    }
}

/// Returns an entry of a kind, for rules that judge by that.
fn sample(mode: Mode) -> ManifestEntry {
    match mode {
        Mode::Dir => ManifestEntry::dir(0o755),
        Mode::Link => ManifestEntry { kind: EntryKind::Link, perm: 0o777, id: ObjectId::EMPTY_TREE, size: 0 },
        _ => ManifestEntry { kind: EntryKind::File, perm: 0o644, id: ObjectId::EMPTY_TREE, size: 0 },
    }
}
