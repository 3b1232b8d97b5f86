//! `piton run`: an agent that has no hooks, guarded as a run of its own.
//!
//! The agent's changes are saved as long as it lives. The commands of its bash and zsh are judged before they run, through files that
//! these shells read when they start ([`shims`]). The agent keeps its terminal, its signals and its exit code.

mod shims;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use clap::Args;

use self::shims::Shims;
use super::at_work::WorkNote;
use super::context::{Context, GlobalArgs, flags};
use super::git_variables::git_variables;
use super::mcp_proxy::{holds, holds_without_home};
use super::print;
use super::saved::{Again, SavedLink, refuse_settings};
use crate::checkpoint::records::workspace::root_for;
use crate::engine::saves::LATEST;
use crate::error::{Code, Error, Result};
use crate::model::door::Door;
use crate::model::policy::Guard;
use crate::model::run::run_id;
use crate::model::text::{cut, printable, shell_line};
use crate::protocol::{
    After, AfterReply, BeforeReply, Body, Hello, HelloReply, NoticeBody, RunEnd, RunEndReply, RunReply, RunStart,
    RunStatus, ShellBefore, Turn, TurnReply,
};
use crate::sys::clock::{local_stamp, now_ms};
use crate::sys::fs::durable::{unique_suffix, with_callers_umask};
use crate::sys::pipe;
use crate::sys::process::own_program;
use crate::sys::stand_in::{StandIn, StartedBy, become_agent, end_as};

/// The variable with the name of the run, for the agent and all that it starts.
pub(super) const RUN: &str = "PITON_RUN";

/// The longest wait for an answer, beside the time that the settings give a checkpoint.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest wait for each answer at the end: the agent's exit code waits for it.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// The wait for a notice that may have come already.
const LOOK: Duration = Duration::from_millis(1);

/// The most faults that are told at the end.
const MAX_FAULTS: usize = 5;

/// The longest command in the name of a turn, in characters.
const MAX_NAME: usize = 48;

/// The action that is the agent itself.
const AGENT: &str = "agent";

/// The hidden option with which this program becomes the agent.
const BECOME: &str = "--become";

/// The exit code of an agent that the policy does not let start.
const HELD: u8 = 126;

/// The arguments of `piton run`.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The name of the run [default: the agent's name and the time]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The command that starts the agent, and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "AGENT")]
    pub command: Vec<OsString>,
}

/// Becomes the agent, if this process was started for that. `words` are those behind `piton run`.
pub(super) fn becomes_agent(words: &[OsString]) -> Option<ExitCode> {
    let [option, parent, command @ ..] = words else { return None };
    let by = StartedBy::of(parent.to_str()?).filter(|_| option == BECOME)?;
    let (error, code) = become_agent(by, command);
    let program = command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    print::say(&format!("piton: {program} cannot be started: {error}"));
    Some(ExitCode::from(code))
}

/// Runs an agent; the exit code is its own.
///
/// # Errors
/// When the agent cannot be started, or the settings let nothing pass unguarded and it would.
pub(super) fn run(global: &GlobalArgs, args: &RunArgs) -> Result<ExitCode> {
    refuse_settings(&flags(global)?, "run")?;
    let mut command = agent_command(args)?;
    let guarded = match GuardedRun::begin(global, args) {
        Ok(mut guarded) => {
            if let Some(reason) = guarded.hold.take() {
                print::say(&format!("piton: the agent was not started: {reason}"));
                guarded.end(None);
                return Ok(ExitCode::from(HELD));
            }
            guarded.apply(&mut command);
            Some(guarded)
        }
        Err(error) if is_held_without_guard(global) => {
            return Err(error.context("the agent was not started, because the settings do not allow unguarded actions"));
        }
        Err(error) => {
            print::say(&format!("piton: NOT GUARDED, the agent runs without checkpoints: {}", error.text()));
            None
        }
    };
    let started = with_callers_umask(|| StandIn::start(&mut command));
    let agent = started.map_err(|error| Error::new(Code::Internal, format!("the agent cannot be started: {error}")))?;
    let status = match guarded {
        Some(mut guarded) => {
            guarded.follow(&agent);
            let status = agent.wait();
            guarded.end(status.as_ref().ok().copied());
            status
        }
        None => agent.wait(),
    };
    let status =
        status.map_err(|error| Error::new(Code::Internal, format!("cannot wait for the agent to end: {error}")))?;
    Ok(ExitCode::from(end_as(status)))
}

/// Returns the command of the process that becomes the agent.
fn agent_command(args: &RunArgs) -> Result<Command> {
    let own = own_program()?;
    let mut command = Command::new(own);
    command.args(["run", BECOME]).arg(StartedBy::this().word()).args(&args.command);
    Ok(command)
}

