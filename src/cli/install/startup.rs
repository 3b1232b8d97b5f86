//! The startup files of shells: where each one looks for them, and piton's lines in them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::client_file::ClientFile;
use super::place::{home, on_path, variable};
use crate::error::{Code, Error, Result};
use crate::git;
use crate::shell::HookedShell;
use crate::shell::line::{SetupLine, setup_line, setup_lines, with_line, without_line};
use crate::shell::zdotdir::{ZDOTDIR, assigned};
use crate::sys::etc::etc;
use crate::sys::process::may_run;

/// The startup files of one shell.
pub(crate) struct StartupFiles {
    pub(crate) shell: HookedShell,
    /// The file that the shell reads each time.
    main: PathBuf,
    /// Further files that people have in use, in which a line counts as well.
    further: Vec<PathBuf>,
    /// A directory of files that the shell reads too.
    directory: Option<PathBuf>,
    /// A file that the shell would read with other settings: a line may be left in it from before.
    pub(super) unread: Option<PathBuf>,
}

impl StartupFiles {
    /// Returns those of a shell.
    ///
    /// # Errors
    /// `bad-path` where no home directory is known, or only zsh itself can tell where it looks.
    pub(crate) fn of(shell: HookedShell) -> Result<StartupFiles> {
        let home = home()?;
        Ok(match shell {
            HookedShell::Bash => StartupFiles {
                shell,
                main: home.join(".bashrc"),
                further: [vec![home.join(".bash_aliases")], listed(&home.join(".bashrc.d"), None)].concat(),
                directory: None,
                unread: None,
            },
            HookedShell::Zsh => {
                let main = zdotdir(&home)?.join(".zshrc");
                let unread = Some(home.join(".zshrc")).filter(|path| *path != main);
                StartupFiles { shell, main, further: Vec::new(), directory: None, unread }
            }
            HookedShell::Fish => {
                let config = variable("XDG_CONFIG_HOME").filter(|dir| dir.is_absolute());
                let dir = config.unwrap_or_else(|| home.join(".config")).join("fish");
                let directory = dir.join("conf.d");
                let further = listed(&directory, Some("fish"));
                StartupFiles { shell, main: dir.join("config.fish"), further, directory: Some(directory), unread: None }
            }
        })
    }

    /// Returns true if the shell has a startup file here.
    pub(crate) fn is_there(&self) -> bool {
        self.main.symlink_metadata().is_ok() || self.directory.as_ref().is_some_and(|dir| dir.is_dir())
    }

    /// Returns all of them.
    pub(super) fn all(&self) -> Vec<PathBuf> {
        [vec![self.main.clone()], self.further.clone()].concat()
    }

    /// Returns the file in which a line is, or is to be. fish reads a directory of files as well: there goes the line where its
    /// main file cannot be written, or the directory is all there is.
    pub(crate) fn place(&self) -> Result<PathBuf> {
        if let Some((path, _)) = self.lines()?.into_iter().next() {
            return Ok(path);
        }
        let main = || ClientFile::read_bytes(&self.main).map(|file| file.bytes().is_some() && !file.is_read_only());
        match &self.directory {
            Some(directory) if directory.is_dir() && !main()? => Ok(directory.join("piton.fish")),
            _ => Ok(self.main.clone()),
        }
    }

    /// Returns the lines that ask piton, each with its file.
    ///
    /// # Errors
    /// As [`ClientFile::read_bytes`].
    pub(crate) fn lines(&self) -> Result<Vec<(PathBuf, SetupLine)>> {
        let mut found = Vec::new();
        for path in self.all() {
            let file = match ClientFile::read_bytes(&path) {
                // There is no line in a link that leads nowhere, or in what is no file.
                Err(error) if path != self.main || error.code() == Code::BadPath => continue,
                read => read?,
            };
            let lines = setup_lines(self.shell, file.bytes().unwrap_or_default());
            found.extend(lines.into_iter().map(|line| (path.clone(), line)));
        }
        Ok(found)
    }

