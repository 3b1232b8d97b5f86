//! The verb `hook`: one event of an agent client, answered in that client's words.
//!
//! It always ends with 0 and prints nothing or what the client understands: to some clients a failing hook is a veto.
//! An error of piton itself is shown to the person where the client has a place for it, and in `piton status`.

use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::announced;
use super::exit::Exit;
use super::git_variables::give;
use super::hook_answer::answer;
use super::judged_line::JudgedLine;
use super::run::RUN;
use super::shell;
use super::talk::Talk;
use super::unguarded::in_words;
use crate::agents::process::client_above;
use crate::agents::{Act, Client, Decision, Event, EventKind, MAX_PAYLOAD};
use crate::checkpoint::records::unguarded::{self, UnguardedCommand};
use crate::checkpoint::{Home, records::mishaps};
use crate::error::{Code, Error, Result};
use crate::model::door::Door;
use crate::model::json;
use crate::model::text::cut;
use crate::protocol::{
    After, AfterReply, BeforeReply, Body, ErrorBody, Hello, OtherBlock, RunEnd, ShellBefore, ToolBefore, Turn,
    TurnReply, not_held_sentence,
};
use crate::shell::HookedShell;
use crate::sys::clock::now_ms;
use crate::sys::pipe;
use crate::sys::processes::facts;

/// The arguments as help shows them; [`hook`] reads them itself, because a client takes a usage error for a veto.
#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// The agent client, as `piton install` names it
    pub client: String,
    /// The client's name for the event; the client's payload is read from stdin
    pub event: Option<String>,
    /// Answer without the daemon
    #[arg(long)]
    pub no_daemon: bool,
}

impl HookArgs {
    /// Returns the words that [`hook`] reads.
    pub(super) fn words(&self) -> Vec<String> {
        let flag = self.no_daemon.then(|| "--no-daemon".to_owned());
        [Some(self.client.clone()), self.event.clone(), flag].into_iter().flatten().collect()
    }
}

/// Returns true if a person, and no client, has called the hook: to read its help, or on a terminal without a client.
pub(super) fn is_asked_by_person(arguments: &[String]) -> bool {
    let asks = arguments.iter().any(|word| word == "--help" || word == "-h");
    asks || (arguments.is_empty() && std::io::stdin().is_terminal())
}

/// The part of the client's patience for what happens after the answer.
const SLACK: Duration = Duration::from_millis(100);

/// Longest content that is passed on with a tool call: what is judged of a call is in its short fields.
const MAX_FIELD: usize = 64 << 10;

/// Longest part of a prompt that is passed on, in characters: its first words are recorded.
const MAX_PROMPT: usize = 4000;

/// The arguments of a hook.
struct HookCall {
    client: Client,
    event: String,
    alone: bool,
}

/// Answers; never fails.
pub(super) fn hook(arguments: &[String]) -> Exit {
    crate::sys::fs::durable::make_private();
    if std::io::stdin().is_terminal() {
        super::print::say("piton: waiting for the event's payload on stdin; Ctrl-D ends it (docs/AGENTS.md)");
    }
    let asked = match asked(arguments) {
        Ok(asked) => asked,
        Err(error) => {
            note(&arguments.join(" "), &error);
            return Exit::Done;
        }
    };
    // A panic would end with a code that some clients take for a veto.
    let caught = catch_unwind(AssertUnwindSafe(|| decide(&asked)));
    let decided = caught.unwrap_or_else(|_| Err(Error::new(Code::Internal, "internal error; please report it")));
    let decision = decided.unwrap_or_else(|error| {
        note(&format!("{} {}", asked.client.name(), asked.event), &error);
        Decision { message: Some(format!("piton: {}", error.text())), ..Decision::default() }
    });
    if let Some(reply) = asked.client.reply(&asked.event, &decision) {
        let mut out = std::io::stdout().lock();
        // A client that does not read its hook has gone on without it.
        let _ = out.write_all(reply.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    }
    Exit::Done
}

fn asked(arguments: &[String]) -> Result<HookCall> {
    let (flags, words): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|word| word.starts_with("--"));
    let [client, rest @ ..] = words.as_slice() else {
        return Err(Error::new(Code::BadRequest, "`piton hook` needs a client and an event")
            .hint("to write the hooks again, run `piton install`"));
    };
    Ok(HookCall {
        client: Client::named(client)?,
        event: rest.first().map(|event| (*event).clone()).unwrap_or_default(),
        alone: flags.iter().any(|flag| *flag == "--no-daemon"),
    })
}

