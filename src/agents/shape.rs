//! The places of a client's payload, as data: one reader serves all clients.

use std::path::PathBuf;

use serde_json::Value;

use super::ask::Ask;
use super::client::Client;
use super::event::{Act, ActionOutcome, Event, EventKind, SubAgent};
use super::payload::Payload;
use crate::error::{Code, Error, Result};
use crate::model::json;
use crate::model::text::{cut, printable};

/// The meaning of an event of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    SessionStart,
    SessionEnd,
    /// A sub-agent has ended.
    AgentEnd,
    /// A prompt. Empty ones are no turn: Qwen Code sends one after every tool.
    TurnStart,
    /// A prompt of which another event tells too: only what it asks of piton counts here.
    Ask,
    TurnEnd,
    Before,
    /// After an action that went well, or whose outcome the payload tells.
    After,
    /// After an action that failed.
    Failed,
    /// Before a line that the person typed in the client's terminal.
    Line,
    /// After such a line.
    LineEnd,
    /// Known, and of no use.
    Unused,
}

/// The places of a client's payloads: JSON pointers, of which the first one that holds something counts.
pub(super) struct Shape {
    /// The client's names of its events.
    pub steps: &'static [(&'static str, Moment)],
    /// The place that repeats the event's name, if there is one.
    pub echo: &'static [&'static str],
    pub session: &'static [&'static str],
    /// The session of the agent that began this one, of a sub-agent with a session of its own. The session's own id is none.
    pub parent: &'static [&'static str],
    /// The id of a sub-agent in the session of its agent. The session's own id is none.
    pub agent: &'static [&'static str],
    /// Its kind.
    pub agent_kind: &'static [&'static str],
    pub turn: &'static [&'static str],
    pub cwd: &'static [&'static str],
    pub prompt: &'static [&'static str],
    pub tool: &'static [&'static str],
    pub input: &'static [&'static str],
    pub action: &'static [&'static str],
    /// The shell command of an event that names no tool, and the line that a person typed.
    pub command: &'static [&'static str],
    /// The tools that run shell commands, in the field `command` or `commands` of their input.
    pub shells: &'static [&'static str],
    /// Tools that write, under names that say so of no other client's.
    pub writers: &'static [&'static str],
    /// True if a shell command's directory is told where it is not the session's.
    pub cwd_told: bool,
    /// True if a prompt can be answered without a model.
    pub answers: bool,
    /// Reads the outcome from the payload after an action.
    pub outcome: fn(&Payload) -> ActionOutcome,
    /// Returns true for work that the client does in the background of a session, and in no turn of it.
    pub is_background: fn(&Payload) -> bool,
}

/// The place of the file with the conversation.
const TRANSCRIPT: &[&str] = &["/transcript_path"];

/// The envelope of Claude Code, which several clients share.
pub(super) const CLAUDE: Shape = Shape {
    steps: &[
        ("SessionStart", Moment::SessionStart),
        ("SessionEnd", Moment::SessionEnd),
        ("UserPromptSubmit", Moment::TurnStart),
        ("PreToolUse", Moment::Before),
        ("PostToolUse", Moment::After),
        ("PostToolUseFailure", Moment::Failed),
        ("Stop", Moment::TurnEnd),
        ("StopFailure", Moment::TurnEnd),
        ("Notification", Moment::Unused),
        ("PostToolBatch", Moment::Unused),
        ("PermissionRequest", Moment::Unused),
        ("PreCompact", Moment::Unused),
        ("SubagentStart", Moment::Unused),
        ("SubagentStop", Moment::AgentEnd),
    ],
    echo: &["/hook_event_name"],
    session: &["/session_id"],
    parent: &[],
    agent: &[],
    agent_kind: &[],
    turn: &["/prompt_id"],
    cwd: &["/cwd"],
    prompt: &["/prompt"],
    tool: &["/tool_name"],
    input: &["/tool_input"],
    action: &["/tool_use_id"],
    command: &[],
    shells: &["Bash"],
    writers: &[],
    cwd_told: true,
    answers: true,
    outcome: |_| ActionOutcome { ok: Some(true), exit: None },
    is_background: |_| false,
};

impl Shape {
    /// Returns what an event's name means; nothing for a name that the client does not have.
    pub(super) fn step(&self, event: &str) -> Option<Moment> {
        self.steps.iter().find(|(name, _)| *name == event).map(|(_, step)| *step)
    }

