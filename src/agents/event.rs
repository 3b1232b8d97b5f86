//! Events of clients, in piton's words.

use std::path::PathBuf;

use serde_json::Value;

use super::ask::Ask;
use super::client::Client;

/// One event of a client's hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub client: Client,
    /// The client's own id of the session.
    pub session: Option<String>,
    /// The client's own id of the turn. Without one, the turn is whatever lies between two [`EventKind::TurnStart`]s.
    pub turn: Option<String>,
    /// Absolute. Without one, the hook process's own directory is meant: clients start hooks where they stand.
    pub cwd: Option<PathBuf>,
    /// True if not everything that was told is known as it was meant.
    pub doubt: bool,
    pub kind: EventKind,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    SessionStart,
    SessionEnd,
    TurnStart {
        prompt: Option<String>,
    },
    /// The person asks piton itself. Only of clients that can be answered without a model.
    Ask(Ask),
    TurnEnd,
    Before {
        /// The client's own id of the call. Without one, an `After` ends the newest open action.
        action: Option<String>,
        act: Act,
    },
    After {
        action: Option<String>,
        outcome: ActionOutcome,
    },
    /// An event that changes nothing here: of a kind piton does not use, or one it does not know. Holds a sentence.
    Unused(String),
}

/// An action that is about to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Shell {
        /// In the order they will run; one for almost every client.
        commands: Vec<String>,
        /// The directory in which they run, if that is not the event's `cwd`; may be relative to it.
        cwd: Option<PathBuf>,
        /// False where the client keeps the directory of a command to itself, so that it may be any.
        cwd_told: bool,
    },
    Tool {
        name: String,
        input: Value,
        /// Paths the call names elsewhere than in the usual fields of `input`.
        paths: Vec<String>,
        /// The client's own word on it, if it has one.
        writes: Option<bool>,
    },
}

/// The outcome of an action, as far as the client tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionOutcome {
    pub ok: Option<bool>,
    pub exit: Option<i64>,
}
