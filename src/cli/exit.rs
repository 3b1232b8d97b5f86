//! Exit codes of the command line (docs/TEAMS.md).

use std::process::ExitCode;

use crate::error::{Code, Error};

/// Exit codes of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    Usage = 2,
    /// Nothing to do, or not found.
    Nothing = 3,
    /// Done in part: something was kept, or is in conflict.
    Part = 4,
    /// Refused, or there is no terminal to ask on and no `--yes`.
    Refused = 5,
    Damaged = 6,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Returns the exit code that an error calls for.
pub(super) fn exit_of(error: &Error) -> Exit {
    match error.code() {
        Code::NoSuchCheckpoint
        | Code::Pruned
        | Code::NoSuchPath
        | Code::NoSuchRun
        | Code::NoSuchTurn
        | Code::NoSuchCodon
        | Code::NoSuchType
        | Code::WorkspaceGone => Exit::Nothing,
        Code::BadRequest
        | Code::BadPath
        | Code::BadJson
        | Code::BadUtf8
        | Code::LineTooLong
        | Code::UnknownType
        | Code::UnsupportedVersion
        | Code::AmbiguousCheckpoint
        | Code::NotACheckpoint
        | Code::OtherWorkspace => Exit::Usage,
        Code::WorkspaceRefused
        | Code::RollbackInProgress
        | Code::CodonRunning
        | Code::Conflict
        | Code::StaleSelection
        | Code::StalePlan
        | Code::NeedsPerson
        | Code::TooLarge => Exit::Refused,
        Code::StoreDamaged | Code::IncompleteCheckpoint => Exit::Damaged,
        Code::PreRestoreFailed
        | Code::StoreLocked
        | Code::NoMemory
        | Code::DiskFull
        | Code::Permission
        | Code::Busy
        | Code::ShuttingDown
        | Code::Internal => Exit::Failed,
    }
}
