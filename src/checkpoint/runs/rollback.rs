//! Rollbacks: restores that also move a run's timeline, and the lookup of their targets.
//!
//! A run's history is not changed: its branch stays, the run is detached, and its next typed checkpoint opens a new
//! branch from the target. Files come first, then the run's state, then the last line of the journal. A rollback that
//! ends between these counts as interrupted, and finishing it moves the run too.

use std::collections::{BTreeSet, HashSet};

use super::client::RunClient;
use super::run::{Run, codon_of};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::selector::Point;
use crate::checkpoint::history::operations::UndoStep;
use crate::checkpoint::history::request::{Restore, Restored};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::id::ObjectId;
use crate::model::operation::OperationKind;
use crate::model::redact::redact;
use crate::model::text::printable;

/// The aim of a rollback.
#[derive(Clone, Debug)]
pub enum Aim {
    /// A selector: any checkpoint of any timeline.
    Checkpoint(String),
    /// A checkpoint of a codon of the run.
    Codon {
        /// The codon's id.
        id: String,
        /// The one among the codon's checkpoints.
        point: Point,
    },
    /// The newest codon that was completed on the run's present timeline.
    LastSuccess,
}

/// A rollback that was done.
#[derive(Debug)]
pub struct RolledBack {
    /// The restore of the files.
    pub restored: Restored,
    /// The run that was moved.
    pub run: String,
    /// The branch on which its next typed checkpoint goes.
    pub next_branch: String,
}

impl Catalog {
    /// Returns the run for a caller that names none and is in none: the one that recorded last.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn newest_run(&self) -> Result<Option<String>> {
        let all = self.all()?;
        let typed = all.checkpoints.iter().rev().find(|checkpoint| codon_of(&checkpoint.record).is_some());
        Ok(typed.map(|checkpoint| checkpoint.record.run.clone()))
    }

    /// Returns true if a run is known: it has a checkpoint, or was begun.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn has_run(&self, run: &str) -> Result<bool> {
        let recorded = self.all()?.checkpoints.iter().any(|checkpoint| checkpoint.record.run == run);
        let is_sub_agent = || RunClient::load(&self.workspace.dir, run).is_some_and(|client| client.parent.is_some());
        Ok(recorded || Run::load(&self.workspace.dir, run)?.is_some() || is_sub_agent())
    }

    /// Returns true if a run has recorded a codon, or stands on one.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn has_codons(&self, run: &str) -> Result<bool> {
        let of_run = |checkpoint: &Checkpoint| checkpoint.record.run == run && codon_of(&checkpoint.record).is_some();
        Ok(self.all()?.checkpoints.iter().any(of_run) || self.run_tip(run)?.1.is_some())
    }

    /// Returns the checkpoint that is aimed at, seen from where `run` stands.
    ///
    /// # Errors
    /// Returns the errors of [`Catalog::resolve`]; `no-such-codon`, `no-such-type`, and `no-such-checkpoint` where no
    /// codon was completed.
    pub fn aim(&self, aim: &Aim, run: &str) -> Result<Checkpoint> {
        match aim {
            Aim::Checkpoint(selector) => self.resolve(selector),
            // Redacted, because the recorded id was too.
            Aim::Codon { id, point } => self.codon_at(run, &redact(id), *point),
            Aim::LastSuccess => self.last_success(run),
        }
    }

    fn last_success(&self, run: &str) -> Result<Checkpoint> {
        let thread = self.thread(self.run_tip(run)?.1)?;
        // The end of a run is recorded as `completed` too, but belongs to no codon.
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
                "checkpoint {} completed `{}` on another timeline; to return to it, give that checkpoint",
                left.record.number,
                printable(codon_of(&left.record).unwrap_or_default())
            ),
            None => "`piton list` lists the checkpoints".to_owned(),
        };
        let text = format!("run `{run}` has no completed codon before its current position");
        Err(Error::new(Code::NoSuchCheckpoint, text).hint(hint))
    }

    /// Returns a codon's checkpoint on the run's present timeline, else the newest one of an older timeline.
    pub(crate) fn codon_at(&self, run: &str, id: &str, point: Point) -> Result<Checkpoint> {
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
                .hint("`piton list --runs` and `piton list --run RUN` show runs and their codons")
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

    /// Returns true if a run moves with the files. Then it is an operation even if no file changes.
    pub(crate) fn moves_run(&self, restore: &Restore) -> Result<bool> {
        let moved = |step: Option<&UndoStep>| step.is_some_and(|step| step.moved.is_some());
        Ok(match restore.kind {
            OperationKind::Restore | OperationKind::Turn => false,
            OperationKind::Rollback => true,
            OperationKind::Undo => {
                let history = self.history()?;
                moved(restore.over.as_deref().and_then(|op| history.undo_of(op)))
            }
            OperationKind::Redo => {
                let history = self.history()?;
                moved(restore.over.as_deref().and_then(|op| history.redo_of(op)))
            }
        })
    }
}
