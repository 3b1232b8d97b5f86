//! The stamps file: what was known of every captured file after the last capture.
//!
//! Only an accelerator: a missing, torn or foreign file costs a scan, never a wrong checkpoint. Little-endian: magic and
//! version, epoch, boot id, usual permissions, then one record per path, then a CRC-32 of all before it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::model::coverage::Defaults;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::stamp::{Known, Stamp};
use crate::sys::durable::replace_file;

const MAGIC: &[u8; 8] = b"pitonst1";

/// What is known of a workspace's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// The store's epoch in which the ids were there.
    pub epoch: String,
    /// The boot in which the stamps were seen.
    pub boot: String,
    /// Usual permissions of the last checkpoint.
    pub defaults: Option<Defaults>,
    pub known: BTreeMap<RelPath, Known>,
}

impl Stamps {
    /// Nothing known yet.
    pub fn empty(epoch: &str, boot: &str) -> Stamps {
        Stamps { epoch: epoch.to_owned(), boot: boot.to_owned(), defaults: None, known: BTreeMap::new() }
    }
}

/// Reads the file; `None` when it is missing or cannot be trusted.
///
/// # Errors
/// When it exists and cannot be read at all.
pub fn load(file: &Path) -> Result<Option<Stamps>> {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(error, "reading", file)),
    };
    let stamps = decode(&bytes);
    if stamps.is_none() {
        tracing::warn!(file = %file.display(), "the stamps file is damaged; everything will be read again");
    }
    Ok(stamps)
}

/// Writes the file, durably.
///
/// # Errors
/// `disk-full`, `permission`.
pub fn save(file: &Path, stamps: &Stamps) -> Result<()> {
    replace_file(file, &encode(stamps))
}

fn encode(stamps: &Stamps) -> Vec<u8> {
    let mut out = Vec::with_capacity(stamps.known.len() * 130 + 200);
    out.extend_from_slice(MAGIC);
    text(&mut out, stamps.epoch.as_bytes());
    text(&mut out, stamps.boot.as_bytes());
    let perms = stamps.defaults.map_or([u16::MAX; 3], |d| [d.file, d.executable, d.dir]);
    perms.iter().for_each(|perm| out.extend_from_slice(&perm.to_le_bytes()));
    out.extend_from_slice(&(stamps.known.len() as u64).to_le_bytes());
    for (path, known) in &stamps.known {
        text(&mut out, path.as_bytes());
        let Stamp { size, mtime, ctime, dev, ino, mode, links } = known.stamp;
        for number in [size, mtime as u64, ctime as u64, dev, ino, u64::from(mode), links] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(known.id.as_bytes());
        out.push(u8::from(known.proven));
    }
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn decode(bytes: &[u8]) -> Option<Stamps> {
    let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
    if crc32fast::hash(body).to_le_bytes() != crc {
        return None;
    }
    let mut reader = Reader(body.strip_prefix(MAGIC)?);
    let epoch = String::from_utf8(reader.text()?.to_vec()).ok()?;
    let boot = String::from_utf8(reader.text()?.to_vec()).ok()?;
    let [file, executable, dir] = [reader.u16()?, reader.u16()?, reader.u16()?];
    let defaults = (file != u16::MAX).then_some(Defaults { file, executable, dir });
    let count = reader.u64()?;
    let mut known = BTreeMap::new();
    for _ in 0..count {
        let path = RelPath::parse(reader.text()?).ok()?;
        known.insert(path, reader.known()?);
    }
    reader.0.is_empty().then_some(Stamps { epoch, boot, defaults, known })
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (piece, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(piece)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        self.take(length as usize)
    }

    fn known(&mut self) -> Option<Known> {
        let stamp = Stamp {
            size: self.u64()?,
            mtime: self.u64()? as i64,
            ctime: self.u64()? as i64,
            dev: self.u64()?,
            ino: self.u64()?,
            mode: u32::try_from(self.u64()?).ok()?,
            links: self.u64()?,
        };
        let id = ObjectId::from_bytes(self.take(20)?.try_into().ok()?);
        let proven = self.take(1)?[0] == 1;
        Some(Known { stamp, id, proven })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Stamps {
        let stamp = Stamp { size: 3, mtime: -5, ctime: 7, dev: 1, ino: 9, mode: 0o100644, links: 1 };
        let known = Known { stamp, id: ObjectId::EMPTY_TREE, proven: true };
        let path = |text: &[u8]| RelPath::parse(text).unwrap();
        Stamps {
            defaults: Some(Defaults::STANDARD),
            known: [(path(b"a/b"), known), (path(b"\xff\n"), Known { proven: false, ..known })].into(),
            ..Stamps::empty("e", "b")
        }
    }

    #[test]
    fn round_trip_and_every_cut_is_noticed() {
        let bytes = encode(&sample());
        assert_eq!(decode(&bytes), Some(sample()));
        for cut in 0..bytes.len() {
            assert_eq!(decode(&bytes[..cut]), None, "cut at {cut}");
        }
        let mut flipped = bytes.clone();
        flipped[20] ^= 1;
        assert_eq!(decode(&flipped), None);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut framed = MAGIC.to_vec();
            framed.extend(&bytes);
            let crc = crc32fast::hash(&framed);
            framed.extend(crc.to_le_bytes());
            // Only the absence of a panic is of interest.
            let _ = decode(&framed);
        }
    }
}
