//! EWAH-compressed bitmaps as git writes them (`ewah/ewah_io.c`): the positions of the set bits.

use super::damaged;
use super::parse::IndexReader;
use crate::error::Result;

/// Most bits of a bitmap: more entries than an index of the accepted size can have.
const MAX_BITS: u64 = 16 << 20;

/// Reads one bitmap from the front of `reader`.
pub(super) fn positions(reader: &mut IndexReader<'_>) -> Result<Vec<u32>> {
    let bits = u64::from(reader.u32()?);
    let words = reader.u32()? as usize;
    if bits > MAX_BITS {
        return Err(damaged("has an oversized bitmap"));
    }
    let size = words.checked_mul(8).ok_or_else(|| damaged("is cut"))?;
    let mut body = IndexReader(reader.take(size)?);
    // The position of the last run-length word, which only a writer needs.
    reader.u32()?;
    let mut set = Vec::new();
    let mut position = 0u64;
    while !body.0.is_empty() {
        let run = body.u64()?;
        let length = (run >> 1 & 0xffff_ffff) * 64;
        if run & 1 == 1 {
            push_range(&mut set, position, (position + length).min(bits));
        }
        position += length;
        for _ in 0..run >> 33 {
            push_literal(&mut set, position, body.u64()?, bits);
            position += 64;
        }
        if position > bits + 64 {
            return Err(damaged("has a bitmap longer than it says"));
        }
    }
    Ok(set)
}

fn push_range(set: &mut Vec<u32>, from: u64, to: u64) {
    set.extend((from..to).filter_map(|position| u32::try_from(position).ok()));
}

fn push_literal(set: &mut Vec<u32>, base: u64, word: u64, bits: u64) {
    let positions = (0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| base + bit);
    set.extend(positions.filter(|position| *position < bits).filter_map(|position| u32::try_from(position).ok()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(bits: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = bits.to_be_bytes().to_vec();
        bytes.extend((words.len() as u32).to_be_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_be_bytes()));
        bytes.extend(0u32.to_be_bytes());
        bytes
    }

    #[test]
    fn runs_and_literals() {
        // 64 clear bits, one literal with bits 1 and 3; then 64 set bits.
        let bytes = encode(192, &[1 << 1 | 1 << 33, 0b1010, 1 | 1 << 1]);
        let set = positions(&mut IndexReader(&bytes)).unwrap();
        assert_eq!(set[..2], [65, 67]);
        assert_eq!(set[2..], (128..192).collect::<Vec<u32>>());
    }

    #[test]
    fn endless_runs_are_refused() {
        let bytes = encode(64, &[1 | 0xffff_ffff << 1]);
        assert!(positions(&mut IndexReader(&bytes)).is_err());
        assert!(positions(&mut IndexReader(&encode(u32::MAX, &[]))).is_err());
        assert!(positions(&mut IndexReader(&encode(64, &[5 << 33]))).is_err());
    }
}
