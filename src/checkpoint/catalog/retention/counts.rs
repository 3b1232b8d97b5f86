//! Counts: the most turns of a run, untyped checkpoints and labelled ones of a workspace.
//!
//! A turn counts once, however many `auto` checkpoints it has: the first stands for it, and the *further* ones have a
//! bound of their own, so that one busy turn evicts no other. All checkpoints of a run with the same turn name belong to
//! one turn, also with others in between. Actions without a turn count as one turn without a name. A turn is as old as
//! its newest checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use super::floor::{DropReason, Judged};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::Retention;

/// The number of further `auto` checkpoints that a run keeps for each turn that `retention.auto_per_run` allows.
const FURTHER_PER_TURN: usize = 5;

/// The number of quiet steps that a run keeps for each turn that `retention.auto_per_run` allows.
const QUIET_PER_TURN: usize = 50;

/// The places of one turn's `auto` checkpoints, oldest first.
pub(super) type Turn = Vec<usize>;

/// Returns true if so few checkpoints break no limit, whatever they are. Says no more than their kinds decide: this is
/// asked after each checkpoint.
pub(super) fn surely_fit(all: &[Checkpoint], limits: &Retention) -> bool {
    let least = limits.auto_per_run.min(limits.per_workspace).min(limits.labelled);
    let bases = all.iter().filter(|one| one.record.kind() == CheckpointKind::Turn);
    all.len() <= least as usize && bases.take(2).count() < 2
}

/// Notes the checkpoints that are too many.
pub(super) fn count(judged: &mut Judged<'_>, limits: &Retention) {
    superseded(judged);
    quiet(judged, limits);
    labelled(judged, limits);
    let runs = turns(judged);
    let further: BTreeSet<usize> = runs.iter().flatten().flat_map(|turn| &turn[1..]).copied().collect();
    for turns in &runs {
        let (gone, kept) = turns.split_at(turns.len().saturating_sub(limits.auto_per_run as usize));
        gone.iter().flatten().for_each(|at| judged.drop_leaf(*at, DropReason::AutoPerRun));
        // The oldest first, of any turn: the latest states are asked for most.
        let mut more: Vec<usize> = kept.iter().flat_map(|turn| &turn[1..]).copied().collect();
        more.sort_unstable();
        let bound = FURTHER_PER_TURN.saturating_mul(limits.auto_per_run as usize);
        let over = more.len().saturating_sub(bound);
        more[..over].iter().for_each(|at| judged.drop_leaf(*at, DropReason::Further));
    }
    let of_first: BTreeMap<usize, &Turn> = runs.iter().flatten().map(|turn| (turn[0], turn)).collect();
    let counts = |at: &usize| {
        let record = &judged.all[*at].record;
        let is_counted = !record.kind.is_typed() && !record.is_labelled() && record.kind != CheckpointKind::Turn;
        is_counted
            && !record.is_quiet()
            && !judged.is_pinned(*at)
            && !judged.going.contains_key(at)
            && !further.contains(at)
    };
    let mut left: Vec<usize> = (0..judged.all.len()).filter(counts).collect();
    left.sort_by_key(|at| of_first.get(at).and_then(|turn| turn.last()).copied().unwrap_or(*at));
    let over = left.len().saturating_sub(limits.per_workspace as usize);
    left.retain(|at| judged.may_go(*at));
    // The sort keeps the order of age. Checkpoints that nobody asked for by hand go first, autosaves before others.
    left.sort_by_key(|at| match judged.all[*at].record.kind {
        CheckpointKind::Autosave => 0,
        CheckpointKind::Manual => 2,
        _ => 1,
    });
    for at in left.into_iter().take(over) {
        // A turn is dropped as a whole: without its first checkpoint the others would count for nothing.
        let whole = of_first.get(&at).map_or(std::slice::from_ref(&at), |turn| turn.as_slice());
        whole.iter().for_each(|at| judged.drop_leaf(*at, DropReason::PerWorkspace));
    }
}

fn is_base(checkpoint: &Checkpoint) -> bool {
    checkpoint.record.kind == CheckpointKind::Turn && !checkpoint.record.is_quiet()
}

/// Notes the base captures that a newer one replaces: the next checkpoint has the same files, private ones too.
fn superseded(judged: &mut Judged<'_>) {
    let bases: Vec<usize> = (0..judged.all.len()).filter(|at| is_base(&judged.all[*at])).collect();
    let older = bases.split_last().map_or(&[][..], |(_, older)| older);
    let files = |at: usize| (judged.all[at].tree, judged.all[at].record.layer);
    let is_same = |at: &&usize| files(**at) == files(**at + 1);
    for at in older.iter().filter(is_same).copied().collect::<Vec<_>>() {
        judged.drop_leaf(at, DropReason::Superseded);
    }
}

/// Notes the oldest quiet steps of each run. They do not count among the further checkpoints of a turn, which replies have named. A base
/// capture is one of them: an action gets no step if nothing changed since that capture.
fn quiet(judged: &mut Judged<'_>, limits: &Retention) {
    let mut runs: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let is_step =
        |at: &usize, one: &Checkpoint| one.record.is_quiet() || is_base(one) && !judged.going.contains_key(at);
    for (at, checkpoint) in judged.all.iter().enumerate().filter(|(at, one)| is_step(at, one)) {
        runs.entry(&checkpoint.record.run).or_default().push(at);
    }
    let bound = QUIET_PER_TURN.saturating_mul(limits.auto_per_run as usize);
    for steps in runs.into_values() {
        let over = steps.len().saturating_sub(bound);
        steps[..over].iter().for_each(|at| judged.drop_leaf(*at, DropReason::Further));
    }
}

/// Notes the oldest labelled checkpoints. Those that stay in any case count too, except for pinned ones.
fn labelled(judged: &mut Judged<'_>, limits: &Retention) {
    let counts = |at: &usize| judged.all[*at].record.is_labelled() && !judged.is_pinned(*at);
    let labelled: Vec<usize> = (0..judged.all.len()).filter(counts).collect();
    let over = labelled.len().saturating_sub(limits.labelled as usize);
    let going: Vec<usize> = labelled.into_iter().filter(|at| !judged.stays[*at]).take(over).collect();
    judged.going.extend(going.into_iter().map(|at| (at, DropReason::Labelled)));
}

/// Groups the `auto` checkpoints of each run by turn, without pinned ones; the turn with the oldest newest checkpoint comes first.
pub(super) fn turns(judged: &Judged<'_>) -> Vec<Vec<Turn>> {
    let mut runs: BTreeMap<&str, BTreeMap<Option<&str>, Turn>> = BTreeMap::new();
    let is_auto =
        |at: &usize, one: &Checkpoint| one.record.kind.is_of_turn() && !one.record.is_quiet() && !judged.is_pinned(*at);
    for (at, checkpoint) in judged.all.iter().enumerate().filter(|(at, one)| is_auto(at, one)) {
        let turn = checkpoint.record.turn.as_deref();
        runs.entry(&checkpoint.record.run).or_default().entry(turn).or_default().push(at);
    }
    let by_age = |turns: BTreeMap<Option<&str>, Turn>| {
        let mut turns: Vec<Turn> = turns.into_values().collect();
        turns.sort_by_key(|turn| turn.last().copied());
        turns
    };
    runs.into_values().map(by_age).collect()
}
