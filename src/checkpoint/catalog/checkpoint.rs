//! A checkpoint, read from its commit and its ref.

use std::sync::Arc;

use crate::model::checkpoint::Record;
use crate::model::id::ObjectId;

/// One checkpoint, read from its commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The id of its commit.
    pub id: ObjectId,
    /// The root tree, which has piton's own entry beside the user's files.
    pub tree: ObjectId,
    /// The tip of its run's branch when it was taken; empty if there was no branch yet.
    pub parents: Vec<ObjectId>,
    /// The facts that its commit message has.
    pub record: Arc<Record>,
    /// The ref that keeps it (for a typed one: its run's branch).
    pub name: Arc<str>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::checkpoint::CheckpointKind;

    /// Makes a checkpoint for pure tests.
    pub(crate) fn checkpoint(ordinal: u64, kind: CheckpointKind, run: &str) -> Checkpoint {
        let id = ObjectId::of(crate::model::id::ObjectKind::Blob, &ordinal.to_le_bytes()).unwrap();
        let record = Record {
            kind,
            ordinal,
            workspace: "w".into(),
            run: run.into(),
            turn: None,
            codon_id: None,
            codon_name: None,
            reason: "r".into(),
            time: "2026-01-01T00:00:00.000Z".into(),
            duration_ms: None,
            effects: vec![],
            files: 0,
            bytes: 0,
            skipped: 0,
            flags: vec![],
            pinned: false,
        };
        Checkpoint { id, tree: ObjectId::EMPTY_TREE, parents: vec![], record: Arc::new(record), name: "".into() }
    }
}
