//! Directories opened below a root without ever following a symbolic link.
//!
//! Whoever can write into a workspace can swap a directory for a link at any moment. Every directory is therefore opened
//! beneath the root's own handle with links refused at each component (`openat2` where the kernel has it, one
//! `openat` per component elsewhere), and all further work happens relative to that handle.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, Stat, accessat, fchmod, fstat,
    mkdirat, openat, openat2, readlinkat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{Code, Error, IoContext, Result};
use crate::model::path::RelPath;
use crate::model::stamp::Stamp;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    File,
    Dir,
    Link,
    /// A FIFO, socket or device.
    Special,
}

/// The status of a path, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    pub kind: FileKind,
    pub stamp: Stamp,
    pub uid: u32,
    pub gid: u32,
}

impl Status {
    /// Permission bits, `0..=0o7777`.
    pub fn perm(&self) -> u16 {
        (self.stamp.mode & 0o7777) as u16
    }

    fn of(stat: &Stat) -> Status {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Dir,
            FileType::Symlink => FileKind::Link,
            _ => FileKind::Special,
        };
        let time = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        #[expect(clippy::unnecessary_cast, reason = "the field types differ between systems")]
        let stamp = Stamp {
            size: stat.st_size as u64,
            mtime: time(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: time(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            dev: stat.st_dev as u64,
            ino: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            links: stat.st_nlink as u64,
        };
        Status { kind, stamp, uid: stat.st_uid, gid: stat.st_gid }
    }
}

/// The status of an open file.
///
/// # Errors
/// I/O errors.
pub fn status_of(file: &File) -> std::io::Result<Status> {
    Ok(Status::of(&fstat(file)?))
}

/// An open directory below a root.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    /// For messages only.
    path: PathBuf,
}

/// Set when the kernel has no `openat2` (or a sandbox forbids it).
static NO_OPENAT2: AtomicBool = AtomicBool::new(false);

impl Dir {
    /// Opens a root; links in its own path are the caller's business.
    ///
    /// # Errors
    /// I/O errors; not a directory.
    pub fn open_root(path: &Path) -> Result<Dir> {
        let fd = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .at("opening the directory", path)?;
        Ok(Dir { fd, path: path.to_owned() })
    }

