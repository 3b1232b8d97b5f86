//! The findings of `piton doctor`.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cli::context::Context;
use crate::model::text::shell_name;

/// The surroundings of every check.
pub(super) struct Surroundings<'c> {
    pub context: &'c Context,
    /// The root of the workspace in question, if it is known where that is.
    pub root: Option<PathBuf>,
}

/// The state of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckState {
    Well,
    /// Worth knowing, and nothing wrong.
    Note,
    Wrong(Mend),
}

/// The way to put it right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mend {
    /// One line for a shell.
    Command(String),
    /// A step for a person.
    Step(String),
}

/// One thing that was looked at.
pub(super) struct CheckRow {
    pub check: &'static str,
    pub about: String,
    pub state: CheckState,
    pub text: String,
}

impl CheckRow {
    /// Returns whether this is a fault of the thing.
    pub(super) fn is_wrong_of(&self, about: &str) -> bool {
        self.about == about && matches!(self.state, CheckState::Wrong(_))
    }
}

/// All that was found.
#[derive(Default)]
pub(crate) struct DoctorReport {
    pub(super) check: &'static str,
    pub(super) rows: Vec<CheckRow>,
    pub(super) damaged: bool,
}

impl DoctorReport {
    /// Adds a line to the report.
    pub(super) fn row(&mut self, about: impl Into<String>, state: CheckState, text: impl Into<String>) {
        self.rows.push(CheckRow { check: self.check, about: about.into(), state, text: text.into() });
    }

    /// Notes that something is well.
    pub(super) fn well(&mut self, about: impl Into<String>, text: impl Into<String>) {
        self.row(about, CheckState::Well, text);
    }

    /// Notes something that is worth knowing and not wrong.
    pub(super) fn note(&mut self, about: impl Into<String>, text: impl Into<String>) {
        self.row(about, CheckState::Note, text);
    }

    /// Wrong, and a command mends it.
    pub(super) fn wrong(&mut self, about: impl Into<String>, text: impl Into<String>, command: impl Into<String>) {
        self.row(about, CheckState::Wrong(Mend::Command(command.into())), text);
    }

    /// Wrong, and a person has to see to it.
    pub(super) fn open(&mut self, about: impl Into<String>, text: impl Into<String>, step: impl Into<String>) {
        self.row(about, CheckState::Wrong(Mend::Step(step.into())), text);
    }

    /// Returns whether nothing is wrong.
    pub(super) fn is_well(&self) -> bool {
        !self.rows.iter().any(|row| matches!(row.state, CheckState::Wrong(_)))
    }
}

/// Returns a path as one word for a shell.
pub(super) fn quoted_path(path: &Path) -> String {
    shell_name(path.as_os_str().as_bytes())
}
