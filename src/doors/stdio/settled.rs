//! What workers give back, and what is said when they are not back in time.

use std::time::Instant;

use serde_json::json;

use super::answers::{Answer, block, no_block, not_held};
use super::pending::{Before, Pending, Told};
use super::session::Session;
use crate::engine::guard::Slot;
use crate::engine::protect::{Protected, slot_of};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::path::RelPath;
use crate::model::policy::OnFailure;
use crate::protocol::{CheckpointBlock, ErrorReply, List};

impl Session {
    /// Takes the answer of a job. `None`: the job died.
    pub fn finished(&mut self, ticket: u64, answer: Option<Answer>) {
        let died = || Error::new(Code::Internal, "the work ended in a bug; piton goes on").hint("please report it");
        match (self.pending.take(ticket), answer) {
            (Some(Pending::Before(mut before)), Some(Answer::Before(protected, touched, gaps))) => {
                if let Told::Action(reply) = &mut before.told {
                    reply.not_held = not_held(&gaps);
                }
                self.protected(ticket, *before, protected, &touched);
            }
            (Some(Pending::Before(before)), _) => self.protected(ticket, *before, Err(died()), &[]),
            (Some(Pending::Base), answer) => self.base_finished(answer),
            (Some(Pending::Call(name, id)), Some(Answer::Reply(reply, notices))) => {
                match reply {
                    Ok(value) => self.reply(name, id, &value),
                    Err(error) => self.output.send(ErrorReply::line(id.as_ref(), &error)),
                }
                notices.into_iter().for_each(|(name, body)| self.output.notice(name, &body));
            }
            (Some(Pending::Call(_, id)), _) => self.output.send(ErrorReply::line(id.as_ref(), &died())),
            (None, Some(Answer::Notice(name, body))) => self.output.notice(name, &body),
            (Some(Pending::Quiet), Some(Answer::Quiet(Ok(())))) | (None, _) => {}
            (Some(Pending::Quiet), answer) => {
                let error = match answer {
                    Some(Answer::Quiet(Err(error))) => error,
                    _ => died(),
                };
                self.fault(error.text());
                self.output.notice("checkpoint.failed", &json!({ "reason": error.text() }));
            }
        }
    }

    fn base_finished(&mut self, answer: Option<Answer>) {
        self.base_running = false;
        match answer {
            Some(Answer::Base(Ok(_))) => self.base_ready = true,
            Some(Answer::Base(Err(error))) if error.code() == Code::ShuttingDown => {}
            Some(Answer::Base(Err(error))) => {
                self.fault(format!("the base capture failed: {}", error.text()));
                self.output.notice("checkpoint.failed", &json!({ "kind": "turn", "reason": error.text() }));
            }
            _ => self.fault("the base capture ended in a bug".to_owned()),
        }
    }

    /// An event's checkpoint is there, or has failed.
    fn protected(&mut self, ticket: u64, before: Before, protected: Result<Protected>, touched: &[RelPath]) {
        let failed = protected.is_err();
        let checkpoint = match protected {
            Ok(Protected::Taken(taken)) => {
                // A late one may have seen what the action did already: the next action gets one of its own.
                let mut talk = self.talk();
                if before.fills && !before.late && talk.turns.current() == before.turn.as_deref() {
                    talk.turns.fill(&before.workspace, slot_of(&taken.checkpoint));
                    talk.keep();
                }
                drop(talk);
                block(&taken)
            }
            Ok(Protected::Held(checkpoint)) => held_block(&slot_of(&checkpoint)),
            Err(error) => {
                let text = error.text();
                if error.code() == Code::DiskFull {
                    self.output.notice("store.low-disk", &json!({ "reason": text }));
                }
                self.fault(text.clone());
                no_block("failed", Some(text))
            }
        };
        if before.late {
            let dirty = List::of_paths(touched.iter());
            let notice = if failed { "checkpoint.failed" } else { "checkpoint.settled" };
            let mut body = json!({ "pending": format!("p{ticket}"), "checkpoint": checkpoint, "dirty": dirty.items });
            if let Told::Action(reply) = &before.told
                && !reply.not_held.is_empty()
            {
                body["not_held"] = json!(reply.not_held);
            }
            self.output.notice(notice, &body);
            return;
        }
        let hold = (failed && before.on_failure == OnFailure::Hold)
            .then_some("no checkpoint could be taken, and the policy holds the action then");
        self.reply(before.name, before.id, &before.told.with(checkpoint, hold));
    }

    /// The earliest moment at which an event must be answered.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.pending.next_deadline()
    }

    /// Answers `late` to events whose deadline is over; their checkpoints go on.
    pub fn deadlines(&mut self, now: Instant) {
        for ticket in self.pending.overdue(now) {
            let Some(before) = self.pending.before_mut(ticket) else {
                continue;
            };
            before.late = true;
            let mut checkpoint = no_block("late", None);
            checkpoint.pending = Some(format!("p{ticket}"));
            checkpoint.reason = Some("the checkpoint was not finished by the deadline and goes on behind".to_owned());
            let hold = (before.on_failure == OnFailure::Hold)
                .then_some("the checkpoint is late, and the policy holds the action then");
            let reply = before.told.clone().with(checkpoint, hold);
            let (name, id) = (before.name, before.id.clone());
            self.reply(name, id, &reply);
        }
    }
}

/// The block of a checkpoint that holds already what an action may destroy.
pub(super) fn held_block(slot: &Slot) -> CheckpointBlock {
    CheckpointBlock {
        id: Some(slot.id.clone()),
        n: Some(slot.ordinal),
        kind: Some(CheckpointKind::Auto.as_str()),
        ..no_block("held", None)
    }
}