impl RunArgs {
    /// Returns the agent's command line as a shell reads it.
    fn line(&self) -> String {
        shell_line(&self.command)
    }

    /// Returns the name of the agent: that of its program.
    fn agent(&self) -> String {
        let program = self.command.first().map(Path::new).and_then(Path::file_name);
        printable(&program.unwrap_or_default().to_string_lossy())
    }

    fn run_name(&self) -> String {
        let made = || format!("{}-{}-{}", self.agent(), local_stamp(now_ms()), unique_suffix());
        run_id(&self.name.clone().unwrap_or_else(made))
    }
}

/// Returns true if the settings let nothing pass where piton fails.
fn is_held_without_guard(global: &GlobalArgs) -> bool {
    let settings = Context::new(global).and_then(|context| context.settings());
    match settings {
        Ok(settings) => holds(&settings.policy).is_some(),
        Err(_) => {
            let root = std::env::current_dir().ok().map(|cwd| root_for(&cwd, &[]));
            holds_without_home(root.as_deref(), &flags(global).unwrap_or_default()).is_some()
        }
    }
}

/// The run of an agent, and the connection that has its changes saved.
struct GuardedRun {
    name: String,
    saved: SavedLink,
    _note: Option<WorkNote>,
    /// The request with which the run begins, also on a new connection.
    start: RunStart,
    shims: Option<Shims>,
    /// The reason for which the policy does not let the agent start.
    hold: Option<String>,
    /// Reasons for which something was not saved, each once.
    faults: Vec<String>,
    is_talkative: bool,
    /// True if the guard is on, and there is a checkpoint from before the agent.
    is_guarded: bool,
}

impl GuardedRun {
    fn begin(global: &GlobalArgs, args: &RunArgs) -> Result<GuardedRun> {
        let context = Context::new(global)?;
        let (name, client) = (args.run_name(), args.agent());
        let hello = Hello {
            client: Some(client.clone()),
            session: Some(name.clone()),
            pid: Some(std::process::id().into()),
            workspace: context.named_workspace(),
            cwd: std::env::current_dir().ok(),
            door: Some(Door::Run.into()),
            reaches_model: Some(false),
            ..Hello::default()
        };
        let (mut saved, reply) = SavedLink::open(&context.home, hello)?;
        let start = RunStart {
            run: Some(name.clone()),
            parent: std::env::var(RUN).ok().filter(|parent| *parent != name),
            goal: Some(args.line()),
            client: Some(client),
        };
        let _: RunReply = saved.ask(&Body::RunStart(start.clone()), PATIENCE)?;
        let turn = cut(&printable(&args.line()), MAX_NAME);
        let begin = Turn { turn, prompt: Some(args.line()), ..Turn::default() };
        let _: TurnReply = saved.ask(&Body::TurnStart(begin), PATIENCE)?;
        // It counts as one that may do anything, so that there is a checkpoint before it.
        let before = ShellBefore {
            action: Some(AGENT.to_owned()),
            command: args.line(),
            shell: None,
            cwd: std::env::current_dir().ok(),
            deadline_ms: None,
            doubt: true,
            background: false,
        };
        let before: BeforeReply = saved.ask(&Body::ShellBefore(before), PATIENCE)?;
        let hold = (!before.proceed).then(|| before.reason.unwrap_or_else(|| "the policy says no".to_owned()));
        let shims = Shims::write(&context.home);
        let mut run = GuardedRun {
            name,
            saved,
            _note: WorkNote::write(&context.home, "run"),
            start,
            shims: None,
            hold,
            faults: Vec::new(),
            is_talkative: !global.quiet,
            is_guarded: false,
        };
        if let Some(status) = before.checkpoint.status.fault() {
            let why = before.checkpoint.reason.as_deref().unwrap_or("no reason is known");
            print::say(&format!("piton: no checkpoint before the agent ({status}): {why}"));
        }
        match shims {
            Ok(shims) => run.shims = Some(shims),
            Err(error) => print::say(&format!("piton: commands of bash and zsh are not guarded: {}", error.text())),
        }
        run.tell_start(&reply, before.checkpoint.status.fault().is_none());
        Ok(run)
    }

    fn tell_start(&mut self, reply: &HelloReply, has_checkpoint: bool) {
        self.is_guarded = has_checkpoint && reply.guard.known() != Some(Guard::Off);
        if reply.guard.known() == Some(Guard::Off) {
            print::say(
                "piton: NOT GUARDED: the guard is off here, so nothing is saved; to see why, run `piton status`",
            );
        } else if !has_checkpoint {
            // It was said why.
        } else if !reply.autosave {
            let why = reply.faults.first().map_or("changes are not saved here", String::as_str);
            print::say(&format!("piton: {why}; files that bash and zsh delete by name are still saved first"));
        } else if self.is_talkative {
            print::say(&format!(
                "piton: run {}: piton takes a checkpoint before commands of bash and zsh; of all other work, at most the last {} s can be lost",
                self.name,
                LATEST.as_secs()
            ));
        }
    }

