//! The moment to which a repository goes back.

use std::path::Path;
use std::sync::Arc;

use super::log::LoggedOperation;
use super::noted::NotedState;
use super::operations::RepositoryNow;
use super::undo::{GitUndo, is_same_repository};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::git::user_repository::require_git;
use crate::sys::interrupt::Interrupt;
use crate::worktree::repository_state::RepositoryPlace;

/// The moment to which a repository goes back.
#[derive(Clone, Debug)]
pub enum GitGoal {
    /// The moment before an operation.
    Before(Box<LoggedOperation>),
    /// The moment of a checkpoint.
    At(Box<Checkpoint>),
}

impl GitGoal {
    /// Returns the words behind `piton git-undo` that name it.
    pub fn name(&self) -> String {
        match self {
            GitGoal::Before(operation) => operation.begin.name(),
            GitGoal::At(_) => format!("--to {}", self.checkpoint_name()),
        }
    }

    /// Returns the number of the checkpoint, or its short id where it has none; empty for an operation.
    pub fn checkpoint_name(&self) -> String {
        match self {
            GitGoal::Before(_) => String::new(),
            GitGoal::At(checkpoint) => checkpoint.shown(),
        }
    }

    /// Returns the operation that is taken back; `None` for the moment of a checkpoint.
    pub fn operation(&self) -> Option<&LoggedOperation> {
        match self {
            GitGoal::Before(operation) => Some(operation),
            GitGoal::At(_) => None,
        }
    }
}

impl Timeline {
    /// Returns the way to the state of the repository that a checkpoint has found, and that `noted` has. Files are no part of it. The
    /// checkpoint may be another workspace's in the same repository.
    ///
    /// # Errors
    /// `pruned` where that state is not known, or not kept any more; `conflict` for a repository that is gone, or another one at its place;
    /// errors of git and of reading.
    pub fn git_undo_to(
        &mut self,
        checkpoint: &Checkpoint,
        noted: Option<NotedState>,
        control: Interrupt<'_>,
    ) -> Result<GitUndo> {
        require_git()?;
        self.end_gone(control)?;
        let goal = GitGoal::At(Box::new(checkpoint.clone()));
        let noted = noted.ok_or_else(|| {
            let text = format!("the state of the repository at checkpoint {} is unknown", goal.checkpoint_name());
            Error::new(Code::Pruned, text).hint(
                "there was no repository, or its state is too old or was never recorded; where it is known, `piton show N` has a line `git`",
            )
        })?;
        let root = self.workspace().path.clone();
        let place = RepositoryPlace::around(&root).ok_or_else(|| gone(&root))?;
        if !is_same_repository(&place, noted.identity.as_deref(), || Ok(Some(Arc::clone(&noted.state))))? {
            let text = format!(
                "the repository of checkpoint {} no longer exists, and another one is in its place",
                goal.checkpoint_name()
            );
            return Err(Error::new(Code::Conflict, text).path(&place.top));
        }
        self.way(goal, (noted.state, None), RepositoryNow::at(place)?, control)
    }
}

/// Returns the error of a repository that is gone.
pub(super) fn gone(top: &Path) -> Error {
    Error::new(Code::Conflict, "the repository no longer exists").path(top).hint(
        "to restore the repository, find the checkpoint before that in `piton list` and run `piton restore N .git`",
    )
}
