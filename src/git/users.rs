//! The user's own git, asked where its files are and which settings count. *Invariant:* it changes nothing, and starts no program
//! that a repository or a setting names.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{missing, run_within};
use crate::error::{Code, Error, IoContext, Result};

/// Variables of the caller that lead git to a certain repository, or are settings of one command.
const ASTRAY: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// The user's git, in a directory.
#[derive(Clone, Debug)]
pub struct UsersGit {
    cwd: PathBuf,
}

/// A repository with a work tree, as git finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersRepository {
    /// The top of the work tree.
    pub top: PathBuf,
    /// The directory that all work trees share.
    pub common: PathBuf,
    /// The directory in which git looks for hooks.
    pub hooks: PathBuf,
}

impl UsersRepository {
    /// Returns the directory of hooks with its links resolved: a `.git/hooks` may be a link out of the repository.
    pub fn real_hooks(&self) -> PathBuf {
        resolved(&self.hooks)
    }
}

/// One value of a setting. The last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersSetting {
    /// The value.
    pub value: OsString,
    /// The scope, in git's own words: `system`, `global`, `local`, `worktree`.
    pub scope: String,
    /// The file.
    pub file: PathBuf,
}

/// The configuration files that are asked.
#[derive(Clone, Copy, Debug)]
pub enum UsersFiles<'f> {
    /// All files that count in the directory.
    All,
    /// The files of the user and of the system.
    Global,
    /// One file, with those that it includes.
    One(&'f Path),
    /// The text of a file.
    Text(&'f [u8]),
}

impl UsersGit {
    /// Returns the git of a directory.
    pub fn at(cwd: &Path) -> UsersGit {
        UsersGit { cwd: cwd.to_owned() }
    }

    /// Returns the version, as far as it is a number.
    ///
    /// # Errors
    /// When there is no git.
    pub fn version(&self) -> Result<Option<(u32, u32)>> {
        let output = self.output(&[OsStr::new("--version")], None)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut parts = text.trim().strip_prefix("git version ").unwrap_or_default().split('.');
        // A part that is no number is no version that is known.
        let mut number = || parts.next()?.parse().ok();
        Ok(number().zip(number()))
    }

    /// Returns the repository of the directory.
    ///
    /// # Errors
    /// `bad-path` where there is none; `workspace-refused` where it has no work tree; `permission` where git does not trust its owner.
    pub fn repository(&self) -> Result<UsersRepository> {
        let common = self.path(&["--git-common-dir"])?.map_err(|says| self.refused(&says))?;
        let top = self.path(&["--show-toplevel"])?.map_err(|_| {
            Error::new(Code::WorkspaceRefused, "there is no work tree here, so there is nothing to guard")
                .path(&self.cwd)
                .hint("run this in a work tree of the repository")
        })?;
        // A hook directory that is set may be relative to the top.
        let above = UsersGit::at(&top);
        let hooks = above.path(&["--git-path", "hooks"])?.map_err(|says| self.refused(&says))?;
        Ok(UsersRepository { common: resolved(&common), top, hooks })
    }

    /// Returns all values of a setting, the one that counts last.
    ///
    /// # Errors
    /// `conflict` where git cannot read its files.
    pub fn settings(&self, key: &str, files: UsersFiles<'_>) -> Result<Vec<UsersSetting>> {
        if let UsersFiles::Global = files {
            let mut found = Vec::new();
            for scope in ["--system", "--global"] {
                found.extend(self.settings_of(key, &[scope, "--includes"].map(OsStr::new), None)?);
            }
            return Ok(found);
        }
        match files {
            UsersFiles::One(file) => {
                self.settings_of(key, &[OsStr::new("--includes"), OsStr::new("--file"), file.as_os_str()], None)
            }
            UsersFiles::Text(text) => {
                self.settings_of(key, &["--no-includes", "--file", "-"].map(OsStr::new), Some(text))
            }
            UsersFiles::All | UsersFiles::Global => self.settings_of(key, &[], None),
        }
    }

    fn settings_of(&self, key: &str, which: &[&OsStr], input: Option<&[u8]>) -> Result<Vec<UsersSetting>> {
        let asked = ["--null", "--show-scope", "--show-origin", "--get-all", key].map(OsStr::new);
        let words: Vec<&OsStr> = [OsStr::new("config")].into_iter().chain(which.iter().copied()).chain(asked).collect();
        let output = self.output(&words, input)?;
        match output.status.code() {
            Some(0) => {}
            // There is no such setting, or no such file.
            Some(1) => return Ok(Vec::new()),
            _ => return Err(self.refused(&String::from_utf8_lossy(&output.stderr))),
        }
        let parts: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        let setting = |parts: &[&[u8]]| {
            let origin = parts[1].strip_prefix(b"file:").unwrap_or(parts[1]);
            UsersSetting {
                value: OsString::from_vec(parts[2].to_vec()),
                scope: String::from_utf8_lossy(parts[0]).into_owned(),
                file: self.cwd.join(OsStr::from_bytes(origin)),
            }
        };
        Ok(parts.chunks_exact(3).map(setting).collect())
    }

    /// Returns the files that may hold settings of the directory, whether they are there or not: those that git has read, those that
    /// it would include, and those of its other scopes.
    ///
    /// # Errors
    /// `conflict` where git cannot read its files.
    pub fn config_files(&self) -> Result<Vec<PathBuf>> {
        let parts = |words: &[&str]| -> Result<Vec<Vec<u8>>> {
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            let output = self.output(&words, None)?;
            match output.status.code() {
                // There is no such setting.
                Some(0 | 1) => Ok(output.stdout.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()),
                _ => Err(self.refused(&String::from_utf8_lossy(&output.stderr))),
            }
        };
        let file = |origin: &[u8]| origin.strip_prefix(b"file:").map(|path| self.cwd.join(OsStr::from_bytes(path)));
        let read = parts(&["config", "--null", "--show-origin", "--name-only", "--list"])?;
        let mut files: Vec<PathBuf> = read.chunks_exact(2).filter_map(|pair| file(&pair[0])).collect();
        let asked = ["config", "--null", "--show-origin", "--type=path", "--get-regexp", r"^include(if\..*)?\.path$"];
        for pair in parts(&asked)?.chunks_exact(2) {
            let Some(origin) = file(&pair[0]) else { continue };
            let value = pair[1].iter().position(|byte| *byte == b'\n').map_or(&b""[..], |at| &pair[1][at + 1..]);
            files.extend(origin.parent().map(|dir| dir.join(OsStr::from_bytes(value))));
        }
        if let Ok(path) = self.path(&["--git-path", "config.worktree"])? {
            files.push(path);
        }
        // Gits before 2.41 know these names not. Their usual places are in the list of the caller.
        for name in ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"] {
            let output = self.output(&["var", name].map(OsStr::new), None)?;
            let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            files.extend(lines.filter(|_| output.status.success()).map(|line| PathBuf::from(OsStr::from_bytes(line))));
        }
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    /// Returns a setting that is a path, with `~` expanded, as the user's own files have it.
    ///
    /// # Errors
    /// As [`UsersGit::settings`].
    pub fn global_path(&self, key: &str) -> Result<Option<PathBuf>> {
        let words = ["config", "--global", "--includes", "--type=path", "--get", key].map(OsStr::new);
        let output = self.output(&words, None)?;
        Ok(output.status.success().then(|| PathBuf::from(line(&output.stdout))))
    }

    /// Returns true if git leaves a path of the work tree out of commits.
    ///
    /// # Errors
    /// When there is no git.
    pub fn is_ignored(&self, path: &Path) -> Result<bool> {
        let words = ["-c", "core.fsmonitor=false", "check-ignore", "--quiet", "--"].map(OsStr::new);
        let words: Vec<&OsStr> = words.into_iter().chain([path.as_os_str()]).collect();
        Ok(self.output(&words, None)?.status.success())
    }

    /// Returns those of some paths that git leaves out of commits, by all rules that count for the user: those of the work tree, of
    /// `info/exclude` and of `core.excludesFile`. The paths are relative to this directory, which is the top. Each begins with `./`,
    /// so that none is taken for a pathspec with magic.
    ///
    /// # Errors
    /// Where git cannot tell; `busy` when it takes longer than `limit`.
    pub(super) fn ignored(&self, paths: &[u8], limit: Duration) -> Result<Vec<u8>> {
        let words = ["-c", "core.fsmonitor=false", "check-ignore", "--stdin", "-z"].map(OsStr::new);
        let output = run_within(&mut self.command(&words), paths, limit)?;
        match output.status.code() {
            // None of them is ignored.
            Some(0 | 1) => Ok(output.stdout),
            _ => Err(self.refused("")),
        }
    }

    /// Returns the directories that a pattern of the work tree or of `info/exclude` leaves out of commits, each without those in it.
    /// The user's own excludes do not count. The paths are relative to this directory, which is the top.
    ///
    /// # Errors
    /// Where git cannot tell.
    pub fn ignored_dirs(&self) -> Result<Vec<Vec<u8>>> {
        let plain = ["-c", "core.fsmonitor=false", "-c", "core.excludesFile=/dev/null"];
        let asked = |words: &[&str], input: Option<&[u8]>| {
            let words: Vec<&OsStr> = plain.iter().chain(words).map(OsStr::new).collect();
            self.output(&words, input)
        };
        let listed = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
        let listed = asked(&listed, None)?;
        if !listed.status.success() {
            return Err(self.refused(&String::from_utf8_lossy(&listed.stderr)));
        }
        let paths = listed.stdout.split_inclusive(|byte| *byte == 0).filter(|path| path.ends_with(b"/\0"));
        let paths: Vec<u8> = paths.flatten().copied().collect();
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        // A directory is listed too if all that it holds now is ignored. A new file there need not be.
        let matched = asked(&["check-ignore", "--no-index", "--stdin", "-z"], Some(&paths))?;
        match matched.status.code() {
            // None of them matches.
            Some(0 | 1) => {}
            _ => return Err(self.refused(&String::from_utf8_lossy(&matched.stderr))),
        }
        let dirs = matched.stdout.split(|byte| *byte == 0).filter_map(|path| path.strip_suffix(b"/"));
        Ok(dirs.map(<[u8]>::to_vec).collect())
    }

    /// Asks for a path; without one, gives git's message.
    fn path(&self, words: &[&str]) -> Result<std::result::Result<PathBuf, String>> {
        let words: Vec<&OsStr> = ["rev-parse"].iter().chain(words).map(OsStr::new).collect();
        let output = self.output(&words, None)?;
        if !output.status.success() {
            return Ok(Err(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        Ok(Ok(self.cwd.join(line(&output.stdout))))
    }

    fn refused(&self, says: &str) -> Error {
        let says = says.trim();
        if says.contains("safe.directory") {
            let what = "the repository belongs to another user, so git refuses to read it";
            return Error::new(Code::Permission, what).path(&self.cwd).hint(
                "run this as the owner, or trust the repository: `git config --global --add safe.directory DIR`",
            );
        }
        if says.contains("not a git repository") {
            return Error::new(Code::BadPath, "there is no git repository here")
                .path(&self.cwd)
                .hint("run this in a repository, or use `--global` for all repositories");
        }
        let says = says.lines().last().unwrap_or("git printed no reason");
        Error::new(Code::Conflict, format!("git says: {}", says.trim_start_matches("fatal: "))).path(&self.cwd)
    }

    fn command(&self, words: &[&OsStr]) -> Command {
        let mut command = Command::new("git");
        command.args(words).current_dir(&self.cwd).env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        ASTRAY.iter().for_each(|name| {
            command.env_remove(name);
        });
        command
    }

    fn output(&self, words: &[&OsStr], input: Option<&[u8]>) -> Result<Output> {
        let mut command = self.command(words);
        if !self.cwd.is_dir() {
            return Err(Error::new(Code::BadPath, "it is not a directory")
                .path(&self.cwd)
                .hint("run this in another directory"));
        }
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(missing)?;
        let (pipe, input) = (child.stdin.take(), input.unwrap_or_default());
        let output = std::thread::scope(|scope| {
            if let Some(mut pipe) = pipe {
                // A git that ends before it has read everything says so by its exit code.
                scope.spawn(move || drop(std::io::Write::write_all(&mut pipe, input)));
            }
            child.wait_with_output()
        });
        output.at("waiting for", "git")
    }
}

/// Returns what git has printed, without the end of its last line.
fn line(text: &[u8]) -> &OsStr {
    OsStr::from_bytes(text.strip_suffix(b"\n").unwrap_or(text))
}

/// Resolves the links of a path, as far as the path exists.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    for dir in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (dir.canonicalize(), path.strip_prefix(dir)) {
            // Joining an empty rest would add a slash.
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_with_settings_are_named() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let git = |args: &[&str]| {
            let done = Command::new("git").current_dir(&root).args(args).output().unwrap();
            assert!(done.status.success(), "{args:?}: {done:?}");
        };
        git(&["init", "-q"]);
        git(&["config", "include.path", "../more"]);
        git(&["config", "includeIf.onbranch:none.path", "other"]);
        std::fs::write(root.join("more"), "[include]\npath = deep/one\n[core]\nignorecase = false\n").unwrap();
        let files = UsersGit::at(&root).config_files().unwrap();
        let real = |path: &Path| {
            path.parent().and_then(|dir| dir.canonicalize().ok()).map(|dir| dir.join(path.file_name().unwrap()))
        };
        let found: Vec<PathBuf> = files.iter().map(|path| real(path).unwrap_or_else(|| path.clone())).collect();
        for name in [".git/config", ".git/config.worktree", ".git/other", "more", "deep/one"] {
            assert!(found.iter().any(|path| path.ends_with(name)), "{name}: {files:?}");
        }
    }
}
