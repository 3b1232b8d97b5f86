//! What only Linux has: `openat2`, `O_NOATIME`, handles that need no permission, `syncfs`.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub const NOATIME: OFlags = OFlags::NOATIME;

/// One call instead of one per component; `None` where the kernel or a sandbox does not have it, where the path is longer
/// than it takes at once, or where it lost a race with a rename.
pub fn open_beneath(dir: &OwnedFd, rel: &Path) -> Option<Result<OwnedFd, Errno>> {
    let rel = if rel.as_os_str().is_empty() { Path::new(".") } else { rel };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(dir, rel, super::DIR_FLAGS, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN | Errno::XDEV | Errno::NAMETOOLONG) => None,
        other => Some(other),
    }
}

/// A handle that needs no permission on the object itself.
pub fn open_handle(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// `fchmod` refuses such handles; the kernel's own link to the object behind it does not.
pub fn chmod_handle(fd: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}

pub fn sync_file_system(fd: &OwnedFd) -> Result<bool, Errno> {
    rustix::fs::syncfs(fd).map(|()| true)
}
