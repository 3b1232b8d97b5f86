//! The sum of the journal: the operations that can be undone or redone, and the interrupted one. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::journal::{Contents, External, Line, OperationEnd, OperationStart, TurnEnd};
use crate::model::id::ObjectId;
use crate::model::operation::OperationKind;
use crate::model::text::count;

/// The turns of a workspace that can be undone: the newest ones, whose checkpoints retention keeps.
pub const KEPT_TURNS: usize = 20;

/// The steps of redo whose checkpoints retention keeps, the next ones.
const KEPT_REDO: usize = 20;

/// The beginning of the journal's names of turns.
pub const OF_TURN: &str = "t-";

/// One step that undo or redo can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoStep {
    /// The operation it steps over.
    pub op: String,
    /// The kind of the journal's entry that made the step: `undo` for a step of redo.
    pub kind: OperationKind,
    /// The run that a rollback moved, and where to.
    pub moved: Option<(String, ObjectId)>,
    /// The id of the run that asked for the operation.
    by: String,
    /// The checkpoint to go to.
    pub to: ObjectId,
    /// Exactly the paths that the operation changed (percent-quoted).
    pub changed: Vec<String>,
    /// The workspace's newest ordinal when the operation ended.
    pub ordinal: u64,
    /// The moment when that entry was announced: RFC 3339, UTC, milliseconds.
    pub time: String,
    /// The turn, if it steps over one.
    pub turn: Option<Arc<TurnEnd>>,
    /// Paths of the turn that were taken back (percent-quoted).
    pub undone: BTreeSet<String>,
    /// Paths of the turn of which only some hunks were undone (percent-quoted), and the checkpoint with their state since.
    pub undone_in_hunks: BTreeMap<String, ObjectId>,
    /// True if the whole turn was stepped over; what had to stay then can still be taken back by the turn's name.
    pub passed: bool,
    /// True if it steps over a part of the turn only.
    pub partial: bool,
    /// Of a step of redo: the checkpoint to which the undo went, as which its paths are since.
    pub left_at: Option<ObjectId>,
    /// Of a step of redo: its place among the steps of undo.
    place: usize,
}

impl UndoStep {
    /// Returns the step back over a turn.
    fn over_turn(turn: &Arc<TurnEnd>) -> UndoStep {
        UndoStep {
            op: turn.op.clone(),
            kind: OperationKind::Turn,
            moved: None,
            by: turn.run.clone(),
            to: turn.base,
            changed: turn.changes.iter().map(|change| change.path.clone()).collect(),
            ordinal: turn.ordinal,
            time: turn.time.clone(),
            turn: Some(Arc::clone(turn)),
            undone: BTreeSet::new(),
            undone_in_hunks: BTreeMap::new(),
            passed: false,
            partial: false,
            left_at: None,
            place: 0,
        }
    }

    /// Returns the run of the step's turn; else the run that asked for the operation.
    pub fn run(&self) -> &str {
        self.turn.as_ref().map_or(&self.by, |turn| &turn.run)
    }

    /// Returns true if the step is of one of some runs; without any given, always.
    pub(super) fn is_of(&self, runs: Option<&BTreeSet<String>>) -> bool {
        runs.is_none_or(|runs| runs.contains(self.run()))
    }

    /// Counts the changes that an undo includes by default and that are not undone.
    pub fn own_left(&self) -> usize {
        let changes = self.turn.iter().flat_map(|turn| &turn.changes);
        changes.filter(|change| change.is_undone_by_default() && !self.undone.contains(&change.path)).count()
    }

    /// Returns true if any change of a turn was not taken back, of whatever share; one that is not saved counts until the turn is undone.
    pub fn is_anything_left(&self) -> bool {
        let is_left = |turn: &Arc<TurnEnd>| {
            let mut changes = turn.changes.iter();
            let names_missed = !turn.missed.is_empty() && !self.is_undone();
            names_missed || changes.any(|change| !self.undone.contains(&change.path))
        };
        self.turn.as_ref().is_none_or(is_left)
    }

