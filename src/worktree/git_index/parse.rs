//! The format of one index file, after git's `Documentation/gitformat-index.txt` and `read-cache.c`.

use super::damaged;
use super::ewah;
use crate::error::Result;
use crate::model::id::ObjectId;

/// Longest name; git itself knows none, file systems do.
const MAX_NAME: usize = 1 << 16;
/// Most bytes in all names together: prefix compression could ask for far more than the file holds.
const MAX_NAMES: usize = 512 << 20;

const EXTENDED: u16 = 0x4000;
const NAME_LENGTH: u16 = 0x0fff;
const TYPE: u32 = 0o170_000;
const GITLINK: u32 = 0o160_000;
const TREE: u32 = 0o040_000;

/// The hash of the repository, which sets the length of ids.
#[derive(Clone, Copy, Debug)]
pub(super) enum IndexHash {
    Sha1,
    Sha256,
}

impl IndexHash {
    fn len(self) -> usize {
        match self {
            IndexHash::Sha1 => 20,
            IndexHash::Sha256 => 32,
        }
    }
}

/// One entry.
#[derive(Debug)]
pub(super) struct IndexSlot {
    /// The path in the repository; empty in a split index for an entry of the shared one.
    pub(super) name: Vec<u8>,
    /// True if it is a file or link (no submodule, no sparse directory) and not deleted.
    pub(super) tracked: bool,
    /// The file as git has seen it last.
    pub(super) seen: SeenFile,
    /// The staged entry.
    pub(super) staged: StagedEntry,
}

/// An entry without what git remembers of the file on the disk: its mode, its flags of both kinds, and its id, which is shorter in a
/// repository of SHA-1.
pub(super) type StagedEntry = (u32, u16, u16, [u8; 32]);

/// A file as git has seen it last: the time of its content, its length and its content. Time and length are 0 where git has to look
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenFile {
    /// Seconds since the epoch, modulo 2³².
    pub seconds: u32,
    /// Nanoseconds; 0 from a git that does not keep them.
    pub nanos: u32,
    /// Bytes, modulo 2³².
    pub length: u32,
    /// The blob that is staged; `None` in a repository of SHA-256.
    pub id: Option<ObjectId>,
}

/// The `link` extension of a split index.
#[derive(Debug)]
pub(super) struct Link {
    /// The shared index's hash in hex.
    pub(super) base: String,
    /// Positions in the shared index.
    pub(super) deleted: Vec<u32>,
}

/// One index file.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The entries in the index's order.
    pub(super) slots: Vec<IndexSlot>,
    /// The shared index that it builds upon; `None` if it stands alone.
    pub(super) link: Option<Link>,
}

/// Parses a whole file whose ids are those of `hash`.
pub(super) fn parse(bytes: &[u8], hash: IndexHash) -> Result<Parsed> {
    let body = bytes.len().checked_sub(hash.len()).map(|end| &bytes[..end]).ok_or_else(|| damaged("is cut"))?;
    let mut reader = IndexReader(body);
    if reader.take(4)? != b"DIRC" {
        return Err(damaged("has no index signature"));
    }
    let version = reader.u32()?;
    if !(2..=4).contains(&version) {
        return Err(damaged(&format!("has version {version}, which piton does not support")));
    }
    let slots = entries(&mut reader, version, hash)?;
    let link = extensions(&mut reader, hash)?;
    Ok(Parsed { slots, link })
}

fn entries(reader: &mut IndexReader<'_>, version: u32, hash: IndexHash) -> Result<Vec<IndexSlot>> {
    let count = reader.u32()? as usize;
    let smallest = 42 + hash.len();
    if count > reader.0.len() / smallest {
        return Err(damaged("promises more entries than it contains"));
    }
    let mut slots: Vec<IndexSlot> = Vec::with_capacity(count);
    let mut total = 0usize;
    for _ in 0..count {
        let previous = slots.last().map_or(&[][..], |slot| slot.name.as_slice());
        let slot = entry(reader, version, hash, previous)?;
        total += slot.name.len();
        if total > MAX_NAMES {
            return Err(damaged("contains more names than piton reads"));
        }
        slots.push(slot);
    }
    Ok(slots)
}

