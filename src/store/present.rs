//! The loose objects that the store holds, listed at once: for a batch that would ask for very many objects one by one.
//!
//! Taken when the batch begins, under its lock. An object that others add meanwhile is written twice, which only costs
//! space. None is removed meanwhile.

use std::path::Path;

use super::loose;
use crate::error::Result;
use crate::model::id::ObjectId;

/// Ids of objects, in their order.
pub(super) struct Present(Vec<ObjectId>);

impl From<Vec<ObjectId>> for Present {
    fn from(mut ids: Vec<ObjectId>) -> Present {
        ids.sort_unstable();
        Present(ids)
    }
}

impl Present {
    /// Reads the names of all loose objects.
    pub(super) fn read(git_dir: &Path) -> Result<Present> {
        loose::list(git_dir).map(Present::from)
    }

    /// Tells whether an object was there.
    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.0.binary_search(id).is_ok()
    }
}
