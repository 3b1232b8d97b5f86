//! A session's turns.

use std::sync::{MutexGuard, PoisonError};

use serde_json::json;

use super::session::Session;
use super::words::{run_id, turn_name};
use crate::engine::guard::Turns;
use crate::engine::state::Talk;
use crate::error::{Code, Error, Result};
use crate::protocol::{Id, Turn};

impl Session {
    pub(super) fn turn_start(&mut self, id: Option<Id>, turn: &Turn) -> Result<()> {
        if turn.turn.is_empty() {
            return Err(Error::new(Code::BadRequest, "`turn` must name the turn").field("turn"));
        }
        if let Some(run) = &turn.run {
            self.go_on_with(&run_id(run));
        }
        let is_new = self.change_turns(|turns| turns.start(&turn_name(&turn.turn)));
        if is_new && !self.waits {
            return self.protect_turn(id, turn.turn.clone());
        }
        if is_new {
            self.base_capture()?;
        }
        let notices = self.notices();
        self.reply("turn.start", id, &json!({ "turn": turn.turn, "notices": notices }));
        Ok(())
    }

    pub(super) fn turn_end(&mut self, id: Option<Id>, turn: &Turn) {
        let named = turn_name(&turn.turn);
        self.change_turns(|turns| {
            // Without a name: whichever is open.
            let is_open = turns.current().is_some_and(|current| named.is_empty() || current == named);
            if is_open {
                turns.end();
            }
            is_open
        });
        self.reply("turn.end", id, &json!({ "turn": turn.turn }));
    }

    /// What the session has come to. Not to be held while anything else of the session is asked.
    pub(super) fn talk(&self) -> MutexGuard<'_, Talk> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn run_and_turn(&self) -> (String, Option<String>) {
        let talk = self.talk();
        (talk.run.clone(), talk.turns.current().map(str::to_owned))
    }

    /// Goes on with the session of a run; `true` when it was known before.
    pub(super) fn go_on_with(&mut self, run: &str) -> bool {
        let (talk, known) = self.engine.talks().get(run);
        self.talk = talk;
        known
    }

    /// Keeps the turns when `change` says that it changed them.
    pub(super) fn change_turns(&self, change: impl FnOnce(&mut Turns) -> bool) -> bool {
        let mut talk = self.talk();
        let changed = change(&mut talk.turns);
        if changed {
            talk.keep();
        }
        changed
    }
}
