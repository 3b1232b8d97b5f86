//! Events of clients, in piton's words.

use std::path::PathBuf;

use serde_json::Value;

use super::ask::Ask;
use super::client::Client;

/// One event of a client's hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The client whose hook it is.
    pub client: Client,
    /// The client's own id of the session.
    pub session: Option<String>,
    /// The client's own id of the session that began this one, where it tells.
    pub parent: Option<String>,
    /// The sub-agent of the session whose event it is, where the client runs sub-agents in the session of their agent.
    pub agent: Option<SubAgent>,
    /// The client's own id of the turn. Without one, the turn is whatever lies between two [`EventKind::TurnStart`]s.
    pub turn: Option<String>,
    /// Absolute. Without one, the hook process's own directory counts: clients start hooks in their own directory.
    pub cwd: Option<PathBuf>,
    /// True if some of the payload may have another meaning than the one that was read.
    pub doubt: bool,
    /// The file to which the client writes the conversation of the session, where it names that.
    pub transcript: Option<PathBuf>,
    /// True for work in the background of the session, which begins and ends no turn.
    pub is_background: bool,
    /// The step of the client's work, with its facts.
    pub kind: EventKind,
}

/// A sub-agent in the session of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubAgent {
    /// The client's own id of it.
    pub id: String,
    /// The client's word for its kind.
    pub kind: Option<String>,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A session begins or continues.
    SessionStart,
    /// A session has ended.
    SessionEnd,
    /// A sub-agent in the session has ended.
    AgentEnd,
    /// The person has sent a prompt, and the model begins to work.
    TurnStart {
        /// The prompt's text; `None` where the client does not tell it.
        prompt: Option<String>,
    },
    /// The person asks piton itself. Only of clients that can be answered without a model.
    Ask(Ask),
    /// The model has answered.
    TurnEnd,
    /// An action is about to run; the client waits for the answer.
    Before {
        /// The client's own id of the call. Without one, an `After` is matched by the tool and its arguments.
        action: Option<String>,
        /// The action, in piton's words.
        act: Act,
    },
    /// An action has run, or has failed.
    After {
        /// The client's own id of the call, as `Before` had it.
        action: Option<String>,
        /// The call itself, where there is no id and the payload repeats it.
        act: Option<Act>,
        /// The result.
        outcome: ActionOutcome,
    },
    /// A line that the person typed in the client's terminal is about to run in a shell; the client waits for the answer.
    Line {
        /// The number of the line in its session.
        number: u64,
        /// The line.
        command: String,
    },
    /// Such a line has ended.
    LineEnd {
        /// The number of the line in its session.
        number: u64,
    },
    /// An event that changes nothing here: of a kind piton does not use, or one it does not know. Holds a sentence.
    Unused(String),
}

/// An action that is about to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Command lines of the client's shell tool.
    Shell {
        /// In the order they will run; one for almost every client.
        commands: Vec<String>,
        /// The directory in which they run, if that is not the event's `cwd`; may be relative to it.
        cwd: Option<PathBuf>,
        /// False where the client keeps the directory of a command to itself, so that it may be any.
        cwd_told: bool,
        /// True if the client does not wait for their ends.
        in_background: bool,
    },
    /// A call of any other tool.
    Tool {
        /// The client's name of the tool.
        name: String,
        /// The call's arguments as they were sent; `null` where there are none.
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
    /// True if it succeeded; `None` where the client does not tell.
    pub ok: Option<bool>,
    /// The exit code of a command; `None` for other tools, and where the client does not tell.
    pub exit: Option<i64>,
}
