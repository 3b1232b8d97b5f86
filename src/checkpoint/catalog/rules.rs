//! The ignore rules that a checkpoint holds, by which it is judged what the checkpoint would have captured.

use super::bounds::A_RECORD;
use super::open::Catalog;
use crate::error::Result;
use crate::filter::CoverageView;
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest};
use crate::model::path::RelPath;

/// The rules and entries of one manifest.
pub(crate) struct ManifestView<'a> {
    /// Reads the files of rules.
    pub catalog: &'a Catalog,
    /// The whole manifest of a checkpoint.
    pub manifest: &'a Manifest,
}

impl CoverageView for ManifestView<'_> {
    fn gitignore(&self, dir: &RelPath) -> Option<Vec<u8>> {
        let entry = self.manifest.get(&dir.join(b".gitignore")).filter(|entry| entry.kind == EntryKind::File)?;
        self.catalog.read_record(&entry.id).ok()
    }

    fn exists(&self, path: &RelPath) -> bool {
        self.manifest.contains(path)
    }
}

impl Catalog {
    /// Returns true if all files of rules in a manifest are there, and none is too large to be read.
    pub(crate) fn has_rules(&self, manifest: &Manifest) -> Result<bool> {
        let rules = manifest
            .iter()
            .filter(|(path, entry)| path.name() == b".gitignore" && entry.kind == EntryKind::File)
            .map(|(_, entry)| entry.id);
        let rules: Vec<ObjectId> = rules.collect();
        let shared = |id: &&ObjectId| std::ptr::eq(self.store_of(id), &raw const self.store);
        if !self.store.missing(&mut rules.iter().filter(shared).copied())?.is_empty() {
            return Ok(false);
        }
        let most = self.memory() / A_RECORD;
        let fits = |id: &ObjectId| self.store_of(id).blob_size(id).map(|size| size <= most);
        rules.iter().try_fold(true, |all, id| Ok(all && fits(id)?))
    }
}
