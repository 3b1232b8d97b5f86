//! Requests for checkpoints, and their answers.

use crate::model::number::Number;
use serde::{Deserialize, Serialize};

use super::restores::TargetBlock;
use super::shapes::{CheckpointBlock, List, NotHeld, StatBlock};
use super::turns::ActionItem;
use super::words::Word;
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::Class;

/// A checkpoint by hand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Create {
    /// A label to find it by.
    pub label: Option<String>,
    /// The paths that it holds: everything when absent.
    pub paths: Option<Vec<String>>,
    /// True if it is never dropped.
    pub pin: bool,
}

/// The answer to `checkpoint.create`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateReply {
    /// The checkpoint.
    pub checkpoint: CheckpointBlock,
}

/// The checkpoints to list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListQuery {
    /// Only those of this run.
    pub run: Option<String>,
    /// Only those of this kind.
    pub kind: Option<CheckpointKind>,
    /// Only those after which this path changed.
    pub path: Option<String>,
    /// The most that are listed.
    pub limit: Option<u64>,
    /// Only older ones than this one.
    pub before: Option<Before>,
    /// True if steps are listed too.
    pub steps: bool,
}

/// The checkpoint before which a list begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Before {
    /// A permanent number.
    Number(u64),
    /// A selector.
    Selector(String),
}

/// One checkpoint of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListItem {
    /// Its permanent number.
    pub n: Number,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The run that it belongs to.
    pub run: String,
    /// The name of the client of that run, as long as it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The turn in which it was taken.
    pub turn: Option<String>,
    /// The first words of that turn's prompt, without secrets, as long as they are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The codon that it belongs to.
    pub codon_id: Option<String>,
    /// The name of that codon.
    pub codon_name: Option<String>,
    /// The time when it was taken.
    pub time: String,
    /// The reason for it, for people.
    pub reason: String,
    /// The changes after this checkpoint, up to the next one.
    pub stat: StatBlock,
    /// Always false in this version.
    pub pending: bool,
    /// Marks, such as `partial` and `damaged`.
    pub flags: Vec<String>,
    /// Lists the paths that its action named and it does not hold.
    #[serde(rename = "not_held", default, skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<NotHeld>,
    /// Classes of the effects that no restore undoes.
    pub external: Vec<Word<Class>>,
    /// True if retention never drops it.
    pub pinned: bool,
    /// The number of steps of its turn that the list does not show.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub steps: usize,
    /// The recorded actions after it, up to the next one, that destroyed something; of many, the newest.
    #[serde(default)]
    pub actions: Vec<ActionItem>,
}

/// Returns true for a count that a reply leaves out.
pub(super) fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The answer to `checkpoint.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListReply {
    /// The branch on which the run's next typed checkpoint goes, if it is there or a rollback has named it.
    pub current_branch: Option<String>,
    /// The number of checkpoints, those that were cut off among them.
    pub total: usize,
    /// The newest first.
    pub checkpoints: Vec<ListItem>,
    /// Refs that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// The actions that ran without a checkpoint, the oldest first, until a person removes their record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unguarded: Vec<ActionItem>,
}

/// One checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Show {
    /// A selector.
    pub sha: String,
}

/// Facts about one checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckpointFacts {
    /// Its permanent number.
    pub n: Number,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The run that it belongs to.
    pub run: String,
    /// The name of the client of that run, as long as it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The turn in which it was taken.
    pub turn: Option<String>,
    /// The codon that it belongs to.
    pub codon_id: Option<String>,
    /// The name of that codon.
    pub codon_name: Option<String>,
    /// The time that its codon ran.
    pub duration_ms: Option<u64>,
    /// The time when it was taken.
    pub time: String,
    /// The reason for it, for people.
    pub reason: String,
    /// The number of files that it holds.
    pub files: u64,
    /// The number of directories that it holds.
    pub directories: u64,
    /// The bytes that it holds.
    pub bytes: u64,
    /// Marks, such as `partial` and `secrets`.
    pub flags: Vec<String>,
    /// True if retention never drops it.
    pub pinned: bool,
    /// Classes of the effects that were recorded with it.
    pub effects: Vec<Word<Class>>,
    /// The paths that were left out.
    pub skipped: List,
}

/// One checkpoint, with its place in the store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShownCheckpoint {
    /// Facts about it.
    #[serde(flatten)]
    pub facts: CheckpointFacts,
    /// The first words of the prompt of its turn, without secrets; absent where none is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The recorded actions after it, up to the next one, that destroyed something; of many, the newest.
    #[serde(default)]
    pub actions: Vec<ActionItem>,
    /// Ids of its parents.
    pub parents: Vec<String>,
    /// The id of its tree.
    pub tree: String,
    /// The first path of it that is missing or damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// The git repository as the checkpoint has found it; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryBlock>,
}

/// A git repository at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryBlock {
    /// The branch, without `refs/heads/`; null for a detached HEAD.
    pub branch: Option<String>,
    /// The id of the commit that is checked out; null before the first one.
    pub commit: Option<String>,
    /// The number of refs, without HEAD.
    pub refs: usize,
    /// The number of stashes.
    pub stashes: usize,
    /// The verb of the command of git that is in progress: `merge`, `rebase`, `cherry-pick`, `revert`, `bisect`, `am`; null without one.
    pub in_progress: Option<String>,
}

/// The answer to `checkpoint.show`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShowReply {
    /// The checkpoint.
    pub checkpoint: ShownCheckpoint,
    /// The files that it holds.
    pub paths: List,
}

/// Two states to compare; `to` absent is the work tree now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Diff {
    /// A selector of the older side.
    pub from: String,
    /// A selector of the newer side.
    #[serde(default)]
    pub to: Option<String>,
    /// The paths that count: all when absent.
    #[serde(default)]
    pub paths: Option<Vec<String>>,
}

/// The answer to `checkpoint.diff`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiffReply {
    /// The older side.
    pub from: TargetBlock,
    /// The newer side; `null` for the files as they are now.
    pub to: Option<TargetBlock>,
    /// Files and lines.
    pub stat: StatBlock,
    /// The files that differ, each `new`, `deleted` or `changed`.
    pub files: List,
    /// The directories that came or went without a file in them.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub directories: List,
    /// A unified diff.
    pub patch: String,
    /// True if the patch was cut.
    pub cut: bool,
}

/// Checkpoints that are to be pinned, unpinned or deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// Selectors, at least one.
    pub shas: Vec<String>,
}

/// The answer to `checkpoint.pin`, `checkpoint.unpin` and `checkpoint.delete`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChosenReply {
    /// The checkpoints that were named, the oldest first.
    pub checkpoints: Vec<ChosenItem>,
}

/// One checkpoint that was named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChosenItem {
    /// Its permanent number.
    pub n: Number,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The time when it was taken.
    pub time: String,
    /// The reason for it, for people.
    pub reason: String,
    /// True if it was pinned, unpinned or deleted now; false if it was so already, or was left as it is.
    pub changed: bool,
}
