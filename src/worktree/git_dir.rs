//! Finding and reading the user's git directory, read-only, with every file taken for hostile.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::model::coverage::MOST_OF_POINTER;
use crate::sys::fs::mark::FileMark;

/// Longest `.git` file, `commondir` file or `info/exclude` that is read.
const SMALL: u64 = 1 << 20;

/// The git directory of a work tree.
#[derive(Clone)]
pub(super) struct GitDir {
    /// The place where the index is.
    pub(super) dir: PathBuf,
    /// The place where `info/exclude` is; differs from `dir` in linked worktrees.
    common: PathBuf,
    /// True if this is a linked worktree of another one.
    pub(super) linked: bool,
    /// The content of a `.git` that is a file; `None` for a directory, and for content that is too long to record.
    pub(super) pointer: Option<Vec<u8>>,
}

impl GitDir {
    /// From the `.git` entry of the directory `worktree`; `None` when it is not one that git would accept.
    pub(super) fn of(worktree: &Path) -> Option<GitDir> {
        let entry = worktree.join(".git");
        let is_file = std::fs::metadata(&entry).ok()?.is_file();
        let pointer = if is_file { Some(read_regular(&entry, SMALL).ok().flatten()?) } else { None };
        let dir = match &pointer {
            Some(text) => pointed_to(text, worktree)?,
            None => entry,
        };
        let common = read_regular(&dir.join("commondir"), SMALL).ok().flatten();
        let common = common.as_deref().map(|text| dir.join(as_path(text.trim_ascii())));
        Some(GitDir {
            linked: is_file && common.is_some() && in_worktrees(&dir),
            common: common.unwrap_or_else(|| dir.clone()),
            dir,
            pointer: pointer.filter(|text| text.len() <= MOST_OF_POINTER && text.starts_with(b"gitdir:")),
        })
    }

    /// Returns the directory of branches and objects.
    pub(super) fn common(&self) -> &Path {
        &self.common
    }

    /// Returns what the file system says of the files that rule a capture, whether they lie in the workspace or
    /// elsewhere.
    pub(super) fn marks(&self) -> GitMarks {
        // A file that cannot be looked at counts as missing.
        let mark = |path: PathBuf| FileMark::behind(&path).ok().flatten();
        GitMarks { index: mark(self.dir.join("index")), exclude: mark(self.common.join("info/exclude")) }
    }

    /// Returns the content of `info/exclude`; empty when there is none.
    pub(super) fn exclude(&self) -> std::io::Result<Vec<u8>> {
        Ok(read_regular(&self.common.join("info/exclude"), SMALL)?.unwrap_or_default())
    }
}

/// Returns the file that git appends a line to whenever HEAD of a work tree moves; `None` without a repository.
pub fn head_log(worktree: &Path) -> Option<PathBuf> {
    GitDir::of(worktree).map(|git| git.dir.join("logs/HEAD"))
}

/// The most bytes at the end of the log of HEAD that are read.
const LOG_END: u64 = 256 << 10;

/// One move of HEAD, as git's log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadMove {
    /// The commit from which HEAD moved, in hexadecimal digits.
    pub from: String,
    /// The commit to which HEAD moved, in hexadecimal digits; at least 7.
    pub id: String,
    /// Seconds since the epoch.
    pub seconds: i64,
    /// The command and its subject: `commit: fix it`, `checkout: moving from a to b`.
    pub message: String,
}

impl HeadMove {
    /// Reads a line of the log; `None` for one that git did not write.
    pub fn parse(line: &[u8]) -> Option<HeadMove> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let head = String::from_utf8_lossy(&line[..tab]);
        let id =
            head.split(' ').nth(1).filter(|id| id.len() >= 7 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let seconds = head.rsplit(' ').nth(1)?.parse().ok()?;
        let from = head.split(' ').next().unwrap_or_default().to_owned();
        Some(HeadMove {
            from,
            id: id.to_owned(),
            seconds,
            message: String::from_utf8_lossy(&line[tab + 1..]).into_owned(),
        })
    }

    /// Returns true if it is a commit (also `commit (amend)`, `(initial)`, `(merge)`), which writes no file of the work tree.
    pub fn is_commit(&self) -> bool {
        self.message.starts_with("commit:") || self.message.starts_with("commit (")
    }

    /// Returns the branch or commit before a switch to another commit; `None` for other moves, and for `git checkout -b` at the same commit.
    pub fn switched_from(&self) -> Option<&str> {
        let (from, _) = self.message.strip_prefix("checkout: moving from ")?.split_once(" to ")?;
        (self.from != self.id).then_some(from)
    }

    /// Returns the subject of a commit.
    pub fn subject(&self) -> &str {
        self.message.split_once(": ").map_or("", |(_, subject)| subject)
    }
}

