//! A session's turns.

use std::time::Instant;

use super::decision::{Decision, TurnDecision};
use super::event::{Action, TurnStart};
use super::guard::{TurnHolder, Turns};
use super::names::{prompt_words, turn_name};
use super::session::{Reply, Session};
use super::told::Note;
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::history::turn_end::TurnName;
use crate::checkpoint::records::process_names::{is_gone, own_name};
use crate::checkpoint::records::state::WorkspaceState;
use crate::checkpoint::runs::client::RunClient;
use crate::error::{Code, Error};
use crate::model::run::run_id;
use crate::model::text::printable;
use crate::sys::clock::now_ms;

impl Session {
    /// Begins a turn with an action, if the client reports no turns and none is open.
    pub(super) fn begin_turn_with(&mut self, action: &Action) {
        let Some(paused) = &mut self.paused else { return };
        paused.running += usize::from(action.id.is_some());
        paused.put_off(Instant::now());
        let start = TurnStart { turn: String::new(), run: None, prompt: None, for_action: true };
        // An error is the action's own too, and its answer has it.
        self.start_turn(start, Box::new(|_, _| {}));
    }

    /// Notes that an action has ended, for a turn that ends after a pause.
    pub(super) fn rest_after_action(&mut self) {
        if let Some(paused) = self.paused.as_mut().filter(|paused| paused.ends_at.is_some()) {
            paused.running = paused.running.saturating_sub(1);
            paused.put_off(Instant::now());
        }
    }

    /// Ends the open turn if its client has paused for long enough.
    pub(super) fn end_paused_turn(&mut self, now: Instant) {
        if let Some(paused) = self.paused.as_mut().filter(|paused| paused.ends_at.is_some_and(|end| end <= now)) {
            (paused.running, paused.ends_at) = (0, None);
            self.end_open_turn();
        }
    }

    /// Ends the open turn, if there is one; nobody waits for what it has changed.
    pub(super) fn end_open_turn(&mut self) {
        let turns = {
            let mut state = self.state();
            let turns = std::mem::take(&mut state.turns);
            state.keep();
            turns
        };
        self.close_turn(&turns, None);
    }

    /// Begins a turn.
    pub(super) fn start_turn(&mut self, start: TurnStart, reply: Reply<Decision>) {
        if start.turn.is_empty() && !start.for_action {
            let error = Error::new(Code::BadRequest, "`turn` must contain the turn's id").field("turn");
            return reply(self, Err(error));
        }
        if let Some(run) = &start.run {
            self.go_on_with(&run_id(run));
        }
        self.state().refresh();
        if self.goes_on_with_taken_over() && self.state().turns.name() != Some(&turn_name(&start.turn)) {
            self.interrupt_turn();
        }
        self.end_abandoned_turn();
        let before = self.state().turns.clone();
        let name = match start.turn.is_empty() {
            true => before.name().map_or_else(|| format!("t{}", now_ms()), str::to_owned),
            false => start.turn,
        };
        // A sub-agent's turn is its agent's, whatever the client calls it (Codex gives it an id of its own).
        let goes_on = self.sub_agent.is_some() && before.current().is_some();
        let prompt = start.prompt.filter(|_| !goes_on).and_then(|prompt| self.recorded_prompt(&prompt));
        let mut is_new = false;
        self.change_turns(|turns| {
            is_new = !goes_on && turns.start(&turn_name(&name));
            turns.tell_prompt(prompt) || is_new
        });
        self.hold_turn();
        if is_new {
            // A client that tells of no end has ended its turn by the next one.
            self.close_turn(&before, None);
        }
        let mut decision = TurnDecision { turn: name, notices: Vec::new(), protection: None };
        let workspace = match self.workspace() {
            Err(error) if is_new => return reply(self, Err(error)),
            found => found.ok(),
        };
        if let Some(workspace) = &workspace {
            self.note_client(workspace);
        }
        if let Some(workspace) = workspace.as_ref().filter(|_| is_new) {
            self.begin_turn_in(workspace);
            if !self.waits {
                return self.protect_turn(workspace, decision, reply);
            }
            self.capture_base(workspace);
        }
        // The answer to the action has them, which is the one that is read.
        if !start.for_action {
            decision.notices = self.notices(workspace.as_deref(), Vec::new());
        }
        reply(self, Ok(Decision::Turn(decision)));
    }

    /// Returns the first words of a prompt, as far as the settings have them recorded.
    fn recorded_prompt(&mut self, prompt: &str) -> Option<String> {
        let open = self.workspace().ok()?; // without a workspace there are no settings, and no turn begins
        open.in_force().policy.records_prompts.then(|| prompt_words(prompt)).flatten()
    }

    /// Ends a turn, and writes down what it has changed.
    pub(super) fn end_turn(&mut self, turn: String, reply: Reply<Decision>) {
        let reply: Reply<Decision> = Box::new(|session, decided| {
            // The end of a turn is a person's to look at. Where the model is not told now, it is told when it works on.
            if let (Ok(Decision::TurnEnded { notices, .. }), true, false) =
                (&decided, session.tells_model, session.reaches_model)
            {
                session.keep_notes(Note::others(notices.iter().cloned()));
            }
            reply(session, decided);
        });
        let named = turn_name(&turn);
        self.state().refresh();
        let before = self.state().turns.clone();
        let is_sub_agent = self.sub_agent.is_some();
        let is_ended = self.change_turns(|turns| {
            // An end without a name is the open turn's; a sub-agent ends no turn that it does not name.
            let is_own = named.is_empty() && !is_sub_agent;
            let is_meant = turns.name().is_some_and(|name| is_own || name == named);
            if is_meant {
                turns.end();
            }
            is_meant
        });
        let decision = Decision::TurnEnded { turn, notices: Vec::new() };
        // An interrupted turn has been closed before.
        match is_ended && !before.is_interrupted() {
            true => self.close_turn(&before, Some((decision, reply))),
            false => reply(self, Ok(decision)),
        }
    }

