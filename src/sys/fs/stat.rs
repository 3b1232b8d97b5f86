//! Facts of `lstat`, in types of our own.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FileType, RawMode};

use crate::error::{IoContext, Result};

/// The kind of object that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A symbolic link itself, not its target.
    Link,
    /// A directory.
    Dir,
    /// A FIFO, socket or device.
    Other,
}

/// Facts of `lstat`. Times in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The kind by the type bits of `st_mode`.
    pub kind: FileKind,
    /// Bytes of content; of a link, of its target's text.
    pub size: u64,
    /// The moment of the last write of content.
    pub mtime: i64,
    /// The moment of the last change of content, name or attributes.
    pub ctime: i64,
    /// The device that the object stands on (`st_dev`).
    pub dev: u64,
    /// The object's inode on that device.
    pub ino: u64,
    /// The whole `st_mode`, file type included.
    pub mode: u32,
    /// The number of its names (hard links).
    pub links: u64,
    /// The numeric id of its owner.
    pub uid: u32,
    /// The numeric id of its group.
    pub gid: u32,
}

impl Stat {
    /// Returns the permission bits, `0..=0o7777`.
    pub fn perm(&self) -> u16 {
        (self.mode & 0o7777) as u16
    }

    /// Tells whether both are the same object of the file system.
    pub fn same_object(&self, other: &Stat) -> bool {
        (self.dev, self.ino, self.kind) == (other.dev, other.ino, other.kind)
    }

    /// Tells whether it is the same object with the same content as far as `lstat` can tell. The ctime is left out,
    /// because a rename changes it.
    pub fn same_state(&self, other: &Stat) -> bool {
        self.same_object(other) && (self.size, self.mtime, self.mode) == (other.size, other.mtime, other.mode)
    }

    /// Asks about an open file.
    ///
    /// # Errors
    /// I/O errors.
    pub fn of_file(file: &File, path: &Path) -> Result<Stat> {
        Ok(Stat::of(&rustix::fs::fstat(file).at("examining", path)?))
    }

    /// Converts the system's structure.
    #[allow(clippy::unnecessary_cast, reason = "the widths of these fields differ between systems")]
    pub(in crate::sys) fn of(stat: &rustix::fs::Stat) -> Stat {
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Stat {
            kind: match FileType::from_raw_mode(stat.st_mode as RawMode) {
                FileType::RegularFile => FileKind::File,
                FileType::Symlink => FileKind::Link,
                FileType::Directory => FileKind::Dir,
                _ => FileKind::Other,
            },
            size: stat.st_size as u64,
            mtime: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
            uid: stat.st_uid as u32,
            gid: stat.st_gid as u32,
        }
    }
}
