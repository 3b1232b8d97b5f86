//! Requests about runs and their codons, and their answers.

use crate::model::number::Number;
use serde::{Deserialize, Serialize};

use super::shapes::CheckpointBlock;
use super::words::Word;
use crate::model::checkpoint::CheckpointKind;

/// A run begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunStart {
    /// The client's own id of it; without one, piton makes one.
    pub run: Option<String>,
    /// The run of the agent that began it.
    pub parent: Option<String>,
    /// The goal, for people.
    pub goal: Option<String>,
    /// The client's name.
    pub client: Option<String>,
}

/// The answer to `run.start` and `run.fork`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReply {
    /// The run, as piton spells it.
    pub run: String,
    /// The branch on which it records.
    pub branch: String,
    /// The checkpoint that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<OriginBlock>,
}

/// The checkpoint that a run goes on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginBlock {
    /// The run that it belongs to.
    pub run: String,
    /// Its id.
    pub checkpoint: String,
    /// Its permanent number.
    pub n: Number,
}

/// The end of a run, as a client tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// It did its work.
    Completed,
    /// It failed.
    Error,
}

/// A run ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// The outcome; `completed` when absent.
    pub status: Option<RunStatus>,
}

/// The answer to `run.end`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunEndReply {
    /// The run, as piton spells it.
    pub run: String,
    /// The checkpoint of its end, if there is one.
    pub checkpoint: Option<CheckpointBlock>,
}

/// A request to make a run that continues from a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFork {
    /// A selector.
    pub sha: String,
    /// The client's own id of it; without one, piton makes one.
    #[serde(default)]
    pub run: Option<String>,
    /// The run of the agent that began it.
    #[serde(default)]
    pub parent: Option<String>,
    /// The goal, for people.
    #[serde(default)]
    pub goal: Option<String>,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It has not ended, and no codon of it runs.
    Open,
    /// A codon of it runs.
    Running,
    /// It did its work.
    Completed,
    /// It failed.
    Error,
    /// Its client went away while it was open.
    Exit,
    /// A state of a later version.
    #[serde(other)]
    Unknown,
}

/// The answer to `run.list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunListReply {
    /// The number of runs.
    pub total: usize,
    /// The oldest first.
    pub runs: Vec<RunItem>,
    /// Refs that cannot be read.
    pub faults: Vec<String>,
}

/// One run of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunItem {
    /// The run, as piton spells it.
    pub run: String,
    /// The client's own id, if piton hashed it.
    pub named: Option<String>,
    /// The client's name.
    pub client: Option<String>,
    /// The run of the agent that began it.
    pub parent: Option<String>,
    /// The goal, for people.
    pub goal: Option<String>,
    /// The state that it is in.
    pub status: RunState,
    /// The time when it began.
    pub started: Option<String>,
    /// The time when it ended.
    pub ended: Option<String>,
    /// The checkpoint that it was forked from.
    pub from: Option<OriginBlock>,
    /// The codon that runs.
    pub codon: Option<String>,
    /// The patterns of its codons; `null` without codons.
    pub tracked_files: Option<Vec<String>>,
    /// The number of its checkpoints.
    pub checkpoints: u64,
    /// Its timelines.
    pub branches: Vec<BranchItem>,
    /// Its newest checkpoint of a codon.
    pub last: Option<RunLast>,
}

/// One timeline of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchItem {
    /// Its name.
    pub branch: String,
    /// The checkpoint that its first one follows.
    pub from: Option<BranchOrigin>,
    /// The number of its checkpoints.
    pub checkpoints: usize,
    /// The id of its newest.
    pub tip: Option<String>,
}

/// The checkpoint that a timeline goes on from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchOrigin {
    /// The checkpoint.
    #[serde(flatten)]
    pub origin: OriginBlock,
    /// The reason for the timeline.
    pub r#type: BranchType,
}

/// The reason for a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BranchType {
    /// The run went back and on from there.
    Continuation,
    /// It was forked from another run.
    Fork,
    /// A reason of a later version.
    #[serde(other)]
    Unknown,
}

/// The newest checkpoint of a codon of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunLast {
    /// Its permanent number.
    pub n: Number,
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The codon that it belongs to.
    pub codon_id: Option<String>,
    /// The name of that codon.
    pub codon_name: Option<String>,
    /// The time when it was taken.
    pub time: String,
}

/// A codon begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodonStart {
    /// The client's own id of it.
    pub codon_id: String,
    /// Its name, for people.
    #[serde(default)]
    pub name: Option<String>,
    /// Patterns of the files that it records.
    #[serde(default)]
    pub tracked_files: Option<Vec<String>>,
    /// The session's own when absent.
    #[serde(default)]
    pub run: Option<String>,
}

/// The answer to `codon.start`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodonStartReply {
    /// The run, as piton spells it.
    pub run: String,
    /// The codon's id, without secrets.
    pub codon_id: String,
    /// All patterns of the run so far.
    pub tracked_files: Vec<String>,
}

/// The end of a codon, or a step of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodonEnd {
    /// The running one when absent.
    pub codon_id: Option<String>,
    /// For one that is skipped before it began.
    pub name: Option<String>,
    /// The reason, for people.
    pub reason: Option<String>,
    /// The session's own when absent.
    pub run: Option<String>,
}

/// The answer to the other messages about codons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodonReply {
    /// The run, as piton spells it.
    pub run: String,
    /// The codon's id.
    pub codon_id: Option<String>,
    /// The checkpoint that was recorded.
    pub checkpoint: CheckpointBlock,
}
