//! The listing of a directory, as the walk or a scout has read it.

use std::cell::OnceCell;
use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Stat, readlinkat};
use rustix::io::Errno;

use super::super::beneath::{Root, lstat_in};
use super::super::names::Names;
use super::super::probe::stamp_of;
use crate::model::path::RelPath;
use crate::model::stamp::Stamp;
use crate::sys::clock::file_clock;

/// Bytes for one `getdents` call.
pub(super) const BUFFER: usize = 64 << 10;

/// A directory, as the kernel listed it.
pub(super) struct DirListing {
    /// Scouts do not keep directories open.
    pub(super) dir: Option<OwnedFd>,
    /// The facts of the directory itself, from before its names were read.
    pub(super) facts: Stat,
    /// Sorted by bytes.
    pub(super) names: Names,
    /// The objects under the names.
    pub(super) seen: Vec<Seen>,
}

/// `lstat` of one name, and the file system's clock just before. Of what a listing calls a directory only type and inode
/// are true: the rest is seen when it is opened.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    /// The file system's clock before the look, in nanoseconds.
    pub(super) at: i64,
    /// The stamp; else the reason why there is none.
    pub(super) stamp: Result<Stamp, Errno>,
}

impl Seen {
    /// Makes the entry of a directory that was listed.
    pub(super) fn listed_dir(ino: u64) -> Seen {
        let mode = FileType::Directory.as_raw_mode();
        Seen { at: 0, stamp: Ok(Stamp { size: 0, mtime: 0, ctime: 0, dev: 0, ino, mode, links: 1 }) }
    }
}

/// The directory in which the walk is; opened, if it is not, when it is first asked.
pub(super) struct Here<'w> {
    root: &'w Root,
    path: RelPath,
    dir: OnceCell<OwnedFd>,
}

impl<'w> Here<'w> {
    /// Makes the directory in which the walk stands.
    pub(super) fn new(root: &'w Root, path: RelPath, dir: Option<OwnedFd>) -> Here<'w> {
        Here { root, path, dir: dir.map_or_else(OnceCell::new, OnceCell::from) }
    }

    fn dir(&self) -> Result<BorrowedFd<'_>, Errno> {
        if let Some(dir) = self.dir.get() {
            return Ok(dir.as_fd());
        }
        let dir = self.root.open_dir(&self.path)?;
        Ok(self.dir.get_or_init(|| dir).as_fd())
    }

    /// `lstat` of a name in it.
    pub(super) fn lstat(&self, name: &[u8]) -> Result<Stat, Errno> {
        lstat_in(self.dir()?, name)
    }

    /// Returns the target of a symbolic link in it.
    pub(super) fn read_link(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        readlinkat(self.dir()?, name, Vec::new()).map(CString::into_bytes)
    }

    /// Looks at a name in it.
    pub(super) fn see(&self, name: &[u8]) -> Seen {
        Seen { at: file_clock(), stamp: self.lstat(name).map(|stat| stamp_of(&stat)) }
    }
}