/// Lists the last moves of HEAD of a work tree, the oldest first; none where there is no log that can be read.
pub fn head_moves(worktree: &Path) -> Vec<HeadMove> {
    let read = || -> Option<Vec<u8>> {
        let mut file = File::open(head_log(worktree)?).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_END))).ok()?;
        let mut end = Vec::new();
        file.take(LOG_END).read_to_end(&mut end).ok()?;
        Some(end)
    };
    // A log that is not there, or not readable, names no commit.
    read().unwrap_or_default().split(|byte| *byte == b'\n').filter_map(HeadMove::parse).collect()
}

/// Returns the directory in which git keeps the index of a work tree; `None` without a repository.
pub fn git_dir_of(worktree: &Path) -> Option<PathBuf> {
    GitDir::of(worktree).map(|git| git.dir)
}

/// Returns true if an object, named by its hexadecimal id, is loose and its file was created at or after a time. If the file system has no creation times, an object
/// that git only refreshed counts too.
pub fn is_loose_since(worktree: &Path, id: &str, since: SystemTime) -> bool {
    let (Some(git), Some((fan, rest))) = (GitDir::of(worktree), id.split_at_checked(2)) else { return false };
    let file = git.common.join("objects").join(fan).join(rest);
    let created = file.metadata().and_then(|facts| facts.created().or_else(|_| facts.modified()));
    created.is_ok_and(|created| created >= since)
}

/// The marks that show a changed index or `info/exclude`. git replaces its index as a whole, so the inode changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct GitMarks {
    /// The mark of the index; `None` if there is none.
    pub(super) index: Option<FileMark>,
    /// The mark of `info/exclude`; `None` if there is none.
    pub(super) exclude: Option<FileMark>,
}

/// Returns where a `.git` file with this content points to.
fn pointed_to(text: &[u8], worktree: &Path) -> Option<PathBuf> {
    let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
    (!target.is_empty()).then(|| worktree.join(as_path(target)))
}

fn in_worktrees(dir: &Path) -> bool {
    dir.parent().and_then(Path::file_name).is_some_and(|name| name == "worktrees")
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// Opens a regular file to read it; `None` when it does not exist. Never blocks on what is not a file.
///
/// # Errors
/// For anything else, and where it cannot be opened.
pub(super) fn open_regular(path: &Path) -> std::io::Result<Option<File>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(std::io::Error::other("not a regular file")) }
}

/// Reads a regular file of at most `cap` bytes; `None` when it does not exist. Never blocks on what is not a file.
///
/// # Errors
/// For anything else, for a larger file, and where it cannot be read.
pub fn read_regular(path: &Path, cap: u64) -> std::io::Result<Option<Vec<u8>>> {
    let Some(file) = open_regular(path)? else { return Ok(None) };
    let mut content = Vec::with_capacity(file.metadata()?.len().min(cap) as usize + 1);
    file.take(cap + 1).read_to_end(&mut content)?;
    if content.len() as u64 > cap {
        return Err(std::io::Error::other(format!("larger than {cap} bytes")));
    }
    Ok(Some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_worktrees_and_submodules_differ() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        for dir in ["main/.git/worktrees/wt", "main/.git/modules/sub", "main/.git/info", "wt", "sub", "odd"] {
            std::fs::create_dir_all(root.join(dir)).unwrap();
        }
        std::fs::write(root.join("main/.git/worktrees/wt/commondir"), "../..\n").unwrap();
        std::fs::write(root.join("main/.git/info/exclude"), "*.o\n").unwrap();
        let pointer = format!("gitdir: {}/main/.git/worktrees/wt\n", root.display());
        std::fs::write(root.join("wt/.git"), pointer).unwrap();
        std::fs::write(root.join("sub/.git"), "gitdir: ../main/.git/modules/sub\n").unwrap();
        std::fs::write(root.join("odd/.git"), "nonsense").unwrap();
        let of = |name: &str| GitDir::of(&root.join(name));
        assert!(of("wt").unwrap().linked);
        assert_eq!(of("wt").unwrap().exclude().unwrap(), b"*.o\n");
        assert!(!of("sub").unwrap().linked && !of("main").unwrap().linked);
        assert!(of("odd").is_none() && of("none").is_none());
    }

    #[test]
    fn devices_and_large_files_are_refused() {
        assert!(read_regular(Path::new("/dev/zero"), 10).is_err());
        let temp = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(temp.path(), "12345").unwrap();
        assert!(read_regular(temp.path(), 4).is_err());
        assert_eq!(read_regular(temp.path(), 5).unwrap().unwrap(), b"12345");
        assert!(read_regular(&temp.path().with_extension("absent"), 5).unwrap().is_none());
    }
}
