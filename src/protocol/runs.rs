//! Requests about runs, their codons, and going back in them.

use serde::Deserialize;

use crate::error::{Code, Error, Result};

/// A run begins.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunStart {
    pub run: Option<String>,
    pub parent: Option<String>,
    pub goal: Option<String>,
    pub client: Option<String>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    Completed,
    Error,
}

/// A run ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RunEnd {
    pub status: Option<RunStatus>,
}

/// A run is to be made that goes on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RunFork {
    pub sha: String,
    #[serde(default)]
    pub run: Option<String>,
    #[serde(default)]
    pub parent: Option<String>,
    #[serde(default)]
    pub goal: Option<String>,
}

/// A codon begins.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CodonStart {
    pub codon_id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub tracked_files: Option<Vec<String>>,
    /// The session's own when absent.
    #[serde(default)]
    pub run: Option<String>,
}

/// The end of a codon, or a step of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CodonEnd {
    /// The running one when absent.
    pub codon_id: Option<String>,
    /// For one that is skipped before it began.
    pub name: Option<String>,
    /// The reason, for people.
    pub reason: Option<String>,
    pub run: Option<String>,
}

/// One of a codon's checkpoints, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointType {
    Start,
    End,
    RigSetup,
    Completed,
    Error,
    Skipped,
}

impl CheckpointType {
    /// Its spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            CheckpointType::Start => "start",
            CheckpointType::End => "end",
            CheckpointType::RigSetup => "rig-setup",
            CheckpointType::Completed => "completed",
            CheckpointType::Error => "error",
            CheckpointType::Skipped => "skipped",
        }
    }
}

/// A restore, a rollback or its preview, as it stands in a line.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct RollbackFields {
    sha: Option<String>,
    #[serde(rename = "codonId")]
    codon_id: Option<String>,
    #[serde(rename = "checkpointType")]
    checkpoint_type: Option<CheckpointType>,
    #[serde(rename = "lastSuccess")]
    last_success: bool,
    run: Option<String>,
    paths: Option<Vec<String>>,
    keep_new: bool,
    expect: Option<String>,
    plan: Option<String>,
    #[serde(rename = "autoRestart")]
    auto_restart: bool,
}

/// The target of going back.
#[derive(Clone, Debug, PartialEq)]
pub enum To {
    Checkpoint(String),
    Codon(String, CheckpointType),
    LastSuccess,
}

/// A restore, a rollback or its preview.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollback {
    pub to: To,
    /// The run that is moved: the session's own when absent.
    pub run: Option<String>,
    pub paths: Option<Vec<String>>,
    pub keep_new: bool,
    /// The newest checkpoint the client has seen; if there is a newer one, nothing is done.
    pub expect: Option<String>,
    /// The digest of the plan that was agreed to; if it would be another one now, nothing is done.
    pub plan: Option<String>,
    /// Told on to whoever is told that it is done; piton itself starts nothing.
    pub auto_restart: bool,
}

impl Rollback {
    fn of(fields: RollbackFields, to: To) -> Rollback {
        let RollbackFields { run, paths, keep_new, expect, plan, auto_restart, .. } = fields;
        Rollback { to, run, paths, keep_new, expect, plan, auto_restart }
    }

    /// Reads a rollback to a checkpoint.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn at_checkpoint(mut fields: RollbackFields) -> Result<Rollback> {
        let sha = fields.sha.take().ok_or_else(|| missing("sha"))?;
        Ok(Rollback::of(fields, To::Checkpoint(sha)))
    }

    /// Reads a rollback to a codon.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn at_codon(mut fields: RollbackFields) -> Result<Rollback> {
        let codon = fields.codon_id.take().ok_or_else(|| missing("codonId"))?;
        let kind = fields.checkpoint_type.unwrap_or(CheckpointType::End);
        Ok(Rollback::of(fields, To::Codon(codon, kind)))
    }

    /// Reads a rollback to the last success.
    pub(super) fn at_last_success(fields: RollbackFields) -> Rollback {
        Rollback::of(fields, To::LastSuccess)
    }

    /// By the one of `sha`, `codonId` and `lastSuccess` that is given.
    pub(super) fn aimed(fields: RollbackFields) -> Result<Rollback> {
        match (fields.sha.is_some(), fields.codon_id.is_some(), fields.last_success) {
            (true, false, false) => Rollback::at_checkpoint(fields),
            (false, true, false) => Rollback::at_codon(fields),
            (false, false, true) => Ok(Rollback::at_last_success(fields)),
            _ => Err(Error::new(
                Code::BadRequest,
                "one of `sha`, `codonId` and `lastSuccess` must say what to go back to",
            )
            .field("sha")
            .hint("see docs/PROTOCOL.md")),
        }
    }
}

fn missing(field: &str) -> Error {
    Error::new(Code::BadRequest, format!("`{field}`: missing field `{field}`"))
        .field(field)
        .hint("see docs/PROTOCOL.md")
}
