//! The cost of a checkpoint, step by step.

use serde::{Deserialize, Serialize};

/// Microseconds of each step, and how much there was to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Waiting for locks and listing the checkpoints that there are.
    pub list_us: u64,
    /// Asking what changed.
    pub sync_us: u64,
    /// Looking at names and stamps.
    pub stat_us: u64,
    /// Reading, hashing and handing over content.
    pub hash_us: u64,
    /// Building trees.
    pub trees_us: u64,
    /// Compressing and writing objects and moving the ref, durably.
    pub write_us: u64,
    /// All of it.
    pub total_us: u64,
    /// Paths that were told to have changed; `null` when everything was looked at.
    pub dirty: Option<u64>,
    /// Files and links that were read.
    pub hashed: u64,
    /// Bytes of their content.
    pub hashed_bytes: u64,
    /// Objects that were written.
    pub objects: u64,
}
