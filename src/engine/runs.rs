//! Runs and their codons: the requests of a session, and the worker's part in them.

use std::path::Path;
use std::sync::PoisonError;

use super::event::{NewRun, Opening};
use super::git_trees::TreeAnswer;
use super::names::recorded;
use super::session::{Reply, Session};
use super::state::SessionState;
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::Taken;
use crate::checkpoint::records::marks::WorkMark;
use crate::checkpoint::runs::at_work::open_mark;
use crate::checkpoint::runs::client::RunClient;
use crate::checkpoint::runs::codon::{CodonMark, Departure, NewCodon};
use crate::checkpoint::runs::run::{ForkPoint, RunDetails, RunEnding};
use crate::error::Result;
use crate::model::redact::redact;
use crate::model::run::run_id;
use crate::sys::clock::now_ms;
use crate::sys::fs::durable::unique_suffix;

/// The longest goal, name or reason that is kept, in characters.
const MAX_TEXT: usize = 400;

/// A run that has begun.
pub struct RunBegun {
    /// The run's id.
    pub run: String,
    /// The branch on which its next typed checkpoint goes, without `refs/heads/`.
    pub branch: String,
    /// The checkpoint that it was forked from.
    pub from: Option<ForkPoint>,
}

/// A run that has ended.
pub struct RunEnded {
    /// The run's id.
    pub run: String,
    /// The checkpoint at its end; `None` if it has nothing to record.
    pub taken: Option<Taken>,
}

/// A codon that has begun.
pub struct CodonBegun {
    /// The id of the codon's run.
    pub run: String,
    /// The codon's id, redacted.
    pub codon: String,
    /// All patterns of the run so far.
    pub tracked: Vec<String>,
}

/// The run of a sub-agent that works in the session of its agent.
pub struct SubAgentRun {
    /// The run's id.
    pub run: String,
    /// The client's own name of it, where that is no id of ours.
    pub named: Option<String>,
    /// The kind of the sub-agent, for people.
    pub goal: Option<String>,
}

/// A run that a session has open.
pub struct OpenRun {
    /// True if the client began it with `run.start`.
    is_begun: bool,
    /// The mark that other processes see; `None` if it could not be set.
    _mark: Option<WorkMark>,
}

/// A checkpoint of a codon.
pub struct CodonMarked {
    /// The id of the codon's run.
    pub run: String,
    /// The checkpoint that was recorded for it.
    pub taken: Taken,
}

impl Session {
    /// Tells git which paths of a work tree have changed since it was given a token.
    pub fn git_changed(&self, top: &Path, token: &str) -> TreeAnswer {
        self.engine.git_trees().answer(top, token)
    }

    /// Continues the session that a client names, or begins it; `true` when it was known before.
    pub(super) fn continue_as(&mut self, session: &str, opening: &Opening) -> bool {
        let run = run_id(session);
        let named = (run != session).then(|| recorded(session, 64));
        let parent = opening.parent.as_deref().map(run_id).filter(|parent| *parent != run);
        let goal = opening.goal.as_deref().map(|goal| recorded(goal, 64));
        let mut known = self.go_on_with(&run);
        if let Some(parent) = parent.as_deref().filter(|_| opening.shares_turn) {
            self.state().works_in(Some(parent));
        }
        let is_above = self.state().above.is_some();
        let top = if is_above { self.engine.sessions().top(&run) } else { None };
        self.sub_agent = None;
        let (named, parent) = match top {
            Some(top) => {
                known = self.go_on_with(&top);
                self.sub_agent = Some(SubAgentRun { run, named, goal });
                (None, None)
            }
            None => (named, parent),
        };
        if self.client.is_none() {
            let known = self.state().client.clone();
            self.client = known;
        }
        self.state().tell_client(self.client.clone(), named, parent);
        known
    }

    /// Begins a run, and makes it the session's own.
    pub fn start_run(&mut self, start: &NewRun, reply: Reply<RunBegun>) {
        let begun = self.begin_run(start);
        reply(self, begun);
    }

