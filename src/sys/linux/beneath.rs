//! Opening paths below a directory without ever following a symbolic link.
//!
//! `openat2` refuses links in the kernel and makes one call of it. Where it is missing (old kernels, seccomp filters), where the
//! path is longer than the kernel takes at once, or where it lost a race with a rename, the path is opened component by component.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// The flags of a directory on the way to something; no permission to read it is needed.
pub const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Opens a plain relative path (no `.`, no `..`) below a directory; an empty one is the directory itself, opened again.
///
/// # Errors
/// Returns the errors of `openat2`: `ELOOP` for a symbolic link, `EXDEV` for a path that leads out.
pub fn open(dir: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if path.is_empty() {
        return openat(dir, ".", flags, Mode::empty());
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(dir, path, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN | Errno::XDEV | Errno::NAMETOOLONG) => {
            step_by_step(dir, path, flags)
        }
        outcome => outcome,
    }
}

fn step_by_step(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut dir: Option<OwnedFd> = None;
    let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let here = dir.as_ref().map_or(root, AsFd::as_fd);
        let last = names.peek().is_none();
        let flags = if last { flags } else { STEP | OFlags::CLOEXEC | OFlags::NOFOLLOW };
        dir = Some(openat(here, name, flags, Mode::empty())?);
    }
    dir.ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

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
        let root = openat(CWD, temp.path(), STEP, Mode::empty()).unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        for (path, expected) in [("dir/file", true), ("out/file", false), ("in/file", false), ("link", false)] {
            assert_eq!(open(root.as_fd(), path.as_bytes(), flags).is_ok(), expected, "{path}");
            assert_eq!(step_by_step(root.as_fd(), path.as_bytes(), flags).is_ok(), expected, "{path}");
        }
        for missing in ["out/x", "dir/missing", "dir/file/x"] {
            let refused = step_by_step(root.as_fd(), missing.as_bytes(), flags).unwrap_err();
            assert!(matches!(refused, Errno::NOENT | Errno::NOTDIR | Errno::LOOP), "{missing}: {refused}");
        }
    }

    #[test]
    fn paths_longer_than_the_kernel_takes_are_opened() {
        let temp = tempfile::tempdir().unwrap();
        let root = openat(CWD, temp.path(), STEP, Mode::empty()).unwrap();
        let name = "d".repeat(250);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut dir = open(root.as_fd(), b"", flags).unwrap();
        let mut deep = String::new();
        for _ in 0..20 {
            rustix::fs::mkdirat(&dir, &*name, Mode::from_raw_mode(0o755)).unwrap();
            deep = format!("{deep}/{name}").trim_start_matches('/').to_owned();
            dir = openat(&dir, &*name, flags, Mode::empty()).unwrap();
        }
        assert!(deep.len() > 4096);
        open(root.as_fd(), deep.as_bytes(), flags).unwrap();
    }
}
