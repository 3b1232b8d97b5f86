//! The file `git-operations` of a workspace: the operations of git, one JSON line for each beginning and each end, the newest last.
//!
//! A torn or damaged line is passed over: what it told can not be taken back by `piton git-undo`, and nothing else depends on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::checkpoint::records::lock::WorkspaceLock;
use crate::classify::commands;
use crate::error::{Code, Error, IoContext, Result};
use crate::git::line::within;
use crate::model::id::ObjectId;
use crate::model::meta::unquote;
use crate::model::path::RelPath;
use crate::sys::fs::durable::{append_private, open_private, replace_file};

/// The name of the file.
const NAME: &str = "git-operations";

/// The file that is there while an operation is open.
const OPEN: &str = "git-open";

/// The operations that are kept at least.
pub const KEPT: usize = 50;

/// The newest operations whose files stay, so that they can be taken back.
pub const WITH_FILES: usize = 20;

/// A file that no checkpoint holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnheldFile {
    /// Its path in the workspace; percent-encoded.
    pub path: String,
    /// The moment of its last change before the command, in nanoseconds since the epoch.
    pub changed: i64,
    /// True if the settings exclude it.
    pub excluded: bool,
}

/// The beginning of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitOperation {
    /// Its number; people read `g-1`, `g-2`, ….
    pub op: u64,
    /// The moment before it: RFC 3339, UTC, milliseconds.
    pub time: String,
    /// The id of the run that it belongs to.
    pub run: String,
    /// The client's name of the turn, if one is open.
    pub turn: Option<String>,
    /// The client's id of the action.
    pub action: Option<String>,
    /// The command, redacted and cut.
    pub command: String,
    /// The top of the work tree, from the root of the file system on; percent-encoded.
    pub top: String,
    /// The checkpoint that holds the files from before it.
    pub files: Option<ObjectId>,
    /// The operation that this one takes back.
    pub over: Option<u64>,
    /// True for a way back of piton's own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub way_back: bool,
    /// True for a command that is no git itself, and that may run some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// The verbs of git in the whole command; absent in a log of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbs: Option<Vec<String>>,
    /// The identity of the repository; absent in a log of before, and where the file system tells of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Files that it may destroy and that no checkpoint holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheld: Vec<UnheldFile>,
}

/// The verbs of git that write into the work tree, or remove files from it.
pub(super) const WRITING_VERBS: &[&str] = &[
    "am",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "merge",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "stash",
    "switch",
];

/// Returns the verbs of git in a shell line, each once. Aliases of git count by their own names.
pub(super) fn verbs_of(command: &str) -> Vec<String> {
    let lines = commands(command);
    let verbs: BTreeSet<String> = lines.iter().filter_map(|words| within(words)).map(|line| line.verb).collect();
    verbs.into_iter().filter(|verb| !verb.is_empty()).collect()
}

impl GitOperation {
    /// Returns its name for people.
    pub fn name(&self) -> String {
        format!("g-{}", self.op)
    }

    /// Returns true if it runs a git with this verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        let known = |verbs: &[String]| verbs.iter().any(|known| known == verb);
        self.verbs.as_deref().map_or_else(|| known(&verbs_of(&self.command)), known)
    }

    /// Returns true if it belongs to a turn of a run.
    pub fn is_of_turn(&self, run: &str, turn: &str) -> bool {
        self.run == run && self.turn.as_deref() == Some(turn)
    }

    /// Returns true if it runs a git that writes files of the work tree, or removes them.
    pub fn writes_files(&self) -> bool {
        WRITING_VERBS.iter().any(|verb| self.has_verb(verb))
    }

    /// Returns the top of the work tree.
    ///
    /// # Errors
    /// `store-damaged` for a text that is no path.
    pub fn place(&self) -> Result<PathBuf> {
        unquoted_top(&self.top)
    }
}

/// Reads the top of a work tree as it is written down.
///
/// # Errors
/// `store-damaged` for a text that is no path.
pub(super) fn unquoted_top(text: &str) -> Result<PathBuf> {
    let path = unquote(text).and_then(|bytes| RelPath::parse(&bytes))?;
    Ok(path.under(Path::new("/")))
}

/// The end of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitEnd {
    /// The number of the operation.
    pub op: u64,
    /// The moment at which its end was known.
    pub time: String,
    /// The capture of the files after it.
    pub files: Option<ObjectId>,
    /// Paths that somebody has changed between its end and that capture; percent-encoded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<String>,
    /// False if it has left the repository as it was.
    pub moved: bool,
    /// Files that no checkpoint holds, and that it has removed or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheld: Vec<UnheldFile>,
    /// True for a way back that has stopped: what it was to take back is not taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GitLogLine {
    Begin(GitOperation),
    End(GitEnd),
}

