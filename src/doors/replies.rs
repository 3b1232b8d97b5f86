//! Makes the bodies of replies and notices from values of the engine and the domain. `--json` of the command line uses
//! them too.

use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::{Taken, listed_skips};
use crate::checkpoint::catalog::diff::Stat;
use crate::checkpoint::catalog::gaps::Gap;
use crate::checkpoint::history::journal::{External, OpKind, OperationStart};
use crate::checkpoint::history::operations::UndoStep;
use crate::checkpoint::history::request::{Preview, Restored};
use crate::checkpoint::records::mishaps;
use crate::checkpoint::runs::list::ListedRun;
use crate::checkpoint::runs::rollback::RolledBack;
use crate::checkpoint::runs::run::{ForkPoint, RunEnding};
use crate::engine::decision::{ActionDecision, BaseCapture, Decision, LATE, Notice, Protection, SessionFacts, Stance};
use crate::engine::names::guard_in_force;
use crate::engine::session::{Session, interrupted_in};
use crate::engine::watcher::WatcherStatus;
use crate::error::Error;
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::{Guard, Watching};
use crate::protocol::{
    BaselineStatus, BeforeReply, CheckpointBlock, CheckpointStatus, Done, HelloReply, List, NotHeld, PathItem,
    PlanLists, PreviewReply, RestoreReply, StatBlock, StepBlock, TargetBlock, WatcherWord,
};

/// The most paths that an answer lists as not held.
const MAX_NOT_HELD: usize = 100;

