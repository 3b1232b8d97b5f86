//! An ordinary git, run on repositories of piton's own: views of a workspace, and quarantines of what was fetched (rank 2).
//!
//! No checkpoint and no restore needs it; `piton git`, `push` and `fetch` do. *Invariant:* no repository of the user is named to
//! it, and nothing of the caller's `GIT_*` reaches it, but for what concerns the way to a server and only on that way. [`users`] is
//! apart from that: the user's own git, asked about settings and paths. [`door`] has the texts by which git asks piton.

pub mod door;
pub mod index_lock;
pub mod line;
mod quiet;
mod quote;
pub mod ref_moves;
mod ref_table;
pub mod transfer;
pub mod uncommitted;
pub mod user_objects;
pub mod user_repository;
mod user_stash;
pub mod users;
mod verbs;

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub use quote::{config_value, fish, sh};
pub use verbs::{Asked, RefusedLine, judge, needs_index};

use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::durable::with_callers_umask;

/// Settings that hold whatever any configuration says.
const ISOLATED: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("core.fsmonitor", "false"),
    // A format may ask for signatures: `log --format=%G?`.
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("core.autocrlf", "false"),
    ("core.logAllRefUpdates", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("push.followTags", "false"),
    ("push.recurseSubmodules", "no"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.prune", "false"),
    ("fetch.writeCommitGraph", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

/// Variables of the caller that say how a server is reached, and where the user's own configuration is.
const ON_THE_WAY: &[&str] = &[
    "GIT_ALLOW_PROTOCOL",
    "GIT_ASKPASS",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_HTTP_LOW_SPEED_LIMIT",
    "GIT_HTTP_LOW_SPEED_TIME",
    "GIT_HTTP_USER_AGENT",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_PROXY_COMMAND",
    "GIT_PROXY_SSL_CAINFO",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "GIT_SSL_CERT",
    "GIT_SSL_KEY",
    "GIT_SSL_NO_VERIFY",
    "GIT_TERMINAL_PROMPT",
];

/// The distance that a git goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GitReach {
    /// It stays here: no configuration but the repository's own and ours.
    Here,
    /// To a server: credential helpers, ssh and proxies of the user work, and so the user's configuration is read.
    Server,
}

/// Returns a git on a repository of piton's, with further settings that win over all configuration.
pub fn command(git_dir: &Path, work_tree: Option<&Path>, reach: GitReach, settings: &[(&str, &str)]) -> Command {
    let settings = settings.iter().map(|(key, value)| (OsStr::new(*key), OsStr::new(*value)));
    isolated(git_dir, work_tree, reach, settings)
}

/// As [`command`], with settings whose names need not be text.
fn isolated<'s>(
    git_dir: &Path,
    work_tree: Option<&Path>,
    reach: GitReach,
    settings: impl Iterator<Item = (&'s OsStr, &'s OsStr)>,
) -> Command {
    let mut command = Command::new("git");
    let caller: Vec<OsString> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in caller.iter().filter(|name| is_scrubbed(name, reach)) {
        command.env_remove(name);
    }
    command.env("GIT_DIR", git_dir);
    if let Some(work_tree) = work_tree {
        command.env("GIT_WORK_TREE", work_tree);
    }
    if reach == GitReach::Here {
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    }
    let own = ISOLATED.iter().map(|(key, value)| (OsStr::new(*key), OsStr::new(*value)));
    let mut count = 0;
    for (key, value) in own.chain(settings) {
        command.env(format!("GIT_CONFIG_KEY_{count}"), key).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    command.env("GIT_CONFIG_COUNT", count.to_string());
    command
}

fn is_scrubbed(name: &OsStr, reach: GitReach) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("GIT_") && !(reach == GitReach::Server && ON_THE_WAY.contains(&name.as_ref()))
}

/// Becomes that git: standard streams, terminal and exit code are its own. Comes back only with an error.
pub fn become_it(mut command: Command) -> Error {
    missing(with_callers_umask(|| command.exec()))
}

/// Runs it, its talk going where the command says, else to stderr; gives what it printed, and whether it succeeded.
///
/// # Errors
/// When there is no git.
pub fn run(command: &mut Command, input: Option<&[u8]>) -> Result<(Vec<u8>, bool)> {
    let output = output(command, input)?;
    Ok((output.stdout, output.status.success()))
}

/// Runs it, and ends it when its time is over; what it says goes nowhere.
///
/// # Errors
/// When there is no git; `busy` when it has taken longer.
pub fn run_within(command: &mut Command, input: &[u8], limit: Duration) -> Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(missing)?;
    if let Some(mut pipe) = child.stdin.take() {
        let input = input.to_vec();
        // A git that ends before it has read everything says so by its exit code.
        std::thread::spawn(move || drop(pipe.write_all(&input)));
    }
    let (sender, receiver) = std::sync::mpsc::channel();
    if let Some(mut pipe) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut printed = Vec::new();
            let read = pipe.read_to_end(&mut printed).map(|_| printed);
            // Nobody waits for it when the time is over.
            drop(sender.send(read));
        });
    }
    let printed = receiver.recv_timeout(limit);
    if printed.is_err() {
        // It has ended already where this fails.
        drop(child.kill());
    }
    let status = child.wait().at("waiting for", "git")?;
    match printed {
        Ok(printed) => Ok(Output { status, stdout: printed.at("reading from", "git")?, stderr: Vec::new() }),
        Err(_) => Err(Error::new(Code::Busy, format!("git has taken longer than {} ms", limit.as_millis()))),
    }
}

