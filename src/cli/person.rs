//! Refuses to a session of an agent what it could not undo: verbs that take saved content away for good, and settings of the command
//! line that keep or guard less.

use std::ffi::OsString;
use std::path::Path;

use super::context::{Context, GlobalArgs, flags};
use super::run::RUN;
use crate::agents::within::{ListedProcess, is_in_session};
use crate::error::{Code, Error, Result};
use crate::model::text::{shell_line, shell_word};
use crate::settings;
use crate::sys::clock::wall_clock_offset;
use crate::sys::processes::{ProcessId, above, program, session_leader, words};

/// The most processes above this one that are looked at.
const DEEPEST: usize = 64;

/// Returns true if this process was started in the session of an agent, or by an agent of `piton run`.
pub(super) fn is_agents() -> bool {
    let own = std::process::id();
    is_marked() || above(own, DEEPEST).into_iter().chain(session_leader(own)).any(is_client)
}

/// Returns the start of the agent's session in which this process was started, in nanoseconds since 1970; `None` outside of all
/// sessions. Where only a variable marks the session, the outermost process that can be seen is older than it, or as old.
pub(super) fn session_start() -> Option<i64> {
    let own = std::process::id();
    let around: Vec<u32> = above(own, DEEPEST).into_iter().chain(session_leader(own)).collect();
    let clients: Vec<u32> = around.iter().copied().filter(|pid| is_client(*pid)).collect();
    if clients.is_empty() && !is_marked() {
        return None;
    }
    let start =
        |pid: u32| ProcessId::of(pid).map(|id| id.started_between().start().saturating_add(wall_clock_offset()));
    let outermost = if clients.is_empty() { around } else { clients };
    // Without any start, every file counts as younger.
    Some(outermost.into_iter().filter_map(start).min().unwrap_or(0))
}

/// Returns true if a variable marks the session of an agent.
fn is_marked() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set(RUN) || is_in_session(&is_set, std::iter::empty())
}

fn is_client(pid: u32) -> bool {
    let process = ListedProcess { words: words(pid), program: program(pid) };
    is_in_session(&|_| false, std::iter::once(process))
}

/// Refuses a command in a session of an agent. `what` is the reason, as in `forgotten content cannot be restored`.
///
/// # Errors
/// `needs-person`, with the line that a person types.
pub(super) fn require(what: &str) -> Result<()> {
    if !is_agents() {
        return Ok(());
    }
    let cwd = std::env::current_dir().ok().map(|cwd| format!("cd {} && ", shell_word(&cwd.to_string_lossy())));
    let home = std::env::var("PITON_HOME").ok().map(|home| format!("PITON_HOME={} ", shell_word(&home)));
    let line = shell_line(line(std::env::args_os().skip(1)));
    let line = [cwd.unwrap_or_default(), home.unwrap_or_default(), line].concat();
    Err(Error::new(Code::NeedsPerson, format!("refused in an agent's session: {what}; nothing was changed"))
        .hint(format!("to do it anyway, a person can run this in their own terminal: `{line}`")))
}

/// Refuses settings of the command line that guard or keep less than those of the files, in a session of an agent. A setting that
/// is wrong is left to the verb.
///
/// # Errors
/// `needs-person`; the errors of reading the settings.
pub(super) fn refuse_narrower(global: &GlobalArgs) -> Result<()> {
    if global.set.is_empty() || !is_agents() {
        return Ok(());
    }
    let flags = flags(global)?;
    // Some verbs run without piton's own directory. No settings of a workspace are trusted then.
    let context = Context::new(global).ok();
    let home = context.as_ref().map_or(Path::new("/nonexistent"), |context| context.home.path());
    let root = context.as_ref().and_then(|context| context.root().ok());
    let kept = settings::load(root.as_deref(), home, &[])?;
    let typed = settings::load(root.as_deref(), home, &flags)?;
    match settings::narrower(&kept, &typed) {
        None => Ok(()),
        Some(key) => require(&format!("this value of `{key}` would guard or keep less than the settings do")),
    }
}

/// Returns the words of a command for a person: without the agreement, and without a secret.
fn line(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = vec![OsString::from("piton")];
    let (mut is_secret, mut is_path) = (false, false);
    for arg in args {
        let text = arg.to_string_lossy();
        // Of the letters of `-yw`, the others stay.
        let bundle = text.strip_prefix("-y").filter(|rest| rest.bytes().all(|byte| byte.is_ascii_alphabetic()));
        match text.as_ref() {
            _ if is_path => words.push(arg),
            _ if std::mem::take(&mut is_secret) => words.push("-".into()),
            "--yes" | "-y" => {}
            _ if text.starts_with("--secret=") => words.push("--secret=-".into()),
            _ if bundle.is_some() => words.push(format!("-{}", bundle.unwrap_or_default()).into()),
            _ => {
                (is_secret, is_path) = (text == "--secret", text == "--");
                words.push(arg);
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_for_a_person_has_neither_the_agreement_nor_a_secret() {
        let lines = [
            ("forget a b --yes", "piton forget a b"),
            ("-w /x delete 3 -y", "piton -w /x delete 3"),
            ("forget --secret hush --yes", "piton forget --secret -"),
            ("forget --secret=hush", "piton forget --secret=-"),
            ("forget -yw x a -- -y", "piton forget -w x a -- -y"),
        ];
        for (typed, shown) in lines {
            assert_eq!(shell_line(line(typed.split(' ').map(OsString::from))), shown);
        }
    }
}
