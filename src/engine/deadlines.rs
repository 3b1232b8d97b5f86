//! The events that wait for their checkpoints, and the answer `late` where one is not there in time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::collision_notes::CollisionPart;
use super::collisions::{self, CollisionAnswer};
use super::decision::{Decision, Notice, Protection, Settled};
use super::links::{LinkedPlaces, OpaqueAction};
use super::paused_turns::PausedTurns;
use super::protect::{NamedCapture, Protected, turn_checkpoint};
use super::session::{Reply, Session};
use super::unguarded::{UnguardedAction, keep_unguarded};
use crate::checkpoint::catalog::gaps::{Gap, recorded};
use crate::checkpoint::history::collision::Collision;
use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;
use crate::model::policy::OnFailure;

/// An event that waits for its checkpoint.
pub(super) struct Awaited {
    /// The decision, all but the checkpoint.
    pub decision: Decision,
    /// `None` once `late` was answered.
    pub reply: Option<Reply<Decision>>,
    /// True if the checkpoint counts for the turn. One that may have come too late does not.
    pub is_turns: bool,
    /// The time at which `late` is answered.
    pub deadline: Instant,
    /// The policy's wish for a checkpoint that fails.
    pub on_failure: OnFailure,
    /// The answer to collisions.
    pub collision: CollisionAnswer,
    /// The root of the workspace, if that is not the action's own.
    pub root: Option<PathBuf>,
    /// The workspace's id, by which the turn remembers its checkpoint.
    pub workspace: String,
    /// The turn for which it is taken; a later one must not get it.
    pub turn: Option<String>,
    /// The capture of just the named paths, which an answer `late` tells of.
    pub named: NamedCapture,
    /// The action, to be kept if it runs without its checkpoint.
    pub unguarded: Option<UnguardedAction>,
    /// The action, if it may also change files behind the links of the workspace.
    pub opaque: Option<Box<OpaqueAction>>,
}

/// An answer that waits for a note, and is given without it at its deadline.
pub(super) struct Behind {
    /// The answer.
    pub decision: Decision,
    /// The way to give it.
    pub reply: Reply<Decision>,
    /// The time at which it is given in any case.
    pub deadline: Instant,
}

/// The result of the work for an event.
pub(super) struct Outcome {
    /// The checkpoint, or why there is none.
    pub protected: Result<Protected>,
    /// Captured files that were touched after the event came.
    pub touched: Vec<RelPath>,
    /// Paths that the action names and no checkpoint holds.
    pub not_held: Vec<Gap>,
    /// The uncommitted work of others that the action would destroy.
    pub collisions: Vec<Collision>,
    /// The places outside of the workspace that the action may reach through links.
    pub linked: LinkedPlaces,
    /// The time for which a workspace that is not watched was scanned for a step.
    pub scanned: Duration,
}

impl Outcome {
    /// Returns the result of work that failed.
    pub(super) fn failed(error: Error) -> Outcome {
        Outcome {
            protected: Err(error),
            touched: Vec::new(),
            not_held: Vec::new(),
            collisions: Vec::new(),
            linked: LinkedPlaces::default(),
            scanned: Duration::ZERO,
        }
    }
}

/// All events that wait, by ticket.
#[derive(Default)]
pub struct Deadlines {
    /// The ticket that was given last; 0 at the beginning.
    next: u64,
    /// The events whose checkpoints have not come yet, by ticket.
    awaited: HashMap<u64, Awaited>,
    /// The answers that wait for a note, by ticket.
    behind: HashMap<u64, Behind>,
}

impl Deadlines {
    /// Adds a deadline, and returns its ticket.
    pub(super) fn add(&mut self, awaited: Awaited) -> u64 {
        self.next += 1;
        self.awaited.insert(self.next, awaited);
        self.next
    }

    /// Adds an answer that waits for a note, and returns its ticket.
    pub(super) fn add_behind(&mut self, behind: Behind) -> u64 {
        self.next += 1;
        self.behind.insert(self.next, behind);
        self.next
    }

    /// Removes an answer that waits for a note.
    pub(super) fn remove_behind(&mut self, ticket: u64) -> Option<Behind> {
        self.behind.remove(&ticket)
    }

    /// Removes the deadline of a ticket.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<Awaited> {
        self.awaited.remove(&ticket)
    }

    /// Returns the number of the event that comes next.
    pub(super) fn next_ticket(&self) -> u64 {
        self.next + 1
    }

    /// Returns true if nothing is waited for.
    pub fn is_empty(&self) -> bool {
        self.awaited.is_empty() && self.behind.is_empty()
    }

    fn unanswered(&self) -> impl Iterator<Item = (u64, &Awaited)> {
        self.awaited.iter().filter(|(_, awaited)| awaited.reply.is_some()).map(|(ticket, awaited)| (*ticket, awaited))
    }
}

impl Session {
    /// Returns the earliest moment at which an event must be answered, or a turn ends.
    pub fn next_deadline(&self) -> Option<Instant> {
        let behind = self.deadlines.behind.values().map(|behind| behind.deadline);
        let turn = self.paused.as_ref().and_then(PausedTurns::ends_at);
        self.deadlines.unanswered().map(|(_, awaited)| awaited.deadline).chain(behind).chain(turn).min()
    }

