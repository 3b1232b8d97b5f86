//! The error of an object that is not as it should be.

use crate::error::{Code, Error};
use crate::model::id::ObjectId;

/// Returns the error of an object; `what` is its predicate.
pub(super) fn damaged(id: &ObjectId, what: &str) -> Error {
    Error::new(Code::StoreDamaged, format!("object {id} {what}"))
        .hint("`piton doctor --refs` says which checkpoints it belongs to")
}
