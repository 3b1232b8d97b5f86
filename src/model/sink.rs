//! The destination of captured content: the border between the user's files and the store, which never meet.

use std::io::Read;

use super::id::{ObjectHasher, ObjectId, ObjectKind};
use crate::error::{IoContext, Result};

/// Takes objects from several threads at once. Two implementors: the store's batch, and [`HashOnly`].
pub trait ObjectSink: Sync {
    /// Returns whether the object need not be written.
    ///
    /// # Errors
    /// When the store cannot answer.
    fn contains(&self, id: &ObjectId) -> Result<bool>;

    /// Announces how many objects, of how many bytes altogether, may come, before many of them do.
    ///
    /// # Errors
    /// When the store cannot be looked at.
    fn expect(&self, objects: usize, bytes: u64) -> Result<()> {
        // A sink without preparations needs neither number.
        let _ = (objects, bytes);
        Ok(())
    }

    /// Takes a whole object; `id` is the hash of `content`.
    ///
    /// # Errors
    /// When it cannot be written (`disk-full`, `permission`).
    fn write(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()>;

    /// Takes a large blob of exactly `size` bytes without holding it in memory.
    ///
    /// # Errors
    /// As [`ObjectSink::write`]; `conflict` when the source has fewer or more bytes than `size`.
    fn write_stream(&self, size: u64, source: &mut dyn Read) -> Result<ObjectId>;
}

/// Hashes and keeps nothing: for comparing the work tree with a checkpoint.
pub struct HashOnly;

impl ObjectSink for HashOnly {
    fn contains(&self, _id: &ObjectId) -> Result<bool> {
        Ok(true)
    }

    fn write(&self, _kind: ObjectKind, _id: ObjectId, _content: &[u8]) -> Result<()> {
        Ok(())
    }

    fn write_stream(&self, size: u64, source: &mut dyn Read) -> Result<ObjectId> {
        hash_stream(size, source, &mut |_| Ok(()))
    }
}

/// Hashes a blob of exactly `size` bytes from `source`, handing each piece to `take`.
///
/// # Errors
/// `conflict` when the source ends early or continues after `size` bytes; I/O errors of the source and of `take`.
pub fn hash_stream(size: u64, source: &mut dyn Read, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<ObjectId> {
    let mut hasher = ObjectHasher::new(ObjectKind::Blob, size);
    // Clearing a large buffer for a small file would cost more than hashing it.
    let mut buffer = vec![0u8; size.saturating_add(1).min(1 << 20) as usize];
    let mut total = 0u64;
    loop {
        let n = source.read(&mut buffer).at("reading", "a workspace file")?;
        total += n as u64;
        if total > size || (n == 0 && total < size) {
            return Err(crate::error::Error::new(
                crate::error::Code::Conflict,
                format!("the file's size changed while piton read it (expected {size} bytes)"),
            ));
        }
        if n == 0 {
            return hasher.finish();
        }
        hasher.update(&buffer[..n]);
        take(&buffer[..n])?;
    }
}
