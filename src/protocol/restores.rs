//! Going back: previews, restores, rollbacks, undos, and their answers.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::number::Number;
use serde::{Deserialize, Serialize};

use super::shapes::{List, StatBlock, WarningBlock};
use super::turns::ShareCounts;
use super::words::{Word, is_false};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;

/// One of a codon's checkpoints, by its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointType {
    /// The one where it began.
    Start,
    /// The one where it ended.
    End,
    /// The one after its rig was set up.
    RigSetup,
    /// The one of its success.
    Completed,
    /// The one of its failure.
    Error,
    /// The one that says that it was skipped.
    Skipped,
}

/// A restore, a rollback or its preview, as it stands in a line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct RollbackFields {
    sha: Option<String>,
    #[serde(rename = "codonId")]
    codon_id: Option<String>,
    #[serde(rename = "checkpointType")]
    checkpoint_type: Option<CheckpointType>,
    #[serde(rename = "lastSuccess", skip_serializing_if = "is_false")]
    last_success: bool,
    run: Option<String>,
    paths: Option<Vec<String>>,
    keep_new: bool,
    #[serde(skip_serializing_if = "is_false")]
    local: bool,
    expect: Option<String>,
    plan: Option<String>,
    #[serde(rename = "autoRestart")]
    auto_restart: bool,
    #[serde(skip_serializing_if = "is_false")]
    rewind: bool,
}

/// The target of going back.
#[derive(Clone, Debug, PartialEq)]
pub enum To {
    /// A selector.
    Checkpoint(String),
    /// A codon's checkpoint.
    Codon(String, CheckpointType),
    /// The newest success of the run.
    LastSuccess,
}

/// A restore, a rollback or its preview.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "RollbackFields")]
pub struct Rollback {
    /// The target.
    pub to: To,
    /// The run that is moved: the session's own when absent.
    pub run: Option<String>,
    /// The paths that are brought back: everything when absent.
    pub paths: Option<Vec<String>>,
    /// True if files that were created since stay.
    pub keep_new: bool,
    /// True if private files that are there are replaced and deleted too, though no path names them.
    pub local: bool,
    /// The newest checkpoint the client has seen; if there is a newer one, nothing is done.
    pub expect: Option<String>,
    /// The digest of the plan that was agreed to; if it would be another one now, nothing is done.
    pub plan: Option<String>,
    /// Told on to whoever is told that it is done; piton itself starts nothing.
    pub auto_restart: bool,
    /// True if the reply is to name the turn to which the conversation should go back.
    pub rewind: bool,
}

impl From<Rollback> for RollbackFields {
    fn from(rollback: Rollback) -> RollbackFields {
        let Rollback { to, run, paths, keep_new, local, expect, plan, auto_restart, rewind } = rollback;
        let fields = RollbackFields {
            run,
            paths,
            keep_new,
            local,
            expect,
            plan,
            auto_restart,
            rewind,
            ..RollbackFields::default()
        };
        match to {
            To::Checkpoint(sha) => RollbackFields { sha: Some(sha), ..fields },
            To::Codon(id, kind) => RollbackFields { codon_id: Some(id), checkpoint_type: Some(kind), ..fields },
            To::LastSuccess => RollbackFields { last_success: true, ..fields },
        }
    }
}

impl Rollback {
    /// Returns a return to a target, without any wish beside it.
    pub fn to(to: To) -> Rollback {
        Rollback::of(RollbackFields::default(), to)
    }

    fn of(fields: RollbackFields, to: To) -> Rollback {
        let RollbackFields { run, paths, keep_new, local, expect, plan, auto_restart, rewind, .. } = fields;
        Rollback { to, run, paths, keep_new, local, expect, plan, auto_restart, rewind }
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
            _ => {
                Err(Error::new(Code::BadRequest, "one of `sha`, `codonId` and `lastSuccess` must say what to restore")
                    .field("sha")
                    .hint("see docs/PROTOCOL.md"))
            }
        }
    }
}

fn missing(field: &str) -> Error {
    Error::new(Code::BadRequest, format!("`{field}`: missing field `{field}`"))
        .field(field)
        .hint("see docs/PROTOCOL.md")
}

