//! The type-and-size header of an entry in a pack, after git's `gitformat-pack`.

use crate::model::id::ObjectKind;

/// Returns the header: type in bits 4-6 of the first byte, size in its low four bits and then seven bits a byte, least
/// significant first.
pub(super) fn entry_header(kind: ObjectKind, size: u64) -> Vec<u8> {
    let number = match kind {
        ObjectKind::Commit => 1u8,
        ObjectKind::Tree => 2,
        ObjectKind::Blob => 3,
    };
    let mut rest = size >> 4;
    let mut header = vec![number << 4 | (size & 15) as u8];
    while rest > 0 {
        if let Some(last) = header.last_mut() {
            *last |= 0x80;
        }
        header.push((rest & 0x7f) as u8);
        rest >>= 7;
    }
    header
}

/// Returns kind and size of the entry at the beginning of `bytes`, and where its content begins; `None` for deltas,
/// tags and other bytes.
pub(super) fn entry_of(bytes: &[u8]) -> Option<(ObjectKind, u64, usize)> {
    let (number, size, at) = type_and_size(bytes)?;
    let kind = match number {
        1 => ObjectKind::Commit,
        2 => ObjectKind::Tree,
        3 => ObjectKind::Blob,
        _ => return None,
    };
    Some((kind, size, at))
}

/// Type and size at the beginning of an entry, and how many bytes they take.
pub(super) fn type_and_size(bytes: &[u8]) -> Option<(u8, u64, usize)> {
    let first = *bytes.first()?;
    let (mut size, mut shift, mut at, mut last) = (u64::from(first & 15), 4, 1, first);
    while last & 0x80 != 0 {
        last = *bytes.get(at)?;
        let part = u64::from(last & 0x7f);
        if shift > 60 || part << shift >> shift != part {
            return None;
        }
        size |= part << shift;
        (shift, at) = (shift + 7, at + 1);
    }
    Some((first >> 4 & 7, size, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_the_format() {
        assert_eq!(entry_header(ObjectKind::Blob, 5), [0x35]);
        assert_eq!(entry_header(ObjectKind::Commit, 16), [0x90, 0x01]);
        assert_eq!(entry_header(ObjectKind::Tree, 0x1234), [0xa4, 0xa3, 0x02]);
        for (kind, size) in
            [(ObjectKind::Blob, 0), (ObjectKind::Tree, 15), (ObjectKind::Commit, 16), (ObjectKind::Blob, u64::MAX)]
        {
            let header = entry_header(kind, size);
            assert_eq!(entry_of(&header), Some((kind, size, header.len())));
            assert_eq!(entry_of(&header[..header.len() - 1]), None);
        }
        assert_eq!((entry_of(&[0x65]), entry_of(&[0xff; 20])), (None, None));
    }
}
