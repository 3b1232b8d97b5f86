//! Chooses the checkpoints to drop: those that are too many (`counts`), too old (`age`), or too large together
//! (`size`). Pure: each line of a plan has its reason, and the caller drops the refs.
//!
//! Retention is per workspace: one busy workspace never evicts another's. Labelled checkpoints have a limit of their own
//! and count in no other. A base capture whose files the next checkpoint does not have counts as a quiet step; another one
//! goes. The typed checkpoints of a run are one chain, so a run goes as a whole, together with the runs that grew out of it.
//!
//! *Invariant:* no rule drops a checkpoint that stays ([`Kept`]): the newest of the workspace, pinned ones, the newest of an
//! open run, and the ends of the newest turns. So does whatever undo, an interrupted restore or a moved run goes on from.

mod age;
mod counts;
mod floor;
mod size;
mod worth;

use std::collections::{HashMap, HashSet};

use super::checkpoint::Checkpoint;
use crate::model::id::ObjectId;
use crate::model::policy::Retention;

pub use floor::{DropReason, Kept, StayReason};
use floor::{Judged, families};
pub use size::{budgets, over};
pub use worth::{Ranked, order};

/// Lists what to drop, oldest first. `all` is ordered from oldest to newest. With the present time (milliseconds since
/// 1970) ages count too.
pub fn plan(all: &[Checkpoint], kept: &Kept, limits: &Retention, now: Option<i64>) -> Vec<(ObjectId, DropReason)> {
    if !limits.enabled || (now.is_none() && counts::surely_fit(all, limits)) {
        return Vec::new();
    }
    let mut judged = Judged::at(all, kept);
    counts::count(&mut judged, limits);
    if let Some(now) = now {
        age::outdate(&mut judged, limits, now);
    }
    judged.keep_named();
    judged.going.into_iter().map(|(at, reason)| (all[at].id, reason)).collect()
}

/// Returns those of a plan that may still go, since checkpoints may have come and gone meanwhile. The typed ones of a
/// run go only if nothing of it stays. A person may delete the newest of the workspace, which no limit drops.
pub fn still(all: &[Checkpoint], kept: &Kept, going: &[(ObjectId, DropReason)]) -> Vec<(ObjectId, DropReason)> {
    let planned: HashMap<ObjectId, DropReason> = going.iter().copied().collect();
    let (reasons, families) = (kept.reasons(all), families(all));
    let goes = |at: usize| match (planned.get(&all[at].id), reasons[at]) {
        (Some(DropReason::Deleted), why) => {
            why.is_none_or(|why| matches!(why, StayReason::Newest | StayReason::OfTurn))
        }
        (planned, why) => planned.is_some() && why.is_none(),
    };
    let named = floor::named(all);
    // The base capture beside a narrowed checkpoint stays as long as that one, and binds nothing.
    let binds = |at: &usize| !goes(*at) && !named.contains_key(at);
    let bound: HashSet<usize> = (0..all.len()).filter(binds).map(|at| families[at]).collect();
    let may = |at: &usize| goes(*at) && !(all[*at].record.kind.is_typed() && bound.contains(&families[*at]));
    let is_free = |at: &usize| named.get(at).is_none_or(|namers| namers.iter().all(may));
    let may: HashSet<ObjectId> = (0..all.len()).filter(|at| may(at) && is_free(at)).map(|at| all[at].id).collect();
    going.iter().filter(|(id, _)| may.contains(id)).copied().collect()
}

#[cfg(test)]
mod tests;
