//! The hooks of a user's repository that a command line of git starts. They may change any file.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::classify::commands;
use crate::git::line::{GitLine, within};
use crate::sys::libgit2::hooks_path;
use crate::worktree::repository_state::RepositoryPlace;

/// The hooks of verbs that make a commit.
const OF_COMMITS: &[&str] = &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];

/// The hooks of all verbs that write the index or move refs.
const OF_WRITERS: &[&str] = &["post-index-change", "reference-transaction"];

/// The verbs that write the index or move refs, with their hooks beside those of commits. Source: githooks(5).
const OF_VERBS: &[(&str, &[&str])] = &[
    ("add", &[]),
    ("branch", &[]),
    ("fetch", &[]),
    ("mv", &[]),
    ("reset", &[]),
    ("restore", &[]),
    ("rm", &[]),
    ("stash", &[]),
    ("tag", &[]),
    ("am", &["applypatch-msg", "pre-applypatch", "post-applypatch"]),
    ("checkout", &["post-checkout"]),
    ("cherry-pick", OF_COMMITS),
    ("commit", &["post-rewrite"]),
    ("merge", &["pre-merge-commit", "post-merge"]),
    ("pull", &["pre-merge-commit", "post-merge", "pre-rebase", "post-rewrite", "post-checkout"]),
    ("push", &["pre-push"]),
    ("rebase", &["pre-rebase", "post-rewrite", "post-checkout"]),
    ("revert", OF_COMMITS),
    ("switch", &["post-checkout"]),
    ("worktree", &["post-checkout"]),
];

/// The verbs that start the hooks of commits.
const COMMITTING: &[&str] = &["cherry-pick", "commit", "merge", "pull", "rebase", "revert"];

/// The directory of the hooks that `piton install git` has moved aside.
const MOVED_ASIDE: &str = "piton-next";

/// The most bytes of a hook that are read.
const MOST_READ: u64 = 1 << 20;

/// Returns true if a command line in the directory `cwd` runs a git that starts a hook of its repository. Hooks of piton do not count.
pub(super) fn starts_hook(command: &str, cwd: &Path) -> bool {
    // The text of a line is not parsed unless it names git.
    if !command.contains("git") {
        return false;
    }
    let mut dir = cwd.to_owned();
    commands(command).iter().any(|words| match words.as_slice() {
        [change, to, ..] if change == "cd" || change == "pushd" => {
            dir.push(to);
            false
        }
        words => within(words).is_some_and(|line| starts(&line, &dir)),
    })
}

fn starts(line: &GitLine, cwd: &Path) -> bool {
    let verb = line.verb.as_str();
    let Some((_, own)) = OF_VERBS.iter().find(|(known, _)| *known == verb) else { return false };
    let of_commits = OF_COMMITS.iter().filter(|_| COMMITTING.contains(&verb));
    let mut names = own.iter().chain(OF_WRITERS).chain(of_commits);
    let dir = line.dirs.iter().fold(cwd.to_owned(), |dir, next| dir.join(next));
    let Some(place) = RepositoryPlace::around(&dir) else { return false };
    let hooks = match hooks_path(&place.common) {
        Some(named) => place.top.join(named),
        None => place.common.join("hooks"),
    };
    names.any(|name| is_foreign(&hooks, name))
}

/// Returns true if a directory of hooks has one of this name that is not piton's.
fn is_foreign(hooks: &Path, name: &str) -> bool {
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0);
    let hook = hooks.join(name);
    is_program(&hook) && (!is_pitons(&hook) || is_program(&hooks.join(MOVED_ASIDE).join(name)))
}

/// Returns true if a hook is piton's alone: it asks piton, and is no script of the user with that in it.
fn is_pitons(hook: &Path) -> bool {
    // A hook that is too large, or cannot be read, counts as the user's.
    let is_small = hook.metadata().is_ok_and(|facts| facts.len() <= MOST_READ);
    let Some(text) = is_small.then(|| std::fs::read(hook).ok()).flatten() else { return false };
    let has = |words: &[u8]| text.windows(words.len()).any(|window| window == words);
    has(b"git-door") && !has(b"# piton begin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_starts_the_hooks_of_its_verb_that_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let write = |path: &str, text: &str, mode: u32| {
            let path = top.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write(".git/HEAD", "ref: refs/heads/main\n", 0o644);
        let found = || {
            let lines = ["git commit -m x", "git checkout b", "git push", "git merge b", "git status", "ls"];
            lines.into_iter().filter(|line| starts_hook(line, &top)).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(found(), "", "none is there");
        write(".git/hooks/pre-commit.sample", "#!/bin/sh\n", 0o755);
        write(".git/hooks/pre-commit", "#!/bin/sh\n", 0o644);
        assert_eq!(found(), "", "none can be run");
        write(".git/hooks/pre-commit", "#!/bin/sh\n", 0o755);
        assert_eq!(found(), "git commit -m x, git merge b");
        let elsewhere =
            [format!("git -C {0} commit -m x", top.display()), format!("cd {0} && git commit", top.display())];
        elsewhere.iter().for_each(|line| assert!(starts_hook(line, Path::new("/")), "{line}"));
        write(".git/hooks/pre-push", "#!/bin/sh\npiton git-door pre-push\n", 0o755);
        assert_eq!(found(), "git commit -m x, git merge b", "piton's own");
        write(".git/hooks/piton-next/pre-push", "#!/bin/sh\n", 0o755);
        assert_eq!(found(), "git commit -m x, git push, git merge b");
        // husky and others name another directory.
        write(".git/config", "[core]\n\thooksPath = .husky\n", 0o644);
        assert_eq!(found(), "");
        write(".husky/post-checkout", "#!/bin/sh\n", 0o755);
        assert_eq!(found(), "git checkout b");
    }
}
