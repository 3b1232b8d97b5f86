//! Paths that a restore names and that neither the checkpoint nor the workspace has: mostly typing mistakes.

use super::checkpoint::Checkpoint;
use super::open::Catalog;
use crate::error::{Code, Error, Result};
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::worktree::restore::Plan;

impl Catalog {
    /// Returns those of `paths` that `target` does not hold and that `plan` neither deletes nor keeps.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn unheld<'p>(&self, target: &Checkpoint, plan: &Plan, paths: &'p [RelPath]) -> Result<Vec<&'p RelPath>> {
        let mut unheld = Vec::new();
        for path in paths.iter().filter(|path| !path.is_root()) {
            let touched = plan.touched().any(|touched| touched.starts_with(path));
            let kept = plan.keep.iter().any(|(kept, _)| kept.starts_with(path));
            let in_conflict = plan.conflict.iter().any(|(left, _)| left.starts_with(path));
            if !touched && !kept && !in_conflict && !self.is_held(target, path)? {
                unheld.push(path);
            }
        }
        Ok(unheld)
    }

    /// Returns true if a checkpoint holds something at `path`.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn is_held(&self, checkpoint: &Checkpoint, path: &RelPath) -> Result<bool> {
        Ok(self.entry_at(&self.whole(checkpoint)?, path)?.is_some())
    }
}

/// Returns the error for a path that a checkpoint does not hold, in the same words for every door.
pub fn refusal(number: Number, path: &std::path::Path) -> Error {
    Error::new(Code::NoSuchPath, format!("checkpoint {number} does not contain that path"))
        .path(path)
        .hint("`piton find PATH` lists the checkpoints that do")
}
