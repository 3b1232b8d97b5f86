//! Opening paths below the root without ever following a symbolic link.
//!
//! `openat2` refuses links in the kernel and makes one call of it; where it is missing (old kernels, seccomp filters) or
//! the path is longer than the kernel takes at once, the path is opened component by component.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat, fstat, openat, openat2, statat};
use rustix::io::Errno;

use super::names::Names;
use crate::error::{IoContext, Result};
use crate::model::path::RelPath;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

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
        let facts = fstat(&self.dir).at("looking at the workspace", &self.path)?;
        Ok((facts.st_dev, facts.st_ino))
    }

    /// The path it was opened by.
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
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if path.is_root() {
            return openat(&self.dir, ".", flags, Mode::empty());
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&self.dir, path.as_bytes(), flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM | Errno::NAMETOOLONG | Errno::AGAIN | Errno::INVAL) => {
                self.step_by_step(path, flags)
            }
            outcome => outcome,
        }
    }

    fn step_by_step(&self, path: &RelPath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut dir: Option<OwnedFd> = None;
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            let here = dir.as_ref().map_or(self.dir.as_fd(), AsFd::as_fd);
            let last = names.peek().is_none();
            let flags = if last { flags } else { STEP | OFlags::CLOEXEC | OFlags::NOFOLLOW };
            dir = Some(openat(here, name, flags, Mode::empty())?);
        }
        dir.ok_or(Errno::NOENT)
    }

    /// `lstat` of a path below the root.
    pub(super) fn lstat(&self, path: &RelPath) -> Result<Stat, Errno> {
        let Some(parent) = path.parent() else {
            return fstat(&self.dir);
        };
        let dir = self.open_beneath(&parent, STEP)?;
        lstat_in(dir.as_fd(), path.name())
    }
}

/// `lstat` of a name in an open directory.
pub(super) fn lstat_in(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// The names in a directory, sorted by bytes.
pub(super) fn names_in(dir: BorrowedFd<'_>, buffer: &mut [MaybeUninit<u8>]) -> Result<Names, Errno> {
    let mut names = Names::default();
    let mut entries = RawDir::new(dir, buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name != c"." && name != c".." {
            let dir = if entry.file_type() == FileType::Directory { entry.ino() } else { 0 };
            names.push_dir(name.to_bytes(), dir);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn links_are_never_followed_on_either_way() {
        let temp = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("file"), "x").unwrap();
        std::fs::create_dir(temp.path().join("dir")).unwrap();
        std::fs::write(temp.path().join("dir/file"), "x").unwrap();
        symlink(outside.path(), temp.path().join("out")).unwrap();
        symlink("dir", temp.path().join("in")).unwrap();
        symlink("dir/file", temp.path().join("link")).unwrap();
        let root = Root::open(temp.path()).unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        for (text, expected) in [("dir/file", true), ("out/file", false), ("in/file", false), ("link", false)] {
            assert_eq!(root.open_file(&path(text)).is_ok(), expected, "{text}");
            assert_eq!(root.step_by_step(&path(text), flags).is_ok(), expected, "{text}");
        }
    }

    #[test]
    fn paths_longer_than_the_kernel_takes_are_opened() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::open(temp.path()).unwrap();
        let name = "d".repeat(250);
        let mut dir = root.open_dir(&RelPath::root()).unwrap();
        let mut deep = RelPath::root();
        for _ in 0..20 {
            rustix::fs::mkdirat(&dir, &*name, Mode::from_raw_mode(0o755)).unwrap();
            deep = deep.join(name.as_bytes());
            dir = openat(&dir, &*name, DIRECTORY, Mode::empty()).unwrap();
        }
        assert!(deep.as_bytes().len() > 4096);
        root.open_dir(&deep).unwrap();
        root.lstat(&deep).unwrap();
    }
}