    /// Returns true if a turn is undone: as a whole, or path by path.
    pub fn is_undone(&self) -> bool {
        self.passed || (!self.undone.is_empty() && self.own_left() == 0)
    }

    /// Returns true if the next undo passes a turn by: it is undone, or has changed nothing.
    pub(super) fn is_spent(&self) -> bool {
        let Some(turn) = &self.turn else { return false };
        // Changes of others behind a restore, in a turn that was open then, must not hide the restore. A named change that no undo
        // takes back must be said once, before an older turn is undone in its place.
        let names_missed = turn.missed.iter().any(|missed| missed.who.is_own());
        let may_be_empty = (turn.is_later_part || turn.changes.is_empty()) && !names_missed;
        turn.is_passed || self.is_undone() || (may_be_empty && self.own_left() == 0)
    }
}

/// The journal, added up.
#[derive(Clone, Debug)]
pub struct History {
    /// Newest last.
    pub undo: Vec<UndoStep>,
    /// Next to redo last.
    pub redo: Vec<UndoStep>,
    /// The turns that changed files, newest last: at most [`KEPT_TURNS`].
    pub turns: Vec<Arc<TurnEnd>>,
    /// True if a turn that was not undone is too old to be undone by now.
    pub has_older: bool,
    /// The paths that the newest operation brought back (percent-quoted), and the checkpoint that it took them from.
    pub brought: Option<(ObjectId, Vec<String>)>,
    /// An operation that began and neither ended nor was given up.
    pub interrupted: Option<OperationStart>,
    /// The effects that no restore undoes, as earlier versions wrote them into the journal.
    pub externals: Vec<External>,
    /// Number of the next operation.
    pub next: u64,
    /// Number of the next turn.
    pub next_turn: u64,
    /// The number of damaged lines.
    damaged: u64,
    /// True if the journal ends with bytes that are no line.
    odd_tail: bool,
    /// The steps of `undo` and of `redo` before the last damaged line, which may have been about them.
    unsure: (usize, usize),
}

/// Nothing has happened yet.
impl Default for History {
    fn default() -> History {
        History {
            undo: Vec::new(),
            redo: Vec::new(),
            turns: Vec::new(),
            has_older: false,
            brought: None,
            interrupted: None,
            externals: Vec::new(),
            next: 1,
            next_turn: 1,
            damaged: 0,
            odd_tail: false,
            unsure: (0, 0),
        }
    }
}

impl History {
    /// Adds up a journal.
    pub fn of(contents: Contents) -> History {
        let mut history = History::default();
        history.extend(contents);
        history
    }

    /// Adds what was read of a journal after this.
    pub fn extend(&mut self, contents: Contents) {
        let Contents { lines, damaged, damage_at, odd_tail, .. } = contents;
        let number = lines.len();
        for (at, line) in lines.into_iter().enumerate() {
            if damage_at == Some(at) {
                self.unsure = (self.undo.len(), self.redo.len());
            }
            self.add(line);
        }
        if damage_at == Some(number) {
            self.unsure = (self.undo.len(), self.redo.len());
        }
        self.damaged += damaged;
        self.odd_tail = odd_tail;
    }

    /// Says how many lines of the journal are damaged; `None` if none is.
    pub fn damage(&self) -> Option<String> {
        let number = self.damaged();
        (number > 0).then(|| format!("the journal of restores has {}", count(number, "damaged line")))
    }

    /// Returns the number of damaged lines, an odd tail among them.
    fn damaged(&self) -> u64 {
        self.damaged + u64::from(self.odd_tail)
    }

    /// Returns true if the newest operation that can be undone is known, in spite of damaged lines.
    pub fn knows_undo(&self) -> bool {
        self.damaged() == 0 || (!self.odd_tail && self.next_place().is_some_and(|at| at >= self.unsure.0))
    }

    /// Returns true if the next operation that can be redone is known, in spite of damaged lines.
    pub fn knows_redo(&self) -> bool {
        self.damaged() == 0 || (!self.odd_tail && self.redo.len() > self.unsure.1)
    }

