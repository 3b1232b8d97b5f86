//! Reading blobs, from several threads at once.

use std::io::Write;
use std::path::Path;

use super::objects::Objects;
use super::{damaged, loose};
use crate::error::{IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};

/// Compressed bytes of a loose object from which on it is streamed.
const LARGE: u64 = 1 << 20;

/// Reads blobs; what was packed elsewhere meanwhile it looks for anew.
pub struct Reader<'s> {
    objects: &'s Objects,
    git_dir: &'s Path,
}

impl<'s> Reader<'s> {
    pub(super) fn new(objects: &'s Objects, git_dir: &'s Path) -> Reader<'s> {
        Reader { objects, git_dir }
    }

    /// Whether an object is there.
    pub fn has(&self, id: &ObjectId) -> bool {
        self.objects.has(id).unwrap_or(false)
    }

    /// A blob's bytes, proved to be those of its id; `None` for one that is too large to be held in memory and can be streamed. It
    /// is said to have `size` bytes.
    ///
    /// # Errors
    /// `store-damaged` when it is missing, cut, of another kind or not what its id says.
    pub fn read_blob(&self, id: &ObjectId, size: u64) -> Result<Option<Vec<u8>>> {
        // Compressing makes hardly anything larger: a small one need not be looked at first.
        if size >= LARGE / 2 && loose::stored_size(self.git_dir, id)?.is_some_and(|size| size >= LARGE) {
            return Ok(None);
        }
        read_kind(self.objects, id, ObjectKind::Blob).map(Some)
    }

    /// As [`Store::copy_blob`].
    ///
    /// # Errors
    /// `store-damaged`; errors of writing.
    ///
    /// [`Store::copy_blob`]: super::Store::copy_blob
    pub fn copy_blob(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        let copied = loose::copy(self.git_dir, id, out).inspect_err(|_| self.objects.note(id))?;
        if let Some(size) = copied {
            return Ok(size);
        }
        if let Some(size) = self.objects.stream(id, out)? {
            return Ok(size);
        }
        let bytes = read_kind(self.objects, id, ObjectKind::Blob)?;
        out.write_all(&bytes).at("writing", "restored content")?;
        Ok(bytes.len() as u64)
    }
}

/// The bytes of an object that must be of a kind.
pub(super) fn read_kind(objects: &Objects, id: &ObjectId, kind: ObjectKind) -> Result<Vec<u8>> {
    match objects.read(id)? {
        (Some(found), content) if found == kind => Ok(content),
        _ => Err(damaged(id, "is of another kind than the checkpoint says")),
    }
}
