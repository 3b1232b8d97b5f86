//! Runs and their codons: what a session says of them, and what the worker makes of it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answers::{Answer, block};
use super::calls::{self, Called, body};
use super::pending::Pending;
use super::session::Session;
use super::words::{recorded, run_id};
use crate::checkpoint::Timeline;
use crate::checkpoint::runs::codon::{Codon, Mark};
use crate::checkpoint::runs::list::Row;
use crate::checkpoint::runs::run::{Begin, Ending, Origin};
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::redact::redact;
use crate::protocol::{CodonEnd, CodonStart, Id, Rollback, RunEnd, RunFork, RunStart, RunStatus};
use crate::sys::clock::now_ms;
use crate::sys::fs::durable::unique_suffix;
use crate::sys::interrupt::Interrupt;

/// Longest goal, name or reason that is kept, in characters.
const MAX_TEXT: usize = 400;

impl Session {
    pub(super) fn run_start(&mut self, id: Option<Id>, start: &RunStart) -> Result<()> {
        let begin = self.beginning(start.run.as_deref(), start.parent.as_deref(), start.goal.as_deref());
        let begin = Begin { client: start.client.as_deref().map(text).or(begin.client), ..begin };
        let run = begin.run.clone();
        self.go_on_with(&run);
        self.talk().open_run = true;
        let place = self.place()?;
        // Whoever begins a run waits for no capture that may be at work; the branch is only looked up.
        let branch = Timeline::open(self.engine.home(), place.workspace.clone(), place.in_force().policy.clone())?
            .branch_of(&run)?;
        self.quietly(move |timeline, _| timeline.start_run(&begin))?;
        self.base_capture()?;
        self.reply("run.start", id, &json!({ "run": run, "branch": branch }));
        Ok(())
    }

    fn beginning(&self, run: Option<&str>, parent: Option<&str>, goal: Option<&str>) -> Begin {
        let made = new_run();
        let named = run.unwrap_or(&made);
        let run = run_id(named);
        Begin {
            named: (run != named).then(|| text(named)),
            client: self.client.clone(),
            parent: parent.map(run_id),
            goal: goal.map(text),
            run,
        }
    }

    pub(super) fn run_end(&mut self, id: Option<Id>, end: &RunEnd) -> Result<()> {
        let mut talk = self.talk();
        talk.open_run = false;
        talk.turns.end();
        talk.keep();
        let run = talk.run.clone();
        drop(talk);
        let status = match end.status {
            Some(RunStatus::Error) => Ending::Error,
            Some(RunStatus::Completed) | None => Ending::Completed,
        };
        self.codon_runs.remove(&run);
        self.submit_call("run.end", id, move |timeline, control| {
            let taken = timeline.end_run(&run, status, control)?;
            body(&json!({ "run": run, "checkpoint": taken.as_ref().map(block) }))
        })
    }

    pub(super) fn run_fork(&mut self, id: Option<Id>, fork: &RunFork) -> Result<()> {
        let begin = self.beginning(fork.run.as_deref(), fork.parent.as_deref(), fork.goal.as_deref());
        let sha = fork.sha.clone();
        self.submit_call("run.fork", id, move |timeline, _| {
            let from = timeline.resolve(&sha)?;
            timeline.fork_run(&begin, &from)?;
            let branch = timeline.branch_of(&begin.run)?;
            let origin = Origin { run: from.record.run.clone(), checkpoint: from.id, ordinal: from.record.ordinal };
            body(&json!({ "run": begin.run, "branch": branch, "from": origin_value(&origin) }))
        })
    }

    pub(super) fn run_list(&mut self, id: Option<Id>) -> Result<()> {
        self.submit_call("run.list", id, |timeline, _| {
            let (rows, faults) = timeline.runs()?;
            body(&list(&rows, &faults))
        })
    }

    /// The run of a message: the one that it names, else the session's own.
    fn run_of(&self, named: Option<&str>) -> String {
        named.map_or_else(|| self.run_and_turn().0, run_id)
    }

    pub(super) fn codon_start(&mut self, id: Option<Id>, start: &CodonStart) -> Result<()> {
        let run = self.run_of(start.run.as_deref());
        let codon = Codon {
            id: redact(&start.codon_id),
            name: start.name.as_deref().map(redact),
            tracked: start.tracked_files.clone().unwrap_or_default(),
            client: self.number,
        };
        self.codon_runs.insert(run.clone());
        self.submit_call("codon.start", id, move |timeline, _| {
            let tracked = timeline.start_codon(&run, &codon)?;
            body(&json!({ "run": run, "codonId": codon.id, "trackedFiles": tracked }))
        })
    }

