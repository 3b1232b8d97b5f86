//! One look at a path, right now.

use std::path::Path;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::beneath::Root;
use crate::error::{IoContext, Result};
use crate::model::manifest::EntryKind;
use crate::model::path::RelPath;
use crate::model::stamp::Stamp;

/// The kind of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Something a checkpoint can hold.
    Entry(EntryKind),
    /// A FIFO, socket or device.
    Special,
}

/// Facts of `lstat` about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The kind of object that stands there.
    pub kind: ProbeKind,
    /// Facts that move when its content may have moved.
    pub stamp: Stamp,
    /// Permission bits as a manifest records them (links: `0o777`).
    pub perm: u16,
}

/// Looks at `path` below `root` without following links. `None` when it is not there, or a parent is not a directory
/// (a link to one included).
///
/// # Errors
/// `permission` and other failed system calls.
pub fn probe(root: &Path, path: &RelPath) -> Result<Option<Probe>> {
    match Root::open(root)?.lstat(path) {
        Ok(stat) => Ok(Some(probe_of(&stat))),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(errno).at("checking", path.under(root)),
    }
}

/// Returns the probe of a `stat` result.
pub(super) fn probe_of(stat: &Stat) -> Probe {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => ProbeKind::Entry(EntryKind::File),
        FileType::Symlink => ProbeKind::Entry(EntryKind::Link),
        FileType::Directory => ProbeKind::Entry(EntryKind::Dir),
        _ => ProbeKind::Special,
    };
    Probe { kind, stamp: stamp_of(stat), perm: perm_of(stat.st_mode) }
}

/// Returns the permission bits a manifest records for an `st_mode`.
pub(super) fn perm_of(mode: u32) -> u16 {
    if FileType::from_raw_mode(mode) == FileType::Symlink {
        return 0o777;
    }
    (mode & 0o7777) as u16
}

/// Returns the stamp of a `stat` result.
pub fn stamp_of(stat: &Stat) -> Stamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Stamp {
        size: stat.st_size.unsigned_abs(),
        mtime: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        ctime: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        dev: stat.st_dev,
        ino: stat.st_ino,
        mode: stat.st_mode,
        links: stat.st_nlink,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn probing_tells_kinds_and_never_follows() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        std::fs::write(root.join("file"), "abc").unwrap();
        std::fs::set_permissions(root.join("file"), PermissionsExt::from_mode(0o4750)).unwrap();
        std::fs::create_dir(root.join("dir")).unwrap();
        symlink("dir", root.join("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("fifo"),
            FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let kind = |text: &str| {
            let found = probe(root, &RelPath::parse(text.as_bytes()).unwrap()).unwrap();
            found.map(|probe| (probe.kind, probe.perm))
        };
        assert_eq!(kind("file"), Some((ProbeKind::Entry(EntryKind::File), 0o4750)));
        assert_eq!(kind("link"), Some((ProbeKind::Entry(EntryKind::Link), 0o777)));
        assert_eq!(kind("fifo").unwrap().0, ProbeKind::Special);
        assert_eq!(kind("").unwrap().0, ProbeKind::Entry(EntryKind::Dir));
        assert_eq!((kind("none"), kind("link/x"), kind("file/x")), (None, None, None));
        let found = probe(root, &RelPath::parse(b"file").unwrap()).unwrap().unwrap();
        let meta = std::fs::metadata(root.join("file")).unwrap();
        assert_eq!(
            (found.stamp.ino, found.stamp.size, found.stamp.mtime),
            (meta.ino(), 3, meta.mtime() * 1_000_000_000 + meta.mtime_nsec())
        );
    }
}
