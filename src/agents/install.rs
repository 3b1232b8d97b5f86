//! The files that an installation of hooks writes or edits, and their content. Text in, text out.

use std::path::{Path, PathBuf};

use super::client::Client;
use super::edit::json::{NewValue, Style};
use super::edit::{json, toml, yaml};
use crate::error::{Code, Error, Result};
use crate::model::text::shell_word;
use crate::sys::runtime::note_for_sh;

/// One file of an installation.
#[derive(Clone, Copy, Debug)]
pub struct HookFile {
    /// The file's place.
    pub spot: Spot,
    /// The text that is to stand in it.
    pub content: FileContent,
}

/// The place of a file.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// A variable that names the client's directory instead of `dir`.
    pub env: Option<&'static str>,
    /// Below the home directory or the project.
    pub dir: &'static str,
    /// The file below that directory; empty for the directory itself.
    pub path: &'static str,
}

impl Spot {
    /// Returns the full path, `root` being the home directory or the project.
    pub fn below(&self, root: &Path, variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
        let named = self.env.and_then(variable).filter(|named| named.is_absolute());
        let dir = named.unwrap_or_else(|| root.join(self.dir));
        if self.path.is_empty() { dir } else { dir.join(self.path) }
    }
}

/// The content of a file.
#[derive(Clone, Copy, Debug)]
pub enum FileContent {
    /// Hooks among other things.
    Json(Hooks),
    /// The same in a YAML file.
    Yaml(Hooks),
    /// The same in a TOML file.
    Toml(Hooks),
    /// A file of piton's own.
    Whole(&'static str),
    /// The same, with the program's path in place of `"@PITON@"`, and a text for `sh` in place of `"@NOTE@"`.
    Shim(&'static str),
    /// An executable that calls piton for one event.
    Script {
        /// The client's name of the event.
        event: &'static str,
    },
}

/// The hooks of one client.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// The form in which the client writes its hooks down.
    pub style: Style,
    /// The unit in which the client counts its timeouts.
    pub unit: Unit,
    /// The way in which the client runs a command.
    pub runner: Runner,
    /// Each event that piton has a hook for.
    pub hooks: &'static [Hook],
}

/// The unit of a client's timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Whole seconds.
    Seconds,
    /// Thousandths of a second.
    Milliseconds,
}

/// The way in which a client runs a command, on which its end depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runner {
    /// By a shell: the command ends well where piton is missing.
    Shell,
    /// By a shell, too. A hook can say that its failure is a veto.
    VetoShell,
    /// As `VetoShell`. Each hook before an action says so, and the lack of its program is a failure.
    HoldingShell,
    /// As it stands: the client splits it into words, or trusts only the very command that the person has seen. Such a client goes on
    /// without a program that is missing.
    Verbatim,
}

impl Runner {
    /// Returns the command of a hook of a client.
    fn command(self, program: &str, client: Client, event: &str) -> String {
        let plain = command(program, client, event);
        match self {
            Runner::Verbatim => plain,
            Runner::HoldingShell if self.holds(client, event) => plain,
            Runner::Shell | Runner::VetoShell | Runner::HoldingShell if client.is_before(event) => {
                plain + NOTED + &note(client, event) + "'" + WELL
            }
            Runner::Shell | Runner::VetoShell | Runner::HoldingShell => plain + WELL,
        }
    }

    /// Returns true if the failure of a hook is to hold the action.
    fn holds(self, client: Client, event: &str) -> bool {
        self == Runner::HoldingShell && client.is_before(event)
    }
}

/// The end of a command that a shell runs: to some clients a failing hook is a veto, also one that only lacks its program. piton itself
/// always ends with 0.
const WELL: &str = " || :";

/// The part of a command before an action in which `sh` notes that piton could not be started. It is one word, since a client may run its
/// commands by another shell.
const NOTED: &str = " || sh -c '";

/// Returns the text for `sh` of one event.
fn note(client: Client, event: &str) -> String {
    note_for_sh(&format!("{} {event}", client.name()))
}

/// One hook; the client gives up on it after some seconds.
#[derive(Clone, Copy, Debug)]
pub struct Hook {
    /// The client's name of the event.
    pub event: &'static str,
    /// The time after which the client gives up on the hook, in seconds.
    pub seconds: u64,
}

/// The placeholder for the program's path in a shim, as a literal with its quotes.
pub(super) const PLACE: &str = "\"@PITON@\"";

/// The placeholder for the text with which a shim's `sh` notes that piton could not be started.
const NOTE_PLACE: &str = "\"@NOTE@\"";

/// The text in one of the first lines of every file that is piton's alone.
const OWN: &str = "Written by `piton install";

impl HookFile {
    /// Returns the file as it is to be where an action waits when piton fails, as far as the client can do that.
    #[must_use]
    pub fn holding(mut self) -> HookFile {
        if let FileContent::Json(hooks) = &mut self.content
            && hooks.runner == Runner::VetoShell
        {
            hooks.runner = Runner::HoldingShell;
        }
        self
    }

    /// Returns whether the file is to be executable.
    pub fn executable(&self) -> bool {
        matches!(self.content, FileContent::Script { .. })
    }

