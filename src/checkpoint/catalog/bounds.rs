//! Bounds for reading from the store into memory. Trees, records and rules may come from anywhere, and a few small
//! objects can unfold to more than any memory.
//!
//! *Invariant:* a function that lists the paths of a stored tree keeps to `limits.memory_mb`, and fails with
//! `too-large`. A checkpoint that a capture recorded is never refused.

use super::open::Catalog;
use crate::error::{Code, Result};
use crate::model::id::ObjectId;
use crate::model::tree::{self, TreeEntry};
use crate::model::weight;

/// The part of the memory that one tree object may take: decoded it takes twice as much again.
const A_TREE: u64 = 3;

/// The part that one record or one file of rules may take.
pub(super) const A_RECORD: u64 = 4;

/// Returns the most that one tree object may take under a limit.
pub(crate) fn tree_bound(memory: u64) -> u64 {
    memory / A_TREE
}

impl Catalog {
    /// Returns the bytes of memory that a checkpoint's content may take.
    pub(crate) fn memory(&self) -> u64 {
        self.policy.limits.memory
    }

    /// Returns the entries of a tree.
    pub(crate) fn read_tree(&self, id: &ObjectId) -> Result<Vec<TreeEntry>> {
        match self.merged_tree(id) {
            Some(content) => tree::decode(&content),
            None => self.store_of(id).read_tree_within(id, tree_bound(self.memory())),
        }
    }

    /// Returns the bytes of a tree.
    pub(crate) fn tree_content(&self, id: &ObjectId) -> Result<Vec<u8>> {
        match self.merged_tree(id) {
            Some(content) => Ok(content),
            None => self.store_of(id).tree_content_within(id, tree_bound(self.memory())),
        }
    }

    /// Returns the bytes of one of piton's own records in a checkpoint, or of a file of rules.
    pub(crate) fn read_record(&self, id: &ObjectId) -> Result<Vec<u8>> {
        self.store_of(id).read_blob_within(id, self.memory() / A_RECORD)
    }

    /// Refuses a tree whose paths would take more memory than the settings allow.
    ///
    /// # Errors
    /// `too-large`; `store-damaged`.
    pub fn check_size(&self, tree: &ObjectId) -> Result<()> {
        weight::check(tree, self.memory(), &|id| self.read_tree(id))
    }

    /// Returns the result of `work`, or the default if a tree was too large for it.
    pub(crate) fn if_it_fits<T: Default>(work: Result<T>) -> Result<T> {
        match work {
            Err(error) if error.code() == Code::TooLarge => {
                tracing::warn!(%error, "passed over");
                Ok(T::default())
            }
            other => other,
        }
    }
}
