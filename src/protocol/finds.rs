//! `piton find`: the versions of a path, and the paths that a pattern matches.

use serde::{Deserialize, Serialize};

use super::shapes::PathItem;
use crate::model::number::Number;

/// `piton find`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindDocument {
    /// The path.
    #[serde(flatten)]
    pub path: PathItem,
    /// The versions of it, the newest first.
    pub versions: Vec<VersionItem>,
}

/// One version of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionItem {
    /// The id of its content, where it was held.
    pub id: Option<String>,
    /// The presence of the path.
    pub presence: PresenceWord,
    /// The reason why it was not captured.
    pub why: Option<String>,
    /// The size of it.
    pub bytes: Option<u64>,
    /// The numbers of the checkpoints with this version.
    pub checkpoints: Vec<Number>,
}

/// The presence of a path in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresenceWord {
    /// The checkpoint holds it.
    Held,
    /// It was not there.
    Absent,
    /// It may have been there, and was left out.
    NotCaptured,
    /// Its directory or its content cannot be read.
    Damaged,
    /// A word of a later version.
    #[serde(other)]
    Unknown,
}

/// `piton find PATTERN`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundDocument {
    /// The pattern, or the name.
    pub pattern: String,
    /// The paths that checkpoints hold and it matches, in byte order.
    pub matches: Vec<FoundItem>,
}

/// One path that a pattern matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundItem {
    /// The path.
    #[serde(flatten)]
    pub path: PathItem,
    /// The newest checkpoint that holds it.
    pub n: Number,
    /// The time when that was taken.
    pub time: String,
    /// True if something is there now.
    pub present: bool,
}
