//! Marks of files, which show a change without reading the file.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Error, Result};

/// The facts that distinguish one state of a file from another, from a single `stat`. Times are in nanoseconds since
/// the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMark {
    /// The device that the file stands on (`st_dev`).
    pub dev: u64,
    /// The file's inode on that device.
    pub ino: u64,
    /// Bytes of content; of a link, of its target's text.
    pub size: u64,
    /// The moment of the last write of content.
    pub mtime: i64,
    /// The moment of the last change of content, name or attributes; no program can set it back.
    pub ctime: i64,
}

impl FileMark {
    /// The mark of no file.
    pub const NONE: FileMark = FileMark { dev: 0, ino: 0, size: 0, mtime: 0, ctime: 0 };

    /// Returns the mark of the file at `path`, or of the target of a link there; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn behind(path: &Path) -> Result<Option<FileMark>> {
        FileMark::of(path, path.metadata())
    }

    /// Returns the mark of the file or link at `path` itself; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn at(path: &Path) -> Result<Option<FileMark>> {
        FileMark::of(path, path.symlink_metadata())
    }

    fn of(path: &Path, looked: std::io::Result<Metadata>) -> Result<Option<FileMark>> {
        match looked {
            Ok(facts) => Ok(Some(FileMark::from(&facts))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(Error::io(error, "checking", path)),
        }
    }
}

impl From<&Metadata> for FileMark {
    fn from(facts: &Metadata) -> FileMark {
        let time = |seconds: i64, nanoseconds: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds);
        FileMark {
            dev: facts.dev(),
            ino: facts.ino(),
            size: facts.size(),
            mtime: time(facts.mtime(), facts.mtime_nsec()),
            ctime: time(facts.ctime(), facts.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_and_what_is_behind_it_have_marks_of_their_own() {
        let temp = tempfile::tempdir().unwrap();
        let (file, link) = (temp.path().join("file"), temp.path().join("link"));
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        let at = |path: &Path| FileMark::at(path).unwrap();
        assert_eq!(FileMark::behind(&link).unwrap(), at(&file));
        assert_ne!(at(&link), at(&file));
        let before = at(&file);
        std::fs::write(&file, "longer").unwrap();
        assert_ne!(at(&file), before);
        std::fs::remove_file(&file).unwrap();
        assert_eq!((FileMark::behind(&link).unwrap(), at(&file)), (None, None));
    }
}