    /// Opens the directory `rel` below this one; no component may be a link.
    ///
    /// # Errors
    /// The system's error: `NOENT`, `NOTDIR`, `LOOP` (a link), `ACCESS`, `NAMETOOLONG`.
    pub fn open_dir(&self, rel: &RelPath) -> rustix::io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Dir { fd: self.open(rel, flags)?, path: rel.under(&self.path) })
    }

    /// Opens the regular file `rel` for reading; no component may be a link. Never blocks on a FIFO.
    ///
    /// # Errors
    /// As [`Dir::open_dir`].
    pub fn open_file(&self, rel: &RelPath) -> rustix::io::Result<File> {
        let fd = self.open(rel, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC)?;
        Ok(File::from(fd))
    }

    fn open(&self, rel: &RelPath, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        if rel.is_root() {
            return openat(&self.fd, c".", flags, Mode::empty());
        }
        let flags = flags | OFlags::NOFOLLOW;
        if !NO_OPENAT2.load(Ordering::Relaxed) {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match openat2(&self.fd, rel.to_path(), flags, Mode::empty(), resolve) {
                Err(Errno::NOSYS | Errno::PERM) => NO_OPENAT2.store(true, Ordering::Relaxed),
                other => return other,
            }
        }
        let mut names: Vec<&[u8]> = rel.components().collect();
        let last = names.pop().unwrap_or(b".");
        let mut current: Option<OwnedFd> = None;
        let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for name in names {
            let from = current.as_ref().map_or(self.fd.as_fd(), |fd| fd.as_fd());
            current = Some(openat(from, name, step, Mode::empty())?);
        }
        let from = current.as_ref().map_or(self.fd.as_fd(), |fd| fd.as_fd());
        openat(from, last, flags, Mode::empty())
    }

    /// The names in this directory, sorted; `.` and `..` left out.
    ///
    /// # Errors
    /// I/O errors.
    pub fn names(&self) -> Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        let mut buffer = Vec::with_capacity(1 << 15);
        let mut listing = RawDir::new(&self.fd, buffer.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry.at("listing", &self.path)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The status of `name` in this directory; `None` when there is nothing.
    ///
    /// # Errors
    /// I/O errors.
    pub fn status(&self, name: &[u8]) -> Result<Option<Status>> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Status::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.error(errno, "reading the status of", name)),
        }
    }

    /// The status of the directory itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn own_status(&self) -> Result<Status> {
        Ok(Status::of(&fstat(&self.fd).at("reading the status of", &self.path)?))
    }

    /// The target of the link `name`.
    ///
    /// # Errors
    /// I/O errors; not a link.
    pub fn read_link(&self, name: &[u8]) -> Result<Vec<u8>> {
        let target =
            readlinkat(&self.fd, name, Vec::new()).map_err(|errno| self.error(errno, "reading the link", name))?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into_vec())
    }

    /// Whether entries may be made and removed here.
    pub fn is_writable(&self) -> bool {
        accessat(&self.fd, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
    }

    /// Makes the directory `name`.
    ///
    /// # Errors
    /// I/O errors; `permission` for `.git`.
    pub fn make_dir(&self, name: &[u8]) -> Result<()> {
        self.refuse_git(name)?;
        mkdirat(&self.fd, name, Mode::RWXU).map_err(|errno| self.error(errno, "creating the directory", name))
    }

    /// Makes the file `name`, which must not exist, private (0600), for writing.
    ///
    /// # Errors
    /// I/O errors; `permission` for `.git`.
    pub fn make_file(&self, name: &[u8]) -> Result<File> {
        self.refuse_git(name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| self.error(errno, "creating", name))?;
        Ok(File::from(fd))
    }

    /// Makes the link `name`, which must not exist.
    ///
    /// # Errors
    /// I/O errors; `permission` for `.git`.
    pub fn make_link(&self, name: &[u8], target: &[u8]) -> Result<()> {
        self.refuse_git(name)?;
        symlinkat(target, &self.fd, name).map_err(|errno| self.error(errno, "creating the link", name))
    }

    /// Renames within the directory. With `replace` false an existing `to` is an error, atomically where the file system
    /// can.
    ///
    /// # Errors
    /// I/O errors; `conflict` when `to` exists and must not be replaced; `permission` for `.git`.
    pub fn rename(&self, from: &[u8], to: &[u8], replace: bool) -> Result<()> {
        self.refuse_git(to)?;
        let renamed = if replace {
            renameat(&self.fd, from, &self.fd, to)
        } else {
            match renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
                // The file system cannot: look first. What appears between the look and the rename is lost to us.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match self.status(to)? {
                    Some(_) => Err(Errno::EXIST),
                    None => renameat(&self.fd, from, &self.fd, to),
                },
                other => other,
            }
        };
        match renamed {
            Err(Errno::EXIST) if !replace => {
                Err(Error::new(Code::Conflict, "something appeared there meanwhile").path(self.child(to)))
            }
            other => other.map_err(|errno| self.error(errno, "renaming to", to)),
        }
    }

    /// Exchanges two names of the directory atomically; `false` where the file system cannot.
    ///
    /// # Errors
    /// I/O errors.
    pub fn exchange(&self, a: &[u8], b: &[u8]) -> Result<bool> {
        match renameat_with(&self.fd, a, &self.fd, b, RenameFlags::EXCHANGE) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
            Err(errno) => Err(self.error(errno, "exchanging", b)),
        }
    }

    /// Removes the file or link `name`.
    ///
    /// # Errors
    /// I/O errors; `permission` for `.git`.
    pub fn remove_file(&self, name: &[u8]) -> Result<()> {
        self.refuse_git(name)?;
        unlinkat(&self.fd, name, AtFlags::empty()).map_err(|errno| self.error(errno, "removing", name))
    }

    /// Removes the empty directory `name`; `false` when it is not empty.
    ///
    /// # Errors
    /// I/O errors; `permission` for `.git`.
    pub fn remove_dir(&self, name: &[u8]) -> Result<bool> {
        self.refuse_git(name)?;
        match unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(self.error(errno, "removing the directory", name)),
        }
    }

    /// Sets the permission bits of the directory itself.
    ///
    /// # Errors
    /// I/O errors.
    pub fn set_own_perm(&self, perm: u16) -> Result<()> {
        fchmod(&self.fd, Mode::from_raw_mode(perm.into())).at("setting the permissions of", &self.path)
    }

    /// Makes creations, renames and removals in this directory durable.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync(&self) -> Result<()> {
        rustix::fs::fsync(&self.fd).at("syncing the directory", &self.path)
    }

    /// Makes everything written to this directory's file system durable.
    ///
    /// # Errors
    /// I/O errors.
    pub fn sync_file_system(&self) -> Result<()> {
        rustix::fs::syncfs(&self.fd).at("syncing the file system of", &self.path)
    }

    /// The path of an entry, for messages.
    pub fn child(&self, name: &[u8]) -> PathBuf {
        self.path.join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name))
    }

    fn error(&self, errno: Errno, doing: &str, name: &[u8]) -> Error {
        Error::io(std::io::Error::from(errno), doing, &self.child(name))
    }

    /// A restore never writes into or over a repository's own directory, whatever a checkpoint claims to hold.
    fn refuse_git(&self, name: &[u8]) -> Result<()> {
        if name == b".git" {
            return Err(Error::new(Code::Permission, "piton never writes to a `.git`").path(self.child(name)));
        }
        Ok(())
    }
}

