//! Lists of checkpoints, with the changes after each.

use std::collections::{BTreeMap, BTreeSet};

use super::checkpoint::Checkpoint;
use super::diff::{Change, LiveSide, Present, Stat, is_file_change};
use super::gaps::Gap;
use super::open::Catalog;
use crate::checkpoint::history::recorded::{ListedAction, destroyed};
use crate::checkpoint::records::action_log::ActionRecord;
use crate::checkpoint::records::pins::Pins;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::Class;
use crate::model::path::RelPath;

/// A choice of checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Only checkpoints of the run with this id; `None` means all runs.
    pub run: Option<String>,
    /// Only checkpoints of this kind; `None` means all kinds.
    pub kind: Option<CheckpointKind>,
    /// Only checkpoints after which this path, or something below it, changed.
    pub path: Option<RelPath>,
    /// Only those before this place in the sequence.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: usize,
    /// True if base captures are listed too.
    pub with_base: bool,
    /// True if steps are listed too. Otherwise they are folded into the checkpoint of their turn.
    pub with_steps: bool,
}

/// One checkpoint and the changes after it.
#[derive(Clone, Debug)]
pub struct ListedCheckpoint {
    /// The checkpoint of this row.
    pub checkpoint: Checkpoint,
    /// The changes of the action after the checkpoint, up to the next one; up to now for the newest. Of a checkpoint that patterns
    /// narrowed, only changes that they cover are counted. `None` for checkpoints of named paths.
    pub stat: Option<Stat>,
    /// Classes of effects after it, up to the next one, that no restore undoes.
    pub external: Vec<Class>,
    /// The recorded actions after it, up to the next one, that destroyed something or had effects that no restore undoes.
    pub actions: Vec<ListedAction>,
    /// Names its first missing or damaged path, if one is known.
    pub damaged: Option<String>,
    /// Lists the paths that its action named and it does not hold.
    pub gaps: Vec<Gap>,
    /// True if it is pinned now.
    pub is_pinned: bool,
    /// The number of steps that are folded into it.
    pub steps: usize,
}

/// A list, newest first.
#[derive(Clone, Debug)]
pub struct CheckpointList {
    /// The checkpoints that matched, at most as many as the limit.
    pub rows: Vec<ListedCheckpoint>,
    /// The number of those that matched before the limit.
    pub total: usize,
    /// Refs that could not be read.
    pub faults: Vec<String>,
}

impl Catalog {
    /// Lists checkpoints. `present` is the workspace as it is now.
    ///
    /// # Errors
    /// `store-damaged`; a missing workspace is listed without the changes after the newest checkpoint.
    pub(crate) fn listing(&self, query: &ListFilter, present: Result<Present>) -> Result<CheckpointList> {
        let known = self.all()?;
        let (all, mut faults) = (known.checkpoints.as_slice(), self.broken(&known)?);
        let present = match present {
            Ok(present) => Some(present),
            Err(error) if error.code() == Code::WorkspaceGone => None,
            Err(error) => {
                faults.push(format!("cannot determine what changed since the newest checkpoint: {}", error.text()));
                None
            }
        };
        let actions = self.recorded_actions()?;
        let pins = Pins::load(&self.workspace.dir).unwrap_or_else(|error| {
            faults.push(error.text());
            Pins::default()
        });
        let (mut rows, mut unread) = (Vec::new(), Vec::new());
        let mut total = 0;
        // The checkpoint that follows in time tells what happened after one; `shown` is the same among the shown rows.
        let (mut next, mut shown): (Option<&Checkpoint>, Option<&Checkpoint>) = (None, None);
        // A narrowed checkpoint is also followed by the next typed one of its run, whose patterns go on from its own.
        let mut typed: BTreeMap<&str, &Checkpoint> = BTreeMap::new();
        let mut folds = Folds::new(all, query);
        for checkpoint in all.iter().rev() {
            let record = &checkpoint.record;
            let is_folded = folds.takes(checkpoint);
            let (base, everywhere) = (record.kind() == CheckpointKind::Turn, record.looked_everywhere());
            let mut next = following(&mut next, checkpoint, record.is_whole() && !base && !is_folded);
            if record.kind().is_typed() && everywhere {
                let newer = typed.insert(record.run(), checkpoint).filter(|_| !record.is_whole());
                next = next.into_iter().chain(newer).min_by_key(|newer| newer.record.ordinal());
            }
            let shown = following(&mut shown, checkpoint, (!base || query.with_base) && !is_folded);
            if is_folded || !wanted(checkpoint, query) || (query.path.is_some() && !everywhere) {
                continue;
            }
            // If that is not known, the row is listed: it says that it is damaged.
            if let Some(path) = &query.path
                && self.touches(checkpoint, next, present.as_ref(), path).is_ok_and(|touches| !touches)
            {
                continue;
            }
            total += 1;
            if rows.len() >= query.limit {
                continue;
            }
            let after = || self.summary_after(checkpoint, next, present.as_ref()).map(Some);
            let after = match everywhere && (next.is_some() || present.is_some()) {
                true => Catalog::if_it_fits(after()).unwrap_or_else(|error| {
                    // The damage may be in the following checkpoint, which may be no row.
                    unread.push((error, next.cloned()));
                    None
                }),
                false => None,
            };
            // Base captures are not shown: what happened after one belongs to the checkpoint before it.
            let until = shown.map_or(u64::MAX, |next| next.record.ordinal);
            let actions = actions_between(&actions, checkpoint.record.ordinal, until);
            let external = classes_of(&actions);
            let (stat, lost) = after.unzip();
            let steps = folds.steps_of(checkpoint);
            let gaps = self.gaps_of_all(std::iter::once(checkpoint).chain(steps.iter().copied()));
            let is_pinned = pins.holds(&checkpoint.record);
            rows.push(ListedCheckpoint {
                checkpoint: checkpoint.clone(),
                stat,
                external,
                actions: self.destroying(actions, lost.as_ref()),
                damaged: None,
                gaps,
                is_pinned,
                steps: steps.len(),
            });
        }
        self.mark_damaged(&mut rows, unread, &mut faults)?;
        Ok(CheckpointList { rows, total, faults })
    }

