//! The agent clients (rank 2), one file each below `clients`. A hook's payload becomes an [`Event`]. A [`Decision`] becomes the
//! client's own reply. Hooks are put into a client's configuration, and taken out again. Pure: bytes and texts in, values and
//! texts out; no file, no socket, no clock, no environment.
//!
//! Invariant: client and event come from the arguments of `piton hook`, never from a guess: clients set each other's
//! environment variables. Invariant: any bytes are read without a panic, and what is not understood is an error with a code or
//! [`EventKind::Unused`] with a sentence. Invariant: a reply is nothing or valid JSON that this client knows; it refuses only what
//! the decision refuses, and approves nothing. Invariant: [`HookFile::remove`] gives back what [`HookFile::merge`] was given,
//! byte for byte, when nothing else changed it.

pub mod ask;
mod client;
mod clients;
mod edit;
pub mod event;
pub mod fixture;
pub mod install;
mod payload;
pub mod presence;
pub mod process;
mod profile;
pub mod reply;
mod shape;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod trail;
pub mod trust;
pub mod within;

pub use ask::Ask;
pub use client::Client;
pub use event::{Act, ActionOutcome, Event, EventKind, SubAgent};
pub use payload::MAX_PAYLOAD;
pub use profile::ReportedEnds;
pub use reply::Decision;

use std::time::Duration;

use crate::error::Result;
use clients::profile;
use install::{FileContent, HookFile, Spot};
use payload::Payload;
use shape::Moment;

impl Client {
    /// Returns whether its payloads were captured from the real client. Else it is known from documentation alone.
    pub fn captured(self) -> bool {
        profile(self).captured
    }

    /// Returns the calls of tools whose ends the client reports.
    pub fn reported_ends(self) -> ReportedEnds {
        profile(self).ends
    }

    /// Returns the program that is on the path where the client is installed.
    pub fn program(self) -> &'static str {
        profile(self).program
    }

    /// Returns the client's own directory, which is there where the client was used.
    pub fn directory(self) -> Spot {
        profile(self).directory
    }

    /// Returns the commands that an installation gives to the client's prompt, without the slash.
    pub fn commands(self) -> &'static [&'static str] {
        profile(self).commands
    }

    /// Says how a person takes this client's conversation back to before a turn; `None` where no such command is known.
    pub fn how_to_rewind(self) -> Option<String> {
        let command = profile(self).rewind?;
        Some(format!("`{command}` in {}, then choose the conversation only", self.title()))
    }

    /// Returns the person's own part of an installation.
    pub fn advice(self) -> Option<&'static str> {
        profile(self).advice
    }

    /// Returns whether a prompt can be answered without a model.
    pub fn answers(self) -> bool {
        profile(self).shape.answers
    }

    /// Returns whether the reply to this event carries a note to the model. A note is kept until one that does.
    pub fn reaches_model(self, event: &str) -> bool {
        profile(self).shape.step(event).is_some_and(profile(self).reaches_model)
    }

    /// Returns the files of an installation: below the home directory, or below a project.
    pub fn files(self, project: bool) -> &'static [HookFile] {
        if project { profile(self).project } else { profile(self).user }
    }

    /// Returns the time that the client waits for this hook, as it is installed. An answer takes at most half of it.
    pub fn patience(self, event: &str) -> Duration {
        let hooks = self.files(false).iter().find_map(|file| match file.content {
            FileContent::Json(hooks) | FileContent::Yaml(hooks) | FileContent::Toml(hooks) => Some(hooks.hooks),
            FileContent::Whole(_) | FileContent::Shim(_) | FileContent::Script { .. } => None,
        });
        let hook = hooks.unwrap_or_default().iter().find(|hook| hook.event == event);
        // The shims wait as long for what is no prompt.
        Duration::from_secs(hook.map_or(10, |hook| hook.seconds))
    }

    /// Returns the events that piton knows of this client.
    pub fn events(self) -> impl Iterator<Item = &'static str> + Clone {
        profile(self).shape.steps.iter().map(|(name, _)| *name)
    }

    /// Reads what a hook of this client was given on stdin for `event`.
    ///
    /// # Errors
    /// `line-too-long`, `bad-utf8`, `bad-json`; `bad-request` for what this client does not send for this event.
    pub fn parse(self, event: &str, payload: &[u8]) -> Result<Event> {
        profile(self).shape.read(self, event, &Payload::read(payload)?)
    }

    /// Returns true if an action waits for the reply to this event.
    pub fn is_before(self, event: &str) -> bool {
        profile(self).shape.step(event) == Some(Moment::Before)
    }

    /// Returns true if the client tells of the ends of turns.
    pub fn ends_turns(self) -> bool {
        profile(self).shape.steps.iter().any(|(_, step)| *step == Moment::TurnEnd)
    }

    /// Makes an event before an action of a payload that cannot be read, so that the action is guarded all the same.
    pub fn guess(self, payload: &[u8]) -> Event {
        profile(self).shape.guess(self, &Payload::torn(payload))
    }

    /// Returns the text to print on stdout for `event`: none for most. The exit code is always 0.
    pub fn reply(self, event: &str, decision: &Decision) -> Option<String> {
        let step = profile(self).shape.step(event)?;
        (profile(self).reply)(event, step, decision).map(|value| value.to_string())
    }
}