/// Sets the permission bits of an open file.
///
/// # Errors
/// I/O errors, naming `path`.
pub fn set_perm(file: &File, perm: u16, path: &Path) -> Result<()> {
    fchmod(file, Mode::from_raw_mode(perm.into())).at("setting the permissions of", path)
}

/// Gives `new` the owner, group, extended attributes and ACLs of the file it is about to replace; what the system does
/// not allow is returned as text.
pub fn keep_attributes(old: &File, new: &File) -> Vec<String> {
    let mut lost = Vec::new();
    if let (Ok(from), Ok(to)) = (fstat(old), fstat(new))
        && (from.st_uid, from.st_gid) != (to.st_uid, to.st_gid)
    {
        let owner = rustix::fs::Uid::from_raw(from.st_uid);
        let group = rustix::fs::Gid::from_raw(from.st_gid);
        if rustix::fs::fchown(new, Some(owner), Some(group)).is_err() {
            lost.push("owner".to_owned());
        }
    }
    let mut names = vec![0u8; 16 << 10];
    let length = rustix::fs::flistxattr(old, &mut names[..]).unwrap_or(0);
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0u8; 64 << 10];
        let set = rustix::fs::fgetxattr(old, name, &mut value[..])
            .and_then(|n| rustix::fs::fsetxattr(new, name, &value[..n], rustix::fs::XattrFlags::empty()));
        if set.is_err() {
            lost.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rel(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn links_are_refused_at_every_component() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().join("root");
        std::fs::create_dir_all(root.join("real/deep")).unwrap();
        std::fs::create_dir_all(scratch.path().join("outside/deep")).unwrap();
        std::fs::write(scratch.path().join("outside/deep/f"), "x").unwrap();
        std::fs::write(root.join("real/deep/f"), "y").unwrap();
        std::os::unix::fs::symlink(scratch.path().join("outside"), root.join("link")).unwrap();
        let dir = Dir::open_root(&root).unwrap();
        for fallback in [false, true] {
            NO_OPENAT2.store(fallback, Ordering::Relaxed);
            assert!(dir.open_dir(&rel("real/deep")).is_ok());
            assert!(dir.open_file(&rel("real/deep/f")).is_ok());
            assert!(dir.open_dir(&rel("link")).is_err());
            assert!(dir.open_dir(&rel("link/deep")).is_err());
            assert!(dir.open_file(&rel("link/deep/f")).is_err());
        }
        NO_OPENAT2.store(false, Ordering::Relaxed);
        assert_eq!(dir.names().unwrap(), [b"link".to_vec(), b"real".to_vec()]);
        assert_eq!(dir.status(b"link").unwrap().unwrap().kind, FileKind::Link);
    }

    #[test]
    fn git_directories_are_never_written() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = Dir::open_root(scratch.path()).unwrap();
        assert_eq!(dir.make_dir(b".git").unwrap_err().code(), Code::Permission);
        assert_eq!(dir.make_file(b".git").unwrap_err().code(), Code::Permission);
        dir.make_file(b"a").unwrap();
        assert_eq!(dir.rename(b"a", b".git", false).unwrap_err().code(), Code::Permission);
        dir.make_file(b"b").unwrap();
        assert_eq!(dir.rename(b"a", b"b", false).unwrap_err().code(), Code::Conflict);
    }
}
