//! Directory handles for safe work below a root: every component is opened without following a symbolic link.
//!
//! A path that was checked as text and then opened by name can be swapped for a link to somewhere else in between. Here
//! each step holds the directory it works in, names are single components, and nothing below the root is followed.
//! Writes refuse `.git` in every component: no user of this module can change the user's own repository.
//!
//! Knows nothing of workspaces and checkpoints. Limits: the root itself may be reached through links (that is the caller's
//! choice), and mount points below it are entered.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;

use super::stat::{FileKind, Stat};
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::linux;

#[cfg(test)]
mod tests;

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    /// The path for messages only.
    path: PathBuf,
    /// True if a component below the root is `.git`.
    in_git: bool,
}

const DIR_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Dir {
    /// Opens the directory below which everything happens; links on the way to it are followed.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open_root(path: &Path) -> Result<Dir> {
        let flags = DIR_FLAGS.difference(OFlags::NOFOLLOW);
        let fd = rustix::fs::open(path, flags, Mode::empty()).at("opening the directory", path)?;
        let in_git = false;
        Ok(Dir { fd, path: path.to_owned(), in_git })
    }

    /// Returns where it was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a directory below this one; `rel` has only plain components (empty: this one again).
    ///
    /// # Errors
    /// `conflict` where a component is missing, a link or not a directory; `bad-path`; I/O errors.
    pub fn open_dir(&self, rel: &Path) -> Result<Dir> {
        self.find_dir(rel)?.ok_or_else(|| {
            Error::new(Code::Conflict, "there is no directory (links are not followed)").path(self.path.join(rel))
        })
    }

    /// As [`Dir::open_dir`], `None` where a component is missing, a link or not a directory.
    ///
    /// # Errors
    /// `bad-path` for `..`, `.` and absolute paths; I/O errors.
    pub fn find_dir(&self, rel: &Path) -> Result<Option<Dir>> {
        let path = self.path.join(rel);
        if !rel.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(Error::new(Code::BadPath, "not a plain relative path").path(rel));
        }
        let in_git = self.in_git || rel.components().any(|part| part.as_os_str() == ".git");
        match linux::beneath::open(self.fd.as_fd(), rel.as_os_str().as_bytes(), DIR_FLAGS) {
            Ok(fd) => Ok(Some(Dir { fd, path, in_git })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(Error::io(errno.into(), "opening the directory", &path)),
        }
    }

    /// Opens a regular file for reading, without waiting for FIFOs and, where allowed, without moving its access time.
    ///
    /// # Errors
    /// `conflict` for anything but a regular file; I/O errors.
    pub fn open_file(&self, name: &[u8]) -> Result<File> {
        let path = self.child(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match rustix::fs::openat(&self.fd, name, flags | linux::dir::UNTRACED, Mode::empty()) {
            // Only the owner may read without changing the access time.
            Err(Errno::PERM) => rustix::fs::openat(&self.fd, name, flags, Mode::empty()),
            other => other,
        };
        let file = File::from(opened.at("opening", &path)?);
        match Stat::of_file(&file, &path)?.kind {
            FileKind::File => Ok(file),
            FileKind::Link | FileKind::Dir | FileKind::Other => {
                Err(Error::new(Code::Conflict, "no longer a regular file").path(path))
            }
        }
    }

    /// Returns what `name` stands for, `None` when nothing is there.
    ///
    /// # Errors
    /// I/O errors.
    pub fn stat(&self, name: &[u8]) -> Result<Option<Stat>> {
        let path = self.child(name)?;
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Stat::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::io(errno.into(), "examining", &path)),
        }
    }

    /// Facts of this directory itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn stat_self(&self) -> Result<Stat> {
        Ok(Stat::of(&rustix::fs::fstat(&self.fd).at("examining", &self.path)?))
    }

    /// Returns the bytes of a symbolic link.
    ///
    /// # Errors
    /// I/O errors; not being a link is one.
    pub fn read_link(&self, name: &[u8]) -> Result<Vec<u8>> {
        let path = self.child(name)?;
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new()).at("reading the link", path)?;
        Ok(target.into_bytes())
    }

    /// Returns the names inside, sorted.
    ///
    /// # Errors
    /// I/O errors.
    pub fn names(&self) -> Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).at("listing", &self.path)? {
            let entry = entry.at("listing", &self.path)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the names in this directory that stand for directories, in no order.
    ///
    /// # Errors
    /// I/O errors.
    pub fn subdirs(&self) -> Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).at("listing", &self.path)? {
            let entry = entry.at("listing", &self.path)?;
            let name = entry.file_name().to_bytes();
            let is_dir = match entry.file_type() {
                FileType::Directory => true,
                // Not every file system gives the kind; an entry that cannot be looked at is gone.
                FileType::Unknown if name == b"." || name == b".." => false,
                FileType::Unknown => self.stat(name).ok().flatten().is_some_and(|stat| stat.kind == FileKind::Dir),
                _ => false,
            };
            if is_dir && name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        Ok(names)
    }

    /// Tells whether names may be added and removed, judged for the effective user; `true` where the system cannot tell.
    ///
    /// # Errors
    /// I/O errors, a read-only file system among them.
    pub fn is_writable(&self) -> Result<bool> {
        let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        match rustix::fs::accessat(&self.fd, ".", access, AtFlags::EACCESS) {
            Ok(()) | Err(Errno::NOSYS | Errno::INVAL) => Ok(true),
            Err(Errno::ACCESS) => Ok(false),
            Err(errno) => Err(Error::io(errno.into(), "writing into the directory", &self.path)),
        }
    }

    /// Creates a directory; `false` when the name is taken.
    ///
    /// # Errors
    /// `permission` below `.git`; I/O errors.
    pub fn create_dir(&self, name: &[u8], perm: u16) -> Result<bool> {
        let path = self.target(name)?;
        match rustix::fs::mkdirat(&self.fd, name, mode(perm)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(Error::io(errno.into(), "creating the directory", &path)),
        }
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// As [`Dir::create_dir`]; a taken name is an error.
    pub fn symlink(&self, target: &[u8], name: &[u8]) -> Result<()> {
        let path = self.target(name)?;
        rustix::fs::symlinkat(target, &self.fd, name).at("creating the link", path)
    }

    /// Creates a private file (0600) for reading and writing.
    ///
    /// # Errors
    /// As [`Dir::symlink`].
    pub fn create_temp(&self, name: &[u8]) -> Result<File> {
        let path = self.target(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, mode(0o600)).at("creating", path)?;
        Ok(File::from(fd))
    }

    /// Renames, and replaces a file with the new name.
    ///
    /// # Errors
    /// As [`Dir::create_dir`].
    pub fn rename(&self, name: &[u8], to: &Dir, new: &[u8]) -> Result<()> {
        self.target(name)?;
        rustix::fs::renameat(&self.fd, name, &to.fd, new).at("renaming to", to.target(new)?)
    }

    /// Renames to a name that must be free; `false` when it is taken.
    ///
    /// Without `RENAME_NOREPLACE` a hard link does the same for files and links; where there is neither, the name is
    /// looked at and then renamed over, and a file that appears in between is lost.
    ///
    /// # Errors
    /// As [`Dir::create_dir`].
    pub fn rename_new(&self, name: &[u8], to: &Dir, new: &[u8]) -> Result<bool> {
        self.target(name)?;
        let path = to.target(new)?;
        match linux::dir::rename_to_free(&self.fd, name, &to.fd, new) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => {}
            Err(errno) => return Err(Error::io(errno.into(), "renaming to", &path)),
        }
        self.link_new(name, to, new)
    }

    fn link_new(&self, name: &[u8], to: &Dir, new: &[u8]) -> Result<bool> {
        match rustix::fs::linkat(&self.fd, name, &to.fd, new, AtFlags::empty()) {
            Ok(()) => self.unlink(name).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            Err(_) if to.stat(new)?.is_some() => Ok(false),
            Err(_) => self.rename(name, to, new).map(|()| true),
        }
    }

    /// Exchanges two names in one step; `false` where the file system cannot.
    ///
    /// # Errors
    /// As [`Dir::create_dir`]; both names must exist.
    pub fn exchange(&self, name: &[u8], to: &Dir, other: &[u8]) -> Result<bool> {
        self.target(name)?;
        let path = to.target(other)?;
        match linux::dir::exchange(&self.fd, name, &to.fd, other) {
            Ok(()) => Ok(true),
            Err(Errno::NOSYS | Errno::INVAL | Errno::NOTSUP) => Ok(false),
            Err(errno) => Err(Error::io(errno.into(), "exchanging", &path)),
        }
    }

    /// Returns a handle that keeps what a name stands for; no permission on it is needed.
    ///
    /// # Errors
    /// I/O errors.
    pub fn handle(&self, name: &[u8]) -> Result<OwnedFd> {
        let path = self.child(name)?;
        linux::dir::open_handle(&self.fd, name).at("opening", path)
    }

    /// Removes a name that is not a directory.
    ///
    /// # Errors
    /// As [`Dir::create_dir`].
    pub fn unlink(&self, name: &[u8]) -> Result<()> {
        let path = self.target(name)?;
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).at("removing", path)
    }

    /// Removes an empty directory; `false` when it is not empty.
    ///
    /// # Errors
    /// As [`Dir::create_dir`].
    pub fn rmdir(&self, name: &[u8]) -> Result<bool> {
        let path = self.target(name)?;
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(Error::io(errno.into(), "removing the directory", &path)),
        }
    }

    /// Sets the permission bits of the very file or directory that `seen` describes; `false` when another is there now, or
    /// when it is a file with several names: all of them would change.
    ///
    /// # Errors
    /// As [`Dir::create_dir`].
    pub fn chmod(&self, name: &[u8], seen: &Stat, perm: u16) -> Result<bool> {
        let path = self.target(name)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let (fd, readable) = match rustix::fs::openat(&self.fd, name, flags | linux::dir::UNTRACED, Mode::empty()) {
            // Not readable, or readable but not ours: the mode can be set through a handle that cannot read.
            Err(Errno::ACCESS | Errno::PERM) => (linux::dir::open_handle(&self.fd, name).at("opening", &path)?, false),
            Err(Errno::LOOP | Errno::NOENT) => return Ok(false),
            other => (other.at("opening", &path)?, true),
        };
        let now = Stat::of(&rustix::fs::fstat(&fd).at("examining", &path)?);
        if !now.same_object(seen) || (now.kind == FileKind::File && now.links > 1) {
            return Ok(false);
        }
        let set =
            if readable { rustix::fs::fchmod(&fd, mode(perm)) } else { linux::dir::chmod_handle(&fd, mode(perm)) };
        set.at("setting the permissions", path).map(|()| true)
    }

    /// Sets the permission bits of this directory itself.
    ///
    /// # Errors
    /// `permission` below `.git`; I/O errors.
    pub fn chmod_self(&self, perm: u16) -> Result<()> {
        self.refuse_git(&self.path)?;
        rustix::fs::fchmod(&self.fd, mode(perm)).at("setting the permissions", &self.path)
    }

    /// Makes the names in this directory durable.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.fd).at("syncing the directory", &self.path)
    }

    /// Makes the whole file system durable; `false` where only single files can be synced.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync_file_system(&self) -> Result<bool> {
        linux::dir::sync_file_system(&self.fd).at("syncing the file system", &self.path)
    }

    /// Checks a name for reading.
    fn child(&self, name: &[u8]) -> Result<PathBuf> {
        let path = self.path.join(OsStr::from_bytes(name));
        if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') || name.contains(&0) {
            return Err(Error::new(Code::BadPath, "not a single name").path(path));
        }
        Ok(path)
    }

    /// Checks a name for writing.
    fn target(&self, name: &[u8]) -> Result<PathBuf> {
        let path = self.child(name)?;
        self.refuse_git(&path)?;
        if name == b".git" || (name.eq_ignore_ascii_case(b".git") && self.is_git_by_another_name(name)?) {
            return Err(git_refused(&path));
        }
        Ok(path)
    }

    fn refuse_git(&self, path: &Path) -> Result<()> {
        if self.in_git { Err(git_refused(path)) } else { Ok(()) }
    }

    /// `.GIT` is a name like any other, except where the file system ignores case.
    fn is_git_by_another_name(&self, name: &[u8]) -> Result<bool> {
        let (here, git) = (self.stat(name)?, self.stat(b".git")?);
        Ok(matches!((here, git), (Some(here), Some(git)) if here.same_object(&git)))
    }
}

fn git_refused(path: &Path) -> Error {
    Error::new(Code::Permission, "piton never writes into a `.git`").path(path)
}

fn mode(perm: u16) -> Mode {
    Mode::from_raw_mode(RawMode::from(perm))
}
