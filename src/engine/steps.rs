//! Steps before actions that need no checkpoint.
//!
//! A command that names nothing to destroy may still destroy: `git commit` runs hooks, `npm ci` runs scripts. If the workspace is watched
//! and something changed since the last capture, a step is taken before each action, unless all programs that can run are readers
//! ([`Verdict::only_reads`]). No reply and no list shows these steps.

use super::actions::{ActionNote, note_mishap};
use super::session::Session;
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::records::workspace::Scope;
use crate::error::Code;
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::Verdict;
use crate::model::id::ObjectId;
use crate::sys::interrupt::Interrupt;

impl ActionNote {
    /// Takes the step, on the worker's thread, if the workspace is watched. Returns the checkpoint that has the files as they are now.
    pub(super) fn take_step(&mut self, timeline: &mut Timeline, control: Interrupt<'_>) -> Option<ObjectId> {
        let step = self.step.take().filter(|_| timeline.is_live())?;
        match timeline.take(&step, control) {
            Ok(taken) => {
                self.action.checkpoint = Some(taken.checkpoint.record.ordinal());
                Some(taken.checkpoint.id)
            }
            Err(error) if error.code() == Code::ShuttingDown => None,
            Err(error) => {
                let text = format!("no step was taken before an action: {}", error.text());
                note_mishap(timeline.home(), &text);
                None
            }
        }
    }
}

impl Session {
    /// Returns the step to take before an action that calls for no checkpoint; `None` where it only reads. If the turn has no checkpoint yet,
    /// the step is a base capture.
    pub(super) fn step_before(&self, open: &OpenWorkspace, verdict: &Verdict, reason: &str) -> Option<Box<Take>> {
        if verdict.only_reads() || open.workspace.scope != Scope::Tree {
            return None;
        }
        let (run, turn) = self.recording();
        let main = self.state().turns.checkpoint(&open.workspace.id).and_then(|main| main.id.parse().ok()); // a damaged id is none
        let mut take = Take::of(CheckpointKind::Step, &run, reason);
        (take.draft.turn, take.draft.standing) = (turn, main);
        Some(Box::new(take))
    }
}