    fn begin_run(&mut self, start: &NewRun) -> Result<RunBegun> {
        let begin = self.beginning(start);
        let run = begin.run.clone();
        self.go_on_with(&run);
        let open = self.workspace()?;
        self.keep_open(&open, &run, true);
        // The start of a run waits for no capture at work: a timeline of its own only looks up the branch.
        let branch = Timeline::open(self.engine.home(), open.workspace.clone(), open.in_force().policy.clone())?
            .catalog()
            .branch_of(&run)?;
        self.quietly(&open, move |timeline, _| timeline.start_run(&begin));
        self.capture_base(&open);
        Ok(RunBegun { run, branch, from: None })
    }

    /// Notes the client of the session's run beside the run, which ends with the client's process. A session without a name has no
    /// run of its own.
    pub(super) fn note_client(&self, open: &OpenWorkspace) {
        let mut state = self.state();
        if state.is_named() {
            let (run, client) = (state.run.clone(), self.client_of(&state));
            note_in(&mut state, open, run, client);
        }
    }

    /// Notes the sub-agent of the session beside its run, once it does more than to read.
    pub(super) fn note_sub_agent(&self, open: &OpenWorkspace) {
        let Some(agent) = &self.sub_agent else { return };
        let mut state = self.state();
        let (named, goal, parent) = (agent.named.clone(), agent.goal.clone(), Some(state.run.clone()));
        let client = RunClient { named, parent, goal, ..self.client_of(&state) };
        note_in(&mut state, open, agent.run.clone(), client);
    }

    fn client_of(&self, state: &SessionState) -> RunClient {
        RunClient {
            client: self.client.clone().or_else(|| state.client.clone()),
            named: state.named.clone(),
            parent: state.parent.clone(),
            goal: None,
            process: self.process.clone(),
        }
    }

    /// Returns true if the session has a name, and so a run of its own.
    pub fn has_own_run(&self) -> bool {
        self.state().is_named()
    }

    /// Returns the run to which checkpoints before actions belong, and the open turn.
    pub(super) fn recording(&self) -> (String, Option<String>) {
        let (run, turn) = self.run_and_turn();
        (self.sub_agent.as_ref().map_or(run, |agent| agent.run.clone()), turn)
    }

    /// Ends the run of a sub-agent, if it has recorded anything. The turn and the run of its agent go on.
    fn end_sub_agent(&mut self, run: String, status: RunEnding, reply: Reply<RunEnded>) {
        let (state, _) = self.engine.sessions().get(&run);
        state.lock().unwrap_or_else(PoisonError::into_inner).works_in(None);
        self.ask(
            move |timeline, _, control| {
                let is_known = timeline.catalog().has_run(&run)?;
                let taken = if is_known { timeline.end_run(&run, status, control)? } else { None };
                Ok(RunEnded { run, taken })
            },
            reply,
        );
    }

    /// Notes that the session has a run open.
    fn keep_open(&mut self, open: &OpenWorkspace, run: &str, is_begun: bool) {
        let new = || OpenRun { is_begun: false, _mark: WorkMark::set(&open_mark(&open.workspace.dir, run)) };
        self.open_runs.entry(run.to_owned()).or_insert_with(new).is_begun |= is_begun;
    }

    fn beginning(&self, start: &NewRun) -> RunDetails {
        let made = new_run();
        let named = start.run.as_deref().unwrap_or(&made);
        let run = run_id(named);
        RunDetails {
            named: (run != named).then(|| text(named)),
            client: start.client.as_deref().map(text).or(self.client.clone()),
            parent: start.parent.as_deref().map(run_id),
            goal: start.goal.as_deref().map(text),
            run,
        }
    }

    /// Ends the session's run.
    pub fn end_run(&mut self, status: RunEnding, reply: Reply<RunEnded>) {
        if let Some(agent) = self.sub_agent.take() {
            return self.end_sub_agent(agent.run, status, reply);
        }
        let mut state = self.state();
        let turns = std::mem::take(&mut state.turns);
        state.keep();
        // An event behind the end notes the client again.
        state.noted.clear();
        let run = state.run.clone();
        drop(state);
        self.close_turn(&turns, None);
        let open = self.open_runs.remove(&run);
        self.ask(
            move |timeline, run, control| {
                let taken = timeline.end_run(run, status, control)?;
                // Until its end is recorded, the run is open.
                drop(open);
                Ok(RunEnded { run: run.to_owned(), taken })
            },
            reply,
        );
    }

