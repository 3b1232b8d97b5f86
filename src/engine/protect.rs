//! The worker's part in an action: hold, take, and note what cannot be undone.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::guard::TurnCheckpoint;
use super::job::Answer;
use crate::checkpoint::capture::request::{Selection, Take, Taken};
use crate::checkpoint::catalog::gaps::{Gap, beyond, of_targets};
use crate::checkpoint::history::turn_end::TurnName;
use crate::checkpoint::{Checkpoint, Timeline};
use crate::error::Result;
use crate::model::effect::{Class, Verdict};
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::sys::interrupt::Interrupt;
use crate::worktree::{Target, TargetBudget};

/// The checkpoint that an action got.
#[derive(Debug)]
pub enum Protected {
    /// A new checkpoint, or an equal one that was there.
    Taken(Box<Taken>),
    /// This checkpoint holds everything that the action may destroy, as it stands now.
    Held(Checkpoint),
}

impl Protected {
    /// Returns the checkpoint.
    pub fn checkpoint(&self) -> &Checkpoint {
        match self {
            Protected::Taken(taken) => &taken.checkpoint,
            Protected::Held(checkpoint) => checkpoint,
        }
    }
}

/// Notes that a turn begins, as its first checkpoint has captured the workspace.
pub fn begin_turn(timeline: &mut Timeline, turn: &TurnName, base: &Protected) {
    if let Err(error) = timeline.begin_turn(turn, base.checkpoint().id) {
        tracing::warn!(%error, "could not record the beginning of a turn, so its changes will be unknown");
    }
}

/// Finishes a request on the worker's thread.
pub type Done = Box<dyn FnOnce(&mut Timeline, Result<Protected>) -> Answer + Send>;

/// A checkpoint that a client waits for.
pub struct Wanted {
    /// The checkpoint to be taken.
    pub take: Take,
    /// The checkpoint that protects the turn, where the action is not the turn's first.
    pub turn: Option<TurnCheckpoint>,
    /// True if the action belongs to a turn, one checkpoint of which protects all its actions.
    pub is_of_turn: bool,
    /// True if the action may destroy more than its targets.
    pub reaches_all: bool,
    /// True if the action may start programs that are not on the closed lists. It reaches everything then, where the workspace is watched
    /// or may be scanned.
    pub starts_others: bool,
    /// True if a scan may be used for that where the workspace is not watched.
    pub may_scan: bool,
    /// True if it is for an action that is noted.
    pub is_noted: bool,
    /// True if the client waits for answers: then every checkpoint of the turn came before the action it was taken for, and a later
    /// one protects as well as the first.
    pub waits: bool,
    /// The time at which the client is answered without it.
    pub deadline: Option<Instant>,
    /// The time at which the named paths are captured by themselves.
    pub press_at: Option<Instant>,
    /// The capture of just the named paths; those who wait together share it.
    pub named: NamedCapture,
    /// The continuation of whoever waits.
    pub done: Done,
}

/// A capture of just the paths that an action names, made where everything takes long.
#[derive(Clone, Default)]
pub struct NamedCapture(Arc<Mutex<NamedState>>);

#[derive(Default)]
enum NamedState {
    /// It was not tried yet.
    #[default]
    None,
    /// It was tried and failed.
    GivenUp,
    /// It was taken, and may be told of.
    Taken(Arc<NamedLeaf>),
}

/// The checkpoint of such a capture. Several actions may share it.
struct NamedLeaf {
    /// The checkpoint of the named paths.
    taken: Taken,
    /// True if a client was answered with it.
    is_told: AtomicBool,
}

impl NamedCapture {
    fn set(&self, to: NamedState) -> NamedState {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), to)
    }

    fn is_open(&self) -> bool {
        matches!(*self.0.lock().unwrap_or_else(PoisonError::into_inner), NamedState::None)
    }

    /// Returns the capture for the answer to a client, and notes that.
    pub fn tell(&self) -> Option<Taken> {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            NamedState::Taken(leaf) => {
                leaf.is_told.store(true, Ordering::SeqCst);
                Some(leaf.taken.clone())
            }
            NamedState::None | NamedState::GivenUp => None,
        }
    }

    /// Returns the checkpoint if no client was answered with it and no other request shares it.
    pub fn forget(&self) -> Option<Checkpoint> {
        let NamedState::Taken(leaf) = self.set(NamedState::GivenUp) else { return None };
        // Another request still shares the checkpoint: the last one drops it.
        let leaf = Arc::into_inner(leaf)?;
        (!leaf.is_told.load(Ordering::SeqCst)).then_some(leaf.taken.checkpoint)
    }
}

/// The part of a request that a capture of just its named paths needs.
pub struct Pressing {
    /// The request for the whole checkpoint, whose targets are the named paths.
    take: Take,
    /// The place for the result.
    named: NamedCapture,
}

impl Wanted {
    /// Makes a request for a capture of everything that no client waits for.
    pub fn base(take: Take, done: Done) -> Wanted {
        Wanted {
            take,
            turn: None,
            is_of_turn: false,
            reaches_all: true,
            starts_others: false,
            may_scan: false,
            is_noted: false,
            waits: false,
            deadline: None,
            press_at: None,
            named: NamedCapture::default(),
            done,
        }
    }

