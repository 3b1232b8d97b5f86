//! The reasons for which checkpoints go and stay, and the runs that go together.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::records::pins::Pins;
use crate::model::checkpoint::Record;
use crate::model::id::ObjectId;

/// The reason why a checkpoint is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// More turns with `auto` checkpoints in its run than `retention.auto_per_run`.
    AutoPerRun,
    /// More further `auto` checkpoints in its run than five for each turn, or more quiet steps than fifty.
    Further,
    /// More in the workspace than `retention.per_workspace`.
    PerWorkspace,
    /// More labelled ones in the workspace than `retention.labelled`.
    Labelled,
    /// A base capture that a newer one replaces.
    Superseded,
    /// Untyped, and older than `retention.days`.
    Days,
    /// An autosave beside a newer one of the same hour or day.
    Thinned,
    /// Of a run whose newest checkpoint is older than `retention.runs_days`.
    RunsDays,
    /// Less worthy than the others, which take all the room that the workspace has.
    TotalMb,
    /// Of a workspace whose directory is gone.
    Orphans,
    /// A person or a client deleted it.
    Deleted,
}

impl DropReason {
    /// Returns the rule, as a setting or in words.
    pub fn rule(self) -> &'static str {
        match self {
            DropReason::AutoPerRun | DropReason::Further => "retention.auto_per_run",
            DropReason::PerWorkspace => "retention.per_workspace",
            DropReason::Labelled => "retention.labelled",
            DropReason::Superseded => "a newer base capture",
            DropReason::Days => "retention.days",
            DropReason::Thinned => "a newer autosave",
            DropReason::RunsDays => "retention.runs_days",
            DropReason::TotalMb => "retention.total_mb",
            DropReason::Orphans => "retention.orphans",
            DropReason::Deleted => "piton delete",
        }
    }

    /// Returns true if a clock has decided.
    pub fn is_by_age(self) -> bool {
        matches!(self, DropReason::Days | DropReason::Thinned | DropReason::RunsDays)
    }
}

/// The reason why a checkpoint stays, whatever the limits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StayReason {
    /// An undo, a redo, an interrupted restore or a moved run goes on from it.
    Needed,
    /// It is the newest of a run that is open.
    OfOpenRun,
    /// It is pinned.
    Pinned,
    /// A turn that can be undone begins or ends with it.
    OfTurn,
    /// It is the newest of its workspace.
    Newest,
}

/// The facts by which checkpoints stay.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    /// The checkpoints that undo, redo, interrupted restores and moved runs go on from.
    pub needed: HashSet<ObjectId>,
    /// The checkpoints at the ends of the turns that can be undone, and those with which open turns began.
    pub of_turns: HashSet<ObjectId>,
    /// The ids of the runs that are open.
    pub open_runs: BTreeSet<String>,
    /// The pins of the workspace.
    pub pins: Pins,
}

impl Kept {
    /// Returns for each checkpoint the reason why it stays; `None` where the limits decide. `all` is ordered from oldest to newest.
    pub fn reasons(&self, all: &[Checkpoint]) -> Vec<Option<StayReason>> {
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, checkpoint) in all.iter().enumerate().filter(|(_, one)| self.open_runs.contains(&one.record.run)) {
            open.insert(&checkpoint.record.run, at);
        }
        let reason = |(at, checkpoint): (usize, &Checkpoint)| {
            let record = &checkpoint.record;
            if self.needed.contains(&checkpoint.id) {
                Some(StayReason::Needed)
            } else if self.pins.holds(record) {
                Some(StayReason::Pinned)
            } else if open.get(record.run.as_str()) == Some(&at) {
                Some(StayReason::OfOpenRun)
            } else if self.of_turns.contains(&checkpoint.id) {
                Some(StayReason::OfTurn)
            } else {
                (at + 1 == all.len()).then_some(StayReason::Newest)
            }
        };
        all.iter().enumerate().map(reason).collect()
    }
}

