//! Reads pack indexes of version 2. Every number in them is checked: any program may have written them, and disks lose
//! bits.
//!
//! An index is read into private memory, never mapped: a file that is cut or changed while it is in use can neither end the process
//! nor change what was verified. *Invariant:* no content of an index makes a lookup panic or read outside of it.

use std::sync::Arc;

use crate::model::id::ObjectId;

/// An entry of an index, for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PackEntry {
    /// The object's id.
    pub id: ObjectId,
    /// CRC-32 of the entry's bytes in the pack.
    pub crc: u32,
    /// The place of the entry in the pack, in bytes.
    pub offset: u64,
}

/// The bytes before the ids: magic, version, and the table of first bytes.
const HEAD: usize = 8 + 1024;

/// The bytes of one object in the tables: id, CRC-32, offset.
const EACH: usize = 28;

/// The bytes of the checksums of pack and index at the end.
const TAIL: usize = 40;

/// A whole index of version 2.
pub(super) struct Index {
    /// The content of the index file, its checksum included.
    bytes: Arc<Vec<u8>>,
    /// The number of its entries.
    count: usize,
}

impl Index {
    /// Takes bytes that were verified before, as far as the file system tells, and checks only the bounds of the
    /// tables. The error says what is wrong.
    pub(super) fn bounded(bytes: impl Into<Arc<Vec<u8>>>) -> Result<Index, &'static str> {
        let bytes = bytes.into();
        if !bytes.starts_with(b"\xfftOc\0\0\0\x02") {
            return Err("it is not an index of version 2");
        }
        if bytes.len() < HEAD + TAIL {
            return Err("it is cut");
        }
        let mut index = Index { bytes, count: 0 };
        index.count = index.word(HEAD - 4) as usize;
        let tables = index.count.checked_mul(EACH).and_then(|tables| tables.checked_add(HEAD + TAIL));
        if tables.is_none_or(|tables| tables > index.bytes.len() || !(index.bytes.len() - tables).is_multiple_of(8)) {
            return Err("its length does not match its tables");
        }
        let fan_out = (0..255).map(|first| (index.word(8 + 4 * first), index.word(12 + 4 * first)));
        if fan_out.into_iter().any(|(less, more)| less > more) {
            return Err("its first table is not in ascending order");
        }
        Ok(index)
    }

    /// Verifies all of it: checksum, tables, order.
    pub(super) fn verified(bytes: impl Into<Arc<Vec<u8>>>) -> Result<Index, &'static str> {
        let index = Index::bounded(bytes)?;
        let body = index.bytes.len() - 20;
        if super::hash::checksum(&index.bytes[..body]) != index.bytes[body..] {
            return Err("its checksum is wrong");
        }
        let mut before = None;
        for at in 0..index.count {
            let entry = index.entry(at).ok_or("an offset is outside of its table")?;
            let (id, first) = (entry.id.as_bytes(), usize::from(entry.id.as_bytes()[0]));
            if before.is_some_and(|before| before >= *id) {
                return Err("its ids are not in ascending order");
            }
            let (from, to) = index.span(first);
            if !(from..to).contains(&at) {
                return Err("its first table does not match its ids");
            }
            if entry.offset < 12 {
                return Err("an object is outside of the pack");
            }
            before = Some(*id);
        }
        Ok(index)
    }

    fn word(&self, at: usize) -> u32 {
        // Callers stay within the tables, whose bounds were checked; a place outside of them counts as zero.
        self.bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
    }

    /// Returns the places of ids that begin with `first`.
    fn span(&self, first: usize) -> (usize, usize) {
        let from = if first == 0 { 0 } else { self.word(4 + 4 * first) as usize };
        (from.min(self.count), (self.word(8 + 4 * first) as usize).min(self.count))
    }

    fn id(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(HEAD + 20 * at..HEAD + 20 * (at + 1))
    }

    fn offset(&self, at: usize) -> Option<u64> {
        let small = self.word(HEAD + 24 * self.count + 4 * at);
        if small >> 31 == 0 {
            return Some(u64::from(small));
        }
        let large = HEAD + EACH * self.count + 8 * (small & 0x7fff_ffff) as usize;
        let end = self.bytes.len() - TAIL;
        (large + 8 <= end).then(|| u64::from(self.word(large)) << 32 | u64::from(self.word(large + 4)))
    }

    fn entry(&self, at: usize) -> Option<PackEntry> {
        let id = self.id(at)?.try_into().ok()?;
        Some(PackEntry {
            id: ObjectId::from_bytes(id),
            crc: self.word(HEAD + 20 * self.count + 4 * at),
            offset: self.offset(at)?,
        })
    }

    /// Counts its objects.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns where an object begins in the pack.
    pub(super) fn find(&self, id: &ObjectId) -> Option<u64> {
        let (mut from, mut to) = self.span(usize::from(id.as_bytes()[0]));
        let ids: &[[u8; 20]] = self.bytes.get(HEAD..HEAD + 20 * self.count)?.as_chunks().0;
        // The first eight bytes as a number decide nearly every step.
        let number = |id: &[u8; 20]| id.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
        let wanted = number(id.as_bytes());
        while from < to {
            let middle = from + (to - from) / 2;
            let there = ids.get(middle)?;
            match number(there).cmp(&wanted).then_with(|| there.cmp(id.as_bytes())) {
                std::cmp::Ordering::Equal => return self.offset(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// Returns all objects, in the order of their ids.
    pub(super) fn entries(&self) -> impl Iterator<Item = PackEntry> + '_ {
        (0..self.count).filter_map(|at| self.entry(at))
    }

    /// Returns the checksum of the pack that it was made for.
    pub(super) fn of_pack(&self) -> &[u8] {
        let end = self.bytes.len() - 20;
        &self.bytes[end - 20..end]
    }
}

/// Returns all entries of an index that is verified here, in the order of their ids; `None` for anything that is not a
/// whole index of version 2.
pub(super) fn parse(bytes: Vec<u8>) -> Option<Vec<PackEntry>> {
    Index::verified(bytes).ok().map(|index| index.entries().collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::pack::index_of;
    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 1040..3000), count in 0u32..80) {
            bytes[..8].copy_from_slice(b"\xfftOc\0\0\0\x02");
            bytes[1028..1032].copy_from_slice(&count.to_be_bytes());
            prop_assert!(parse(bytes.clone()).is_none());
            if let Ok(index) = Index::bounded(bytes) {
                for first in 0..=255 {
                    index.find(&ObjectId::from_bytes([first; 20]));
                }
                prop_assert!(index.entries().count() <= count as usize);
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found_and_none_hurts() {
        let ids: Vec<ObjectId> = (0..40_u8).map(|n| ObjectId::from_bytes([n.wrapping_mul(37); 20])).collect();
        let bytes = index_of(&ids);
        let whole = Index::verified(bytes.clone()).unwrap();
        assert!(ids.iter().all(|id| whole.find(id).is_some()) && whole.len() == 40);
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Index::verified(wrong.clone()).is_err(), "bit {bit}");
            if let Ok(index) = Index::bounded(wrong) {
                ids.iter().for_each(|id| _ = index.find(id));
                assert!(index.entries().count() <= index.len());
            }
        }
        for cut in 0..bytes.len() {
            assert!(Index::verified(bytes[..cut].to_vec()).is_err(), "{cut} bytes");
        }
    }
}
