//! Notices: messages that nobody asked for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::events::Interrupted;
use super::shapes::{CheckpointBlock, List, NotHeld, PathItem};
use super::status::ReloadReply;
use super::words::Word;
use crate::model::checkpoint::CheckpointKind;

/// A notice, by its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "notice")]
pub enum NoticeBody {
    /// A late checkpoint is recorded.
    #[serde(rename = "checkpoint.settled")]
    Settled(Box<SettledNotice>),
    /// A checkpoint in the background, or a late one, could not be taken.
    #[serde(rename = "checkpoint.failed")]
    Failed(Box<FailedNotice>),
    /// A changed tree was saved, for a session that asked for that.
    #[serde(rename = "checkpoint.autosaved")]
    Autosaved(Box<AutosavedNotice>),
    /// Files changed under the agent.
    #[serde(rename = "rolled-back")]
    RolledBack(RolledBackNotice),
    /// A rollback begins to change files.
    #[serde(rename = "rollback.started")]
    RollbackStarted(Box<RollbackStarted>),
    /// A rollback of many paths goes on.
    #[serde(rename = "rollback.progress")]
    RollbackProgress(RollbackProgress),
    /// A rollback is done.
    #[serde(rename = "rollback.completed")]
    RollbackCompleted(Box<RollbackCompleted>),
    /// A crash cut a restore short.
    #[serde(rename = "restore.interrupted")]
    RestoreInterrupted(InterruptedNotice),
    /// A checkpoint failed because the disk is full, or nearly.
    #[serde(rename = "store.low-disk")]
    LowDisk(LowDiskNotice),
    /// The store takes more than its cap, and nothing more can go.
    #[serde(rename = "store.cap")]
    StoreCap(StoreCapNotice),
    /// The watcher does not cover any more what it did.
    #[serde(rename = "watcher.degraded")]
    WatcherDegraded(DegradedNotice),
    /// The settings were read anew.
    #[serde(rename = "config.reloaded")]
    ConfigReloaded(ReloadReply),
    /// A client's stream ended.
    #[serde(rename = "stream.ended")]
    StreamEnded(StreamEnded),
    /// A notice of a later version.
    #[serde(other)]
    Unknown,
}

/// A notice with its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoticeLine {
    /// Counts from 1 without gaps within a session.
    pub seq: u64,
    /// The notice.
    #[serde(flatten)]
    pub body: NoticeBody,
}

/// A notice about one of several workspaces: a line of `piton watch --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchLine {
    /// The root of the workspace.
    pub workspace: String,
    /// The notice.
    #[serde(flatten)]
    pub body: NoticeBody,
}

/// The end of a checkpoint that was late.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SettledNotice {
    /// The name that the late answer gave it.
    pub pending: String,
    /// The root of the workspace, if it is another one than the action's own. The paths are absolute then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The checkpoint.
    pub checkpoint: CheckpointBlock,
    /// Captured files that were touched after the event came.
    pub dirty: Vec<PathItem>,
    /// Lists the paths that the action names and no checkpoint holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<NotHeld>,
}

/// A checkpoint that could not be taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FailedNotice {
    /// Stands for a base capture, which is of the kind `turn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Word<CheckpointKind>>,
    /// The reason; of a late one it stands in its block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The end of a late one.
    #[serde(flatten)]
    pub late: Option<SettledNotice>,
}

/// A changed tree that was saved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AutosavedNotice {
    /// The checkpoint.
    pub checkpoint: CheckpointBlock,
}

/// Files that changed under the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledBackNotice {
    /// The checkpoint that was restored.
    pub to: String,
    /// The paths that changed.
    pub files: List,
    /// The turn before whose beginning the conversation should go back, if that was asked for and is known.
    pub rewind_turn: Option<String>,
    /// The client's own way to do that, for people, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind_how: Option<String>,
    /// A sentence for the agent's context.
    pub text: String,
}

/// The beginning of a rollback.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackStarted {
    /// The run that goes back.
    pub run: String,
    /// The branch that it was on.
    pub from_branch: String,
    /// The checkpoint to go to.
    pub to: String,
    /// The codon that it belongs to.
    pub codon_id: Option<String>,
    /// The name of that codon.
    pub codon_name: Option<String>,
    /// Its kind.
    pub checkpoint_type: Word<CheckpointKind>,
    /// The number of paths that change.
    pub paths: usize,
}

/// A step of a rollback.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackProgress {
    /// The number of the step, from 1.
    pub current_step: u64,
    /// The number of steps.
    pub total_steps: u64,
    /// A sentence for people.
    pub message: String,
}

/// The end of a rollback.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RollbackCompleted {
    /// The run that went back.
    pub run: String,
    /// The branch that it was on.
    pub from_branch: String,
    /// The branch on which it goes on.
    pub next_branch: String,
    /// The checkpoint that was restored.
    pub to: String,
    /// The codon that it belongs to.
    pub codon_id: Option<String>,
    /// The name of that codon.
    pub codon_name: Option<String>,
    /// Its kind.
    pub checkpoint_type: Word<CheckpointKind>,
    /// The operation; `null` if no file changed.
    pub operation: Option<String>,
    /// The wish of the request, told on.
    pub auto_restart: bool,
}

/// A restore that was cut short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptedNotice {
    /// The restore.
    pub operation: Interrupted,
}

/// A disk that is full, or nearly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LowDiskNotice {
    /// A sentence for people.
    pub reason: String,
}

/// A cap that cannot be met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreCapNotice {
    /// A sentence for people.
    pub reason: String,
    /// The cap, in bytes.
    pub total: u64,
    /// The bytes over it.
    pub over: u64,
}

/// A watcher that does not cover any more what it did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DegradedNotice {
    /// A sentence for people.
    pub reason: String,
}

/// The counts of a client's stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnded {
    /// Lines that were read.
    pub lines: u64,
    /// Turns that began.
    pub turns: u64,
    /// Actions that were judged.
    pub actions: u64,
    /// Lines that were skipped, by their sort.
    pub skipped: BTreeMap<SkippedSort, u64>,
}

/// The sort of a line that was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkippedSort {
    /// A frame that lacks a field of its type.
    Foreign,
    /// Not JSON, or not UTF-8.
    Malformed,
    /// Over the line limit.
    TooLong,
    /// A frame of an unknown type.
    UnknownType,
    /// A sort of a later version.
    #[serde(other)]
    Unknown,
}