/// An operation as the whole file tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedOperation {
    /// Its beginning.
    pub begin: GitOperation,
    /// Its end, once that is known.
    pub end: Option<GitEnd>,
    /// The operation that has taken it back.
    pub undone: Option<u64>,
}

impl LoggedOperation {
    /// Returns true if it is known to have changed nothing: neither the repository nor the files. The files that a command changes
    /// which is no git are no matter of git.
    pub fn did_nothing(&self) -> bool {
        let is_same =
            |end: &GitEnd| !end.moved && end.unheld.is_empty() && (self.begin.hidden || end.files == self.begin.files);
        self.end.as_ref().is_some_and(is_same)
    }
}

/// Returns the operations, the oldest first; none where there is no file.
///
/// # Errors
/// Returns the errors of reading.
pub fn operations(dir: &Path) -> Result<Vec<LoggedOperation>> {
    let path = dir.join(NAME);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.at("reading the operations of git", &path)?,
    };
    let mut known: BTreeMap<u64, LoggedOperation> = BTreeMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(GitLogLine::Begin(begin)) => {
                known.insert(begin.op, LoggedOperation { begin, end: None, undone: None });
            }
            Ok(GitLogLine::End(end)) => {
                if let Some(one) = known.get_mut(&end.op) {
                    one.end = Some(end);
                }
            }
            Err(_) => {}
        }
    }
    // One that was interrupted has taken nothing back for certain, and one that did nothing neither. One that takes back what has taken another one back brings that into force again.
    let is_whole = |one: &&LoggedOperation| one.end.as_ref().is_some_and(|end| !end.stopped) && !one.did_nothing();
    let ended = known.values().filter(is_whole);
    let steps: Vec<(u64, u64)> = ended.filter_map(|one| Some((one.begin.op, one.begin.over?))).collect();
    for (by, over) in steps {
        let again = known.get(&over).and_then(|one| one.begin.over);
        if let Some(first) = again.and_then(|first| known.get_mut(&first)) {
            first.undone = None;
        }
        if let Some(one) = known.get_mut(&over) {
            one.undone = Some(by);
        }
    }
    Ok(known.into_values().collect())
}

/// Appends a line. It outlives a power cut if it is `synced`.
///
/// # Errors
/// `disk-full`, `permission`.
pub(super) fn append(dir: &Path, line: &GitLogLine, synced: bool, _lock: &WorkspaceLock) -> Result<()> {
    let path = dir.join(NAME);
    let text = serde_json::to_string(line)
        .map_err(|error| Error::new(Code::Internal, "writing an operation of git").caused_by(error))?;
    // The line before may be torn.
    let written = append_private(&path).and_then(|mut file| {
        file.write_all(format!("\n{text}\n").as_bytes())?;
        if synced { file.sync_data() } else { Ok(()) }
    });
    written.at("writing an operation of git", &path)
}

/// Writes the file anew, with these operations alone.
///
/// # Errors
/// `disk-full`, `permission`.
pub(super) fn rewrite(dir: &Path, kept: &[LoggedOperation], _lock: &WorkspaceLock) -> Result<()> {
    let lines = kept.iter().flat_map(|one| {
        let end = one.end.clone().map(GitLogLine::End);
        std::iter::once(GitLogLine::Begin(one.begin.clone())).chain(end)
    });
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(&line).unwrap_or_default());
        text.push('\n');
    }
    replace_file(&dir.join(NAME), text.as_bytes())
}

/// Returns the checkpoints at both ends of the newest operations.
///
/// # Errors
/// Returns the errors of reading.
pub fn ends(dir: &Path) -> Result<Vec<ObjectId>> {
    let all = operations(dir)?;
    let newest = all.iter().rev().filter(|one| !one.did_nothing()).take(WITH_FILES);
    Ok(newest.flat_map(|one| one.begin.files.into_iter().chain(one.end.as_ref().and_then(|end| end.files))).collect())
}

/// Notes that an operation is open, or that none is: an end costs one look where none is.
pub(super) fn mark_open(dir: &Path, is_open: bool) {
    let path = dir.join(OPEN);
    let done = if is_open { open_private(&path).map(drop) } else { std::fs::remove_file(&path) };
    // Without the mark an end is not noted; one too many costs a look.
    done.unwrap_or_else(|error| tracing::debug!(%error, "an operation of git"));
}

/// Returns true if an operation may be open.
pub(super) fn may_be_open(dir: &Path) -> bool {
    dir.join(OPEN).symlink_metadata().is_ok()
}

