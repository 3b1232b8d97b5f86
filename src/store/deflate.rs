//! Compressing whole objects: libdeflate, as fast at level 1 as zlib's level 1 and nearly as small as its level 6.
//!
//! Streams of unknown or great length go through `flate2` instead, since libdeflate takes whole buffers only.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor, Decompressor};

use crate::error::{Code, Error, Result};

/// The amount of work that is put into one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effort {
    /// No compression: the content is only framed.
    Stored,
    /// The fastest level that compresses, while a client waits.
    Fast,
    /// The smallest result, for idle time.
    Small,
}

/// The most bytes of a stored block.
const BLOCK: usize = 0xffff;

/// A ratio above the best that deflate can reach: a stated size beyond it is false, and no memory is allocated for it.
pub(super) const RATIO: usize = 1100;

/// Returns how many bytes content of a size takes at most: a fast compressor may spend nine bits on each of its bytes.
pub(super) const fn most_compressed(size: u64) -> u64 {
    size.saturating_add(size / 4 + 256)
}

fn compressor(level: i32) -> RefCell<Compressor> {
    RefCell::new(Compressor::new(CompressionLvl::new(level).unwrap_or_default()))
}

thread_local! {
    /// Kept for each thread: their tables are larger than most objects.
    static FAST: RefCell<Compressor> = compressor(1);
    static SMALL: RefCell<Compressor> = compressor(6);
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// Appends `content`, with zlib's header and checksum, to `out`.
pub(super) fn zlib(content: &[u8], effort: Effort, out: &mut Vec<u8>) -> Result<()> {
    match effort {
        Effort::Stored => {
            stored(content, out);
            Ok(())
        }
        Effort::Fast => FAST.with_borrow_mut(|compressor| compress(compressor, content, out)),
        Effort::Small => SMALL.with_borrow_mut(|compressor| compress(compressor, content, out)),
    }
}

fn compress(compressor: &mut Compressor, content: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.resize(start + compressor.zlib_compress_bound(content.len()), 0);
    let written = compressor
        .zlib_compress(content, &mut out[start..])
        .map_err(|_| Error::new(Code::Internal, "an object could not be compressed"))?;
    out.truncate(start + written);
    Ok(())
}

/// Blocks of plain bytes, each with its length and that length's complement before it; the last one is marked.
fn stored(content: &[u8], out: &mut Vec<u8>) {
    out.reserve(content.len() + 5 * (content.len() / BLOCK + 1) + 6);
    // A window of 32 KiB at the fastest level; zlib wants the two bytes to be a multiple of 31.
    out.extend_from_slice(&[0x78, 0x01]);
    let blocks = content.len().div_ceil(BLOCK).max(1);
    for n in 0..blocks {
        let block = &content[n * BLOCK..content.len().min((n + 1) * BLOCK)];
        let length = block.len() as u16;
        out.push(u8::from(n + 1 == blocks));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend_from_slice(&libdeflater::adler32(content).to_be_bytes());
}

/// Returns the content of `size` bytes that `bytes` hold; `None` when they do not, or hold more or less.
pub(super) fn inflate(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    if size / RATIO > bytes.len() {
        return None;
    }
    let mut out = vec![0; size];
    let outcome = DECOMPRESSOR.with_borrow_mut(|decompressor| decompressor.zlib_decompress(bytes, &mut out));
    outcome.is_ok_and(|written| written == size).then_some(out)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_compressed_is_zlib() {
        let noise: Vec<u8> = (0..200_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let contents = [
            &b""[..],
            b"a",
            &b"lines\n".repeat(5000),
            &[0xa5; 70_000],
            &[7; BLOCK],
            &[7; BLOCK + 1],
            &[7; 2 * BLOCK],
            &noise,
        ];
        for content in contents {
            for effort in [Effort::Stored, Effort::Fast, Effort::Small] {
                let mut out = b"before".to_vec();
                zlib(content, effort, &mut out).unwrap();
                let mut plain = Vec::new();
                flate2::read::ZlibDecoder::new(&out[6..]).read_to_end(&mut plain).unwrap();
                assert_eq!((&out[..6], plain.as_slice()), (&b"before"[..], content));
                assert_eq!(inflate(&out[6..], content.len()).as_deref(), Some(content), "{effort:?}");
                assert_eq!(inflate(&out[6..], content.len() + 1), None);
                assert_eq!(inflate(&out[6..], usize::MAX), None);
                assert_eq!(inflate(&out[6..out.len() - 1], content.len()), None);
            }
        }
    }
}
