//! An ordinary git on a repository of the user, for `piton git-undo` alone: it moves refs as git does, with their logs and locks.
//!
//! No hook of the repository runs meanwhile, and nothing of the caller's `GIT_*` reaches it. *Invariant:* a ref moves only if it is
//! where it was expected.

use std::ffi::OsString;
use std::fs::{OpenOptions, hard_link, remove_dir, remove_file, rename};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{config_value, missing, output};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::path::RelPath;
use crate::model::repository::{HEAD, RefValue};
use crate::model::text::printable;
use crate::sys::fs::durable::{unique_suffix, with_callers_umask};
use crate::sys::processes::ProcessId;

/// Settings that hold whatever the repository's own say.
const QUIET: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    // It would run the program of `gpg.program`.
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// A copy of an index for git to read.
pub(super) struct TemporaryIndex(PathBuf);

impl TemporaryIndex {
    /// Writes it.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn of(index: &[u8]) -> Result<TemporaryIndex> {
        let file = TemporaryIndex(std::env::temp_dir().join(format!("piton-index-{}", unique_suffix())));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file.0);
        made.and_then(|mut made| made.write_all(index)).at("writing", &file.0)?;
        Ok(file)
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryIndex {
    fn drop(&mut self) {
        // One that stays is removed with the temporary directory.
        let _ = remove_file(&self.0);
    }
}

/// The beginning of a lock of piton's; the key of its process follows.
const LOCKED_BY: &str = "piton git-undo ";

/// A ref that is to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMove {
    /// Its name.
    pub name: Vec<u8>,
    /// Its value now; `None` if there is none.
    pub from: Option<RefValue>,
    /// The value that it gets; `None` to delete it.
    pub to: Option<RefValue>,
}

/// A repository of the user.
#[derive(Clone, Debug)]
pub struct UserRepository {
    /// The directory of HEAD and the index.
    dir: PathBuf,
    /// The directory of branches and objects.
    pub(super) common: PathBuf,
    /// A directory for objects that are written; absent: the repository's own.
    aside: Option<PathBuf>,
}

/// The lock of an index, as git itself takes it. Dropped, it is free again.
#[derive(Debug)]
pub struct IndexLock(PathBuf);

impl Drop for IndexLock {
    fn drop(&mut self) {
        // A person who finds it left over is told by git what to do.
        let _ = remove_file(&self.0);
    }
}

impl UserRepository {
    /// Returns a repository by its directories.
    pub fn at(dir: &Path, common: &Path) -> UserRepository {
        UserRepository { dir: dir.to_owned(), common: common.to_owned(), aside: None }
    }

    /// Returns the same, with a directory of objects beside its own.
    #[must_use]
    pub fn with_aside(&self, aside: &Path) -> UserRepository {
        UserRepository { aside: Some(aside.to_owned()), ..self.clone() }
    }