/// Keeps what went wrong for `piton status`.
fn note(what: &str, error: &Error) {
    let kept = Home::locate().and_then(|home| mishaps::note(&home, &format!("hook {what}: {}", error.text())));
    if let Err(error) = kept {
        super::print::say(&format!("piton: {}", error.text()));
    }
}

fn decide(asked: &HookCall) -> Result<Decision> {
    let began = Instant::now();
    // Never more than half of what the client waits, and half of that for its payload: not every client closes the pipe.
    let patience = asked.client.patience(&asked.event) / 2;
    let deadline = began + patience.saturating_sub(SLACK);
    let payload = pipe::read_until(std::io::stdin(), MAX_PAYLOAD + 1, began + patience / 2, json::is_whole)
        .map_err(|error| Error::new(Code::Internal, format!("cannot read the hook's payload: {error}")))?;
    let (event, torn) = match asked.client.parse(&asked.event, &payload) {
        Ok(event) => (event, None),
        // Some action is about to run: it is guarded by what could be read of it.
        Err(error) if asked.client.is_before(&asked.event) => (asked.client.guess(&payload), Some(error)),
        Err(error) => return Err(error),
    };
    drop(payload);
    let mut given = Decision::default();
    if let Err(error) = give(&asked.event, &event, &mut given) {
        note(&format!("{} {}", asked.client.name(), asked.event), &error);
    }
    if let EventKind::Unused(_) = event.kind {
        return Ok(given);
    }
    if let Some(error) = &torn {
        note(&format!("{} {}", asked.client.name(), asked.event), error);
    }
    let mut decision = match &event.kind {
        EventKind::Before { act, .. } => {
            // A bug too lets the action run, without the checkpoint that it needs.
            let caught = catch_unwind(AssertUnwindSafe(|| converse(asked, &event, deadline)));
            let had = caught.unwrap_or_else(|_| Err(Error::new(Code::Internal, "internal error; please report it")));
            had.unwrap_or_else(|error| unguarded(asked, &event, in_words(act), &error))
        }
        // A person's line runs too.
        EventKind::Line { command, .. } => {
            converse(asked, &event, deadline).unwrap_or_else(|error| unguarded(asked, &event, command.clone(), &error))
        }
        _ => converse(asked, &event, deadline)?,
    };
    if let Some(error) = torn {
        let told = format!("piton: {}; piton guarded the action by the part that it could parse", error.text());
        decision.message = Some(decision.message.map_or(told.clone(), |message| format!("{told}\n{message}")));
    }
    Ok(decision)
}

/// Returns the answer to an event: the daemon's, or that of a private engine.
fn converse(asked: &HookCall, event: &Event, deadline: Instant) -> Result<Decision> {
    let home = Home::locate()?;
    let talk = if asked.alone { Talk::alone(&home, deadline)? } else { Talk::open(&home, deadline)? };
    let is_before = matches!(event.kind, EventKind::Before { .. } | EventKind::Line { .. });
    let talk = if is_before { talk.leave_time() } else { talk };
    let reaches_model = asked.client.reaches_model(&asked.event);
    let have = |talk: Talk| Exchange { talk, event, reaches_model }.have();
    let is_daemons = talk.is_daemons();
    let decision = match have(talk) {
        // The daemon ended meanwhile, or does not read, or is busy while an action waits. An event may be reported twice: a turn that is
        // open already and a path that is saved change nothing.
        Err(error)
            if is_daemons && (error.code() == Code::ShuttingDown || (is_before && error.code() == Code::Busy)) =>
        {
            have(Talk::alone(&home, deadline)?)?
        }
        had => had?,
    };
    if decision.deny.is_some() && event.client == Client::ClaudeCode {
        announced::withdraw(home.path(), event);
    }
    Ok(decision)
}

