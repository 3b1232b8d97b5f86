//! Makes replies and notices from values of the engine and the domain. `--json` of the command line uses them too.

mod actions;
mod restores;
mod status;
mod turns;

use std::path::Path;

use crate::checkpoint::Checkpoint;
use crate::checkpoint::capture::request::{Taken, listed_skips};
use crate::checkpoint::catalog::gaps::Gap;
use crate::checkpoint::history::collision::{Collision, WorkOwner};
use crate::checkpoint::history::journal::OperationStart;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::upkeep::usage::UNMET_STEP;
use crate::doors::protection::silent_items;
use crate::engine::decision::{
    ActionDecision, BaseCapture, Decision, LATE, Notice, OtherPart, Protection, SessionFacts, Stance,
};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::Coverage;
use crate::model::effect::Verdict;
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest};
use crate::model::path::RelPath;
use crate::protocol::{
    AfterReply, AutosavedNotice, BaselineStatus, BeforeReply, CheckpointBlock, CheckpointFacts, CheckpointStatus,
    ChosenItem, ChosenReply, ClassifyReply, CollisionItem, DegradedNotice, EventReply, FailedNotice, HelloReply,
    HoldAnswer, Interrupted, InterruptedNotice, LimitsBlock, List, LowDiskNotice, NotHeld, NoticeBody, OtherBlock,
    PathItem, ReloadReply, ScopeWord, SettledNotice, StoreCapNotice, TurnEndReply, TurnReply, WarningBlock, Word,
    WorkMaker, WorkspaceBlock,
};

pub use actions::{actions, unguarded};
pub use restores::{preview, restored, rolled_back, stat, target};
pub use status::{client_of, names_of, origin, run_state, runs, status, unmet_cap, watcher_word, watching};
pub use turns::{step_done, step_preview, turn_diff, turns};

/// The most paths that an answer lists as not saved.
const MAX_NOT_HELD: usize = 100;

/// The most touched files that a notice lists.
const MAX_DIRTY: usize = 1000;

/// Returns a checkpoint that was taken, or was there already.
pub fn block(taken: &Taken) -> CheckpointBlock {
    let record = &taken.checkpoint.record;
    CheckpointBlock {
        id: Some(taken.checkpoint.id.to_string()),
        n: Some(record.number),
        kind: Some(record.kind.into()),
        status: if taken.unchanged { CheckpointStatus::Unchanged } else { CheckpointStatus::Taken },
        flags: record.flags.clone(),
        pending: None,
        reason: None,
        files: Some(record.files),
        bytes: Some(record.bytes),
        changed: taken.changed,
        skipped: skipped(&taken.coverage),
        ms: Some((taken.ms * 10.0).round() / 10.0),
    }
}

/// Returns the paths that a checkpoint left out.
fn skipped(coverage: &Coverage) -> List {
    let skips = listed_skips(coverage);
    List::of_reasons(skips.iter().map(|(path, why)| (path, why.to_string())))
}

/// Lists the checkpoints that were named, and says of which something changed.
pub fn chosen(named: &[Checkpoint], changed: &dyn Fn(&ObjectId) -> bool) -> ChosenReply {
    let item = |checkpoint: &Checkpoint| ChosenItem {
        n: checkpoint.record.number,
        id: checkpoint.id.to_string(),
        kind: checkpoint.record.kind.into(),
        time: checkpoint.record.time.clone(),
        reason: checkpoint.record.reason.clone(),
        changed: changed(&checkpoint.id),
    };
    ChosenReply { checkpoints: named.iter().map(item).collect() }
}

/// Counts the directories that a checkpoint holds.
pub fn directories(manifest: &Manifest) -> u64 {
    manifest.iter().filter(|(_, entry)| entry.kind == EntryKind::Dir).count() as u64
}

/// Returns facts about a checkpoint; `client` is that of its run.
pub fn facts(
    checkpoint: &Checkpoint,
    client: Option<String>,
    (manifest, coverage): (&Manifest, &Coverage),
) -> CheckpointFacts {
    let record = &checkpoint.record;
    CheckpointFacts {
        n: record.number,
        id: checkpoint.id.to_string(),
        kind: record.kind.into(),
        run: record.run.clone(),
        client,
        turn: record.turn.clone(),
        codon_id: record.codon_id.clone(),
        codon_name: record.codon_name.clone(),
        duration_ms: record.duration_ms,
        time: record.time.clone(),
        reason: record.reason.clone(),
        files: record.files,
        directories: directories(manifest),
        bytes: record.bytes,
        flags: record.flags.clone(),
        pinned: record.pinned,
        effects: record.effects.iter().map(|class| (*class).into()).collect(),
        skipped: skipped(coverage),
    }
}

