//! Content of the store, as a restore reads it.

use std::io::Write;

use crate::error::Result;
use crate::model::id::ObjectId;
use crate::store::BlobReader;
use crate::worktree::restore::BlobSource;

/// The blobs of a store.
pub(super) struct Blobs<'s>(pub(super) BlobReader<'s>);

impl BlobSource for Blobs<'_> {
    fn has(&self, id: &ObjectId) -> Result<bool> {
        self.0.has(id)
    }

    fn read(&self, id: &ObjectId, _size: u64) -> Result<Option<Vec<u8>>> {
        self.0.read_blob(id)
    }

    fn size(&self, id: &ObjectId) -> Result<Option<u64>> {
        Ok(self.0.blob_size(id))
    }

    fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        self.0.copy_blob(id, out)
    }
}
