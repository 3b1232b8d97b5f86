//! Undo and redo: steps over the operations of the journal.

use std::collections::BTreeSet;

use super::journal::{Journal, TurnChange};
use super::operations::{History, UndoStep};
use super::request::Restore;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::window_log::WindowLog;
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::operation::OperationKind;
use crate::model::text::printable;

/// The most checkpoints from before restores that are named where the journal is damaged.
const MOST_NAMED: usize = 5;

/// The ways to step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Back over the newest operation that is not undone.
    Undo,
    /// Forward over the operation that was undone last.
    Redo,
}

/// Returns true if undo has a step to take in a workspace, as far as its records tell. A turn that is open counts.
pub fn may_undo(workspace: &Workspace) -> bool {
    // Records that cannot be read name no step.
    let has_step = || Journal::in_dir(&workspace.dir).read().is_ok_and(|read| History::of(read).next_undo().is_some());
    has_step() || has_open_turn(workspace)
}

/// Returns true if the next undo in a workspace is that of a turn that deleted files, as far as its records tell. A turn that is open
/// counts.
pub fn may_restore_deleted(workspace: &Workspace) -> bool {
    let is_deleted = |change: &TurnChange| change.before.is_some() && change.after.is_none();
    let deletes = |step: &UndoStep| step.turn.as_ref().is_some_and(|turn| turn.changes.iter().any(is_deleted));
    let next =
        || Journal::in_dir(&workspace.dir).read().is_ok_and(|read| History::of(read).next_undo().is_some_and(deletes));
    next() || has_open_turn(workspace)
}

/// Returns true if a turn is open in a workspace, as far as its records tell.
fn has_open_turn(workspace: &Workspace) -> bool {
    WindowLog::in_dir(&workspace.dir).windows().is_ok_and(|windows| !windows.turns.is_empty())
}

/// Returns the checkpoint before the newest action that destroyed something. One that was late may have been taken after the
/// destruction, so the one before it counts then.
fn before_destruction(all: &[Checkpoint]) -> Option<&Checkpoint> {
    let newest = all.iter().rposition(|one| one.record.kind.is_of_turn() && !one.record.is_quiet())?;
    all[..=newest].iter().rev().find(|one| !one.record.is_late() && !one.record.kind.is_typed())
}

impl Catalog {
    /// Returns the operation that would be stepped over; `None` when there is nothing to do.
    ///
    /// # Errors
    /// For a redo after something new was recorded: `stale-selection`, naming the checkpoint to restore instead.
    /// `store-damaged` if a damaged line of the journal may be about a later operation.
    pub fn next_step(&self, direction: Direction) -> Result<Option<UndoStep>> {
        self.next_step_for(direction, None)
    }

    /// Returns the operation that a session's undo or redo steps over: the newest of its `runs`; without runs, the newest of all.
    ///
    /// # Errors
    /// As [`Catalog::next_step`]; `stale-selection` for a restore of the session with a newer restore of someone else above it.
    pub(super) fn next_step_for(
        &self,
        direction: Direction,
        runs: Option<&BTreeSet<String>>,
    ) -> Result<Option<UndoStep>> {
        let history = self.history()?;
        match direction {
            Direction::Undo if !history.knows_undo() => Err(self.unsure_step(&history, "undo")),
            Direction::Redo if !history.knows_redo() => Err(self.unsure_step(&history, "redo")),
            Direction::Undo => {
                let next = self.next_undo_of_group(&history, runs)?;
                if let Some(step) = next.filter(|step| runs.is_some() && step.turn.is_none()) {
                    self.refuse_covered_step(&history, step)?;
                }
                Ok(next.filter(|step| self.pruned_end(step).is_none()).cloned())
            }
            Direction::Redo => {
                let own = history.redo.iter().rev().find(|step| step.is_of(runs)).cloned();
                let elsewhere = self.newest_redo_elsewhere(&history)?.filter(|step| step.is_of(runs));
                let newest = own.into_iter().chain(elsewhere).max_by(|own, elsewhere| own.time.cmp(&elsewhere.time));
                let Some(step) = newest.filter(|step| self.pruned_end(step).is_none()) else { return Ok(None) };
                // A step over a turn looks at each path itself.
                if step.turn.is_none() {
                    self.refuse_redo_over_new(&step)?;
                }
                Ok(Some(step))
            }
        }
    }