    pub(super) fn codon_end(
        &mut self,
        name: &'static str,
        id: Option<Id>,
        (kind, end): (CheckpointKind, &CodonEnd),
    ) -> Result<()> {
        let run = self.run_of(end.run.as_deref());
        let (_, turn) = self.run_and_turn();
        let mark = Mark {
            kind,
            id: end.codon_id.as_deref().map(redact),
            name: end.name.as_deref().map(text),
            reason: end.reason.as_deref().map(text),
            turn,
        };
        self.submit_call(name, id, move |timeline, control| marked(timeline, &run, &mark, control))
    }

    /// A rollback: notices of it are given on while it is done.
    pub(super) fn roll_back(&mut self, name: &'static str, id: Option<Id>, rollback: Rollback) -> Result<()> {
        let (run, _) = self.run_and_turn();
        let finished = Arc::clone(&self.finished);
        self.submit_call(name, id, move |timeline, control| {
            // No ticket is 0: what comes with it is nobody's reply.
            let tell = |name, value| finished(0, Some(Answer::Notice(name, value)));
            calls::rollback(timeline, &rollback, &run, &tell, control)
        })
    }

    /// Records that the client went away: where a codon runs, and where a run is open.
    pub fn end(&mut self) {
        let open = std::mem::take(&mut self.talk().open_run);
        let (own, turn) = self.run_and_turn();
        let mut runs = std::mem::take(&mut self.codon_runs);
        if open {
            runs.insert(own.clone());
        }
        for run in runs {
            let (who, turn) = ((self.number, open && run == own), turn.clone());
            let submitted = self.quietly(move |timeline, control| timeline.exit(&run, who, turn, control));
            if let Err(error) = submitted {
                tracing::error!(%error, "no exit checkpoint");
            }
        }
    }

    /// Gives the worker something that nobody waits for.
    fn quietly(
        &mut self,
        work: impl FnOnce(&mut Timeline, Interrupt<'_>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let ticket = self.pending.ticket();
        let place = self.place()?;
        let accepted =
            place.worker.submit(self.asker(ticket), move |timeline, control| Answer::Quiet(work(timeline, control)));
        if !accepted {
            return Err(super::actions::busy());
        }
        self.pending.put(ticket, Pending::Quiet);
        Ok(())
    }
}

fn marked(timeline: &mut Timeline, run: &str, mark: &Mark, control: Interrupt<'_>) -> Called {
    let taken = timeline.mark_codon(run, mark, control)?;
    let record = &taken.checkpoint.record;
    body(&json!({ "run": run, "codonId": record.codon_id, "checkpoint": block(&taken) }))
}

fn text(text: &str) -> String {
    recorded(text, MAX_TEXT)
}

/// An id for a run that has none: by time, and unlike every other.
fn new_run() -> String {
    format!("r-{:013}-{}", now_ms(), unique_suffix())
}

/// What a run or a branch goes on from.
fn origin_value(origin: &Origin) -> Value {
    json!({ "run": origin.run, "checkpoint": origin.checkpoint.to_string(), "n": origin.ordinal })
}

/// A list of runs, as replies and `--json` carry it.
pub fn list(rows: &[Row], faults: &[String]) -> Value {
    let runs: Vec<Value> = rows.iter().map(run_value).collect();
    json!({ "total": runs.len(), "runs": runs, "faults": faults })
}

/// What a run is at, in a word.
pub fn status_word(row: &Row) -> &'static str {
    match row.state.status {
        _ if row.running.is_some() => "running",
        Some(Ending::Completed) => "completed",
        Some(Ending::Error) => "error",
        Some(Ending::Exit) => "exit",
        None => "open",
    }
}

fn run_value(row: &Row) -> Value {
    let state = &row.state;
    let branches: Vec<Value> = row
        .branches
        .iter()
        .map(|branch| {
            let from = branch.from.as_ref().map(|origin| {
                let mut value = origin_value(origin);
                value["type"] = if origin.run == row.run { "continuation" } else { "fork" }.into();
                value
            });
            json!({ "branch": branch.name, "from": from, "checkpoints": branch.checkpoints.len(),
                "tip": branch.checkpoints.first().map(ToString::to_string) })
        })
        .collect();
    let last = row.last.as_ref().map(|checkpoint| {
        json!({ "n": checkpoint.record.ordinal, "id": checkpoint.id.to_string(), "kind": checkpoint.record.kind.as_str(),
            "codonId": checkpoint.record.codon_id, "codonName": checkpoint.record.codon_name, "time": checkpoint.record.time })
    });
    json!({
        "run": row.run, "named": state.named, "client": state.client, "parent": state.parent, "goal": state.goal,
        "status": status_word(row), "started": (!row.since.is_empty()).then_some(&row.since), "ended": state.ended,
        "from": state.origin.as_ref().map(origin_value), "codon": row.running.as_ref().map(|codon| &codon.id),
        "trackedFiles": state.tracked, "checkpoints": row.checkpoints, "branches": branches, "last": last,
    })
}
