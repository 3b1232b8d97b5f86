//! Calls on names in a directory: `O_NOATIME`, handles that need no permission, `renameat2`, `syncfs`.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::descriptor;

/// Reads without moving the time of the last access.
pub(crate) const UNTRACED: OFlags = OFlags::NOATIME;

/// Opens a handle that needs no permission on the object itself.
pub(crate) fn open_handle(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// Sets the permission bits of what a handle keeps. `fchmod` refuses such handles; the kernel's own link to the object does not.
pub(crate) fn chmod_handle(fd: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    rustix::fs::chmod(descriptor::path(fd.as_fd()), mode)
}

/// Renames to a name that must be free.
pub(crate) fn rename_to_free(dir: &OwnedFd, name: &[u8], to: &OwnedFd, new: &[u8]) -> Result<(), Errno> {
    rustix::fs::renameat_with(dir, name, to, new, RenameFlags::NOREPLACE)
}

/// Exchanges two names in one step.
pub(crate) fn exchange(dir: &OwnedFd, name: &[u8], to: &OwnedFd, other: &[u8]) -> Result<(), Errno> {
    rustix::fs::renameat_with(dir, name, to, other, RenameFlags::EXCHANGE)
}

/// Makes the whole file system durable; `false` is for systems where only single files can be synced.
pub(crate) fn sync_file_system(fd: &OwnedFd) -> Result<bool, Errno> {
    rustix::fs::syncfs(fd).map(|()| true)
}
