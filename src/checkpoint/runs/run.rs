//! The record of a run beside its checkpoints.
//!
//! Each run has a small JSON file. It is replaced as a whole under the workspace lock, after the checkpoint and the ref
//! that it describes. If the file is lost, codons, forks and accumulated patterns are found again in the checkpoints.
//! Goal, client and parent are then gone.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::{Code, Error, IoContext, Result};
use crate::filter::subtracts;
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::sys::clock::ms_of;
use crate::sys::fs::durable::{create_private_dir, replace_file};

/// The codon of an `exit` checkpoint that was taken without a running codon.
pub const NO_CODON: &str = "session";

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnding {
    /// Its client says that it succeeded.
    Completed,
    /// Its client says that it failed.
    Error,
    /// Its client disconnected while it was open.
    Exit,
}

/// The codon at work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// The codon's id in the run: `build`, or `build#2` in a loop.
    pub id: String,
    /// The codon's name for people; its id if it has none.
    pub name: String,
    /// The moment when it began, milliseconds since the epoch.
    pub since: i64,
}

/// The checkpoint that a run was forked from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkPoint {
    /// The id of the run that the checkpoint belongs to.
    pub run: String,
    /// The id of the checkpoint's commit.
    pub checkpoint: ObjectId,
    /// The checkpoint's number in the workspace.
    #[serde(rename = "ordinal")]
    pub number: Number,
}

/// The file of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The client's own name of it, where that is no id of ours.
    pub named: Option<String>,
    /// The name by which its client calls itself.
    pub client: Option<String>,
    /// The run that it is a part of: a sub-agent's is its agent's.
    pub parent: Option<String>,
    /// The purpose in the client's words, redacted.
    pub goal: Option<String>,
    /// The moment when it began: RFC 3339, UTC. `None` as long as nothing told of a beginning.
    pub started: Option<String>,
    /// The moment when it ended: RFC 3339, UTC. `None` while it goes on.
    pub ended: Option<String>,
    /// The way in which it ended; `None` while it goes on.
    pub status: Option<RunEnding>,
    /// The checkpoint that it was forked from; `None` for a run of its own.
    pub origin: Option<ForkPoint>,
    /// The patterns of its codons so far; `None` as long as there was none.
    pub tracked: Option<Vec<String>>,
    /// The codon at work, as far as the file knows: its client may be gone.
    pub running: Option<Running>,
}

/// A run that begins, as described by a client.
#[derive(Clone, Debug, Default)]
pub struct RunDetails {
    /// The run's id, as refs spell it.
    pub run: String,
    /// The client's own name of the run, where that is no id of ours.
    pub named: Option<String>,
    /// The name by which the client calls itself.
    pub client: Option<String>,
    /// The id of the run that it is a part of.
    pub parent: Option<String>,
    /// The purpose in the client's words, redacted.
    pub goal: Option<String>,
}

impl Run {
    /// Reads a run's file; `None` when there is none, or none that can be read.
    ///
    /// # Errors
    /// When the file is there and cannot be opened.
    pub fn load(workspace: &Path, run: &str) -> Result<Option<Run>> {
        // Names of runs come from commits too, which may be foreign.
        if run.contains('/') || run.starts_with('.') {
            return Ok(None);
        }
        let path = dir(workspace).join(run);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.at("reading", &path)?,
        };
        let read = serde_json::from_slice(&text);
        Ok(read.inspect_err(|error| tracing::warn!(run, %error, "the run's file is damaged; writing it again")).ok())
    }

    /// Removes a run's file; none is fine too.
    pub(crate) fn remove(workspace: &Path, run: &str, _lock: &WorkspaceLock) -> Result<()> {
        let path = dir(workspace).join(run);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(error, "removing", &path)),
            _ => Ok(()),
        }
    }

    /// Writes it, durably.
    pub(super) fn save(&self, workspace: &Path, run: &str, _lock: &WorkspaceLock) -> Result<()> {
        create_private_dir(&dir(workspace))?;
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Code::Internal, "writing a run's file").caused_by(error))?;
        replace_file(&dir(workspace).join(run), &text)
    }
}

