//! The uncommitted work among files of a user's repository. git is asked by commands that compare times. A file that was written in the
//! same second as the index is read all the same.
//!
//! *Invariant:* no program runs that the repository's configuration names: its filters are switched off by name, and nothing is fetched.
//! So a file that a filter writes counts as changed while it is as new as the index: one warning too many, and none too few.
//!
//! # Limitations
//! A filter that comes into the configuration between the look at it and the question is run.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::users::UsersGit;
use super::{GitReach, isolated, run_within};
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::model::loss::WorkSort;

/// The most files that are named to git; with more it lists all.
const MOST_NAMED: usize = 400;

/// The longest time that all questions on one repository may take. An answer that comes after its action helps nobody.
const LIMIT: Duration = Duration::from_secs(30);

/// The options of git's comparisons: names alone, and no look into submodules, which are repositories of their own.
const RAW: &[&str] =
    &["--name-only", "-z", "--no-renames", "--ignore-submodules=all", "--no-ext-diff", "--no-textconv"];

/// Returns which of some files hold uncommitted work, and of which sorts. `files` are paths below `top`, the top of a work tree, with
/// the ids of their present contents. A file that is as the last commit has it is left out.
///
/// # Errors
/// When there is no git, or when it cannot read the repository.
pub fn uncommitted(top: &Path, files: &BTreeMap<Vec<u8>, ObjectId>) -> Result<BTreeMap<Vec<u8>, Vec<WorkSort>>> {
    if files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let git = QuietGit::of(top, Instant::now() + LIMIT)?;
    let named: Vec<&[u8]> = files.keys().map(Vec::as_slice).collect();
    let named = if named.len() > MOST_NAMED { &[][..] } else { &named };
    let tracked: BTreeMap<Vec<u8>, String> = entries(&git.answered(&["ls-files", "--stage", "-z"], named)?);
    let stale = names(&git.answered(&[&["diff-files"], RAW].concat(), named)?);
    // Without a commit all that the index has is uncommitted.
    let staged = git.staged(named)?.map(|staged| names(&staged));
    let ignored = git.ignored(files.keys().filter(|path| !tracked.contains_key(*path)))?;
    let sorts = |path: &Vec<u8>, id: &ObjectId| match tracked.get(path) {
        None if ignored.contains(path) => vec![WorkSort::Ignored],
        None => vec![WorkSort::Untracked],
        Some(known) => {
            let is_staged = staged.as_ref().is_none_or(|staged| staged.contains(path));
            // A file that git writes through a filter has another id, and times that git knows.
            let is_changed = *known != id.to_string() && stale.contains(path);
            let sorts = [is_staged.then_some(WorkSort::Staged), is_changed.then_some(WorkSort::Unstaged)];
            sorts.into_iter().flatten().collect()
        }
    };
    let found = files.iter().map(|(path, id)| (path.clone(), sorts(path, id)));
    Ok(found.filter(|(_, sorts)| !sorts.is_empty()).collect())
}

/// Returns the tracked files of a work tree that differ from the index or the last commit, or that may: a file whose times alone
/// are others is among them. The paths count from `top`.
///
/// # Errors
/// When there is no git, or when it cannot read the repository; `busy` when it takes longer than `limit`.
pub fn changed(top: &Path, limit: Duration) -> Result<Vec<Vec<u8>>> {
    let git = QuietGit::of(top, Instant::now() + limit)?;
    let mut found = names(&git.answered(&[&["diff-files"], RAW].concat(), &[])?);
    // Without a commit all that the index has is uncommitted.
    let staged = match git.staged(&[])? {
        Some(staged) => staged,
        None => git.answered(&["ls-files", "-z"], &[])?,
    };
    found.extend(names(&staged));
    Ok(found.into_iter().collect())
}

/// Returns the files of a work tree that hold uncommitted work, or may, as [`changed`] does, and those that git neither tracks nor ignores.
/// The paths count from `top`.
///
/// # Errors
/// As [`changed`].
pub fn changed_or_new(top: &Path, limit: Duration) -> Result<Vec<Vec<u8>>> {
    let began = Instant::now();
    let mut found = changed(top, limit)?;
    let git = QuietGit::of(top, began + limit)?;
    found.extend(names(&git.answered(&["ls-files", "--others", "--exclude-standard", "-z"], &[])?));
    Ok(found)
}

/// A git on a work tree of the user that runs no program of the repository's configuration.
struct QuietGit<'t> {
    top: &'t Path,
    /// Settings that switch the repository's filters off.
    filters: Vec<(OsString, &'static str)>,
    /// The time at which each of its commands is ended.
    deadline: Instant,
}

