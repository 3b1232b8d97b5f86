//! The requests, previews and results of restores.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::agreed::Agreed;
use super::journal::{External, OperationStart};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::Stat;
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::manifest::Manifest;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::worktree::PrivatePart;
use crate::worktree::restore::{Outcome, Plan};

/// A request for a restore.
#[derive(Clone, Debug)]
pub struct Restore {
    /// The checkpoint to go to.
    pub target: ObjectId,
    /// The kind of operation that the journal gets.
    pub kind: OperationKind,
    /// The id of the run that asks for it; a rollback moves this run.
    pub run: String,
    /// Paths with all that lies below them; empty means the whole tree.
    pub paths: Vec<RelPath>,
    /// Exactly these paths (an undo or redo steps over what an operation changed, and nothing else).
    pub only: Option<BTreeSet<RelPath>>,
    /// Files created since the checkpoint stay.
    pub keep_new: bool,
    /// Private files that are there are replaced and deleted too, though nobody named them.
    pub local: bool,
    /// The operation an undo or redo steps over.
    pub over: Option<String>,
    /// Limits what it may do.
    pub agreed: Agreed,
}

impl Restore {
    /// Returns a restore of the whole tree or of some paths.
    pub fn to(target: ObjectId, run: &str, paths: Vec<RelPath>, keep_new: bool) -> Restore {
        let (only, over, agreed) = (None, None, Agreed::Anything);
        Restore {
            target,
            kind: OperationKind::Restore,
            run: run.to_owned(),
            paths,
            only,
            keep_new,
            local: false,
            over,
            agreed,
        }
    }

    /// Returns true if private files at a path may be replaced and deleted: somebody named them, or a step goes over them.
    pub(crate) fn names(&self, path: &RelPath) -> bool {
        let named = || self.paths.iter().any(|named| !named.is_root() && path.starts_with(named));
        self.local || self.only.is_some() || named()
    }

    /// Returns true if a path is among those that are brought back.
    pub(crate) fn selects(&self, path: &RelPath) -> bool {
        match &self.only {
            Some(only) => only.contains(path),
            None => self.paths.is_empty() || self.paths.iter().any(|ancestor| path.starts_with(ancestor)),
        }
    }
}

/// The preview of a restore.
#[derive(Debug)]
pub struct Preview {
    /// The checkpoint that it would go to.
    pub target: Checkpoint,
    /// The steps that it would do, against the files as they are now.
    pub plan: Arc<Plan>,
    /// The digest of the plan: a restore that is given it does this plan or nothing.
    pub digest: String,
    /// Files and lines that would change.
    pub stat: Stat,
    /// Effects after the target that bringing files back does not undo.
    pub externals: Vec<External>,
    /// Sentences on what the target does not hold.
    pub warnings: Vec<String>,
}

/// A restore that was done.
#[derive(Debug)]
pub struct Restored {
    /// `None` when there was nothing to do.
    pub operation: Option<String>,
    /// The checkpoint that it went to.
    pub target: Checkpoint,
    /// The checkpoint that holds what was there before.
    pub pre_restore: Option<Checkpoint>,
    /// The paths that changed, stayed or failed.
    pub outcome: Outcome,
    /// The directories among the paths that were to change.
    pub directories: BTreeSet<RelPath>,
    /// Paths that should have changed and could not safely, with the reason.
    pub conflicts: Vec<(RelPath, String)>,
    /// Paths that stay because the plan that was agreed to does not have them.
    pub not_agreed: Vec<RelPath>,
    /// Effects after the target that bringing files back does not undo.
    pub externals: Vec<External>,
    /// Sentences on what the target does not hold.
    pub warnings: Vec<String>,
}

/// The target of a restore, loaded.
pub(super) struct Loaded {
    /// The checkpoint to go to.
    pub(super) checkpoint: Checkpoint,
    /// The tree of the whole moment.
    pub(super) root: ObjectId,
    /// All its paths.
    pub(super) manifest: Manifest,
    /// Its private files.
    pub(super) private: Arc<PrivatePart>,
    /// The rules under which it was taken.
    pub(super) coverage: Coverage,
}

/// The reported stages of a restore.
#[derive(Clone, Copy, Debug)]
pub enum RestoreStage<'p> {
    /// The present files are saved in the checkpoint, and the plan is about to be done.
    Planned(&'p Plan, &'p Checkpoint),
    /// The files are back.
    Applied(&'p Plan),
}

/// An interrupted operation that is being ended.
pub(crate) struct Resume {
    /// The announcement, as the journal has it.
    pub(super) begin: OperationStart,
    /// True to finish it; false to go back to its beginning.
    pub(super) go_on: bool,
}