    fn add(&mut self, line: Line) {
        match line {
            Line::External(external) => self.externals.push(external),
            Line::Aborted { op } => {
                if self.interrupted.as_ref().is_some_and(|begin| begin.op == op) {
                    self.interrupted = None;
                }
            }
            Line::Restoring(begin) => {
                let number = begin.op.strip_prefix("o-").and_then(|text| text.parse::<u64>().ok());
                self.next = self.next.max(number.unwrap_or(0) + 1);
                self.interrupted = Some(begin);
            }
            Line::Restored(end) => {
                if let Some(begin) = self.interrupted.take_if(|begin| begin.op == end.op) {
                    self.finish(begin, end);
                }
            }
            Line::Turn(turn) => self.end_turn(Arc::from(turn)),
        }
    }

    /// Adds a turn, or puts its newer line in the place of the older one.
    fn end_turn(&mut self, turn: Arc<TurnEnd>) {
        let number = turn.op.strip_prefix(OF_TURN).and_then(|text| text.parse::<u64>().ok());
        self.next_turn = self.next_turn.max(number.unwrap_or(0) + 1);
        let step = UndoStep::over_turn(&turn);
        let steps = self.undo.iter_mut().chain(&mut self.redo);
        if let Some(known) = { steps }.find(|known| known.op == turn.op) {
            let newer = if known.kind == OperationKind::Turn { step } else { known.clone() };
            let old = known.clone();
            *known = UndoStep {
                turn: Some(Arc::clone(&turn)),
                undone: old.undone,
                undone_in_hunks: old.undone_in_hunks,
                passed: old.passed,
                ..newer
            };
        } else if !self.turns.iter().any(|known| known.op == turn.op) {
            self.undo.push(step);
        }
        match self.turns.iter_mut().find(|known| known.op == turn.op) {
            Some(known) => *known = turn,
            None => self.turns.push(turn),
        }
        if self.turns.len() > KEPT_TURNS {
            let old = self.turns.remove(0);
            if let Some(at) = self.undo.iter().position(|step| step.op == old.op) {
                self.has_older |= !self.remove(at).is_undone();
            }
            self.redo.retain(|step| step.op != old.op);
        }
    }

    fn finish(&mut self, begin: OperationStart, end: OperationEnd) {
        // piton's own operation deletes files on purpose. Earlier deletions were listed before it began.
        for turn in self.turns.iter_mut().filter(|turn| !turn.running.is_empty()) {
            Arc::make_mut(turn).running.clear();
        }
        self.brought = Some((begin.target, end.changed.clone()));
        let own = (begin.kind == OperationKind::Rollback).then(|| (begin.run.clone(), begin.target));
        let mut step = UndoStep {
            moved: own,
            by: begin.run.clone(),
            op: begin.over.clone().unwrap_or_else(|| begin.op.clone()),
            kind: begin.kind,
            to: begin.pre_restore,
            changed: end.changed,
            ordinal: end.ordinal,
            time: begin.time,
            turn: None,
            undone: BTreeSet::new(),
            undone_in_hunks: BTreeMap::new(),
            passed: false,
            partial: begin.partial,
            left_at: (begin.kind == OperationKind::Undo).then_some(begin.target),
            place: 0,
        };
        match begin.kind {
            // One in which everything failed has nothing to take back.
            OperationKind::Restore if step.changed.is_empty() => {}
            OperationKind::Undo | OperationKind::Redo if step.changed.is_empty() && !self.moves_run(&step) => {}
            OperationKind::Restore | OperationKind::Rollback => {
                // The redo of a turn looks at each path itself.
                self.redo.retain(|step| step.turn.is_some());
                self.unsure.1 = self.unsure.1.min(self.redo.len());
                self.undo.push(step);
            }
            OperationKind::Undo => {
                let at = self.undo.iter().rposition(|undone| undone.op == step.op);
                // The line of what it undoes may be damaged: then it was the newest.
                let newest = || self.undo.len().checked_sub(1).filter(|_| !step.op.starts_with(OF_TURN));
                if let Some(at) = at.or_else(newest) {
                    step.place = at;
                    let known = &mut self.undo[at];
                    step.turn.clone_from(&known.turn);
                    match &known.turn {
                        Some(_) => {
                            step.passed = known.passed;
                            step.undone_in_hunks.clone_from(&known.undone_in_hunks);
                            for path in &step.changed {
                                if begin.in_hunks.contains(path) {
                                    known.undone_in_hunks.insert(path.clone(), begin.target);
                                } else {
                                    known.undone_in_hunks.remove(path);
                                    known.undone.insert(path.clone());
                                }
                            }
                            known.passed |= !step.partial;
                        }
                        None => step.moved = self.remove(at).moved,
                    }
                }
                self.redo.push(step);
            }
            OperationKind::Redo => {
                let at = self.redo.iter().rposition(|redone| redone.op == step.op);
                let Some(at) = at.or_else(|| self.redo.len().checked_sub(1)) else { return };
                let redone = self.redo.remove(at);
                self.unsure.1 -= usize::from(at < self.unsure.1);
                if redone.turn.is_none() {
                    step.moved = redone.moved;
                    self.undo.insert(redone.place.min(self.undo.len()), step);
                } else if let Some(known) = self.undo.iter_mut().find(|known| known.op == redone.op) {
                    redone.changed.iter().for_each(|path| _ = known.undone.remove(path));
                    known.undone_in_hunks = redone.undone_in_hunks;
                    known.passed = redone.passed;
                }
            }
            OperationKind::Turn => {}
        }
    }