impl QuietGit<'_> {
    fn of(top: &Path, deadline: Instant) -> Result<QuietGit<'_>> {
        let mut git = QuietGit { top, filters: Vec::new(), deadline };
        let asked = ["config", "--null", "--name-only", "--get-regexp", r"^filter\."];
        // It fails where there is no such setting. One that git cannot read, it cannot read for the other questions either.
        let (keys, _) = git.run(&mut git.command(&asked), b"")?;
        for key in names(&keys) {
            let Some(at) = key.iter().rposition(|byte| *byte == b'.') else { continue };
            let setting = |name: &str| OsString::from_vec([&key[..=at], name.as_bytes()].concat());
            // A filter that has to succeed would end git where it is not run.
            let off = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
            git.filters.extend(off.map(|(name, value)| (setting(name), value)));
        }
        git.filters.sort_unstable();
        git.filters.dedup();
        Ok(git)
    }

    fn command(&self, words: &[&str]) -> Command {
        let filters = self.filters.iter().map(|(key, value)| (key.as_os_str(), OsStr::new(*value)));
        let mut command = isolated(&self.top.join(".git"), Some(self.top), GitReach::Here, filters);
        command.args(words).current_dir(self.top);
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_LITERAL_PATHSPECS", "1");
        // Older gits know the first one not: the second one closes the way to the server, which may be a program.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        command
    }

    fn run(&self, command: &mut Command, input: &[u8]) -> Result<(Vec<u8>, bool)> {
        let output = run_within(command, input, self.left())?;
        Ok((output.stdout, output.status.success()))
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn asked(&self, words: &[&str], named: &[&[u8]]) -> Result<(Vec<u8>, bool)> {
        let mut command = self.command(words);
        command.arg("--").args(named.iter().map(|path| OsStr::from_bytes(path)));
        self.run(&mut command, b"")
    }

    /// Asks git what it can answer wherever it can read the repository.
    fn answered(&self, words: &[&str], named: &[&[u8]]) -> Result<Vec<u8>> {
        match self.asked(words, named)? {
            (answer, true) => Ok(answer),
            (_, false) => Err(Error::new(Code::Internal, "git cannot read the repository").path(self.top)),
        }
    }

    /// Returns the names of what the index has beside the last commit; `None` without a commit.
    fn staged(&self, named: &[&[u8]]) -> Result<Option<Vec<u8>>> {
        let (staged, is_known) = self.asked(&[&["diff-index", "--cached"], RAW, &["HEAD"]].concat(), named)?;
        Ok(is_known.then_some(staged))
    }

    /// Returns those of some paths that git ignores: by the user's own rules as well, where the user's git reads the repository.
    fn ignored<'p>(&self, paths: impl Iterator<Item = &'p Vec<u8>>) -> Result<BTreeSet<Vec<u8>>> {
        // It takes no literal pathspecs, and none begins like this.
        let input: Vec<u8> = paths.flat_map(|path| [b"./", path.as_slice(), b"\0"].concat()).collect();
        if input.is_empty() {
            return Ok(BTreeSet::new());
        }
        let found = UsersGit::at(self.top).ignored(&input, self.left()).or_else(|error| {
            tracing::debug!(%error, "cannot determine the user's own ignore rules");
            let mut command = self.command(&["check-ignore", "-z", "--stdin"]);
            let found = self.run(command.env_remove("GIT_LITERAL_PATHSPECS"), &input)?;
            Ok::<_, Error>(found.0)
        })?;
        Ok(names(&found).iter().map(|name| name.strip_prefix(b"./").unwrap_or(name).to_vec()).collect())
    }
}