/// Converts gaps into the list `not_held` of a reply.
pub fn not_held(gaps: &[Gap]) -> Vec<NotHeld> {
    gaps.iter().take(MAX_NOT_HELD).map(|gap| missing(None, gap)).collect()
}

/// Returns a path that is not saved; of another workspace with its `root`, absolute.
fn missing(root: Option<&Path>, gap: &Gap) -> NotHeld {
    NotHeld {
        item: item(root, &gap.path, Some(gap.why.to_string())),
        bytes: gap.weight.map(|weight| weight.bytes),
        at_least: gap.weight.is_some_and(|weight| weight.is_least),
    }
}

fn item(root: Option<&Path>, path: &RelPath, why: Option<String>) -> PathItem {
    match root {
        Some(root) => PathItem::absolute(root, path, why),
        None => PathItem::new(path, why),
    }
}

/// Returns what an action names and no checkpoint of any of its workspaces holds.
fn all_not_held(action: &ActionDecision) -> Vec<NotHeld> {
    let own = action.not_held.iter().map(|gap| missing(None, gap));
    let others =
        action.others.iter().flat_map(|other| other.not_held.iter().map(|gap| missing(Some(&other.root), gap)));
    own.chain(others).take(MAX_NOT_HELD).collect()
}

/// Returns the answer that blocks an action.
fn answer(stance: &Stance) -> Option<Word<HoldAnswer>> {
    match stance {
        Stance::Proceed => None,
        Stance::Ask(_) => Some(HoldAnswer::Ask.into()),
        Stance::Deny(_) => Some(HoldAnswer::Deny.into()),
    }
}

/// Returns the work of others that an action would destroy, in all of its workspaces.
fn collisions(action: &ActionDecision) -> Vec<CollisionItem> {
    let own = action.collisions.iter().map(|one| collision(None, one));
    let others =
        action.others.iter().flat_map(|other| other.collisions.iter().map(|one| collision(Some(&other.root), one)));
    own.chain(others).collect()
}

fn collision(root: Option<&Path>, collision: &Collision) -> CollisionItem {
    let mut paths = List::of_paths(collision.paths.iter());
    if let Some(root) = root {
        paths.items = collision.paths.iter().take(paths.items.len()).map(|path| item(Some(root), path, None)).collect();
    }
    let (owner, run, client, turn, operation) = match collision.owner.clone() {
        WorkOwner::Person => (WorkMaker::Person, None, None, None, None),
        WorkOwner::Run { run, client, turn, operation } => (WorkMaker::Run, Some(run), client, Some(turn), operation),
    };
    CollisionItem { owner: owner.into(), run, client, turn, operation, paths }
}

/// Returns the checkpoint of another workspace that an action reaches.
fn other(part: &OtherPart) -> OtherBlock {
    OtherBlock { workspace: part.root.to_string_lossy().into_owned(), checkpoint: protected(&part.protection) }
}

/// Returns the block without a checkpoint, and why.
fn no_block(status: CheckpointStatus, reason: Option<String>) -> CheckpointBlock {
    CheckpointBlock { status, reason, ..CheckpointBlock::default() }
}

/// Returns the reply to an event.
pub fn decision(decision: &Decision) -> EventReply {
    match decision {
        Decision::Opened(facts) => EventReply::Opened(Box::new(opened(facts))),
        Decision::Turn(turn) => EventReply::Turn(Box::new(TurnReply {
            turn: turn.turn.clone(),
            notices: turn.notices.clone(),
            checkpoint: turn.protection.as_ref().map(protected),
        })),
        Decision::TurnEnded { turn, notices } => {
            EventReply::TurnEnd(TurnEndReply { turn: turn.clone(), notices: notices.clone() })
        }
        Decision::Action(action) => EventReply::Before(Box::new(before(action))),
        Decision::After { notices } => EventReply::After(AfterReply { notices: notices.clone() }),
    }
}

/// Returns a judgement of a command.
pub fn classified(verdict: &Verdict) -> ClassifyReply {
    ClassifyReply {
        needs: verdict.needs.into(),
        confidence: verdict.confidence.into(),
        writes_unnamed: verdict.writes_unnamed,
        effects: verdict.effects.clone(),
        warnings: verdict.warnings.iter().map(WarningBlock::from).collect(),
    }
}

