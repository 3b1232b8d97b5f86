//! Small facts of a workspace that no ref can hold: the next ordinal, the off switch, the places of runs.
//!
//! The file may be missing or older than the store: the ordinal is then found again from the checkpoints themselves.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::lock::WorkspaceLock;
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::replace_file;

/// A run's place after a rollback: its next typed checkpoint opens a new branch from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// The branch that the next typed checkpoint opens.
    pub branch: String,
    /// Its parent.
    pub from: ObjectId,
    /// The operation that moved the run there; `None` for a fork.
    #[serde(default)]
    pub op: Option<String>,
    /// The patterns of the run before it was moved.
    #[serde(default)]
    pub tracked: Option<Vec<String>>,
    /// The earlier places, the oldest first, if nothing was recorded in between. Undoing leads there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<EarlierPoint>,
}

/// The place of a run when it was moved once more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierPoint {
    /// The checkpoint at which the run stood.
    pub from: ObjectId,
    /// The operation that had moved the run there; `None` for a fork.
    #[serde(default)]
    pub op: Option<String>,
    /// The patterns of the run before that; `None` if it had no codon.
    #[serde(default)]
    pub tracked: Option<Vec<String>>,
}

/// The most moves of a run that can be undone one by one.
const MAX_EARLIER: usize = 100;

impl Detached {
    /// Returns the place of a run that stands at `from`, and whose next typed checkpoint opens `branch`.
    pub fn new(branch: String, from: ObjectId) -> Detached {
        Detached { branch, from, op: None, tracked: None, before: Vec::new() }
    }

    /// Returns the same after an operation has moved the run from where `old` says.
    pub(crate) fn after(mut self, old: Detached) -> Detached {
        self.before = old.before;
        self.before.push(EarlierPoint { from: old.from, op: old.op, tracked: old.tracked });
        let surplus = self.before.len().saturating_sub(MAX_EARLIER);
        self.before.drain(..surplus);
        self
    }

    /// Returns the checkpoints that the run may go on from.
    pub fn points(&self) -> impl Iterator<Item = ObjectId> {
        self.before.iter().map(|left| left.from).chain([self.from])
    }
}

/// The state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkspaceState {
    /// True once it was said that checkpoints hold secrets in the private layer.
    pub told_secrets: bool,
    /// The place of the next checkpoint in the sequence, at least; 0 when unknown.
    pub next_ordinal: u64,
    /// The number of the next checkpoint that lists show, at least; 0 when unknown, or in a file from before steps.
    pub next_number: u64,
    /// The guard is switched off until this time (milliseconds since the epoch); `i64::MAX` for good.
    pub off_until: Option<i64>,
    /// The time at which it was switched off for a span: if the clock is before that, it was set back, and the span is
    /// over.
    pub off_since: Option<i64>,
    /// True if an agent switched it off: it is on again when a turn ends here.
    pub off_by_agent: bool,
    /// The runs that were moved and have recorded nothing since, by run id.
    pub detached: BTreeMap<String, Detached>,
}

impl WorkspaceState {
    /// Reads a workspace's state; a missing or damaged file is the empty state.
    pub fn load(dir: &Path) -> WorkspaceState {
        let path = dir.join("state.json");
        let Ok(text) = std::fs::read(&path) else {
            return WorkspaceState::default();
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the state file is damaged; writing it again");
            WorkspaceState::default()
        })
    }

    /// Returns the least number of the next checkpoint. Until steps that was its place in the sequence.
    pub fn least_number(&self) -> u64 {
        if self.next_number == 0 { self.next_ordinal } else { self.next_number }
    }

    /// Writes it, durably.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `internal`.
    pub fn save(&self, dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Code::Internal, "writing the state file").caused_by(error))?;
        replace_file(&dir.join("state.json"), &text)
    }

    /// Switches the guard on.
    pub fn switch_on(&mut self) {
        (self.off_until, self.off_since, self.off_by_agent) = (None, None, false);
    }

    /// Returns true if the guard is switched off at `now_ms`.
    pub fn is_off(&self, now_ms: i64) -> bool {
        self.off_until.is_some_and(|until| now_ms < until) && self.off_since.is_none_or(|since| now_ms >= since)
    }
}
