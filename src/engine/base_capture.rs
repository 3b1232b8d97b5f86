//! The capture that a session begins with, in the background.

use std::sync::Arc;

use super::decision::Notice;
use super::job::Answer;
use super::names::guard_in_force;
use super::protect::{Protected, Wanted, begin_turn};
use super::session::Session;
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::records::workspace::Scope;
use crate::error::{Code, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::Guard;

impl Session {
    /// Starts capturing in the background, so that the first destructive action need not wait for it.
    pub(super) fn capture_base(&mut self, workspace: &OpenWorkspace) {
        let (run, turn) = self.run_and_turn();
        let record = &workspace.workspace;
        let is_off = || guard_in_force(&workspace.in_force().policy, &record.dir) == Guard::Off;
        if self.is_base_running || record.scope != Scope::Tree || is_off() {
            return;
        }
        let later = Arc::clone(&self.later);
        let mut take = Take::of(CheckpointKind::Turn, &run, "base capture");
        take.draft.turn = turn;
        let begun = self.open_turn();
        let done = move |timeline: &mut Timeline, done: Result<Protected>| -> Answer {
            if let (Some(turn), Ok(base)) = (begun, &done) {
                begin_turn(timeline, &turn, base);
            }
            Box::new(move || {
                later(Box::new(move |session| {
                    session.jobs -= 1;
                    session.base_captured(done.map(drop));
                }));
            })
        };
        // A worker that ends takes none, and the first action gets its checkpoint all the same.
        if workspace.worker.capture_base(Wanted::base(take, Box::new(done))) {
            // In time, because the worker's answer waits for the session's lock, which is held here.
            self.is_base_running = true;
            self.jobs += 1;
        }
    }

    fn base_captured(&mut self, done: Result<()>) {
        self.is_base_running = false;
        self.has_base |= done.is_ok();
        match done {
            Err(error) if error.code() != Code::ShuttingDown => {
                self.fault(format!("the base capture failed: {}", error.text()));
                self.tell(Notice::JobFailed { reason: error.text(), kind: Some(CheckpointKind::Turn) });
            }
            _ => {}
        }
    }
}