    /// Returns the moment at which the named paths of an action are captured by themselves: a scan that ends before it needs no such
    /// capture. Nearly all of the wait is left for one on a busy machine.
    pub fn press_at(asked: Instant, wait: Duration) -> Instant {
        asked + wait / 8
    }

    /// Returns true if one capture serves both.
    pub fn joins(&self, other: &Wanted) -> bool {
        let all_wait = self.is_of_turn && other.is_of_turn && self.waits && other.waits;
        let (one, two) = (&self.take, &other.take);
        all_wait
            && one.draft.run == two.draft.run
            && one.draft.turn == two.draft.turn
            && one.selection.takes == two.selection.takes
            && one.selection.budget == two.selection.budget
    }

    /// Returns true if it has waited for long and names paths that were not captured yet.
    pub fn is_pressing(&self, now: Instant) -> bool {
        self.press_at.is_some_and(|at| at <= now) && named(&self.take).next().is_some() && self.named.is_open()
    }

    /// Returns what a capture of just the named paths needs, if it is time for that.
    pub fn pressing(&self, now: Instant) -> Option<Pressing> {
        self.is_pressing(now).then(|| Pressing { take: self.take.clone(), named: self.named.clone() })
    }

    /// Returns the checkpoint that protects the turn. The worker may know a newer one than the request.
    fn standing(&self, last: Option<&LastTurn>) -> Option<TurnCheckpoint> {
        let newer = last.filter(|last| self.is_of_turn && self.waits && last.is_of(&self.take));
        self.turn.clone().or_else(|| newer.map(|last| last.checkpoint.clone()))
    }
}

/// The last checkpoint that was taken for a turn. Actions that came before its answer know nothing of it.
pub struct LastTurn {
    run: String,
    /// The client's name of the turn; `None` never protects a later action.
    turn: Option<String>,
    checkpoint: TurnCheckpoint,
}

impl LastTurn {
    /// Remembers the checkpoint of a turn.
    pub fn of(take: &Take, checkpoint: &Checkpoint) -> LastTurn {
        let (run, turn) = (take.draft.run.clone(), take.draft.turn.clone());
        LastTurn { run, turn, checkpoint: turn_checkpoint(checkpoint) }
    }

    fn is_of(&self, take: &Take) -> bool {
        take.draft.turn.is_some() && self.turn == take.draft.turn && self.run == take.draft.run
    }
}

/// Returns the capture of just what some requests name; `None` where they name nothing.
pub fn only_named(pressing: &[Pressing]) -> Option<Take> {
    let first = pressing.first()?;
    let mut targets: Vec<Target> = pressing.iter().flat_map(|one| named(&one.take).cloned()).collect();
    sort(&mut targets);
    let takes = pressing.iter().map(|one| one.take.selection.takes).max().unwrap_or_default();
    let in_place = pressing.iter().any(|one| one.take.selection.in_place);
    let only = targets.iter().map(|target| target.path.clone()).collect();
    // In a workspace of single paths, their budget is a small one already.
    let budgets = || pressing.iter().map(|one| one.take.selection.budget);
    let budget = match first.take.selection.budget {
        TargetBudget::Wide | TargetBudget::First => TargetBudget::First,
        TargetBudget::Linked if budgets().all(|budget| budget == TargetBudget::Linked) => TargetBudget::Linked,
        TargetBudget::Sparing | TargetBudget::Linked => TargetBudget::Sparing,
    };
    Some(Take {
        selection: Selection { budget, only, takes, in_place, ..Selection::with(targets) },
        ..first.take.clone()
    })
}

/// Gives a capture of named paths to all requests that waited for it.
pub fn hand_out(pressing: Vec<Pressing>, taken: Taken) {
    let leaf = Arc::new(NamedLeaf { taken, is_told: AtomicBool::new(false) });
    for one in pressing {
        one.named.set(NamedState::Taken(Arc::clone(&leaf)));
    }
}

/// Notes that the named paths cannot be captured by themselves, so that it is not tried again.
pub fn give_up(pressing: Vec<Pressing>) {
    for one in pressing {
        one.named.set(NamedState::GivenUp);
    }
}

/// Returns the checkpoint that holds already all that an action names, as it stands now. `None`: one has to be taken.
///
/// # Errors
/// Returns the errors of reading.
pub fn held(
    timeline: &mut Timeline,
    wanted: &Wanted,
    last: Option<&LastTurn>,
    control: Interrupt<'_>,
) -> Result<Option<Protected>> {
    let Some(turn) = wanted.standing(last).filter(|_| !wanted.reaches_all) else { return Ok(None) };
    // The state of a session may be damaged: an id that is none protects nothing, and a checkpoint is taken.
    for checkpoint in timeline.catalog().protecting(turn.id.parse().ok(), wanted.waits)? {
        if timeline.holds(&checkpoint.id, &wanted.take.selection, control)? {
            return Ok(Some(Protected::Held(checkpoint)));
        }
    }
    Ok(None)
}

