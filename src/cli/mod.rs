//! The verbs: parse, call, print (rank 6). `docs/CLI.md` lists the verbs, `docs/TEAMS.md` the exit codes.
//!
//! stdout is data, stderr is talk. Nothing is restored without a preview and, on a terminal, a question.

#[macro_use]
mod text;

mod adopt;
mod announced;
mod at_work;
mod checkpoint;
mod choose;
mod classify;
mod completion;
mod config;
mod confirm;
mod context;
mod daemon;
mod deleted;
mod demo;
mod diff;
mod doctor;
mod env;
mod exit;
mod fetch;
mod find;
mod forget;
mod git;
mod git_door;
mod git_undo;
mod git_variables;
mod grammar;
mod guards;
mod help;
mod hook;
mod hook_answer;
mod hunks;
mod init;
mod install;
mod judged_line;
mod list;
mod list_remote;
mod lists;
mod long_verb;
mod man;
mod mcp_proxy;
mod named;
mod nushell;
mod on_demand;
mod overview;
mod page;
mod path_words;
mod person;
mod pin;
mod print;
mod progress;
mod protection;
mod prune;
mod push;
mod recover;
mod remote;
mod report;
mod restore;
mod rollback;
mod run;
mod runs;
mod saved;
mod scratch;
mod screen;
mod shell;
mod show;
mod sidecar;
mod status;
mod step_report;
mod stop;
mod store;
mod switch;
mod talk;
mod turns;
mod undo;
mod undo_args;
mod unguarded;
mod verbs;
mod view;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use signal_hook::consts::SIGINT;

use crate::error::{Code, Error, Result};
use crate::sys::fs::deferred;
use crate::sys::process;
use context::Context;
use exit::{Exit, exit_of};
use grammar::{Cli, Verb};
use long_verb::{LongVerb, report_stop};

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
    crate::settings::session::find_by(person::session_start);
    let mut arguments = std::env::args_os().skip(1);
    let verb = arguments.next();
    if verb.as_deref().is_some_and(|verb| verb == "shell") {
        // Called for nearly every line that a person types: the whole grammar would cost more than the work.
        let rest: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
        return shell::shell(&rest);
    }
    if verb.as_deref().is_some_and(|verb| verb == "git-door") {
        // Called by nearly every git command.
        let rest: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
        return git_door::git_door(&rest);
    }
    if verb.as_deref().is_some_and(|verb| verb == "run")
        && let Some(code) = run::becomes_agent(&std::env::args_os().skip(2).collect::<Vec<_>>())
    {
        return code;
    }
    if completion::is_asked(verb.as_deref()) {
        return completion::complete();
    }
    if verb.is_some_and(|verb| verb == "hook") {
        // Clients take a failing hook for a veto, so from here on no error may end the process, not even one of the
        // grammar.
        let rest: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
        if !hook::is_asked_by_person(&rest) {
            return hook::hook(&rest).into();
        }
    }
    let cli = match parsed() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let text = error.render().to_string();
            match std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json") {
                true => print::error(&Error::new(Code::BadRequest, text.trim().trim_start_matches("error: ")), true),
                false => print::say(text.trim_end()),
            }
            return Exit::Usage.into();
        }
        Err(help) => {
            // A closed pipe is nothing to complain about.
            let _ = help.print();
            return Exit::Done.into();
        }
    };
    print::use_colours(cli.global.color);
    print::use_quiet(cli.global.quiet);
    if is_detached(&cli) {
        process::close_inherited();
    }
    trace();
    heed_file_limit();
    crate::sys::fs::durable::make_private();
    let ran = run(&cli);
    progress::end();
    let long = cli.verb.as_ref().and_then(LongVerb::of).filter(|_| stop::is_asked());
    if let Some(long) = long {
        let forget = if long == LongVerb::Forget { forget::left() } else { None };
        report_stop(long, ran.as_ref().map(drop), forget.as_deref());
        deferred::wait();
        process::end_by(SIGINT);
    }
    let exit = ran.unwrap_or_else(|error| {
        print::error(&error, cli.global.json);
        exit_of(&error).into()
    });
    deferred::wait();
    exit
}

/// Parses the command line.
fn parsed() -> std::result::Result<Cli, clap::Error> {
    // The texts of help take as long as the rest of a start. Only help and errors show them.
    let matches = match Cli::command().disable_help_subcommand(true).try_get_matches() {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => help::command().try_get_matches()?,
        plain => plain?,
    };
    Cli::from_arg_matches(&matches)
}