    /// Reads a payload as the event that the hook was called for.
    ///
    /// # Errors
    /// `bad-request` for a payload of another event or client.
    pub(super) fn read(&self, client: Client, event: &str, payload: &Payload) -> Result<Event> {
        if let Some(told) = payload.text(self.echo)?
            && !told.eq_ignore_ascii_case(event)
        {
            let message = format!(
                "the hook's payload is of the event `{}`, but `piton hook` was called for `{}`",
                shown(told),
                shown(event)
            );
            return Err(Error::new(Code::BadRequest, message)
                .field("event")
                .hint("to write the hooks again, run `piton install`"));
        }
        let text = |places| payload.text(places).map(|text| text.map(str::to_owned));
        let kind = match self.step(event) {
            None => EventKind::Unused(format!("{} has no event `{}` that piton knows", client.title(), shown(event))),
            Some(Moment::Unused) => {
                EventKind::Unused(format!("`{event}` of {} is an event that piton does not use", client.title()))
            }
            Some(Moment::SessionStart) => EventKind::SessionStart,
            Some(Moment::SessionEnd) => EventKind::SessionEnd,
            Some(Moment::AgentEnd) => EventKind::AgentEnd,
            Some(Moment::TurnStart) => self.turn_start(self.prompt(payload)?),
            Some(Moment::Ask) => match self.turn_start(self.prompt(payload)?) {
                EventKind::TurnStart { .. } => EventKind::Unused("another event reports this prompt".to_owned()),
                other => other,
            },
            Some(Moment::TurnEnd) => EventKind::TurnEnd,
            Some(Moment::Before) => EventKind::Before { action: text(self.action)?, act: self.act(payload)? },
            Some(Moment::After) => self.after(payload, (self.outcome)(payload))?,
            Some(Moment::Failed) => {
                let outcome = (self.outcome)(payload);
                self.after(payload, ActionOutcome { ok: Some(false), ..outcome })?
            }
            Some(Moment::Line) => {
                EventKind::Line { number: line_number(payload), command: payload.required(self.command)?.to_owned() }
            }
            Some(Moment::LineEnd) => EventKind::LineEnd { number: line_number(payload) },
        };
        let is_background = (self.is_background)(payload);
        let cwd = text(self.cwd)?.map(PathBuf::from).filter(|cwd| cwd.is_absolute());
        let doubt = payload.is_doubtful();
        let session = text(self.session)?;
        // Without it, only calls that the person refused stay unknown.
        let transcript = text(TRANSCRIPT).ok().flatten().map(PathBuf::from);
        let is_another = |id: &String| session.as_ref() != Some(id);
        let parent = text(self.parent)?.filter(is_another);
        let agent_kind = text(self.agent_kind)?;
        let agent = text(self.agent)?.filter(is_another).map(|id| SubAgent { id, kind: agent_kind });
        let kind = match kind {
            EventKind::TurnStart { .. } | EventKind::Ask(_) if agent.is_some() => {
                EventKind::Unused("a sub-agent's work belongs to the turn of its agent".to_owned())
            }
            EventKind::TurnStart { .. } | EventKind::TurnEnd if is_background => {
                EventKind::Unused("work in the background is not a turn".to_owned())
            }
            EventKind::TurnEnd if agent.is_some() => EventKind::AgentEnd,
            kind => kind,
        };
        let turn = text(self.turn)?;
        Ok(Event { client, session, parent, agent, turn, cwd, doubt, transcript, is_background, kind })
    }

    /// Returns the end of a call.
    ///
    /// # Errors
    /// `bad-request` for an id that is no text.
    fn after(&self, payload: &Payload, outcome: ActionOutcome) -> Result<EventKind> {
        let action = payload.text(self.action)?.map(str::to_owned);
        // A payload that repeats no call ends the oldest open one.
        let act = if action.is_none() { self.act(payload).ok() } else { None };
        Ok(EventKind::After { action, act, outcome })
    }

    /// Makes of a payload that is torn what can be made of it: an event before an action of which nothing is sure.
    pub(super) fn guess(&self, client: Client, payload: &Payload) -> Event {
        let text = |places| payload.text(places).ok().flatten().map(str::to_owned);
        let cwd = text(self.cwd).map(PathBuf::from).filter(|cwd| cwd.is_dir());
        let name = payload.required(self.tool).unwrap_or("unreadable call").to_owned();
        let unread = Act::Tool { name, input: Value::Null, paths: Vec::new(), writes: Some(true) };
        let kind = EventKind::Before { action: text(self.action), act: self.act(payload).unwrap_or(unread) };
        let (session, parent) = (text(self.session), text(self.parent));
        let is_background = (self.is_background)(payload);
        let (turn, transcript) = (text(self.turn), text(TRANSCRIPT).map(PathBuf::from));
        Event { client, session, parent, agent: None, turn, cwd, doubt: true, transcript, is_background, kind }
    }

