//! Which checkpoints go when there are too many. Pure: the plan says what and why, the caller drops the refs.
//!
//! Only leaves are counted and dropped; typed checkpoints are a run's history and are not touched here. Retention is per
//! workspace: one busy workspace never evicts another's.

use std::collections::BTreeMap;

use super::timeline::Checkpoint;
use crate::model::checkpoint::Kind;
use crate::model::id::ObjectId;
use crate::model::policy::Retention;

/// Why a checkpoint is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// More `auto` checkpoints in its run than `retention.auto_per_run`.
    AutoPerRun,
    /// More in the workspace than `retention.per_workspace`.
    PerWorkspace,
    /// A base capture that a newer one replaces.
    Superseded,
}

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
    let mut runs: BTreeMap<&str, Vec<&Checkpoint>> = BTreeMap::new();
    for checkpoint in all.iter().filter(|checkpoint| checkpoint.record.kind == Kind::Auto) {
        runs.entry(&checkpoint.record.run).or_default().push(checkpoint);
    }
    for autos in runs.into_values() {
        let over = autos.len().saturating_sub(limits.auto_per_run as usize);
        let going = autos.into_iter().take(over).filter(may_go);
        dropped.extend(going.map(|checkpoint| (checkpoint.id, DropReason::AutoPerRun)));
    }
    let left: Vec<&Checkpoint> = all
        .iter()
        .filter(|checkpoint| !checkpoint.record.kind.is_typed() && !checkpoint.record.pinned)
        .filter(|checkpoint| !dropped.contains_key(&checkpoint.id))
        .collect();
    let over = left.len().saturating_sub(limits.per_workspace as usize);
    // What nobody asked for by hand goes first.
    let (by_hand, automatic): (Vec<&Checkpoint>, Vec<&Checkpoint>) =
        left.into_iter().filter(may_go).partition(|checkpoint| checkpoint.record.kind == Kind::Manual);
    let going = automatic.into_iter().chain(by_hand).take(over);
    dropped.extend(going.map(|checkpoint| (checkpoint.id, DropReason::PerWorkspace)));
    all.iter().filter_map(|checkpoint| dropped.get(&checkpoint.id).map(|reason| (checkpoint.id, *reason))).collect()
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
