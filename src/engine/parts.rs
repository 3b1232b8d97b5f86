//! The parts of an action that lie in other workspaces than its own: which they are, and their answers in one.
//!
//! A path outside belongs to the nearest known workspace around it, else to that of another repository, which is opened for it. All
//! other paths belong to the *outside* workspace, whose root is `/`, also those in the action's own repository. A session in a directory
//! that is too broad to be captured opens the projects below it that an action names.
//! *Invariant:* an action without such a path costs no look at the disk.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Engine;
use super::decision::{ActionDecision, Decision, OtherPart, Protection, Stance};
use super::reach::{ActionReach, OutsidePath, is_passed_over, resolved, target};
use super::session::{Reply, Session};
use super::work_trees::{self, TreeFiles};
use crate::checkpoint::Workspace;
use crate::checkpoint::catalog::gaps::Gap;
use crate::checkpoint::records::state::WorkspaceState;
use crate::checkpoint::records::workspace::{Scope, is_system, known_around, project_of, scope_of};
use crate::error::{Code, Error, Result};
use crate::model::coverage::{SkipReason, Weight};
use crate::model::effect::{Class, Needs, Verdict, Warning};
use crate::model::path::RelPath;
use crate::model::policy::OnFailure;
use crate::sys::clock::now_ms;

/// The root of the workspace of files that are in no other one.
pub const OUTSIDE: &str = "/";

/// The most workspaces beside its own in which one action is guarded.
const MAX_PARTS: usize = 16;

/// The reason to hold an action without a checkpoint.
const HELD: &str = "no checkpoint could be taken, so the policy blocks the action";

/// The part of an action in another workspace, before it is opened.
pub(super) struct OtherReach {
    /// The root of that workspace.
    pub root: PathBuf,
    /// The paths of it that the action may destroy.
    pub reach: ActionReach,
    /// Paths that are too broad for a checkpoint before the action.
    pub broad: BTreeSet<RelPath>,
    /// The error that keeps the part from being protected.
    pub refused: Option<Error>,
}

impl OtherReach {
    /// Returns a part in which nothing is reached yet.
    pub(super) fn at(root: &Path) -> OtherReach {
        OtherReach { root: root.to_owned(), reach: ActionReach::default(), broad: BTreeSet::new(), refused: None }
    }

    /// Stands for all parts of an action where they cannot be found.
    pub(super) fn unknown(error: Error) -> OtherReach {
        OtherReach { refused: Some(error), ..OtherReach::at(Path::new(OUTSIDE)) }
    }

    /// Lists the paths that are too broad as paths that no checkpoint holds.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        let why = SkipReason::OverBudget(Weight::default());
        self.broad.iter().map(|path| Gap { path: path.clone(), weight: None, why }).collect()
    }

    /// Adds a path of it that the action may destroy.
    pub(super) fn add(&mut self, path: &Path, is_wiped: bool) {
        self.reach.targets.extend(target(&self.root, path, is_wiped));
        self.reach.is_everything |= self.root == path;
    }
}

/// The parts of an action in other workspaces.
#[derive(Default)]
pub(super) struct OtherParts {
    /// The parts.
    pub reached: Vec<OtherReach>,
    /// True if the checkpoints of the parts are to contain all existing files outside of the action's workspace that it destroys.
    pub are_all_saved: bool,
}

/// Knows where the paths of one action belong.
struct Places<'a> {
    /// The action's own workspace.
    own: &'a Workspace,
    known: Vec<Workspace>,
    /// True if projects that nobody has opened yet count too.
    opens: bool,
    /// The roots of directories that were asked for already: many paths lie in one.
    asked: HashMap<PathBuf, Option<PathBuf>>,
}