/// Returns a checkpoint that was taken, or was there already.
pub fn block(taken: &Taken) -> CheckpointBlock {
    let record = &taken.checkpoint.record;
    let skips = listed_skips(&taken.coverage);
    CheckpointBlock {
        id: Some(taken.checkpoint.id.to_string()),
        n: Some(record.ordinal),
        kind: Some(record.kind.as_str().to_owned()),
        status: if taken.unchanged { CheckpointStatus::Unchanged } else { CheckpointStatus::Taken },
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

/// Returns the block without a checkpoint, and why.
fn no_block(status: CheckpointStatus, reason: Option<String>) -> CheckpointBlock {
    CheckpointBlock { status, reason, ..CheckpointBlock::default() }
}

/// Returns the target of a restore.
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

/// Returns files and lines, as replies carry them.
pub fn stat(stat: &Stat) -> StatBlock {
    StatBlock { files: stat.files, plus: stat.plus, minus: stat.minus, cut: stat.cut }
}

/// Returns the operation that a step goes over.
pub fn over(step: &UndoStep) -> StepBlock {
    let kind = match step.kind {
        OpKind::Restore => "restore",
        OpKind::Rollback => "rollback",
        OpKind::Undo => "undo",
        OpKind::Redo => "redo",
    };
    let run = step.moved.as_ref().map(|(run, _)| run.clone());
    StepBlock { operation: step.op.clone(), kind, time: step.time.clone(), run }
}

/// Returns texts and external effects, as replies carry warnings.
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

/// Returns a preview's body.
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

/// Returns a restore's body.
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

/// Returns a rollback's body.
pub fn rolled_back(rolled: &RolledBack) -> RestoreReply {
    RestoreReply {
        detached: true,
        next_branch: Some(rolled.next_branch.clone()),
        run: Some(rolled.run.clone()),
        ..restored(&rolled.restored)
    }
}

/// Returns the reply to an event.
pub fn decision(decision: &Decision) -> Value {
    match decision {
        Decision::Opened(facts) => json!(opened(facts)),
        Decision::Turn(turn) => {
            let mut body = json!({ "turn": turn.turn, "notices": turn.notices });
            if let Some(protection) = &turn.protection {
                body["checkpoint"] = json!(protected(protection));
            }
            body
        }
        Decision::TurnEnded { turn } => json!({ "turn": turn }),
        Decision::Action(action) => json!(before(action)),
        Decision::After { notices } if notices.is_empty() => json!({}),
        Decision::After { notices } => json!({ "notices": notices }),
    }
}

/// Returns the reply to an event before an action.
pub fn before(action: &ActionDecision) -> BeforeReply {
    BeforeReply {
        proceed: action.stance == Stance::Proceed,
        reason: action.stance.reason().map(str::to_owned),
        action: action.action.clone(),
        turn: action.turn.clone(),
        needs: action.needs,
        confidence: action.confidence,
        effects: action.effects.clone(),
        warnings: action.warnings.clone(),
        checkpoint: protected(&action.protection),
        not_held: not_held(&action.not_held),
        notices: action.notices.clone(),
    }
}

/// Returns the block of an event's checkpoint.
pub fn protected(protection: &Protection) -> CheckpointBlock {
    match protection {
        Protection::NotNeeded(why) => no_block(CheckpointStatus::None, why.clone()),
        Protection::Off(why) => no_block(CheckpointStatus::Off, why.clone()),
        Protection::Taken(taken) => block(taken),
        Protection::Held(turn) => CheckpointBlock {
            id: Some(turn.id.clone()),
            n: Some(turn.ordinal),
            kind: Some(CheckpointKind::Auto.as_str().to_owned()),
            ..no_block(CheckpointStatus::Held, None)
        },
        Protection::Late { ticket, named } => CheckpointBlock {
            status: CheckpointStatus::Late,
            pending: Some(pending(*ticket)),
            reason: Some(LATE.to_owned()),
            ..named.as_deref().map(block).unwrap_or_default()
        },
        Protection::Failed(why) => no_block(CheckpointStatus::Failed, Some(why.clone())),
    }
}

fn pending(ticket: u64) -> String {
    format!("p{ticket}")
}

fn opened(facts: &SessionFacts) -> HelloReply {
    HelloReply {
        piton: env!("CARGO_PKG_VERSION"),
        workspace: json!({ "id": facts.workspace.id, "path": facts.workspace.path.to_string_lossy(),
            "scope": facts.workspace.scope }),
        run: facts.run.clone(),
        guard: guard_word(facts.guard),
        baseline: baseline(facts.base),
        watcher: watcher_word(facts.watching, &facts.watcher),
        limits: json!({ "line": facts.line_bytes, "deadline_ms": facts.deadline.as_millis() as u64 }),
        interrupted: interrupted(&facts.interrupted),
        faults: facts.faults.clone(),
    }
}

/// Returns a notice by its name; `None` for a fault, which is told as an error.
pub fn notice(notice: &Notice) -> Option<(&'static str, Value)> {
    Some(match notice {
        Notice::Fault(_) => return None,
        Notice::ConfigReloaded { warnings } => ("config.reloaded", json!({ "warnings": warnings })),
        Notice::JobFailed { reason, is_base: true } => {
            ("checkpoint.failed", json!({ "kind": "turn", "reason": reason }))
        }
        Notice::JobFailed { reason, is_base: false } => ("checkpoint.failed", json!({ "reason": reason })),
        Notice::Settled(settled) => {
            let failed = matches!(settled.protection, Protection::Failed(_));
            let mut body = json!({ "pending": pending(settled.ticket), "checkpoint": protected(&settled.protection),
                "dirty": List::of_paths(settled.touched.iter()).items });
            if !settled.not_held.is_empty() {
                body["not_held"] = json!(not_held(&settled.not_held));
            }
            (if failed { "checkpoint.failed" } else { "checkpoint.settled" }, body)
        }
        Notice::LowDisk { reason } => ("store.low-disk", json!({ "reason": reason })),
        Notice::RestoreInterrupted(begin) => {
            let operation = interrupted(std::slice::from_ref(begin)).into_iter().next();
            ("restore.interrupted", json!({ "operation": operation }))
        }
    })
}

/// Returns the body of a reply. As long as a restore waits to be ended, every reply says so.
pub fn marked(body: Value, session: &Session) -> Value {
    let waiting = interrupted(&session.interrupted());
    match body {
        Value::Object(mut fields) if !waiting.is_empty() => {
            fields.insert("interrupted".into(), waiting.into());
            Value::Object(fields)
        }
        body => body,
    }
}

/// Returns the guard's word on the wire.
pub fn guard_word(guard: Guard) -> &'static str {
    match guard {
        Guard::Turn => "turn",
        Guard::Action => "action",
        Guard::Off => "off",
    }
}

/// Returns the word for the capture that a session begins with.
fn baseline(base: BaseCapture) -> BaselineStatus {
    match base {
        BaseCapture::None => BaselineStatus::None,
        BaseCapture::Running => BaselineStatus::Running,
        BaseCapture::Ready => BaselineStatus::Ready,
    }
}

/// Returns interrupted restores, as replies carry them.
pub fn interrupted(begun: &[OperationStart]) -> Vec<Value> {
    let one = |begin: &OperationStart| {
        json!({ "operation": begin.op, "target": begin.target.to_string(), "preRestore": begin.pre_restore.to_string(),
            "next": "piton restore --continue, or piton restore --abort" })
    };
    begun.iter().map(one).collect()
}

/// Returns how changes are noticed, in a word of the protocol.
pub fn watcher_word(wanted: Watching, watcher: &WatcherStatus) -> WatcherWord {
    match wanted {
        _ if watcher.warm => WatcherWord::Warm,
        Watching::Recommended if watcher.refused.is_none() => WatcherWord::Cold,
        Watching::Recommended | Watching::Poll => WatcherWord::Scan,
        Watching::None => WatcherWord::None,
    }
}

/// Returns what a watcher has and has seen, as `status` tells.
pub fn watching(watcher: &WatcherStatus) -> Value {
    let unwatched = watcher.unwatched.iter().map(|(path, why)| json!({ "path": path.display(), "reason": why }));
    json!({
        "directories": watcher.watches,
        "unwatched": { "count": watcher.unwatched_count, "items": unwatched.collect::<Vec<_>>() },
        "refused": watcher.refused,
        "events": watcher.events,
        "overflows": watcher.overflows,
        "audits": watcher.audits,
        "divergences": watcher.divergences,
    })
}

/// Returns what `status` tells of a workspace.
///
/// # Errors
/// Those of listing the checkpoints.
pub fn status(timeline: &mut Timeline) -> Result<Value, Error> {
    let known = timeline.catalog().all()?;
    let (all, mut broken) = (known.checkpoints.as_slice(), known.broken.clone());
    broken.extend(timeline.catalog().damages()?);
    let workspace = timeline.workspace().clone();
    let last = all.iter().rev().find(|checkpoint| checkpoint.record.kind != CheckpointKind::Turn);
    let kept = all.iter().filter(|checkpoint| checkpoint.record.kind != CheckpointKind::Turn).count();
    Ok(json!({
        "piton": env!("CARGO_PKG_VERSION"),
        "workspace": { "id": workspace.id, "path": workspace.path.to_string_lossy(), "scope": workspace.scope.as_str(),
            "since": workspace.since },
        "store": timeline.store().git_dir().to_string_lossy(),
        "guard": guard_word(guard_in_force(timeline.policy(), &workspace.dir)),
        "watcher": "none",
        "checkpoints": kept,
        "cost": timeline.cost(),
        "last": last.map(|checkpoint| json!({ "id": checkpoint.id.to_string(), "n": checkpoint.record.ordinal,
            "kind": checkpoint.record.kind.as_str(), "time": checkpoint.record.time, "reason": checkpoint.record.reason,
            "flags": checkpoint.record.flags, "skipped": checkpoint.record.skipped })),
        "interrupted": interrupted(&interrupted_in(&workspace.dir)),
        "broken": broken,
        "mishaps": mishaps::newest(timeline.home()),
    }))
}

/// Returns the checkpoint that a run or a branch goes on from.
pub fn origin(origin: &ForkPoint) -> Value {
    json!({ "run": origin.run, "checkpoint": origin.checkpoint.to_string(), "n": origin.ordinal })
}

/// Returns a list of runs, as replies and `--json` carry it.
pub fn runs(rows: &[ListedRun], faults: &[String]) -> Value {
    let runs: Vec<Value> = rows.iter().map(run).collect();
    json!({ "total": runs.len(), "runs": runs, "faults": faults })
}

/// Returns what a run is at, in a word.
pub fn run_status(row: &ListedRun) -> &'static str {
    match row.state.status {
        _ if row.running.is_some() => "running",
        Some(RunEnding::Completed) => "completed",
        Some(RunEnding::Error) => "error",
        Some(RunEnding::Exit) => "exit",
        None => "open",
    }
}

