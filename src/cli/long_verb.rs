//! The verbs that may last long: their progress is shown, and Ctrl-C stops them at a safe point ([`super::stop`]).
//!
//! After Ctrl-C piton says what was done and how to go on. Then it dies of the signal, so that a shell's loop ends too; a shell
//! reports that as 130.

use super::grammar::Verb;
use super::print;
use super::store::StoreVerb;
use crate::error::{Code, Error};

/// Work that a person may watch and stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongVerb {
    Init,
    Checkpoint,
    Restore,
    Undo,
    Forget,
    Prune,
    Push,
    Fetch,
    Move,
    Doctor,
}

impl LongVerb {
    /// Returns the long work of a verb; `None` for one that is quick, or has its own treatment of signals.
    pub(super) fn of(verb: &Verb) -> Option<LongVerb> {
        match verb {
            Verb::Init(_) => Some(LongVerb::Init),
            Verb::Checkpoint(_) => Some(LongVerb::Checkpoint),
            Verb::Restore(_) | Verb::Recover(_) | Verb::Rollback(_) => Some(LongVerb::Restore),
            Verb::Undo(_) | Verb::Redo(_) => Some(LongVerb::Undo),
            Verb::Forget(_) => Some(LongVerb::Forget),
            Verb::Prune(_) => Some(LongVerb::Prune),
            Verb::Push(_) => Some(LongVerb::Push),
            Verb::Fetch(_) => Some(LongVerb::Fetch),
            Verb::Doctor(_) => Some(LongVerb::Doctor),
            Verb::Store(args) => match &args.verb {
                StoreVerb::Prune(_) => Some(LongVerb::Prune),
                StoreVerb::Move(_) => Some(LongVerb::Move),
                StoreVerb::Status
                | StoreVerb::List
                | StoreVerb::Clear(_)
                | StoreVerb::Adopt(_)
                | StoreVerb::Delete(_) => None,
            },
            _ => None,
        }
    }

    /// Returns what is true of the work when it was stopped, and how to go on.
    fn unfinished(self) -> (&'static str, &'static str) {
        match self {
            LongVerb::Init => {
                ("no checkpoint was recorded; what was installed is kept", "to do the rest, run `piton init` again")
            }
            LongVerb::Checkpoint => ("nothing was recorded", "to take it, run `piton checkpoint` again"),
            LongVerb::Restore => ("no file was changed", "to restore them, run the same command again"),
            LongVerb::Undo => ("no file was changed here", "to do it, run the same command again"),
            LongVerb::Forget => ("nothing was forgotten", "to do it, run the same command again"),
            LongVerb::Prune => (
                "some checkpoints were dropped already; all others are intact",
                "to do the rest, run `piton store prune` again",
            ),
            LongVerb::Push => ("what was sent already is kept there", "to send the rest, run `piton push` again"),
            LongVerb::Fetch => ("what was fetched already is kept", "to get the rest, run `piton fetch` again"),
            LongVerb::Move => ("the store was not moved", "to move it, run `piton store move` again"),
            LongVerb::Doctor => ("nothing was changed", "to check everything, run `piton doctor` again"),
        }
    }

    /// Returns true if the verb ends without an error when it was stopped.
    fn may_end_in_part(self) -> bool {
        matches!(self, LongVerb::Prune | LongVerb::Push)
    }
}

/// Says on stderr what was done by work that Ctrl-C stopped, what was not, and how to go on. `forget` says that of a forget
/// that has begun to change checkpoints.
pub(super) fn report_stop(verb: LongVerb, outcome: Result<(), &Error>, forget: Option<&str>) {
    let (what, next) = verb.unfinished();
    match outcome {
        // It says itself what was done, and how to end it.
        Err(error) if error.code() == Code::RollbackInProgress => print::error(error, false),
        Err(_) if forget.is_some() => {
            print::say(&format!("piton: interrupted: {}", forget.unwrap_or_default()));
        }
        Err(error) if error.code() != Code::ShuttingDown && verb != LongVerb::Fetch => print::error(error, false),
        Ok(()) if !verb.may_end_in_part() => print::say("piton: interrupted, but everything was done already"),
        Ok(()) | Err(_) => print::say(&format!("piton: interrupted: {what}\n  {next}")),
    }
}