impl Places<'_> {
    /// Returns the root of the workspace to which a path belongs; `None` for the own one.
    fn of(&mut self, path: &Path) -> Option<PathBuf> {
        let is_known = |workspace: &Workspace| workspace.path == path && workspace.scope == Scope::Tree;
        // A project that goes as a whole is one of the files around it, unless it has a history of its own.
        let found = match path.parent() {
            _ if self.known.iter().any(is_known) => known_around(path, &self.known),
            Some(parent) => self.around(parent),
            None => None,
        };
        let root = match found {
            Some(root) => root,
            None if path.starts_with(&self.own.path) => return None,
            None => PathBuf::from(OUTSIDE),
        };
        (root != self.own.path).then_some(root)
    }

    /// Returns the root of the workspace around a directory, if that is a whole one.
    fn around(&mut self, dir: &Path) -> Option<PathBuf> {
        if let Some(found) = self.asked.get(dir) {
            return found.clone();
        }
        let found = match self.opens {
            true => project_of(dir, &self.known),
            false => known_around(dir, &self.known).or_else(|| self.other_repository(dir)),
        };
        self.asked.insert(dir.to_owned(), found.clone());
        found
    }

    /// Returns the top of the repository around a directory, if it is another one than the action's own.
    fn other_repository(&self, dir: &Path) -> Option<PathBuf> {
        let is_repository = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        let top = dir.ancestors().find(is_repository).filter(|top| is_other_repository(top, &self.own.path))?;
        Some(top.to_owned())
    }
}

/// Returns true for the top of a repository that gets a workspace of its own: it can be captured, is not the one around the action's own
/// workspace, and holds files that someone may miss.
fn is_other_repository(top: &Path, own: &Path) -> bool {
    scope_of(top) == Scope::Tree && !own.starts_with(top) && !is_passed_over(top)
}

/// Returns the path to name if one outside every workspace holds too much for a checkpoint before the action.
///
/// It is `/` for all that a pattern matches there, else a directory like the home directory, unless it is named as one that goes.
fn too_broad(outside: &OutsidePath) -> Option<RelPath> {
    let path = outside.path.as_path();
    let is_all = path.parent().is_none_or(|parent| outside.is_match && parent == Path::new(OUTSIDE));
    let is_broad = is_all || (!outside.is_wiped && scope_of(path) == Scope::TargetsOnly);
    let at = if is_all { Path::new("") } else { path.strip_prefix(OUTSIDE).unwrap_or(path) };
    is_broad.then(|| RelPath::from_path(at).ok()).flatten()
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
) -> Result<OtherParts> {
    let is_broad = own.scope == Scope::TargetsOnly;
    let dirs: &[String] = if verdict.reaches_all { &verdict.dirs } else { &[] };
    let dirs = dirs
        .iter()
        .chain(&verdict.abroad)
        .map(|dir| cwd.join(dir))
        .filter(|dir| is_broad || !dir.starts_with(&own.path));
    let (dirs, mut outside) = (dirs.collect::<Vec<_>>(), std::mem::take(&mut reach.outside));
    let mut trees = work_trees::reached(cwd, &verdict.repositories);
    // The workspace holds a work tree inside of it, unless it is too broad for that.
    trees.retain(|tree| !tree.top.starts_with(&own.path) || scope_of(&tree.top) == Scope::TargetsOnly);
    if outside.is_empty() && dirs.is_empty() && trees.is_empty() && (!is_broad || reach.targets.is_empty()) {
        return Ok(OtherParts { reached: Vec::new(), are_all_saved: true });
    }
    // No checkpoint deletes the new files that an action writes outside.
    let mut are_all_saved = outside.iter().all(|outside| outside.path.symlink_metadata().is_ok());
    let opens = is_broad || session.scope == Scope::TargetsOnly;
    let mut places = Places { own, known: Workspace::known(engine.home())?, opens, asked: HashMap::new() };
    let mut parts: BTreeMap<PathBuf, OtherReach> = BTreeMap::new();
    for tree in &trees {
        match scope_of(&tree.top) {
            Scope::Tree => add_tree(&mut parts, &places, tree, &mut outside),
            Scope::TargetsOnly => add_broad(&mut parts, own, tree, (reach, &mut outside)),
        }
    }
    for path in outside.into_iter().filter(|outside| outside.path.symlink_metadata().is_ok()) {
        let Some(root) = places.of(&path.path) else { continue };
        let is_outside = root == Path::new(OUTSIDE);
        if is_outside && is_passed_over(&path.path) {
            are_all_saved &= !is_system(&path.path);
            if let Some(found) = unseen_system(&path, verdict) {
                parts.entry(root.clone()).or_insert_with(|| OtherReach::at(&root)).broad.insert(found);
            }
            continue;
        }
        let broad = if is_outside { too_broad(&path) } else { None };
        let part = parts.entry(root.clone()).or_insert_with(|| OtherReach::at(&root));
        match broad {
            Some(broad) => _ = part.broad.insert(broad),
            None => part.add(&path.path, path.is_wiped),
        }
    }
    if is_broad {
        // Paths of a project below a broad directory are the project's.
        reach.targets.retain(|aimed| {
            let path = aimed.path.under(&own.path);
            let Some(root) = places.of(&path) else { return true };
            parts.entry(root.clone()).or_insert_with(|| OtherReach::at(&root)).add(&path, true);
            false
        });
    }
    for dir in dirs {
        let dir = real(&dir);
        match places.around(&dir) {
            Some(root) if root == own.path => {}
            Some(root) => parts.entry(root.clone()).or_insert_with(|| OtherReach::at(&root)).reach.is_everything = true,
            // The answer for the session's own directory says what is not saved there.
            None if dir == own.path => {}
            None if trees.iter().any(|tree| tree.holds(&dir)) => {}
            None => add_unknown(&mut parts, &dir),
        }
    }
    let reached = bounded(parts.into_values());
    let is_off = |root: &Path| {
        let known = places.known.iter().find(|known| known.path == root);
        known.is_some_and(|known| WorkspaceState::load(&known.dir).is_off(now_ms()))
    };
    are_all_saved &= !reached.iter().any(|part| is_off(&part.root));
    are_all_saved &= reached.iter().all(|part| part.broad.is_empty() && part.refused.is_none());
    Ok(OtherParts { reached, are_all_saved })
}

