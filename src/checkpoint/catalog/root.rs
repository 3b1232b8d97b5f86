//! The directory of a workspace: whether it exists, and how a restore makes it again after it was deleted.
//!
//! A workspace whose directory was deleted is still one. A checkpoint before a restore, or at the end of a turn, finds nothing in it.
//! *Invariant:* a directory that was moved away, or whose file system is not mounted, does not count as deleted.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

use super::open::Catalog;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::model::text::shell_word;

/// The permission bits that its owner needs to restore files into a directory.
const OWNER: u32 = 0o700;

/// The permission bits of a directory when none were recorded.
const USUAL: u32 = 0o755;

impl Catalog {
    /// Returns true if a checkpoint of this kind records that the directory of the workspace was deleted.
    pub(crate) fn finds_nothing(&self, kind: CheckpointKind) -> bool {
        matches!(kind, CheckpointKind::PreRestore | CheckpointKind::Turn) && self.workspace.is_deleted()
    }

    /// Returns true if a checkpoint is known and has no files: the directory of the workspace was deleted then, or empty.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub fn has_no_files(&self, id: &ObjectId) -> Result<bool> {
        let all = self.all()?;
        Ok(all.checkpoints.iter().rev().any(|one| one.id == *id && one.record.files == 0))
    }

    /// Refuses where the workspace is no longer a directory, and a checkpoint of this kind cannot record that.
    ///
    /// # Errors
    /// `workspace-gone`.
    pub(crate) fn require_root(&self, kind: CheckpointKind) -> Result<()> {
        let path = &self.workspace.path;
        // A link in its place would lead piton to foreign files.
        if path.is_dir() && path.canonicalize().is_ok_and(|real| real == *path) {
            return Ok(());
        }
        if self.finds_nothing(kind) {
            return Ok(());
        }
        let word = shell_word(&path.to_string_lossy());
        let (text, hint) = match self.workspace.is_deleted() {
            true => (
                "the workspace was deleted",
                format!("its checkpoints are kept; to restore the newest one, run `piton restore --workspace {word}`"),
            ),
            false => (
                "the workspace is no longer a directory",
                format!(
                    "its checkpoints are kept; to restore files elsewhere, run `piton restore N --to DIR --workspace {word}`"
                ),
            ),
        };
        Err(Error::new(Code::WorkspaceGone, text).path(path).hint(hint))
    }

    /// Makes the directory of the workspace if it was deleted, restores files into it with `work`, and gives it the permissions
    /// that it had. A directory that was made is removed again if the work fails.
    ///
    /// # Errors
    /// Those of `work`; `permission` and the like where the directory cannot be made.
    pub(crate) fn in_root<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.workspace.is_deleted() {
            return work();
        }
        let path = &self.workspace.path;
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above).at("creating the parent directory of the workspace", above)?;
        }
        DirBuilder::new().mode(OWNER).create(path).at("making the workspace", path)?;
        let worked = work();
        let finished = match &worked {
            Ok(_) => std::fs::set_permissions(path, Permissions::from_mode(self.workspace.mode.unwrap_or(USUAL))),
            // The first error is the one to report; what is not empty stays.
            Err(_) => std::fs::remove_dir(path).or(Ok(())),
        };
        finished.at("setting the permissions of the workspace", path)?;
        worked
    }
}
