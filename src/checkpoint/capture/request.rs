//! Requests for checkpoints, and their results.

use std::sync::Arc;
use std::time::Instant;

use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::selector::Selector;
use crate::checkpoint::records::workspace::Scope;
use crate::error::Result;
use crate::model::checkpoint::{BY_HAND, CheckpointKind};
use crate::model::cost::Cost;
use crate::model::coverage::{Coverage, Extent, SkipReason};
use crate::model::effect::{Class, Takes};
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::worktree::{Target, TargetBudget};

/// A request for a checkpoint: what to capture, and what to record of it.
#[derive(Clone, Debug)]
pub struct Take {
    /// The part of the workspace to capture.
    pub selection: Selection,
    /// The facts to record beside the content.
    pub draft: Draft,
    /// The time of the request: a sync ahead since then need not be repeated
    /// ([`Timeline::sync_ahead`](crate::checkpoint::Timeline::sync_ahead)). Changes after that moment need not be in
    /// the checkpoint.
    pub asked: Option<Instant>,
}

/// The paths that a capture looks at.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Paths that are about to be destroyed: captured whatever the rules say.
    pub targets: Vec<Target>,
    /// True if targets have no budget (before a restore).
    pub unlimited: bool,
    /// The room for what targets bring in.
    pub budget: TargetBudget,
    /// True if patterns of tracked files name the targets.
    pub wanted: bool,
    /// The only paths to capture; empty means everything.
    pub only: Vec<RelPath>,
    /// The repositories whose `.git` goes with the targets; others are left alone although the directories around them are emptied.
    pub takes: Takes,
    /// True if the action may write into files of those repositories: then they are copied, and not linked.
    pub in_place: bool,
}

/// The record that a checkpoint is to get.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The reason for the checkpoint. A `step` becomes a base capture if the turn has no checkpoint of its own.
    pub kind: CheckpointKind,
    /// The id of the run that it belongs to.
    pub run: String,
    /// The client's name of the open turn; `None` outside of turns.
    pub turn: Option<String>,
    /// The codon that it is of, if it is of one.
    pub codon: Option<CodonTag>,
    /// One line for people. Secrets are taken out of it when it is recorded.
    pub reason: String,
    /// Classes of the effects of the action that it is taken for; empty if there is none.
    pub effects: Vec<Class>,
    /// The moment after which it is recorded as late: the action that it is taken for may have begun by then.
    pub answer_by: Option<Instant>,
    /// True if it is recorded even when nothing changed.
    pub always: bool,
    /// True if retention is never to drop it.
    pub pinned: bool,
    /// True if a checkpoint that another process has taken for the same turn serves as well, where it holds all targets.
    pub may_share: bool,
    /// The checkpoint that protects the turn already, where there is one: another one is a step of it.
    pub standing: Option<ObjectId>,
    /// The same for an action that may reach everything: a tree equal to it, or to the workspace's newest, is not recorded
    /// again.
    pub held: Option<ObjectId>,
    /// True if it survives the end of piton at once, and a power cut a moment later.
    pub soon: bool,
}

/// The codon of a checkpoint.
#[derive(Clone, Debug)]
pub struct CodonTag {
    /// The codon's id in its run: `build`, or `build#2` in a loop.
    pub id: String,
    /// The codon's name for people; its id if it has none.
    pub name: String,
    /// The moment when it began, milliseconds since the epoch.
    pub since: Option<i64>,
}

impl Default for Selection {
    /// Returns everything that the rules admit.
    fn default() -> Selection {
        Selection {
            targets: Vec::new(),
            unlimited: false,
            budget: TargetBudget::Wide,
            wanted: false,
            only: Vec::new(),
            takes: Takes::Repositories,
            in_place: false,
        }
    }
}

impl Selection {
    /// Returns everything that the rules admit, and these targets.
    pub fn with(targets: Vec<Target>) -> Selection {
        Selection { targets, ..Selection::default() }
    }