/// A step back or forth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The run whose newest turn is undone.
    pub run: Option<String>,
    /// The turn to undo: by the name of its operation, or the client's newest of that name.
    pub turn: Option<String>,
    /// The paths of the turn to undo: all when absent.
    pub paths: Option<Vec<String>>,
    /// The shares in changes that are undone too, in addition to what is surely the turn's: `likely`, `touched`, `shared`, `unknown`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<Attribution>,
    /// The operation that must be the next one, as a preview named it.
    pub operation: Option<String>,
    /// True if it is only to be shown.
    pub preview: bool,
    /// The digest of the plan that was agreed to; if it would be another one now, nothing is done.
    pub plan: Option<String>,
    /// True if the reply is to name the turn to which the conversation should go back.
    #[serde(skip_serializing_if = "is_false")]
    pub rewind: bool,
}

/// The target of a restore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetBlock {
    /// Its id.
    pub id: String,
    /// Its permanent number.
    pub n: Number,
    /// Its kind.
    pub kind: Word<CheckpointKind>,
    /// The time when it was taken.
    pub time: String,
    /// The reason for it, for people.
    pub reason: String,
    /// The run that it belongs to.
    pub run: String,
    /// The codon that it belongs to.
    #[serde(rename = "codonId", default, skip_serializing_if = "Option::is_none")]
    pub codon_id: Option<String>,
    /// The name of that codon.
    #[serde(rename = "codonName", default, skip_serializing_if = "Option::is_none")]
    pub codon_name: Option<String>,
}

/// The operation that an undo or redo steps over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepBlock {
    /// Its name.
    pub operation: String,
    /// Its kind.
    pub kind: Word<OperationKind>,
    /// The time when it was done.
    pub time: String,
    /// The run that moves with it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The turn, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnBlock>,
}

/// The turn that an undo or redo steps over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnBlock {
    /// The client's name of it.
    pub turn: String,
    /// The first words of its prompt, without secrets; absent where none is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The run that it belongs to.
    pub run: String,
    /// The name of the client.
    pub client: Option<String>,
    /// The number of paths that it changed, by its share in them.
    pub shares: ShareCounts,
    /// True while it is open.
    #[serde(default, skip_serializing_if = "is_false")]
    pub open: bool,
}

/// The plan of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanLists {
    /// Names this plan: a restore that is given it does this plan or nothing.
    pub digest: String,
    /// Paths that come back.
    pub create: List,
    /// Paths whose content changes.
    pub replace: List,
    /// Paths that go.
    pub delete: List,
    /// Paths that stay although the target does not have them.
    pub keep: List,
    /// Paths whose present content could not be captured first.
    pub conflict: List,
}

/// The answer to `rollback.preview`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PreviewReply {
    /// The checkpoint to go to.
    pub target: TargetBlock,
    /// The paths that change.
    pub plan: PlanLists,
    /// Files and lines that change.
    pub stat: StatBlock,
    /// Paths that would change although the run that asks has not left them as they are, each with whose change it is.
    pub outside_edits: List,
    /// Effects that no restore undoes, and other things to know.
    pub warnings: Vec<WarningBlock>,
    /// Selected paths that neither the target nor the workspace has.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub unheld: List,
    /// Paths that the turn may have changed, and that stay unless `include` has `likely`.
    #[serde(default, skip_serializing_if = "LeftChanges::is_empty")]
    pub left: LeftChanges,
    /// The operation that an undo or redo steps over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<StepBlock>,
    /// The other workspaces in which the turn acted, each with its own plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherPreview>,
}

/// Paths that an undo leaves as they are although the turn may have changed them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftChanges {
    /// The number of all of them.
    pub total: usize,
    /// The first of them.
    pub items: Vec<LeftChange>,
}

impl LeftChanges {
    /// The most that are listed.
    const MOST: usize = 1000;

    /// Lists some paths, each with the share of the turn `operation` in it.
    pub fn of(paths: &BTreeMap<RelPath, Attribution>, operation: &str) -> LeftChanges {
        let shares: BTreeSet<Attribution> = paths.values().copied().collect();
        let shares = shares.into_iter().map(Attribution::as_str).collect::<Vec<_>>().join(",");
        let command = format!("piton undo --turn {operation} --include {shares}");
        let items = paths.iter().take(LeftChanges::MOST).map(|(path, share)| LeftChange {
            path: path.display(),
            why: share.reason().to_owned(),
            command: command.clone(),
        });
        LeftChanges { total: paths.len(), items: items.collect() }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Makes all paths absolute, where the workspace is the root of the file system.
    pub fn make_absolute(&mut self) {
        self.items.iter_mut().for_each(|item| item.path.insert(0, '/'));
    }
}

/// One path that an undo leaves as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftChange {
    /// The path.
    pub path: String,
    /// The reason, for people.
    pub why: String,
    /// The command that undoes the change too.
    pub command: String,
}