    /// Refuses a restore of a session that has a newer restore of someone else above it: its undo would overwrite what that one did.
    fn refuse_covered_step(&self, history: &History, step: &UndoStep) -> Result<()> {
        match self.next_undo_of_group(history, None)? {
            Some(newest) if newest.op != step.op && newest.turn.is_none() => {
                let text = format!("{} of this session is older than {} of run {}", step.op, newest.op, newest.run());
                Err(Error::new(Code::StaleSelection, text)
                    .hint("run `piton undo` in a terminal to undo the newest one"))
            }
            _ => Ok(()),
        }
    }

    /// Says when the checkpoint before an operation was pruned; `None` if it was not. Retention keeps that of the newest operation;
    /// after many steps back, older ones come first.
    fn pruned_end(&self, step: &UndoStep) -> Option<String> {
        self.told_pruned(&step.to)
    }

    /// Returns the refusal of a step that damaged lines of the journal hide; it names the checkpoints from before restores.
    fn unsure_step(&self, history: &History, word: &str) -> Error {
        let damage = history.damage().unwrap_or_default();
        let text = format!("{damage}, so the restore to {word} cannot be determined; nothing was done");
        let known = self.all().unwrap_or_default(); // without a list the damage is named alone
        let newest = known.checkpoints.iter().rev();
        let before = newest.filter(|checkpoint| checkpoint.record.kind == CheckpointKind::PreRestore).take(MOST_NAMED);
        let before: Vec<&Checkpoint> = before.collect();
        let named = |one: &&Checkpoint| format!("{} ({}, {})", one.record.number, one.id.short(), one.record.reason);
        let hint = match before.is_empty() {
            true => "no checkpoint from before a restore is kept; `piton list` lists the others".to_owned(),
            false => {
                let names: Vec<String> = before.iter().map(named).collect();
                format!("restore a checkpoint from before a restore with `piton restore N`: {}", names.join(", "))
            }
        };
        let ids = before.iter().map(|checkpoint| checkpoint.id.to_string()).collect();
        Error::new(Code::StoreDamaged, text).path(self.workspace.dir.join("journal")).hint(hint).candidates(ids)
    }