    /// Makes a run that continues from a checkpoint. The session stays in its own.
    pub fn fork_run(&mut self, selector: String, start: &NewRun, reply: Reply<RunBegun>) {
        let begin = self.beginning(start);
        self.ask(
            move |timeline, _, _| {
                let from = timeline.catalog().resolve(&selector)?;
                timeline.fork_run(&begin, &from)?;
                let branch = timeline.catalog().branch_of(&begin.run)?;
                let origin =
                    ForkPoint { run: from.record.run.clone(), checkpoint: from.id, number: from.record.number };
                Ok(RunBegun { run: begin.run, branch, from: Some(origin) })
            },
            reply,
        );
    }

    /// Begins a codon of the named run, else of the session's own.
    pub fn start_codon(&mut self, run: Option<&str>, codon: NewCodon, reply: Reply<CodonBegun>) {
        let run = self.run_named(run);
        let codon = NewCodon {
            id: redact(&codon.id),
            name: codon.name.as_deref().map(redact),
            tracked: codon.tracked,
            client: self.number,
        };
        // Without its workspace the request fails, and says so.
        if let Ok(open) = self.workspace() {
            self.keep_open(&open, &run, false);
        }
        self.ask(
            move |timeline, _, _| {
                let tracked = timeline.start_codon(&run, &codon)?;
                Ok(CodonBegun { run, codon: codon.id, tracked })
            },
            reply,
        );
    }

    /// Records the end of a codon of the named run, else of the session's own.
    pub fn mark_codon(&mut self, run: Option<&str>, mark: CodonMark, reply: Reply<CodonMarked>) {
        let run = self.run_named(run);
        let mark = CodonMark {
            kind: mark.kind,
            id: mark.id.as_deref().map(redact),
            name: mark.name.as_deref().map(text),
            reason: mark.reason.as_deref().map(text),
            turn: self.run_and_turn().1,
        };
        self.ask(
            move |timeline, _, control| {
                let taken = timeline.mark_codon(&run, &mark, control)?;
                Ok(CodonMarked { run, taken })
            },
            reply,
        );
    }

    fn run_named(&self, named: Option<&str>) -> String {
        named.map_or_else(|| self.run_and_turn().0, run_id)
    }

    /// Records that the client went away: where a codon runs, and where a run is open.
    pub fn end(&mut self) {
        let (own, turn) = self.run_and_turn();
        // The turn of a session with a name may go on in its next connection: each hook has one of its own.
        if self.paused.is_some() {
            self.end_open_turn();
        } else if !self.state().is_named() {
            let turns = self.state().turns.interrupt();
            self.close_turn(&turns, None);
        } else {
            self.end_held_turns();
            if self.reports_all_ends() {
                self.end_actions();
            }
        }
        self.end_autosave();
        let runs = std::mem::take(&mut self.open_runs);
        if runs.is_empty() {
            return;
        }
        let open = match self.workspace() {
            Ok(open) => open,
            Err(error) => return tracing::error!(%error, "no exit checkpoint"),
        };
        for (run, left) in runs {
            let turn = turn.clone();
            let departure = Departure { client: self.number, was_open: left.is_begun && run == own };
            // The worker asks for the other clients of the run.
            drop(left);
            self.quietly(&open, move |timeline, control| timeline.exit(&run, departure, turn, control));
        }
    }
}

/// Notes the client of a run in a workspace, if that is news.
fn note_in(state: &mut SessionState, open: &OpenWorkspace, run: String, client: RunClient) {
    let key = (open.workspace.id.clone(), run);
    if state.noted.get(&key) == Some(&client) {
        return;
    }
    match client.keep(&open.workspace.dir, &key.1) {
        Ok(()) => drop(state.noted.insert(key, client)),
        Err(error) => tracing::warn!(%error, "could not record the client of a run"),
    }
}

fn text(text: &str) -> String {
    recorded(text, MAX_TEXT)
}

/// Returns an id for a run that has none: by time, and unlike every other.
fn new_run() -> String {
    format!("r-{:013}-{}", now_ms(), unique_suffix())
}
