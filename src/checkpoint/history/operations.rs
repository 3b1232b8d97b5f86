//! The sum of the journal: the operations that can be undone or redone, and the interrupted one. Pure.

use super::journal::{Contents, External, Line, OperationStart};
use crate::model::id::ObjectId;
use crate::model::operation::OperationKind;
use crate::model::text::count;

/// One step that undo or redo can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoStep {
    /// The operation it steps over.
    pub op: String,
    /// The kind of the journal's entry that made the step: `undo` for a step of redo.
    pub kind: OperationKind,
    /// The run that a rollback moved, and where to.
    pub moved: Option<(String, ObjectId)>,
    /// The checkpoint to go to.
    pub to: ObjectId,
    /// Exactly the paths that the operation changed (percent-quoted).
    pub changed: Vec<String>,
    /// The workspace's newest ordinal when the operation ended.
    pub ordinal: u64,
    /// The moment when that entry was announced: RFC 3339, UTC, milliseconds.
    pub time: String,
}

/// The journal, added up.
#[derive(Clone, Debug)]
pub struct History {
    /// Newest last.
    pub undo: Vec<UndoStep>,
    /// Next to redo last.
    pub redo: Vec<UndoStep>,
    /// An operation that began and neither ended nor was given up.
    pub interrupted: Option<OperationStart>,
    /// The effects that no restore undoes, in the order in which they were noted.
    pub externals: Vec<External>,
    /// Number of the next operation.
    pub next: u64,
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
            interrupted: None,
            externals: Vec::new(),
            next: 1,
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
        self.damaged() == 0 || (!self.odd_tail && self.undo.len() > self.unsure.0)
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
                let Some(begin) = self.interrupted.take_if(|begin| begin.op == end.op) else {
                    return;
                };
                let own = (begin.kind == OperationKind::Rollback).then(|| (begin.run.clone(), begin.target));
                let step = UndoStep {
                    moved: own,
                    op: begin.over.clone().unwrap_or_else(|| begin.op.clone()),
                    kind: begin.kind,
                    to: begin.pre_restore,
                    changed: end.changed,
                    ordinal: end.ordinal,
                    time: begin.time,
                };
                self.finish(begin.kind, step);
            }
        }
    }

    fn finish(&mut self, kind: OperationKind, mut step: UndoStep) {
        match kind {
            // One in which everything failed has nothing to take back.
            OperationKind::Restore if step.changed.is_empty() => {}
            OperationKind::Restore | OperationKind::Rollback => {
                self.redo.clear();
                self.unsure.1 = 0;
                self.undo.push(step);
            }
            OperationKind::Undo => {
                step.moved = self.undo.pop().and_then(|undone| undone.moved);
                self.redo.push(step);
            }
            OperationKind::Redo => {
                step.moved = self.redo.pop().and_then(|redone| redone.moved);
                self.undo.push(step);
            }
        }
    }

    /// Returns the external effects that restoring to the checkpoint of this ordinal would not undo, oldest first.
    pub fn external_since(&self, ordinal: u64) -> impl Iterator<Item = &External> {
        self.externals.iter().filter(move |external| external.after >= ordinal)
    }

    /// Returns the checkpoints that pruning must not drop: the ends of an interrupted operation, and the next undo and
    /// redo.
    pub fn needed(&self) -> Vec<ObjectId> {
        let ends = self.interrupted.iter().flat_map(|begin| [begin.target, begin.pre_restore]);
        ends.chain(self.undo.last().map(|step| step.to)).chain(self.redo.last().map(|step| step.to)).collect()
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
            only: None,
            planned: vec![],
            keep_new: false,
            local: false,
            over: over.map(str::to_owned),
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
