//! The documents of `piton forget`, which the protocol has no message for.

use crate::model::number::Number;
use serde::{Deserialize, Serialize};

/// `piton forget`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetDocument {
    /// True if it only says what would go.
    pub dry_run: bool,
    /// The digest of the plan.
    pub digest: String,
    /// The checkpoints that change, or go with their workspace.
    pub checkpoints: Vec<ForgetItem>,
    /// The versions of files that go.
    pub versions: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files that hold the content now: the next checkpoint captures them again.
    pub present: Vec<String>,
    /// The number of checkpoints that were replaced, or are gone with their workspace.
    pub forgotten: u64,
    /// The bytes that became free.
    pub freed: u64,
    /// The proof; `None` if nothing was done.
    pub proof: Option<ProofBlock>,
    /// Sentences on what could not be read, or not be taken out.
    pub faults: Vec<String>,
}

/// A checkpoint that a forget changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetItem {
    /// The id of its workspace.
    pub workspace: String,
    /// Its permanent number, which it keeps.
    pub n: Number,
    /// Its id before.
    pub id: String,
    /// The id that takes its place; `None` if it goes with its workspace.
    pub by: Option<String>,
    /// The paths that go; none if only a checkpoint before it changes, or only its texts do.
    pub paths: Vec<String>,
}

/// The proof that content is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofBlock {
    /// The copies of objects that were read.
    pub objects: u64,
    /// The other files that were read.
    pub files: u64,
    /// The bytes that were searched.
    pub bytes: u64,
    /// The places where it still is, or that could not be read.
    pub left: Vec<String>,
}
