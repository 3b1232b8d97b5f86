//! The answers of the engine to events, and what it tells unasked.

use std::path::PathBuf;
use std::time::Duration;

use super::guard::TurnCheckpoint;
use super::watcher::WatcherStatus;
use crate::checkpoint::capture::request::Taken;
use crate::checkpoint::catalog::gaps::Gap;
use crate::checkpoint::history::journal;
use crate::error::Error;
use crate::model::effect::{Confidence, Effect, Needs, Verdict, Warning};
use crate::model::path::RelPath;
use crate::model::policy::{Guard, Watching};

/// The answer to an event.
#[derive(Clone, Debug)]
pub enum Decision {
    Opened(Box<SessionFacts>),
    Turn(TurnDecision),
    TurnEnded { turn: String },
    Action(Box<ActionDecision>),
    After { notices: Vec<String> },
}

/// The decision on an action, and its protection.
#[derive(Clone, Debug)]
pub struct ActionDecision {
    pub stance: Stance,
    /// The client's own id of the action.
    pub action: Option<String>,
    pub turn: Option<String>,
    pub needs: Needs,
    pub confidence: Confidence,
    pub effects: Vec<Effect>,
    /// Without the secrets of the command.
    pub warnings: Vec<Warning>,
    pub protection: Protection,
    /// Paths that the action names and no checkpoint holds.
    pub not_held: Vec<Gap>,
    /// Sentences for the model.
    pub notices: Vec<String>,
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
    Proceed,
    /// Somebody has to agree first.
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
    /// Not there by the deadline. A notice with the same ticket follows.
    Late {
        ticket: u64,
        /// A capture of just the named paths.
        named: Option<Box<Taken>>,
    },
    Failed(String),
}

impl Protection {
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
pub const LATE: &str = "the checkpoint was not finished by the deadline and goes on behind";

/// Facts of a session that was opened.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    pub workspace: WorkspaceFacts,
    pub run: String,
    pub guard: Guard,
    pub base: BaseCapture,
    /// The configuration's wish.
    pub watching: Watching,
    pub watcher: WatcherStatus,
    pub line_bytes: usize,
    pub deadline: Duration,
    pub interrupted: Vec<journal::OperationStart>,
    pub faults: Vec<String>,
}

/// Facts of the workspace of a session.
#[derive(Clone, Debug)]
pub struct WorkspaceFacts {
    pub id: String,
    pub path: PathBuf,
    /// The word for how much of it is captured.
    pub scope: &'static str,
}

/// The state of a session's first capture, by which the first action need not wait for a whole scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseCapture {
    None,
    Running,
    Ready,
}

/// A message that nobody asked for.
#[derive(Debug)]
pub enum Notice {
    /// Something does not work, and it is nobody's reply.
    Fault(Error),
    ConfigReloaded {
        warnings: Vec<String>,
    },
    /// A job in the background failed.
    JobFailed {
        reason: String,
        /// True if it was the session's base capture.
        is_base: bool,
    },
    Settled(Box<Settled>),
    LowDisk {
        reason: String,
    },
    RestoreInterrupted(journal::OperationStart),
}

/// The end of a checkpoint that was late.
#[derive(Debug)]
pub struct Settled {
    pub ticket: u64,
    pub protection: Protection,
    /// Captured files that were touched after the event came.
    pub touched: Vec<RelPath>,
    pub not_held: Vec<Gap>,
}