    /// Follows the open turn before an action of it: an interrupted one is continued, and ends with this connection.
    pub(super) fn follow_turn(&mut self) {
        self.state().refresh();
        self.goes_on_with_taken_over();
        self.end_abandoned_turn();
        if self.sub_agent.is_none() && self.state().turns.is_interrupted() {
            self.change_turns(Turns::resume);
        }
        self.hold_turn();
    }

    /// Ends the turns and runs that killed processes have left open, before this client's work begins.
    pub(super) fn end_left_runs(&mut self, workspace: &OpenWorkspace) {
        self.quietly(workspace, |timeline, control| {
            if let Err(error) = timeline.end_left_runs(control) {
                tracing::warn!(%error, "could not end the turns of a killed process");
            }
            Ok(())
        });
    }

    /// Has the open turn of a named session end with this connection, if the client keeps it.
    fn hold_turn(&mut self) {
        let is_named = self.state().is_named();
        if !is_named || !self.keeps_connection() {
            return;
        }
        let holder = self.as_holder();
        if self.change_turns(|turns| turns.hold(&holder)) {
            let run = self.state().run.clone();
            self.held_runs.insert(run);
        }
    }

    /// Returns the name under which this connection holds turns.
    fn as_holder(&self) -> TurnHolder {
        TurnHolder { process: own_name().to_owned(), session: self.number }
    }

    /// Returns true if the process that had the connection of the open turn is gone: it was killed.
    fn is_turn_abandoned(&self) -> bool {
        self.state().turns.holder().is_some_and(|holder| is_gone(&holder.process))
    }

    /// Ends the open turn if it is abandoned.
    fn end_abandoned_turn(&mut self) {
        if self.is_turn_abandoned() {
            self.interrupt_turn();
        }
    }

    /// Has an abandoned turn go on with this connection until the client's next event says more: the client has started piton again, and
    /// an action of the turn may be at work. If the client itself has ended, the turn ends too.
    pub(super) fn take_turn_over(&mut self, workspace: &OpenWorkspace) {
        if !self.state().is_named() || !self.is_turn_abandoned() {
            return;
        }
        let run = self.run_and_turn().0;
        let client = RunClient::load(&workspace.workspace.dir, &run);
        if client.and_then(|client| client.is_alive()) == Some(false) {
            return;
        }
        let Some(turn) = self.open_turn() else { return };
        self.held_runs.insert(run.clone());
        self.taken_over = Some(run);
        // Other processes of the session, such as git hooks, must not take the turn for abandoned.
        let holder = self.as_holder();
        self.change_turns(|turns| turns.hold(&holder));
        let turn = TurnName { held_by: Some(own_name().to_owned()), ..turn };
        // A workspace that is gone has no log to note it in.
        for place in turn.places.iter().filter_map(|place| self.engine.open(place).ok()).collect::<Vec<_>>() {
            let turn = turn.clone();
            self.quietly(&place, move |timeline, _| timeline.hold_turn(&turn));
        }
    }

    /// Returns true if the run's turn is one that this connection took over, for the first event of its client.
    fn goes_on_with_taken_over(&mut self) -> bool {
        let run = self.state().run.clone();
        self.taken_over.take_if(|taken| *taken == run).is_some()
    }

    fn interrupt_turn(&mut self) {
        let ended = {
            let mut state = self.state();
            let ended = state.turns.interrupt();
            state.keep();
            ended
        };
        self.close_turn(&ended, None);
    }

    /// Ends the turns that end with this connection. The client said nothing of their end.
    pub(super) fn end_held_turns(&mut self) {
        let own = self.run_and_turn().0;
        for run in std::mem::take(&mut self.held_runs) {
            self.go_on_with(&run);
            // Another connection of the session may have taken it over.
            if self.state().turns.holder() == Some(&self.as_holder()) || self.is_turn_abandoned() {
                self.interrupt_turn();
            }
        }
        self.go_on_with(&own);
    }

    /// Writes the turns when `change` says that it changed them.
    fn change_turns(&self, change: impl FnOnce(&mut Turns) -> bool) -> bool {
        let mut state = self.state();
        let changed = change(&mut state.turns);
        if changed {
            state.keep();
        }
        changed
    }
}

/// Switches the guard on where an agent has switched it off, and returns the sentence for the person.
pub(super) fn guard_again(timeline: &mut Timeline) -> Option<String> {
    if !timeline.catalog().state().off_by_agent {
        return None;
    }
    let root = printable(&timeline.workspace().path.to_string_lossy());
    match timeline.change_state(WorkspaceState::switch_on) {
        Ok(()) => Some(format!(
            "The agent switched the guard of {root} off. piton switched it on again at the end of that turn."
        )),
        Err(error) => Some(format!(
            "The agent switched the guard of {root} off, and piton cannot switch it on ({}). Try `piton on`.",
            error.text()
        )),
    }
}