    /// Returns a git on it.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        for (at, (key, value)) in QUIET.iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command.env("GIT_CONFIG_COUNT", QUIET.len().to_string()).env("GIT_DIR", &self.dir);
        // An object that a partial clone lacks is not fetched: the way to its server may be a program.
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
        if let Some(aside) = &self.aside {
            command.env("GIT_OBJECT_DIRECTORY", aside);
            let own = config_value(self.common.join("objects").as_os_str());
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", OsString::from_vec(own));
        }
        command
    }

    /// Runs a git, and returns what it prints.
    ///
    /// # Errors
    /// `conflict` with git's own words.
    pub(super) fn ask(&self, command: &mut Command, input: Option<&[u8]>) -> Result<Vec<u8>> {
        let verb = command.get_args().next().unwrap_or_default().to_string_lossy().into_owned();
        let done = with_callers_umask(|| output(command.stderr(Stdio::piped()), Some(input.unwrap_or_default())))?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let said = said.lines().map(|line| printable(line.trim())).collect::<Vec<_>>().join("; ");
        Err(Error::new(Code::Conflict, format!("`git {verb}` refused: {said}")).path(&self.common))
    }

    /// Returns what an index says of paths, without what it knows of the files on the disk.
    ///
    /// # Errors
    /// `conflict` for an index that git does not read; errors of writing a temporary file.
    pub fn index_entries(&self, index: Option<&[u8]>) -> Result<Vec<u8>> {
        let Some(index) = index else { return Ok(Vec::new()) };
        let file = TemporaryIndex::of(index)?;
        self.ask(self.command().args(["ls-files", "--stage", "-z"]).env("GIT_INDEX_FILE", file.path()), None)
    }

    /// Returns those of some objects that the repository does not have.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub fn lacking(&self, ids: &[String]) -> Result<Vec<String>> {
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let told = self.ask(self.command().args(["cat-file", "--batch-check"]), Some(input.as_bytes()))?;
        let told = String::from_utf8_lossy(&told).into_owned();
        Ok(told.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned).collect())
    }

    /// Moves refs, all or none of those that name objects; then those that name other refs, with HEAD last.
    ///
    /// # Errors
    /// `conflict` if one is not where it was expected, or is locked.
    pub fn move_refs(&self, moves: &[RefMove], reason: &str) -> Result<()> {
        let object = |value: &Option<RefValue>| match value {
            Some(RefValue::Object(id)) => Some(id.clone()),
            None => Some(String::new()),
            Some(RefValue::Symbolic(_)) => None,
        };
        let mut input = Vec::new();
        let (mut symbolic, mut head) = (Vec::new(), None);
        for one in moves {
            match (object(&one.from), object(&one.to)) {
                _ if one.name == HEAD => head = Some(one),
                (Some(from), Some(to)) => {
                    let (verb, words) = match (from.as_str(), to.as_str()) {
                        ("", to) => ("create", vec![to]),
                        (from, "") => ("delete", vec![from]),
                        (from, to) => ("update", vec![to, from]),
                    };
                    input.extend(verb.bytes().chain(*b" ").chain(one.name.iter().copied()).chain([0]));
                    words.iter().for_each(|word| input.extend(word.bytes().chain([0])));
                }
                _ => symbolic.push(one),
            }
        }
        if !input.is_empty() {
            let mut command = self.command();
            self.ask(command.args(["update-ref", "-m", reason, "--no-deref", "--stdin", "-z"]), Some(&input))?;
        }
        for one in symbolic.into_iter().chain(head) {
            let name = String::from_utf8_lossy(&one.name).into_owned();
            let mut command = self.command();
            match &one.to {
                Some(RefValue::Symbolic(target)) => {
                    let target = String::from_utf8_lossy(target).into_owned();
                    command.args(["symbolic-ref", "-m", reason, &name, &target]);
                }
                Some(RefValue::Object(id)) => {
                    command.args(["update-ref", "-m", reason, "--no-deref", &name, id]);
                }
                None => {
                    command.args(["symbolic-ref", "--delete", &name]);
                }
            }
            self.ask(&mut command, None)?;
        }
        Ok(())
    }

    /// Takes the lock of the index.
    ///
    /// # Errors
    /// `busy` while a git has it.
    pub fn lock_index(&self) -> Result<IndexLock> {
        let place = self.dir.join("index.lock");
        let mut made = locked(&place);
        if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) && is_left_over(&place) {
            remove_if_any(&place)?;
            made = locked(&place);
        }
        match made {
            Ok(()) => Ok(IndexLock(place)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = "a git command is at work here: it has locked the index";
                Err(Error::new(Code::Busy, text)
                    .path(&place)
                    .hint("try again when it has ended; one that was killed leaves that file"))
            }
            Err(error) => Err(Error::io(error, "locking the index", &place)),
        }
    }

    /// Puts an index in the place of the present one; `None` removes it.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn put_index(&self, _lock: IndexLock, index: Option<&[u8]>) -> Result<()> {
        let place = self.dir.join("index");
        match index {
            Some(bytes) => put(&place, bytes),
            None => remove_if_any(&place),
        }
    }

    /// Puts the log of the stash in its place; an empty one removes it. `newest` is the stash that the ref names: where the log
    /// lacks it, it is stored again by its own message. git takes a stash out of the log before it tells of that.
    ///
    /// # Errors
    /// `disk-full`, `permission`; the errors of git.
    pub fn put_stash_log(&self, log: &[u8], newest: Option<&str>) -> Result<()> {
        if self.has_ref_table() {
            return self.put_table_stash(log);
        }
        let place = self.common.join("logs/refs/stash");
        if log.is_empty() {
            remove_if_any(&place)?;
        } else {
            put(&place, log)?;
        }
        let Some(newest) = newest.filter(|newest| newest_in(log) != Some(newest.as_bytes())) else { return Ok(()) };
        let subject = self.ask(self.command().args(["log", "-1", "--format=%s", newest]), None)?;
        let subject = String::from_utf8_lossy(&subject).trim().to_owned();
        // git adds no line where the ref does not move.
        self.ask(self.command().args(["update-ref", "-d", "refs/stash"]), None)?;
        if !log.is_empty() {
            // It went with the ref.
            let before = newest_in(log).map(|id| String::from_utf8_lossy(id).into_owned()).unwrap_or_default();
            self.ask(self.command().args(["update-ref", "refs/stash", &before]), None)?;
            put(&place, log)?;
        }
        self.ask(self.command().args(["stash", "store", "-m", &subject, newest]), None).map(drop)
    }

    /// Writes a file of an operation in progress, or removes it with the directories that are empty then.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn put_operation(&self, path: &RelPath, content: Option<&[u8]>) -> Result<()> {
        if let Some(put) = self.put_table_operation(path, content) {
            return put;
        }
        let place = path.under(&self.dir);
        if let Some(content) = content {
            return put(&place, content);
        }
        remove_if_any(&place)?;
        let above = std::iter::successors(path.parent(), RelPath::parent).take_while(|dir| !dir.is_root());
        for dir in above {
            // One that has other files stays.
            if remove_dir(dir.under(&self.dir)).is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// Makes a lock that tells its owner, so that it is known when that was killed.
fn locked(place: &Path) -> std::io::Result<()> {
    let aside = place.with_file_name(format!("{}.piton", unique_suffix()));
    let key = ProcessId::of(std::process::id()).map(|id| id.key()).unwrap_or_default();
    let made = with_callers_umask(|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&aside)?;
        write!(file, "{LOCKED_BY}{key}")?;
        hard_link(&aside, place)
    });
    // One that stays is small.
    let _ = remove_file(&aside);
    made
}

