//! Where Linux calls are missing: the loop over components, ordinary handles, single files synced.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub const NOATIME: OFlags = OFlags::empty();

pub fn open_beneath(_dir: &OwnedFd, _rel: &Path) -> Option<Result<OwnedFd, Errno>> {
    None
}

pub fn open_handle(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

pub fn chmod_handle(fd: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    rustix::fs::fchmod(fd, mode)
}

pub fn sync_file_system(_fd: &OwnedFd) -> Result<bool, Errno> {
    Ok(false)
}
