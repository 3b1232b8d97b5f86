//! The requests, previews and results of restores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::agreed::Agreed;
use super::journal::{External, OperationStart};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::diff::Stat;
use crate::checkpoint::records::repositories::KeptRepository;
use crate::filter::PathLimits;
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::line_counts::LineCounts;
use crate::model::manifest::{Manifest, ManifestEntry};
use crate::model::meta::quote;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::worktree::PrivatePart;
use crate::worktree::restore::{KeepReason, Outcome, Plan};

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
    /// Patterns of further paths, and the paths that stay as they are.
    pub limits: Arc<PathLimits>,
    /// Exactly these paths (an undo or redo steps over what an operation changed, and nothing else).
    pub only: Option<BTreeSet<RelPath>>,
    /// Files created since the checkpoint stay.
    pub keep_new: bool,
    /// Private files that are there are replaced and deleted too, though nobody named them.
    pub local: bool,
    /// The operation an undo or redo steps over.
    pub over: Option<String>,
    /// True if it steps over a part of that only.
    pub partial: bool,
    /// The checkpoints that have single paths as they are to become, where `target` has not.
    pub from: BTreeMap<RelPath, ObjectId>,
    /// The checkpoint that was made of chosen hunks: `target` with some files of `from`. The journal names it, so that an interrupted
    /// restore can be finished.
    pub composed: Option<ObjectId>,
    /// The states in which the paths of `only` have to be to change, where a turn is stepped over.
    pub expected: Option<Arc<Expected>>,
    /// The kept repositories that come back too, where nothing is in their place.
    pub repositories: Vec<KeptRepository>,
    /// Limits what it may do.
    pub agreed: Agreed,
}

impl Restore {
    /// Lists the paths of which only chosen hunks are restored (percent-quoted).
    pub(super) fn paths_in_hunks(&self) -> Vec<String> {
        let in_hunks = self.from.iter().filter(|(_, from)| self.composed == Some(**from));
        in_hunks.map(|(path, _)| quote(path.as_bytes())).collect()
    }

    /// Returns a restore of the whole tree or of some paths.
    pub fn to(target: ObjectId, run: &str, paths: Vec<RelPath>, keep_new: bool) -> Restore {
        let (only, over, agreed) = (None, None, Agreed::Anything);
        Restore {
            target,
            kind: OperationKind::Restore,
            run: run.to_owned(),
            paths,
            limits: Arc::default(),
            only,
            keep_new,
            local: false,
            over,
            partial: false,
            from: BTreeMap::new(),
            composed: None,
            expected: None,
            repositories: Vec::new(),
            agreed,
        }
    }

    /// Returns true if private files at a path may be replaced and deleted: somebody named them, or a step goes over them.
    pub(crate) fn names(&self, path: &RelPath) -> bool {
        let is_in = |named: &RelPath| !named.is_root() && path.starts_with(named);
        let named = || self.paths.iter().any(is_in) || self.limits.patterns.names(path);
        self.local || self.only.is_some() || named()
    }

    /// Returns true if the restore is about a path, or about something in it; one that its target does not restore does not count.
    pub(crate) fn is_about(&self, path: &RelPath) -> bool {
        let is_in = |known: &RelPath| known.starts_with(path) || path.starts_with(known);
        match (&self.only, &self.expected) {
            (Some(only), Some(_)) => only.iter().any(|known| is_in(known) && !self.from.contains_key(known)),
            _ => true,
        }
    }

    /// Returns true if nothing changes with a plan.
    pub(crate) fn is_idle(&self, plan: &Plan) -> bool {
        plan.changes_nothing() && self.repositories.is_empty()
    }

    /// Returns true if a path is among those that are brought back.
    pub(crate) fn selects(&self, path: &RelPath) -> bool {
        match &self.only {
            Some(only) => only.contains(path),
            None => self.limits.selects(&self.paths, path),
        }
    }
}

/// The states that a step over a turn expects, and the changes that it leaves alone.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// The state in which the turn, or the undo of it, has left each path; `None` for nothing there.
    pub states: BTreeMap<RelPath, Option<ManifestEntry>>,
    /// Paths that stay, because their changes are not the turn's own and nobody asked for them.
    pub others: BTreeMap<RelPath, Attribution>,
    /// Paths that are only created again where they are absent: the turn may have changed them, and so may someone else. The present
    /// content of such a path is neither replaced nor deleted unless that was asked for.
    pub created_only: BTreeSet<RelPath>,
    /// The share of the turn in each change that goes back.
    pub shares: BTreeMap<RelPath, Attribution>,
    /// Changes that no undo takes back, and why.
    pub missed: BTreeMap<RelPath, String>,
}

impl Expected {
    /// Returns the reason why a path of the step stays, as it is now.
    fn keeps(&self, path: &RelPath, now: Option<&ManifestEntry>) -> Option<KeepReason> {
        if let Some(share) = self.others.get(path) {
            return Some(KeepReason::NotOwn(*share));
        }
        let is_expected = match (self.states.get(path)?, now) {
            (Some(state), Some(now)) => state.same(now),
            (state, now) => state.is_none() && now.is_none(),
        };
        match is_expected {
            false => Some(KeepReason::ChangedSince),
            true if now.is_some() && self.created_only.contains(path) => Some(KeepReason::NotOwn(Attribution::Likely)),
            true => None,
        }
    }
}

