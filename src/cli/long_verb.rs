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
                ("no checkpoint was recorded; what is installed stays", "`piton init` again does the rest")
            }
            LongVerb::Checkpoint => ("nothing was recorded", "`piton checkpoint` again takes it"),
            LongVerb::Restore => ("no file was changed", "the same command again restores them"),
            LongVerb::Undo => ("no file was changed here", "the same command again does it"),
            LongVerb::Forget => ("nothing was forgotten", "the same command again does it"),
            LongVerb::Prune => {
                ("what was dropped stays dropped; every other checkpoint is whole", "`piton store prune` does the rest")
            }
            LongVerb::Push => ("what was sent stays there", "`piton push` again sends the rest"),
            LongVerb::Fetch => ("what was fetched before stays", "`piton fetch` again gets the rest"),
            LongVerb::Move => ("the store is where it was", "`piton store move` again moves it"),
            LongVerb::Doctor => ("nothing was changed", "`piton doctor` again checks everything"),
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
