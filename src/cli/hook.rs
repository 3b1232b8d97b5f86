//! The verb `hook`: one event of an agent client, answered in that client's words.
//!
//! It always ends with 0 and prints nothing or what the client understands: to some clients a failing hook is a veto.
//! An error of piton itself is shown to the person where the client has a place for it, and in `piton status`.

use std::io::{IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use serde::Deserialize;
use serde_json::{Value, json};

use super::exit::Exit;
use super::hook_answer::answer;
use crate::agents::{Act, Client, Decision, Event, EventKind, MAX_PAYLOAD};
use crate::checkpoint::{Home, records::mishaps};
use crate::doors::socket::Link;
use crate::error::{Code, Error, Result};
use crate::model::json;
use crate::protocol::{CheckpointBlock, CheckpointStatus};
use crate::sys::clock::now_ms;
use crate::sys::pipe;

/// The arguments as help shows them; [`hook`] reads them itself, because a client takes a usage error for a veto.
#[derive(Debug, Args)]
pub(super) struct HookArgs {
    /// The agent client, as `piton install` names it
    pub client: String,
    /// The client's name of the event; its payload comes on stdin, as the client sends it
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
    let caught = catch_unwind(AssertUnwindSafe(|| decide(&asked)));
    let decided = caught.unwrap_or_else(|_| Err(Error::new(Code::Internal, "a bug in piton; please report it")));
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
            .hint("`piton install` writes the hooks anew"));
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
        .map_err(|error| Error::new(Code::Internal, format!("the hook's payload cannot be read: {error}")))?;
    let (event, torn) = match asked.client.parse(&asked.event, &payload) {
        Ok(event) => (event, None),
        // Some action is about to run: it is guarded by what could be read of it.
        Err(error) if asked.client.is_before(&asked.event) => (asked.client.guess(&payload), Some(error)),
        Err(error) => return Err(error),
    };
    drop(payload);
    if let EventKind::Unused(_) = event.kind {
        return Ok(Decision::default());
    }
    if let Some(error) = &torn {
        note(&format!("{} {}", asked.client.name(), asked.event), error);
    }
    let home = Home::locate()?;
    let link = if asked.alone { Link::alone(&home)? } else { Link::open(&home)? };
    let mut decision =
        Exchange { link, event: &event, deadline, reaches_model: asked.client.reaches_model(&asked.event) }.have()?;
    if let Some(error) = torn {
        let told = format!("piton: {}; the action was guarded by what could be read of it", error.text());
        decision.message = Some(decision.message.map_or(told.clone(), |message| format!("{told}\n{message}")));
    }
    Ok(decision)
}

/// Holds a refusal of the engine: its code and text.
#[derive(Debug)]
pub(super) struct Refused {
    code: String,
    text: String,
}

impl Refused {
    /// True if files moved since the preview.
    pub(super) fn is_stale(&self) -> bool {
        self.code == Code::StalePlan.as_str()
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused { code: error.code().as_str().to_owned(), text: error.text() }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        Error::new(Code::Internal, refused.text)
    }
}

/// One event's conversation with the engine.
pub(super) struct Exchange<'e> {
    link: Link,
    event: &'e Event,
    deadline: Instant,
    reaches_model: bool,
}

