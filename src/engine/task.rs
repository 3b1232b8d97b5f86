//! The work that an event before an action leaves to the worker of a workspace.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::actions::ActionNote;
use super::event::Action;
use super::guard::{Due, TurnCheckpoint};
use super::links::OpaqueAction;
use super::protect;
use super::reach::ActionReach;
use super::record::NewRecord;
use super::workspace::OpenWorkspace;
use crate::checkpoint::capture::request::{Selection, Take};
use crate::checkpoint::catalog::gaps::Gap;
use crate::checkpoint::history::turn_end::TurnName;
use crate::checkpoint::records::workspace::Scope;
use crate::model::effect::{Programs, Takes, Verdict};
use crate::worktree::TargetBudget;

/// The work that an event leaves to the worker.
pub(super) struct Task {
    /// The checkpoint to be taken.
    pub take: Take,
    /// The checkpoint that protects the turn already; `None` for its first action.
    pub turn: Option<TurnCheckpoint>,
    /// True if the action may destroy more than its targets.
    pub reaches_all: bool,
    /// True if the action may start programs that are not on the closed lists.
    pub starts_others: bool,
    /// The time for which the client waits.
    pub wait: Option<Duration>,
    /// True if it is for a part of the action outside of its own workspace.
    pub is_part: bool,
    /// Paths that are known before to be in no checkpoint.
    pub beyond: Vec<Gap>,
    /// The verdict on the action, and where it runs.
    pub judged: Option<(Verdict, PathBuf)>,
    /// The note that the action begins.
    pub note: Option<ActionNote>,
    /// The record of the action.
    pub record: Option<NewRecord>,
    /// The turn that begins with the checkpoint.
    pub begins: Option<TurnName>,
    /// The action, if it may also change files behind the links of the workspace.
    pub opaque: Option<Box<OpaqueAction>>,
}

/// The facts of an action that are the same in all its workspaces.
pub(super) struct PartAction<'a> {
    pub action: &'a Action,
    /// The classifier's answer; without warnings in another workspace than the action's own, where they are noted.
    pub verdict: Verdict,
    /// The directory in which it runs, by its real name.
    pub cwd: PathBuf,
    /// The time at which the event came.
    pub asked: Instant,
    /// True in another workspace than the action's own.
    pub is_part: bool,
    /// True if links lead there, and the action names nothing of it.
    pub is_linked: bool,
}

impl Task {
    /// Returns the work for an action in one workspace. `take` has its run, its turn and its reason.
    pub(super) fn of(open: &OpenWorkspace, take: Take, reach: ActionReach, due: Due, shared: &PartAction<'_>) -> Task {
        let PartAction { action, verdict, cwd, asked, is_part, is_linked } = shared;
        let mut take = Take { asked: Some(*asked), ..take };
        let budget = match open.workspace.scope {
            Scope::Tree => TargetBudget::Wide,
            Scope::TargetsOnly if *is_linked => TargetBudget::Linked,
            Scope::TargetsOnly => TargetBudget::Sparing,
        };
        // An opaque action may follow a link or not: it takes no repository that it does not name.
        let takes = if *is_linked { Takes::Nothing } else { verdict.takes };
        take.selection = Selection { takes, in_place: verdict.in_place, budget, ..Selection::with(reach.targets) };
        take.draft.effects = protect::classes(verdict);
        // An external effect gets a checkpoint even without changes: lists show the effect after it.
        take.draft.always = verdict.warnings.iter().any(|warning| warning.class.is_external());
        Task {
            take,
            turn: if let Due::Held(turn) = due { Some(turn) } else { None },
            reaches_all: reach.is_everything,
            starts_others: !budget.is_sparing() && verdict.programs == Programs::Any,
            wait: action.wait,
            is_part: *is_part,
            beyond: Vec::new(),
            judged: Some((verdict.clone(), cwd.clone())),
            note: None,
            record: None,
            begins: None,
            opaque: None,
        }
    }
}