    /// Returns the text of a prompt, which may come in parts.
    ///
    /// # Errors
    /// `bad-request` if it is neither text nor a list.
    pub(super) fn prompt(&self, payload: &Payload) -> Result<Option<String>> {
        if let Some(Value::Array(parts)) = payload.at(self.prompt) {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            // Images alone are a prompt without a text.
            return Ok((!texts.is_empty()).then(|| texts.join("\n")));
        }
        payload.text(self.prompt).map(|text| text.map(str::to_owned))
    }

    fn turn_start(&self, prompt: Option<String>) -> EventKind {
        match prompt {
            Some(prompt) if prompt.trim().is_empty() => EventKind::Unused("an empty prompt is not a turn".to_owned()),
            Some(prompt) => match Ask::parse(&prompt).filter(|_| self.answers) {
                Some(ask) => EventKind::Ask(ask),
                None => EventKind::TurnStart { prompt: Some(prompt) },
            },
            None => EventKind::TurnStart { prompt: None },
        }
    }

    /// Returns what a call is about to do.
    ///
    /// # Errors
    /// `bad-request` for a call without a tool.
    pub(super) fn act(&self, payload: &Payload) -> Result<Act> {
        if let Some(command) = payload.text(self.command)?
            && payload.at(self.tool).is_none()
        {
            let commands = vec![command.to_owned()];
            return Ok(Act::Shell { commands, cwd: None, cwd_told: self.cwd_told, in_background: false });
        }
        let name = payload.required(self.tool)?;
        let input = payload.at(self.input).cloned().unwrap_or(Value::Null);
        let commands = if self.shells.contains(&name) { commands(&input) } else { Vec::new() };
        if commands.is_empty() {
            let (input, paths) = patch(name, input);
            let writes = self.writers.contains(&name).then_some(true);
            return Ok(Act::Tool { name: name.to_owned(), input, paths, writes });
        }
        let places = ["workdir", "working_directory", "dir_path", "cwd"];
        let cwd = places.iter().find_map(|field| input.get(field)?.as_str()).filter(|cwd| !cwd.is_empty());
        let flags = ["run_in_background", "is_background"];
        let in_background = flags.iter().any(|flag| input.get(flag).and_then(Value::as_bool) == Some(true));
        Ok(Act::Shell { commands, cwd: cwd.map(PathBuf::from), cwd_told: self.cwd_told, in_background })
    }
}

/// Returns the number of a line that the person typed.
fn line_number(payload: &Payload) -> u64 {
    payload.at(&["/line"]).and_then(Value::as_u64).unwrap_or_default()
}

/// Returns a patch as the classifier knows it, wherever its text is, with the paths it names.
fn patch(tool: &str, input: Value) -> (Value, Vec<String>) {
    let text = ["command", "patch", "patchText", "input"].iter().find_map(|field| input.get(field)?.as_str());
    match text.or(input.as_str()).filter(|_| tool == "apply_patch") {
        Some(text) => {
            let mut paths: Vec<String> = crate::classify::patched(text).into_iter().map(|(path, _)| path).collect();
            paths.dedup();
            (serde_json::json!({ "patch": text }), paths)
        }
        None => (input, Vec::new()),
    }
}

/// Returns the command lines of a shell tool's input. An array is several lines, and so is an array written as text.
fn commands(input: &Value) -> Vec<String> {
    let lines = |value: &Value| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    match input.get("command").or_else(|| input.get("commands")) {
        Some(Value::String(text)) => {
            let several =
                text.starts_with('[').then(|| json::read(text.as_bytes())).filter(|read| read.fault.is_none());
            // A shell line that begins with `[` and is no JSON array of texts is a line.
            several
                .map(|read| lines(&read.value))
                .filter(|lines| !lines.is_empty())
                .unwrap_or_else(|| vec![text.clone()])
        }
        Some(value) => lines(value),
        None => Vec::new(),
    }
}

fn shown(name: &str) -> String {
    cut(&printable(name), 60)
}
