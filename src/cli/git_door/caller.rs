//! The git that has called a hook: its process, its command line, and the directory in which it was started.

use std::path::{Path, PathBuf};

use crate::git::line::{self, GitLine};
use crate::model::text::shell_line;
use crate::sys::processes::{ProcessFacts, ProcessId, above, directory, facts, variable};

/// The most processes between git and its hook: a shell that runs the hook, and a hook that runs another one.
const NEAR: usize = 4;

/// The most processes above a git among which the client of a run is looked for.
const ABOVE: usize = 32;

/// The git that has called this process, or the one whose command that is a part of: `git pull` runs others.
pub(super) struct GitCaller {
    /// Its process.
    pub id: ProcessId,
    /// The process that waits for the answer.
    pub asks: u32,
    pub line: GitLine,
    words: Vec<String>,
    /// The number of the process that has started it.
    parent: u32,
}

impl GitCaller {
    /// Finds it; `None` where no git is near, or none that destroys anything. `moves_own` is true if it moves refs that are not those of
    /// a remote.
    pub(super) fn of_loud(moves_own: bool) -> Option<GitCaller> {
        let is_loud = |line: &GitLine| !line.is_quiet() || (moves_own && line.moves_by_settings());
        let near = nearest(std::os::unix::process::parent_id()).filter(|near| is_loud(&near.line))?;
        // A new work tree has nothing to lose.
        if nearest(near.facts.parent).is_some_and(|outer| outer.line.makes_work_tree()) {
            return None;
        }
        Some(near.identified()?.outermost())
    }

    /// Finds it; `None` where no git is near.
    pub(super) fn find() -> Option<GitCaller> {
        Some(nearest(std::os::unix::process::parent_id())?.identified()?.outermost())
    }

    /// Returns the git that this one is a part of, if that rewrites files of the same work tree.
    fn outermost(self) -> GitCaller {
        let mut found = self;
        // In a submodule it acts on a repository of its own.
        let is_beside = |found: &GitCaller, outer: &NearGit| directory(found.id.pid) == directory(outer.pid);
        if !found.line.is_quiet() {
            while let Some(outer) =
                nearest(found.parent).filter(|outer| outer.line.has_parts() && is_beside(&found, outer))
            {
                let Some(outer) = outer.identified() else { break };
                found = GitCaller { asks: found.asks, ..outer };
            }
        }
        found
    }

    /// Returns its command line as a shell reads it.
    pub(super) fn command(&self) -> String {
        // Which of several gits it is says nothing to people, and `-C` leads to the directory from which its paths count.
        let mut rest = self.words.iter().skip(1);
        let mut words = vec!["git"];
        // A program of git's own has its verb in its name: `git-receive-pack`.
        let name = self.words.first().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
        words.extend(name.strip_prefix("git-"));
        while let Some(word) = rest.next() {
            match word == "-C" && words.iter().all(|word| *word != self.line.verb) {
                true => drop(rest.next()),
                false => words.push(word),
            }
        }
        shell_line(words)
    }

    /// Returns the directory from which its paths count. git itself goes to the top of the work tree (`top`) before it calls a
    /// hook, so that only its first environment and its parent tell. One that leads out of the work tree is not believed.
    pub(super) fn place(&self, top: &Path) -> PathBuf {
        let told = variable(self.id.pid, "PWD").map(PathBuf::from).into_iter().chain(directory(self.parent));
        let end = |dir: PathBuf| {
            let end = self.line.dirs.iter().fold(dir, |dir, further| dir.join(further));
            end.canonicalize().ok().filter(|end| end.is_absolute() && end.starts_with(top)) // one that is gone is none
        };
        told.into_iter().filter(|dir| dir.is_absolute()).find_map(end).unwrap_or_else(|| top.to_owned())
    }

    /// Returns the numbers of the processes above it, the nearest first.
    pub(super) fn above(&self) -> Vec<u32> {
        let further = above(self.parent, ABOVE - 1);
        std::iter::once(self.parent).chain(further).collect()
    }
}

/// A git above this process, by what its command line tells. Nearly every hook needs no more of it.
struct NearGit {
    pid: u32,
    line: GitLine,
    facts: ProcessFacts,
}

impl NearGit {
    fn identified(self) -> Option<GitCaller> {
        let NearGit { pid, line, facts } = self;
        Some(GitCaller { id: ProcessId::of(pid)?, asks: pid, line, words: facts.words, parent: facts.parent })
    }
}

/// Returns the first git from a process on, upwards, if it is near.
fn nearest(mut pid: u32) -> Option<NearGit> {
    for _ in 0..NEAR {
        let facts = facts(pid)?;
        if let Some(line) = line::read(&facts.words) {
            return Some(NearGit { pid, line, facts });
        }
        pid = facts.parent;
    }
    None
}

/// Returns the command line of the git that has called this process.
pub(super) fn line() -> Option<GitLine> {
    nearest(std::os::unix::process::parent_id()).map(|near| near.line)
}