/// Returns the path of a file of the system that an action comes to through a link. The words of the action name another place, so that
/// nothing has warned of it.
fn unseen_system(outside: &OutsidePath, verdict: &Verdict) -> Option<RelPath> {
    let path = outside.path.as_path();
    let is_warned_of = verdict.effects.iter().any(|effect| effect.class == Class::System);
    // A device has no content to lose.
    let has_content = |path: &Path| {
        path.symlink_metadata().is_ok_and(|facts| facts.is_file() || facts.is_dir() || facts.is_symlink())
    };
    let is_unseen = outside.is_led && !is_warned_of && is_system(path) && has_content(path);
    if is_unseen { RelPath::from_path(path.strip_prefix(OUTSIDE).ok()?).ok() } else { None }
}

/// Adds the files that git takes of a work tree which begins above the workspace, or elsewhere. The repository at the top is opened as a
/// workspace: those who work below it take its files along.
fn add_tree(
    parts: &mut BTreeMap<PathBuf, OtherReach>,
    places: &Places<'_>,
    tree: &TreeFiles,
    outside: &mut Vec<OutsidePath>,
) {
    let (own, known) = (&places.own.path, &places.known);
    if !own.starts_with(&tree.top) && known_around(&tree.top, known).is_none() && is_passed_over(&tree.top) {
        return;
    }
    let around = project_of(&tree.top, known).unwrap_or_else(|| tree.top.clone());
    let Some(named) = &tree.named else {
        parts.entry(around.clone()).or_insert_with(|| OtherReach::at(&around)).reach.is_everything = true;
        return;
    };
    for path in named.iter().filter(|path| !path.starts_with(own) && path.symlink_metadata().is_ok()) {
        outside.retain(|outside| outside.path != *path);
        let nearer = path.parent().and_then(|dir| known_around(dir, known)).filter(|root| root.starts_with(&tree.top));
        let root = nearer.unwrap_or_else(|| around.clone());
        parts.entry(root.clone()).or_insert_with(|| OtherReach::at(&root)).add(path, false);
    }
}

