//! The work trees in which an action's commands of git replace or remove files. A work tree may begin above the workspace in which
//! git runs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::pathspec::{Pathspec, SpecPaths, has_pattern};
use super::reach::resolved;
use crate::checkpoint::records::workspace::{Scope, scope_of};
use crate::git::uncommitted::changed;
use crate::model::loss::RepositoryFiles;
use crate::worktree::repository_state::RepositoryPlace;

/// The most changed files of a directory like the home directory that are named for one command.
const MAX_CHANGED: usize = 1000;

/// The longest time in which git may list them. The session waits meanwhile; without the list, the answer names the directory as one
/// that no checkpoint holds.
pub(super) const LIMIT: Duration = Duration::from_secs(2);

/// The files of one work tree that a command of git replaces or removes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TreeFiles {
    /// The top of the work tree, by its real name.
    pub top: PathBuf,
    /// The paths that it names, below the top; `None` for the whole work tree.
    pub named: Option<Vec<PathBuf>>,
    /// True if untracked files go as well.
    pub untracked: bool,
}

/// Finds the work trees, from the real name of the directory in which the action runs. A directory in no repository is left out.
pub(super) fn reached(cwd: &Path, repositories: &[RepositoryFiles]) -> Vec<TreeFiles> {
    repositories.iter().filter_map(|files| tree(cwd, files)).collect()
}

fn tree(cwd: &Path, files: &RepositoryFiles) -> Option<TreeFiles> {
    let dir = cwd.join(&files.dir);
    let dir = dir.canonicalize().unwrap_or(dir);
    let top = RepositoryPlace::around(&dir)?.top;
    let (mut named, mut is_whole) = (Vec::new(), false);
    for word in &files.pathspecs {
        match Pathspec::read(word, &dir, &top) {
            // A directory that differs in case may be any.
            Pathspec::Named(paths) if paths.letters.folds_case => is_whole = true,
            Pathspec::Named(paths) => named.push(place(&paths)),
            // The words without it name what goes. A checkpoint may hold more than that.
            Pathspec::Excluded(_) | Pathspec::Spared => {}
            Pathspec::Any => is_whole = true,
        }
    }
    is_whole |= named.is_empty() || named.iter().any(|path| top.starts_with(path));
    Some(TreeFiles { named: (!is_whole).then_some(named), top, untracked: files.untracked })
}

/// Returns the place of a pathspec: the path, or the directory below which its pattern may match.
fn place(paths: &SpecPaths) -> PathBuf {
    let path = &paths.path;
    if path.symlink_metadata().is_ok() || !paths.has_pattern() {
        return resolved(path);
    }
    resolved(&path.iter().take_while(|part| !has_pattern(Path::new(part))).collect::<PathBuf>())
}

impl TreeFiles {
    /// Returns true if a directory belongs to what is captured for the whole work tree.
    pub(super) fn holds(&self, dir: &Path) -> bool {
        self.named.is_none() && dir.starts_with(&self.top) && scope_of(&self.top) == Scope::Tree
    }

    /// Lists the files of a work tree that is too broad to be captured; `false` if more may go than those, or git has not told within
    /// the limit.
    pub(super) fn of_broad(&self, limit: Duration) -> (Vec<PathBuf>, bool) {
        let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|facts| !facts.is_dir());
        let named = self.named.as_deref().unwrap_or_default();
        // Untracked files are named by nothing but their directory.
        let (mut files, dirs): (Vec<PathBuf>, Vec<PathBuf>) =
            named.iter().cloned().partition(|path| self.untracked || is_file(path));
        let mut is_all = !(self.untracked && self.named.is_none());
        if self.named.is_none() || !dirs.is_empty() {
            let found = changed(&self.top, limit);
            is_all &= found.is_ok();
            let found = found.unwrap_or_else(|error| {
                tracing::warn!(%error, "the changed files of a repository cannot be listed");
                Vec::new()
            });
            let is_named = |path: &PathBuf| self.named.is_none() || dirs.iter().any(|dir| path.starts_with(dir));
            let mut full = found.iter().map(|name| self.top.join(OsStr::from_bytes(name))).filter(is_named);
            files.extend(full.by_ref().take(MAX_CHANGED).filter(|path| is_file(path)));
            is_all &= full.next().is_none();
        }
        (files, is_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_takes_too_long_is_not_all() {
        let scratch = tempfile::tempdir().unwrap();
        let mut git = std::process::Command::new("git");
        assert!(git.current_dir(scratch.path()).args(["init", "-q"]).status().unwrap().success());
        let tree = TreeFiles { top: scratch.path().to_owned(), named: None, untracked: false };
        assert_eq!(tree.of_broad(LIMIT), (Vec::new(), true));
        assert_eq!(tree.of_broad(Duration::ZERO), (Vec::new(), false));
    }
}
