//! The verb `daemon`: run, start, stop, status.

use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::doors::socket::{self as daemon, Ended, Link, Served};
use crate::error::{Code, Error, Result};
use crate::model::text::count;
use crate::protocol::{DaemonDocument, Greeting, StopDocument};
use crate::sys::process;

/// The arguments of `piton daemon`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct DaemonArgs {
    #[command(subcommand)]
    pub verb: DaemonVerb,
}

/// The actions of `piton daemon`.
#[derive(Debug, Subcommand)]
pub(super) enum DaemonVerb {
    /// Run the daemon until no client has been connected for a while
    Run {
        /// Seconds without a connection until it ends
        #[arg(long, default_value_t = 600, value_name = "SECONDS")]
        idle: u32,
        /// Detach from the terminal first
        #[arg(long)]
        detached: bool,
    },
    /// Start the daemon, if it is not running
    Start,
    /// Stop the daemon after it has finished its current work
    Stop,
    /// Show whether the daemon is running
    Status,
}

/// The time that a daemon may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(20);

/// The time after which another one is started: the first may have found the lock of one that was about to end.
const ONCE_MORE: Duration = Duration::from_secs(5);

/// The pause between two looks whether it greets.
const RETRY: Duration = Duration::from_millis(5);

/// Runs, starts or stops the daemon, or tells its state.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn daemon(context: &Context, verb: &DaemonVerb) -> Result<Exit> {
    match verb {
        DaemonVerb::Run { idle, detached } => {
            if *detached {
                process::leave_session();
            }
            process::raise_descriptor_limit();
            Ok(match daemon::run(&context.home, Duration::from_secs(u64::from(*idle)))? {
                Ended::Clean => Exit::Done,
                Ended::Served if context.json => {
                    tell(context, greeting(context, false)?.as_ref())?;
                    Exit::Nothing
                }
                Ended::Served => {
                    print::say("piton: a daemon for this home is already running");
                    Exit::Nothing
                }
                Ended::Forced => Exit::Interrupted,
            })
        }
        DaemonVerb::Start => start(context),
        DaemonVerb::Stop => stop(context),
        DaemonVerb::Status => status(context),
    }
}

fn greeting(context: &Context, begin: bool) -> Result<Option<Greeting>> {
    Ok(Link::daemon(&context.home, begin)?.and_then(|link| match link.served() {
        Served::Daemon(greeting) => Some(greeting.clone()),
        Served::Alone => None,
    }))
}

fn start(context: &Context) -> Result<Exit> {
    let until = Instant::now() + PATIENCE;
    let mut begun: Option<Instant> = None;
    loop {
        // Not one process for each look: what is slow to start would still come when the daemon has been stopped again.
        let begin = begun.is_none_or(|begun| begun.elapsed() >= ONCE_MORE);
        if let Some(greeting) = greeting(context, begin)? {
            return tell(context, Some(&greeting));
        }
        if begin {
            begun = Some(Instant::now());
        }
        std::thread::sleep(RETRY);
        if Instant::now() >= until {
            let log = daemon::dir(&context.home).join("log");
            return Err(Error::new(Code::Busy, "the daemon was started but does not answer")
                .path(&log)
                .hint("its log says why; hooks work without the daemon, but slower"));
        }
    }
}

fn stop(context: &Context) -> Result<Exit> {
    let Some(stopped) = end_running(context)? else {
        match context.json {
            true => print::json(&StopDocument { stopped: None })?,
            false => print::say("piton: no daemon is running"),
        }
        return Ok(Exit::Nothing);
    };
    if context.json {
        print::json(&StopDocument { stopped: Some(stopped) })?;
    } else {
        print::data(&ended(stopped))?;
    }
    Ok(Exit::Done)
}

/// Has the daemon end, if one runs, and returns its process id.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn end_running(context: &Context) -> Result<Option<i32>> {
    let Some(running) = greeting(context, false)? else { return Ok(None) };
    process::ask_to_end(running.pid)?;
    // The lock is free once all that was begun is done.
    let lock = daemon::dir(&context.home).join("lock");
    crate::sys::fs::lock::FileLock::acquire(&lock, crate::sys::fs::lock::Mode::Exclusive, "stopping", PATIENCE)?;
    Ok(Some(running.pid))
}

/// Says that the daemon has ended.
pub(super) fn ended(pid: i32) -> String {
    format!("The daemon (pid {pid}) has ended.\n")
}

fn status(context: &Context) -> Result<Exit> {
    let running = greeting(context, false)?;
    tell(context, running.as_ref())
}

fn tell(context: &Context, running: Option<&Greeting>) -> Result<Exit> {
    if context.json {
        print::json(&DaemonDocument { daemon: running.cloned() })?;
    } else {
        print::data(&match running {
            None => "No daemon is running; the next hook starts one.\n".to_owned(),
            Some(greeting) => format!(
                "A daemon (pid {}) has been running since {}, with {}.\n",
                greeting.pid,
                print::local_time(&greeting.since),
                // This question is one of them.
                count(greeting.clients.saturating_sub(1) as u64, "other client"),
            ),
        })?;
    }
    Ok(if running.is_some() { Exit::Done } else { Exit::Nothing })
}