    /// Returns the file's text with the hooks in it. The text as it was if they are all there.
    ///
    /// # Errors
    /// `bad-json`, `bad-request`: the file is not what the client writes. `conflict`: it is somebody else's, or written in a way
    /// that is not edited here; the hint says what to add by hand.
    pub fn merge(&self, client: Client, program: &str, text: Option<&str>) -> Result<String> {
        match self.content {
            FileContent::Json(hooks) => json::merge(text, &hooks.wanted(client, program), hooks.style, &ours(client)),
            FileContent::Yaml(hooks) => yaml::merge(text, &hooks.wanted(client, program), &ours(client)),
            FileContent::Toml(hooks) => toml::merge(text, &hooks.wanted(client, program), &ours(client)),
            FileContent::Whole(_) | FileContent::Shim(_) | FileContent::Script { .. } => {
                refuse_foreign(text)?;
                Ok(self.whole(client, program))
            }
        }
    }

    /// Returns the file's text without the hooks; nothing if nothing else was in it, and the file is to go.
    ///
    /// # Errors
    /// As [`HookFile::merge`].
    pub fn remove(&self, client: Client, text: &str) -> Result<Option<String>> {
        match self.content {
            FileContent::Json(hooks) => json::remove(text, hooks.style, &ours(client)),
            FileContent::Yaml(_) => yaml::remove(text, &ours(client)),
            FileContent::Toml(_) => toml::remove(text, &ours(client)),
            // A foreign file stays.
            FileContent::Whole(_) | FileContent::Shim(_) | FileContent::Script { .. } => {
                Ok(refuse_foreign(Some(text)).is_err().then(|| text.to_owned()))
            }
        }
    }

    fn whole(&self, client: Client, program: &str) -> String {
        match self.content {
            FileContent::Whole(text) => text.to_owned(),
            FileContent::Shim(text) => {
                let before = client.events().find(|event| client.is_before(event)).unwrap_or_default();
                let literal = |text: String| serde_json::Value::from(text).to_string();
                text.replace(NOTE_PLACE, &literal(note(client, before))).replace(PLACE, &literal(program.to_owned()))
            }
            FileContent::Script { event } => {
                format!(
                    "#!/bin/sh\n# {OWN} {}`, and taken away by `piton uninstall`.\n{}\n",
                    client.name(),
                    Runner::Shell.command(program, client, event)
                )
            }
            FileContent::Json(_) | FileContent::Yaml(_) | FileContent::Toml(_) => String::new(),
        }
    }
}

fn refuse_foreign(text: Option<&str>) -> Result<()> {
    match text {
        Some(text) if !text.trim().is_empty() && !is_own(text) => Err(Error::new(
            Code::Conflict,
            "there is already a file of another program under the name that piton needs",
        )
        .hint("move it away and install again, or call `piton hook` from it (docs/AGENTS.md)")),
        _ => Ok(()),
    }
}

/// Returns whether a file is piton's alone, by its head.
pub(super) fn is_own(text: &str) -> bool {
    text.lines().take(8).any(|line| line.contains(OWN))
}

/// Returns the command of a hook without an end of its own.
pub fn command(program: &str, client: Client, event: &str) -> String {
    format!("{} hook {} {event}", shell_word(program), client.name())
}

/// Tells whether a command is piton's, also one that an older piton wrote, with another path.
pub(super) fn ours(client: Client) -> impl Fn(&str) -> bool {
    move |command: &str| separated(client, command).is_some()
}

/// Returns the program and the event of a command that is ours, with or without its end.
pub(super) fn separated(client: Client, command: &str) -> Option<(String, &str)> {
    let command = command.strip_suffix(WELL).unwrap_or(command);
    let command = command.split_once(NOTED).map_or(command, |(call, _)| call);
    let (program, event) = command.rsplit_once(&format!(" hook {} ", client.name()))?;
    let (program, event) = (program.trim(), event.trim());
    let name = program.trim_end_matches('\'').rsplit('/').next().unwrap_or_default();
    let is_ours =
        name.trim_start_matches('\'').starts_with("piton") && !event.is_empty() && !event.contains(char::is_whitespace);
    let quoted = program.strip_prefix('\'').and_then(|program| program.strip_suffix('\''));
    let program = quoted.map_or_else(|| program.to_owned(), |program| program.replace("'\\''", "'"));
    is_ours.then_some((program, event))
}

impl Hooks {
    /// Returns each event with what is to stand in its list.
    fn wanted(&self, client: Client, program: &str) -> Vec<(&'static str, NewValue)> {
        self.hooks
            .iter()
            .map(|hook| {
                let command = self.runner.command(program, client, hook.event);
                (hook.event, self.node(hook, command, self.runner.holds(client, hook.event)))
            })
            .collect()
    }

    fn node(&self, hook: &Hook, command: String, holds: bool) -> NewValue {
        let command = NewValue::Text(command);
        let timeout = NewValue::Number(match self.unit {
            Unit::Seconds => hook.seconds,
            Unit::Milliseconds => hook.seconds * 1000,
        });
        let kind = || ("type", NewValue::Text("command".to_owned()));
        match self.style {
            Style::Groups => {
                let mut handler = vec![kind(), ("command", command), ("timeout", timeout)];
                handler.extend(holds.then(|| ("onFailure", NewValue::Text("block".to_owned()))));
                NewValue::Map(vec![("hooks", NewValue::List(vec![NewValue::Map(handler)]))])
            }
            Style::Flat | Style::FlatVersioned => NewValue::Map(vec![("command", command), ("timeout", timeout)]),
            Style::Copilot => NewValue::Map(vec![kind(), ("bash", command), ("timeoutSec", timeout)]),
        }
    }
}
