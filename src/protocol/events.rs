//! Messages of a session: its start, its turns, its actions, and their answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shapes::{CheckpointBlock, List, NotHeld, WarningBlock};
use super::status::SilentItem;
use super::words::{Word, is_false, readable};
use crate::model::door::Door;
use crate::model::effect::{Confidence, Effect, Needs};
use crate::model::policy::Guard;

/// The start of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// The client's name.
    pub client: Option<String>,
    /// The client's version.
    pub client_version: Option<String>,
    /// The client's process.
    pub pid: Option<u64>,
    /// An absolute path.
    pub workspace: Option<PathBuf>,
    /// Absolute; the session's workspace is the one of this directory, unless `workspace` names it.
    pub cwd: Option<PathBuf>,
    /// The name of the session, which names its run.
    pub session: Option<String>,
    /// The session of the agent that began this one; the run of a sub-agent is below its agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// True for a sub-agent at work in the turn of `parent`: checkpoints are of its own run, turns and notes of the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_turn: Option<bool>,
    /// The goal of the session's run, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// True if replies on this connection reach the model. Where not, what is to be told is kept for a later one.
    #[serde(alias = "hears")]
    pub reaches_model: Option<bool>,
    /// True if the client waits for the answer before it acts. One that does not is protected at the start of a turn.
    pub waits: Option<bool>,
    /// The door that the client comes through; absent for the line protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub door: Option<Word<Door>>,
    /// True if changes are to be saved as long as the connection lasts, whoever makes them.
    #[serde(skip_serializing_if = "is_false")]
    pub autosave: bool,
}

/// The state of the capture that a session begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BaselineStatus {
    /// There is none.
    None,
    /// It is at work.
    Running,
    /// It is there.
    Ready,
    /// A state of a later version.
    #[serde(other)]
    Unknown,
}

/// The way in which changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WatcherWord {
    /// A checkpoint looks at what changed.
    Warm,
    /// It scans still.
    Cold,
    /// No watcher is possible, or polling is wanted.
    Scan,
    /// None is wanted, or none is at work.
    None,
    /// A sidecar or proxy has it, which the command line cannot ask.
    Elsewhere,
    /// A way of a later version.
    #[serde(other)]
    Unknown,
}

/// The part of a workspace that is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeWord {
    /// The whole tree.
    Tree,
    /// Only paths that an action is about to destroy.
    TargetsOnly,
    /// A part that a later version knows.
    #[serde(other)]
    Unknown,
}

/// The answer to `hello`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HelloReply {
    /// The version of piton.
    pub piton: String,
    /// The session's workspace.
    pub workspace: WorkspaceBlock,
    /// The run, as piton spells it.
    pub run: String,
    /// The guard in force.
    pub guard: Word<Guard>,
    /// The state of the first capture.
    pub baseline: BaselineStatus,
    /// The way in which changes are noticed.
    pub watcher: WatcherWord,
    /// True if changes are saved, as the client asked for.
    #[serde(default, skip_serializing_if = "is_false")]
    pub autosave: bool,
    /// Bounds of this connection.
    pub limits: LimitsBlock,
    /// Restores that were cut short.
    pub interrupted: Vec<Interrupted>,
    /// Sentences about faults.
    pub faults: Vec<String>,
}

/// The workspace of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceBlock {
    /// The random id that it was given at first sight.
    pub id: String,
    /// Its directory.
    pub path: String,
    /// The part of it that is captured.
    pub scope: ScopeWord,
    /// The time since when it is known; only in `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Bounds of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitsBlock {
    /// Longest line, in bytes.
    pub line: usize,
    /// Longest wait of an event.
    pub deadline_ms: u64,
}

/// A restore that was cut short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interrupted {
    /// Its operation.
    pub operation: String,
    /// The checkpoint that it goes to.
    pub target: String,
    /// The checkpoint that holds what was there before.
    pub pre_restore: String,
    /// The commands that end it.
    pub next: String,
}

/// A turn begins or ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// The client's name of it. Without it, `turn.end` ends the open one.
    pub turn: String,
    /// The run of the turn: the session's own when absent.
    pub run: Option<String>,
    /// The prompt of the person.
    pub prompt: Option<String>,
    /// True if it tells of the turn of an action that follows. Without a name, the open turn goes on, or one begins.
    pub for_action: bool,
}

/// The answer to `turn.start`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnReply {
    /// The client's name of the turn.
    pub turn: String,
    /// Sentences for the model.
    pub notices: Vec<String>,
    /// The turn's checkpoint, for a client that does not wait before it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<CheckpointBlock>,
}

/// The answer to `turn.end`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEndReply {
    /// The client's name of the turn.
    pub turn: String,
    /// Sentences on what it changed, where a person should look at that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A tool is about to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolBefore {
    /// The client's own id of the call.
    #[serde(default)]
    pub action: Option<String>,
    /// The name of the tool.
    pub tool: String,
    /// The arguments, as they are.
    #[serde(default)]
    pub input: Value,
    /// The paths that it touches, as far as the client knows them.
    #[serde(default)]
    pub paths: Vec<String>,
    /// True if it writes, if the client knows.
    #[serde(default)]
    pub writes: Option<bool>,
    /// True if it reaches beyond the files of this machine, if the client knows.
    #[serde(default)]
    pub external: Option<bool>,
    /// The directory in which it runs.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The longest wait of the client.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// True if this is not exactly what is about to run: text was lost on its way.
    #[serde(default)]
    pub doubt: bool,
}

