//! The changed paths between two checkpoints as a restore sees them: kinds, permissions, content, and directories.

use std::collections::{BTreeMap, BTreeSet};

use super::checkpoint::Checkpoint;
use super::layers::joined;
use super::open::Catalog;
use crate::error::Result;
use crate::model::coverage::Coverage;
use crate::model::manifest::{Manifest, ManifestEntry};
use crate::model::path::RelPath;

/// A path that differs between two checkpoints, with what each has there.
pub(crate) type EntryChange = (RelPath, Option<ManifestEntry>, Option<ManifestEntry>);

impl Catalog {
    /// Lists the paths that changed between two checkpoints, in byte order: directories and permissions too. Paths at which only
    /// one of the two looked are left out. Where no permissions changed that git has no bits for, only the changed directories are read.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn changed_entries(&self, old: &Checkpoint, new: &Checkpoint) -> Result<Vec<EntryChange>> {
        let changed: BTreeSet<RelPath> =
            self.changes_between(old, new)?.into_iter().map(|change| change.path).collect();
        let above: BTreeSet<RelPath> = changed.iter().flat_map(upwards).collect();
        let same_records = self.records_of(&old.tree)? == self.records_of(&new.tree)?
            && self.layer_root(old)? == self.layer_root(new)?;
        let wanted = |path: &RelPath| !same_records || changed.contains(path) || above.contains(path);
        let (before, after) = (self.load_some(old, &wanted)?, self.load_some(new, &wanted)?);
        // A directory comes and goes with what is in it; what both looked at may differ in its permissions alone.
        let counts = |path: &RelPath, one: Option<&ManifestEntry>, other: Option<&ManifestEntry>| {
            changed.contains(path) || above.contains(path) || (one.is_some() && other.is_some())
        };
        let differences = before.differences(&after).into_iter();
        let counted = differences.filter(|(path, old, new)| counts(path, *old, *new));
        Ok(counted.map(|(path, old, new)| (path.clone(), old.copied(), new.copied())).collect())
    }

    /// Loads the wanted part of the manifest of a checkpoint's moment, and its coverage.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn contents_near(
        &self,
        checkpoint: &Checkpoint,
        wanted: &dyn Fn(&RelPath) -> bool,
    ) -> Result<(Manifest, Coverage)> {
        Ok((self.load_some(checkpoint, wanted)?, self.coverage_of(checkpoint)?))
    }

    /// Returns the entries of some paths in a checkpoint; `None` for those that it does not hold.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn entries_at<'p>(
        &self,
        checkpoint: &Checkpoint,
        paths: impl Iterator<Item = &'p RelPath>,
    ) -> Result<BTreeMap<RelPath, Option<ManifestEntry>>> {
        let paths: BTreeSet<&RelPath> = paths.collect();
        let above: BTreeSet<RelPath> = paths.iter().flat_map(|path| upwards(path)).collect();
        let wanted = |path: &RelPath| paths.contains(path) || above.contains(path);
        let held = self.load_some(checkpoint, &wanted)?;
        Ok(paths.into_iter().map(|path| (path.clone(), held.get(path).copied())).collect())
    }

    /// Loads the entries of a checkpoint that are wanted, private ones among them. A directory that is not wanted is not read.
    fn load_some(&self, checkpoint: &Checkpoint, wanted: &dyn Fn(&RelPath) -> bool) -> Result<Manifest> {
        let (shared, _) = self.load(&checkpoint.tree, wanted)?;
        let private = &self.private_part(checkpoint)?.manifest;
        let private = private.iter().filter(|(path, _)| wanted(path));
        Ok(joined(shared, &private.map(|(path, entry)| (path.clone(), *entry)).collect()))
    }
}

/// Returns the directories above a path.
fn upwards(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(path.parent(), RelPath::parent)
}