    /// Gives the agent its part of the run.
    fn apply(&self, command: &mut Command) {
        command.env(RUN, &self.name);
        if let Ok(dir) = std::env::current_dir() {
            command.envs(git_variables(&dir));
        }
        if let Some(shims) = &self.shims {
            shims.apply(command);
        }
    }

    /// Keeps the connection until the agent has ended.
    fn follow(&mut self, agent: &StandIn) {
        loop {
            // Notices that have come already are read before the wait.
            match self.saved.link.notices(Instant::now() + LOOK) {
                Ok(notices) if !notices.is_empty() => notices.into_iter().for_each(|notice| self.note(notice.body)),
                Ok(_) => match pipe::either_ready(self.saved.link.stream(), agent.ended()) {
                    Ok((_, true)) => return,
                    Ok((_, false)) => {}
                    Err(error) => return tracing::warn!(%error, "the connection is not followed any more"),
                },
                Err(_) => {
                    if !self.connect_again(agent) {
                        return;
                    }
                }
            }
        }
    }

    /// Connects until that succeeds; false if the agent has ended.
    fn connect_again(&mut self, agent: &StandIn) -> bool {
        loop {
            if pipe::is_ready(agent.ended(), self.saved.pause().unwrap_or_default()).unwrap_or(true) {
                return false;
            }
            match self.saved.again() {
                Again::Connected => {
                    let gone = "the daemon ended during the run, and a new daemon took over";
                    self.fault(format!("{gone}; `piton list` shows the checkpoints of both"));
                    let begun = self.saved.ask::<RunReply>(&Body::RunStart(self.start.clone()), PATIENCE);
                    if let Err(error) = begun {
                        self.fault(error.text());
                    }
                    return true;
                }
                Again::Broken(why) => self.fault(format!("the daemon was not running for a while: {why}")),
                Again::StillBroken => {}
            }
        }
    }

    /// Keeps what went wrong until the agent has ended: its terminal is its own.
    fn note(&mut self, notice: NoticeBody) {
        match notice {
            NoticeBody::Failed(failed) => {
                let why = failed.reason.unwrap_or_else(|| "no reason is known".to_owned());
                self.fault(format!("changes could not be saved for a while: {why}"));
            }
            NoticeBody::LowDisk(low) => self.fault(low.reason),
            _ => {}
        }
    }

    fn fault(&mut self, text: String) {
        if !self.faults.contains(&text) && self.faults.len() < MAX_FAULTS {
            self.faults.push(text);
        }
    }

    fn record_end(&mut self, after: &After, outcome: RunStatus) -> Result<AfterReply> {
        let _: AfterReply = self.saved.ask(&Body::ShellAfter(after.clone()), END_PATIENCE)?;
        let turn = self.saved.ask(&Body::TurnEnd(Turn::default()), END_PATIENCE)?;
        let _: RunEndReply = self.saved.ask(&Body::RunEnd(RunEnd { status: Some(outcome) }), END_PATIENCE)?;
        Ok(turn)
    }

    /// Ends the run.
    fn end(mut self, status: Option<ExitStatus>) {
        let exit = status.and_then(|status| status.code()).map(i64::from);
        let signal = status.and_then(|status| status.signal()).map(i64::from);
        let after = After { action: Some(AGENT.to_owned()), exit, signal, ..After::default() };
        let outcome =
            if status.is_some_and(|status| status.success()) { RunStatus::Completed } else { RunStatus::Error };
        let ended = match self.record_end(&after, outcome) {
            // The daemon ended just now.
            Err(error) if error.code() == Code::ShuttingDown && matches!(self.saved.again(), Again::Connected) => {
                self.record_end(&after, outcome)
            }
            ended => ended,
        };
        match ended {
            Ok(turn) => turn.notices.iter().for_each(|notice| print::say(&printable(notice))),
            Err(error) => {
                print::say(&format!("piton: the end of run {} could not be recorded: {}", self.name, error.text()));
            }
        }
        self.faults.iter().for_each(|fault| print::say(&format!("piton: {}", printable(fault))));
        if self.is_talkative && status.is_some() {
            let how = if outcome == RunStatus::Completed { "has completed" } else { "has ended with an error" };
            let undo = format!("; to undo its changes, run `piton undo --run {} --include likely`", self.name);
            let undo = if self.is_guarded { undo } else { String::new() };
            print::say(&format!("piton: run {} {how}{undo}", self.name));
        }
    }
}
