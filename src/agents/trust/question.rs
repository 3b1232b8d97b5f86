//! The question of an installation's trust, and the answer.

use std::path::Path;

use crate::agents::install::Spot;

/// A reason for which a client may not run the installed hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The reason, as a sentence without a full stop.
    pub what: String,
    /// The step that the person has to take.
    pub step: String,
    /// False if piton cannot read a setting, so that the hooks may run all the same.
    pub is_certain: bool,
}

/// The directory that a client's settings file lies below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The user's home.
    User,
    /// The directory in which the client runs.
    Project,
    /// The administrator's directory, `/etc`.
    System,
}

/// A settings file of a client.
#[derive(Clone, Copy, Debug)]
pub struct SettingsFile {
    /// The directory that it lies below.
    pub level: Level,
    /// Its place there.
    pub spot: Spot,
    /// True if it is a directory, each file of which counts.
    pub is_directory: bool,
}

impl SettingsFile {
    /// Returns the file at a place of a level.
    pub(super) fn at(level: Level, spot: Spot) -> SettingsFile {
        SettingsFile { level, spot, is_directory: false }
    }

    /// Returns a file below the user's home.
    pub(super) fn user(spot: Spot) -> SettingsFile {
        SettingsFile::at(Level::User, spot)
    }

    /// Returns a file of the project.
    pub(super) fn project(spot: Spot) -> SettingsFile {
        SettingsFile::at(Level::Project, spot)
    }

    /// Returns a file of the administrator's.
    pub(super) fn system(spot: Spot) -> SettingsFile {
        SettingsFile::at(Level::System, spot)
    }

    /// Returns true for a file of the administrator's.
    pub(super) fn is_managed(self) -> bool {
        self.level == Level::System
    }
}

/// The text of a settings file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileText {
    /// There is no such file.
    Missing,
    /// The file's text.
    Text(String),
    /// The file is there and cannot be read: the reason.
    Unreadable(String),
}

/// The installation in question.
pub struct TrustQuestion<'a> {
    /// True if the hooks are those of one project.
    pub project: bool,
    /// The directory in which the client would run.
    pub folder: &'a Path,
    /// The file that holds the hooks, by its real name.
    pub file: &'a Path,
    /// Each event with the command that is installed for it.
    pub commands: &'a [(String, String)],
    /// The text of a file of the client's.
    pub read: &'a dyn Fn(&SettingsFile) -> FileText,
    /// The full path of such a file, for people.
    pub shown: &'a dyn Fn(&SettingsFile) -> String,
    /// The paths, for people, and texts of the `.json` files in a directory, in the order of their names.
    pub drop_ins: &'a dyn Fn(&SettingsFile) -> Vec<(String, FileText)>,
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}
