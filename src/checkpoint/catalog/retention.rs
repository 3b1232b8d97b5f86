//! Chooses the checkpoints to drop when there are too many. Pure: the plan has checkpoints and reasons, and the caller
//! drops the refs.
//!
//! Only leaves are counted and dropped; typed checkpoints are a run's history and are not touched here. Retention is
//! per workspace: one busy workspace never evicts another's. A turn counts once, however many `auto` checkpoints it
//! has: the first stands for it, and the *further* ones have a bound of their own, so that one busy turn evicts no
//! other. All checkpoints of a run with the same turn name belong to one turn, also with others in between. Actions
//! without a turn count as one turn without a name. A turn is as old as its newest checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use super::checkpoint::Checkpoint;
use super::dropped::DroppedCheckpoint;
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::model::policy::Retention;

/// The number of further `auto` checkpoints that a run keeps for each turn that `retention.auto_per_run` allows.
const FURTHER_PER_TURN: usize = 5;

/// The reason why a checkpoint is dropped.
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

impl DropReason {
    /// Returns the note of a checkpoint that is dropped for this reason; `None` for base captures, which are never
    /// shown.
    pub fn noted(self, checkpoint: &Checkpoint, at: i64) -> Option<DroppedCheckpoint> {
        let rule = match self {
            DropReason::AutoPerRun | DropReason::Further => "retention.auto_per_run",
            DropReason::PerWorkspace => "retention.per_workspace",
            DropReason::Superseded => return None,
        };
        let record = &checkpoint.record;
        Some(DroppedCheckpoint {
            n: record.ordinal,
            id: checkpoint.id.to_string(),
            label: (record.kind == CheckpointKind::Manual).then(|| record.reason.clone()),
            at,
            rule: rule.to_owned(),
        })
    }
}

/// The places of one turn's `auto` checkpoints, oldest first.
type Turn = Vec<usize>;

/// Lists what to drop, oldest first. `all` is ordered from oldest to newest; `needed` is never dropped, nor are pinned ones
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
    let bases: Vec<&Checkpoint> =
        all.iter().filter(|checkpoint| checkpoint.record.kind == CheckpointKind::Turn).collect();
    if let Some((_, older)) = bases.split_last() {
        let older = older.iter().filter(|checkpoint| may_go(checkpoint));
        dropped.extend(older.map(|checkpoint| (checkpoint.id, DropReason::Superseded)));
    }
    let runs = turns(all);
    let further: BTreeSet<usize> = runs.iter().flatten().flat_map(|turn| &turn[1..]).copied().collect();
    let mut drop_all = |places: &[usize], reason: DropReason| {
        let going = places.iter().map(|at| &all[*at]).filter(may_go);
        dropped.extend(going.map(|checkpoint| (checkpoint.id, reason)));
    };
    for turns in &runs {
        let (gone, kept) = turns.split_at(turns.len().saturating_sub(limits.auto_per_run as usize));
        gone.iter().for_each(|turn| drop_all(turn, DropReason::AutoPerRun));
        // The oldest first, of any turn: the latest states are asked for most.
        let mut more: Vec<usize> = kept.iter().flat_map(|turn| &turn[1..]).copied().collect();
        more.sort_unstable();
        let bound = FURTHER_PER_TURN.saturating_mul(limits.auto_per_run as usize);
        drop_all(&more[..more.len().saturating_sub(bound)], DropReason::Further);
    }
    let of_first: BTreeMap<usize, &Turn> = runs.iter().flatten().map(|turn| (turn[0], turn)).collect();
    let counts = |at: &usize| {
        let record = &all[*at].record;
        !record.kind.is_typed() && !record.pinned && !dropped.contains_key(&all[*at].id) && !further.contains(at)
    };
    let mut left: Vec<usize> = (0..all.len()).filter(counts).collect();
    left.sort_by_key(|at| of_first.get(at).and_then(|turn| turn.last()).copied().unwrap_or(*at));
    let over = left.len().saturating_sub(limits.per_workspace as usize);
    // Checkpoints that nobody asked for by hand go first.
    let (by_hand, automatic): (Vec<usize>, Vec<usize>) =
        left.into_iter().filter(|at| may_go(&&all[*at])).partition(|at| all[*at].record.kind == CheckpointKind::Manual);
    for at in automatic.into_iter().chain(by_hand).take(over) {
        // A turn is dropped as a whole: without its first checkpoint the others would count for nothing.
        let whole = of_first.get(&at).map_or(std::slice::from_ref(&at), |turn| turn.as_slice());
        for checkpoint in whole.iter().map(|at| &all[*at]).filter(may_go) {
            dropped.entry(checkpoint.id).or_insert(DropReason::PerWorkspace);
        }
    }
    all.iter().filter_map(|checkpoint| dropped.get(&checkpoint.id).map(|reason| (checkpoint.id, *reason))).collect()
}

