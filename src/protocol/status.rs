//! The answers of the sidecar about itself.

use crate::model::number::Number;
use serde::{Deserialize, Serialize};

use super::events::{BaselineStatus, Interrupted, WatcherWord, WorkspaceBlock};
use super::turns::ActionItem;
use super::words::{Word, readable};
use crate::model::checkpoint::CheckpointKind;
use crate::model::cost::Cost;
use crate::model::door::Door;
use crate::model::policy::Guard;

/// The state of a workspace's protection, as the sidecar and the command line tell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusFacts {
    /// The version of piton.
    pub piton: String,
    /// The workspace.
    pub workspace: WorkspaceBlock,
    /// The directory of the store.
    pub store: String,
    /// True if there is a second copy of the store. piton makes none so far.
    #[serde(default)]
    pub second_copy: bool,
    /// The guard in force.
    pub guard: Word<Guard>,
    /// The state of the protection, with the doors that events came through.
    #[serde(default)]
    pub protection: ProtectionBlock,
    /// The reason why the guard is off, and until when.
    #[serde(rename = "guardOff")]
    pub guard_off: Option<String>,
    /// The way in which changes are noticed.
    pub watcher: WatcherWord,
    /// The reason why the watcher does not cover all that it should.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degraded: Option<String>,
    /// The number of checkpoints.
    pub checkpoints: usize,
    /// The cost of the last checkpoint, step by step.
    pub cost: Option<Cost>,
    /// The newest checkpoint.
    pub last: Option<StatusLast>,
    /// Restores that were cut short.
    pub interrupted: Vec<Interrupted>,
    /// Refs that cannot be read, and damaged packs.
    pub broken: Vec<String>,
    /// Says that the cap of the store cannot be met, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<String>,
    /// Warnings of the settings.
    pub warnings: Vec<String>,
    /// The newest of what went wrong where nobody was there to tell.
    pub mishaps: Vec<String>,
    /// The actions that ran without a checkpoint, the oldest first, until a person removes their record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unguarded: Vec<ActionItem>,
}

/// The state of a workspace's protection in one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtectionState {
    /// A door is at work, and an event has come through it.
    Protected,
    /// Hooks are installed, and no event of theirs has come yet.
    Unseen,
    /// A setting of a client cannot be read.
    CannotTell,
    /// Nothing guards.
    #[default]
    NotGuarded,
    /// A state of a later version.
    #[serde(other)]
    Unknown,
}

/// The protection of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectionBlock {
    /// The state.
    pub state: ProtectionState,
    /// The doors through which events have come, the last one first.
    #[serde(deserialize_with = "readable")]
    pub doors: Vec<DoorItem>,
    /// The clients with working hooks of which no event has come yet.
    pub waiting: Vec<String>,
    /// The reasons for which all or some do not guard.
    pub reasons: Vec<ReasonItem>,
    /// The clients that are at work without events.
    #[serde(default)]
    pub silent: Vec<SilentItem>,
}

/// A client that is at work in the workspace without events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilentItem {
    /// The client.
    pub client: String,
    /// The time since which files change without its events.
    pub since: String,
    /// The same as a sentence, with the cause where it is known.
    pub text: String,
    /// The step that mends it.
    pub mend: String,
}

/// A door through which events have come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoorItem {
    /// The kind of door.
    pub door: Word<Door>,
    /// The name by which the client calls itself.
    pub client: Option<String>,
    /// The time of the last event.
    pub last: String,
    /// True if the door guards the workspace now.
    pub guards: bool,
}

/// A reason for which something does not guard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonItem {
    /// The client whose hooks do not guard; `null` where that concerns all.
    pub client: Option<String>,
    /// The reason.
    pub text: String,
    /// The step that mends it.
    pub mend: Option<String>,
}

/// The newest checkpoint of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusLast {
    /// Its id.
    pub id: String,
    /// Its permanent number.
    pub n: Number,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The time when it was taken.
    pub time: String,
    /// The reason for it, for people.
    pub reason: String,
    /// Marks, such as `partial` and `secrets`.
    pub flags: Vec<String>,
    /// The number of paths that were left out.
    pub skipped: u64,
}

/// The answer to `status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReply {
    /// Facts about the workspace.
    #[serde(flatten)]
    pub facts: StatusFacts,
    /// The session's run.
    pub run: String,
    /// The session's turn.
    pub turn: Option<String>,
    /// The state of the first capture.
    pub baseline: BaselineStatus,
    /// Facts about the watcher.
    pub watching: WatchingBlock,
    /// Sentences about faults of the session.
    pub faults: Vec<String>,
}

/// A question for the watcher of a workspace that may be open or not. Nothing is opened for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchingQuery {
    /// The root of the workspace.
    pub workspace: String,
}

/// The answer to `watching`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenReply {
    /// True if this engine has the workspace open.
    pub open: bool,
    /// The way in which its changes are noticed.
    pub watcher: WatcherWord,
    /// The reason why its watcher does not cover all that it should, or why there is none.
    #[serde(default)]
    pub degraded: Option<String>,
}

/// The state and the history of a watcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchingBlock {
    /// The number of directories that are watched.
    pub directories: usize,
    /// The directories that are not.
    pub unwatched: UnwatchedBlock,
    /// The reason why nothing is watched.
    pub refused: Option<String>,
    /// Events that came.
    pub events: u64,
    /// The number of times when events were lost.
    pub overflows: u64,
    /// The number of times when everything was compared.
    pub audits: u64,
    /// Differences that this found.
    pub divergences: u64,
    /// The reason why not all is covered that should be.
    #[serde(default)]
    pub degraded: Option<String>,
}

/// Directories that are not watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnwatchedBlock {
    /// The number of them.
    pub count: usize,
    /// The first of them.
    pub items: Vec<UnwatchedItem>,
}

/// A directory that is not watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnwatchedItem {
    /// The directory.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// The answer to `config.reload`, and the body of the notice `config.reloaded`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReply {
    /// Warnings of the settings.
    pub warnings: Vec<String>,
}