impl Exchange<'_> {
    fn have(mut self) -> Result<Decision> {
        self.hello()?;
        match &self.event.kind {
            EventKind::SessionStart => self.tell(json!({ "type": "ping" })),
            EventKind::SessionEnd => self.tell(json!({ "type": "run.end" })),
            EventKind::TurnEnd => {
                self.tell(json!({ "type": "turn.end", "turn": self.event.turn.as_deref().unwrap_or("") }))
            }
            EventKind::TurnStart { .. } => {
                let turn = self.event.turn.clone().unwrap_or_else(|| format!("t{}", now_ms()));
                self.tell(json!({ "type": "turn.start", "turn": turn }))
            }
            EventKind::Ask(ask) => {
                let text = answer(&mut self, ask)
                    .unwrap_or_else(|refused| format!("piton: {} ({})", refused.text, refused.code));
                Ok(Decision { answer: Some(text), ..Decision::default() })
            }
            EventKind::Before { action, act } => self.before(action.as_deref(), act),
            EventKind::After { action, outcome } => {
                self.tell(json!({ "type": "tool.after", "action": action, "ok": outcome.ok, "exit": outcome.exit }))
            }
            EventKind::Unused(_) => Ok(Decision::default()),
        }
    }

    /// Says who asks. A client without an id of the session has one session in each directory.
    fn hello(&mut self) -> Result<()> {
        let client = self.event.client.name();
        let cwd = self.event.cwd.clone().or_else(|| std::env::current_dir().ok());
        let cwd_text = cwd.as_deref().map(|cwd| cwd.to_string_lossy().into_owned());
        let session = self.event.session.as_deref().or(cwd_text.as_deref()).unwrap_or_default();
        self.link.send(json!({ "type": "hello", "client": client, "session": format!("{client}.{session}"),
            "cwd": cwd_text, "reaches_model": self.reaches_model }))?;
        Ok(())
    }

    /// The body of the reply to a request.
    pub(super) fn ask(&mut self, body: Value) -> Result<Value, Refused> {
        let id = self.link.send(body)?;
        let reply = self
            .link
            .reply(id, self.deadline)?
            .ok_or_else(|| Error::new(Code::Busy, "piton did not answer in time; what it was asked goes on behind"))?;
        if reply["ok"] == json!(true) {
            return Ok(reply);
        }
        let word = |name: &str, without: &str| reply["error"][name].as_str().unwrap_or(without).to_owned();
        Err(Refused {
            code: word("code", Code::Internal.as_str()),
            text: word("message", "piton's engine gave no reason"),
        })
    }

    /// The client that the event came from.
    pub(super) fn client(&self) -> Client {
        self.event.client
    }

    /// The directory that the event is about.
    pub(super) fn cwd(&self) -> Option<PathBuf> {
        self.event.cwd.clone()
    }

    fn tell(&mut self, body: Value) -> Result<Decision> {
        let reply = self.ask(body)?;
        let context = reply["notices"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Ok(Decision { context: context.collect(), ..Decision::default() })
    }

    /// A checkpoint before what destroys something, and what is to be said of it.
    fn before(&mut self, action: Option<&str>, act: &Act) -> Result<Decision> {
        if let Some(turn) = &self.event.turn {
            // The same open turn again is nothing.
            self.link.send(json!({ "type": "turn.start", "turn": turn }))?;
        }
        let deadline_ms = self.deadline.saturating_duration_since(Instant::now()).as_millis() as u64;
        let common = |kind: &str, cwd: Option<&PathBuf>| {
            let cwd = match (cwd, &self.event.cwd) {
                (Some(cwd), Some(base)) => Some(base.join(cwd)),
                (cwd, base) => cwd.or(base.as_ref()).cloned(),
            };
            json!({ "type": kind, "action": action, "cwd": cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
                "deadline_ms": deadline_ms, "doubt": self.event.doubt })
        };
        let requests: Vec<Value> = match act {
            Act::Shell { commands, cwd, cwd_told: _ } => commands
                .iter()
                .map(|command| {
                    let mut request = common("shell.before", cwd.as_ref());
                    request["command"] = json!(command);
                    request
                })
                .collect(),
            Act::Tool { name, input, paths, writes } => {
                let mut request = common("tool.before", None);
                request["tool"] = json!(name);
                request["input"] = shortened(input);
                request["paths"] = json!(paths);
                request["writes"] = json!(writes);
                vec![request]
            }
        };
        let mut decision = Decision::default();
        for request in requests {
            let reply = self.ask(request)?;
            add(&mut decision, &reply, self.reaches_model);
        }
        Ok(decision)
    }
}

/// Adds one reply to the decision.
fn add(decision: &mut Decision, reply: &Value, reaches_model: bool) {
    if reply["proceed"] == json!(false) {
        let reason = reply["reason"].as_str().unwrap_or("the policy says no");
        decision.deny.get_or_insert_with(|| format!("piton: {reason}"));
    }
    let texts = |list: &Value, field: Option<&str>| -> Vec<String> {
        let items = list.as_array().into_iter().flatten();
        items.filter_map(|item| field.map_or(item, |field| &item[field]).as_str()).map(str::to_owned).collect()
    };
    let warnings = texts(&reply["warnings"], Some("message"));
    let mut messages: Vec<String> = Vec::new();
    let not_held = crate::protocol::not_held_sentence(reply);
    if reaches_model {
        decision.context.extend(not_held.iter().map(|text| format!("piton: {text}")));
        decision.context.extend(warnings.iter().map(|warning| format!("piton: {warning}")));
        decision.context.extend(texts(&reply["notices"], None));
    } else {
        messages.extend(warnings);
        messages.extend(not_held);
    }
    // A reply without a block says nothing of a checkpoint.
    let checkpoint = CheckpointBlock::deserialize(&reply["checkpoint"]).unwrap_or_default();
    let status = match checkpoint.status {
        CheckpointStatus::Late => Some("late"),
        CheckpointStatus::Failed => Some("failed"),
        _ => None,
    };
    if let Some(status) = status {
        let why = checkpoint.reason.as_deref().unwrap_or("no reason is known");
        messages.push(format!("no checkpoint before this action ({status}): {why}"));
    }
    if !messages.is_empty() {
        let text = format!("piton: {}", messages.join("; "));
        decision.message = Some(match decision.message.take() {
            Some(before) => format!("{before}\n{text}"),
            None => text,
        });
    }
}

/// A tool's input without what is long: contents are not judged, and a line of the protocol has a limit.
fn shortened(input: &Value) -> Value {
    match input {
        // A patch names its files in its text.
        Value::String(text) if text.len() > MAX_FIELD && !text.contains("*** Begin Patch") => {
            Value::String(crate::model::text::cut(text, 200))
        }
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), shortened(value))).collect(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        other => other.clone(),
    }
}
