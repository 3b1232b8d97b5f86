//! Free space on a file system.

use std::path::Path;

use crate::error::{Code, Error, IoContext, Result};

/// The free space that is left to other programs: with less, piton writes no new content.
const FLOOR_BYTES: u64 = 256 << 20;

/// On small file systems, the floor is this part of the whole.
const FLOOR_PART: u64 = 50;

/// Free and total bytes, as far as an unprivileged process may use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that may still be written.
    pub free: u64,
    /// Bytes of the whole file system; 0 where it tells none.
    pub total: u64,
}

impl DiskSpace {
    /// Asks the file system of `path`.
    ///
    /// # Errors
    /// When it cannot be asked.
    pub fn at(path: &Path) -> Result<DiskSpace> {
        let facts = rustix::fs::statvfs(path).at("asking for free space at", path)?;
        let block = facts.f_frsize.max(1);
        Ok(DiskSpace { free: facts.f_bavail.saturating_mul(block), total: facts.f_blocks.saturating_mul(block) })
    }

    /// Returns the space that has to stay free: 256 MiB, or a fiftieth of a smaller file system. File systems that tell
    /// no size have none.
    pub fn floor(&self) -> u64 {
        FLOOR_BYTES.min(self.total / FLOOR_PART)
    }

    /// Refuses when less than the floor is free.
    ///
    /// # Errors
    /// `disk-full`.
    pub fn require_floor(&self, path: &Path) -> Result<()> {
        if self.free >= self.floor() {
            return Ok(());
        }
        let (free, floor) = (megabytes(self.free), megabytes(self.floor()));
        Err(Error::new(Code::DiskFull, format!("only {free} MB are free, and piton leaves the last {floor} MB alone"))
            .path(path)
            .hint("free some space and try again; nothing existing was changed"))
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_small_on_small_disks() {
        let room = |free, total| DiskSpace { free, total };
        for (free, total, enough) in [
            (0, 0, true),
            (256 << 20, 1 << 40, true),
            ((256 << 20) - 1, 1 << 40, false),
            (2 << 20, 100 << 20, true),
            ((2 << 20) - 1, 100 << 20, false),
        ] {
            let outcome = room(free, total).require_floor(Path::new("/"));
            assert_eq!(outcome.is_ok(), enough, "{free} of {total}: {outcome:?}");
        }
        let here = DiskSpace::at(Path::new("/")).unwrap();
        assert!(here.total >= here.free);
    }
}
