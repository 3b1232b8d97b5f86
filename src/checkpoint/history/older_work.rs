//! Uncommitted work from before the first turn that is known. No turn has made it, so it is a person's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use super::collision::{Asker, ChangedFiles, MOST, WorkOwner};
use super::lost_place::{LostPlace, TakenPaths, Tops, single_files};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::git::uncommitted::changed_or_new;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;

/// The longest time in which git lists the uncommitted work of a repository.
const LIMIT: Duration = Duration::from_secs(2);

impl Catalog {
    /// Returns the files in some places that may be uncommitted and did not change since the first known moment: no turn has made them.
    /// None if the asker does not want them, or if the places are single files.
    pub(super) fn older_in(
        &self,
        asker: &Asker,
        places: &[LostPlace],
        first: &Checkpoint,
        present: &Checkpoint,
        changed: &ChangedFiles,
    ) -> Result<ChangedFiles> {
        let root = &self.workspace.path;
        if !asker.names_older || single_files(root, places).is_some() {
            return Ok(BTreeMap::new());
        }
        let (taken, mut tops) = (TakenPaths::of(places), Tops::of(root));
        let mut paths: Vec<RelPath> = Vec::new();
        for top in taken.tops(&mut tops) {
            let names = changed_or_new(&top, LIMIT).unwrap_or_else(|error| {
                // Without an answer of git, nothing is known to be uncommitted.
                tracing::warn!(%error, "cannot list the uncommitted work from before the first turn");
                Vec::new()
            });
            let full = names.iter().map(|name| top.join(OsStr::from_bytes(name)));
            let found = full.filter_map(|full| RelPath::from_path(full.strip_prefix(root).ok()?).ok()); // others are not of this workspace
            paths.extend(found.filter(|path| !changed.contains_key(path) && taken.holds(path, None, &mut tops)));
            paths.truncate(MOST);
        }
        let before = self.entries_at(first, paths.iter())?;
        let now = self.entries_at(present, paths.iter())?;
        let content = |held: &BTreeMap<RelPath, Option<ManifestEntry>>, path: &RelPath| {
            held.get(path).copied().flatten().filter(|entry| entry.kind != EntryKind::Dir).map(|entry| entry.id)
        };
        let unchanged = paths.iter().filter_map(|path| {
            let id = content(&now, path)?;
            (content(&before, path) == Some(id)).then(|| (path.clone(), id))
        });
        Ok(unchanged.collect())
    }
}

/// Adds such files to those that others own, as a person's, and to all changed ones.
pub(super) fn add_older(
    older: ChangedFiles,
    found: &mut BTreeMap<WorkOwner, Vec<RelPath>>,
    changed: &mut ChangedFiles,
) {
    if !older.is_empty() {
        let persons = found.entry(WorkOwner::Person).or_default();
        persons.extend(older.keys().cloned());
        persons.sort_unstable();
        changed.extend(older);
    }
}