/// Returns true for a lock of piton's whose owner is gone.
fn is_left_over(lock: &Path) -> bool {
    let text = std::fs::read_to_string(lock).unwrap_or_default(); // an index in the making is no text
    let key = text.strip_prefix(LOCKED_BY).unwrap_or_default();
    let pid = key.split('-').next().and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid| ProcessId::of(pid).is_none_or(|id| id.key() != key))
}

/// Returns the object that the newest line of a ref's log names.
fn newest_in(log: &[u8]) -> Option<&[u8]> {
    let line = log.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty())?;
    line.split(|byte| *byte == b' ').nth(1)
}

fn put(place: &Path, content: &[u8]) -> Result<()> {
    let aside = place.with_file_name(format!("{}.piton", unique_suffix()));
    let written = with_callers_umask(|| -> std::io::Result<()> {
        place.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let mut file = OpenOptions::new().write(true).create_new(true).open(&aside)?;
        file.write_all(content)?;
        file.sync_all()?;
        rename(&aside, place)
    });
    if written.is_err() {
        // The first error is the one to report.
        let _ = remove_file(&aside);
    }
    written.at("writing", place)
}

fn remove_if_any(place: &Path) -> Result<()> {
    match remove_file(place) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(error, "removing", place)),
        _ => Ok(()),
    }
}

/// Requires that there is a git.
///
/// # Errors
/// `internal` without one.
pub fn require_git() -> Result<()> {
    let mut command = Command::new("git");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(drop).map_err(missing)
}
