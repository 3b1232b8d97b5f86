//! Work that was given to workers and is not answered yet.

use std::collections::HashMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::model::policy::OnFailure;
use crate::protocol::{BeforeReply, CheckpointBlock, Id};

/// The answer to an event, all but its checkpoint.
#[derive(Clone)]
pub enum Told {
    Action(Box<BeforeReply>),
    /// The start of a turn, by the client's own name of it.
    Turn(String),
}

impl Told {
    /// The whole answer; `hold` is a further reason to hold an action.
    pub fn with(self, checkpoint: CheckpointBlock, hold: Option<&str>) -> Value {
        match self {
            Told::Action(reply) => json!(BeforeReply { checkpoint, ..(*reply).held(hold) }),
            Told::Turn(turn) => json!({ "turn": turn, "notices": [], "checkpoint": checkpoint }),
        }
    }
}

/// An event that waits for its checkpoint.
pub struct Before {
    /// `tool.before`, `shell.before` or `turn.start`.
    pub name: &'static str,
    pub id: Option<Id>,
    pub told: Told,
    /// Whether the checkpoint is the turn's: not one that may have come too late.
    pub fills: bool,
    pub deadline: Instant,
    pub on_failure: OnFailure,
    /// Workspace id, for the turn's slot.
    pub workspace: String,
    /// The turn for which it is taken; a later one must not be filled by it.
    pub turn: Option<String>,
    /// Set once `late` was answered.
    pub late: bool,
}

/// What is waited for.
pub enum Pending {
    Before(Box<Before>),
    /// A base capture.
    Base,
    /// A request that is answered with what the job gives.
    Call(&'static str, Option<Id>),
    /// Nobody waits: notes, the `exit` checkpoint.
    Quiet,
}

/// All that is pending, by ticket.
#[derive(Default)]
pub struct Table {
    next: u64,
    entries: HashMap<u64, Pending>,
}

impl Table {
    /// A ticket that was not used before.
    pub fn ticket(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Notes what a ticket waits for.
    pub fn put(&mut self, ticket: u64, pending: Pending) {
        self.entries.insert(ticket, pending);
    }

    /// Takes what a ticket waited for.
    pub fn take(&mut self, ticket: u64) -> Option<Pending> {
        self.entries.remove(&ticket)
    }

    /// The event of a ticket.
    pub fn before_mut(&mut self, ticket: u64) -> Option<&mut Before> {
        match self.entries.get_mut(&ticket) {
            Some(Pending::Before(before)) => Some(before),
            _ => None,
        }
    }

    /// Whether the checkpoint of a turn's start is waited for, and its deadline is not over.
    pub fn is_starting(&self) -> bool {
        self.waiting().any(|(_, before)| matches!(before.told, Told::Turn(_)))
    }

    /// The earliest deadline of an event that was not answered yet.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waiting().map(|(_, before)| before.deadline).min()
    }

    /// Tickets of events whose deadline is over and that were not answered yet.
    pub fn overdue(&self, now: Instant) -> Vec<u64> {
        self.waiting().filter(|(_, before)| before.deadline <= now).map(|(ticket, _)| ticket).collect()
    }

    fn waiting(&self) -> impl Iterator<Item = (u64, &Before)> {
        self.entries.iter().filter_map(|(ticket, pending)| match pending {
            Pending::Before(before) if !before.late => Some((*ticket, before.as_ref())),
            _ => None,
        })
    }

    /// Whether anything is waited for.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
