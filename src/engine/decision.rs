//! The answers of the engine to events, and its notices.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::guard::TurnCheckpoint;
use super::silence::judge::Silence;
use super::watcher::WatcherStatus;
use crate::checkpoint::capture::request::Taken;
use crate::checkpoint::catalog::gaps::Gap;
use crate::checkpoint::history::collision::Collision;
use crate::checkpoint::history::journal;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::upkeep::usage::UnmetCap;
use crate::error::Error;
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::{Confidence, Effect, Needs, Verdict, Warning};
use crate::model::path::RelPath;
use crate::model::policy::{Guard, Watching};

/// The answer to an event.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Answers [`Event::Opened`](super::event::Event::Opened).
    Opened(Box<SessionFacts>),
    /// Answers [`Event::TurnStarted`](super::event::Event::TurnStarted).
    Turn(TurnDecision),
    /// Answers [`Event::TurnEnded`](super::event::Event::TurnEnded).
    TurnEnded {
        /// The turn's name as the event gave it; empty for the open turn.
        turn: String,
        /// Sentences on what it changed, where a person should look at that.
        notices: Vec<String>,
    },
    /// Answers [`Event::Before`](super::event::Event::Before).
    Action(Box<ActionDecision>),
    /// Answers [`Event::After`](super::event::Event::After).
    After {
        /// Sentences for the model.
        notices: Vec<String>,
    },
}

/// The decision on an action, and its protection.
#[derive(Clone, Debug)]
pub struct ActionDecision {
    /// The user's word on it: go on, ask first, or do not.
    pub stance: Stance,
    /// The client's own id of the action.
    pub action: Option<String>,
    /// The client's name of the open turn; `None` outside of turns.
    pub turn: Option<String>,
    /// The checkpoint and the warning that its effects call for.
    pub needs: Needs,
    /// The degree to which it was understood.
    pub confidence: Confidence,
    /// The effects that were found, at most 1,000.
    pub effects: Vec<Effect>,
    /// Without the secrets of the command.
    pub warnings: Vec<Warning>,
    /// The checkpoint that it has, or why it has none.
    pub protection: Protection,
    /// Paths that the action names and no checkpoint holds.
    pub not_held: Vec<Gap>,
    /// The uncommitted work of others that it would destroy.
    pub collisions: Vec<Collision>,
    /// The parts of the action in other workspaces, each with its checkpoint.
    pub others: Vec<OtherPart>,
    /// Sentences for the model.
    pub notices: Vec<String>,
    /// The clients that are at work in the workspace without events, and of which the session was not told yet.
    pub silent: Vec<Silence>,
}

impl ActionDecision {
    /// Returns the decision on a part of an action: nothing but its checkpoint.
    pub fn of_part() -> ActionDecision {
        ActionDecision {
            stance: Stance::Proceed,
            action: None,
            turn: None,
            needs: Needs::Checkpoint,
            confidence: Confidence::Exact,
            effects: Vec::new(),
            warnings: Vec::new(),
            protection: Protection::NotNeeded(None),
            not_held: Vec::new(),
            collisions: Vec::new(),
            others: Vec::new(),
            notices: Vec::new(),
            silent: Vec::new(),
        }
    }
}

/// The part of an action that lies in another workspace than its own.
#[derive(Clone, Debug)]
pub struct OtherPart {
    /// The root of that workspace; `/` for files outside of all.
    pub root: PathBuf,
    /// The checkpoint that the part has, or why it has none.
    pub protection: Protection,
    /// Paths in that workspace that the action names and no checkpoint holds.
    pub not_held: Vec<Gap>,
    /// The uncommitted work of others there that the action would destroy.
    pub collisions: Vec<Collision>,
}

impl OtherPart {
    /// Returns true if checkpoints contain all that the action names there.
    pub(super) fn is_saved(&self) -> bool {
        self.protection.has_saved() && self.not_held.is_empty()
    }
}

/// The answer to the start of a turn.
#[derive(Clone, Debug)]
pub struct TurnDecision {
    /// The client's own name of the turn.
    pub turn: String,
    /// Sentences for the model.
    pub notices: Vec<String>,
    /// The turn's checkpoint, for a client that does not wait before it acts.
    pub protection: Option<Protection>,
}

/// The user's word on an action, with the reason to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stance {
    /// Nothing holds it.
    Proceed,
    /// A person has to agree first.
    Ask(String),
    /// The policy denies it.
    Deny(String),
}

impl Stance {
    /// Returns the stance of the user's policy.
    pub fn of(verdict: &Verdict) -> Stance {
        match &verdict.hold {
            Some(reason) if verdict.denied => Stance::Deny(reason.clone()),
            Some(reason) => Stance::Ask(reason.clone()),
            None => Stance::Proceed,
        }
    }

    /// Returns the stance with one more reason to ask. A reason that holds the action already stays.
    #[must_use]
    pub fn or_ask(self, reason: Option<&str>) -> Stance {
        match (self, reason) {
            (Stance::Proceed, Some(reason)) => Stance::Ask(reason.to_owned()),
            (stance, _) => stance,
        }
    }