/// Adds the files that git takes of a work tree that is too broad to be captured, like a home directory with a repository: those
/// with uncommitted work. Where these are not all, the answer names the directory as one that no checkpoint holds.
fn add_broad(
    parts: &mut BTreeMap<PathBuf, OtherReach>,
    own: &Workspace,
    tree: &TreeFiles,
    (reach, outside): (&mut ActionReach, &mut Vec<OutsidePath>),
) {
    let (files, is_all) = tree.of_broad(work_trees::LIMIT);
    for path in files {
        let inside = if own.scope == Scope::TargetsOnly { target(&own.path, &path, false) } else { None };
        match inside {
            Some(target) => reach.targets.push(target),
            // The workspace holds it.
            None if path.starts_with(&own.path) => {}
            None => outside.push(OutsidePath::named(&path)),
        }
    }
    reach.targets.sort_by(|a, b| a.path.cmp(&b.path));
    reach.targets.dedup();
    let broad = if is_all { None } else { tree.top.strip_prefix(OUTSIDE).ok() };
    if let Some(broad) = broad.and_then(|path| RelPath::from_path(path).ok()) {
        let outside = Path::new(OUTSIDE);
        parts.entry(outside.to_owned()).or_insert_with(|| OtherReach::at(outside)).broad.insert(broad);
    }
}

/// Adds a directory of no workspace in which an action may destroy what it does not name: the repository around it, else itself.
/// It may be a file to which a word points.
fn add_unknown(parts: &mut BTreeMap<PathBuf, OtherReach>, dir: &Path) {
    let is_repository = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok() && scope_of(dir) == Scope::Tree;
    let top = dir.ancestors().find(is_repository).filter(|_| dir.is_dir()).unwrap_or(dir);
    if is_passed_over(top) || top.symlink_metadata().is_err() {
        return;
    }
    let outside = OutsidePath::named(top);
    let part = parts.entry(PathBuf::from(OUTSIDE)).or_insert_with(|| OtherReach::at(Path::new(OUTSIDE)));
    match too_broad(&outside) {
        Some(broad) => _ = part.broad.insert(broad),
        None => part.add(&outside.path, false),
    }
}

/// Returns those parts in which something is reached; of too many, the last ones are refused.
pub(super) fn bounded(parts: impl Iterator<Item = OtherReach>) -> Vec<OtherReach> {
    let refused = |at: usize| {
        let text = format!("one action is guarded in at most {MAX_PARTS} other workspaces");
        (at >= MAX_PARTS).then(|| Error::new(Code::TooLarge, text))
    };
    let reached = parts.filter(|part| !part.reach.is_nothing() || !part.broad.is_empty());
    reached.enumerate().map(|(at, part)| OtherReach { refused: refused(at), ..part }).collect()
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
    /// The strongest stance of a part.
    stance: Stance,
    /// The warnings of the parts.
    warnings: Vec<Warning>,
    reply: Option<Reply<Decision>>,
}

