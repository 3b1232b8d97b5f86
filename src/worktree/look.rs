//! Single looks at the work tree, outside of a capture.

use std::io::Read;
use std::path::Path;

use super::git_dir::GitDir;
use crate::error::{IoContext, Result};
use crate::model::path::RelPath;
use crate::sys::dir::{Dir, Kind};

/// Whether a directory is a linked worktree (`git worktree add`) of some repository.
pub fn is_linked_worktree(dir: &Path) -> bool {
    GitDir::of(dir).is_some_and(|git| git.linked)
}

/// The content of a small file or link as it is now, `None` above `max` bytes; an absent one is empty.
///
/// # Errors
/// I/O errors of opening and reading.
pub fn read_small(root: &Path, path: &RelPath, max: u64) -> Result<Option<Vec<u8>>> {
    let parent = path.parent().unwrap_or_default();
    let Some(dir) = Dir::open_root(root)?.find_dir(parent.to_path())? else { return Ok(Some(Vec::new())) };
    match dir.stat(path.name())? {
        None => Ok(Some(Vec::new())),
        Some(stat) if stat.kind == Kind::Link => dir.read_link(path.name()).map(Some),
        Some(stat) if stat.kind != Kind::File || stat.size > max => Ok(None),
        Some(_) => {
            let mut content = Vec::new();
            dir.open_file(path.name())?.take(max).read_to_end(&mut content).at("reading", path.under(root))?;
            Ok(Some(content))
        }
    }
}
