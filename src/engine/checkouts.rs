//! Finds the files that git replaces without asking when it checks out a commit.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::git::{self, GitReach};

/// The most files that are named for one commit.
const MAX_REPLACED: usize = 1000;

/// The longest time that git gets. The session waits meanwhile; a client that waits longer gets no checkpoint at all.
const LIMIT: Duration = Duration::from_secs(10);

/// Returns the files that stand where a commit has one, and the checked out commit has none: git replaces those that it ignores.
/// The list is empty where `rev` names no commit, and without a git.
pub(super) fn replaced(dir: &Path, rev: &str) -> Vec<PathBuf> {
    let is_top = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
    let Some(top) = dir.ancestors().find(is_top).filter(|_| !rev.is_empty()) else { return Vec::new() };
    // The last branch, as `git checkout -` takes it.
    let rev = if rev == "-" { "@{-1}" } else { rev };
    let mut command = git::command(&top.join(".git"), None, GitReach::Here, &[]);
    let asked = ["diff-tree", "-r", "-z", "--no-renames", "--diff-filter=A", "--name-only", "--end-of-options", "HEAD"];
    // A commit that is not there is not fetched for this.
    command.args(asked).arg(rev).arg("--").env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    let names = match git::run_within(&mut command, b"", LIMIT) {
        Ok(output) if output.status.success() => output.stdout,
        // It names no commit.
        Ok(_) => return Vec::new(),
        Err(error) => {
            tracing::warn!(%error, "cannot list the files that a commit replaces");
            return Vec::new();
        }
    };
    let paths =
        names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(|name| top.join(OsStr::from_bytes(name)));
    let there = |path: &PathBuf| path.symlink_metadata().is_ok_and(|file| !file.is_dir());
    paths.filter(there).take(MAX_REPLACED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_that_a_branch_tracks_are_named() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
            assert!(
                command.current_dir(&root).args(identity).args(args).output().unwrap().status.success(),
                "{args:?}"
            );
        };
        git(&["init"]);
        std::fs::write(root.join("a"), "a").unwrap();
        git(&["add", "."]);
        git(&["commit", "-m", "one"]);
        git(&["checkout", "-b", "other"]);
        std::fs::create_dir(root.join("d")).unwrap();
        for name in ["d/local.cfg", "new"] {
            std::fs::write(root.join(name), "theirs").unwrap();
        }
        git(&["add", "."]);
        git(&["commit", "-m", "two"]);
        git(&["checkout", "main"]);
        assert!(replaced(&root, "other").is_empty(), "nothing stands in the way");
        std::fs::create_dir(root.join("d")).unwrap();
        std::fs::write(root.join("d/local.cfg"), "mine").unwrap();
        for rev in ["other", "-", "other~0"] {
            assert_eq!(replaced(&root.join("d"), rev), [root.join("d/local.cfg")], "{rev}");
        }
        for rev in ["", "none", "a", "--output=x", "main"] {
            assert!(replaced(&root, rev).is_empty(), "{rev}");
        }
        assert!(!root.join("x").exists());
    }
}
