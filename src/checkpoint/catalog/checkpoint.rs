//! A checkpoint, read from its commit and its ref.

use super::lazy_record::LazyRecord;
use crate::model::id::{ObjectId, short_selector};
use crate::store::RefName;

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
    pub record: LazyRecord,
    /// The ref that keeps it (for a typed one: its run's branch).
    pub name: RefName,
}

impl Checkpoint {
    /// Returns its number as a selector, or its short id where it has none.
    pub fn shown(&self) -> String {
        if self.record.number.is_none() { self.shown_id() } else { self.record.number.to_string() }
    }

    /// Returns its short id as a selector.
    pub fn shown_id(&self) -> String {
        short_selector(&self.id.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::checkpoint::{CheckpointKind, Record};

    /// Makes a checkpoint for pure tests.
    pub(crate) fn checkpoint(ordinal: u64, kind: CheckpointKind, run: &str) -> Checkpoint {
        let id = ObjectId::of(crate::model::id::ObjectKind::Blob, &ordinal.to_le_bytes()).unwrap();
        let record = Record {
            workspace: "w".into(),
            run: run.into(),
            reason: "r".into(),
            time: "2026-01-01T00:00:00.000Z".into(),
            ..Record::bare(kind, ordinal)
        };
        Checkpoint { id, tree: ObjectId::EMPTY_TREE, parents: vec![], record: record.into(), name: "".into() }
    }
}
