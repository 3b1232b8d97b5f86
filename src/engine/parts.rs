//! The parts of an action that lie in other workspaces than its own: which they are, and their answers in one.
//!
//! A path outside belongs to the nearest known workspace around it, else to the *outside* workspace, whose root is `/`. A
//! session in a directory that is too broad to be captured opens the projects below it that an action names.
//! *Invariant:* an action without such a path costs no look at the disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use super::decision::{ActionDecision, Decision, OtherPart, Protection};
use super::reach::{ActionReach, OutsidePath, resolved, target, temp_dirs};
use super::session::{Reply, Session};
use crate::checkpoint::Workspace;
use crate::checkpoint::records::workspace::{Scope, is_system, known_around, project_of, scope_of};
use crate::error::{Code, Error, Result};
use crate::model::effect::Verdict;
use crate::model::policy::OnFailure;

/// The root of the workspace of files that are in no other one.
pub const OUTSIDE: &str = "/";

/// The most workspaces beside its own in which one action is guarded.
const MAX_PARTS: usize = 16;

/// The reason to hold an action without a checkpoint.
const HELD: &str = "no checkpoint could be taken, and the policy holds the action then";

/// The part of an action in another workspace, before it is opened.
pub(super) struct Part {
    /// The root of that workspace.
    pub root: PathBuf,
    /// The paths of it that the action may destroy.
    pub reach: ActionReach,
    /// The error that kept piton from finding the parts.
    pub unknown: Option<Error>,
}

impl Part {
    /// Stands for all parts of an action where they cannot be found.
    pub(super) fn unknown(error: Error) -> Part {
        Part { root: PathBuf::from(OUTSIDE), reach: ActionReach::default(), unknown: Some(error) }
    }
}

/// Knows where the paths of one action belong.
struct Places<'a> {
    /// The action's own workspace.
    own: &'a Workspace,
    known: Vec<Workspace>,
    /// True if projects that nobody has opened yet count too.
    opens: bool,
}

impl Places<'_> {
    /// Returns the root of the workspace, beside the own one, to which a path belongs; `None` for the own one.
    fn of(&self, path: &OutsidePath) -> Option<PathBuf> {
        // A project that goes as a whole is one of the files around it, unless it has a history of its own.
        let project = || path.path.parent().filter(|_| self.opens).and_then(|parent| project_of(parent, &self.known));
        let found = known_around(&path.path, &self.known).or_else(project);
        let root = match found {
            Some(root) => root,
            None if path.path.starts_with(&self.own.path) => return None,
            None => PathBuf::from(OUTSIDE),
        };
        (root != self.own.path).then_some(root)
    }

    /// Returns the root of the project, beside the own workspace, in which an action destroys what it does not name.
    fn around(&self, dir: &Path) -> Option<PathBuf> {
        let found = match self.opens {
            true => project_of(dir, &self.known),
            false => known_around(dir, &self.known),
        };
        found.filter(|root| *root != self.own.path)
    }
}

/// Returns true if nobody misses the path, or no checkpoint holds such a thing.
fn is_passed_over(outside: &OutsidePath) -> bool {
    let path = &outside.path;
    // What is only written into a broad directory destroys little of it, and all of it is too much.
    let is_broad = || !outside.is_wiped && scope_of(path) == Scope::TargetsOnly;
    is_system(path) || temp_dirs().iter().any(|temp| path.starts_with(temp)) || is_broad()
}

/// Finds the parts of an action in other workspaces, and takes their paths out of its own reach.
///
/// # Errors
/// When the known workspaces cannot be listed.
pub(super) fn others(
    engine: &Engine,
    (session, own): (&Workspace, &Workspace),
    (cwd, verdict): (&Path, &Verdict),
    reach: &mut ActionReach,
) -> Result<Vec<Part>> {
    let is_broad = own.scope == Scope::TargetsOnly;
    let dirs: Vec<PathBuf> = match verdict.reaches_all {
        true => verdict.dirs.iter().map(|dir| cwd.join(dir)).collect(),
        false => Vec::new(),
    };
    let is_elsewhere = |dir: &PathBuf| is_broad || !dir.starts_with(&own.path);
    let dirs: Vec<PathBuf> = dirs.into_iter().filter(is_elsewhere).map(|dir| real(&dir)).collect();
    let outside = std::mem::take(&mut reach.outside);
    if outside.is_empty() && dirs.is_empty() && !(is_broad && !reach.targets.is_empty()) {
        return Ok(Vec::new());
    }
    let places =
        Places { own, known: Workspace::known(engine.home())?, opens: is_broad || session.scope == Scope::TargetsOnly };
    let mut parts: BTreeMap<PathBuf, ActionReach> = BTreeMap::new();
    for path in outside.into_iter().filter(|outside| outside.path.symlink_metadata().is_ok()) {
        let Some(root) = places.of(&path) else { continue };
        if root != Path::new(OUTSIDE) || !is_passed_over(&path) {
            let part = parts.entry(root.clone()).or_default();
            part.targets.extend(target(&root, &path.path, path.is_wiped));
            part.is_everything |= root.starts_with(&path.path);
        }
    }
    if is_broad {
        move_out(&places, reach, &mut parts);
    }
    for root in dirs.iter().filter_map(|dir| places.around(dir)) {
        parts.entry(root).or_default().is_everything = true;
    }
    parts.retain(|_, reach| !reach.is_nothing());
    let many = |at: usize| {
        let text = format!("one action is guarded in at most {MAX_PARTS} other workspaces");
        (at >= MAX_PARTS).then(|| Error::new(Code::TooLarge, text))
    };
    let parts = parts.into_iter().enumerate();
    Ok(parts.map(|(at, (root, reach))| Part { root, reach, unknown: many(at) }).collect())
}

