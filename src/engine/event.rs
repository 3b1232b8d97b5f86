//! The words of clients about themselves and of what they are about to do.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::checkpoint::records::action_window::EndedCall;
use crate::model::door::Door;
use crate::model::id::{ObjectId, ObjectKind};

/// A step of a client's work that the guard follows.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client has begun to speak; the first event of a session.
    Opened(Opening),
    /// A turn begins.
    TurnStarted(TurnStart),
    /// A turn has ended.
    TurnEnded {
        /// Empty: the open turn.
        turn: String,
    },
    /// An action is about to run.
    Before(Action),
    /// An action has ended.
    After {
        /// The action, by the client's id or by its tool and arguments; without both, the oldest one that is open.
        call: EndedCall,
        /// The moment at which it ended, in milliseconds since the epoch, where that is told later.
        ended: Option<i64>,
    },
}

/// The start of a client's session.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// The name by which the client calls itself.
    pub client: Option<String>,
    /// The workspace that the client names, absolute.
    pub workspace: Option<PathBuf>,
    /// The client's working directory, if no workspace is named.
    pub cwd: Option<PathBuf>,
    /// The client's own id of the session.
    pub session: Option<String>,
    /// The client's own id of the session that began this one.
    pub parent: Option<String>,
    /// True for a sub-agent at work in the turn of `parent`.
    pub shares_turn: bool,
    /// The purpose of the session's run, as it came.
    pub goal: Option<String>,
    /// The number of the client's process.
    pub pid: Option<u32>,
    /// True if the replies on this connection reach the model.
    pub reaches_model: Option<bool>,
    /// True if the client waits for the answer before it acts.
    pub waits: Option<bool>,
    /// The door that the client comes through; `None` for the line protocol.
    pub door: Option<Door>,
    /// True if changes are to be saved as long as the session lasts.
    pub autosave: bool,
    /// The pause after which a turn counts as ended, for a client that reports no turns: one begins with its first action.
    pub turn_pause: Option<Duration>,
}

/// The start of a turn.
#[derive(Clone, Debug)]
pub struct TurnStart {
    /// The client's own name of the turn.
    pub turn: String,
    /// The session that continues with this turn; absent: the connection's own.
    pub run: Option<String>,
    /// The prompt of the person, as it came.
    pub prompt: Option<String>,
    /// True if an action of the turn follows, whose answer has the notes. Without a name, the open turn goes on, or one begins.
    pub for_action: bool,
}

/// An action before it runs.
#[derive(Clone, Debug)]
pub struct Action {
    /// The client's own id of the action.
    pub id: Option<String>,
    /// The action, in piton's words.
    pub what: Doing,
    /// Relative to the workspace, or absolute.
    pub cwd: Option<PathBuf>,
    /// The time for which the client waits, if that is less than the configured deadline.
    pub wait: Option<Duration>,
    /// True if text was lost on its way, so that another command may run.
    pub doubt: bool,
    /// True if the client does not wait for its end.
    pub in_background: bool,
}

impl Action {
    /// Returns the digest of the tool and its arguments.
    pub fn call(&self) -> Option<String> {
        match &self.what {
            Doing::Shell { command } => call_digest("shell", &Value::from(command.as_str())),
            Doing::Tool(tool) => call_digest(&tool.name, &tool.input),
        }
    }
}

/// Returns the digest of a tool and its arguments, by which an end without an id is matched with its beginning. A `Value` sorts its
/// fields, so that their order does not count.
pub fn call_digest(tool: &str, input: &Value) -> Option<String> {
    let text = format!("{tool}\n{input}");
    ObjectId::of(ObjectKind::Blob, text.as_bytes()).ok().map(|id| id.to_string()) // too large to be hashed: it has no digest
}

/// The kinds of actions.
#[derive(Clone, Debug)]
pub enum Doing {
    /// A command line that a shell runs.
    Shell {
        /// The line as the shell gets it.
        command: String,
    },
    /// A call of any other tool.
    Tool(Tool),
}

/// A structured tool call.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The client's name of the tool.
    pub name: String,
    /// The arguments as they are: the classifier reads them.
    pub input: Value,
    /// Paths that the call names elsewhere than in the usual fields of `input`.
    pub paths: Vec<String>,
    /// The client's own statement about it, if it makes one.
    pub writes: Option<bool>,
    /// True if it reaches beyond this machine's files.
    pub external: Option<bool>,
}

/// A run that is to begin, in the client's words.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// The client's own name of the run; `None` has one made.
    pub run: Option<String>,
    /// The client's own name of the run that it is a part of.
    pub parent: Option<String>,
    /// The purpose, as it came.
    pub goal: Option<String>,
    /// The name by which the client calls itself; `None` means the session's.
    pub client: Option<String>,
}