    /// Returns the stronger of two stances; of equal ones, this one.
    #[must_use]
    pub fn and(self, other: Stance) -> Stance {
        match (&self, &other) {
            (Stance::Proceed, _) | (Stance::Ask(_), Stance::Deny(_)) => other,
            (Stance::Ask(_), Stance::Proceed | Stance::Ask(_)) | (Stance::Deny(_), _) => self,
        }
    }

    /// Returns the reason to hold the action.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Stance::Proceed => None,
            Stance::Ask(reason) | Stance::Deny(reason) => Some(reason),
        }
    }
}

/// The checkpoint of an action or of a turn.
#[derive(Clone, Debug)]
pub enum Protection {
    /// Not called for; sometimes with a reason.
    NotNeeded(Option<String>),
    /// The guard is off, and why.
    Off(Option<String>),
    /// Taken, or equal to one that was there.
    Taken(Box<Taken>),
    /// The turn's checkpoint holds it already.
    Held(TurnCheckpoint),
    /// Not finished by the deadline. A notice with the same ticket follows.
    Late {
        /// The number that the reply and the later [`Settled`] share; unique in its session.
        ticket: u64,
        /// A capture of just the named paths.
        named: Option<Box<Taken>>,
    },
    /// It could not be taken; the reason, for people.
    Failed(String),
}

impl Protection {
    /// Returns true if a checkpoint contains what the action may destroy, as it was before.
    pub(super) fn has_saved(&self) -> bool {
        matches!(self, Protection::Taken(_) | Protection::Held(_))
    }

    /// Returns the turn's checkpoint, if that holds what the action may destroy.
    pub fn held(&self) -> Option<&TurnCheckpoint> {
        if let Protection::Held(held) = self { Some(held) } else { None }
    }

    /// Returns why there is no checkpoint before the action, where one was called for.
    pub fn fault(&self) -> Option<&str> {
        match self {
            Protection::Late { .. } => Some(LATE),
            Protection::Failed(reason) => Some(reason),
            Protection::NotNeeded(_) | Protection::Off(_) | Protection::Taken(_) | Protection::Held(_) => None,
        }
    }
}

/// Says that a checkpoint is late.
pub const LATE: &str = "the checkpoint was not finished by the deadline and continues in the background";

/// Facts of a session that was opened.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// The workspace that the session's events are about, unless they name another.
    pub workspace: WorkspaceFacts,
    /// The id of the session's run.
    pub run: String,
    /// The guard in force: [`Guard::Off`] also where it is switched off for a time.
    pub guard: Guard,
    /// The state of the first capture.
    pub base: BaseCapture,
    /// True if changes are saved for this session.
    pub autosave: bool,
    /// The configuration's wish.
    pub watching: Watching,
    /// The watcher as it really is.
    pub watcher: WatcherStatus,
    /// The longest line that is read, in bytes.
    pub line_bytes: usize,
    /// The longest wait of an event, unless the event names a shorter one.
    pub deadline: Duration,
    /// Restores that were cut off and wait to be ended.
    pub interrupted: Vec<journal::OperationStart>,
    /// Sentences on what went wrong and was nobody's reply, the newest first.
    pub faults: Vec<String>,
}

/// Facts of the workspace of a session.
#[derive(Clone, Debug)]
pub struct WorkspaceFacts {
    /// 16 lowercase hex digits.
    pub id: String,
    /// The canonical path of its root.
    pub path: PathBuf,
    /// The part of it that is captured.
    pub scope: Scope,
}

/// The state of a session's first capture, which spares the first action the wait for a whole scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseCapture {
    /// None was taken, and none is at work.
    None,
    /// It is at work.
    Running,
    /// It was taken.
    Ready,
}

/// A message that answers no request.
#[derive(Debug)]
pub enum Notice {
    /// Something does not work, and no request asked for it.
    Fault(Error),
    /// The settings were edited, and what is sound in them is in force.
    ConfigReloaded {
        /// Sentences on the settings that were left aside.
        warnings: Vec<String>,
    },
    /// A job in the background failed.
    JobFailed {
        /// The reason, for people.
        reason: String,
        /// The kind of checkpoint that is missing now: `turn` for the session's base capture.
        kind: Option<CheckpointKind>,
    },
    /// A changed tree was saved.
    Autosaved(Arc<Taken>),
    /// A checkpoint that was late is there, or has failed.
    Settled(Box<Settled>),
    /// The disk is full; checkpoints fail until something is freed.
    LowDisk {
        /// The reason, for people.
        reason: String,
    },
    /// The store takes more than its cap, and nothing more can go.
    StoreCap(UnmetCap),
    /// The watcher does not cover any more what it did.
    WatcherDegraded {
        /// The reason, for people.
        reason: String,
    },
    /// A restore was cut off and waits to be ended.
    RestoreInterrupted(journal::OperationStart),
}

/// The end of a checkpoint that was late.
#[derive(Debug)]
pub struct Settled {
    /// The number that the reply to the event had.
    pub ticket: u64,
    /// The root of the workspace, if that is not the action's own; the paths are in it.
    pub root: Option<PathBuf>,
    /// The checkpoint, or why there is none.
    pub protection: Protection,
    /// Captured files that were touched after the event came.
    pub touched: Vec<RelPath>,
    /// Paths that the action names and no checkpoint holds.
    pub not_held: Vec<Gap>,
}