    /// Returns a word as the shell takes it.
    pub(super) fn quoted(&self, word: &str) -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
        if word.chars().all(is_plain) {
            return word.to_owned();
        }
        let bytes = match self.shell {
            HookedShell::Fish => git::fish(OsStr::new(word)),
            HookedShell::Bash | HookedShell::Zsh => git::sh(OsStr::new(word)),
        };
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the line; `word` is quoted.
    pub(super) fn line(&self, word: &str) -> String {
        setup_line(self.shell, word)
    }

    /// Returns true if a line in the text of a file asks piton.
    pub(super) fn has_line(&self, text: &[u8]) -> bool {
        !setup_lines(self.shell, text).is_empty()
    }

    /// Returns the text of a file with the line.
    pub(super) fn with_line(&self, word: &str, text: &[u8]) -> Vec<u8> {
        with_line(self.shell, word, text, &|program| called(program).is_err())
    }

    /// Returns the text of a file without piton's own lines.
    pub(super) fn without_line(&self, text: &[u8]) -> Vec<u8> {
        without_line(self.shell, text)
    }
}

/// Returns the program that a line calls, or `None` where only the shell can work out which.
///
/// # Errors
/// `bad-path` where it is missing, or cannot be run.
pub(crate) fn called(program: &str) -> Result<Option<PathBuf>> {
    let missing = |what: &str| Error::new(Code::BadPath, what.to_owned()).hint("it was moved or deleted");
    let below_home = program.strip_prefix("~/").or(program.strip_prefix("$HOME/")).or(program.strip_prefix("${HOME}/"));
    let path = match below_home {
        Some(below) => home()?.join(below),
        None if program.contains(['$', '~', '`']) => return Ok(None),
        None if program.contains('/') => PathBuf::from(program),
        None => {
            let found = on_path(program).find(|path| may_run(path));
            let what = format!("it calls `{program}`, which is not on the PATH");
            return found.map(Some).ok_or_else(|| missing(&what));
        }
    };
    if path.is_file() && may_run(&path) {
        return Ok(Some(path));
    }
    Err(missing(&format!("it calls {}, which does not exist or cannot be run", path.display())))
}

/// Returns the directory of zsh's files: as the environment says, else as a `.zshenv` says.
fn zdotdir(home: &Path) -> Result<PathBuf> {
    // Below `piton run`, the variable is piton's own, and another one has the user's.
    let named = if variable("PITON_RUN").is_some() { "PITON_ZDOTDIR" } else { ZDOTDIR };
    if let Some(dir) = variable(named) {
        return Ok(dir);
    }
    // The later one has the last word.
    for path in [home.join(".zshenv"), etc().join("zsh/zshenv"), etc().join("zshenv")] {
        let Ok(text) = std::fs::read(&path) else { continue };
        let value = |name: &str| match name {
            "HOME" => home.to_str().map(str::to_owned),
            _ => std::env::var(name).ok(),
        };
        match assigned(&String::from_utf8_lossy(&text), &value) {
            Ok(None) => {}
            Ok(Some(dir)) => return Ok(PathBuf::from(OsStr::from_bytes(dir.as_bytes()))),
            Err(value) => {
                let what =
                    format!("piton cannot tell where zsh's startup files are, because {ZDOTDIR} is set to `{value}`");
                return Err(Error::new(Code::BadPath, what)
                    .path(&path)
                    .hint(format!("set {ZDOTDIR} in the environment, then run piton again")));
            }
        }
    }
    Ok(home.to_owned())
}

/// Returns the files in a directory, by their names.
fn listed(dir: &Path, extension: Option<&str>) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let is_read = |path: &PathBuf| extension.is_none_or(|wanted| path.extension().is_some_and(|own| own == wanted));
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file() && is_read(path)).collect();
    found.sort();
    found
}
