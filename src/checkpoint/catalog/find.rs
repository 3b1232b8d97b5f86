//! Where a path stands in the checkpoints of a workspace.

use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::Result;
use crate::filter::Tracked;
use crate::model::build::stored_path;
use crate::model::coverage::Extent;
use crate::model::id::ObjectId;
use crate::model::name::RESERVED_ROOT;
use crate::model::path::RelPath;
use crate::model::tree::Mode;

/// One version of a path, and the checkpoints that hold it.
#[derive(Clone, Debug)]
pub struct Version {
    /// `None`: the path is absent there.
    pub content: Option<(Mode, ObjectId)>,
    /// Bytes of a file or link.
    pub size: Option<u64>,
    /// Oldest first.
    pub checkpoints: Vec<Checkpoint>,
}

impl Timeline {
    /// What stands at `path` in a checkpoint's tree.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn entry_at(&self, tree: &ObjectId, path: &RelPath) -> Result<Option<(Mode, ObjectId)>> {
        let mut current = (Mode::Dir, *tree);
        for name in stored_path(path).split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            if current.0 != Mode::Dir {
                return Ok(None);
            }
            let entries = self.read_tree(&current.1)?;
            match entries.into_iter().find(|entry| entry.name == name) {
                Some(entry) => current = (entry.mode, entry.id),
                None => return Ok(None),
            }
        }
        Ok(Some(current))
    }

    /// Returns the tree of a checkpoint's records: modes that git has no bits for, and coverage.
    pub(in crate::checkpoint) fn records_of(&self, tree: &ObjectId) -> Result<Option<ObjectId>> {
        let entries = self.read_tree(tree)?.into_iter();
        Ok(entries.into_iter().find(|entry| entry.name == RESERVED_ROOT).map(|entry| entry.id))
    }

    /// The versions of a path over all checkpoints that looked at it, newest version first; equal neighbours are one version.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn versions(&mut self, path: &RelPath) -> Result<Vec<Version>> {
        let (all, _) = self.checkpoints()?;
        let mut versions: Vec<Version> = Vec::new();
        for checkpoint in all {
            let content = self.entry_at(&checkpoint.tree, path)?;
            if content.is_none() && !self.looked_at(&checkpoint, path)? {
                continue;
            }
            match versions.last_mut() {
                Some(last) if last.content == content => last.checkpoints.push(checkpoint),
                _ => {
                    let size = match content {
                        Some((Mode::Dir, _)) | None => None,
                        Some((_, id)) => Some(self.store.blob_size(&id)?),
                    };
                    versions.push(Version { content, size, checkpoints: vec![checkpoint] });
                }
            }
        }
        versions.reverse();
        Ok(versions)
    }

    /// True if a checkpoint would hold `path` had it been there: neither its patterns nor its extent left the path out.
    fn looked_at(&self, checkpoint: &Checkpoint, path: &RelPath) -> Result<bool> {
        if checkpoint.record.is_whole() {
            return Ok(true);
        }
        let coverage = self.coverage(&checkpoint.tree)?;
        let reached = match &coverage.extent {
            Extent::Tree => true,
            Extent::Paths(paths) => paths.iter().any(|reached| path.starts_with(reached)),
        };
        Ok(reached && Tracked::new(&coverage.tracked, &coverage.read_only)?.matches(path))
    }
}