/// Returns the reply to an event before an action.
pub fn before(action: &ActionDecision) -> BeforeReply {
    BeforeReply {
        proceed: action.stance == Stance::Proceed,
        reason: action.stance.reason().map(str::to_owned),
        action: action.action.clone(),
        turn: action.turn.clone(),
        needs: action.needs.into(),
        confidence: action.confidence.into(),
        effects: action.effects.clone(),
        warnings: action.warnings.iter().map(WarningBlock::from).collect(),
        checkpoint: protected(&action.protection),
        not_held: all_not_held(action),
        answer: answer(&action.stance),
        collisions: collisions(action),
        others: action.others.iter().map(other).collect(),
        notices: action.notices.clone(),
        silent: silent_items(&action.silent, None),
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
            n: Some(turn.number),
            kind: Some(turn.kind.into()),
            ..no_block(CheckpointStatus::Held, None)
        },
        Protection::Late { ticket, named } => CheckpointBlock {
            status: CheckpointStatus::Late,
            pending: Some(pending(*ticket)),
            reason: Some(match named {
                Some(named) => {
                    format!(
                        "{LATE}. Checkpoint {} contains the paths that the action names",
                        named.checkpoint.record.number
                    )
                }
                None => LATE.to_owned(),
            }),
            ..named.as_deref().map(block).unwrap_or_default()
        },
        Protection::Failed(why) => no_block(CheckpointStatus::Failed, Some(why.clone())),
    }
}

fn pending(ticket: u64) -> String {
    format!("p{ticket}")
}

fn opened(facts: &SessionFacts) -> HelloReply {
    let workspace = &facts.workspace;
    HelloReply {
        piton: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: WorkspaceBlock {
            id: workspace.id.clone(),
            path: workspace.path.to_string_lossy().into_owned(),
            scope: scope(workspace.scope),
            since: None,
        },
        run: facts.run.clone(),
        guard: facts.guard.into(),
        baseline: baseline(facts.base),
        autosave: facts.autosave,
        watcher: watcher_word(facts.watching, &facts.watcher),
        limits: LimitsBlock { line: facts.line_bytes, deadline_ms: facts.deadline.as_millis() as u64 },
        interrupted: interrupted(&facts.interrupted),
        faults: facts.faults.clone(),
    }
}

fn scope(scope: Scope) -> ScopeWord {
    match scope {
        Scope::Tree => ScopeWord::Tree,
        Scope::TargetsOnly => ScopeWord::TargetsOnly,
    }
}

/// Returns a notice; `None` for a fault, which is told as an error.
pub fn notice(notice: &Notice) -> Option<NoticeBody> {
    let failed = |kind: Option<CheckpointKind>, reason: &str| FailedNotice {
        kind: kind.map(Into::into),
        reason: Some(reason.to_owned()),
        late: None,
    };
    Some(match notice {
        Notice::Fault(_) => return None,
        Notice::ConfigReloaded { warnings } => NoticeBody::ConfigReloaded(ReloadReply { warnings: warnings.clone() }),
        Notice::JobFailed { reason, kind } => NoticeBody::Failed(Box::new(failed(*kind, reason))),
        Notice::Autosaved(taken) => NoticeBody::Autosaved(Box::new(AutosavedNotice { checkpoint: block(taken) })),
        Notice::Settled(settled) => {
            let root = settled.root.as_deref();
            let late = SettledNotice {
                pending: pending(settled.ticket),
                workspace: root.map(|root| root.to_string_lossy().into_owned()),
                checkpoint: protected(&settled.protection),
                dirty: settled.touched.iter().take(MAX_DIRTY).map(|path| item(root, path, None)).collect(),
                not_held: settled.not_held.iter().take(MAX_NOT_HELD).map(|gap| missing(root, gap)).collect(),
            };
            match settled.protection {
                Protection::Failed(_) => {
                    NoticeBody::Failed(Box::new(FailedNotice { late: Some(late), ..FailedNotice::default() }))
                }
                _ => NoticeBody::Settled(Box::new(late)),
            }
        }
        Notice::LowDisk { reason } => NoticeBody::LowDisk(LowDiskNotice { reason: reason.clone() }),
        Notice::StoreCap(unmet) => NoticeBody::StoreCap(StoreCapNotice {
            reason: format!("{unmet}; {UNMET_STEP}"),
            total: unmet.total,
            over: unmet.over,
        }),
        Notice::WatcherDegraded { reason } => NoticeBody::WatcherDegraded(DegradedNotice { reason: reason.clone() }),
        Notice::RestoreInterrupted(begin) => {
            NoticeBody::RestoreInterrupted(InterruptedNotice { operation: one_interrupted(begin) })
        }
    })
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
pub fn interrupted(begun: &[OperationStart]) -> Vec<Interrupted> {
    begun.iter().map(one_interrupted).collect()
}

fn one_interrupted(begin: &OperationStart) -> Interrupted {
    Interrupted {
        operation: begin.op.clone(),
        target: begin.target.to_string(),
        pre_restore: begin.pre_restore.to_string(),
        next: "piton restore --continue, or piton restore --abort".to_owned(),
    }
}
