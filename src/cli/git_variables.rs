//! The git door by variables alone: for an agent of `piton run`, and for clients whose hooks may set variables of their commands. No
//! file of git is touched. Beside them is the mark of the session, and the guard of the lines that a person types in Claude Code.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::announced;
use super::install::git_hook_link::variables_program;
use super::install::program;
use crate::agents::within::SESSION;
use crate::agents::{Client, Decision, Event, EventKind};
use crate::checkpoint::Home;
use crate::error::{IoContext, Result};
use crate::git::door::variables::variables;
use crate::git::door::{KEY, program_of, value};
use crate::git::sh;
use crate::git::users::{UsersFiles, UsersGit};
use crate::sys::process::may_run;

/// The variable by which Claude Code names a file that its shells read before each command.
const CLAUDE_FILE: &str = "CLAUDE_ENV_FILE";

/// The line of its shells before each command, which guards those of a person: `piton shell` knows the commands of the agent.
const LINES_GUARD: &str = include_str!("../../hooks/shell/claude-code.sh");

/// The hook by which opencode asks for the variables of a shell.
const OPENCODE_EVENT: &str = "shell.env";

/// Returns the variables by which the git of commands in a directory asks piton. None where git is told already what to ask: by a
/// person, or by piton's own setting.
pub(super) fn git_variables(dir: &Path) -> Vec<(String, OsString)> {
    // Without a git, or with files that it cannot read, there is nothing to guard.
    let Ok(values) = UsersGit::at(dir).settings(KEY, UsersFiles::All) else { return Vec::new() };
    let is_gone = |program: OsString| !may_run(Path::new(&program));
    if values.last().is_some_and(|last| !program_of(&last.value).is_some_and(is_gone)) {
        return Vec::new();
    }
    let Ok(program) = program() else { return Vec::new() };
    let small = Home::locate().and_then(|home| variables_program(&home, &program)).unwrap_or_else(|error| {
        tracing::debug!(%error, "git will start piton itself each time");
        None
    });
    let value = value(OsStr::new(&program), small.as_ref().map(|path| path.as_os_str()));
    variables(value, &|name| std::env::var_os(name)).map(Vec::from).unwrap_or_default()
}

/// Gives a client's commands the git door, and the mark of an agent's session, if this event is the one for that.
///
/// # Errors
/// I/O errors of the client's file.
pub(super) fn give(name: &str, event: &Event, decision: &mut Decision) -> Result<()> {
    let dir = || event.cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    match event.client {
        Client::Opencode if name == OPENCODE_EVENT => {
            let texts =
                git_variables(&dir()).into_iter().filter_map(|(name, text)| Some((name, text.into_string().ok()?)));
            decision.variables = texts.collect();
            Ok(())
        }
        Client::ClaudeCode => {
            announced::note(&Home::place()?, event)?;
            let file = std::env::var_os(CLAUDE_FILE).filter(|file| !file.is_empty()).map(PathBuf::from);
            match file.filter(|_| event.kind == EventKind::SessionStart) {
                Some(file) => {
                    let mark = (SESSION.to_owned(), event.client.name().into());
                    append(&file, &export(git_variables(&dir()).into_iter().chain([mark])))?;
                    append(&file, &lines_guard(&program()?))
                }
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Returns the line of a shell that sets variables.
fn export(variables: impl Iterator<Item = (String, OsString)>) -> Vec<u8> {
    let words = variables.flat_map(|(name, text)| [b" ", name.as_bytes(), b"=", sh(&text).as_slice()].concat());
    b"export".iter().copied().chain(words).chain(*b"\n").collect()
}

/// Returns the line of a shell of Claude Code that guards what a person types there.
fn lines_guard(program: &str) -> Vec<u8> {
    let quoted = String::from_utf8_lossy(&sh(OsStr::new(program))).into_owned();
    LINES_GUARD.replace("'@PROGRAM@'", &quoted).into_bytes()
}

/// Adds a line for a shell to a file, once.
fn append(file: &Path, line: &[u8]) -> Result<()> {
    let mut opened = OpenOptions::new().read(true).append(true).create(true).open(file).at("opening", file)?;
    let mut there = Vec::new();
    opened.rewind().and_then(|()| opened.read_to_end(&mut there)).at("reading", file)?;
    if there.split_inclusive(|byte| *byte == b'\n').any(|one| one == line) {
        return Ok(());
    }
    let start: &[u8] = if there.is_empty() || there.ends_with(b"\n") { b"" } else { b"\n" };
    opened.write_all(&[start, line].concat()).at("writing", file)
}
