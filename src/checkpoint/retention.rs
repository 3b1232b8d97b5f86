//! Which checkpoints go when there are too many. Pure: the plan says what and why, the caller drops the refs.
//!
//! Only leaves are counted and dropped; typed checkpoints are a run's history and are not touched here. Retention is per
//! workspace: one busy workspace never evicts another's. A turn counts once, however many `auto` checkpoints it has: the first
//! stands for it, and the *further* ones have a bound of their own, so that one busy turn evicts no other.

use std::collections::{BTreeMap, BTreeSet};

use super::timeline::Checkpoint;
use crate::model::checkpoint::Kind;
use crate::model::id::ObjectId;
use crate::model::policy::Retention;

/// Further `auto` checkpoints that a run keeps for each turn that `retention.auto_per_run` allows.
const FURTHER_PER_TURN: usize = 5;

/// Why a checkpoint is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// More turns with `auto` checkpoints in its run than `retention.auto_per_run`.
    AutoPerRun,
    /// More further `auto` checkpoints in its run than `FURTHER_PER_TURN` for each turn.
    Further,
    /// More in the workspace than `retention.per_workspace`.
    PerWorkspace,
    /// A base capture that a newer one replaces.
    Superseded,
}

/// The `auto` checkpoints of one turn, oldest first.
type Turn<'c> = Vec<&'c Checkpoint>;

/// What to drop, oldest first. `all` is ordered from oldest to newest; `needed` is never dropped, nor are pinned ones
/// and the newest checkpoint.
pub fn plan(all: &[Checkpoint], needed: &[ObjectId], limits: &Retention) -> Vec<(ObjectId, DropReason)> {
    if !limits.enabled {
        return Vec::new();
    }
    let newest = all.last().map(|checkpoint| checkpoint.id);
    let may_go = |checkpoint: &&Checkpoint| {
        let record = &checkpoint.record;
        !record.kind.is_typed() && !record.pinned && !needed.contains(&checkpoint.id) && newest != Some(checkpoint.id)
    };
    let mut dropped: BTreeMap<ObjectId, DropReason> = BTreeMap::new();
    let bases: Vec<&Checkpoint> = all.iter().filter(|checkpoint| checkpoint.record.kind == Kind::Turn).collect();
    if let Some((_, older)) = bases.split_last() {
        let older = older.iter().filter(|checkpoint| may_go(checkpoint));
        dropped.extend(older.map(|checkpoint| (checkpoint.id, DropReason::Superseded)));
    }
    let runs = turns(all);
    let further: BTreeSet<ObjectId> =
        runs.iter().flatten().flat_map(|turn| turn.iter().skip(1)).map(|checkpoint| checkpoint.id).collect();
    for turns in &runs {
        let over = turns.len().saturating_sub(limits.auto_per_run as usize);
        let going = turns.iter().take(over).flatten().copied().filter(may_go);
        dropped.extend(going.map(|checkpoint| (checkpoint.id, DropReason::AutoPerRun)));
        // The oldest turn first, and in it the oldest: what was there a moment ago is asked for most.
        let more: Vec<&Checkpoint> = turns.iter().skip(over).flat_map(|turn| turn.iter().skip(1)).copied().collect();
        let bound = FURTHER_PER_TURN.saturating_mul(limits.auto_per_run as usize);
        let going = more.iter().take(more.len().saturating_sub(bound)).copied().filter(may_go);
        dropped.extend(going.map(|checkpoint| (checkpoint.id, DropReason::Further)));
    }
    let left: Vec<&Checkpoint> = all
        .iter()
        .filter(|checkpoint| !checkpoint.record.kind.is_typed() && !checkpoint.record.pinned)
        .filter(|checkpoint| !dropped.contains_key(&checkpoint.id) && !further.contains(&checkpoint.id))
        .collect();
    let over = left.len().saturating_sub(limits.per_workspace as usize);
    // What nobody asked for by hand goes first.
    let (by_hand, automatic): (Vec<&Checkpoint>, Vec<&Checkpoint>) =
        left.into_iter().filter(may_go).partition(|checkpoint| checkpoint.record.kind == Kind::Manual);
    let going: BTreeSet<ObjectId> =
        automatic.into_iter().chain(by_hand).take(over).map(|checkpoint| checkpoint.id).collect();
    // A turn goes as a whole: without its first checkpoint nothing would count the others.
    let with_first = runs.iter().flatten().filter(|turn| turn.first().is_some_and(|first| going.contains(&first.id)));
    let along = with_first.flatten().copied().filter(may_go).map(|checkpoint| checkpoint.id);
    for id in along.chain(going.iter().copied()) {
        dropped.entry(id).or_insert(DropReason::PerWorkspace);
    }
    all.iter().filter_map(|checkpoint| dropped.get(&checkpoint.id).map(|reason| (checkpoint.id, *reason))).collect()
}