/// Returns the one checkpoint that serves all of some requests; `None` without any.
pub fn joined(open: &[&Wanted], last: Option<&LastTurn>) -> Option<Take> {
    let first = *open.first()?;
    let mut take = first.take.clone();
    for further in open.iter().skip(1).map(|wanted| &wanted.take) {
        take.selection.targets.extend(further.selection.targets.iter().cloned());
        take.draft.effects.extend(further.draft.effects.iter().copied());
        take.selection.in_place |= further.selection.in_place;
        take.draft.always |= further.draft.always;
        // The capture has to hold all changes from before the last of them asked.
        take.asked = take.asked.zip(further.asked).map(|(one, two)| one.max(two));
    }
    if open.len() > 1 {
        sort(&mut take.selection.targets);
        take.draft.effects.sort();
        take.draft.effects.dedup();
    }
    // Without a daemon another hook of the turn may have been quicker.
    take.draft.may_share = open.iter().all(|wanted| wanted.is_of_turn && wanted.waits && !wanted.reaches_all);
    take.draft.standing = open.iter().find_map(|wanted| wanted.standing(last)).and_then(|turn| turn.id.parse().ok());
    // Taking compares everything with the last checkpoint, and records nothing where nothing differs.
    if open.iter().all(|wanted| wanted.reaches_all)
        && let Some(turns) = open.iter().map(|wanted| wanted.standing(last)).collect::<Option<Vec<_>>>()
    {
        take.draft.held = turns.first().and_then(|turn| turn.id.parse().ok());
        take.draft.always = false;
    }
    Some(take)
}

/// Returns the answer to one of several requests that share a checkpoint. The first is told that it was taken.
pub fn answered(wanted: &Wanted, taken: &Taken, (is_first, last): (bool, Option<&LastTurn>)) -> Protected {
    let standing = wanted.standing(last).filter(|_| wanted.reaches_all);
    let is_held = match standing {
        Some(turn) => {
            // The state of a session may be damaged: an id that is none equals no checkpoint's.
            let own: Option<ObjectId> = turn.id.parse().ok();
            taken.unchanged && (wanted.waits || Some(taken.checkpoint.id) == own)
        }
        // The capture began after it was asked for, with its targets: all of them are in it, as they stood then.
        None => !is_first && of_targets(&taken.coverage, &wanted.take.selection.targets).is_empty(),
    };
    if is_held || taken.is_shared {
        Protected::Held(taken.checkpoint.clone())
    } else {
        Protected::Taken(Box::new(taken.clone()))
    }
}

fn sort(targets: &mut Vec<Target>) {
    targets.sort_by(|a, b| (&a.path, !a.recursive).cmp(&(&b.path, !b.recursive)));
    targets.dedup_by(|one, kept| one.path == kept.path);
}

/// Returns the targets that are less than the whole workspace.
fn named(take: &Take) -> impl Iterator<Item = &Target> {
    take.selection.targets.iter().filter(|target| !target.path.is_root())
}

/// Returns the classes of what an action does, for the record.
pub fn classes(verdict: &Verdict) -> Vec<Class> {
    let mut classes: Vec<Class> = verdict.effects.iter().map(|effect| effect.class).collect();
    classes.sort();
    classes.dedup();
    classes
}

/// Returns a checkpoint as the turn remembers it.
pub fn turn_checkpoint(checkpoint: &Checkpoint) -> TurnCheckpoint {
    let (number, kind) = (checkpoint.record.number, checkpoint.record.kind);
    TurnCheckpoint { id: checkpoint.id.to_string(), number, kind }
}

/// Lists what an action may destroy and its checkpoint does not hold: of the paths that it names, and of all where it may reach
/// more than those (`reaches_all`).
///
/// `repositories` are those in which the action destroys what it does not name.
pub fn not_held(
    timeline: &Timeline,
    protected: &Protected,
    take: &Take,
    (reaches_all, repositories): (bool, &[RelPath]),
) -> Vec<Gap> {
    let targets = &take.selection.targets;
    let catalog = timeline.catalog();
    let gaps = || -> Result<Vec<Gap>> {
        let (checkpoint, mut gaps) = match protected {
            Protected::Taken(taken) => (&taken.checkpoint, of_targets(&taken.coverage, targets)),
            Protected::Held(checkpoint) => (checkpoint, catalog.gaps_of(checkpoint, targets)?),
        };
        if reaches_all || targets.is_empty() {
            let missed = match protected {
                Protected::Taken(taken) => beyond(&taken.coverage),
                Protected::Held(checkpoint) => catalog.beyond_at(checkpoint)?,
            };
            gaps.extend(missed);
        }
        gaps.extend(catalog.repositories_left_out(checkpoint, repositories)?);
        let mut named = HashSet::new();
        gaps.retain(|gap| named.insert(gap.path.clone()));
        Ok(gaps)
    };
    gaps().unwrap_or_else(|error| {
        tracing::warn!(%error, "could not read what the checkpoint leaves out");
        Vec::new()
    })
}