fn run(row: &ListedRun) -> Value {
    let state = &row.state;
    let branches: Vec<Value> = row
        .branches
        .iter()
        .map(|branch| {
            let from = branch.from.as_ref().map(|from| {
                let mut value = origin(from);
                value["type"] = if from.run == row.run { "continuation" } else { "fork" }.into();
                value
            });
            json!({ "branch": branch.name, "from": from, "checkpoints": branch.checkpoints.len(),
                "tip": branch.checkpoints.first().map(ToString::to_string) })
        })
        .collect();
    let last = row.last.as_ref().map(|checkpoint| {
        json!({ "n": checkpoint.record.ordinal, "id": checkpoint.id.to_string(), "kind": checkpoint.record.kind.as_str(),
            "codonId": checkpoint.record.codon_id, "codonName": checkpoint.record.codon_name, "time": checkpoint.record.time })
    });
    json!({
        "run": row.run, "named": state.named, "client": state.client, "parent": state.parent, "goal": state.goal,
        "status": run_status(row), "started": (!row.since.is_empty()).then_some(&row.since), "ended": state.ended,
        "from": state.origin.as_ref().map(origin), "codon": row.running.as_ref().map(|codon| &codon.id),
        "trackedFiles": state.tracked, "checkpoints": row.checkpoints, "branches": branches, "last": last,
    })
}