/// Groups the `auto` checkpoints of each run by turn, without pinned ones; the turn with the oldest newest checkpoint comes first.
fn turns(all: &[Checkpoint]) -> Vec<Vec<Turn>> {
    let mut runs: BTreeMap<&str, BTreeMap<Option<&str>, Turn>> = BTreeMap::new();
    let autos = |record: &Record| record.kind == CheckpointKind::Auto && !record.pinned;
    for (at, checkpoint) in all.iter().enumerate().filter(|(_, checkpoint)| autos(&checkpoint.record)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::catalog::checkpoint::tests::checkpoint;

    fn limits(auto: u32, all: u32) -> Retention {
        Retention { enabled: true, auto_per_run: auto, per_workspace: all }
    }

    fn dropped(all: &[Checkpoint], needed: &[ObjectId], limits: &Retention) -> Vec<u64> {
        let plan = plan(all, needed, limits);
        all.iter().filter(|c| plan.iter().any(|(id, _)| *id == c.id)).map(|c| c.record.ordinal).collect()
    }

    /// Makes an `auto` checkpoint of a turn of a run.
    fn auto(n: u64, run: &str, turn: Option<&str>) -> Checkpoint {
        let mut checkpoint = checkpoint(n, CheckpointKind::Auto, run);
        std::sync::Arc::make_mut(&mut checkpoint.record).turn = turn.map(str::to_owned);
        checkpoint
    }

    /// Makes an `auto` checkpoint of a turn of run `a`.
    fn of_turn(n: u64, turn: &str) -> Checkpoint {
        auto(n, "a", Some(turn))
    }

    #[test]
    fn oldest_turns_of_each_run_go_first() {
        let of = |n: u64| auto(n, if n.is_multiple_of(2) { "a" } else { "b" }, Some(&n.to_string()));
        let all: Vec<_> = (1..=6).map(of).collect();
        assert_eq!(dropped(&all, &[], &limits(2, 50)), [1, 2]);
        assert_eq!(dropped(&all, &[all[0].id], &limits(2, 50)), [2]);
        assert_eq!(dropped(&all, &[], &Retention { enabled: false, ..limits(1, 1) }), Vec::<u64>::new());
    }

    #[test]
    fn a_turn_counts_once_however_many_checkpoints_it_has() {
        // Three turns, the second with 500 checkpoints.
        let mut all = vec![of_turn(1, "t1")];
        all.extend((2..=501).map(|n| of_turn(n, "t2")));
        all.push(of_turn(502, "t3"));
        let gone = dropped(&all, &[], &limits(3, 3));
        assert_eq!(gone, (3..=486).collect::<Vec<_>>(), "the first of each turn stays, and 15 further ones");
        // A turn is dropped with all of its checkpoints, by either limit.
        assert_eq!(dropped(&all, &[], &limits(1, 50)), (1..=501).collect::<Vec<_>>());
        assert_eq!(dropped(&all, &[], &limits(100, 1)), (1..=501).collect::<Vec<_>>());
        assert_eq!(dropped(&all[..4], &[all[1].id], &limits(1, 50)), [1], "what is needed stays");
    }

    #[test]
    fn a_turn_is_what_has_its_name_whatever_came_in_between() {
        // Each word is a turn; `-` means an action without one. The numbers are the dropped checkpoints under limits
        // for the run and the workspace.
        let table: &[(&str, (u32, u32), &[u64])] = &[
            ("a b a b a b", (2, 50), &[]),
            ("x a b a b a b", (2, 50), &[1]),
            ("a b a b c", (2, 50), &[1, 3]),
            // The turn with the latest checkpoint stays, although it began first.
            ("a b c a", (2, 50), &[2]),
            ("a b c a", (50, 2), &[2]),
            // Over the number of further ones, the oldest is dropped first, of any turn.
            ("a b a b a b a b", (1, 50), &[1, 3, 5, 7]),
            ("a b a a a a a a b", (1, 50), &[1, 3, 4, 5, 6, 7, 8]),
            ("a b a a a a b a a a a a b b", (2, 50), &[3, 4]),
            // Without turns: one counts, with five further ones for each turn of the limit.
            ("- - - - - - -", (1, 50), &[2]),
            ("- - - - - - -", (2, 1), &[]),
            ("- - - - - - - - - - - - - -", (2, 50), &[2, 3, 4]),
            // Actions before, between and after turns evict none of them.
            ("- a - - b - -", (3, 50), &[]),
            ("- a - - b - -", (2, 50), &[2]),
            ("- a - - b", (50, 2), &[2]),
            ("- - a b", (2, 50), &[1, 2]),
        ];
        for (turns, (run, workspace), gone) in table {
            let all: Vec<_> = turns
                .split(' ')
                .zip(1..)
                .map(|(turn, n)| auto(n, "a", Some(turn).filter(|turn| *turn != "-")))
                .collect();
            assert_eq!(dropped(&all, &[], &limits(*run, *workspace)), *gone, "{turns}, {run} and {workspace}");
        }
        // The same name in another run is another turn.
        let all = [auto(1, "r", Some("t")), auto(2, "s", Some("t")), auto(3, "s", Some("u")), auto(4, "s", Some("t"))];
        assert_eq!(dropped(&all, &[], &limits(1, 50)), [3]);
        assert_eq!(dropped(&all, &[], &limits(50, 2)), [1]);
    }

    #[test]
    fn automatic_ones_go_before_those_made_by_hand_and_pinned_stay() {
        let mut all = vec![
            checkpoint(1, CheckpointKind::Manual, "local"),
            checkpoint(2, CheckpointKind::Auto, "a"),
            checkpoint(3, CheckpointKind::Completed, "a"),
            checkpoint(4, CheckpointKind::PreRestore, "a"),
            checkpoint(5, CheckpointKind::Manual, "local"),
            checkpoint(6, CheckpointKind::Auto, "a"),
        ];
        std::sync::Arc::make_mut(&mut all[1].record).pinned = true;
        assert_eq!(dropped(&all, &[], &limits(20, 3)), [4]);
        assert_eq!(dropped(&all, &[], &limits(20, 1)), [1, 4, 5]);
    }

    #[test]
    fn only_the_newest_base_capture_stays() {
        let all: Vec<_> = [CheckpointKind::Turn, CheckpointKind::Turn, CheckpointKind::Auto]
            .into_iter()
            .zip(1..)
            .map(|(k, n)| checkpoint(n, k, "a"))
            .collect();
        assert_eq!(dropped(&all, &[], &limits(20, 50)), [1]);
    }
}
