//! The verbs: parse, call, print (rank 6). `docs/CLI.md` has the table of verbs and exit codes.
//!
//! stdout is data, stderr is talk. Nothing is restored without a preview and, on a terminal, a question.

#[macro_use]
mod text;

mod bench;
mod classify;
mod config;
mod context;
mod daemon;
mod demo;
mod doctor;
mod doctor_refs;
mod git;
mod hook;
mod hook_answer;
mod install;
mod look;
mod mcp_proxy;
mod print;
mod remote;
mod report;
mod restore;
mod rollback;
mod runs;
mod scratch;
mod status;
mod verbs;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;

use crate::agents::Client;
use crate::doors::{stdio, stream};
use crate::error::{Code, Error, Result};
use crate::sys::fs::deferred;
use crate::sys::process;
use context::Context;
use verbs::{Cli, SidecarArgs, Verb};

/// Exit codes of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    /// Nothing to do, or not found.
    Nothing = 3,
    /// Done in part: something was kept, or is in conflict.
    Part = 4,
    /// Refused, or there is no terminal to ask on and no `--yes`.
    Refused = 5,
    Damaged = 6,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// A write over the file-size limit is to fail with an error, which is answered as `disk-full`, not to end the process.
fn heed_file_limit() {
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())
        .and_then(|_| signal_hook::flag::register(signal_hook::consts::SIGIO, Arc::default()))
    {
        tracing::warn!(%error, "a file-size limit (ulimit -f) will end piton");
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|verb| verb == "hook") {
        // Clients take a failing hook for a veto: nothing may go wrong aloud from here on, not even the grammar.
        let rest: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
        return hook::hook(&rest).into();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            print::say(error.render().to_string().trim_end());
            return Exit::Usage.into();
        }
        Err(help) => {
            // A closed pipe is nothing to complain about.
            let _ = help.print();
            return Exit::Done.into();
        }
    };
    if is_detached(&cli) {
        process::close_inherited();
    }
    trace();
    heed_file_limit();
    crate::sys::fs::durable::make_private();
    let exit = run(&cli).unwrap_or_else(|error| {
        print::error(&error, cli.json);
        exit_of(&error).into()
    });
    deferred::wait();
    exit
}

/// True for a process that goes on behind the one that started it.
fn is_detached(cli: &Cli) -> bool {
    match &cli.verb {
        Some(Verb::Sidecar(args)) => args.detached,
        Some(Verb::Daemon(args)) => matches!(args.verb, verbs::DaemonVerb::Run { detached: true, .. }),
        _ => false,
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    if let Some(Verb::McpProxy(args)) = &cli.verb {
        return mcp_proxy::proxy(cli, args);
    }
    let mut context = Context::new(cli)?;
    let exit = match &cli.verb {
        None => status::overview(&mut context),
        // It starts without a home too, see above.
        Some(Verb::McpProxy(args)) => return mcp_proxy::proxy(cli, args),
        Some(Verb::Git(args)) => return git::git(&context, args),
        Some(Verb::Env(args)) => git::env(&context, args),
        Some(Verb::Push(args)) => remote::push(&context, args),
        Some(Verb::Fetch(args)) => remote::fetch(&context, args),
        Some(Verb::Sidecar(args)) => serve(&context, args),
        Some(Verb::Daemon(args)) => daemon::daemon(&context, &args.verb),
        // Its own arguments are read before those of all others, see `main`.
        Some(Verb::Hook(args)) => Ok(hook::hook(&args.rest)),
        Some(Verb::Checkpoint(args)) => look::checkpoint(&mut context, args),
        Some(Verb::List(args)) => look::list(&mut context, args),
        Some(Verb::Show(args)) => look::show(&mut context, args),
        Some(Verb::Diff(args)) => look::diff(&mut context, args),
        Some(Verb::Find(args)) => look::find(&mut context, args),
        Some(Verb::Restore(args)) => restore::restore(&mut context, args),
        Some(Verb::Rollback(args)) => rollback::rollback(&mut context, args),
        Some(Verb::Runs(args)) => runs::runs(&mut context, args),
        Some(Verb::Undo(args)) => restore::undo(&mut context, args),
        Some(Verb::Redo(args)) => restore::redo(&mut context, args),
        Some(Verb::Doctor(args)) if args.refs => doctor_refs::doctor(&context, args),
        Some(Verb::Doctor(_)) => doctor::doctor(&context),
        Some(Verb::Status) => status::status(&mut context),
        Some(Verb::Classify(args)) => classify::classify(&mut context, args),
        Some(Verb::Config(args)) => config::config(&mut context, args),
        Some(Verb::Off(args)) => status::off(&mut context, args),
        Some(Verb::On) => status::on(&mut context),
        Some(Verb::Install(args)) => install::install(&context, args),
        Some(Verb::Uninstall(args)) => install::uninstall(&context, args),
        Some(Verb::Bench(args)) => bench::bench(&context, args),
        Some(Verb::Demo(args)) => demo::demo(args),
    };
    exit.map(ExitCode::from)
}

fn serve(context: &Context, args: &SidecarArgs) -> Result<Exit> {
    process::raise_descriptor_limit();
    let options = stdio::Options {
        home: context.home.clone(),
        workspace: context.named_workspace(),
        flags: context.flags.clone(),
        grace: Duration::from_secs(args.grace),
    };
    let ended = match &args.from {
        Some(client) => stream::follow(options, Client::named(client)?, args.tee)?,
        None => stdio::run(options)?,
    };
    Ok(match ended {
        stdio::Ended::Clean => Exit::Done,
        stdio::Ended::Forced => Exit::Interrupted,
    })
}

/// The exit code that an error calls for.
fn exit_of(error: &Error) -> Exit {
    match error.code() {
        Code::NoSuchCheckpoint
        | Code::Pruned
        | Code::NoSuchRun
        | Code::NoSuchCodon
        | Code::NoSuchType
        | Code::WorkspaceGone => Exit::Nothing,
        Code::BadRequest
        | Code::BadPath
        | Code::BadJson
        | Code::BadUtf8
        | Code::LineTooLong
        | Code::UnknownType
        | Code::UnsupportedVersion
        | Code::AmbiguousCheckpoint
        | Code::NotACheckpoint
        | Code::OtherWorkspace => Exit::Usage,
        Code::WorkspaceRefused
        | Code::RollbackInProgress
        | Code::CodonRunning
        | Code::Conflict
        | Code::StaleSelection
        | Code::StalePlan
        | Code::TooLarge => Exit::Refused,
        Code::StoreDamaged | Code::IncompleteCheckpoint => Exit::Damaged,
        Code::PreRestoreFailed
        | Code::StoreLocked
        | Code::NoMemory
        | Code::DiskFull
        | Code::Permission
        | Code::Busy
        | Code::ShuttingDown
        | Code::Internal => Exit::Failed,
    }
}

/// Logs to stderr when `PITON_LOG` says so; warnings always.
fn trace() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("PITON_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    let started = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    // Talk that nobody can be told is dropped: complaining of a closed stderr on stderr would end the thread.
    let started = started.log_internal_errors(false).try_init();
    if let Err(error) = started {
        eprintln!("piton: logging could not be started: {error}");
    }
}
