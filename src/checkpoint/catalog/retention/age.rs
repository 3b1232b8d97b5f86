//! Ages: untyped checkpoints of some days, runs of some months, autosaves that thin out.
//!
//! A checkpoint is at least as young as each of those before it: a clock that was wrong for a while makes nothing old.
//! One from the future is young.

use std::collections::{BTreeMap, BTreeSet};

use super::counts::turns;
use super::floor::{DropReason, Judged, bound_families, families};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::Retention;
use crate::sys::clock::ms_of;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Notes the checkpoints that are too old at `now` (milliseconds since 1970).
pub(super) fn outdate(judged: &mut Judged<'_>, limits: &Retention, now: i64) {
    let times = times(judged.all);
    let age = |at: usize| times[at].map_or(0, |time| now.saturating_sub(time).max(0));
    if let Some(days) = limits.days {
        // A turn is as old as its newest checkpoint.
        let mut ages: Vec<i64> = (0..judged.all.len()).map(age).collect();
        for turn in turns(judged).iter().flatten() {
            let newest = turn.last().map_or(0, |at| ages[*at]);
            turn.iter().for_each(|at| ages[*at] = newest);
        }
        let too_old = (0..ages.len()).filter(|at| ages[*at] > i64::from(days) * DAY);
        too_old.collect::<Vec<_>>().into_iter().for_each(|at| judged.drop_leaf(at, DropReason::Days));
    }
    let saves: Vec<usize> =
        (0..judged.all.len()).filter(|at| judged.all[*at].record.kind == CheckpointKind::Autosave).collect();
    for at in thinned(&saves, &times, now) {
        judged.drop_leaf(at, DropReason::Thinned);
    }
    if let Some(days) = limits.runs_days {
        outdate_runs(judged, &age, i64::from(days) * DAY);
    }
}

/// Notes the families of runs whose newest checkpoint is too old.
fn outdate_runs(judged: &mut Judged<'_>, age: &dyn Fn(usize) -> i64, most: i64) {
    let families = families(judged.all);
    let bound = bound_families(judged, &families);
    let mut newest: BTreeMap<usize, i64> = BTreeMap::new();
    let mut with_typed = BTreeSet::new();
    for (at, family) in families.iter().enumerate() {
        let age = age(at);
        newest.entry(*family).and_modify(|known| *known = age.min(*known)).or_insert(age);
        if judged.all[at].record.kind.is_typed() {
            with_typed.insert(*family);
        }
    }
    for (at, family) in families.iter().enumerate() {
        if newest[family] > most && with_typed.contains(family) && !bound.contains(family) {
            judged.going.entry(at).or_insert(DropReason::RunsDays);
        }
    }
}

/// Returns the time of each checkpoint: its own, or a later one of an earlier number. `None` where none can be read.
pub(super) fn times(all: &[Checkpoint]) -> Vec<Option<i64>> {
    let mut latest = None;
    let time = |checkpoint: &Checkpoint| {
        latest = latest.max(ms_of(&checkpoint.record.time));
        latest
    };
    all.iter().map(time).collect()
}

/// Returns those of `saves` beside which a newer one is enough: one an hour after an hour, one a day after a day. The
/// hours and days are those of the calendar, so that looking twice thins no more than looking once.
pub(super) fn thinned(saves: &[usize], times: &[Option<i64>], now: i64) -> Vec<usize> {
    let span = |time: i64| match now.saturating_sub(time) {
        ..HOUR => None,
        HOUR..DAY => Some((HOUR, time.div_euclid(HOUR))),
        _ => Some((DAY, time.div_euclid(DAY))),
    };
    let mut newest: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    let mut gone = Vec::new();
    for at in saves {
        let span = times[*at].and_then(span);
        gone.extend(span.and_then(|span| newest.insert(span, *at)));
    }
    gone
}