    /// Lists the paths that actions named and their checkpoints do not hold, each once. If they cannot be read, a flag alone tells
    /// of them.
    fn gaps_of_all<'c>(&self, checkpoints: impl Iterator<Item = &'c Checkpoint>) -> Vec<Gap> {
        let is_told = |one: &&Checkpoint| one.record.flags.iter().any(|flag| flag == "not-held");
        let mut gaps: Vec<Gap> = Vec::new();
        for gap in checkpoints.filter(is_told).flat_map(|one| self.gaps_at(one).unwrap_or_default()) {
            if gaps.iter().all(|known| known.path != gap.path) {
                gaps.push(gap);
            }
        }
        gaps
    }

    /// Marks the rows whose checkpoints are damaged. `unread` has the errors of comparisons, each with the newer side.
    fn mark_damaged(
        &self,
        rows: &mut [ListedCheckpoint],
        unread: Vec<(Error, Option<Checkpoint>)>,
        faults: &mut Vec<String>,
    ) -> Result<()> {
        // A comparison that met damage has noted it.
        if unread.is_empty() && !self.store.is_suspect() {
            return Ok(());
        }
        let mut holes = self.store.holes_soon();
        let (mut named, mut is_explained) = (BTreeMap::new(), false);
        for row in rows {
            row.damaged = holes.below(row.checkpoint.tree)?;
            named.extend(row.damaged.clone().map(|what| (row.checkpoint.record.number, what)));
        }
        for newer in unread.iter().filter_map(|(_, newer)| newer.as_ref()) {
            named.extend(holes.below(newer.tree)?.map(|what| (newer.record.number, what)));
        }
        for (ordinal, what) in named.into_iter().rev() {
            is_explained = true;
            faults.push(format!("checkpoint {ordinal}: {what}"));
        }
        // Without a place in a checkpoint the error itself is told.
        faults.extend(unread.first().filter(|_| !is_explained).map(|(error, _)| error.fact()));
        Ok(())
    }

    /// Returns true if `path`, or something below it, changed between a checkpoint and the next one, or now.
    fn touches(
        &self,
        from: &Checkpoint,
        next: Option<&Checkpoint>,
        present: Option<&Present>,
        path: &RelPath,
    ) -> Result<bool> {
        // Equal entries mean equal trees: this decides most checkpoints without comparing the rest.
        if let Some(next) = next
            && self.entry_at(&self.whole(from)?, path)? == self.entry_at(&self.whole(next)?, path)?
        {
            return Ok(false);
        }
        Ok(self.after(from, next, present)?.iter().any(|change| change.path.starts_with(path)))
    }

    /// Counts the changes from a checkpoint to the next one, or to now, and returns what they destroyed (percent-quoted).
    fn summary_after(
        &self,
        from: &Checkpoint,
        next: Option<&Checkpoint>,
        present: Option<&Present>,
    ) -> Result<(Stat, BTreeSet<String>)> {
        let live = if next.is_some() { LiveSide::Neither } else { LiveSide::New };
        let changes = self.after(from, next, present)?;
        Ok((self.stat(&changes, live)?, destroyed(&changes)))
    }

    /// Lists the changes from a checkpoint to the next one, or to now.
    fn after(&self, from: &Checkpoint, next: Option<&Checkpoint>, present: Option<&Present>) -> Result<Vec<Change>> {
        let mut changes = match (next, present) {
            (Some(next), _) => self.changes_between(from, next)?,
            (None, Some(present)) => self.changes_to_present(from, present)?,
            (None, None) => Vec::new(),
        };
        changes.retain(is_file_change);
        Ok(changes)
    }
}

