//! Changes of runs: they begin, end and fork.

use super::at_work::clients_of;
use super::client::RunClient;
use super::run::{ForkPoint, Run, RunDetails, RunEnding};
use crate::checkpoint::capture::request::{Take, Taken};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::marks::AtWork;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::interrupt::Flow;

impl Locked<'_> {
    /// Changes a run's file. The end of a run is the end of its client, as far as piton knows.
    pub(super) fn change_run(&self, run: &str, change: impl FnOnce(&mut Run)) -> Result<Run> {
        let workspace = &self.catalog.workspace.dir;
        let mut state = self.catalog.run_state(run)?;
        change(&mut state);
        if let Some(client) = RunClient::load(workspace, run) {
            client.fill(&mut state);
        }
        state.save(workspace, run, &self.lock)?;
        if state.status.is_some() {
            RunClient::remove(workspace, run)?;
        }
        Ok(state)
    }

    /// Notes that a run begins or continues.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing.
    pub(crate) fn start_run(&self, begin: &RunDetails) -> Result<()> {
        let changed = self.change_run(&begin.run, |run| {
            let keep = |old: &mut Option<String>, new: &Option<String>| *old = new.clone().or(old.take());
            keep(&mut run.named, &begin.named);
            keep(&mut run.client, &begin.client);
            keep(&mut run.parent, &begin.parent);
            keep(&mut run.goal, &begin.goal);
            run.started.get_or_insert_with(|| rfc3339(now_ms()));
            (run.ended, run.status) = (None, None);
        });
        changed.map(drop)
    }

    /// Notes that a run has ended, and returns the checkpoint of its end. A codon that still runs is recorded as
    /// `exit`, else changes since the run's last typed checkpoint are. A run that was never begun and has no codons
    /// records nothing.
    ///
    /// # Errors
    /// Returns the errors of the lock, of taking the checkpoint and of writing; then the run stays open.
    pub(crate) fn end_run(
        &mut self,
        run: &str,
        status: RunEnding,
        control: &dyn Fn() -> Flow,
    ) -> Result<Option<Taken>> {
        let state = self.catalog.run_state(run)?;
        let is_open = state.ended.is_none() && (state.started.is_some() || state.tracked.is_some());
        let taken = if self.codons.running(&self.catalog.workspace.dir, run)?.is_some() {
            Some(self.record_exit(run, None, control)?)
        } else if is_open {
            self.record_end(run, status, control)?
        } else {
            None
        };
        self.change_run(run, |run| {
            (run.ended, run.status, run.running) = (Some(rfc3339(now_ms())), Some(status), None);
        })?;
        Ok(taken)
    }

    /// Notes the end of a run whose client's process has ended without a word.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(crate) fn end_left_run(&self, run: &str) -> Result<()> {
        let workspace = &self.catalog.workspace.dir;
        // The client may have come back meanwhile, with another process.
        let has_ended = RunClient::load(workspace, run).is_some_and(|client| client.is_alive() == Some(false));
        if !has_ended || clients_of(workspace, run) == AtWork::Now {
            return Ok(());
        }
        // Nobody knows of a run that has recorded nothing.
        if !self.catalog.has_run(run)? {
            return RunClient::remove(workspace, run);
        }
        self.change_run(run, |state| state.status = Some(RunEnding::Exit)).map(drop)
    }

    /// Records how a run ended, if something changed since its last typed checkpoint.
    fn record_end(&mut self, run: &str, status: RunEnding, control: &dyn Fn() -> Flow) -> Result<Option<Taken>> {
        let (kind, word) = match status {
            RunEnding::Completed => (CheckpointKind::Completed, "completed"),
            RunEnding::Error => (CheckpointKind::Error, "error"),
            RunEnding::Exit => (CheckpointKind::Exit, "exit"),
        };
        let mut take = Take::of(kind, run, &format!("the run ended: {word}"));
        take.draft.always = false;
        match self.take(&take, control) {
            Ok((taken, _)) => Ok(Some(taken)),
            // A run can end without its workspace.
            Err(error) if error.code() == Code::WorkspaceGone => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a run whose first typed checkpoint follows `from`. No file is touched.
    ///
    /// # Errors
    /// `conflict` when there is such a run; those of the lock and of writing.
    pub(crate) fn fork_run(&mut self, begin: &RunDetails, from: &Checkpoint) -> Result<()> {
        self.catalog.refuse_foreign(from)?;
        let known = self.catalog.all()?.checkpoints.iter().any(|checkpoint| checkpoint.record.run == begin.run);
        if known || Run::load(&self.catalog.workspace.dir, &begin.run)?.is_some() {
            return Err(Error::new(Code::Conflict, format!("a run `{}` already exists", begin.run))
                .field("run")
                .hint("give another name, or none to have an id generated"));
        }
        // The run is detached first: if its file is missing after a crash, it is found again from its first checkpoint.
        self.detach(&begin.run, from.id)?;
        let run = Run {
            named: begin.named.clone(),
            client: begin.client.clone(),
            parent: begin.parent.clone(),
            goal: begin.goal.clone(),
            started: Some(rfc3339(now_ms())),
            origin: Some(ForkPoint { run: from.record.run.clone(), checkpoint: from.id, number: from.record.number }),
            tracked: self.catalog.tracked_at(Some(from.id))?,
            ..Run::default()
        };
        run.save(&self.catalog.workspace.dir, &begin.run, &self.lock)
    }
}
