//! Turns and actions at work: the notes of their beginnings and ends, by which the end of a turn knows what is its own.

use std::path::PathBuf;

use super::journal::{Line, TurnEnd, quoted};
use super::turn_end::{EndedTurn, TurnName, TurnState};
use crate::checkpoint::capture::capturer::Capturer;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::action_window::{ActionWindow, EndedCall};
use crate::checkpoint::records::process_names::own_name;
use crate::checkpoint::records::windows::OpenTurn;
use crate::checkpoint::runs::client::RunClient;
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::sys::clock::{now_ms, rfc3339, wall_clock_offset};
use crate::sys::interrupt::Interrupt;

/// An action that is about to begin.
#[derive(Clone, Debug, Default)]
pub struct NewAction {
    /// The name of the actor: of a run, or of a session whose run is shared.
    pub actor: String,
    /// The client's id of the action, if it has one.
    pub action: Option<String>,
    /// The digest of the tool and its arguments.
    pub call: Option<String>,
    /// The paths of this workspace that it names, each with all below it.
    pub named: Vec<RelPath>,
    /// The paths of this workspace that it creates or appends to, without what is below them.
    pub alone: Vec<RelPath>,
    /// True if it may move HEAD: it names git.
    pub moves_head: bool,
    /// True if it may change paths that it does not name.
    pub and_others: bool,
    /// True if it changes those by git alone.
    pub by_git: bool,
    /// True if it only deletes.
    pub only_deletes: bool,
    /// True if it starts a background job.
    pub leaves_work: bool,
    /// True if this process alone can report its end.
    pub is_ended_here: bool,
    /// The moment at which it began, if that may be before the note.
    pub from: Option<i64>,
    /// The ordinal of the checkpoint that protects it, if that was taken before it began.
    pub checkpoint: Option<u64>,
}

impl Timeline {
    /// Notes that a turn begins in this workspace, as the checkpoint `base` has just captured it. A turn that is open already goes on.
    ///
    /// # Errors
    /// When the log of actions cannot be written: the turn will not be known.
    pub fn begin_turn(&mut self, turn: &TurnName, base: ObjectId) -> Result<()> {
        if let Err(error) = self.list_late_deletions() {
            tracing::warn!(%error, "deletions after the end of a turn cannot be listed");
        }
        let (catalog, capturer) = self.parts();
        let mut log = catalog.windows.borrow_mut();
        // A process may be late with the note of one that has ended.
        if log.windows()?.turn(&turn.key).is_some() || log.windows()?.has_ended(&turn.key) {
            return Ok(());
        }
        let since = capturer.seen().asked();
        capturer.seen().begin(&catalog.workspace.path);
        let open = OpenTurn {
            key: turn.key.clone(),
            run: turn.run.clone(),
            actor: turn.actor.clone(),
            turn: turn.turn.clone(),
            prompt: turn.prompt.clone(),
            client: turn.client.clone(),
            is_agents: turn.is_agents,
            base,
            since,
            clock: Some(wall_clock_offset()),
            began: rfc3339(now_ms()),
            places: turn.places.clone(),
            op: None,
            is_later_part: false,
            restored: Vec::new(),
            held_by: turn.held_by.clone(),
            is_of_earlier_boot: false,
        };
        log.begin_turn(&open, &capturer.seen().take())
    }

    /// Notes in which workspaces a turn acts by now.
    ///
    /// # Errors
    /// When the log of actions cannot be written.
    pub fn note_places(&mut self, key: &str, places: &[PathBuf]) -> Result<()> {
        let (catalog, _) = self.parts();
        catalog.windows.borrow_mut().note_places(key, places)
    }

    /// Notes that an action begins. `turn` begins in this workspace with it, if it has not yet; its base is captured then.
    ///
    /// # Errors
    /// Returns the errors of the capture, and one when the log of actions cannot be written.
    pub fn begin_action(&mut self, turn: Option<&TurnName>, action: &NewAction, control: Interrupt<'_>) -> Result<()> {
        // A process may be late with the note: nobody would tell of the action's end any more.
        if let Some(turn) = turn
            && self.catalog().windows.borrow_mut().windows()?.has_ended(&turn.key)
        {
            return Ok(());
        }
        if let Some(turn) = turn
            && self.catalog().windows.borrow_mut().windows()?.turn(&turn.key).is_none()
        {
            let mut take = Take::of(CheckpointKind::Turn, &turn.run, "base capture");
            take.draft.turn = Some(turn.turn.clone());
            let base = self.take(&take, control)?.checkpoint.id;
            self.begin_turn(turn, base)?;
        }
        if let Some(turn) = turn {
            self.hold_turn(turn)?;
        }
        let (catalog, capturer) = self.parts();
        let at = moment(catalog, capturer);
        let window = ActionWindow {
            actor: action.actor.clone(),
            action: action.action.clone(),
            call: action.call.clone(),
            named: quoted(&action.named),
            alone: quoted(&action.alone),
            moves_head: action.moves_head,
            and_others: action.and_others,
            by_git: action.by_git,
            only_deletes: action.only_deletes,
            leaves_work: action.leaves_work,
            by: action.is_ended_here.then(|| own_name().to_owned()),
            from: action.from.map_or(at, |from| from.min(at)),
            checkpoint: action.checkpoint,
            ..ActionWindow::default()
        };
        let seen = capturer.seen().take();
        catalog.windows.borrow_mut().begin(window, &seen)
    }