/// The turns of each run, oldest first. A checkpoint without a turn stands for itself. Clients may use a turn's name again: what
/// came after another turn of the run is a new one.
fn turns(all: &[Checkpoint]) -> Vec<Vec<Turn<'_>>> {
    let mut runs: BTreeMap<&str, Vec<Turn<'_>>> = BTreeMap::new();
    for checkpoint in all.iter().filter(|checkpoint| checkpoint.record.kind == Kind::Auto) {
        let turns = runs.entry(&checkpoint.record.run).or_default();
        let turn = &checkpoint.record.turn;
        match turns.last_mut().filter(|last| turn.is_some() && last.first().is_some_and(|c| c.record.turn == *turn)) {
            Some(last) => last.push(checkpoint),
            None => turns.push(vec![checkpoint]),
        }
    }
    runs.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::timeline::tests::checkpoint;
    use super::*;

    fn limits(auto: u32, all: u32) -> Retention {
        Retention { enabled: true, auto_per_run: auto, per_workspace: all }
    }

    fn dropped(all: &[Checkpoint], needed: &[ObjectId], limits: &Retention) -> Vec<u64> {
        let plan = plan(all, needed, limits);
        all.iter().filter(|c| plan.iter().any(|(id, _)| *id == c.id)).map(|c| c.record.ordinal).collect()
    }

    #[test]
    fn oldest_autos_of_each_run_go_first() {
        let all: Vec<_> = (1..=6).map(|n| checkpoint(n, Kind::Auto, if n % 2 == 0 { "a" } else { "b" })).collect();
        assert_eq!(dropped(&all, &[], &limits(2, 50)), [1, 2]);
        assert_eq!(dropped(&all, &[all[0].id], &limits(2, 50)), [2]);
        assert_eq!(dropped(&all, &[], &Retention { enabled: false, ..limits(1, 1) }), Vec::<u64>::new());
    }

    /// Of the turn `turn` of run `a`.
    fn of_turn(n: u64, turn: &str) -> Checkpoint {
        let mut checkpoint = checkpoint(n, Kind::Auto, "a");
        std::sync::Arc::make_mut(&mut checkpoint.record).turn = Some(turn.to_owned());
        checkpoint
    }

    #[test]
    fn a_turn_counts_once_however_many_checkpoints_it_has() {
        // Three turns of which the second has 500 checkpoints.
        let mut all = vec![of_turn(1, "t1")];
        all.extend((2..=501).map(|n| of_turn(n, "t2")));
        all.push(of_turn(502, "t3"));
        let gone = dropped(&all, &[], &limits(3, 3));
        assert_eq!(gone, (3..=486).collect::<Vec<_>>(), "the first of each turn stays, and 15 further ones");
        // A turn goes with all of its checkpoints, by either limit.
        assert_eq!(dropped(&all, &[], &limits(1, 50)), (1..=501).collect::<Vec<_>>());
        assert_eq!(dropped(&all, &[], &limits(100, 1)), (1..=501).collect::<Vec<_>>());
        assert_eq!(dropped(&all[..4], &[all[1].id], &limits(1, 50)), [1], "what is needed stays");
    }

    #[test]
    fn a_name_that_comes_again_is_another_turn() {
        let all = [of_turn(1, "1"), of_turn(2, "2"), of_turn(3, "1"), of_turn(4, "2")];
        assert_eq!(dropped(&all, &[], &limits(2, 50)), [1, 2]);
        assert_eq!(dropped(&all, &[], &limits(50, 3)), [1]);
    }

    #[test]
    fn automatic_ones_go_before_those_made_by_hand_and_pinned_stay() {
        let mut all = vec![
            checkpoint(1, Kind::Manual, "local"),
            checkpoint(2, Kind::Auto, "a"),
            checkpoint(3, Kind::Completed, "a"),
            checkpoint(4, Kind::PreRestore, "a"),
            checkpoint(5, Kind::Manual, "local"),
            checkpoint(6, Kind::Auto, "a"),
        ];
        std::sync::Arc::make_mut(&mut all[1].record).pinned = true;
        assert_eq!(dropped(&all, &[], &limits(20, 3)), [4]);
        assert_eq!(dropped(&all, &[], &limits(20, 1)), [1, 4, 5]);
    }

    #[test]
    fn only_the_newest_base_capture_stays() {
        let all: Vec<_> =
            [Kind::Turn, Kind::Turn, Kind::Auto].into_iter().zip(1..).map(|(k, n)| checkpoint(n, k, "a")).collect();
        assert_eq!(dropped(&all, &[], &limits(20, 50)), [1]);
    }
}