/// The error that keeps a step from being taken in one of its workspaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepFault {
    /// The stable code.
    pub code: Word<Code>,
    /// A sentence for people.
    pub message: String,
}

impl From<&Error> for StepFault {
    fn from(error: &Error) -> StepFault {
        StepFault { code: error.code().into(), message: error.text() }
    }
}

/// The part of a step in another workspace of its turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherPreview {
    /// The root of that workspace.
    pub workspace: String,
    /// The plan for that workspace; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<Box<PreviewReply>>,
    /// The error that keeps it from being done there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepFault>,
}

/// The part of a step that was done, or failed, in another workspace of its turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherDone {
    /// The root of that workspace.
    pub workspace: String,
    /// The result there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<Box<RestoreReply>>,
    /// The error that kept it from being done there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepFault>,
}

impl PreviewReply {
    /// Returns true if the restore would change no file.
    pub fn changes_nothing(&self) -> bool {
        let own = [&self.plan.create, &self.plan.replace, &self.plan.delete].iter().all(|list| list.is_empty());
        own && self.others.iter().filter_map(|other| other.preview.as_ref()).all(|other| other.changes_nothing())
    }
}

impl PlanLists {
    /// Makes all paths absolute, where the workspace is the root of the file system.
    pub fn make_absolute(&mut self) {
        let PlanLists { digest: _, create, replace, delete, keep, conflict } = self;
        [create, replace, delete, keep, conflict].into_iter().for_each(List::make_absolute);
    }
}

/// The paths that a restore changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLists {
    /// Paths that came back.
    pub created: List,
    /// Paths whose content changed.
    pub replaced: List,
    /// Paths that went.
    pub deleted: List,
    /// Paths that stayed although the target does not have them.
    pub kept: List,
    /// Paths that could not be brought back; they are unchanged.
    pub failed: List,
    /// Lists the paths of `kept` that are not in the agreed plan.
    #[serde(default, skip_serializing_if = "List::is_empty")]
    pub not_agreed: List,
}

impl ChangedLists {
    /// Makes all paths absolute, where the workspace is the root of the file system.
    pub fn make_absolute(&mut self) {
        let ChangedLists { created, replaced, deleted, kept, failed, not_agreed } = self;
        [created, replaced, deleted, kept, failed, not_agreed].into_iter().for_each(List::make_absolute);
    }
}

/// The answer to `restore`, to rollbacks, `undo` and `redo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreReply {
    /// The operation; `null`: there was nothing to do.
    pub operation: Option<String>,
    /// The checkpoint of what was there before.
    pub from: Option<String>,
    /// The checkpoint that was restored.
    pub to: Option<String>,
    /// The checkpoint of what was there before.
    pub pre_restore: Option<String>,
    /// True after a rollback, until the run records something.
    pub detached: bool,
    /// The branch on which the run goes on after a rollback.
    pub next_branch: Option<String>,
    /// The run that was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The checkpoint that was restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetBlock>,
    /// The operation that was stepped over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<StepBlock>,
    /// The paths that changed.
    pub done: ChangedLists,
    /// Paths that the turn may have changed, and that were left as they are.
    #[serde(default, skip_serializing_if = "LeftChanges::is_empty")]
    pub left: LeftChanges,
    /// Effects that no restore undoes, and other things to know.
    pub warnings: Vec<WarningBlock>,
    /// Always empty in this version.
    pub state: Vec<String>,
    /// The turn before whose beginning the conversation should go back, if that was asked for and is known.
    pub rewind_turn: Option<String>,
    /// The client's own way to do that, for people, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind_how: Option<String>,
    /// Says that there was nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The other workspaces in which the turn acted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherDone>,
}

/// The answer to `undo` and `redo` where there is nothing to step over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoStep {
    /// Always `null`.
    pub operation: Option<String>,
    /// The reason, for people.
    pub message: String,
}

/// The answer to `undo` and `redo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StepReply {
    /// The step is only shown.
    Preview(Box<PreviewReply>),
    /// The step was done.
    Done(Box<RestoreReply>),
    /// There is nothing to step over.
    Nothing(NoStep),
}