    /// Returns true if an undo or redo moves a run, and so is one even if no file changes.
    fn moves_run(&self, step: &UndoStep) -> bool {
        let steps = if step.kind == OperationKind::Undo { &self.undo } else { &self.redo };
        steps.iter().rev().find(|known| known.op == step.op).is_some_and(|known| known.moved.is_some())
    }

    /// Takes a step of undo out.
    fn remove(&mut self, at: usize) -> UndoStep {
        self.unsure.0 -= usize::from(at < self.unsure.0);
        self.undo.remove(at)
    }

    /// Returns the next step of undo: the newest operation or turn of which anything is left to take back.
    pub fn next_undo(&self) -> Option<&UndoStep> {
        self.next_place().map(|at| &self.undo[at])
    }

    /// Returns the place of the next step of undo.
    fn next_place(&self) -> Option<usize> {
        self.undo.iter().rposition(|step| !step.is_spent())
    }

    /// Returns the step of redo over an operation or turn.
    pub fn redo_of(&self, op: &str) -> Option<&UndoStep> {
        self.redo.iter().rev().find(|step| step.op == op)
    }

    /// Returns the next step of undo below an operation or turn.
    pub fn next_below(&self, op: &str) -> Option<&UndoStep> {
        let at = self.undo.iter().rposition(|step| step.op == op)?;
        self.undo[..at].iter().rev().find(|step| !step.is_spent())
    }

    /// Returns the step of undo over an operation or turn.
    pub fn undo_of(&self, op: &str) -> Option<&UndoStep> {
        self.undo.iter().rev().find(|step| step.op == op)
    }

    /// Returns the checkpoints at both ends of the turns that can be undone.
    pub fn ends_of_turns(&self) -> impl Iterator<Item = ObjectId> {
        self.turns.iter().flat_map(|turn| [turn.base, turn.end].into_iter().chain(turn.named_checkpoints()))
    }

