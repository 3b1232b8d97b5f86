//! Turns that changed files: their list, and what each has changed.

use serde::{Deserialize, Serialize};

use super::shapes::{CheckpointStatus, List, StatBlock};
use super::words::Word;
use crate::model::effect::Class;
use crate::model::number::Number;

/// The turns to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnQuery {
    /// Only those of this run.
    pub run: Option<String>,
    /// The most that are listed: all that are kept when absent.
    pub limit: Option<u64>,
}

/// The numbers of paths by the share of the turn in their changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShareCounts {
    /// Named by an action of the turn.
    pub sure: usize,
    /// Changed while only the turn's run was at work.
    pub likely: usize,
    /// Written again after the turn's action, while the turn was open.
    pub touched: usize,
    /// Changed by several, or while several were at work.
    pub shared: usize,
    /// Changed while nobody watched.
    pub unknown: usize,
    /// Further paths that it changed, and that no undo takes back: they are not saved.
    #[serde(skip_serializing_if = "super::checkpoints::is_zero")]
    pub missed: usize,
}

/// An action that a checkpoint was due for, or one with effects that no restore undoes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionItem {
    /// The action, without its secrets, cut: `shell: rm -rf src`.
    pub command: String,
    /// The classes of its effects.
    pub effects: Vec<Word<Class>>,
    /// True if piton could not see what it does.
    pub opaque: bool,
    /// The number of paths whose content it deleted or replaced; null where that is not known.
    pub lost: Option<usize>,
    /// The status of its checkpoint when it was asked for.
    pub status: CheckpointStatus,
    /// The number of the checkpoint that contains the files from before it; null where there is none.
    pub n: Option<Number>,
    /// The run that it belongs to.
    pub run: String,
    /// The client's name of its turn.
    pub turn: Option<String>,
    /// The client's own id of it.
    pub action: Option<String>,
    /// The time when it was asked for.
    pub time: String,
    /// The reason why it ran without a checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A turn that changed files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnItem {
    /// The journal's name of it: `t-1`, `t-2`, …
    pub operation: String,
    /// The client's name of it.
    pub turn: String,
    /// The first words of its prompt, without secrets; null where none is recorded.
    #[serde(default)]
    pub prompt: Option<String>,
    /// The run that it belongs to.
    pub run: String,
    /// The name of the client.
    pub client: Option<String>,
    /// The time when it began.
    pub began: String,
    /// The time when it ended, or was last looked at.
    pub ended: String,
    /// True while it is open.
    pub open: bool,
    /// True if its client or its connection ended within the turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// True if it is undone.
    pub undone: bool,
    /// The number of its own changes that stayed when it was undone: somebody had changed those paths since.
    #[serde(default, skip_serializing_if = "super::checkpoints::is_zero")]
    pub stayed: usize,
    /// The number of paths that it changed.
    pub paths: usize,
    /// The same by the turn's share in them.
    pub shares: ShareCounts,
    /// The roots of the other workspaces in which it acted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Its recorded actions in this workspace, the oldest first; of many, the newest.
    #[serde(default)]
    pub actions: Vec<ActionItem>,
}

/// The answer to `turn.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnListReply {
    /// The newest first.
    pub turns: Vec<TurnItem>,
    /// The actions that ran without a checkpoint, the oldest first, until a person removes their record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unguarded: Vec<ActionItem>,
}

/// The changes of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnDiff {
    /// The turn, by the journal's name or the client's: the newest when absent.
    pub turn: Option<String>,
    /// The run of that turn.
    pub run: Option<String>,
    /// The paths that count: all when absent.
    pub paths: Option<Vec<String>>,
}

/// The answer to `turn.diff`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnDiffReply {
    /// The turn.
    pub turn: TurnItem,
    /// Files and lines.
    pub stat: StatBlock,
    /// The paths that changed, each with the turn's share in the change.
    pub files: List,
    /// The directories that came, went, or changed permissions.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub directories: List,
    /// A unified diff.
    pub patch: String,
    /// True if the patch was cut.
    pub cut: bool,
}