    /// Notes the process with whose connection an open turn ends by now.
    ///
    /// # Errors
    /// When the log of actions cannot be written.
    pub fn hold_turn(&mut self, turn: &TurnName) -> Result<()> {
        let mut log = self.catalog().windows.borrow_mut();
        let is_news = |open: &&OpenTurn| turn.held_by.is_some() && open.held_by != turn.held_by;
        let Some(open) = log.windows()?.turn(&turn.key).filter(is_news).cloned() else { return Ok(()) };
        log.begin_turn(&OpenTurn { held_by: turn.held_by.clone(), ..open }, &[])
    }

    /// Notes that an action of an actor has ended.
    ///
    /// # Errors
    /// When the log of actions cannot be written.
    pub fn end_action(&mut self, actor: &str, ended: &EndedCall) -> Result<()> {
        let (catalog, capturer) = self.parts();
        let at = moment(catalog, capturer);
        let seen = capturer.seen().take();
        catalog.windows.borrow_mut().end(actor, ended, at, &seen)
    }

    /// Notes that no end of an actor's open actions will be reported any more; `is_cut` if its client's process has ended.
    ///
    /// # Errors
    /// When the log of actions cannot be written.
    pub fn leave_actions(&mut self, actor: &str, is_cut: bool) -> Result<()> {
        let (catalog, capturer) = self.parts();
        let at = moment(catalog, capturer);
        let seen = capturer.seen().take();
        catalog.windows.borrow_mut().leave(actor, is_cut, at, &seen)
    }

    /// Ends a turn, and writes down what it changed in this workspace. `None` if that is nothing, or the turn was not open here: then
    /// it does not begin any more, for the process that was to note its beginning may be late.
    ///
    /// # Errors
    /// Returns the errors of the capture and of the journal; the turn stays open then.
    pub fn end_turn(&mut self, key: &str, control: Interrupt<'_>) -> Result<Option<EndedTurn>> {
        self.end_turn_as(key, TurnState::Ended, control)
    }

    /// Ends a turn as [`Timeline::end_turn`] does. Its client or its connection has ended without `turn.end`.
    ///
    /// # Errors
    /// As [`Timeline::end_turn`].
    pub fn interrupt_turn(&mut self, key: &str, control: Interrupt<'_>) -> Result<Option<EndedTurn>> {
        self.end_turn_as(key, TurnState::Interrupted, control)
    }

    fn end_turn_as(&mut self, key: &str, state: TurnState, control: Interrupt<'_>) -> Result<Option<EndedTurn>> {
        let open = self.catalog().windows.borrow_mut().windows()?.turn(key).cloned();
        let Some(turn) = open else {
            self.catalog().windows.borrow_mut().end_turn(key)?;
            return Ok(None);
        };
        Ok(self.end_turns_as(&[turn], state, control)?.into_iter().flatten().next())
    }

    /// Ends open turns, all with one capture.
    fn end_turns_as(
        &mut self,
        turns: &[OpenTurn],
        state: TurnState,
        control: Interrupt<'_>,
    ) -> Result<Vec<Option<EndedTurn>>> {
        for turn in turns {
            self.leave_actions(&turn.actor, state == TurnState::Interrupted)?;
        }
        let ended = self.lock("turn.end")?.end_turns(turns, state, control)?;
        let (catalog, capturer) = self.parts();
        if catalog.windows.borrow_mut().windows()?.turns.is_empty() {
            capturer.seen().end();
        }
        Ok(ended)
    }

    /// Ends the open turns of runs whose client's process has ended, and those that nothing can end any more.
    ///
    /// # Errors
    /// As [`Timeline::end_turn`].
    pub(crate) fn end_left_turns(&mut self, runs: &[String], control: Interrupt<'_>) -> Result<()> {
        let left: Vec<OpenTurn> = {
            let mut log = self.catalog().windows.borrow_mut();
            let windows = log.windows()?;
            let dir = &self.workspace().dir;
            let is_alive = |run: &str| RunClient::load(dir, run).and_then(|client| client.is_alive());
            let is_left =
                |turn: &&OpenTurn| runs.contains(&turn.run) || windows.is_abandoned(turn, || is_alive(&turn.run));
            windows.turns.iter().filter(is_left).cloned().collect()
        };
        // Most of the time there is none, and no lock is needed.
        if left.is_empty() {
            return Ok(());
        }
        self.end_turns_as(&left, TurnState::Interrupted, control).map(drop)
    }

    /// Notes that an undo has stopped at a turn and restored nothing: the next one takes an older step.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(super) fn pass_turn(&mut self, op: &str) -> Result<()> {
        let locked = self.lock("passing a turn")?;
        let history = locked.catalog.history()?;
        let Some(turn) = history.turns.iter().find(|turn| turn.op == op && !turn.is_passed) else { return Ok(()) };
        locked.append(&[Line::Turn(Box::new(TurnEnd { is_passed: true, ..TurnEnd::clone(turn) }))])
    }

    /// Writes down what the open turns have changed so far, so that it can be looked at and undone.
    ///
    /// # Errors
    /// As [`Timeline::end_turn`].
    pub fn settle_turns(&mut self, control: Interrupt<'_>) -> Result<()> {
        self.end_left_runs(control)?;
        let settled = self.settle_open_turns(control);
        self.list_late_deletions()?;
        settled
    }

    fn settle_open_turns(&mut self, control: Interrupt<'_>) -> Result<()> {
        // Most of the time none is open, and no lock is needed.
        if self.catalog().windows.borrow_mut().windows()?.turns.is_empty() {
            return Ok(());
        }
        self.lock("writing turns down")?.settle_turns(control)
    }
}

/// Asks for the changes up to now, and returns the moment of that.
fn moment(catalog: &Catalog, capturer: &mut Capturer) -> i64 {
    capturer.seen().begin(&catalog.workspace.path);
    capturer.mark_moment(&catalog.workspace.path);
    capturer.seen().asked()
}
