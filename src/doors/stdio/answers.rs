//! From the domain to the protocol: what workers give back, and how it stands in replies.

use serde_json::{Value, json};

use crate::checkpoint::capture::gaps::Gap;
use crate::checkpoint::capture::take::{Taken, listed_skips};
use crate::checkpoint::catalog::diff::Stat;
use crate::checkpoint::history::journal::{External, OpKind};
use crate::checkpoint::history::operations::Step;
use crate::checkpoint::history::restore::{Preview, Restored};
use crate::checkpoint::runs::rollback::RolledBack;
use crate::checkpoint::timeline::Checkpoint;
use crate::engine::protect::Protected;
use crate::error::Error;
use crate::model::path::RelPath;
use crate::protocol::{
    CheckpointBlock, Done, List, NotHeld, PathItem, PlanLists, PreviewReply, RestoreReply, StatBlock, StepBlock,
    TargetBlock,
};

/// Most paths that an answer lists as not held.
const MAX_NOT_HELD: usize = 100;

/// What a job gives back to the loop.
pub enum Answer {
    /// An event's checkpoint; with files touched since the event came, and what it names and no checkpoint holds.
    Before(Result<Protected, Error>, Vec<RelPath>, Vec<Gap>),
    Base(Result<Box<Taken>, Error>),
    /// What is told while a job goes on; nobody's reply.
    Notice(&'static str, Value),
    /// A request's reply body, and notices that follow it.
    Reply(Result<Value, Error>, Vec<(&'static str, Value)>),
    /// A note or an `exit` checkpoint.
    Quiet(Result<(), Error>),
}

/// A checkpoint that was taken, or was there already.
pub fn block(taken: &Taken) -> CheckpointBlock {
    let record = &taken.checkpoint.record;
    let skips = listed_skips(&taken.coverage);
    CheckpointBlock {
        id: Some(taken.checkpoint.id.to_string()),
        n: Some(record.ordinal),
        kind: Some(record.kind.as_str()),
        status: if taken.unchanged { "unchanged" } else { "taken" },
        flags: record.flags.clone(),
        pending: None,
        reason: None,
        files: Some(record.files),
        bytes: Some(record.bytes),
        changed: taken.changed,
        skipped: List::of_reasons(skips.iter().map(|(path, why)| (path, why.to_string()))),
        ms: Some((taken.ms * 10.0).round() / 10.0),
    }
}

/// Converts gaps into the list `not_held` of a reply.
pub fn not_held(gaps: &[Gap]) -> Vec<NotHeld> {
    let item = |gap: &Gap| NotHeld {
        item: PathItem::new(&gap.path, Some(gap.why.to_string())),
        bytes: gap.weight.map(|weight| weight.bytes),
        at_least: gap.weight.is_some_and(|weight| weight.is_least),
    };
    gaps.iter().take(MAX_NOT_HELD).map(item).collect()
}

/// No checkpoint, and why.
pub fn no_block(status: &'static str, reason: Option<String>) -> CheckpointBlock {
    CheckpointBlock { status, reason, ..CheckpointBlock::default() }
}

/// The target of a restore.
pub fn target(checkpoint: &Checkpoint) -> TargetBlock {
    TargetBlock {
        id: checkpoint.id.to_string(),
        n: checkpoint.record.ordinal,
        kind: checkpoint.record.kind.as_str(),
        time: checkpoint.record.time.clone(),
        reason: checkpoint.record.reason.clone(),
        run: checkpoint.record.run.clone(),
        codon_id: checkpoint.record.codon_id.clone(),
        codon_name: checkpoint.record.codon_name.clone(),
    }
}

/// Files and lines, as replies carry them.
pub fn stat(stat: &Stat) -> StatBlock {
    StatBlock { files: stat.files, plus: stat.plus, minus: stat.minus, cut: stat.cut }
}

/// The operation that a step goes over.
pub fn over(step: &Step) -> StepBlock {
    let kind = match step.kind {
        OpKind::Restore => "restore",
        OpKind::Rollback => "rollback",
        OpKind::Undo => "undo",
        OpKind::Redo => "redo",
    };
    let run = step.moved.as_ref().map(|(run, _)| run.clone());
    StepBlock { operation: step.op.clone(), kind, time: step.time.clone(), run }
}

/// Texts and external effects, as replies carry warnings.
pub fn warnings(texts: &[String], externals: &[External]) -> Vec<Value> {
    let texts = texts.iter().map(|text| json!({"code": "incomplete", "message": text, "severity": "medium"}));
    let externals = externals.iter().map(|external| {
        json!({
            "code": format!("external-{}", external.class.as_str()),
            "class": external.class,
            "message": external.message,
            "action": external.action,
            "severity": external.severity,
            "time": external.time,
        })
    });
    texts.chain(externals).collect()
}

/// A preview's body.
pub fn preview(preview: &Preview) -> PreviewReply {
    let plan = &preview.plan;
    PreviewReply {
        target: target(&preview.target),
        plan: PlanLists {
            digest: preview.digest.clone(),
            create: List::of_paths(plan.create.iter().map(|(path, _)| path)),
            replace: List::of_paths(plan.replace.iter().map(|(path, _, _)| path)),
            delete: List::of_paths(plan.delete.iter().map(|(path, _)| path)),
            keep: List::of_reasons(plan.keep.iter().map(|(path, why)| (path, why.to_string()))),
            conflict: List::of_reasons(plan.conflict.iter().map(|(path, why)| (path, why.to_string()))),
        },
        stat: stat(&preview.stat),
        outside_edits: List::default(),
        warnings: warnings(&preview.warnings, &preview.externals),
        unheld: List::default(),
        over: None,
    }
}

/// A restore's body.
pub fn restored(restored: &Restored) -> RestoreReply {
    let outcome = &restored.outcome;
    let failed = outcome.failed.iter().chain(&restored.conflicts);
    let lost = outcome.warnings.iter().map(|(path, why)| format!("{}: {why}", path.display()));
    let texts: Vec<String> = restored.warnings.iter().cloned().chain(lost).collect();
    let pre_restore = restored.pre_restore.as_ref().map(|checkpoint| checkpoint.id.to_string());
    RestoreReply {
        operation: restored.operation.clone(),
        from: pre_restore.clone(),
        to: Some(restored.target.id.to_string()),
        target: Some(target(&restored.target)),
        pre_restore,
        done: Done {
            created: List::of_paths(outcome.created.iter()),
            replaced: List::of_paths(outcome.replaced.iter()),
            deleted: List::of_paths(outcome.deleted.iter()),
            kept: List::of_reasons(outcome.kept.iter().map(|(path, why)| (path, why.clone()))),
            failed: List::of_reasons(failed.map(|(path, why)| (path, why.clone()))),
            not_agreed: List::of_paths(restored.not_agreed.iter()),
        },
        warnings: warnings(&texts, &restored.externals),
        message: restored
            .operation
            .is_none()
            .then(|| "nothing to do: the files are as the checkpoint has them".to_owned()),
        ..RestoreReply::default()
    }
}

/// A rollback's body.
pub fn rolled_back(rolled: &RolledBack) -> RestoreReply {
    RestoreReply {
        detached: true,
        next_branch: Some(rolled.next_branch.clone()),
        run: Some(rolled.run.clone()),
        ..restored(&rolled.restored)
    }
}

/// What `status` tells of a workspace.
pub fn status(timeline: &mut crate::checkpoint::Timeline) -> Result<Value, Error> {
    let (all, mut broken) = timeline.checkpoints()?;
    broken.extend(timeline.damages()?);
    let workspace = timeline.workspace().clone();
    let last =
        all.iter().rev().find(|checkpoint| checkpoint.record.kind != crate::model::checkpoint::CheckpointKind::Turn);
    let kept = all
        .iter()
        .filter(|checkpoint| checkpoint.record.kind != crate::model::checkpoint::CheckpointKind::Turn)
        .count();
    Ok(json!({
        "piton": env!("CARGO_PKG_VERSION"),
        "workspace": { "id": workspace.id, "path": workspace.path.to_string_lossy(), "scope": workspace.scope.as_str(),
            "since": workspace.since },
        "store": timeline.store().git_dir().to_string_lossy(),
        "guard": super::words::guard_word(timeline.policy(), &workspace.dir),
        "watcher": "none",
        "checkpoints": kept,
        "cost": timeline.cost(),
        "last": last.map(|checkpoint| json!({ "id": checkpoint.id.to_string(), "n": checkpoint.record.ordinal,
            "kind": checkpoint.record.kind.as_str(), "time": checkpoint.record.time, "reason": checkpoint.record.reason,
            "flags": checkpoint.record.flags, "skipped": checkpoint.record.skipped })),
        "interrupted": super::words::interrupted(&workspace.dir),
        "broken": broken,
        "mishaps": crate::checkpoint::records::mishaps::newest(timeline.home()),
    }))
}
