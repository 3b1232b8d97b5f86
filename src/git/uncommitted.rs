//! The uncommitted work among files of a user's repository. git is asked by commands that compare times. A file that was written in the
//! same second as the index is read all the same, through the filters that the repository's configuration names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{GitReach, command, run};
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::model::loss::WorkSort;

/// The most files that are named to git; with more it lists all.
const MOST_NAMED: usize = 400;

/// Returns which of some files hold uncommitted work, and of which sorts. `files` are paths below `top`, the top of a work tree, with
/// the ids of their present contents. A file that is as the last commit has it is left out.
///
/// # Errors
/// When there is no git, or when it cannot read the repository.
pub fn uncommitted(top: &Path, files: &BTreeMap<Vec<u8>, ObjectId>) -> Result<BTreeMap<Vec<u8>, Vec<WorkSort>>> {
    if files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let named: Vec<&[u8]> = files.keys().map(Vec::as_slice).collect();
    let named = if named.len() > MOST_NAMED { &[][..] } else { &named };
    let tracked: BTreeMap<Vec<u8>, String> = entries(&answered(top, &["ls-files", "--stage", "-z"], named)?);
    let raw = ["--name-only", "-z", "--no-renames", "--ignore-submodules=all"];
    let stale = names(&answered(top, &[&["diff-files"], &raw[..]].concat(), named)?);
    // Without a commit all that the index has is uncommitted.
    let staged = match asked(top, &[&["diff-index", "--cached"], &raw[..], &["HEAD"]].concat(), named)? {
        (staged, true) => Some(names(&staged)),
        (_, false) => None,
    };
    let untracked = files.keys().filter(|path| !tracked.contains_key(*path));
    let ignored = ignored(top, untracked)?;
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
/// When there is no git, or when it cannot read the repository.
pub fn changed(top: &Path) -> Result<Vec<Vec<u8>>> {
    let raw = ["--name-only", "-z", "--no-renames", "--ignore-submodules=all"];
    let mut found = names(&answered(top, &[&["diff-files"], &raw[..]].concat(), &[])?);
    // Without a commit all that the index has is uncommitted.
    let staged = match asked(top, &[&["diff-index", "--cached"], &raw[..], &["HEAD"]].concat(), &[])? {
        (staged, true) => staged,
        (_, false) => answered(top, &["ls-files", "-z"], &[])?,
    };
    found.extend(names(&staged));
    Ok(found.into_iter().collect())
}

fn git(top: &Path, words: &[&str]) -> Command {
    let mut command = command(&top.join(".git"), Some(top), GitReach::Here, &[]);
    command.args(words).current_dir(top).stderr(Stdio::null());
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1").env("GIT_LITERAL_PATHSPECS", "1");
    command
}

fn asked(top: &Path, words: &[&str], named: &[&[u8]]) -> Result<(Vec<u8>, bool)> {
    let mut command = git(top, words);
    command.arg("--").args(named.iter().map(|path| OsStr::from_bytes(path)));
    run(&mut command, Some(&[]))
}

/// Asks git what it can answer wherever it can read the repository.
fn answered(top: &Path, words: &[&str], named: &[&[u8]]) -> Result<Vec<u8>> {
    match asked(top, words, named)? {
        (answer, true) => Ok(answer),
        (_, false) => Err(Error::new(Code::Internal, "git cannot read the repository").path(top)),
    }
}

/// Returns those of some paths that git ignores, by the rules of the work tree.
fn ignored<'p>(top: &Path, paths: impl Iterator<Item = &'p Vec<u8>>) -> Result<BTreeSet<Vec<u8>>> {
    // It takes no literal pathspecs, and none begins like this.
    let input: Vec<u8> = paths.flat_map(|path| [b"./", path.as_slice(), b"\0"].concat()).collect();
    if input.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut command = git(top, &["check-ignore", "-z", "--stdin"]);
    let (found, _) = run(command.env_remove("GIT_LITERAL_PATHSPECS"), Some(&input))?;
    Ok(names(&found).iter().map(|name| name.strip_prefix(b"./").unwrap_or(name).to_vec()).collect())
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

    #[test]
    fn git_tells_what_no_commit_has() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let git = |args: &[&str]| {
            let identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
            let done = Command::new("git").current_dir(&root).args(identity).args(args).output().unwrap();
            assert!(done.status.success(), "{args:?}: {done:?}");
        };
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
        let outside = scratch.path().parent().unwrap();
        assert!(uncommitted(outside, &BTreeMap::new()).unwrap().is_empty());
        let files = [(b"a".to_vec(), ObjectId::of(ObjectKind::Blob, b"").unwrap())].into();
        assert!(uncommitted(outside, &files).is_err(), "a git that cannot tell is no answer");
    }
}
