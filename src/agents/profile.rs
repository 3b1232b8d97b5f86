//! All that is particular to one client, as one value.

use serde_json::Value;

use super::install::{HookFile, Spot};
use super::reply::Decision;
use super::shape::{Moment, Shape};

/// The calls of tools whose ends a client reports. A call that the person denied never has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedEnds {
    /// Every call that ran, whether it succeeded or failed.
    Always,
    /// Only calls that succeeded.
    OnSuccess,
    /// None.
    Never,
}

/// A client as piton sees it.
pub(super) struct Profile {
    /// True if it was held against payloads of the real client; else it is from documentation alone.
    pub captured: bool,
    /// The calls whose ends it reports: an action without a reported end may have been denied, but for clients that report none.
    pub ends: ReportedEnds,
    /// The program that is found on the path where the client is installed.
    pub program: &'static str,
    /// The environment variables that it sets in its commands and hooks; empty if none is known.
    pub marks: &'static [&'static str],
    /// The client's own directory, which is there where the client was used.
    pub directory: Spot,
    pub shape: Shape,
    pub reply: fn(&str, Moment, &Decision) -> Option<Value>,
    /// Tells whether a note in the reply to an event reaches the model.
    pub reaches_model: fn(Moment) -> bool,
    /// The files of an installation for the user.
    pub user: &'static [HookFile],
    /// The files of an installation for one project.
    pub project: &'static [HookFile],
    /// The commands that an installation gives to the client's prompt, without the slash.
    pub commands: &'static [&'static str],
    /// The client's own command that takes a conversation back, and can leave the files alone: of its documentation.
    pub rewind: Option<&'static str>,
    /// The person's own part of an installation.
    pub advice: Option<&'static str>,
}
