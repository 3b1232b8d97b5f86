//! The order of worth: the checkpoints that a person would miss most come first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::age::{thinned, times};
use super::counts::turns;
use super::floor::{Judged, Kept, bound_families, families, named};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::model::checkpoint::CheckpointKind;

/// A checkpoint in the order of worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Its place among all.
    pub at: usize,
    /// True if no size drops it.
    pub stays: bool,
    /// The runs with which a typed one goes, as a number: they are next to each other in the order.
    pub family: Option<usize>,
}

/// Ranks checkpoints, the most worthy first: those that stay, labelled ones, typed ones by their runs, those by hand,
/// `auto` and `pre-restore`, the further ones of a turn, quiet steps, autosaves, base captures. Of equals the newest comes first.
/// No size drops a checkpoint that stays, a labelled one, or a typed one of a run with such a checkpoint. The base capture beside a
/// narrowed checkpoint goes with that one.
pub fn order(all: &[Checkpoint], kept: &Kept) -> Vec<Ranked> {
    let judged = Judged::at(all, kept);
    let families = families(all);
    let bound = bound_families(&judged, &families);
    let mut newest: BTreeMap<usize, usize> = BTreeMap::new();
    newest.extend(families.iter().enumerate().map(|(at, family)| (*family, at)));
    let further: BTreeSet<usize> =
        turns(&judged).into_iter().flatten().flat_map(|turn| turn.into_iter().skip(1)).collect();
    let saves: Vec<usize> = (0..all.len()).filter(|at| all[*at].record.kind == CheckpointKind::Autosave).collect();
    let times = times(all);
    // As thin as they will be once the newest checkpoint is the present.
    let thin: BTreeSet<usize> = times
        .last()
        .copied()
        .flatten()
        .map_or_else(BTreeSet::new, |now| thinned(&saves, &times, now).into_iter().collect());
    let rank = |at: usize| {
        let (record, family) = (&all[at].record, families[at]);
        let is_typed = record.kind.is_typed();
        if judged.stays[at] || (is_typed && bound.contains(&family)) {
            return (0, 0);
        }
        match record.kind {
            _ if record.is_labelled() => (1, 0),
            _ if is_typed => (2, all.len() - newest[&family]),
            _ if record.is_quiet() => (5, 1),
            CheckpointKind::Manual => (3, 0),
            CheckpointKind::Autosave if thin.contains(&at) => (7, 0),
            CheckpointKind::Autosave => (6, 0),
            CheckpointKind::Turn => (8, 0),
            _ if further.contains(&at) => (5, 0),
            _ => (4, 0),
        }
    };
    let named = named(all);
    // A base capture goes with the most worthy of the narrowed checkpoints that name it.
    let namer = |at: usize| named.get(&at).and_then(|namers| namers.iter().copied().min_by_key(|namer| rank(*namer)));
    let placed = |at: usize| namer(at).map_or_else(|| rank(at), |namer| rank(namer).min(rank(at)));
    let mut order: Vec<((u8, usize), Reverse<usize>)> = (0..all.len()).map(|at| (placed(at), Reverse(at))).collect();
    order.sort_unstable();
    let ranked = |(rank, Reverse(at)): ((u8, usize), Reverse<usize>)| {
        let of = namer(at).unwrap_or(at);
        Ranked { at, stays: rank.0 <= 1, family: all[of].record.kind.is_typed().then(|| families[of]) }
    };
    order.into_iter().map(ranked).collect()
}