/// Removes the file.
///
/// # Errors
/// `permission`.
pub(super) fn remove(dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
    let path = dir.join(NAME);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(error, "removing", &path)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(op: u64, over: Option<u64>) -> GitOperation {
        GitOperation {
            op,
            time: "2026-11-27T12:00:00.000Z".to_owned(),
            run: "r".to_owned(),
            turn: None,
            action: None,
            command: "git reset --hard".to_owned(),
            top: "work".to_owned(),
            files: None,
            over,
            way_back: over.is_some(),
            hidden: false,
            verbs: None,
            repository: None,
            unheld: Vec::new(),
        }
    }

    fn end(op: u64) -> GitEnd {
        let (time, later, unheld) = (String::new(), Vec::new(), Vec::new());
        GitEnd { op, time, files: None, later, moved: true, unheld, stopped: false }
    }

    #[test]
    fn verbs_are_known_by_what_git_is_told_to_do() {
        let of = |text: &str| {
            let line: GitLogLine = serde_json::from_str(text).unwrap();
            match line {
                GitLogLine::Begin(begin) => begin,
                GitLogLine::End(_) => panic!("{text}"),
            }
        };
        let line = |command: &str, verbs: &str| {
            of(&format!(
                r#"{{"begin":{{"op":1,"time":"","run":"r","turn":null,"action":null,"command":"{command}","top":"w","files":null,"over":null{verbs}}}}}"#
            ))
        };
        for (command, is_push, is_stash) in [
            ("git -C x push -f", true, false),
            ("git checkout stash-fix && git commit -m 'after git push'", false, false),
            ("cd x; sudo git stash pop || git push", true, true),
            ("piton git-undo g-1", false, false),
        ] {
            // As a piton of before has written it, and as this one does.
            let stored = serde_json::to_string(&verbs_of(command)).unwrap();
            for verbs in [String::new(), format!(r#","verbs":{stored}"#)] {
                let begin = line(command, &verbs);
                assert_eq!((begin.has_verb("push"), begin.has_verb("stash")), (is_push, is_stash), "{command} {verbs}");
            }
        }
        // The command is cut, its verbs are not.
        let begin = GitOperation { verbs: Some(vec!["push".to_owned()]), ..begin(1, None) };
        assert!(begin.has_verb("push") && !begin.has_verb("reset"));
        let text = serde_json::to_string(&GitLogLine::Begin(begin.clone())).unwrap();
        assert_eq!(of(&text), begin);
    }

    #[test]
    fn a_torn_line_hides_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        append(dir.path(), &GitLogLine::Begin(begin(1, None)), true, &lock).unwrap();
        let torn = std::fs::read(dir.path().join(NAME)).unwrap();
        std::fs::write(dir.path().join(NAME), [&torn[..], b"{\"begin\":{\"op\":2"].concat()).unwrap();
        append(dir.path(), &GitLogLine::Begin(begin(3, None)), true, &lock).unwrap();
        let end = end(3);
        append(dir.path(), &GitLogLine::End(end.clone()), true, &lock).unwrap();
        append(dir.path(), &GitLogLine::End(GitEnd { op: 9, ..end }), true, &lock).unwrap();
        let all = operations(dir.path()).unwrap();
        assert_eq!(
            all.iter().map(|one| (one.begin.op, one.end.is_some())).collect::<Vec<_>>(),
            [(1, false), (3, true)]
        );
        assert_eq!(all[0].begin.place().unwrap(), Path::new("/work"));
        rewrite(dir.path(), &all[1..], &lock).unwrap();
        assert_eq!(operations(dir.path()).unwrap(), &all[1..]);
    }

    #[test]
    fn a_way_back_that_has_stopped_takes_nothing_back() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        let undone = || operations(dir.path()).unwrap()[0].undone;
        for (op, over) in [(1, None), (2, Some(1))] {
            append(dir.path(), &GitLogLine::Begin(begin(op, over)), true, &lock).unwrap();
        }
        let end = end(2);
        for (stopped, expected) in [(false, Some(2)), (true, None)] {
            append(dir.path(), &GitLogLine::End(GitEnd { stopped, ..end.clone() }), true, &lock).unwrap();
            assert_eq!(undone(), expected);
        }
    }

    #[test]
    fn what_is_taken_back_twice_is_in_force_again() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        let undone = || operations(dir.path()).unwrap().iter().map(|one| one.undone).collect::<Vec<_>>();
        for (over, expected) in [
            (None, vec![None]),
            (Some(1), vec![Some(2), None]),
            (Some(2), vec![None, Some(3), None]),
            (Some(1), vec![Some(4), Some(3), None, None]),
        ] {
            let op = expected.len() as u64;
            let known = undone();
            append(dir.path(), &GitLogLine::Begin(begin(op, over)), true, &lock).unwrap();
            assert_eq!(undone()[..known.len()], known, "it has not ended yet");
            let end = GitEnd {
                op,
                time: String::new(),
                files: None,
                later: Vec::new(),
                moved: true,
                unheld: Vec::new(),
                stopped: false,
            };
            append(dir.path(), &GitLogLine::End(end), true, &lock).unwrap();
            assert_eq!(undone(), expected);
        }
    }
}