    /// Says why there is no step to take for a session with some `runs`; without runs, for a person.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn why_no_step_for(&self, direction: Direction, runs: Option<&BTreeSet<String>>) -> Result<String> {
        // A redo of someone else's undo is not named: it is the terminal's own next step.
        let newest = if runs.is_some() { self.next_step(direction)? } else { None };
        let Some(step) = newest else { return self.why_no_step(direction) };
        let word = if direction == Direction::Undo { "undo" } else { "redo" };
        let (op, run) = (&step.op, printable(step.run()));
        let (newest, command) = match &step.turn {
            Some(turn) => (format!("turn `{}`", printable(&turn.turn)), format!("piton {word} --turn {op}")),
            None => ("the operation".to_owned(), format!("piton {word}")),
        };
        Ok(format!(
            "nothing to {word} in this session. The newest change is {newest} ({op}) of run {run}; to {word} it, run `{command}` in a terminal"
        ))
    }

    /// Says why there is no step to take.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn why_no_step(&self, direction: Direction) -> Result<String> {
        let history = self.history()?;
        let (next, word) = match direction {
            Direction::Undo => (history.next_undo(), "undo"),
            Direction::Redo => (history.redo.last(), "redo"),
        };
        if let Some(pruned) = next.and_then(|step| self.pruned_end(step)) {
            return Ok(format!(
                "nothing more to {word}: the next one needs a checkpoint that was deleted: {pruned}. \
                 For another turn of `piton list --turns`, run `piton {word} --turn TURN`"
            ));
        }
        let (last, was_undone) = (history.undo.last().map(|step| step.kind), !history.redo.is_empty());
        let was_passed = history.turns.iter().any(|turn| turn.is_passed);
        let text = match (direction, last) {
            (Direction::Redo, None) => "nothing to redo: nothing was undone in this workspace",
            (Direction::Redo, Some(OperationKind::Redo)) => "nothing to redo: the last undo has already been redone",
            (Direction::Redo, Some(_)) => "nothing to redo: nothing was undone since the last restore",
            (Direction::Undo, _) if history.has_older => {
                "nothing more to undo: only the newest 20 turns can be undone. For an older state, restore a checkpoint shown by \
                 `piton list`"
            }
            (Direction::Undo, _)
                if was_passed || (was_undone && history.undo.iter().any(|step| step.own_left() > 0)) =>
            {
                "nothing more to undo, but some changes could not be undone. `piton list --turns` marks their turns; to try again, run `piton undo --turn TURN`"
            }
            (Direction::Undo, _) if was_undone => {
                "nothing to undo: every turn and restore has already been undone; to redo the last one, run `piton redo`"
            }
            (Direction::Undo, _) => {
                "nothing to undo: no agent's turn has changed files in this workspace, and nothing was restored"
            }
        };
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        let before = before_destruction(all).filter(|_| direction == Direction::Undo && !was_undone && !was_passed);
        Ok(match before {
            Some(before) => format!(
                "{text}. To revert what the agent did, restore the checkpoint before its last destructive turn: \
                 `piton restore {}`",
                before.shown()
            ),
            None => text.to_owned(),
        })
    }

    fn refuse_redo_over_new(&self, step: &UndoStep) -> Result<()> {
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        let newer = all.iter().find(|checkpoint| {
            checkpoint.record.ordinal > step.ordinal
                && !matches!(checkpoint.record.kind, CheckpointKind::Turn | CheckpointKind::PreRestore)
        });
        let Some(newer) = newer else { return Ok(()) };
        let target = all.iter().find(|checkpoint| checkpoint.id == step.to).map(|checkpoint| checkpoint.record.number);
        let hint = match target {
            Some(ordinal) => format!("restore checkpoint {ordinal} instead: `piton restore {ordinal}`"),
            None => "choose a checkpoint to restore from `piton list`".to_owned(),
        };
        let text =
            format!("checkpoint {} was recorded since the undo, so there is nothing to redo", newer.record.number);
        Err(Error::new(Code::StaleSelection, text).hint(hint))
    }

    /// Refuses a step over an operation that is not the next one any more, because another process was quicker.
    ///
    /// # Errors
    /// `stale-selection`; those of [`Catalog::next_step`].
    pub(crate) fn refuse_other_step(&self, restore: &Restore) -> Result<()> {
        let (direction, word) = match restore.kind {
            OperationKind::Undo => (Direction::Undo, "undo"),
            OperationKind::Redo => (Direction::Redo, "redo"),
            OperationKind::Restore | OperationKind::Rollback | OperationKind::Turn => return Ok(()),
        };
        // Nothing can change where the turn was undone in other workspaces only.
        if restore.expected.is_some() && restore.only.as_ref().is_some_and(BTreeSet::is_empty) {
            return Ok(());
        }
        let chosen = restore.expected.as_ref().and(restore.over.as_deref());
        let next = match (chosen, direction) {
            (Some(op), Direction::Undo) => self.history()?.undo_of(op).cloned(),
            (Some(op), Direction::Redo) => self.history()?.redo_of(op).cloned(),
            (None, _) => self.next_step(direction)?,
        };
        if next.is_some_and(|next| Some(&next.op) == restore.over.as_ref() && next.to == restore.target) {
            return Ok(());
        }
        let op = restore.over.as_deref().unwrap_or_default();
        Err(Error::new(
            Code::StaleSelection,
            format!("operation {op} is no longer the next one to {word}; nothing was done"),
        )
        .hint(format!("check again with `piton {word} --preview`")))
    }
}