/// Returns the actions after a place in the sequence and before another one.
fn actions_between(actions: &[ActionRecord], from: u64, until: u64) -> Vec<ActionRecord> {
    actions.iter().filter(|action| (from..until).contains(&action.after)).cloned().collect()
}

/// Returns the classes of the effects of actions that no restore undoes.
fn classes_of(actions: &[ActionRecord]) -> Vec<Class> {
    let mut classes: Vec<Class> =
        actions.iter().flat_map(|action| &action.external).filter(|one| !one.is_saved).map(|one| one.class).collect();
    classes.sort();
    classes.dedup();
    classes
}

/// The steps that a list folds into the checkpoints of their turns.
struct Folds<'c> {
    /// All checkpoints, the oldest first; `None` where nothing is folded.
    all: Option<&'c [Checkpoint]>,
    /// Steps below checkpoints that the list has not come to yet.
    steps: BTreeMap<u64, Vec<&'c Checkpoint>>,
}

impl<'c> Folds<'c> {
    fn new(all: &'c [Checkpoint], query: &ListFilter) -> Folds<'c> {
        let is_open = query.with_steps || query.kind == Some(CheckpointKind::Step);
        Folds { all: Some(all).filter(|_| !is_open), steps: BTreeMap::new() }
    }

    /// Folds a step whose turn's checkpoint is still there.
    fn takes(&mut self, checkpoint: &'c Checkpoint) -> bool {
        let Some(all) = self.all.filter(|_| checkpoint.record.kind() == CheckpointKind::Step) else { return false };
        let main = checkpoint.record.number.main;
        let is_there = || {
            let older = all.iter().rev().filter(|one| one.record.kind().is_listed());
            older.map(|one| one.record.number.main).find(|number| *number <= main) == Some(main)
        };
        let is_folded = self.steps.contains_key(&main) || is_there();
        if is_folded {
            self.steps.entry(main).or_default().push(checkpoint);
        }
        is_folded
    }

    /// Returns the steps of a checkpoint, the newest first.
    fn steps_of(&mut self, checkpoint: &Checkpoint) -> Vec<&'c Checkpoint> {
        // Most checkpoints have none, and their numbers need not be read.
        if self.steps.is_empty() {
            Vec::new()
        } else {
            self.steps.remove(&checkpoint.record.number.main).unwrap_or_default()
        }
    }
}

/// Returns the checkpoint seen before this one, from the newest on, and replaces it by this one if it counts.
fn following<'c>(
    seen: &mut Option<&'c Checkpoint>,
    checkpoint: &'c Checkpoint,
    counts: bool,
) -> Option<&'c Checkpoint> {
    if counts { seen.replace(checkpoint) } else { *seen }
}

fn wanted(checkpoint: &Checkpoint, query: &ListFilter) -> bool {
    let record = &checkpoint.record;
    query.run.as_ref().is_none_or(|run| record.run() == run)
        && query.kind.is_none_or(|kind| record.kind() == kind)
        && query.before.is_none_or(|before| record.ordinal() < before)
        && (record.kind() != CheckpointKind::Turn || query.with_base || query.kind == Some(CheckpointKind::Turn))
}
