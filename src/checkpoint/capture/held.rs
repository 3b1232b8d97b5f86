//! Paths that somebody asks back and that neither the checkpoint nor the workspace has: slips of the finger, mostly.

use crate::checkpoint::history::restore::Preview;
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;

impl Timeline {
    /// Returns those of `paths` that the preview's target does not hold and that its plan neither deletes nor keeps.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn unheld<'p>(&self, preview: &Preview, paths: &'p [RelPath]) -> Result<Vec<&'p RelPath>> {
        let mut unheld = Vec::new();
        for path in paths.iter().filter(|path| !path.is_root()) {
            let touched = preview.plan.touched().any(|touched| touched.starts_with(path));
            let kept = preview.plan.keep.iter().any(|(kept, _)| kept.starts_with(path));
            let in_conflict = preview.plan.conflict.iter().any(|(left, _)| left.starts_with(path));
            if !touched && !kept && !in_conflict && !self.is_held(&preview.target, path)? {
                unheld.push(path);
            }
        }
        Ok(unheld)
    }

    /// True if a checkpoint holds something at `path`.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn is_held(&self, checkpoint: &Checkpoint, path: &RelPath) -> Result<bool> {
        Ok(self.entry_at(&checkpoint.tree, path)?.is_some())
    }
}

/// Says that a checkpoint does not hold a path, as every door does.
pub fn refusal(ordinal: u64, path: &std::path::Path) -> Error {
    Error::new(Code::NoSuchCheckpoint, format!("checkpoint {ordinal} does not hold that path"))
        .path(path)
        .hint("`piton find PATH` says which checkpoints do")
}