    /// Answers `late` to events whose deadline is over; their captures continue. Ends a turn after which its client has paused.
    pub fn answer_late(&mut self, now: Instant) {
        self.end_paused_turn(now);
        let behind = self.deadlines.behind.iter().filter(|(_, behind)| behind.deadline <= now);
        for ticket in behind.map(|(ticket, _)| *ticket).collect::<Vec<_>>() {
            self.caught_up(ticket, Vec::new());
        }
        let is_over = |(_, awaited): &(u64, &Awaited)| awaited.deadline <= now;
        let overdue: Vec<u64> = self.deadlines.unanswered().filter(is_over).map(|(ticket, _)| ticket).collect();
        for ticket in overdue {
            let Some(awaited) = self.deadlines.awaited.get_mut(&ticket) else { continue };
            let Some(reply) = awaited.reply.take() else { continue };
            let named = awaited.named.tell().map(Box::new);
            let unguarded = awaited.unguarded.take().filter(|action| named.is_none() || action.is_wide());
            let hold = (awaited.on_failure == OnFailure::Hold)
                .then_some("the checkpoint is late, so the policy blocks the action");
            let mut decision = awaited.decision.clone();
            if let (Decision::Action(action), Some(named)) = (&mut decision, &named) {
                action.not_held = recorded(&named.coverage);
            }
            let decision = with(decision, Protection::Late { ticket, named }, hold);
            keep_unguarded(unguarded, &decision);
            reply(self, Ok(decision));
        }
    }

    /// Answers an event whose checkpoint is there, or has failed.
    pub(super) fn protected(&mut self, ticket: u64, outcome: Outcome) {
        let Some(mut awaited) = self.deadlines.remove(ticket) else { return };
        let reply = awaited.reply.take();
        let protection = self.remembered(&awaited, outcome.protected, reply.is_none());
        let failed = matches!(protection, Protection::Failed(_));
        let Some(reply) = reply else {
            let Outcome { touched, not_held, collisions, linked, .. } = outcome;
            let root = awaited.root;
            // The action has begun: nothing behind the links can be saved in time.
            self.note_lost(&linked.saved.into_iter().chain(linked.left_out).collect::<Vec<_>>());
            // A file that changed meanwhile may not be in the checkpoint as it was.
            let is_touched = collisions.iter().flat_map(|one| &one.paths).any(|path| touched.contains(path));
            let late = Protection::NotNeeded(None);
            let protection_then = if is_touched { &late } else { &protection };
            let part = CollisionPart { root: root.as_deref(), collisions: &collisions, protection: protection_then };
            if let Some(note) = awaited.collision.late(&part) {
                self.keep_notes(vec![note]);
            }
            return self.tell(Notice::Settled(Box::new(Settled { ticket, root, protection, touched, not_held })));
        };
        if let Decision::Action(action) = &mut awaited.decision {
            action.not_held = outcome.not_held;
            let (root, collisions) = (awaited.root.as_deref(), outcome.collisions.as_slice());
            collisions::add(action, &CollisionPart { root, collisions, protection: &protection }, awaited.collision);
        }
        let hold = (failed && awaited.on_failure == OnFailure::Hold)
            .then_some("no checkpoint could be taken, so the policy blocks the action");
        let decision = with(awaited.decision, protection, hold);
        keep_unguarded(awaited.unguarded, &decision);
        let Some(mut opaque) = awaited.opaque.filter(|_| !outcome.linked.is_nothing()) else {
            return reply(self, Ok(decision));
        };
        opaque.action.wait = Some(awaited.deadline.saturating_duration_since(Instant::now()));
        self.protect_behind(*opaque, outcome.linked, awaited.on_failure, decision, reply);
    }

    /// Notes the checkpoint for the turn, or the error for the session.
    fn remembered(&mut self, awaited: &Awaited, protected: Result<Protected>, is_late: bool) -> Protection {
        match protected {
            Ok(Protected::Taken(taken)) => {
                let mut state = self.state();
                // A late checkpoint may hold effects of its action: it must not protect the next one, which gets its
                // own.
                if awaited.is_turns && !is_late && state.turns.current() == awaited.turn.as_deref() {
                    state.turns.fill(&awaited.workspace, turn_checkpoint(&taken.checkpoint));
                    state.keep();
                }
                drop(state);
                Protection::Taken(taken)
            }
            Ok(Protected::Held(checkpoint)) => Protection::Held(turn_checkpoint(&checkpoint)),
            Err(error) => {
                let reason = error.text();
                if error.code() == Code::DiskFull {
                    self.tell(Notice::LowDisk { reason: reason.clone() });
                }
                self.fault(reason.clone());
                Protection::Failed(reason)
            }
        }
    }
}

/// Returns a decision with its checkpoint, and perhaps one more reason to hold the action.
pub(super) fn with(decision: Decision, protection: Protection, hold: Option<&str>) -> Decision {
    match decision {
        Decision::Action(mut action) => {
            action.stance = action.stance.or_ask(hold);
            action.protection = protection;
            Decision::Action(action)
        }
        Decision::Turn(mut turn) => {
            turn.protection = Some(protection);
            Decision::Turn(turn)
        }
        other => other,
    }
}