/// Moves the targets that belong to projects below a broad directory to them.
fn move_out(places: &Places<'_>, reach: &mut ActionReach, parts: &mut BTreeMap<PathBuf, ActionReach>) {
    let own = &places.own.path;
    reach.targets.retain(|aimed| {
        let path = aimed.path.under(own);
        let outside = OutsidePath { is_wiped: true, path };
        let Some(root) = places.of(&outside) else { return true };
        let part = parts.entry(root.clone()).or_default();
        part.is_everything |= root == outside.path;
        part.targets.extend(target(&root, &outside.path, true));
        false
    });
}

/// Returns a directory by its real name, if it is there.
fn real(dir: &Path) -> PathBuf {
    dir.canonicalize().unwrap_or_else(|_| resolved(dir))
}

/// The answer to an action, while its parts are still waited for.
pub(super) struct Gathering(Mutex<Gathered>);

struct Gathered {
    /// The number of answers that are still to come.
    waiting: usize,
    /// The answer of the action's own workspace.
    own: Option<Result<Decision>>,
    others: Vec<OtherPart>,
    /// The reason of a part to hold the action.
    hold: Option<String>,
    reply: Option<Reply<Decision>>,
}

impl Gathering {
    /// Makes one that answers with `reply` once the own workspace and `parts` others have answered.
    pub(super) fn new(reply: Reply<Decision>, parts: usize) -> Arc<Gathering> {
        let gathered =
            Gathered { waiting: parts + 1, own: None, others: Vec::new(), hold: None, reply: Some(reply) };
        Arc::new(Gathering(Mutex::new(gathered)))
    }

    /// Returns the reply for the action's own workspace.
    pub(super) fn own(self: &Arc<Gathering>) -> Reply<Decision> {
        let this = Arc::clone(self);
        Box::new(move |session, decision| this.add(session, |gathered| gathered.own = Some(decision)))
    }

    /// Returns the reply for a part.
    pub(super) fn part(self: &Arc<Gathering>, root: PathBuf) -> Reply<Decision> {
        let this = Arc::clone(self);
        Box::new(move |session, decision| {
            let (other, hold) = part_of(root, decision);
            this.answer(session, other, hold);
        })
    }

    /// Adds the answer of a part, and perhaps its reason to hold the action.
    fn answer(&self, session: &mut Session, other: OtherPart, hold: Option<String>) {
        self.add(session, |gathered| {
            gathered.others.push(other);
            gathered.hold = gathered.hold.take().or(hold);
        });
    }

    /// Adds a part that cannot be protected.
    pub(super) fn fail(&self, session: &mut Session, root: PathBuf, reason: String, on_failure: OnFailure) {
        let hold = (on_failure == OnFailure::Hold).then(|| HELD.to_owned());
        self.answer(session, failed(root, reason), hold);
    }

    fn add(&self, session: &mut Session, change: impl FnOnce(&mut Gathered)) {
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut gathered);
        gathered.waiting -= 1;
        let done = if gathered.waiting == 0 { gathered.reply.take().zip(gathered.own.take()) } else { None };
        let (mut others, hold) = match done {
            Some(_) => (std::mem::take(&mut gathered.others), gathered.hold.take()),
            None => return,
        };
        drop(gathered);
        others.sort_by(|one, two| one.root.cmp(&two.root));
        let Some((reply, own)) = done else { return };
        reply(session, own.map(|decision| together(decision, others, hold.as_deref())));
    }
}

/// Returns the answer to the whole action.
fn together(decision: Decision, others: Vec<OtherPart>, hold: Option<&str>) -> Decision {
    match decision {
        Decision::Action(mut action) => {
            action.stance = action.stance.or_ask(hold);
            action.others = others;
            Decision::Action(action)
        }
        other => other,
    }
}

/// Returns the answer of a part, with its reason to hold the action.
fn part_of(root: PathBuf, decision: Result<Decision>) -> (OtherPart, Option<String>) {
    match decision {
        Ok(Decision::Action(action)) => {
            let ActionDecision { stance, protection, not_held, .. } = *action;
            (OtherPart { root, protection, not_held }, stance.reason().map(str::to_owned))
        }
        // A part asks for nothing but a checkpoint.
        Ok(_) => (failed(root, "the part got no answer".to_owned()), None),
        Err(error) => (failed(root, error.text()), None),
    }
}

fn failed(root: PathBuf, reason: String) -> OtherPart {
    OtherPart { root, protection: Protection::Failed(reason), not_held: Vec::new() }
}
