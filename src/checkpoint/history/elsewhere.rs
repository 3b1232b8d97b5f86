//! The parts of turns in other workspaces, as the journals there have them.
//!
//! A turn is one step of undo in every workspace in which it acted, also where its part has changed nothing: the other workspaces' journals
//! are read for that. Only turns of several workspaces cost such a read.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::journal::{Journal, TurnChange, TurnEnd};
use super::operations::{History, UndoStep};
use super::step_choice::StepChoice;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::workspace::Workspace;
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::model::operation::OperationKind;
use crate::sys::interrupt::Interrupt;

/// The histories of the other workspaces of turns, each read once.
struct MemberHistories<'c> {
    catalog: &'c Catalog,
    /// All known workspaces, once they were needed.
    known: Option<Vec<Workspace>>,
    read: HashMap<PathBuf, Option<Arc<History>>>,
}

impl<'c> MemberHistories<'c> {
    fn of(catalog: &'c Catalog) -> MemberHistories<'c> {
        MemberHistories { catalog, known: None, read: HashMap::new() }
    }

    /// Returns the histories of the other workspaces of a turn. A workspace that is gone has none.
    fn histories(&mut self, turn: &TurnEnd) -> Result<Vec<Arc<History>>> {
        let own = &self.catalog.workspace.path;
        let mut found = Vec::new();
        for root in turn.members.iter().filter(|root| *root != own) {
            let history = match self.read.get(root) {
                Some(history) => history.clone(),
                None => {
                    let history = self.history(root)?;
                    self.read.insert(root.clone(), history.clone());
                    history
                }
            };
            found.extend(history);
        }
        Ok(found)
    }

    fn history(&mut self, root: &Path) -> Result<Option<Arc<History>>> {
        let known = match &self.known {
            Some(known) => known,
            None => self.known.insert(Workspace::known(&self.catalog.home)?),
        };
        let workspace = known.iter().find(|known| known.path == root && known.path.is_dir());
        workspace.map(|known| Ok(Arc::new(History::of(Journal::in_dir(&known.dir).read()?)))).transpose()
    }

    /// Returns true if another workspace of a step's turn has anything to undo; with a choice, changes that it takes. A turn that was
    /// undone here as a whole was undone there too, as far as possible. Without a choice, a turn at which an undo has stopped is skipped.
    fn has_undo(&mut self, step: &UndoStep, choice: Option<&StepChoice>) -> Result<bool> {
        let counts = |turn: &&Arc<TurnEnd>| !step.passed && (choice.is_some() || !turn.is_passed);
        let Some(turn) = step.turn.as_ref().filter(counts) else { return Ok(false) };
        let is_left = |there: &UndoStep| {
            let Some(part) = there.turn.as_ref().filter(|other| other.key == turn.key) else { return false };
            let is_taken = |choice: &StepChoice| {
                let is_left = |change: &TurnChange| !there.undone.contains(&change.path) && choice.takes(change);
                part.changes.iter().any(is_left)
            };
            choice.map_or_else(|| !there.is_spent(), is_taken)
        };
        Ok(self.histories(turn)?.iter().any(|history| history.undo.iter().any(is_left)))
    }

    /// Returns true if another workspace of a turn has changes of it.
    fn has_changed(&mut self, turn: &TurnEnd) -> Result<bool> {
        let is_part = |there: &Arc<TurnEnd>| there.key == turn.key && there.has_changed();
        Ok(self.histories(turn)?.iter().any(|history| history.turns.iter().any(is_part)))
    }

    /// Returns the step of redo over a turn that was undone in other workspaces only.
    fn redo(&mut self, history: &History, turn: &Arc<TurnEnd>) -> Result<Option<UndoStep>> {
        let is_of_turn = |there: &&UndoStep| there.turn.as_ref().is_some_and(|other| other.key == turn.key);
        let histories = self.histories(turn)?;
        let undone = histories.iter().flat_map(|there| there.redo.iter().filter(is_of_turn));
        let Some(newest) = undone.max_by(|one, other| one.time.cmp(&other.time)) else { return Ok(None) };
        Ok(history.undo_of(&turn.op).cloned().map(|mut step| {
            (step.kind, step.left_at) = (OperationKind::Undo, Some(turn.end));
            step.changed.clear();
            step.time.clone_from(&newest.time);
            step
        }))
    }
}

impl Catalog {
    /// Returns the next step of undo: the newest operation or turn with anything left to undo, here or in another workspace of the turn.
    /// With `runs`, the newest of these.
    pub(super) fn next_undo_of_group<'h>(
        &self,
        history: &'h History,
        runs: Option<&BTreeSet<String>>,
    ) -> Result<Option<&'h UndoStep>> {
        let mut members = MemberHistories::of(self);
        for step in history.undo.iter().rev().filter(|step| step.is_of(runs)) {
            if !step.is_spent() || members.has_undo(step, None)? {
                return Ok(Some(step));
            }
        }
        Ok(None)
    }

    /// Returns the step of redo over a turn that was undone in other workspaces only.
    pub(super) fn redo_elsewhere(&self, history: &History, turn: &Arc<TurnEnd>) -> Result<Option<UndoStep>> {
        MemberHistories::of(self).redo(history, turn)
    }

    /// Returns the step of redo over the turn that was undone last, of those that were undone in other workspaces only.
    pub(super) fn newest_redo_elsewhere(&self, history: &History) -> Result<Option<UndoStep>> {
        let mut members = MemberHistories::of(self);
        let mut newest: Option<UndoStep> = None;
        for turn in history.turns.iter().filter(|turn| history.redo_of(&turn.op).is_none()) {
            let redo = members.redo(history, turn)?;
            newest = newest.into_iter().chain(redo).max_by(|one, other| one.time.cmp(&other.time));
        }
        Ok(newest)
    }

    /// Lists the turns that have changed files here or in another workspace, the newest first.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub fn changing_turns(&self, run: Option<&str>) -> Result<Vec<Arc<TurnEnd>>> {
        let history = self.history()?;
        let mut members = MemberHistories::of(self);
        let mut turns = Vec::new();
        for turn in history.turns.iter().rev().filter(|turn| run.is_none_or(|run| turn.run == run)) {
            if turn.has_changed() || members.has_changed(turn)? {
                turns.push(Arc::clone(turn));
            }
        }
        Ok(turns)
    }

    /// Returns true if a choice takes anything of a step's turn in another workspace. Paths are those of one workspace.
    pub(super) fn chooses_elsewhere(&self, step: &UndoStep, choice: &StepChoice) -> Result<bool> {
        Ok(choice.is_of_all_paths() && MemberHistories::of(self).has_undo(step, Some(choice))?)
    }
}

impl Timeline {
    /// Writes down what the turns that are open here have changed so far, in all their workspaces.
    ///
    /// # Errors
    /// As [`Timeline::settle_turns`].
    pub fn settle_group(&mut self, control: Interrupt<'_>) -> Result<()> {
        self.settle_turns(control)?;
        let own = self.workspace().path.clone();
        let open = self.catalog().windows.borrow_mut().windows()?.turns.clone();
        let mut roots: BTreeSet<PathBuf> = open.into_iter().flat_map(|turn| turn.places).collect();
        // A turn that was ended here after its client or its connection had gone may be open in its other workspaces.
        let history = self.catalog().history()?;
        let interrupted = history.turns.iter().filter(|turn| turn.is_interrupted);
        roots.extend(interrupted.flat_map(|turn| turn.members.iter().cloned()));
        for root in roots.iter().filter(|root| **root != own) {
            // A workspace that is gone is reported by the step itself.
            if let Ok(mut other) = self.beside(root) {
                other.settle_turns(control)?;
            }
        }
        Ok(())
    }
}
