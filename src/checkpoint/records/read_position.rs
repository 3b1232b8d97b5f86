//! The place up to which a reader has read a file that others append to, or replace by a shorter one.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{IoContext, Result};

/// The bytes before the place that are remembered: the name and the size of a file do not tell a new one from the old one, because
/// its inode may be used again.
const TAIL: usize = 128;

/// The place in a file up to which whole lines were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadPosition {
    /// Device and inode.
    object: (u64, u64),
    /// Bytes up to the end of the last whole line that was read.
    whole: u64,
    /// The last bytes before that.
    tail: Vec<u8>,
}

impl ReadPosition {
    /// Returns the bytes up to the end of the last whole line that was read.
    pub(crate) fn whole(&self) -> u64 {
        self.whole
    }

    /// Returns the bytes behind the place. If `file` is another one than before, they are all of its bytes, and the place is its
    /// beginning.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn unread(&mut self, file: &mut File, path: &Path) -> Result<Vec<u8>> {
        let facts = file.metadata().at("examining", path)?;
        let object = (facts.dev(), facts.ino());
        let mut bytes = Vec::new();
        if self.object == object && self.whole > 0 && facts.len() >= self.whole {
            let from = self.whole - self.tail.len() as u64;
            file.seek(SeekFrom::Start(from)).at("seeking in", path)?;
            file.read_to_end(&mut bytes).at("reading", path)?;
            if bytes.starts_with(&self.tail) {
                bytes.drain(..self.tail.len());
                return Ok(bytes);
            }
            bytes.clear();
        }
        *self = ReadPosition { object, ..ReadPosition::default() };
        file.seek(SeekFrom::Start(0)).at("seeking in", path)?;
        file.read_to_end(&mut bytes).at("reading", path)?;
        Ok(bytes)
    }

    /// Moves the place behind whole lines that stand there.
    pub(crate) fn pass(&mut self, lines: &[u8]) {
        self.whole += lines.len() as u64;
        self.tail.extend_from_slice(&lines[lines.len().saturating_sub(TAIL)..]);
        let old = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..old);
    }

    /// Returns true if the place is at `at` in the file of an open handle.
    pub(crate) fn is_at(&self, object: (u64, u64), at: u64) -> bool {
        (self.object, self.whole) == (object, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_of_the_same_inode_is_read_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut position = ReadPosition::default();
        let mut read = |text: &str| {
            // The file keeps its inode.
            std::fs::write(&path, text).unwrap();
            let bytes = position.unread(&mut File::open(&path).unwrap(), &path).unwrap();
            position.pass(&bytes);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(read("one\ntwo\n"), "one\ntwo\n");
        assert_eq!(read("one\ntwo\nthree\n"), "three\n");
        assert_eq!(read("one\ntwo\nthree\n"), "");
        assert_eq!(read("other\nlines\nthat\nare\nmore\n"), "other\nlines\nthat\nare\nmore\n", "longer than before");
        assert_eq!(read("short\n"), "short\n");
        let long = "x".repeat(3 * TAIL) + "\n";
        assert_eq!(read(&long), long);
        assert_eq!(read(&(long.clone() + "more\n")), "more\n");
        assert_eq!(read(""), "");
    }
}
