//! The paths that an action names, by which the end of its turn tells the action's changes from those of others.

use std::path::Path;

use super::event::{Action, Doing};
use super::hidden_programs::starts_others;
use super::reach::{ActionReach, gives_secret_away, has_magic, inside, resolved};
use crate::classify::commands;
use crate::git::line::{GitLine, within};
use crate::model::effect::{Class, Confidence, Verdict};
use crate::model::path::RelPath;

/// The most paths that are recorded for one action. An action with more counts as one that may change any path.
const MAX_NAMED: usize = 1000;

/// The paths of one workspace that an action may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NamedPaths {
    /// Paths that it may change together with everything below them.
    pub below: Vec<RelPath>,
    /// Paths that it creates or appends to, without anything below them.
    pub alone: Vec<RelPath>,
    /// True if it may also change paths that it does not name.
    pub and_others: bool,
    /// True if only git can change those.
    pub by_git: bool,
    /// True if it only deletes.
    pub only_deletes: bool,
}

impl NamedPaths {
    /// Returns the paths of a workspace that an action names. `reach` lists what it may destroy there.
    pub(super) fn of(
        workspace: &Path,
        cwd: &Path,
        action: &Action,
        verdict: &Verdict,
        reach: &ActionReach,
    ) -> NamedPaths {
        let (command, told) = match &action.what {
            Doing::Tool(tool) => ("", tool.paths.as_slice()),
            Doing::Shell { command } => (command.as_str(), [].as_slice()),
        };
        let by_git = may_write_by_git(command);
        let starts_others = starts_others(command, cwd);
        // The directory of the workspace itself, or one above it, goes with everything that is in it.
        let searches = verdict.patterns.iter().any(|pattern| pattern.contains("**"));
        let takes_root = reach.targets.iter().any(|target| target.path.is_root());
        let mut named = NamedPaths {
            // The matches of patterns are among the targets, but a search may find more than is there now.
            and_others: verdict.writes_unnamed
                || by_git
                || starts_others
                || searches
                || (reach.is_everything && !verdict.reaches_all && !takes_root),
            by_git: by_git
                && !starts_others
                && verdict.confidence != Confidence::Opaque
                && verdict.effects.iter().all(|effect| effect.verb.starts_with("git")),
            ..NamedPaths::default()
        };
        let is_secret = gives_secret_away(command);
        for target in &reach.targets {
            match is_secret(&target.path.display()) {
                true => named.and_others = true,
                false => named.below.push(target.path.clone()),
            }
        }
        for (words, is_alone) in [(&verdict.made[..], false), (told, false), (&verdict.written[..], true)] {
            for word in words {
                let full = resolved(&cwd.join(word));
                let Some(target) = inside(workspace, &full).filter(|_| !has_magic(word) && !is_secret(word)) else {
                    named.and_others |= full == workspace || (full.starts_with(workspace) && !full.ends_with(".lock"));
                    continue;
                };
                if is_alone { &mut named.alone } else { &mut named.below }.push(target.path);
            }
        }
        for list in [&mut named.below, &mut named.alone] {
            list.sort_unstable();
            list.dedup();
        }
        let deletes = !verdict.effects.is_empty() && verdict.effects.iter().all(|one| one.class == Class::FileDelete);
        named.only_deletes = deletes && !named.and_others && verdict.made.is_empty() && verdict.written.is_empty();
        if !named.only_deletes {
            let made: Vec<RelPath> =
                named.below.iter().chain(&named.alone).filter_map(|path| made_through(workspace, path)).collect();
            named.alone.extend(made);
        }
        if named.below.len() + named.alone.len() > MAX_NAMED {
            (named.and_others, named.only_deletes) = (true, false);
            named.below.truncate(MAX_NAMED);
            named.alone.clear();
        }
        named
    }
}

/// Returns the path of the file that a write makes where a path is a link that leads nowhere yet.
fn made_through(workspace: &Path, path: &RelPath) -> Option<RelPath> {
    let link = path.under(workspace);
    let leads = link.read_link().ok()?; // no link
    let made = resolved(&link.parent()?.join(leads));
    if made.symlink_metadata().is_ok() { None } else { Some(inside(workspace, &made)?.path) }
}

/// Returns true if a command line runs a git that may write files of the work tree.
pub(super) fn may_write_by_git(command: &str) -> bool {
    let lines = || commands(command).iter().filter_map(|words| within(words)).collect::<Vec<GitLine>>();
    // The text of a line is not parsed unless it names git.
    command.contains("git") && lines().iter().any(GitLine::may_write_files)
}