/// As [`run`], with all that it said.
fn output(command: &mut Command, input: Option<&[u8]>) -> Result<Output> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::inherit() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).spawn().map_err(missing)?;
    let (pipe, input) = (child.stdin.take(), input.unwrap_or_default());
    let output = std::thread::scope(|scope| {
        if let Some(mut pipe) = pipe {
            // A git that ends before it has read everything says so by its exit code.
            scope.spawn(move || drop(pipe.write_all(input)));
        }
        child.wait_with_output()
    });
    output.at("waiting for", "git")
}

/// Runs it; what it prints, if it succeeded.
///
/// # Errors
/// When there is no git; `internal` when it failed.
pub fn printed(command: &mut Command, input: Option<&[u8]>) -> Result<Vec<u8>> {
    match run(command, input)? {
        (text, true) => Ok(text),
        (_, false) => {
            let verb = command.get_args().next().unwrap_or_default().to_string_lossy().into_owned();
            Err(Error::new(Code::Internal, format!("`git {verb}` failed")).hint("its message is above"))
        }
    }
}

fn missing(error: std::io::Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return Error::new(Code::Internal, "there is no `git` on the PATH")
            .hint("install git 2.32 or later; the other commands of piton work without it");
    }
    Error::io(error, "starting", Path::new("git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_that_takes_too_long_is_ended() {
        let mut slow = Command::new("sh");
        slow.args(["-c", "printf begun; exec sleep 1000"]);
        let error = run_within(&mut slow, b"", Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.code(), Code::Busy);
        let mut quick = Command::new("sh");
        quick.args(["-c", "cat; exit 1"]);
        let long = vec![b'x'; 1 << 20];
        let output = run_within(&mut quick, &long, Duration::from_mins(1)).unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(1), long));
    }

    #[test]
    fn what_leads_to_a_server_is_kept_on_the_way_there_only() {
        for (name, here, server) in [
            ("GIT_DIR", true, true),
            ("GIT_CONFIG_PARAMETERS", true, true),
            ("GIT_CONFIG_COUNT", true, true),
            ("GIT_EXTERNAL_DIFF", true, true),
            ("GIT_SSH_COMMAND", true, false),
            ("GIT_CONFIG_GLOBAL", true, false),
            ("SSH_AUTH_SOCK", false, false),
            ("PATH", false, false),
        ] {
            assert_eq!(is_scrubbed(OsStr::new(name), GitReach::Here), here, "{name}");
            assert_eq!(is_scrubbed(OsStr::new(name), GitReach::Server), server, "{name}");
        }
    }
}
