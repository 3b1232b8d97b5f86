//! Content of the store, as a restore reads it.

use std::collections::HashSet;
use std::io::Write;

use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::store::{BlobReader, Store};
use crate::worktree::restore::BlobSource;

/// The blobs of both stores.
pub(super) struct Blobs<'s> {
    shared: BlobReader<'s>,
    /// The store of private files, if there is one.
    local: Option<BlobReader<'s>>,
    /// The objects that this one has.
    private: HashSet<ObjectId>,
}

impl<'s> Blobs<'s> {
    /// Returns those of a catalog, as far as its layers were read.
    pub(super) fn of(catalog: &'s Catalog) -> Result<Blobs<'s>> {
        let local = catalog.local_if_any()?.map(Store::reader).transpose()?;
        Ok(Blobs { shared: catalog.store.reader()?, local, private: catalog.private_ids() })
    }

    fn reader(&self, id: &ObjectId) -> &BlobReader<'s> {
        self.local.as_ref().filter(|_| self.private.contains(id)).unwrap_or(&self.shared)
    }
}

impl BlobSource for Blobs<'_> {
    fn has(&self, id: &ObjectId) -> Result<bool> {
        self.reader(id).has(id)
    }

    fn read(&self, id: &ObjectId, _size: u64) -> Result<Option<Vec<u8>>> {
        self.reader(id).read_blob(id)
    }

    fn size(&self, id: &ObjectId) -> Result<Option<u64>> {
        Ok(self.reader(id).blob_size(id))
    }

    fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        self.reader(id).copy_blob(id, out)
    }
}