    /// Returns the checkpoints that pruning must not drop: the ends of an interrupted operation, the next undo, the redo of what
    /// was undone, and the states that an undo of hunks has left.
    pub fn needed(&self) -> Vec<ObjectId> {
        let ends = self.interrupted.iter().flat_map(|begin| [begin.target, begin.pre_restore]);
        // Those of turns are kept by themselves.
        let next = self.next_undo().filter(|step| step.turn.is_none());
        let redo = self.redo.iter().rev().take(KEPT_REDO).flat_map(|step| [Some(step.to), step.left_at]);
        let in_hunks = self.undo.iter().flat_map(|step| step.undone_in_hunks.values().copied());
        ends.chain(next.map(|step| step.to)).chain(redo.flatten()).chain(in_hunks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::OperationEnd;
    use super::*;
    use crate::model::id::ObjectKind;

    fn id(n: u8) -> ObjectId {
        ObjectId::of(ObjectKind::Blob, &[n]).unwrap()
    }

    fn begin(op: u8, kind: OperationKind, over: Option<&str>) -> Line {
        Line::Restoring(OperationStart {
            op: format!("o-{op}"),
            kind,
            run: "local".into(),
            target: id(100 + op),
            pre_restore: id(op),
            paths: vec![],
            limits: None,
            only: None,
            planned: vec![],
            keep_new: false,
            local: false,
            over: over.map(str::to_owned),
            partial: false,
            in_hunks: Vec::new(),
            time: String::new(),
        })
    }

    fn end(op: u8) -> Line {
        Line::Restored(OperationEnd {
            op: format!("o-{op}"),
            changed: vec!["a".into()],
            failed: 0,
            ordinal: u64::from(op),
        })
    }

    fn of(lines: &[Line]) -> History {
        History::of(Contents { lines: lines.to_vec(), ..Contents::default() })
    }

    #[test]
    fn no_step_leads_over_a_damaged_line() {
        let lines =
            vec![begin(1, OperationKind::Restore, None), end(1), begin(2, OperationKind::Restore, None), end(2)];
        let at = |damage: usize| {
            let contents =
                Contents { lines: lines.clone(), damaged: 1, damage_at: Some(damage), ..Contents::default() };
            History::of(contents)
        };
        assert!([0, 1, 2].iter().all(|damage| at(*damage).knows_undo()) && !at(4).knows_undo());
        let mut history = at(2);
        assert!(!history.knows_redo());
        let undone = vec![begin(3, OperationKind::Undo, Some("o-2")), end(3)];
        history.extend(Contents { lines: undone, ..Contents::default() });
        assert!(!history.knows_undo() && history.knows_redo(), "the damaged line may have been a later restore");
    }

    #[test]
    fn undo_and_redo_walk_the_stack() {
        let mut lines =
            vec![begin(1, OperationKind::Restore, None), end(1), begin(2, OperationKind::Restore, None), end(2)];
        let top = |lines: &[Line]| {
            let history = of(lines);
            let name = |step: Option<&UndoStep>| step.map(|step| (step.op.clone(), step.to));
            (name(history.undo.last()), name(history.redo.last()), history.next)
        };
        let op = |n: u8, to: u8| Some((format!("o-{n}"), id(to)));
        assert_eq!(top(&lines), (op(2, 2), None, 3));
        lines.extend([begin(3, OperationKind::Undo, Some("o-2")), end(3)]);
        assert_eq!(top(&lines), (op(1, 1), op(2, 3), 4));
        lines.extend([begin(4, OperationKind::Undo, Some("o-1")), end(4)]);
        assert_eq!(top(&lines), (None, op(1, 4), 5));
        lines.extend([begin(5, OperationKind::Redo, Some("o-1")), end(5)]);
        assert_eq!(top(&lines), (op(1, 5), op(2, 3), 6));
        lines.extend([begin(6, OperationKind::Restore, None), end(6)]);
        assert_eq!(top(&lines), (op(6, 6), None, 7));
    }

    #[test]
    fn what_began_and_did_not_end_is_interrupted() {
        let mut lines = vec![begin(1, OperationKind::Restore, None)];
        assert_eq!(of(&lines).interrupted.map(|begin| begin.op), Some("o-1".into()));
        lines.push(Line::Aborted { op: "o-1".into() });
        let history = of(&lines);
        assert!(history.interrupted.is_none() && history.undo.is_empty());
    }
}
