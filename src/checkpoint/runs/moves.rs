//! Moves of runs: sets the place of a run's next typed checkpoint after a rollback or a fork.

use super::rollback::RolledBack;
use crate::checkpoint::catalog::branches::find;
use crate::checkpoint::history::journal::OperationStart;
use crate::checkpoint::history::request::{Restore, RestoreStage};
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::state::Detached;
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::model::operation::OperationKind;
use crate::sys::interrupt::Flow;

impl Locked<'_> {
    /// Rolls a run back: restores, and has its next typed checkpoint open a new branch from the target. The run moves even where
    /// no file has to change.
    ///
    /// # Errors
    /// Before anything is touched: `codon-running` while a codon of the run runs, `rollback-in-progress` while an interrupted restore
    /// waits, and those of [`Locked::restore`].
    pub(crate) fn rollback(
        &mut self,
        restore: &Restore,
        tell: &dyn Fn(RestoreStage<'_>),
        control: &dyn Fn() -> Flow,
    ) -> Result<RolledBack> {
        self.refuse_interrupted()?;
        // A running codon belongs to the present timeline: its end would be recorded on the new one.
        self.codons.refuse_running(&self.catalog.workspace.dir, &restore.run)?;
        let foreign = self.catalog.foreign()?;
        if let Some(target) = foreign.checkpoints.iter().find(|checkpoint| checkpoint.id == restore.target) {
            self.catalog.refuse_foreign(target)?;
        }
        let restore = Restore { kind: OperationKind::Rollback, ..restore.clone() };
        let restored = self.run_restore(&restore, None, tell, control)?;
        let next_branch = self.catalog.branch_of(&restore.run)?;
        Ok(RolledBack { restored, run: restore.run, next_branch })
    }

    /// Moves the run of a rollback with its files, and back when the rollback is undone or given up.
    pub(crate) fn move_with(&self, begin: &OperationStart, given_up: bool) -> Result<()> {
        let (history, over) = (self.catalog.history()?, begin.over.as_deref());
        match begin.kind {
            OperationKind::Restore | OperationKind::Turn => Ok(()),
            OperationKind::Rollback if given_up => self.move_back(&begin.run, begin.target),
            OperationKind::Rollback => self.move_run(&begin.run, begin.target),
            OperationKind::Undo | OperationKind::Redo if given_up => Ok(()),
            OperationKind::Undo => match over.and_then(|op| history.undo_of(op)).and_then(|step| step.moved.as_ref()) {
                Some((run, target)) => self.move_back(run, *target),
                None => Ok(()),
            },
            OperationKind::Redo => match over.and_then(|op| history.redo_of(op)).and_then(|step| step.moved.as_ref()) {
                Some((run, target)) => self.move_run(run, *target),
                None => Ok(()),
            },
        }
    }

    /// Moves a run to a checkpoint, with the branch and the patterns of that place.
    fn move_run(&self, run: &str, target: ObjectId) -> Result<()> {
        self.detach(run, target)?;
        let tracked = self.catalog.tracked_at(Some(target))?;
        self.change_run(run, |state| state.tracked = tracked).map(drop)
    }

    /// Takes a move back, if nothing was recorded since.
    fn move_back(&self, run: &str, target: ObjectId) -> Result<()> {
        let tracked = match self.reattach(run, target)? {
            Some(tracked) => Some(tracked),
            None => self.catalog.tracked_at(self.catalog.run_tip(run)?.1)?,
        };
        self.change_run(run, |state| state.tracked = tracked).map(drop)
    }

    /// Notes that a run's next typed checkpoint opens a new branch from `from`. Its old branch stays. The present
    /// operation may have done so already, before it was interrupted.
    pub(super) fn detach(&self, run: &str, from: ObjectId) -> Result<()> {
        let refs = self.catalog.refs(&self.catalog.branch_prefix())?;
        let mut state = self.catalog.state();
        let op = self.catalog.history()?.interrupted.as_ref().map(|begin| begin.op.clone());
        let old = state.detached.get(run).filter(|old| find(&refs, &old.branch).is_none()).cloned();
        // `--continue` calls this once more for the same operation: a second move would lose the place before the
        // first.
        if op.is_some() && old.as_ref().is_some_and(|old| old.op == op && old.from == from) {
            return Ok(());
        }
        let tracked = self.catalog.run_state(run)?.tracked;
        let new = Detached { op, tracked, ..Detached::new(self.catalog.free_branch(run, &refs, &state), from) };
        let new = match old {
            Some(old) => new.after(old),
            None => new,
        };
        state.detached.insert(run.to_owned(), new);
        state.save(&self.catalog.workspace.dir, &self.lock)
    }

    /// Takes a move back, if nothing was recorded since: the run continues at its earlier place. Returns the patterns
    /// that it had there, if they were noted.
    fn reattach(&self, run: &str, from: ObjectId) -> Result<Option<Vec<String>>> {
        let mut state = self.catalog.state();
        let Some(detached) = state.detached.get_mut(run).filter(|detached| detached.from == from) else {
            return Ok(None);
        };
        let tracked = detached.tracked.take();
        match detached.before.pop() {
            Some(left) => (detached.from, detached.op, detached.tracked) = (left.from, left.op, left.tracked),
            None => _ = state.detached.remove(run),
        }
        state.save(&self.catalog.workspace.dir, &self.lock)?;
        Ok(tracked)
    }
}
