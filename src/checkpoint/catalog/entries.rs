//! The changed paths between two checkpoints as a restore sees them: kinds, permissions, content, and directories.

use std::collections::BTreeSet;

use super::checkpoint::Checkpoint;
use super::layers::joined;
use super::open::Catalog;
use crate::error::Result;
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
        let upwards = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent);
        let above: BTreeSet<RelPath> = changed.iter().flat_map(upwards).collect();
        let same_records = self.records_of(&old.tree)? == self.records_of(&new.tree)?
            && self.layer_root(old)? == self.layer_root(new)?;
        let wanted = |path: &RelPath| !same_records || changed.contains(path) || above.contains(path);
        let load = |checkpoint: &Checkpoint| -> Result<Manifest> {
            let (shared, _) = self.load(&checkpoint.tree, &wanted)?;
            let private = &self.private_part(checkpoint)?.manifest;
            Ok(joined(
                shared,
                &private.iter().filter(|(path, _)| wanted(path)).map(|(path, at)| (path.clone(), *at)).collect(),
            ))
        };
        let (before, after) = (load(old)?, load(new)?);
        // A directory comes and goes with what is in it; what both looked at may differ in its permissions alone.
        let counts = |path: &RelPath, one: Option<&ManifestEntry>, other: Option<&ManifestEntry>| {
            changed.contains(path) || above.contains(path) || (one.is_some() && other.is_some())
        };
        let differences = before.differences(&after).into_iter();
        let counted = differences.filter(|(path, old, new)| counts(path, *old, *new));
        Ok(counted.map(|(path, old, new)| (path.clone(), old.copied(), new.copied())).collect())
    }
}