/// Returns true if a command line has git apply commits: these write the files of a new commit.
pub(super) fn applies_commits(command: &str) -> bool {
    /// The verbs that apply commits, beside those that the classifier takes for destructive.
    const APPLYING: &[&str] = &["am", "cherry-pick", "merge", "pull", "revert"];
    let is_applying = |line: GitLine| APPLYING.contains(&line.verb.as_str());
    command.contains("git") && commands(command).iter().filter_map(|words| within(words)).any(is_applying)
}

/// Returns true if an action names git, and so may move HEAD.
pub(super) fn names_git(action: &Action) -> bool {
    let Doing::Shell { command } = &action.what else { return false };
    let is_git = |word: &str| matches!(word, "git" | "gh" | "jj" | "hub" | "lazygit" | "tig") || word.ends_with("/git");
    let mut words = command.split(|c: char| c.is_whitespace() || ";&|()`'\"$".contains(c));
    words.any(is_git)
}

/// Returns true if the text of a command line may start a background job.
pub(super) fn leaves_work(action: &Action) -> bool {
    /// The programs that start background jobs.
    const LEAVING: &[&str] =
        &["nohup", "setsid", "disown", "daemonize", "systemd-run", "screen", "tmux", "at", "batch"];
    let Doing::Shell { command } = &action.what else { return action.in_background };
    let bytes = command.as_bytes();
    let is_ampersand = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        bytes[at] == b'&'
            && !before.is_some_and(|byte| b"&|<>".contains(byte))
            && !bytes.get(at + 1).is_some_and(|byte| b"&>".contains(byte))
    };
    let mut words = command.split(|c: char| c.is_whitespace() || ";&|()`'\"$".contains(c));
    action.in_background || (0..bytes.len()).any(is_ampersand) || words.any(|word| LEAVING.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Classifier, Context};
    use crate::engine::reach::{judged, reach};

    /// Returns what a line names: `below | alone`, then `+ others` if it may change others, and `by git` if git alone does that.
    fn named(workspace: &Path, line: &str) -> String {
        let policy = crate::settings::resolve(&crate::settings::Sources::default()).unwrap().policy;
        let classifier = Classifier::embedded();
        let context = Context { cwd: workspace.into(), workspace: workspace.into(), ..Context::default() };
        let verdict = judged(context, |context| classifier.shell(line, context, &policy));
        let what = Doing::Shell { command: line.to_owned() };
        let action = Action { id: None, what, cwd: None, wait: None, doubt: false, in_background: false };
        let reach = reach(workspace, workspace, &verdict);
        let named = NamedPaths::of(workspace, workspace, &action, &verdict, &reach);
        let words = |paths: &[RelPath]| paths.iter().map(RelPath::display).collect::<Vec<_>>().join(" ");
        let others = if named.and_others { " + others" } else { "" };
        let git = if named.by_git { " by git" } else { "" };
        format!("{} | {}{others}{git}", words(&named.below), words(&named.alone))
    }

    #[test]
    fn an_action_names_what_it_writes() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for file in ["a", "b", "x.o", "y.o", "d/e", "s.sh"] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "x").unwrap();
        }
        for (line, expected) in [
            ("ls", " | "),
            ("cat a", " | "),
            ("sleep 2", " | "),
            ("git status", " | "),
            ("git log --oneline", " | "),
            ("git add .", " | "),
            ("git commit -am x", " | "),
            ("git push", " | "),
            ("pip install x", " | "),
            ("rm a", "a | "),
            ("rm -rf d", "d | "),
            ("rm *.o", "x.o y.o | "),
            ("sed -i s/x/y/ a", "a | "),
            ("mv a b", "a b | "),
            ("echo x > a", "a | "),
            ("echo x >> a", " | a"),
            ("mkdir -p d/f && touch d/f/g", " | d/f d/f/g"),
            ("cat a; frobnicate", " |  + others"),
            ("make", " |  + others"),
            ("tar xf a.tar", " |  + others"),
            ("rm -rf .", ". | "),
            ("git reset --hard", " |  + others by git"),
            ("git checkout main", " |  + others by git"),
            ("git pull", " |  + others by git"),
            ("cd d && git stash", " |  + others by git"),
            ("git merge x; make", " |  + others"),
        ] {
            assert_eq!(named(&root, line), expected, "{line}");
        }
    }
}