/// A shell command is about to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShellBefore {
    /// The client's own id of the call.
    #[serde(default)]
    pub action: Option<String>,
    /// The command line.
    pub command: String,
    /// The shell that runs it.
    #[serde(default)]
    pub shell: Option<String>,
    /// The directory in which it runs.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The longest wait of the client.
    #[serde(default)]
    pub deadline_ms: Option<u64>,
    /// True if this is not exactly what is about to run: text was lost on its way.
    #[serde(default)]
    pub doubt: bool,
    /// True if the client does not wait for its end.
    #[serde(default)]
    pub background: bool,
}

/// The answer to `tool.before` and `shell.before`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeforeReply {
    /// False if the client should hold the action.
    pub proceed: bool,
    /// The reason to hold it.
    pub reason: Option<String>,
    /// The client's own id of the action.
    pub action: Option<String>,
    /// The turn that the action belongs to.
    pub turn: Option<String>,
    /// The protection that it calls for.
    pub needs: Word<Needs>,
    /// The degree to which it was understood.
    pub confidence: Word<Confidence>,
    /// The effects that it has.
    #[serde(deserialize_with = "readable")]
    pub effects: Vec<Effect>,
    /// Warnings of effects that bringing files back does not undo.
    pub warnings: Vec<WarningBlock>,
    /// The checkpoint before it.
    pub checkpoint: CheckpointBlock,
    /// Lists the paths that the action names and no checkpoint holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<NotHeld>,
    /// The answer of the user's policy that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Word<HoldAnswer>>,
    /// The uncommitted work of others that it would destroy, by owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collisions: Vec<CollisionItem>,
    /// The checkpoints of other workspaces that the action reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherBlock>,
    /// Sentences for the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The clients that are at work in the workspace without events, each once in a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<SilentItem>,
}

impl BeforeReply {
    /// Returns true if the action is denied, and nobody can agree to it.
    pub fn is_denied(&self) -> bool {
        self.answer.as_ref().and_then(Word::known) == Some(HoldAnswer::Deny)
    }
}

/// The answer that blocks an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldAnswer {
    /// A person has to agree first.
    Ask,
    /// It is not to run.
    Deny,
}

/// The maker of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkMaker {
    /// A run that goes on.
    Run,
    /// A person.
    Person,
}

/// Uncommitted work that an action would destroy, of one owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollisionItem {
    /// The kind of the owner.
    pub owner: Word<WorkMaker>,
    /// The id of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The client of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The client's name of the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The journal's name of the turn, if it was written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The files.
    pub paths: List,
}

/// The checkpoint of another workspace that an action reaches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherBlock {
    /// The root of that workspace; `/` for files outside every workspace.
    pub workspace: String,
    /// The checkpoint of it before the action.
    pub checkpoint: CheckpointBlock,
}

impl OtherBlock {
    /// Says why there is no checkpoint before the action, where one was called for.
    pub fn fault(&self) -> Option<String> {
        let status = self.checkpoint.status.fault()?;
        let why = self.checkpoint.reason.as_deref().unwrap_or("no reason is known");
        Some(format!("no checkpoint of `{}` before this action ({status}): {why}", self.workspace))
    }
}

/// An action has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct After {
    /// The client's own id of the action.
    pub action: Option<String>,
    /// Without an id: the command line, as `shell.before` had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Without an id: the tool, as `tool.before` had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Without an id: the tool's arguments, as `tool.before` had them.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// True if a tool did its work.
    pub ok: Option<bool>,
    /// The exit code of a command.
    pub exit: Option<i64>,
    /// The signal that ended a command.
    pub signal: Option<i64>,
    /// The moment at which it ended, in milliseconds since the epoch, where that is told later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
}

/// The answer to `tool.after` and `shell.after`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterReply {
    /// Sentences for the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// The answer to an event of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EventReply {
    /// To `hello`.
    Opened(Box<HelloReply>),
    /// To `turn.start`.
    Turn(Box<TurnReply>),
    /// To `turn.end`.
    TurnEnd(TurnEndReply),
    /// To `tool.before` and `shell.before`.
    Before(Box<BeforeReply>),
    /// To `tool.after` and `shell.after`.
    After(AfterReply),
}

/// A command to be classified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Classify {
    /// The command line.
    pub command: String,
    /// The directory in which it would run.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// The answer to `classify`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassifyReply {
    /// The protection that the command calls for.
    pub needs: Word<Needs>,
    /// The degree to which it was understood.
    pub confidence: Word<Confidence>,
    /// True if it may change files that it does not name.
    #[serde(default)]
    pub writes_unnamed: bool,
    /// The effects that it would have.
    #[serde(deserialize_with = "readable")]
    pub effects: Vec<Effect>,
    /// Warnings of effects that bringing files back does not undo.
    pub warnings: Vec<WarningBlock>,
}

/// An answer without fields of its own: to `ping` and `shutdown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::empty_structs_with_brackets, reason = "it is an object on the wire, not `null`")]
pub struct EmptyReply {}

/// The first line on every connection to the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of the protocol.
    pub v: u32,
    /// The type of the line.
    pub r#type: GreetingType,
    /// False when there are too many clients: the connection is closed.
    pub ok: bool,
    /// The daemon's build, see [`crate::sys::process::build`].
    pub build: String,
    /// The time when it was built, in seconds since the epoch.
    pub built_at: i64,
    /// The daemon's process.
    pub pid: i32,
    /// The time since when it runs.
    pub since: String,
    /// Connected clients, this one among them.
    pub clients: usize,
}

/// The type of a daemon's first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GreetingType {
    /// The only one.
    Daemon,
}
