//! Documents of `piton git-undo`, with `--json`.

use serde::{Deserialize, Serialize};

use super::restores::PreviewReply;
use crate::model::number::Number;

/// A git's question which paths have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitChangedQuery {
    /// The top of the work tree, by its real name.
    pub top: String,
    /// The token of the last answer.
    #[serde(default)]
    pub token: String,
}

/// The answer to `git.changed`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitChangedReply {
    /// The token for the next question; null if there is no moment to begin from.
    pub token: Option<String>,
    /// The reason why everything may have changed; null if the paths are all.
    pub everything: Option<String>,
    /// The changed paths, relative to the top. A directory has a `/` at its end.
    pub paths: Vec<String>,
}

/// A command of git, as `piton git-undo` knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitOperationItem {
    /// Its name: `g-1`, `g-2`, ….
    pub op: String,
    /// The moment before it: RFC 3339, UTC.
    pub time: String,
    /// The run that it belongs to.
    pub run: String,
    /// The client's name of its turn, if one was open.
    pub turn: Option<String>,
    /// The command, without secrets.
    pub command: String,
    /// The top of the work tree.
    pub repository: String,
    /// The moment at which its end was known; null if it is not.
    pub ended: Option<String>,
    /// The operation that has taken it back.
    pub undone: Option<String>,
}

/// `piton list --git`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitOperationsDocument {
    /// The commands, newest first.
    pub operations: Vec<GitOperationItem>,
}

/// A ref that moves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefMoveItem {
    /// Its name.
    pub name: String,
    /// Its value now: an id, or `ref: NAME`; null if there is none.
    pub from: Option<String>,
    /// The value that it gets; null if it is deleted.
    pub to: Option<String>,
}

/// A part of a repository that stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptItem {
    /// The part.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// `piton git-undo`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GitUndoDocument {
    /// The command that is taken back; null for the way to a checkpoint.
    pub operation: Option<GitOperationItem>,
    /// The checkpoint whose moment the repository goes back to; null for a command.
    pub checkpoint: Option<Number>,
    /// The refs that move.
    pub refs: Vec<RefMoveItem>,
    /// True if the stash goes back.
    pub stash: bool,
    /// True if the index goes back.
    pub index: bool,
    /// Files of a merge, rebase or similar operation in progress that go back, in the git directory.
    pub in_progress: Vec<String>,
    /// The parts that stay: they have changed since, their objects are gone, or no checkpoint contains them.
    pub kept: Vec<KeptItem>,
    /// The parts that stay because they are younger than the checkpoint.
    pub younger: Vec<KeptItem>,
    /// The preview of the files, as of a restore; null where none are known to have changed.
    pub files: Option<PreviewReply>,
    /// The operation that has taken it back; null in a preview.
    pub by: Option<String>,
}