    /// Returns what a checkpoint of single paths has looked at.
    pub(crate) fn of_extent(extent: &Extent) -> Selection {
        let targets = match extent {
            Extent::Tree => Vec::new(),
            Extent::Paths(paths) => paths.iter().map(|path| Target { path: path.clone(), recursive: true }).collect(),
        };
        Selection { budget: TargetBudget::Sparing, ..Selection::with(targets) }
    }

    /// Returns true if it names paths that an action is about to destroy. A restore names everything that it could
    /// touch, and compares with the disk later, when its plan is known.
    pub(super) fn names_targets(&self) -> bool {
        !self.targets.is_empty() && !self.unlimited
    }

    /// Returns how much of a workspace of this scope is looked at.
    pub(super) fn extent(&self, scope: Scope) -> Extent {
        match scope {
            Scope::TargetsOnly => Extent::Paths(self.targets.iter().map(|target| target.path.clone()).collect()),
            Scope::Tree if self.only.is_empty() => Extent::Tree,
            Scope::Tree => Extent::Paths(self.only.clone()),
        }
    }
}

impl Take {
    /// Returns a plain request of a kind, for a run, with a reason.
    pub fn of(kind: CheckpointKind, run: &str, reason: &str) -> Take {
        let draft = Draft {
            kind,
            run: run.to_owned(),
            turn: None,
            codon: None,
            reason: reason.to_owned(),
            effects: Vec::new(),
            answer_by: None,
            always: kind.is_typed(),
            pinned: false,
            may_share: false,
            held: None,
            standing: None,
            soon: false,
        };
        Take { selection: Selection::default(), draft, asked: None }
    }

    /// Returns a request of a person or a client for a checkpoint of some paths, or of everything.
    ///
    /// # Errors
    /// `bad-request` for a label that could never be found.
    pub fn by_hand(run: &str, label: Option<&str>, only: Vec<RelPath>, pinned: bool) -> Result<Take> {
        let reason = label.map_or_else(|| Ok(BY_HAND.to_owned()), Selector::new_label)?;
        let targets = only.iter().map(|path| Target { path: path.clone(), recursive: true }).collect();
        let mut take = Take::of(CheckpointKind::Manual, run, &reason);
        take.selection = Selection { only, ..Selection::with(targets) };
        (take.draft.always, take.draft.pinned) = (pinned || label.is_some(), pinned);
        Ok(take)
    }

    /// Returns a request for looking, which is not recorded.
    pub(crate) fn for_looking(kind: CheckpointKind, selection: Selection) -> Take {
        Take { selection, ..Take::of(kind, "local", "looking") }
    }
}

/// A checkpoint that was taken, or the equal one that was there already.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The checkpoint as it is recorded.
    pub checkpoint: Checkpoint,
    /// True if nothing had changed since `checkpoint`.
    pub unchanged: bool,
    /// True if another process took it meanwhile, for the same turn, and it holds all targets as they are now.
    pub is_shared: bool,
    /// The rules under which the present content was captured, and what was left out.
    pub coverage: Arc<Coverage>,
    /// Paths that differ from the run's previous checkpoint (from the workspace's, for a run's first); `None` if that one is damaged.
    pub changed: Option<u64>,
    /// Milliseconds from the beginning of the work, locks included, to its end.
    pub ms: f64,
    /// The time that each step took.
    pub cost: Cost,
    /// Sentences for the user on what could not be captured.
    pub warnings: Vec<String>,
}

/// Lists skips as the replies do, those that matter first.
pub fn listed_skips(coverage: &Coverage) -> Vec<(RelPath, SkipReason)> {
    let mut skips: Vec<(RelPath, SkipReason)> =
        coverage.skipped.iter().map(|(path, why)| (path.clone(), *why)).collect();
    skips.sort_by_key(|(path, why)| (!why.makes_partial(), path.clone()));
    skips
}