fn names(text: &[u8]) -> BTreeSet<Vec<u8>> {
    text.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

/// Reads the lines of `ls-files --stage`: mode, id and stage, a tab, and the path.
fn entries(text: &[u8]) -> BTreeMap<Vec<u8>, String> {
    let entry = |line: &[u8]| {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let facts = String::from_utf8_lossy(&line[..tab]).into_owned();
        Some((line[tab + 1..].to_vec(), facts.split(' ').nth(1)?.to_owned()))
    };
    text.split(|byte| *byte == 0).filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectKind;

    fn git_in(root: &Path, args: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").current_dir(root).args(identity).args(args).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    #[test]
    fn git_tells_what_no_commit_has() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let git = |args: &[&str]| git_in(&root, args);
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        let found = || {
            let id = |name: &str| ObjectId::of(ObjectKind::Blob, &std::fs::read(root.join(name)).unwrap()).unwrap();
            let there = ["same", "touched", "changed", "staged", "both", "new", "log", "crlf", "*"];
            let there = there.into_iter().filter(|name| root.join(name).exists());
            let files = there.map(|name| (name.as_bytes().to_vec(), id(name))).collect();
            let all = uncommitted(&root, &files).unwrap();
            all.into_iter()
                .map(|(path, sorts)| format!("{} {sorts:?}", String::from_utf8_lossy(&path)))
                .collect::<Vec<_>>()
        };
        git(&["init"]);
        write("same", "1\n");
        git(&["add", "."]);
        assert_eq!(found(), ["same [Staged]"], "without a commit");
        for name in ["touched", "changed", "staged", "both"] {
            write(name, "1\n");
        }
        write(".gitignore", "log\n");
        write(".gitattributes", "crlf text eol=crlf\n");
        write("crlf", "1\r\n");
        git(&["add", "."]);
        git(&["commit", "-m", "one"]);
        assert!(found().is_empty(), "{:?}", found());
        for name in ["changed", "staged", "both", "new", "log", "*"] {
            write(name, "2\n");
        }
        git(&["add", "staged", "both"]);
        write("both", "3\n");
        std::fs::File::open(root.join("touched")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        let expected = [
            "* [Untracked]",
            "both [Staged, Unstaged]",
            "changed [Unstaged]",
            "log [Ignored]",
            "new [Untracked]",
            "staged [Staged]",
        ];
        assert_eq!(found(), expected);
        let mut all = changed_or_new(&root, LIMIT).unwrap();
        all.sort();
        let all: Vec<String> = all.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        // Times alone say that `touched` may be changed.
        assert_eq!(all, ["*", "both", "changed", "new", "staged", "touched"]);
        let outside = scratch.path().parent().unwrap();
        assert!(uncommitted(outside, &BTreeMap::new()).unwrap().is_empty());
        let files = [(b"a".to_vec(), ObjectId::of(ObjectKind::Blob, b"").unwrap())].into();
        assert!(uncommitted(outside, &files).is_err(), "a git that cannot tell is no answer");
    }

    /// Each program leaves a mark in the directory of the repository if it runs.
    #[test]
    fn no_program_of_the_repositorys_configuration_runs() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let git = |args: &[&str]| git_in(&root, args);
        git(&["init"]);
        let files = ["clean", "process", "required", "odd", "plain"];
        let rules: String = files.iter().map(|name| format!("{name} filter={name} diff={name}\n")).collect();
        std::fs::write(root.join(".gitattributes"), rules).unwrap();
        files.iter().for_each(|name| std::fs::write(root.join(name), "1\n").unwrap());
        git(&["add", "."]);
        git(&["commit", "-m", "one"]);
        std::fs::write(root.join("required"), "2\n").unwrap();
        git(&["add", "required"]);
        let mark = root.join(".git/mark");
        let mut config = std::fs::read_to_string(root.join(".git/config")).unwrap();
        let program = root.join(".git/program");
        std::fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >>'{}'\ncat\n", mark.display())).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();
        let run = program.display();
        std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
        std::fs::copy(&program, root.join(".git/hooks/post-index-change")).unwrap();
        config += &format!(
            "[filter \"clean\"]\nclean={run}\n[filter \"process\"]\nprocess={run}\n[filter \"required\"]\nclean={run}\nrequired\n\
             [include]\npath=more\n[core]\nfsmonitor={run}\nhooksPath={}\npager={run}\nsshCommand={run}\n[diff]\nexternal={run}\n\
             [diff \"plain\"]\ntextconv={run}\ncommand={run}\n",
            root.join(".git/hooks").display()
        );
        std::fs::write(root.join(".git/config"), config).unwrap();
        // As the attributes of a file can name it: with dots, and another case than its key has.
        std::fs::write(
            root.join(".git/more"),
            format!("[Filter \"odd\"]\nCLEAN={run}\n[filter \"a.b=c\"]\nclean={run}\n"),
        )
        .unwrap();
        // All files are as new as the index, as far as git can tell.
        let index = std::fs::File::open(root.join(".git/index")).unwrap();
        index.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        let id = |name: &&str| ObjectId::of(ObjectKind::Blob, &std::fs::read(root.join(name)).unwrap()).unwrap();
        let all: BTreeMap<_, _> = files.iter().map(|name| (name.as_bytes().to_vec(), id(name))).collect();
        let found = uncommitted(&root, &all).unwrap();
        assert_eq!(found, [(b"required".to_vec(), vec![WorkSort::Staged])].into());
        assert_eq!(changed(&root, LIMIT).unwrap(), [b"required".to_vec()]);
        assert!(!mark.exists(), "{}", std::fs::read_to_string(&mark).unwrap());
        // Without the care, the filters alone run in the same place.
        let plain = ["-c", "core.fsmonitor=false", "diff-files", "--name-only"];
        Command::new("git").current_dir(&root).args(plain).output().unwrap();
        assert!(mark.exists());
    }

    #[test]
    fn a_time_that_is_over_is_no_answer() {
        let scratch = tempfile::tempdir().unwrap();
        let error = changed(scratch.path(), Duration::ZERO).unwrap_err();
        assert_eq!(error.code(), Code::Busy, "{error:?}");
    }
}