/// Returns true for a process that outlives the one that started it.
fn is_detached(cli: &Cli) -> bool {
    match &cli.verb {
        Some(Verb::Sidecar(args)) => args.detached,
        Some(Verb::Daemon(args)) => matches!(args.verb, daemon::DaemonVerb::Run { detached: true, .. }),
        _ => false,
    }
}

fn run(cli: &Cli) -> Result<ExitCode> {
    person::refuse_narrower(&cli.global)?;
    if let Some(Verb::McpProxy(args)) = &cli.verb {
        return mcp_proxy::proxy(&cli.global, args);
    }
    if let Some(Verb::Run(args)) = &cli.verb {
        return run::run(&cli.global, args);
    }
    if let Some(Verb::Man(args)) = &cli.verb {
        return man::man(args).map(ExitCode::from);
    }
    if let Some(Verb::Init(args)) = &cli.verb {
        init::refuse_unasked(&cli.global, args)?;
    }
    let mut context = Context::new(&cli.global)?;
    if cli.verb.as_ref().and_then(LongVerb::of).is_some() {
        context.attend(cli.global.quiet);
    }
    let exit = match &cli.verb {
        None => overview::overview(&mut context),
        // It starts without a home too, see above.
        Some(Verb::McpProxy(args)) => return mcp_proxy::proxy(&cli.global, args),
        Some(Verb::Run(args)) => return run::run(&cli.global, args),
        Some(Verb::Man(args)) => man::man(args),
        Some(Verb::Git(args)) => return git::git(&context, args),
        Some(Verb::Env(args)) => env::env(&context, args),
        Some(Verb::Push(args)) => push::push(&context, args),
        Some(Verb::Fetch(args)) => fetch::fetch(&context, args),
        Some(Verb::Sidecar(args)) => sidecar::sidecar(&context, args),
        Some(Verb::Watch(args)) => watch::watch(&context, args),
        Some(Verb::Daemon(args)) => daemon::daemon(&context, &args.verb),
        // Its own arguments are read before those of all others, see `main`.
        Some(Verb::Hook(args)) => Ok(hook::hook(&args.words())),
        Some(Verb::Checkpoint(args)) => checkpoint::checkpoint(&mut context, args),
        Some(Verb::List(args)) => list::list(&mut context, args),
        Some(Verb::Show(args)) => show::show(&mut context, args),
        Some(Verb::Diff(args)) => diff::diff(&mut context, args),
        Some(Verb::Find(args)) => find::find(&mut context, args),
        Some(Verb::Recover(args)) => recover::recover(&mut context, args),
        Some(Verb::Restore(args)) => restore::restore(&mut context, args),
        Some(Verb::Rollback(args)) => rollback::rollback(&mut context, args),
        Some(Verb::Runs(args)) => runs::runs(&mut context, args),
        Some(Verb::Turns(args)) => turns::turns(&mut context, args),
        Some(Verb::Undo(args)) => undo::undo(&mut context, args),
        Some(Verb::Redo(args)) => undo::redo(&mut context, args),
        Some(Verb::GitUndo(args)) => git_undo::git_undo(&mut context, args),
        Some(Verb::Pin(args)) => pin::pin(&mut context, args),
        Some(Verb::Unpin(args)) => pin::unpin(&mut context, args),
        Some(Verb::Delete(args)) => pin::delete(&mut context, args),
        Some(Verb::Prune(args)) => prune::prune(&mut context, args),
        Some(Verb::Store(args)) => store::store(&mut context, args),
        Some(Verb::Adopt(args)) => adopt::adopt(&context, args),
        Some(Verb::Forget(args)) => forget::forget(&mut context, args),
        Some(Verb::Doctor(args)) => doctor::doctor(&context, args),
        Some(Verb::Status) => status::status(&mut context),
        Some(Verb::Classify(args)) => classify::classify(&mut context, args),
        Some(Verb::Config(args)) => config::config(&mut context, args),
        Some(Verb::Off(args)) => switch::off(&mut context, args),
        Some(Verb::On) => switch::on(&mut context),
        Some(Verb::Init(args)) => init::init(&context, args),
        Some(Verb::Install(args)) => install::install(&context, args),
        Some(Verb::Uninstall(args)) => install::uninstall(&context, args),
        Some(Verb::Demo(args)) => demo::demo(args),
    };
    exit.map(ExitCode::from)
}

/// Logs to stderr when `PITON_LOG` says so; warnings always.
fn trace() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("PITON_LOG").unwrap_or_else(|_| EnvFilter::new("error"));
    let started =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(progress::LogOutput::take).with_ansi(false);
    // Log lines for a closed stderr are dropped: an error about stderr on stderr would end the thread.
    let started = started.log_internal_errors(false).try_init();
    if let Err(error) = started {
        eprintln!("piton: logging could not be started: {error}");
    }
}
