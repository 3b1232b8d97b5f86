//! The moment to which a repository goes back.

use super::log::LoggedOperation;
use super::operations::RepositoryNow;
use super::undo::GitUndo;
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
            GitGoal::At(checkpoint) => format!("--to {}", checkpoint.record.number),
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
    /// Returns the way to the state of the repository that a checkpoint has found. Files are no part of it.
    ///
    /// # Errors
    /// `pruned` where that state is not known, or not kept any more; `conflict` for a repository that is gone, or another one at its place;
    /// errors of git and of reading.
    pub fn git_undo_to(&mut self, checkpoint: &Checkpoint, control: Interrupt<'_>) -> Result<GitUndo> {
        require_git()?;
        self.keep_repository();
        self.end_gone(control)?;
        let number = checkpoint.record.number;
        let found = self.catalog().state_beside(checkpoint)?.ok_or_else(|| {
            let text = format!("the state of the repository at checkpoint {number} is not known, or not kept any more");
            Error::new(Code::Pruned, text).hint("`piton show N` says what checkpoint N knows of the repository")
        })?;
        let place = RepositoryPlace::at_top(&found.top()?).ok_or_else(|| gone(&found.top().unwrap_or_default()))?;
        let now = place.identity();
        let is_same = found.identity.as_deref().zip(now.as_deref()).and_then(|(a, b)| RepositoryPlace::is_same(a, b));
        if is_same == Some(false) {
            let text = format!("the repository of checkpoint {number} is gone, and another one is at its place");
            return Err(Error::new(Code::Conflict, text).path(&place.top));
        }
        let now = RepositoryNow::at(place)?;
        self.way(GitGoal::At(Box::new(checkpoint.clone())), (found.state, None), now, control)
    }
}

/// Returns the error of a repository that is gone.
pub(super) fn gone(top: &std::path::Path) -> Error {
    Error::new(Code::Conflict, "the repository is gone")
        .path(top)
        .hint("`piton list` names the checkpoint before that, and `piton restore N .git` brings a repository back")
}
