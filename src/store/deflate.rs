//! Compressing whole objects: libdeflate at level 1, as fast as zlib's level 1 and nearly as small as its level 6.
//!
//! Streams of unknown or great length go through `flate2` instead, since libdeflate takes whole buffers only.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor};

use crate::error::{Code, Error, Result};

/// The fastest level that compresses.
const LEVEL: i32 = 1;

thread_local! {
    /// Its tables are worth keeping: most objects are smaller than they are.
    static COMPRESSOR: RefCell<Compressor> =
        RefCell::new(Compressor::new(CompressionLvl::new(LEVEL).unwrap_or_default()));
}

/// Appends `content`, compressed with zlib's header and checksum, to `out`.
pub fn zlib(content: &[u8], out: &mut Vec<u8>) -> Result<()> {
    COMPRESSOR.with_borrow_mut(|compressor| {
        let start = out.len();
        out.resize(start + compressor.zlib_compress_bound(content.len()), 0);
        let written = compressor
            .zlib_compress(content, &mut out[start..])
            .map_err(|_| Error::new(Code::Internal, "an object could not be compressed"))?;
        out.truncate(start + written);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_compressed_is_zlib() {
        for content in [&b""[..], b"a", &b"lines\n".repeat(5000), &[0xa5; 70_000]] {
            let mut out = b"before".to_vec();
            zlib(content, &mut out).unwrap();
            let mut plain = Vec::new();
            flate2::read::ZlibDecoder::new(&out[6..]).read_to_end(&mut plain).unwrap();
            assert_eq!((&out[..6], plain.as_slice()), (&b"before"[..], content));
        }
    }
}