impl Restore {
    /// Returns the reason why a step over a turn, or the limits of a restore, leave a path as it is.
    pub(crate) fn keeps(&self, path: &RelPath, now: Option<&ManifestEntry>) -> Option<KeepReason> {
        if self.only.is_none() && !self.limits.is_none() {
            return self.keeps_by_limits(path, now);
        }
        let (expected, only) = (self.expected.as_ref()?, self.only.as_ref()?);
        match only.contains(path) {
            true => expected.keeps(path, now),
            // A missing directory may be needed around a file that comes back.
            false => now.map(|_| KeepReason::NotChosen),
        }
    }
}

impl Restore {
    /// Returns the paths of which a plan is made; empty for the whole tree. Patterns are applied to the plan of the whole tree, because a
    /// path that they do not name can be in the way of one that they name.
    pub(super) fn planned_paths(&self) -> &[RelPath] {
        if self.limits.patterns.is_empty() { &self.paths } else { &[] }
    }

    /// Takes out of a plan the paths that nothing names. Those that are excepted are listed as kept, and are no conflicts.
    pub(super) fn limit(&self, plan: &mut Plan) {
        if self.only.is_some() || self.limits.is_none() {
            return;
        }
        plan.conflict.retain(|(path, _)| !self.limits.excludes(path));
        plan.retain(&|path| self.limits.names(&self.paths, path));
    }

    /// Returns the reason why the limits leave a path as it is: it is excepted, or nothing names it.
    fn keeps_by_limits(&self, path: &RelPath, now: Option<&ManifestEntry>) -> Option<KeepReason> {
        match self.limits.excludes(path) {
            true => Some(KeepReason::Excepted),
            // A missing directory may be needed around a file that is restored.
            false if !self.selects(path) => now.map(|_| KeepReason::NotChosen),
            false => None,
        }
    }
}

/// A change of other hands that a restore would take along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideEdit {
    /// The path.
    pub path: RelPath,
    /// The author of the change, for people.
    pub whose: String,
}

/// The paths that a step over a turn can be about: those of the turn, the directories above them, and all below them.
pub(super) struct Near {
    pub(super) paths: BTreeSet<RelPath>,
    above: BTreeSet<RelPath>,
}

impl Near {
    /// Returns those of a step over a turn; `None` for any other restore, which is about everything.
    pub(super) fn of(restore: &Restore) -> Option<Near> {
        let paths = restore.only.clone().filter(|_| restore.expected.is_some())?;
        let upwards = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent);
        let above = paths.iter().flat_map(upwards).collect();
        Some(Near { paths, above })
    }

    /// Returns true if a path is among them.
    pub(super) fn holds(&self, path: &RelPath) -> bool {
        let mut upwards = std::iter::successors(Some(path.clone()), RelPath::parent);
        self.above.contains(path) || upwards.any(|path| self.paths.contains(&path))
    }

    /// Returns the entries of a manifest that are among them.
    pub(super) fn part_of(&self, manifest: &Manifest) -> Manifest {
        let near = manifest.iter().filter(|(path, _)| self.holds(path));
        near.map(|(path, entry)| (path.clone(), *entry)).collect()
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
    /// The lines of each file that would change, of the first files only.
    pub lines: BTreeMap<RelPath, LineCounts>,
    /// Effects after the target that bringing files back does not undo.
    pub externals: Vec<External>,
    /// Sentences on what the target does not hold.
    pub warnings: Vec<String>,
    /// Changes of other hands that it would take along.
    pub outside_edits: Vec<OutsideEdit>,
    /// The share of the turn in each path, where a turn is stepped over.
    pub shares: BTreeMap<RelPath, Attribution>,
    /// The repositories that would come back too.
    pub repositories: Vec<RelPath>,
    /// The paths of the plan that are private now or in the target: their content is only in the private store.
    pub private: BTreeSet<RelPath>,
}

impl Preview {
    /// Returns true if nothing would change.
    pub fn changes_nothing(&self) -> bool {
        self.plan.changes_nothing() && self.repositories.is_empty()
    }
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
    /// Paths that the turn may have changed, and that stay because undoing them was not asked for. Each has the turn's share.
    pub left: BTreeMap<RelPath, Attribution>,
    /// Paths of the turn that stay because they have changed since.
    pub changed_since: Vec<RelPath>,
    /// Paths that stay because the plan that was agreed to does not have them.
    pub not_agreed: Vec<RelPath>,
    /// Effects after the target that bringing files back does not undo.
    pub externals: Vec<External>,
    /// Sentences on what the target does not hold.
    pub warnings: Vec<String>,
}

impl Restored {
    /// Returns true if it leaves a part undone.
    pub fn is_part(&self) -> bool {
        let is_whole = self.outcome.failed.is_empty() && self.conflicts.is_empty();
        !is_whole || !self.left.is_empty() || !self.changed_since.is_empty()
    }
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
