//! The state of a workspace, its watcher and its runs, in the words of the protocol.

use super::actions::unguarded;
use super::{interrupted, scope};
use crate::checkpoint::Checkpoint;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::runs::list::{Branch, ListedRun};
use crate::checkpoint::runs::run::{ForkPoint, RunEnding};
use crate::checkpoint::upkeep::usage::{UNMET_STEP, Usage};
use crate::checkpoint::{Home, Timeline};
use crate::engine::names::guard_in_force;
use crate::engine::session::interrupted_in;
use crate::engine::state::told_names;
use crate::engine::watcher::WatcherStatus;
use crate::error::Error;
use crate::model::checkpoint::CheckpointKind;
use crate::model::path::RelPath;
use crate::model::policy::Watching;
use crate::protocol::{
    BranchItem, BranchOrigin, BranchType, OriginBlock, ProtectionBlock, RunItem, RunLast, RunListReply, RunState,
    StatusFacts, StatusLast, UnwatchedBlock, UnwatchedItem, WatcherWord, WatchingBlock, WorkspaceBlock,
};

/// Returns how changes are noticed, in a word of the protocol.
pub fn watcher_word(wanted: Watching, watcher: &WatcherStatus) -> WatcherWord {
    match wanted {
        _ if watcher.warm => WatcherWord::Warm,
        Watching::Recommended if watcher.refused.is_none() => WatcherWord::Cold,
        Watching::Recommended | Watching::Poll => WatcherWord::Scan,
        Watching::None => WatcherWord::None,
    }
}

/// Returns the state and the history of a watcher, as `status` tells.
pub fn watching(watcher: &WatcherStatus) -> WatchingBlock {
    let item = |(path, why): &(RelPath, String)| UnwatchedItem { path: path.display(), reason: why.clone() };
    WatchingBlock {
        directories: watcher.watches,
        unwatched: UnwatchedBlock {
            count: watcher.unwatched_count,
            items: watcher.unwatched.iter().map(item).collect(),
        },
        refused: watcher.refused.clone(),
        events: watcher.events,
        overflows: watcher.overflows,
        audits: watcher.audits,
        divergences: watcher.divergences,
        degraded: watcher.degraded.clone(),
    }
}

/// Returns what `status` tells of a workspace. Of watchers, settings, the switch and the protection, the caller knows. `damages` are those of
/// its store beside refs that cannot be read.
///
/// # Errors
/// Returns the errors of listing the checkpoints.
pub fn status(timeline: &mut Timeline, damages: Vec<String>) -> Result<StatusFacts, Error> {
    let known = timeline.catalog().all()?;
    let (all, mut broken) = (known.checkpoints.as_slice(), timeline.catalog().broken(&known)?);
    for damage in damages {
        if !broken.contains(&damage) {
            broken.push(damage);
        }
    }
    let workspace = timeline.workspace().clone();
    let last = all.iter().rev().find(|checkpoint| checkpoint.record.kind != CheckpointKind::Turn);
    let kept = all.iter().filter(|checkpoint| checkpoint.record.kind().is_listed()).count();
    Ok(StatusFacts {
        piton: env!("CARGO_PKG_VERSION").to_owned(),
        store: timeline.store().git_dir().to_string_lossy().into_owned(),
        second_copy: false,
        guard: guard_in_force(timeline.policy(), &workspace.dir).into(),
        protection: ProtectionBlock::default(),
        guard_off: None,
        watcher: WatcherWord::None,
        degraded: None,
        checkpoints: kept,
        cost: timeline.cost(),
        last: last.map(newest),
        interrupted: interrupted(&interrupted_in(&workspace.dir)),
        broken,
        cap: unmet_cap(timeline.home(), timeline.policy().retention.total_bytes),
        warnings: Vec::new(),
        mishaps: mishaps::newest(timeline.home()),
        unguarded: unguarded(timeline)?,
        workspace: known_workspace(&workspace),
    })
}

/// Says that the cap of the store cannot be met, and what to do; `None` if it can, as far as the last round knows.
pub fn unmet_cap(home: &Home, total: u64) -> Option<String> {
    Some(format!("{}; {UNMET_STEP}", Usage::read(home)?.unmet_cap(total)?))
}

