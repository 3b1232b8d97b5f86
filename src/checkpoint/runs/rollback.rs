//! Rollbacks: restores that also move a run's timeline, and how their targets are named.
//!
//! Nothing of a run's history is changed: its branch stays, the run is detached, and its next typed checkpoint opens a new
//! branch from the target. Files come first, then the run's state, then the journal says that it was done; a rollback that
//! is cut between them counts as interrupted, and finishing it moves the run too.

use std::collections::{BTreeSet, HashSet};

use super::run::{Run, codon_of};
use crate::checkpoint::history::interrupted::{RESTORING, in_progress, refusal};
use crate::checkpoint::history::journal::{Begin, OpKind};
use crate::checkpoint::history::operations::Step;
use crate::checkpoint::history::restore::{Restore, Restored, Stage};
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::model::redact::redact;
use crate::model::text::printable;
use crate::sys::interrupt::Flow;

/// Which of a codon's checkpoints is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Where it began: `rig-setup`, else the first of the others.
    Start,
    /// Selects `completed`, else `error`, else `skipped`. Never selects `rig-setup`.
    End,
    Of(CheckpointKind),
}

impl Point {
    /// The spellings.
    pub const WORDS: [&'static str; 6] = ["start", "end", "rig-setup", "completed", "error", "skipped"];

    /// From its spelling.
    pub fn parse(word: &str) -> Option<Point> {
        match word {
            "start" => Some(Point::Start),
            "end" => Some(Point::End),
            _ => CheckpointKind::parse(word).filter(|_| Point::WORDS.contains(&word)).map(Point::Of),
        }
    }

    /// Its spelling.
    pub fn as_str(self) -> &'static str {
        match self {
            Point::Start => "start",
            Point::End => "end",
            Point::Of(kind) => kind.as_str(),
        }
    }

    /// The kinds that it can mean, the preferred one first.
    pub(in crate::checkpoint) fn kinds(self) -> Vec<CheckpointKind> {
        match self {
            Point::Start => vec![
                CheckpointKind::RigSetup,
                CheckpointKind::Completed,
                CheckpointKind::Error,
                CheckpointKind::Skipped,
            ],
            Point::End => vec![CheckpointKind::Completed, CheckpointKind::Error, CheckpointKind::Skipped],
            Point::Of(kind) => vec![kind],
        }
    }
}

/// What a rollback goes back to.
#[derive(Clone, Debug)]
pub enum Aim {
    /// A selector: any checkpoint of any timeline.
    Checkpoint(String),
    Codon {
        id: String,
        point: Point,
    },
    LastSuccess,
}

/// What a rollback did.
#[derive(Debug)]
pub struct RolledBack {
    pub restored: Restored,
    /// The run that was moved.
    pub run: String,
    /// The branch on which its next typed checkpoint goes.
    pub next_branch: String,
}