impl Gathering {
    /// Makes one that answers with `reply` once the own workspace and `parts` others have answered.
    pub(super) fn new(reply: Reply<Decision>, parts: usize) -> Arc<Gathering> {
        let (own, others, warnings, stance) = (None, Vec::new(), Vec::new(), Stance::Proceed);
        let gathered = Gathered { waiting: parts + 1, own, others, stance, warnings, reply: Some(reply) };
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
            let (other, stance, warnings) = part_of(root, decision);
            this.answer(session, other, stance, warnings);
        })
    }

    /// Adds the answer of a part.
    fn answer(&self, session: &mut Session, other: OtherPart, stance: Stance, warnings: Vec<Warning>) {
        self.add(session, |gathered| {
            gathered.others.push(other);
            gathered.warnings.extend(warnings);
            gathered.stance = std::mem::replace(&mut gathered.stance, Stance::Proceed).and(stance);
        });
    }

    /// Adds a part that cannot be protected.
    pub(super) fn fail(&self, session: &mut Session, root: PathBuf, reason: String, on_failure: OnFailure) {
        let stance = if on_failure == OnFailure::Hold { Stance::Ask(HELD.to_owned()) } else { Stance::Proceed };
        self.answer(session, failed(root, reason), stance, Vec::new());
    }

    fn add(&self, session: &mut Session, change: impl FnOnce(&mut Gathered)) {
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut gathered);
        gathered.waiting -= 1;
        let done = if gathered.waiting == 0 { gathered.reply.take().zip(gathered.own.take()) } else { None };
        if done.is_none() {
            return;
        }
        let (mut others, warnings) = (std::mem::take(&mut gathered.others), std::mem::take(&mut gathered.warnings));
        let stance = std::mem::replace(&mut gathered.stance, Stance::Proceed);
        drop(gathered);
        others.sort_by(|one, two| one.root.cmp(&two.root));
        let Some((reply, own)) = done else { return };
        reply(session, own.map(|decision| together(decision, others, (stance, warnings))));
    }
}

/// Returns the answer to the whole action.
fn together(decision: Decision, others: Vec<OtherPart>, (stance, warnings): (Stance, Vec<Warning>)) -> Decision {
    match decision {
        Decision::Action(mut action) => {
            action.stance = action.stance.and(stance);
            // The classifier does not know which files are saved.
            if !action.warnings.is_empty() {
                action.notices.extend(others.iter().filter_map(holding));
            }
            let is_reached = !matches!(action.protection, Protection::NotNeeded(_));
            let is_own_saved = !is_reached || (action.protection.has_saved() && action.not_held.is_empty());
            if is_own_saved && others.iter().all(OtherPart::is_saved) {
                action.warnings = action.warnings.into_iter().map(Warning::of_saved).collect();
            }
            action.needs = Needs::of(action.needs.checkpoint(), action.needs.warn() || !warnings.is_empty());
            action.warnings.extend(warnings);
            action.others.extend(others);
            Decision::Action(action)
        }
        other => other,
    }
}

/// Says which checkpoint holds the files outside every workspace.
fn holding(other: &OtherPart) -> Option<String> {
    let number = match &other.protection {
        Protection::Taken(taken) => taken.checkpoint.record.number,
        Protection::Held(held) => held.number,
        Protection::NotNeeded(_) | Protection::Off(_) | Protection::Late { .. } | Protection::Failed(_) => return None,
    };
    let holds_all = other.root == Path::new(OUTSIDE) && other.not_held.is_empty();
    holds_all.then(|| {
        format!(
            "piton: checkpoint {number} contains the files outside every workspace that this action names: \
             `piton restore --outside {number} PATH` restores them"
        )
    })
}

/// Returns the answer of a part, with its stance and its warnings.
fn part_of(root: PathBuf, decision: Result<Decision>) -> (OtherPart, Stance, Vec<Warning>) {
    match decision {
        Ok(Decision::Action(action)) => {
            let ActionDecision { stance, protection, not_held, collisions, warnings, .. } = *action;
            (OtherPart { root, protection, not_held, collisions }, stance, warnings)
        }
        // A part asks for nothing but a checkpoint.
        Ok(_) => (failed(root, "piton's engine did not answer".to_owned()), Stance::Proceed, Vec::new()),
        Err(error) => (failed(root, error.text()), Stance::Proceed, Vec::new()),
    }
}

fn failed(root: PathBuf, reason: String) -> OtherPart {
    OtherPart { root, protection: Protection::Failed(reason), not_held: Vec::new(), collisions: Vec::new() }
}