/// A workspace's checkpoints, and what is known of them so far.
pub(super) struct Judged<'a> {
    /// Ordered from oldest to newest.
    pub all: &'a [Checkpoint],
    pub kept: &'a Kept,
    /// True for those that stay, by their places.
    pub stays: Vec<bool>,
    /// The ones that go, by their places.
    pub going: BTreeMap<usize, DropReason>,
}

impl<'a> Judged<'a> {
    /// Looks at a workspace of which nothing goes yet.
    pub(super) fn at(all: &'a [Checkpoint], kept: &'a Kept) -> Judged<'a> {
        let stays = kept.reasons(all).iter().map(Option::is_some).collect();
        Judged { all, kept, stays, going: BTreeMap::new() }
    }

    /// Returns true if a checkpoint is pinned now.
    pub(super) fn is_pinned(&self, at: usize) -> bool {
        self.kept.pins.holds(&self.all[at].record)
    }

    /// Returns true if a limit may drop a checkpoint for itself.
    pub(super) fn may_go(&self, at: usize) -> bool {
        let record = &self.all[at].record;
        !record.kind.is_typed() && !record.is_labelled() && !self.stays[at]
    }

    /// Keeps the checkpoints that narrowed ones name which stay.
    pub(super) fn keep_named(&mut self) {
        for (whole, namers) in named(self.all) {
            if namers.iter().any(|namer| !self.going.contains_key(namer)) {
                self.going.remove(&whole);
            }
        }
    }

    /// Notes that a checkpoint goes, if it may.
    pub(super) fn drop_leaf(&mut self, at: usize, reason: DropReason) {
        if self.may_go(at) {
            self.going.entry(at).or_insert(reason);
        }
    }
}

/// Returns the checkpoints that narrowed ones name for the whole workspace: their places, each with those of the narrowed ones.
pub(super) fn named(all: &[Checkpoint]) -> BTreeMap<usize, Vec<usize>> {
    let mut named: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, one) in all.iter().enumerate().filter(|(_, one)| one.record.kind().is_typed()) {
        let whole =
            one.record.whole.and_then(|whole| all.binary_search_by_key(&whole, |one| one.record.ordinal()).ok());
        whole.into_iter().for_each(|whole| named.entry(whole).or_default().push(at));
    }
    named
}

/// Returns the family of each checkpoint, as a number. Runs are of one family if a checkpoint of one follows a checkpoint
/// of the other: neither can go without the other.
pub(super) fn families(all: &[Checkpoint]) -> Vec<usize> {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut runs: BTreeMap<ObjectId, usize> = BTreeMap::new();
    for checkpoint in all {
        let next = numbers.len();
        runs.insert(checkpoint.id, *numbers.entry(&checkpoint.record.run).or_insert(next));
    }
    // Each run points to an older one of its family, or to itself.
    let mut above: Vec<usize> = (0..numbers.len()).collect();
    let root = |above: &[usize], mut run: usize| {
        while above[run] != run {
            run = above[run];
        }
        run
    };
    for checkpoint in all {
        for parent in checkpoint.parents.iter().filter_map(|parent| runs.get(parent)) {
            let (a, b) = (root(&above, runs[&checkpoint.id]), root(&above, *parent));
            above[a.max(b)] = a.min(b);
        }
    }
    all.iter().map(|checkpoint| root(&above, runs[&checkpoint.id])).collect()
}

/// The families of runs with a checkpoint that stays, a labelled one, or a run that is open: their typed ones stay.
pub(super) fn bound_families(judged: &Judged<'_>, families: &[usize]) -> BTreeSet<usize> {
    let binds = |at: &usize| {
        let record: &Record = &judged.all[*at].record;
        judged.stays[*at]
            || judged.kept.open_runs.contains(&record.run)
            || (record.is_labelled() && !judged.going.contains_key(at))
    };
    (0..judged.all.len()).filter(binds).map(|at| families[at]).collect()
}