fn entry(reader: &mut IndexReader<'_>, version: u32, hash: IndexHash, previous: &[u8]) -> Result<IndexSlot> {
    let before = reader.0.len();
    reader.take(8)?;
    let (seconds, nanos) = (reader.u32()?, reader.u32()?);
    reader.take(8)?;
    let mode = reader.u32()?;
    reader.take(8)?;
    let length = reader.u32()?;
    // 32 bytes are the id of another hash.
    let bytes = reader.take(hash.len())?;
    let mut whole = [0; 32];
    whole[..bytes.len()].copy_from_slice(bytes);
    let id = bytes.try_into().ok().map(ObjectId::from_bytes);
    let seen = SeenFile { seconds, nanos, length, id };
    let flags = reader.u16()?;
    let mut more = 0;
    if flags & EXTENDED != 0 {
        if version < 3 {
            return Err(damaged("has extended flags in version 2"));
        }
        more = reader.u16()?;
    }
    let name = if version == 4 {
        let strip = reader.varint()?;
        let keep = previous
            .len()
            .checked_sub(strip)
            .ok_or_else(|| damaged("has a name that does not match the one before it"))?;
        [&previous[..keep], reader.until_nul()?].concat()
    } else {
        let name = reader.until_nul()?.to_vec();
        // Entries are padded with 1 to 8 NUL bytes to a multiple of eight; one is consumed with the name.
        let size = before - reader.0.len();
        reader.take(size.next_multiple_of(8) - size)?;
        name
    };
    let stated = usize::from(flags & NAME_LENGTH);
    let fits = name.len() == stated || (stated == usize::from(NAME_LENGTH) && name.len() > stated);
    if !fits || name.len() > MAX_NAME {
        return Err(damaged("has a name whose length differs from the stated one"));
    }
    // The rest of the flags is the length of the name.
    let staged = (mode, flags & !(NAME_LENGTH | EXTENDED), more, whole);
    Ok(IndexSlot { name, tracked: !matches!(mode & TYPE, GITLINK | TREE), seen, staged })
}

fn extensions(reader: &mut IndexReader<'_>, hash: IndexHash) -> Result<Option<Link>> {
    let mut link = None;
    while !reader.0.is_empty() {
        let signature = reader.take(4)?;
        let size = reader.u32()? as usize;
        let body = reader.take(size)?;
        match signature {
            b"link" => link = link_of(body, hash)?,
            b"sdir" => {}
            // Extensions whose name begins with a capital are optional.
            [b'A'..=b'Z', ..] => {}
            _ => return Err(damaged("has a required extension that piton does not support")),
        }
    }
    Ok(link)
}

fn link_of(body: &[u8], hash: IndexHash) -> Result<Option<Link>> {
    let mut reader = IndexReader(body);
    let base = reader.take(hash.len())?;
    if base.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let deleted = if reader.0.is_empty() { Vec::new() } else { ewah::positions(&mut reader)? };
    Ok(Some(Link { base: base.iter().map(|byte| format!("{byte:02x}")).collect(), deleted }))
}

/// Bytes that are consumed from the front; running out is damage.
pub(super) struct IndexReader<'a>(pub(super) &'a [u8]);

impl<'a> IndexReader<'a> {
    /// Takes some bytes.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(|| damaged("is cut"))?;
        self.0 = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Takes a number of two bytes.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes a number of four bytes.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes a number of eight bytes.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn until_nul(&mut self) -> Result<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(|| damaged("is cut"))?;
        let name = self.take(end)?;
        self.take(1)?;
        Ok(name)
    }

    /// git's offset encoding (`decode_varint`).
    fn varint(&mut self) -> Result<usize> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = (value + 1) << 7 | usize::from(byte & 0x7f);
            if value > MAX_NAME {
                return Err(damaged("has a name that does not match the one before it"));
            }
        }
        Ok(value)
    }
}
