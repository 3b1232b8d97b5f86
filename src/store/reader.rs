//! Reading blobs, from several threads at once.

use std::io::Write;
use std::path::{Path, PathBuf};

use git2::{ObjectType, Odb};

use super::{damaged, git_error, layout, loose, lost, to_oid};
use crate::error::{IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};

/// Compressed bytes of a loose object from which on it is streamed.
const LARGE: u64 = 1 << 20;

/// Reads blobs; what it was opened with and cannot find any more it looks for anew.
pub struct Reader<'s> {
    odb: Odb<'s>,
    git_dir: PathBuf,
}

impl<'s> Reader<'s> {
    pub(super) fn new(odb: Odb<'s>, git_dir: PathBuf) -> Reader<'s> {
        Reader { odb, git_dir }
    }

    /// Whether an object is there.
    pub fn has(&self, id: &ObjectId) -> bool {
        self.odb.exists(to_oid(id))
    }

    /// A blob's bytes, proved to be those of its id (libgit2 hashes whatever it reads); `None` for one that is too large to be held
    /// in memory and can be streamed. It is said to have `size` bytes.
    ///
    /// # Errors
    /// `store-damaged` when it is missing, cut, of another kind or not what its id says.
    pub fn read_blob(&self, id: &ObjectId, size: u64) -> Result<Option<Vec<u8>>> {
        // Compressing makes hardly anything larger: a small one need not be looked at first.
        if size >= LARGE / 2 && loose::stored_size(&self.git_dir, id)?.is_some_and(|size| size >= LARGE) {
            return Ok(None);
        }
        read_from(&self.odb, &self.git_dir, id, ObjectType::Blob).map(Some)
    }

    /// As [`Store::copy_blob`].
    ///
    /// # Errors
    /// `store-damaged`; errors of writing.
    ///
    /// [`Store::copy_blob`]: super::Store::copy_blob
    pub fn copy_blob(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        if let Some(size) = loose::copy(&self.git_dir, id, out)? {
            return Ok(size);
        }
        let bytes = read_from(&self.odb, &self.git_dir, id, ObjectType::Blob)?;
        if ObjectId::of(ObjectKind::Blob, &bytes)? != *id {
            return Err(damaged(id, "has other bytes than its id says"));
        }
        out.write_all(&bytes).at("writing", "restored content")?;
        Ok(bytes.len() as u64)
    }
}

/// The bytes of an object that must be of a kind.
pub(super) fn read_from(odb: &Odb<'_>, git_dir: &Path, id: &ObjectId, kind: ObjectType) -> Result<Vec<u8>> {
    read_known(odb, id, kind).or_else(|error| {
        // libgit2 does not notice that a pack it knew was replaced; a repository opened now knows the new one.
        let anew = layout::open_repository(git_dir)?;
        let odb = anew.odb().map_err(git_error)?;
        read_known(&odb, id, kind).map_err(|_| error)
    })
}

fn read_known(odb: &Odb<'_>, id: &ObjectId, kind: ObjectType) -> Result<Vec<u8>> {
    let object = odb.read(to_oid(id)).map_err(|error| lost(id, &error))?;
    if object.kind() != kind {
        return Err(damaged(id, "is of another kind than the checkpoint says"));
    }
    Ok(object.data().to_vec())
}