/// Keeps an action that runs without a checkpoint because no engine answered, and returns what the model and the person read of it.
fn unguarded(asked: &HookCall, event: &Event, command: String, error: &Error) -> Decision {
    note(&format!("{} {}", asked.client.name(), asked.event), error);
    let cwd = event.cwd.clone().or_else(|| std::env::current_dir().ok());
    let reaches_model = asked.client.reaches_model(&asked.event);
    let ran = UnguardedCommand { cwd, command, why: error.text(), is_told: reaches_model };
    if let Err(error) = unguarded::keep_unplaced(ran) {
        tracing::warn!(%error, "could not record an unguarded action");
    }
    let context = reaches_model
        .then(|| format!("piton: not protected: no checkpoint was taken before this action: {}", error.text()));
    let message = Some(format!("piton: no checkpoint before this action: {}", error.text()));
    Decision { context: context.into_iter().collect(), message, ..Decision::default() }
}

/// One event's conversation with the engine.
pub(super) struct Exchange<'e> {
    talk: Talk,
    event: &'e Event,
    reaches_model: bool,
}

impl Exchange<'_> {
    fn have(mut self) -> Result<Decision> {
        match &self.event.kind {
            EventKind::Line { number, command } => return self.line(*number, command),
            EventKind::LineEnd { number } => return self.line_end(*number),
            _ => self.hello()?,
        }
        match &self.event.kind {
            EventKind::SessionStart => self.tell(&Body::Ping),
            EventKind::SessionEnd => self.tell(&Body::RunEnd(RunEnd::default())),
            // The run of the agent goes on.
            EventKind::AgentEnd if self.event.agent.is_none() => Ok(Decision::default()),
            EventKind::AgentEnd => self.tell(&Body::RunEnd(RunEnd::default())),
            EventKind::TurnEnd => self.tell(&Body::TurnEnd(turn(self.event.turn.clone().unwrap_or_default()))),
            EventKind::TurnStart { prompt } => {
                let name = self.event.turn.clone().unwrap_or_else(|| format!("t{}", now_ms()));
                let prompt = prompt.as_deref().map(|prompt| cut(prompt, MAX_PROMPT));
                self.tell(&Body::TurnStart(Turn { prompt, ..turn(name) }))
            }
            EventKind::Ask(ask) => {
                let text = answer(&mut self, ask)
                    .unwrap_or_else(|refused| format!("piton: {} ({})", refused.message, refused.code.text()));
                Ok(Decision { answer: Some(text), ..Decision::default() })
            }
            EventKind::Before { action, act } => self.before(action.as_deref(), act),
            EventKind::After { action, act, outcome } => {
                let ended = self.ended(action.as_deref(), act.as_ref());
                let with_outcome =
                    |after: After| Body::ToolAfter(After { ok: outcome.ok, exit: outcome.exit, ..after });
                let mut decision = Decision::default();
                for body in ended.into_iter().map(with_outcome).collect::<Vec<_>>() {
                    let told = self.tell(&body)?;
                    decision.context.extend(told.context);
                    decision.message = decision.message.or(told.message);
                }
                Ok(decision)
            }
            EventKind::Line { .. } | EventKind::LineEnd { .. } | EventKind::Unused(_) => Ok(Decision::default()),
        }
    }

    /// Guards a line that the person typed in the client's terminal, as `piton shell` does: it is a turn of the person's.
    fn line(&mut self, number: u64, command: &str) -> Result<Decision> {
        // Where it cannot be judged here, the engine says why.
        let judged = self.event.cwd.clone().and_then(|cwd| JudgedLine::in_dir(cwd, command).ok());
        let doubt = self.event.doubt || shell::runs_other_text(command, HookedShell::Bash.name());
        if !doubt && judged.is_some_and(|judged| shell::is_harmless(command, &judged.verdict)) {
            return Ok(Decision::default());
        }
        self.person_hello()?;
        let _: TurnReply = self.ask(&Body::TurnStart(turn(shell::turn_name(number, command))))?;
        let request = self.timed(Body::ShellBefore(ShellBefore {
            action: Some(shell::action_name(number)),
            command: command.to_owned(),
            cwd: self.event.cwd.clone(),
            doubt,
            ..ShellBefore::default()
        }));
        let reply: BeforeReply = self.ask(&request)?;
        // No one is asked: the terminal is the client's.
        let reason = || reply.reason.as_deref().unwrap_or("the policy says no");
        let deny = (!reply.proceed).then(|| format!("piton: the line was not run: {}", reason()));
        let message = shell::told(&reply).filter(|_| deny.is_none());
        Ok(Decision { awaits_end: deny.is_none(), deny, message, ..Decision::default() })
    }

    fn line_end(&mut self, number: u64) -> Result<Decision> {
        self.person_hello()?;
        let action = Some(shell::action_name(number));
        self.talk.send(&Body::ShellAfter(After { action, ..After::default() }))?;
        // An end without a name is the open turn's.
        let ended: AfterReply = self.ask(&Body::TurnEnd(Turn::default()))?;
        let message = (!ended.notices.is_empty()).then(|| ended.notices.join("\n"));
        Ok(Decision { message, ..Decision::default() })
    }

    /// Begins the session of the lines that a person types in the client's terminal.
    fn person_hello(&mut self) -> Result<()> {
        let cwd = self.event.cwd.clone().or_else(|| std::env::current_dir().ok());
        let id = self.event.session.clone().or_else(|| Some(cwd.as_deref()?.to_string_lossy().into_owned()));
        self.talk.send(&Body::Hello(Hello {
            client: Some(self.event.client.lines_name()),
            session: Some(self.event.client.lines_session(&id.unwrap_or_default())),
            pid: client_above(std::process::id(), &facts).map(u64::from),
            cwd,
            door: Some(Door::Shell.into()),
            ..Hello::default()
        }))?;
        Ok(())
    }

    /// Says who asks. A client without an id of the session has one session in each directory.
    fn hello(&mut self) -> Result<()> {
        let client = self.event.client.name();
        let cwd = self.event.cwd.clone().or_else(|| std::env::current_dir().ok());
        let cwd_text = cwd.as_deref().map(|cwd| cwd.to_string_lossy().into_owned());
        let id = self.event.session.as_deref().or(cwd_text.as_deref()).unwrap_or_default();
        let session = self.event.client.session_name(id);
        let (session, parent, goal) = match &self.event.agent {
            Some(agent) => (self.event.client.agent_name(id, &agent.id), Some(session), agent.kind.clone()),
            None => {
                let parent = self.event.parent.as_deref();
                (session, parent.map(|parent| self.event.client.session_name(parent)), None)
            }
        };
        self.talk.send(&Body::Hello(Hello {
            client: Some(client.to_owned()),
            session: Some(session),
            parent: parent.or_else(|| std::env::var(RUN).ok()),
            shares_turn: (self.event.agent.is_some() || self.event.parent.is_some()).then_some(true),
            goal,
            pid: client_above(std::process::id(), &facts).map(u64::from),
            cwd: cwd_text.map(PathBuf::from),
            reaches_model: Some(self.reaches_model),
            door: Some(Door::Hook.into()),
            ..Hello::default()
        }))?;
        Ok(())
    }

    /// Returns the reply to a request.
    pub(super) fn ask<T: DeserializeOwned>(&mut self, body: &Body) -> Result<T, ErrorBody> {
        self.talk.ask(body)
    }

    /// Returns the client that the event came from.
    pub(super) fn client(&self) -> Client {
        self.event.client
    }

    /// Returns the directory that the event is about.
    pub(super) fn cwd(&self) -> Option<PathBuf> {
        self.event.cwd.clone()
    }

    /// Tells of an event, and passes on the sentences that some of the answers have: to the model, or else to the person.
    fn tell(&mut self, body: &Body) -> Result<Decision> {
        let reply: AfterReply = self.ask(body)?;
        if self.reaches_model || reply.notices.is_empty() {
            return Ok(Decision { context: reply.notices, ..Decision::default() });
        }
        Ok(Decision { message: Some(reply.notices.join("\n")), ..Decision::default() })
    }

    /// Returns a checkpoint before what destroys something, and what is to be said of it.
    fn before(&mut self, action: Option<&str>, act: &Act) -> Result<Decision> {
        // A torn payload begins none: nothing would end it.
        let is_known = self.event.session.is_some() && self.event.client.ends_turns();
        if !self.event.is_background && (self.event.turn.is_some() || is_known) {
            // An action may follow the end of its turn: of a sub-agent in the background, or where the agent was made to go on.
            let turn = self.event.turn.clone().unwrap_or_default();
            self.talk.send(&Body::TurnStart(Turn { turn, for_action: true, ..Turn::default() }))?;
        }
        let (mut decision, mut failure) = (Decision::default(), None);
        for request in self.requests(action, act) {
            match self.ask(&self.timed(request)) {
                Ok(reply) => add(&mut decision, reply, self.reaches_model),
                // An engine of its own is asked for all of them.
                Err(error) if error.is(Code::ShuttingDown) => return Err(error.into()),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            // An action that is denied for one of its commands stays so, whatever became of the others.
            Some(error) if decision.deny.is_none() => Err(error.into()),
            _ => Ok(decision),
        }
    }

    /// Returns a request with the time that its answer may take from now on. `late` has to be here before the hook gives
    /// up, because it carries what the policy wants then.
    fn timed(&self, mut request: Body) -> Body {
        let left = self.talk.left() / 8 * 7;
        if let Body::ShellBefore(ShellBefore { deadline_ms, .. }) | Body::ToolBefore(ToolBefore { deadline_ms, .. }) =
            &mut request
        {
            *deadline_ms = Some(left.as_millis() as u64);
        }
        request
    }

    /// Returns the calls that have ended: by the client's id, else by what each was.
    fn ended(&self, action: Option<&str>, act: Option<&Act>) -> Vec<After> {
        let (None, Some(act)) = (action, act) else {
            return vec![After { action: action.map(str::to_owned), ..After::default() }];
        };
        let of_request = |request: Body| match request {
            Body::ShellBefore(shell) => Some(After { command: Some(shell.command), ..After::default() }),
            Body::ToolBefore(tool) => Some(After { tool: Some(tool.tool), input: tool.input, ..After::default() }),
            _ => None,
        };
        self.requests(None, act).into_iter().filter_map(of_request).collect()
    }

    fn requests(&self, action: Option<&str>, act: &Act) -> Vec<Body> {
        let (action, doubt) = (action.map(str::to_owned), self.event.doubt);
        let directory = |cwd: Option<&PathBuf>| {
            let cwd = match (cwd, &self.event.cwd) {
                (Some(cwd), Some(base)) => Some(base.join(cwd)),
                (cwd, base) => cwd.or(base.as_ref()).cloned(),
            };
            cwd.map(|cwd| PathBuf::from(cwd.to_string_lossy().into_owned()))
        };
        match act {
            Act::Shell { commands, cwd, cwd_told: _, in_background } => {
                let one = |command: &String| {
                    let (action, command, cwd) = (action.clone(), command.clone(), directory(cwd.as_ref()));
                    let background = *in_background;
                    Body::ShellBefore(ShellBefore { action, command, cwd, doubt, background, ..ShellBefore::default() })
                };
                commands.iter().map(one).collect()
            }
            Act::Tool { name, input, paths, writes } => vec![Body::ToolBefore(ToolBefore {
                action,
                tool: name.clone(),
                input: shortened(input),
                paths: paths.clone(),
                writes: *writes,
                external: None,
                cwd: directory(None),
                deadline_ms: None,
                doubt,
            })],
        }
    }
}

