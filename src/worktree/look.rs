//! Single looks at the work tree, outside of a capture.

use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::beneath::{Root, names_in};
use super::git_dir::GitDir;
use crate::error::{IoContext, Result};
use crate::filter::generated::made_beside;
use crate::filter::verdict::is_never_captured;
use crate::model::path::RelPath;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::FileKind;

/// Bytes of names that are asked for at once.
const BUFFER: usize = 64 << 10;

/// Tells whether a directory is a linked worktree (`git worktree add`) of some repository.
pub fn is_linked_worktree(dir: &Path) -> bool {
    GitDir::of(dir).is_some_and(|git| git.linked)
}

/// Returns the directory in which a repository keeps its facts of a linked worktree; `None` for any other directory.
pub fn administration_of(dir: &Path) -> Option<PathBuf> {
    GitDir::of(dir).filter(|git| git.linked).and_then(|git| git.dir.canonicalize().ok())
}

/// Returns the files and links at and below a path, whatever ignore rules say; in nothing that a tool made and can make
/// again, and in nothing that is never captured.
///
/// # Errors
/// When the root cannot be opened. Unreadable paths below it are passed over: the capture reports them.
pub fn files_below(root: &Path, path: &RelPath) -> Result<Vec<RelPath>> {
    let open = Root::open(root)?;
    let (mut found, mut pending) = (Vec::new(), vec![path.clone()]);
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
    while let Some(path) = pending.pop() {
        let Ok(stat) = open.lstat(&path) else { continue };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Symlink => found.push(path),
            FileType::Directory => {
                let names = open.open_dir(&path).and_then(|dir| names_in(dir.as_fd(), &mut buffer));
                let Ok(names) = names else { continue };
                let beside = |name: &[u8]| names.contains(name);
                let wanted = names.iter().filter(|name| !is_never_captured(name) && !made_beside(name, &beside));
                pending.extend(wanted.map(|name| path.join(name)));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the content of a small file or link as it is now, `None` above `max` bytes; an absent one is empty.
///
/// # Errors
/// I/O errors of opening and reading.
pub fn read_small(root: &Path, path: &RelPath, max: u64) -> Result<Option<Vec<u8>>> {
    let parent = path.parent().unwrap_or_default();
    let Some(dir) = Dir::open_root(root)?.find_dir(parent.to_path())? else { return Ok(Some(Vec::new())) };
    match dir.stat(path.name())? {
        None => Ok(Some(Vec::new())),
        Some(stat) if stat.kind == FileKind::Link => dir.read_link(path.name()).map(Some),
        Some(stat) if stat.kind != FileKind::File || stat.size > max => Ok(None),
        Some(_) => {
            let mut content = Vec::new();
            let file = match dir.open_file(path.name()) {
                // The file was removed after it was checked.
                Err(_) if dir.stat(path.name())?.is_none() => return Ok(Some(content)),
                opened => opened?,
            };
            file.take(max).read_to_end(&mut content).at("reading", path.under(root))?;
            Ok(Some(content))
        }
    }
}
