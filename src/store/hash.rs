//! SHA-1 of bytes that were hashed before or are piton's own: collision detection has nothing to protect here.

use std::io::Read;

use sha1_checked::{Digest, Sha1};

use crate::model::id::{ObjectId, ObjectKind};

/// Returns the id of content that was looked at for collisions when it was stored.
pub(super) fn plain_id(kind: ObjectKind, content: &[u8]) -> ObjectId {
    let mut hasher = PlainHasher::new(kind, content.len() as u64);
    hasher.update(content);
    hasher.finish()
}

/// As [`plain_id`], piece by piece.
pub(super) struct PlainHasher(Sha1);

impl PlainHasher {
    /// Begins with git's header for `kind` and `length` content bytes.
    pub(super) fn new(kind: ObjectKind, length: u64) -> PlainHasher {
        let mut hasher = plain_sha1();
        hasher.update(format!("{} {length}\0", kind.as_str()).as_bytes());
        PlainHasher(hasher)
    }

    /// Adds content.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the id of what was added.
    pub(super) fn finish(self) -> ObjectId {
        ObjectId::from_bytes(digest(self.0))
    }
}

/// Returns a hasher without collision detection, for bytes that were hashed before or are piton's own.
pub(super) fn plain_sha1() -> Sha1 {
    Sha1::builder().detect_collision(false).build()
}

/// Returns the SHA-1 of what is left to read.
pub(super) fn checksum_of(file: &mut impl Read) -> std::io::Result<[u8; 20]> {
    let mut hasher = plain_sha1();
    let mut buffer = vec![0u8; 1 << 18];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(digest(hasher));
        }
        hasher.update(&buffer[..n]);
    }
}

/// Returns the SHA-1 of bytes of our own.
pub(super) fn checksum(bytes: &[u8]) -> [u8; 20] {
    let mut hasher = plain_sha1();
    hasher.update(bytes);
    digest(hasher)
}

/// Returns the digest of all that was hashed.
pub(super) fn digest(hasher: Sha1) -> [u8; 20] {
    let mut bytes = [0u8; 20];
    bytes.copy_from_slice(hasher.try_finalize().hash());
    bytes
}
