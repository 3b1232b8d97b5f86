//! An ordinary git on a repository of the user, for `piton git-undo` alone. `ref_moves` moves its refs, `user_stash` its stash.
//!
//! No hook of the repository runs meanwhile, and nothing of the caller's `GIT_*` reaches it.

use std::ffi::OsString;
use std::fs::{OpenOptions, remove_dir, remove_file, rename};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::index_lock::IndexLock;
use super::{config_value, missing, output, run_within};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::path::RelPath;
use crate::model::text::printable;
use crate::sys::fs::durable::{unique_suffix, with_callers_umask};

/// Settings that hold whatever the repository's own say.
const QUIET: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    // It would run the program of `gpg.program`.
    ("log.showSignature", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// The longest wait for a list: another git, or an agent, waits meanwhile.
const LISTING: Duration = Duration::from_secs(2);

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

/// A switch of the files and the index from one commit to another, both in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSwitch {
    /// The commit whose files are in the work tree.
    pub from: String,
    /// The commit whose files replace them.
    pub to: String,
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

    /// Returns the directory of HEAD and the index.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
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
        Err(self.refused(&verb, &String::from_utf8_lossy(&done.stderr)))
    }

    /// As [`UserRepository::ask`], where somebody waits.
    ///
    /// # Errors
    /// `busy` where it takes long; `conflict`.
    pub(super) fn ask_briefly(&self, command: &mut Command) -> Result<Vec<u8>> {
        let verb = command.get_args().next().unwrap_or_default().to_string_lossy().into_owned();
        let told = run_within(command, b"", LISTING)?;
        if told.status.success() { Ok(told.stdout) } else { Err(self.refused(&verb, "git printed no list")) }
    }

    /// Returns the error of a git that has refused, with its own words.
    pub(super) fn refused(&self, verb: &str, said: &str) -> Error {
        let said = said.lines().map(|line| printable(line.trim())).collect::<Vec<_>>().join("; ");
        Error::new(Code::Conflict, format!("`git {verb}` refused: {said}")).path(&self.common)
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

    /// Returns the files of a work tree that match patterns of the `.gitignore` dialect, tracked or not, as paths from its top on. A
    /// directory without a tracked file is listed alone, with a `/` at its end.
    ///
    /// # Errors
    /// `busy` where that takes long; the errors of git.
    pub fn matching(&self, top: &Path, patterns: &[&String]) -> Result<Vec<Vec<u8>>> {
        let mut command = self.command();
        command.args(["ls-files", "-z", "--cached", "--others", "--directory", "--ignored"]);
        command.args(patterns.iter().map(|pattern| format!("--exclude={pattern}")));
        command.current_dir(top).env("GIT_WORK_TREE", top).env("GIT_OPTIONAL_LOCKS", "0");
        let told = self.ask_briefly(&mut command)?;
        Ok(told.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Returns those of some objects that the repository does not have.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub fn lacking(&self, ids: &[String]) -> Result<Vec<String>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let told = self.ask(self.command().args(["cat-file", "--batch-check"]), Some(input.as_bytes()))?;
        let told = String::from_utf8_lossy(&told).into_owned();
        Ok(told.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned).collect())
    }

    /// Takes the lock of the index.
    ///
    /// # Errors
    /// `busy` while a git has it.
    pub fn lock_index(&self) -> Result<IndexLock> {
        IndexLock::take(&self.dir)
    }

    /// Removes the lock of the index that a killed piton has left.
    ///
    /// # Errors
    /// `permission`; errors of reading.
    pub fn remove_left_over_lock(&self) -> Result<()> {
        IndexLock::remove_left_over(&self.dir)
    }

    /// Puts an index in the place of the present one; `None` removes it.
    ///
    /// # Errors
    /// `busy` where the lock has been taken away; `disk-full`, `permission`.
    pub fn put_index(&self, lock: &IndexLock, index: Option<&[u8]>) -> Result<()> {
        lock.require()?;
        let place = self.dir.join("index");
        match index {
            Some(bytes) => put(&place, bytes),
            None => remove_if_any(&place),
        }
    }

    /// Checks whether git can switch the files below `top` without overwriting uncommitted changes. Nothing is written.
    ///
    /// # Errors
    /// `conflict` with git's message if it cannot.
    pub fn try_switch(&self, top: &Path, switch: &TreeSwitch) -> Result<()> {
        self.read_tree(top, switch, &["-n"])
    }

    /// Switches the files below `top` and the index. Uncommitted changes are kept; if the switch would overwrite one, nothing is written.
    /// git runs the filters that the repository configures, as for any checkout.
    ///
    /// # Errors
    /// `conflict` with git's message, also while another git process holds the lock of the index.
    pub fn switch_files(&self, top: &Path, switch: &TreeSwitch) -> Result<()> {
        self.read_tree(top, switch, &[])
    }

    fn read_tree(&self, top: &Path, switch: &TreeSwitch, options: &[&str]) -> Result<()> {
        let command = |words: &[&str]| {
            let mut command = self.command();
            command.args(words).current_dir(top).env("GIT_WORK_TREE", top);
            command
        };
        // Refreshes the file times in the index. It fails if a file changed, which `read-tree` handles.
        let _ = self.ask(&mut command(&["update-index", "-q", "--refresh"]), None);
        let mut read = command(&["read-tree", "-m", "-u"]);
        self.ask(read.args(options).args([&switch.from, &switch.to]), None).map(drop)
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

/// Puts a file in its place as a whole, durably, under the user's umask.
///
/// # Errors
/// `disk-full`, `permission`.
pub(super) fn put(place: &Path, content: &[u8]) -> Result<()> {
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

/// Removes a file, if there is one.
///
/// # Errors
/// `permission`.
pub(super) fn remove_if_any(place: &Path) -> Result<()> {
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
