//! Operations: what the journal keeps of a restore, so that it can be undone.

use serde::{Deserialize, Serialize};

/// The kinds of operations, as the journal and the protocol spell them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// Brings files back; the run stays where it is.
    Restore,
    /// Brings files back and moves the run.
    Rollback,
    /// Takes an operation back.
    Undo,
    /// Does again what an undo took back.
    Redo,
    /// The changes of an agent's turn, which an undo takes back.
    Turn,
}
