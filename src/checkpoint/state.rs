//! Small facts of a workspace that no ref can hold: the next ordinal, the off switch, where runs stand.
//!
//! The file may be missing or older than the store: the ordinal is then found again from the checkpoints themselves.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::sys::durable::replace_file;

/// Where a run stands after a rollback: its next typed checkpoint opens a new branch from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// The branch that the next typed checkpoint opens.
    pub branch: String,
    /// Its parent.
    pub from: ObjectId,
}

/// The state file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The number of the next checkpoint, at least; 0 when unknown.
    pub next_ordinal: u64,
    /// The guard is switched off until this time (milliseconds since the epoch); `i64::MAX` for good.
    pub off_until: Option<i64>,
    /// When it was switched off for a span: a clock that stands before that has jumped, and the span is over.
    pub off_since: Option<i64>,
    pub detached: BTreeMap<String, Detached>,
}

impl State {
    /// Reads a workspace's state; a missing or damaged file is the empty state.
    pub fn load(dir: &Path) -> State {
        let path = dir.join("state.json");
        let Ok(text) = std::fs::read(&path) else {
            return State::default();
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), %error, "the state file is damaged and is made anew");
            State::default()
        })
    }

    /// Writes it, durably. The caller holds the workspace lock.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `internal`.
    pub fn save(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Code::Internal, "writing the state file").caused_by(error))?;
        replace_file(&dir.join("state.json"), &text)
    }

    /// Whether the guard is switched off at `now_ms`.
    pub fn is_off(&self, now_ms: i64) -> bool {
        self.off_until.is_some_and(|until| now_ms < until) && self.off_since.is_none_or(|since| now_ms >= since)
    }
}
