//! Finding a repository's own directory, to read two things in it: the index and `info/exclude`. Nothing is written.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The `.git` of a working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDir {
    /// Holds the index.
    pub own: PathBuf,
    /// Holds what linked worktrees share; equal to `own` elsewhere.
    pub common: PathBuf,
    /// Whether this is a linked worktree (`git worktree add`), not a main one or a submodule.
    pub linked: bool,
}

/// Longest `.git` file that is read.
const MAX_POINTER: u64 = 8192;

/// The repository whose working directory is `dir`; `None` when there is no `.git`, or none that can be read.
pub fn of(dir: &Path) -> Option<GitDir> {
    let dot_git = dir.join(".git");
    let facts = dot_git.symlink_metadata().ok()?;
    if facts.is_dir() {
        return Some(GitDir { common: dot_git.clone(), own: dot_git, linked: false });
    }
    if !facts.is_file() || facts.len() > MAX_POINTER {
        return None;
    }
    let text = std::fs::read(&dot_git).ok()?;
    let target = trim(text.strip_prefix(b"gitdir:")?);
    let own = dir.join(Path::new(std::ffi::OsStr::from_bytes(target)));
    let common = match std::fs::read(own.join("commondir")) {
        Ok(text) => own.join(Path::new(std::ffi::OsStr::from_bytes(trim(&text)))),
        Err(_) => own.clone(),
    };
    let linked = common != own && own.parent().and_then(Path::file_name) == Some(std::ffi::OsStr::new("worktrees"));
    Some(GitDir { own, common, linked })
}

/// The repository's `info/exclude`; `None` when there is none.
pub fn exclude(git: &GitDir) -> Option<Vec<u8>> {
    std::fs::read(git.common.join("info/exclude")).ok()
}

fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}