impl Timeline {
    /// The run that is meant by somebody who names none and is in none: the one that recorded last.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn newest_run(&mut self) -> Result<Option<String>> {
        let all = self.all()?;
        let typed = all.checkpoints.iter().rev().find(|checkpoint| codon_of(&checkpoint.record).is_some());
        Ok(typed.map(|checkpoint| checkpoint.record.run.clone()))
    }

    /// Whether a run is known: it has a checkpoint, or was begun.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn has_run(&mut self, run: &str) -> Result<bool> {
        let recorded = self.all()?.checkpoints.iter().any(|checkpoint| checkpoint.record.run == run);
        Ok(recorded || Run::load(&self.workspace.dir, run)?.is_some())
    }

    /// Whether a run has recorded a codon, or stands on one.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn has_codons(&mut self, run: &str) -> Result<bool> {
        let of_run = |checkpoint: &Checkpoint| checkpoint.record.run == run && codon_of(&checkpoint.record).is_some();
        Ok(self.all()?.checkpoints.iter().any(of_run) || self.run_tip(run)?.1.is_some())
    }

    /// The checkpoint that is aimed at, seen from where `run` stands.
    ///
    /// # Errors
    /// Returns the errors of [`Timeline::resolve`]; `no-such-codon`, `no-such-type`, and `no-such-checkpoint` where no codon was completed.
    pub fn aim(&mut self, aim: &Aim, run: &str) -> Result<Checkpoint> {
        match aim {
            Aim::Checkpoint(selector) => self.resolve(selector),
            // As it was recorded.
            Aim::Codon { id, point } => self.codon_at(run, &redact(id), *point),
            Aim::LastSuccess => self.last_success(run),
        }
    }

    fn last_success(&mut self, run: &str) -> Result<Checkpoint> {
        let thread = self.thread(self.run_tip(run)?.1)?;
        // A run's own end is recorded as `completed` too, and is no codon's.
        let completed = |record: &Record| record.kind == CheckpointKind::Completed && codon_of(record).is_some();
        for checkpoint in thread.into_iter().filter(|checkpoint| completed(&checkpoint.record)) {
            if self.store.has(&checkpoint.tree)? {
                return Ok(checkpoint);
            }
            tracing::warn!(id = %checkpoint.id, "a completed codon's checkpoint is missing from the store");
        }
        let all = self.all()?;
        let left = all.checkpoints.iter().rev().find(|c| c.record.run == run && completed(&c.record));
        let hint = match left {
            Some(left) => format!(
                "checkpoint {} of another timeline completed `{}`: name it to go back there",
                left.record.ordinal,
                printable(codon_of(&left.record).unwrap_or_default())
            ),
            None => "`piton list` shows what there is".to_owned(),
        };
        let text = format!("run `{run}` has no completed codon to go back to where it stands");
        Err(Error::new(Code::NoSuchCheckpoint, text).hint(hint))
    }

    /// A codon's checkpoint: where the run stands if it is on that timeline, else the newest of an old one.
    pub(in crate::checkpoint) fn codon_at(&mut self, run: &str, id: &str, point: Point) -> Result<Checkpoint> {
        let thread: HashSet<ObjectId> =
            self.thread(self.run_tip(run)?.1)?.into_iter().map(|checkpoint| checkpoint.id).collect();
        let all = self.all()?;
        let on_thread = |checkpoint: &&Checkpoint| thread.contains(&checkpoint.id);
        let codons = || {
            let of_run = all.checkpoints.iter().filter(|c| c.record.run == run || on_thread(c));
            of_run.filter(|c| codon_of(&c.record).is_some())
        };
        let found: Vec<&Checkpoint> = codons().filter(|c| codon_of(&c.record) == Some(id)).collect();
        if found.is_empty() {
            let known: BTreeSet<&str> = codons().filter_map(|c| codon_of(&c.record)).collect();
            let text = format!("codon `{}` is not in the history of run `{run}`", printable(id));
            return Err(Error::new(Code::NoSuchCodon, text)
                .field("codonId")
                .hint("`piton runs` and `piton list --run RUN` show runs and their codons")
                .candidates(known.into_iter().take(20).map(str::to_owned).collect()));
        }
        let newest = |kind: CheckpointKind, within: &dyn Fn(&&Checkpoint) -> bool| {
            found.iter().rev().find(|c| c.record.kind == kind && within(c)).map(|c| (*c).clone())
        };
        let kinds = point.kinds();
        let here = kinds.iter().find_map(|kind| newest(*kind, &on_thread));
        here.or_else(|| kinds.iter().find_map(|kind| newest(*kind, &|_| true))).ok_or_else(|| {
            let has: BTreeSet<&str> = found.iter().map(|c| c.record.kind.as_str()).collect();
            let has: Vec<&str> = has.into_iter().collect();
            let text = format!("codon `{}` has no `{}` checkpoint", printable(id), point.as_str());
            Error::new(Code::NoSuchType, text).field("checkpointType").hint(format!("it has: {}", has.join(", ")))
        })
    }

    /// Rolls a run back: restores, and has its next typed checkpoint open a new branch from the target. The run moves even where
    /// no file has to change.
    ///
    /// # Errors
    /// Before anything is touched: `codon-running` while a codon of the run runs, `rollback-in-progress` while somebody
    /// restores or an interrupted restore waits, and those of [`Timeline::restore`].
    pub fn rollback(
        &mut self,
        restore: &Restore,
        tell: &dyn Fn(Stage<'_>),
        control: &dyn Fn() -> Flow,
    ) -> Result<RolledBack> {
        let _lock = match self.lock_if_free(RESTORING)? {
            Some(lock) => lock,
            None => {
                in_progress(&self.workspace.dir)?;
                self.lock(RESTORING)?
            }
        };
        if let Some(begin) = &self.history()?.interrupted {
            return Err(refusal(begin));
        }
        self.refuse_running(&restore.run)?;
        let (foreign, _) = self.foreign()?;
        if let Some(target) = foreign.iter().find(|checkpoint| checkpoint.id == restore.target) {
            self.refuse_foreign(target)?;
        }
        let restore = Restore { kind: OpKind::Rollback, ..restore.clone() };
        let restored = self.run_restore(&restore, None, tell, control)?;
        let next_branch = self.branch_of(&restore.run)?;
        Ok(RolledBack { restored, run: restore.run, next_branch })
    }

    /// True if a run moves with the files. Then it is an operation even if no file changes.
    pub(in crate::checkpoint) fn moves_run(&self, restore: &Restore) -> Result<bool> {
        let moved = |step: Option<&Step>| step.is_some_and(|step| step.moved.is_some());
        Ok(match restore.kind {
            OpKind::Restore => false,
            OpKind::Rollback => true,
            OpKind::Undo => moved(self.history()?.undo.last()),
            OpKind::Redo => moved(self.history()?.redo.last()),
        })
    }

    /// Moves the run of a rollback with its files, and back when the rollback is undone or given up.
    pub(in crate::checkpoint) fn move_with(&self, begin: &Begin, given_up: bool) -> Result<()> {
        let history = self.history()?;
        match begin.kind {
            OpKind::Restore => Ok(()),
            OpKind::Rollback if given_up => self.move_back(&begin.run, begin.target),
            OpKind::Rollback => self.move_run(&begin.run, begin.target),
            OpKind::Undo | OpKind::Redo if given_up => Ok(()),
            OpKind::Undo => match history.undo.last().and_then(|step| step.moved.as_ref()) {
                Some((run, target)) => self.move_back(run, *target),
                None => Ok(()),
            },
            OpKind::Redo => match history.redo.last().and_then(|step| step.moved.as_ref()) {
                Some((run, target)) => self.move_run(run, *target),
                None => Ok(()),
            },
        }
    }

    /// Has a run stand at a checkpoint, under the workspace lock: branch and patterns are those of there.
    pub(in crate::checkpoint) fn move_run(&self, run: &str, target: ObjectId) -> Result<()> {
        self.detach(run, target)?;
        let tracked = self.tracked_at(Some(target))?;
        self.change_run(run, |state| state.tracked = tracked).map(drop)
    }

    /// Takes a move back, if nothing was recorded since.
    pub(in crate::checkpoint) fn move_back(&self, run: &str, target: ObjectId) -> Result<()> {
        let tracked = match self.reattach(run, target)? {
            Some(tracked) => Some(tracked),
            None => self.tracked_at(self.run_tip(run)?.1)?,
        };
        self.change_run(run, |state| state.tracked = tracked).map(drop)
    }
}