/// Returns a turn by its name.
fn turn(name: String) -> Turn {
    Turn { turn: name, ..Turn::default() }
}

/// Adds one reply to the decision.
fn add(decision: &mut Decision, reply: BeforeReply, reaches_model: bool) {
    if !reply.proceed {
        let reason = reply.reason.as_deref().unwrap_or("the policy says no");
        decision.deny.get_or_insert_with(|| format!("piton: {reason}"));
    }
    let warnings = reply.warnings.into_iter().map(|warning| warning.message);
    let mut messages: Vec<String> = Vec::new();
    let not_held = not_held_sentence(&reply.not_held);
    if reaches_model {
        // The warnings are among them, folded and within the session's budget.
        decision.context.extend(reply.notices);
    }
    // A refusal has its own reason.
    if reply.proceed {
        messages.extend(warnings);
        messages.extend(not_held);
    }
    if let Some(status) = reply.checkpoint.status.fault() {
        let why = reply.checkpoint.reason.as_deref().unwrap_or("no reason is known");
        messages.push(format!("no checkpoint before this action ({status}): {why}"));
    }
    messages.extend(reply.others.iter().filter_map(OtherBlock::fault));
    if !messages.is_empty() {
        let text = format!("piton: {}", messages.join("; "));
        decision.message = Some(match decision.message.take() {
            Some(before) => format!("{before}\n{text}"),
            None => text,
        });
    }
}

/// Returns a tool's input without what is long: contents are not judged, and a line of the protocol has a limit.
fn shortened(input: &Value) -> Value {
    match input {
        // A patch names its files in its text.
        Value::String(text) if text.len() > MAX_FIELD && !text.contains("*** Begin Patch") => {
            Value::String(cut(text, 200))
        }
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shortened(value))).collect(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        other => other.clone(),
    }
}
