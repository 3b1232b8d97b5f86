//! Reading pack indexes of version 2. Every number in them is checked: anybody may have written them.

use crate::model::id::ObjectId;

/// What an index says of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub id: ObjectId,
    /// CRC-32 of the entry's bytes in the pack.
    pub crc: u32,
    pub offset: u64,
}

/// Before the ids: magic, version, and the table of first bytes.
const HEAD: usize = 8 + 1024;

/// All entries, in the order of their ids; `None` for anything that is not a whole index of version 2.
pub fn parse(bytes: &[u8]) -> Option<Vec<Entry>> {
    bytes.strip_prefix(b"\xfftOc\0\0\0\x02")?;
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    let count = word(HEAD - 4)? as usize;
    // 28 bytes of tables each; the two checksums at the end.
    let large = HEAD.checked_add(count.checked_mul(28)?)?;
    if large.checked_add(40)? > bytes.len() {
        return None;
    }
    let entry = |i: usize| {
        let id = bytes.get(HEAD + 20 * i..HEAD + 20 * (i + 1))?.try_into().ok()?;
        let small = word(HEAD + 24 * count + 4 * i)?;
        let offset = if small >> 31 == 0 {
            u64::from(small)
        } else {
            let at = large.checked_add(8 * (small & 0x7fff_ffff) as usize)?;
            u64::from(word(at)?) << 32 | u64::from(word(at + 4)?)
        };
        Some(Entry { id: ObjectId::from_bytes(id), crc: word(HEAD + 20 * count + 4 * i)?, offset })
    };
    (0..count).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(mut bytes in proptest::collection::vec(any::<u8>(), 1040..3000), count in 0u32..80) {
            bytes[..8].copy_from_slice(b"\xfftOc\0\0\0\x02");
            bytes[1028..1032].copy_from_slice(&count.to_be_bytes());
            if let Some(entries) = parse(&bytes) {
                prop_assert_eq!(entries.len(), count as usize);
            }
        }
    }
}
