//! Writing a checkpoint into another directory: `restore N --to DIR`.

use std::path::Path;

use super::held::refusal;
use super::timeline::{Checkpoint, Timeline};
use crate::error::Result;
use crate::model::path::RelPath;
use crate::worktree::restore::Outcome;

impl Timeline {
    /// Writes a checkpoint, or some of its paths, into an absent or empty directory.
    ///
    /// # Errors
    /// `no-such-checkpoint` for a path that it does not hold; `conflict` when the directory holds something; `store-damaged`, `disk-full`, `permission`.
    pub fn export(&self, checkpoint: &Checkpoint, select: &[RelPath], dir: &Path) -> Result<Outcome> {
        for path in select.iter().filter(|path| !path.is_root()) {
            if !self.is_held(checkpoint, path)? {
                return Err(refusal(checkpoint.record.ordinal, path.to_path()));
            }
        }
        let (manifest, _) = self.contents(checkpoint)?;
        crate::worktree::restore::export(dir, &manifest, select, &super::restore::Blobs(self.store.reader()?))
    }
}
