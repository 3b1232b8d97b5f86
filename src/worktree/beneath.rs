//! The open root of a workspace, and what is opened below it without ever following a symbolic link.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use super::names::Names;
use crate::error::{IoContext, Result};
use crate::model::path::RelPath;
use crate::sys::{beneath, listing};

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// An open root directory.
pub(super) struct Root {
    dir: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens the root itself; links on the way to it are followed.
    pub(super) fn open(path: &Path) -> Result<Root> {
        let dir = openat(CWD, path, DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at("opening the workspace", path)?;
        Ok(Root { dir, path: path.to_owned() })
    }

    /// Device and inode of the directory that is open.
    pub(super) fn identity(&self) -> Result<(u64, u64)> {
        let facts = fstat(&self.dir).at("reading the workspace", &self.path)?;
        Ok((facts.st_dev, facts.st_ino))
    }

    /// Returns the path it was opened by.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory below the root for reading.
    pub(super) fn open_dir(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        self.open_beneath(path, DIRECTORY)
    }

    /// Opens a file below the root for reading; never blocks on a FIFO or device that has taken its place.
    pub(super) fn open_file(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        self.open_beneath(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)
    }

    fn open_beneath(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        beneath::open(self.dir.as_fd(), path.as_bytes(), flags)
    }

    /// `lstat` of a path below the root.
    pub(super) fn lstat(&self, path: &RelPath) -> Result<Stat, Errno> {
        let Some(parent) = path.parent() else {
            return fstat(&self.dir);
        };
        let dir = self.open_beneath(&parent, beneath::STEP)?;
        lstat_in(dir.as_fd(), path.name())
    }
}

/// `lstat` of a name in an open directory.
pub(super) fn lstat_in(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// Lists the names in a directory, sorted by bytes.
pub(super) fn names_in(dir: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> Result<Names, Errno> {
    let mut names = Names::default();
    listing::read(dir, buffer, |name, kind, ino| {
        names.push_dir(name, if kind == FileType::Directory { ino } else { 0 });
    })?;
    names.sort();
    Ok(names)
}
