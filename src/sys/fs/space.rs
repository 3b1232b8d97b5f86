//! Free space on a file system.

use std::os::unix::fs::MetadataExt;
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
        let facts = rustix::fs::statvfs(path).at("reading the free space of", path)?;
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
        Err(Error::new(Code::DiskFull, format!("only {free} MB are free, and piton never uses the last {floor} MB"))
            .path(path)
            .hint("free some space and try again; nothing existing was changed"))
    }
}

/// Returns the bytes that all files and directories below a directory take on the disk. Links are not followed; what cannot be read, or
/// vanishes meanwhile, does not count.
pub fn bytes_on_disk(dir: &Path) -> u64 {
    let mut total = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(path) = open.pop() {
        total += path.symlink_metadata().map_or(0, |facts| facts.blocks() * 512);
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        for entry in entries {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ => total += entry.metadata().map_or(0, |facts| facts.blocks() * 512),
            }
        }
    }
    total
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_directory_takes_on_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let empty = bytes_on_disk(dir.path());
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/file"), vec![1; 100_000]).unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        let full = bytes_on_disk(dir.path());
        assert!((100_000..200_000).contains(&(full - empty)), "{empty} {full}");
        assert_eq!(bytes_on_disk(&dir.path().join("none")), 0);
    }

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
