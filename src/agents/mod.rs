//! The agent clients, one file each (rank 2): a hook's payload becomes an [`Event`], a [`Decision`] becomes the client's own
//! reply, and hooks are put into a client's configuration and taken out again. Pure: bytes and texts in, values and texts out;
//! no file, no socket, no clock, no environment.
//!
//! Invariant: client and event come from the arguments of `piton hook`, never from a guess: clients set each other's
//! environment variables. Invariant: any bytes are read without a panic, and what is not understood is an error with a code or
//! [`Kind::Unused`] with a sentence. Invariant: a reply is nothing or valid JSON that this client knows; it refuses only what
//! the decision refuses, and approves nothing. Invariant: [`File::remove`] gives back what [`File::merge`] was given,
//! byte for byte, when nothing else changed it.

pub mod ask;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod crush;
mod cursor;
mod droid;
mod edit;
pub mod event;
pub mod fixture;
mod gemini_cli;
mod goose;
mod hermes_agent;
pub mod install;
mod opencode;
mod payload;
mod pi;
pub mod presence;
mod qwen_code;
pub mod reply;
mod shape;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod trust;

pub use ask::Ask;
pub use event::{Act, Event, Kind, Outcome};
pub use payload::MAX_PAYLOAD;
pub use reply::Decision;

use std::time::Duration;

use serde_json::Value;

use crate::error::{Code, Error, Result};
use install::{Content, File, Spot};
use payload::Payload;
use shape::{Shape, Step};

/// An agent client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    ClaudeCode,
    Codex,
    GeminiCli,
    Opencode,
    CopilotCli,
    QwenCode,
    Cline,
    Pi,
    Droid,
    HermesAgent,
    Cursor,
    Crush,
    Goose,
}

/// All that is particular to one client.
struct Door {
    /// As on the command line.
    name: &'static str,
    title: &'static str,
    /// Whether it was held against payloads of the real client, or is from documentation alone.
    captured: bool,
    /// The program that is found on the path where the client is installed.
    program: &'static str,
    /// The client's own directory, which is there where the client was used.
    place: Spot,
    shape: Shape,
    reply: fn(&str, Step, &Decision) -> Option<Value>,
    /// Where what is told reaches the model.
    hears: fn(Step) -> bool,
    /// The files of an installation for the user, and for one project.
    user: &'static [File],
    project: &'static [File],
    /// The commands that an installation gives to the client's prompt, without the slash.
    commands: &'static [&'static str],
    /// What the person has to do besides.
    advice: Option<&'static str>,
}

/// Where the envelope of Claude Code carries a note to the model.
fn hears_claude(step: Step) -> bool {
    matches!(step, Step::Before | Step::After | Step::Failed | Step::TurnStart | Step::SessionStart)
}

impl Client {
    /// All of them.
    pub const ALL: [Client; 13] = [
        Client::ClaudeCode,
        Client::Codex,
        Client::GeminiCli,
        Client::Opencode,
        Client::CopilotCli,
        Client::QwenCode,
        Client::Cline,
        Client::Pi,
        Client::Droid,
        Client::HermesAgent,
        Client::Cursor,
        Client::Crush,
        Client::Goose,
    ];

    fn door(self) -> &'static Door {
        match self {
            Client::ClaudeCode => &claude_code::DOOR,
            Client::Codex => &codex::DOOR,
            Client::GeminiCli => &gemini_cli::DOOR,
            Client::Opencode => &opencode::DOOR,
            Client::CopilotCli => &copilot_cli::DOOR,
            Client::QwenCode => &qwen_code::DOOR,
            Client::Cline => &cline::DOOR,
            Client::Pi => &pi::DOOR,
            Client::Droid => &droid::DOOR,
            Client::HermesAgent => &hermes_agent::DOOR,
            Client::Cursor => &cursor::DOOR,
            Client::Crush => &crush::DOOR,
            Client::Goose => &goose::DOOR,
        }
    }

    /// The client of that name.
    ///
    /// # Errors
    /// `bad-request` with the names there are.
    pub fn named(name: &str) -> Result<Client> {
        Client::ALL.into_iter().find(|client| client.name() == name).ok_or_else(|| {
            let shown = crate::model::text::cut(&crate::model::text::printable(name), 60);
            let names: Vec<&str> = Client::ALL.iter().map(|client| client.name()).collect();
            Error::new(Code::BadRequest, format!("there is no client `{shown}`"))
                .field("client")
                .hint(format!("the clients are: {}", names.join(", ")))
        })
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.door().name
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        self.door().title
    }

    /// Whether its payloads were captured from the real client; else it is known from documentation alone.
    pub fn captured(self) -> bool {
        self.door().captured
    }

    /// The program that is on the path where the client is installed.
    pub fn program(self) -> &'static str {
        self.door().program
    }

    /// The client's own directory, which is there where the client was used.
    pub fn place(self) -> Spot {
        self.door().place
    }

    /// Returns the commands that an installation gives to the client's prompt, without the slash.
    pub fn commands(self) -> &'static [&'static str] {
        self.door().commands
    }

    /// What the person has to do after an installation.
    pub fn advice(self) -> Option<&'static str> {
        self.door().advice
    }

    /// Whether a prompt can be answered without a model.
    pub fn answers(self) -> bool {
        self.door().shape.answers
    }

    /// Whether the reply to this event carries a note to the model. A note is kept until one that does.
    pub fn hears(self, event: &str) -> bool {
        self.door().shape.step(event).is_some_and(self.door().hears)
    }

    /// How long the client waits for this hook, as it is installed. Whoever answers takes at most half of it.
    pub fn patience(self, event: &str) -> Duration {
        let hooks = install::files(self, false).iter().find_map(|file| match file.content {
            Content::Json(hooks) | Content::Yaml(hooks) => Some(hooks.hooks),
            Content::Whole(_) | Content::Shim(_) | Content::Script { .. } => None,
        });
        let hook = hooks.unwrap_or_default().iter().find(|hook| hook.event == event);
        // The shims wait as long for what is no prompt.
        Duration::from_secs(hook.map_or(10, |hook| hook.seconds))
    }

    /// The events piton knows of this client.
    pub fn events(self) -> impl Iterator<Item = &'static str> + Clone {
        self.door().shape.steps.iter().map(|(name, _)| *name)
    }

    /// Reads what a hook of this client was given on stdin for `event`.
    ///
    /// # Errors
    /// `line-too-long`, `bad-utf8`, `bad-json`; `bad-request` for what this client does not send for this event.
    pub fn parse(self, event: &str, payload: &[u8]) -> Result<Event> {
        self.door().shape.read(self, event, &Payload::read(payload)?)
    }

    /// True if an action waits for the reply to this event.
    pub fn is_before(self, event: &str) -> bool {
        self.door().shape.step(event) == Some(Step::Before)
    }

    /// Makes an event before an action of a payload that cannot be read, so that the action is guarded all the same.
    pub fn guess(self, payload: &[u8]) -> Event {
        self.door().shape.guess(self, &Payload::torn(payload))
    }

    /// What to print on stdout for `event`; nothing for most. The exit code is always 0.
    pub fn reply(self, event: &str, decision: &Decision) -> Option<String> {
        let step = self.door().shape.step(event)?;
        (self.door().reply)(event, step, decision).map(|value| value.to_string())
    }
}
