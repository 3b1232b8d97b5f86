//! Reading blobs, from several threads at once.

use std::io::Write;

use super::damage::damaged;
use super::objects::Objects;
use super::repository::Store;
use crate::error::{Code, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::tree::{self, TreeEntry};

/// The size from which on content is streamed.
const LARGE: u64 = 1 << 20;

/// Reads blobs; looks again for those that were packed elsewhere meanwhile.
pub struct BlobReader<'s> {
    objects: &'s Objects,
}

impl<'s> BlobReader<'s> {
    fn new(objects: &'s Objects) -> BlobReader<'s> {
        BlobReader { objects }
    }

    /// Returns true if an object is there. A missing one is noted, because a checkpoint names it.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn has(&self, id: &ObjectId) -> Result<bool> {
        self.objects.has_expected(id)
    }

    /// Returns a blob's bytes, proved by their id; `None` for one that is too large for memory and has to be streamed.
    ///
    /// # Errors
    /// `store-damaged` when it is missing, cut, of another kind or not what its id says.
    pub fn read_blob(&self, id: &ObjectId) -> Result<Option<Vec<u8>>> {
        // The header decides: the caller's size may be wrong.
        if self.blob_size(id).is_some_and(|size| size >= LARGE) {
            return Ok(None);
        }
        match read_kind(self.objects, id, ObjectKind::Blob, LARGE) {
            // It is small, but a delta on a large base.
            Err(error) if error.code() == Code::TooLarge => Ok(None),
            read => read.map(Some),
        }
    }

    /// Returns the length of a blob, from its header alone; `None` when it cannot be told.
    pub fn blob_size(&self, id: &ObjectId) -> Option<u64> {
        // Damage is reported when the blob itself is read.
        let described = self.objects.describe(id).ok();
        described.filter(|(kind, _)| *kind == Some(ObjectKind::Blob)).map(|(_, size)| size)
    }

    /// As [`Store::copy_blob`].
    ///
    /// # Errors
    /// `store-damaged`; errors of writing.
    pub fn copy_blob(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        self.objects.copy(id, out)
    }
}

impl Store {
    /// Reads blobs from several threads.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn reader(&self) -> Result<BlobReader<'_>> {
        self.objects.set()?;
        Ok(BlobReader::new(&self.objects))
    }

    /// Returns the entries of a tree object of at most so many bytes.
    ///
    /// # Errors
    /// `too-large`; `store-damaged`.
    pub fn read_tree_within(&self, id: &ObjectId, most: u64) -> Result<Vec<TreeEntry>> {
        let content = self.tree_content_within(id, most)?;
        tree::decode(&content).map_err(|error| error.context(format!("tree {id}")))
    }

    /// Returns the bytes of a tree object of at most so many bytes.
    ///
    /// # Errors
    /// `too-large`; `store-damaged` when it is missing.
    pub fn tree_content_within(&self, id: &ObjectId, most: u64) -> Result<Vec<u8>> {
        if *id == ObjectId::EMPTY_TREE {
            return Ok(Vec::new());
        }
        read_kind(&self.objects, id, ObjectKind::Tree, most)
    }

    /// Returns the bytes of a blob of at most so many bytes, in memory.
    ///
    /// # Errors
    /// `too-large`; `store-damaged` when it is missing, cut or of another kind.
    pub fn read_blob_within(&self, id: &ObjectId, most: u64) -> Result<Vec<u8>> {
        read_kind(&self.objects, id, ObjectKind::Blob, most)
    }
}

/// Reads an object that must be of a kind and have at most so many bytes.
pub(super) fn read_kind(objects: &Objects, id: &ObjectId, kind: ObjectKind, most: u64) -> Result<Vec<u8>> {
    match objects.read(id, most)? {
        (Some(found), content) if found == kind => Ok(content),
        _ => Err(damaged(id, "is not of the kind that the checkpoint says")),
    }
}