/// Returns the directory of the files of a workspace's runs.
pub(crate) fn dir(workspace: &Path) -> PathBuf {
    workspace.join("runs")
}

/// Returns the codon that a checkpoint is of, if it is of one.
pub fn codon_of(record: &Record) -> Option<&str> {
    let id = record.codon_id.as_deref().filter(|id| record.kind != CheckpointKind::Exit || *id != NO_CODON);
    id.filter(|_| record.kind.is_typed())
}

impl Catalog {
    /// Returns a run's state. If its file is lost, the state is found again from its checkpoints.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub fn run_state(&self, run: &str) -> Result<Run> {
        match Run::load(&self.workspace.dir, run)? {
            Some(state) => Ok(state),
            None => Ok(Run { tracked: self.tracked_at(self.run_tip(run)?.1)?, ..Run::default() }),
        }
    }

    /// Returns the patterns of a run's typed checkpoints: those of its codons, and the subtracting ones of the
    /// configuration. All patterns of the configuration count if no codon brought any, and for the end of the run,
    /// which belongs to no codon.
    pub(crate) fn patterns_of(&self, run: &str, at_end: bool) -> Result<Vec<String>> {
        let mut patterns = self.run_state(run)?.tracked.unwrap_or_default();
        let all_count = at_end || patterns.is_empty();
        for pattern in self.policy.tracked_files.iter().filter(|pattern| all_count || subtracts(pattern)) {
            if !patterns.contains(pattern) {
                patterns.push(pattern.clone());
            }
        }
        Ok(patterns)
    }

    /// Returns the newest typed checkpoint at or before a commit.
    pub(crate) fn typed_at(&self, from: Option<ObjectId>) -> Result<Option<Checkpoint>> {
        let (mut next, name) = (from, "".into());
        while let Some(id) = next {
            let checkpoint = self.read(id, &name)?;
            if checkpoint.record.kind.is_typed() {
                return Ok(Some(checkpoint));
            }
            next = checkpoint.parents.first().copied();
        }
        Ok(None)
    }

    /// Returns the accumulated patterns of a run that continues from `from`. The codon of `from` counts, because its
    /// checkpoints are recorded at or after its start. So does the codon that ran when `from`, a leaf, was taken.
    /// `None` where there is no codon.
    pub(crate) fn tracked_at(&self, from: Option<ObjectId>) -> Result<Option<Vec<String>>> {
        let (mut next, name) = (from, "".into());
        while let Some(id) = next {
            let checkpoint = self.read(id, &name)?;
            let during = if checkpoint.record.kind.is_typed() { None } else { self.codon_during(&checkpoint)? };
            let at = during.unwrap_or(checkpoint);
            if codon_of(&at.record).is_some() {
                let mut tracked = self.coverage(&at.tree)?.tracked;
                // The present patterns of the configuration are added anew to each later checkpoint.
                tracked.retain(|pattern| !subtracts(pattern) || !self.policy.tracked_files.contains(pattern));
                return Ok(Some(tracked));
            }
            next = at.parents.first().copied();
        }
        Ok(None)
    }

    /// Returns the first checkpoint of the codon that ran when a leaf was taken: it was recorded on the same tip, after
    /// the leaf, and its codon began before the leaf.
    fn codon_during(&self, leaf: &Checkpoint) -> Result<Option<Checkpoint>> {
        let Some(taken) = ms_of(&leaf.record.time) else { return Ok(None) };
        let ran = |other: &&Checkpoint| {
            let record = &other.record;
            let began = ms_of(&record.time).zip(record.duration_ms).map(|(end, ms)| end.saturating_sub_unsigned(ms));
            codon_of(record).is_some()
                && record.run == leaf.record.run
                && record.ordinal > leaf.record.ordinal
                && other.parents.first() == leaf.parents.first()
                && began.is_some_and(|began| began <= taken)
        };
        Ok(self.all()?.checkpoints.iter().find(ran).cloned())
    }
}
