//! The state of an installation: the hooks that a client's file holds, and the program that they call. Text in, values out.

use std::cell::RefCell;

use super::client::Client;
use super::edit::{json, toml, yaml};
use super::install::{FileContent, HookFile, PLACE, is_own, ours, separated};
use crate::error::Result;

/// The part of an installation that a file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing of piton's.
    None,
    /// All of this version's, calling this program.
    Current(Vec<HookCall>),
    /// Some, or an older version's, or calling another program.
    Stale(Vec<HookCall>),
}

/// One place that calls piton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// The program's path.
    pub program: String,
    /// The client's event; none where a shim calls for all of them.
    pub event: Option<String>,
    /// The line as the client runs it; none for a shim, which spawns the program itself.
    pub command: Option<String>,
}

impl HookFile {
    /// Returns what the file holds, where `program` is what its hooks are to call.
    ///
    /// # Errors
    /// As [`HookFile::merge`].
    pub fn presence(&self, client: Client, program: &str, text: Option<&str>) -> Result<Presence> {
        let Some(text) = text else { return Ok(Presence::None) };
        let is_there = match self.content {
            FileContent::Json(_) | FileContent::Yaml(_) | FileContent::Toml(_) => {
                self.remove(client, text)?.as_deref() != Some(text)
            }
            FileContent::Whole(_) | FileContent::Shim(_) | FileContent::Script { .. } => is_own(text),
        };
        if !is_there {
            return Ok(Presence::None);
        }
        let calls = self.calls(client, text)?;
        let current = self.merge(client, program, Some(text))? == text;
        Ok(if current { Presence::Current(calls) } else { Presence::Stale(calls) })
    }

    /// Returns the places that call piton.
    fn calls(&self, client: Client, text: &str) -> Result<Vec<HookCall>> {
        let heard: RefCell<Vec<HookCall>> = RefCell::default();
        let is_ours = ours(client);
        let hear = |command: &str| {
            let call = is_ours(command).then(|| call(client, command)).flatten();
            if let Some(call) = call.filter(|call| !heard.borrow().contains(call)) {
                heard.borrow_mut().push(call);
            }
            is_ours(command)
        };
        match self.content {
            FileContent::Json(hooks) => drop(json::remove(text, hooks.style, &hear)?),
            FileContent::Yaml(_) => drop(yaml::remove(text, &hear)?),
            FileContent::Toml(_) => toml::commands(text, &hear)?,
            FileContent::Whole(_) => {}
            FileContent::Shim(shim) => return Ok(spawned(shim, text).into_iter().collect()),
            FileContent::Script { .. } => {
                // Older versions of piton ran it by `exec`.
                text.lines().map(|line| line.strip_prefix("exec ").unwrap_or(line)).for_each(|command| {
                    hear(command);
                });
            }
        }
        Ok(heard.into_inner())
    }
}

fn call(client: Client, command: &str) -> Option<HookCall> {
    let (program, event) = separated(client, command)?;
    Some(HookCall { program, event: Some(event.to_owned()), command: Some(command.to_owned()) })
}

/// Returns the program that a shim spawns: the literal in the line where its template has the place for one.
fn spawned(shim: &str, text: &str) -> Option<HookCall> {
    let before = shim.lines().find_map(|line| Some(line.split_once(PLACE)?.0))?;
    let rest = text.lines().find_map(|line| line.strip_prefix(before))?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
    let program = values.next()?.ok()?;
    Some(HookCall { program, event: None, command: None })
}
