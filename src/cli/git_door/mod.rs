//! The verb `git-door`, which git's own hooks call: before a command destroys files of the work tree, before refs move, and before
//! something is pushed (`docs/GIT.md`).
//!
//! `core.fsmonitor` is asked by nearly every git command, so the answer to a harmless one comes from the command line of git's
//! process alone. It is "everything may have changed", which is always right, unless the settings want the changed paths (`answer`).

mod answer;
mod caller;
mod calls;
mod told;

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use self::caller::GitCaller;
use self::calls::CallMark;
use self::told::{GitAnswer, GitCommand};
use super::print;
use crate::checkpoint::Home;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::unguarded::{self, UnguardedCommand};
use crate::error::Error;
use crate::model::repository::REMOTES;
use crate::sys::child::close_stdout;
use crate::sys::process::{ask_to_end, exists};
use crate::sys::processes::ProcessId;

/// The file with the values that were fetched last.
const FETCH_HEAD: &str = "FETCH_HEAD";

/// The beginning of the names of marks, in the directory of temporary files: each tells that a git has heard of a failure.
const FAILED: &str = "piton-git-failed-";

/// The exit code by which a hook refuses.
const REFUSED: u8 = 1;

/// The most bytes that are read of a hook's input.
const MAX_INPUT: u64 = 16 << 20;

/// Answers a hook of git.
pub(super) fn git_door(arguments: &[String]) -> ExitCode {
    crate::sys::fs::durable::make_private();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["fsmonitor", "2", token] => before_files(token),
        // An older protocol: git looks at everything by itself.
        ["fsmonitor", ..] => REFUSED.into(),
        ["reference-transaction", "prepared"] => before_refs(),
        ["reference-transaction", _state] => ExitCode::SUCCESS,
        ["pre-push", remote, ..] => before_push(remote),
        ["behind", rest @ ..] => {
            told::wait(rest);
            ExitCode::SUCCESS
        }
        _ => {
            print::say("piton: `piton git-door` is called by git's hooks (`piton install git`, docs/GIT.md)");
            super::exit::Exit::Usage.into()
        }
    }
}

/// Returns the command that has called this hook, unless it certainly destroys nothing, or has told already. `moves_own` is true if it
/// moves refs that are not those of a remote.
fn command(moves_own: bool) -> Option<GitCommand> {
    let caller = GitCaller::of_loud(moves_own)?;
    if Home::place().is_ok_and(|home| CallMark::of(&home, &caller.id).is_set()) {
        return None;
    }
    // git runs its hooks at the top of the work tree, or in the directory of a repository without one.
    let top = std::env::current_dir().and_then(|dir| dir.canonicalize()).ok()?;
    Some(GitCommand::new(caller, top))
}

/// git is about to look at the work tree, which is the first thing of each command that rewrites it.
fn before_files(token: &str) -> ExitCode {
    // A git that only reads is no part of an earlier command, told or not.
    if !caller::line().is_some_and(|line| line.is_reading() && line.is_quiet()) {
        told::settle();
    }
    let refused = command(false).and_then(|command| {
        let answer = command.told().unwrap_or_else(|error| failed("fsmonitor", &error));
        matches!(answer, GitAnswer::Refused).then_some(command)
    });
    if let Some(command) = refused {
        // git takes no refusal here. It holds no lock that it would leave, and ends as if its person had stopped it.
        for pid in command.pids() {
            // The outer one may have ended with the inner one.
            if let Err(error) = ask_to_end(pid)
                && exists(pid.unsigned_abs())
            {
                print::say(&format!("piton: could not stop git: {}", error.text()));
            }
        }
    }
    // git that was stopped reads no answer.
    let _ = print::data(&answer::to_git(token));
    // git waits for the end of the answer.
    let _ = close_stdout();
    ExitCode::SUCCESS
}

/// git is about to move refs.
fn before_refs() -> ExitCode {
    let moves_own = moves_own(&drain());
    told::settle();
    match command(moves_own)
        .map(|command| command.told().unwrap_or_else(|error| failed("reference-transaction", &error)))
    {
        Some(GitAnswer::Refused) => REFUSED.into(),
        Some(GitAnswer::GoesOn) | None => ExitCode::SUCCESS,
    }
}

/// Returns true if one of the refs in a hook's input is not of a remote. Each line has the old value, the new one and the name.
fn moves_own(input: &str) -> bool {
    let names = input.lines().filter_map(|line| line.splitn(3, ' ').nth(2));
    names.into_iter().any(|name| !name.as_bytes().starts_with(REMOTES) && name != FETCH_HEAD)
}

/// git is about to push.
fn before_push(remote: &str) -> ExitCode {
    let input = drain();
    let Some(caller) = GitCaller::find() else { return ExitCode::SUCCESS };
    let Ok(top) = std::env::current_dir() else { return ExitCode::SUCCESS };
    let forced = told::forced(&input);
    if forced.is_empty() {
        return ExitCode::SUCCESS;
    }
    let command = GitCommand::new(caller, top);
    match command.told_of_push(remote, &forced).unwrap_or_else(|error| failed("pre-push", &error)) {
        GitAnswer::Refused => REFUSED.into(),
        GitAnswer::GoesOn => ExitCode::SUCCESS,
    }
}

/// Returns the input of a hook. git fails where a hook does not read it.
fn drain() -> String {
    let mut input = Vec::new();
    // Input that cannot be read is not judged; git goes on.
    let _ = std::io::stdin().take(MAX_INPUT).read_to_end(&mut input);
    String::from_utf8_lossy(&input).into_owned()
}

/// Says what went wrong, once for each git, and keeps it for `piton status`: git goes on.
fn failed(event: &str, error: &Error) -> GitAnswer {
    if is_news() {
        print::say(&format!("piton: nothing was saved before this git command: {}", error.text()));
        let command = UnguardedCommand {
            cwd: std::env::current_dir().ok(), // git starts its hooks at the top
            command: format!("git {event}"),
            why: error.text(),
            is_told: false,
        };
        if let Err(error) = unguarded::keep_unplaced(command) {
            tracing::warn!(%error, "an unguarded command of git could not be kept");
        }
    }
    let kept = Home::locate().and_then(|home| mishaps::note_once(&home, &format!("git {event}: {}", error.text())));
    if let Err(error) = kept {
        tracing::warn!(%error, "could not record a mishap");
    }
    GitAnswer::GoesOn
}

/// Returns true for the first failure of a git. Where piton's home cannot be written, no call is marked, and each hook fails anew.
fn is_news() -> bool {
    let Some(caller) = GitCaller::find() else { return true };
    let mark = std::env::temp_dir().join(format!("{FAILED}{}", caller.id.key()));
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(mark);
    let is_news = !made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists);
    if is_news {
        sweep();
    }
    is_news
}

/// Removes the marks of failures whose gits have ended.
fn sweep() {
    let dir = std::env::temp_dir();
    // Marks that cannot be listed or removed go with the temporary directory.
    let Ok(listing) = std::fs::read_dir(&dir) else { return };
    for name in listing.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        let Some(key) = name.strip_prefix(FAILED) else { continue };
        // One of another container may run still.
        if ProcessId::of_key(key).is_none_or(|process| process.is_alive() == Some(false)) {
            // Another process may have removed it.
            let _ = std::fs::remove_file(dir.join(&name));
        }
    }
}

/// Returns the directory of a call, by its real name.
fn real(dir: PathBuf) -> PathBuf {
    dir.canonicalize().unwrap_or(dir)
}