fn known_workspace(workspace: &Workspace) -> WorkspaceBlock {
    WorkspaceBlock {
        id: workspace.id.clone(),
        path: workspace.path.to_string_lossy().into_owned(),
        scope: scope(workspace.scope),
        since: Some(workspace.since.clone()),
    }
}

fn newest(checkpoint: &Checkpoint) -> StatusLast {
    let record = &checkpoint.record;
    StatusLast {
        id: checkpoint.id.to_string(),
        n: record.number,
        kind: record.kind.into(),
        time: record.time.clone(),
        reason: record.reason.clone(),
        flags: record.flags.clone(),
        skipped: record.skipped,
    }
}

/// Returns the checkpoint that a run or a branch goes on from.
pub fn origin(origin: &ForkPoint) -> OriginBlock {
    OriginBlock { run: origin.run.clone(), checkpoint: origin.checkpoint.to_string(), n: origin.number }
}

/// Returns a list of runs, as replies and `--json` carry it. A session fills in names that its run lacks.
pub fn runs(rows: &[ListedRun], faults: Vec<String>, home: &Home) -> RunListReply {
    RunListReply { total: rows.len(), runs: rows.iter().map(|row| run(row, home)).collect(), faults }
}

/// Returns the state of a run.
pub fn run_state(row: &ListedRun) -> RunState {
    match row.ending {
        _ if row.running.is_some() => RunState::Running,
        Some(RunEnding::Completed) => RunState::Completed,
        Some(RunEnding::Error) => RunState::Error,
        Some(RunEnding::Exit) => RunState::Exit,
        None => RunState::Open,
    }
}

/// Returns the name of the client of a run, as long as that is kept: with the run, with its session, or with its turns.
pub fn client_of(timeline: &Timeline, run: &str) -> Option<String> {
    let catalog = timeline.catalog();
    let of_run = catalog.run_state(run).ok().and_then(|state| state.client);
    let of_session = || told_names(timeline.home(), run).0;
    let of_turns = || {
        let history = catalog.history().ok()?;
        history.turns.iter().rev().find(|turn| turn.run == run).and_then(|turn| turn.client.clone())
    };
    of_run.or_else(of_session).or_else(of_turns)
}

/// Returns the names of the client of a run and of the run, as the client spells them: those of its session, where the run has none.
pub fn names_of(row: &ListedRun, home: &Home) -> (Option<String>, Option<String>) {
    let state = &row.state;
    let (client, named) = match state.client {
        Some(_) => (None, None),
        None => told_names(home, &row.run),
    };
    (state.client.clone().or(client), state.named.clone().or(named))
}

fn run(row: &ListedRun, home: &Home) -> RunItem {
    let state = &row.state;
    let (client, named) = names_of(row, home);
    RunItem {
        run: row.run.clone(),
        named,
        client,
        parent: state.parent.clone(),
        goal: state.goal.clone(),
        status: run_state(row),
        started: (!row.since.is_empty()).then(|| row.since.clone()),
        ended: state.ended.clone(),
        from: state.origin.as_ref().map(origin),
        codon: row.running.as_ref().map(|codon| codon.id.clone()),
        tracked_files: state.tracked.clone(),
        checkpoints: row.checkpoints,
        branches: row.branches.iter().map(|branch| timeline_of(branch, &row.run)).collect(),
        last: row.last.as_ref().map(last_of_codon),
    }
}

fn timeline_of(branch: &Branch, run: &str) -> BranchItem {
    let from = branch.from.as_ref().map(|from| BranchOrigin {
        origin: origin(from),
        r#type: if from.run == run { BranchType::Continuation } else { BranchType::Fork },
    });
    BranchItem {
        branch: branch.name.clone(),
        from,
        checkpoints: branch.checkpoints.len(),
        tip: branch.checkpoints.first().map(ToString::to_string),
    }
}

fn last_of_codon(checkpoint: &Checkpoint) -> RunLast {
    let record = &checkpoint.record;
    RunLast {
        n: record.number,
        id: checkpoint.id.to_string(),
        kind: record.kind.into(),
        codon_id: record.codon_id.clone(),
        codon_name: record.codon_name.clone(),
        time: record.time.clone(),
    }
}
