//! The restore plan: which paths to create, replace, delete, keep, and where there is a conflict. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use super::reason::{ConflictReason, KeepReason};
use crate::model::coverage::SkipReason;
use crate::model::id::ObjectId;
use crate::model::manifest::{Difference, EntryKind, Manifest, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::turn::Attribution;

/// The intentions of a restore. Every list is in byte order of its paths; no path is in two of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Paths that are not there now.
    pub create: Vec<(RelPath, ManifestEntry)>,
    /// Paths that change: what is there now, and what it becomes. Equal ids and kinds mean a change of permissions alone.
    pub replace: Vec<(RelPath, ManifestEntry, ManifestEntry)>,
    /// Paths that the target does not hold and would have captured.
    pub delete: Vec<(RelPath, ManifestEntry)>,
    /// Paths that the target does not hold and that stay all the same.
    pub keep: Vec<(RelPath, KeepReason)>,
    /// Paths that ought to change and cannot: they stay as they are.
    pub conflict: Vec<(RelPath, ConflictReason)>,
}

impl Plan {
    /// Tells whether applying it changes nothing.
    pub fn changes_nothing(&self) -> bool {
        self.create.is_empty() && self.replace.is_empty() && self.delete.is_empty()
    }

    /// Returns the directories that it makes, changes or deletes.
    pub fn directories(&self) -> impl Iterator<Item = &RelPath> {
        let replaced = self.replace.iter().map(|(path, _, to)| (path, to));
        let all = self.create.iter().chain(&self.delete).map(|(path, entry)| (path, entry)).chain(replaced);
        all.filter(|(_, entry)| entry.kind == EntryKind::Dir).map(|(path, _)| path)
    }

    /// Returns the paths that a step over a turn keeps although the turn may have changed them, each with the turn's share.
    pub fn left(&self) -> BTreeMap<RelPath, Attribution> {
        let offered = self.keep.iter().filter_map(|(path, why)| match why {
            KeepReason::NotOwn(who) if who.is_offered() => Some((path.clone(), *who)),
            _ => None,
        });
        offered.collect()
    }

    /// Returns the paths of a turn that a step over it keeps because they have changed since.
    pub fn changed_since(&self) -> impl Iterator<Item = &RelPath> {
        self.keep.iter().filter(|(_, why)| *why == KeepReason::ChangedSince).map(|(path, _)| path)
    }

    /// Returns every path that it changes.
    pub fn touched(&self) -> impl Iterator<Item = &RelPath> {
        let replaced = self.replace.iter().map(|(path, _, _)| path);
        self.create.iter().map(|(path, _)| path).chain(replaced).chain(self.delete.iter().map(|(path, _)| path))
    }

    /// Keeps only what concerns wanted paths, and the directories in which they have to be made.
    pub fn retain(&mut self, wanted: &dyn Fn(&RelPath) -> bool) {
        let made = self.create.iter().map(|(path, _)| path).filter(|path| wanted(path));
        let parents: BTreeSet<RelPath> = made.flat_map(|path| upwards(path).skip(1)).collect();
        let needed = |path: &RelPath, entry: &ManifestEntry| entry.kind == EntryKind::Dir && parents.contains(path);
        self.create.retain(|(path, entry)| wanted(path) || needed(path, entry));
        self.replace.retain(|(path, _, _)| wanted(path));
        self.delete.retain(|(path, _)| wanted(path));
        self.keep.retain(|(path, _)| wanted(path));
        self.conflict.retain(|(path, _)| wanted(path));
    }

    /// Judges a change of a newer plan by this one, which was agreed to.
    pub fn agreement(&self, path: &RelPath, from: Option<&ManifestEntry>, to: Option<&ManifestEntry>) -> Agreement {
        // A path that the search does not find is not in that list.
        let created = self.create.binary_search_by(|(at, _)| at.cmp(path)).ok();
        let replaced = self.replace.binary_search_by(|(at, ..)| at.cmp(path)).ok(); // not found: not in that list
        let deleted = self.delete.binary_search_by(|(at, _)| at.cmp(path)).ok(); // the same
        let agreed = created.map(|at| (None, Some(&self.create[at].1)));
        let agreed = agreed.or(replaced.map(|at| (Some(&self.replace[at].1), Some(&self.replace[at].2))));
        let agreed = agreed.or(deleted.map(|at| (Some(&self.delete[at].1), None)));
        let same = |one: Option<&ManifestEntry>, other: Option<&ManifestEntry>| match (one, other) {
            (Some(one), Some(other)) => one.same(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        match agreed {
            Some((was, becomes)) if same(was, from) && same(becomes, to) => Agreement::Given,
            Some(_) => Agreement::Other,
            None => Agreement::Missing,
        }
    }

    /// Returns number of paths it changes.
    pub fn changes(&self) -> usize {
        self.create.len() + self.replace.len() + self.delete.len()
    }
}

/// The input of a plan.
#[derive(Clone, Copy)]
pub struct PlanInput<'a> {
    /// The content that is to come back.
    pub target: &'a Manifest,
    /// The content of the pre-restore checkpoint, captured just now.
    pub present: &'a Manifest,
    /// Paths that the pre-restore checkpoint had to leave out.
    pub present_skipped: &'a BTreeMap<RelPath, SkipReason>,
    /// The selected paths: each stands for itself and all below; empty means the whole tree.
    pub select: &'a [RelPath],
    /// True if files created since the target stay.
    pub keep_new: bool,
    /// `Ok` when the target's coverage would have captured such an entry, else why not.
    pub covered: &'a dyn Fn(&RelPath, &ManifestEntry) -> Result<(), String>,
    /// True if the target skipped this path or a directory above it.
    pub target_skipped: &'a dyn Fn(&RelPath) -> bool,
    /// The reason why a path stays as it is, whatever the target holds; from what is there now (`None`: nothing).
    pub stays: &'a Stays<'a>,
    /// Judges each change.
    pub agreed: &'a Agree<'a>,
}

/// Says what was agreed to about a change: from what is there now (`None`: nothing) to what comes (`None`: it is deleted).
pub type Agree<'a> = dyn Fn(&RelPath, Option<&ManifestEntry>, Option<&ManifestEntry>) -> Agreement + 'a;

/// Says why a path stays as it is; `None` if it does not have to.
pub(super) type Stays<'a> = dyn Fn(&RelPath, Option<&ManifestEntry>) -> Option<KeepReason> + 'a;

/// The verdict on one change of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// This very change.
    Given,
    /// Another change of this path.
    Other,
    /// No change of this path.
    Missing,
}

/// Tells whether a selected path names anything in a manifest: an entry, or something below it.
pub fn matches(manifest: &Manifest, select: &RelPath) -> bool {
    select.is_root() || manifest.contains(select) || manifest.inside(select).next().is_some()
}

/// Plans a restore: the same input gives the same plan.
pub fn plan(input: &PlanInput<'_>) -> Plan {
    let mut planner = Planner {
        input,
        differences: input.target.differences(input.present),
        select: input.select.iter().cloned().collect(),
        wanted: BTreeMap::new(),
        create: BTreeMap::new(),
        replace: BTreeMap::new(),
        delete: BTreeMap::new(),
        keep: BTreeMap::new(),
        conflict: BTreeMap::new(),
        occupied: BTreeMap::new(),
        blocked: BTreeSet::new(),
    };
    planner.collect_wanted();
    planner.plan_removals();
    planner.plan_arrivals();
    planner.finish()
}

/// An entry that has to be there afterwards.
struct Wanted {
    entry: ManifestEntry,
    /// False for a directory that is only needed as a parent.
    selected: bool,
}

struct Planner<'a> {
    input: &'a PlanInput<'a>,
    /// The differing paths: what stays as it is, mostly nearly everything, is not looked at again.
    differences: Vec<Difference<'a>>,
    select: BTreeSet<RelPath>,
    /// Entries of the target that are not there now, with all directories above them.
    wanted: BTreeMap<RelPath, Wanted>,
    create: BTreeMap<RelPath, ManifestEntry>,
    replace: BTreeMap<RelPath, (ManifestEntry, ManifestEntry)>,
    delete: BTreeMap<RelPath, ManifestEntry>,
    keep: BTreeMap<RelPath, KeepReason>,
    conflict: BTreeMap<RelPath, ConflictReason>,
    /// Directories that will not be empty, each with something that stays inside.
    occupied: BTreeMap<RelPath, RelPath>,
    /// Paths that will not be directories although something below them is wanted.
    blocked: BTreeSet<RelPath>,
}

/// Returns the path itself, then the directories above it, the root last.
fn upwards(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(Some(path.clone()), RelPath::parent)
}

fn in_git(path: &RelPath) -> bool {
    path.components().any(|component| component == b".git")
}

impl Planner<'_> {
    fn is_selected(&self, path: &RelPath) -> bool {
        self.select.is_empty() || upwards(path).any(|path| self.select.contains(&path))
    }

    /// Selected entries of the target, and the parents they need: those of the target, or plain ones where a damaged
    /// target lacks them.
    fn collect_wanted(&mut self) {
        for (path, entry, _) in &self.differences {
            let Some(entry) = entry.copied().filter(|_| !path.is_root() && self.is_selected(path)) else { continue };
            for parent in upwards(path).skip(1).filter(|parent| !parent.is_root()) {
                if self.wanted.contains_key(&parent) {
                    break; // and so are those above it
                }
                let held = self.input.target.get(&parent).copied();
                let selected = held.is_some() && self.is_selected(&parent);
                let is_fit = |entry: &ManifestEntry| selected || entry.kind == EntryKind::Dir;
                let entry = held.filter(is_fit).unwrap_or(ManifestEntry::dir(0o755));
                self.wanted.insert(parent, Wanted { entry, selected });
            }
            self.wanted.insert((*path).clone(), Wanted { entry, selected: true });
        }
    }

    /// Plans for what is there and not in the target, children before their directories.
    fn plan_removals(&mut self) {
        for (path, reason) in self.input.present_skipped {
            if *reason != SkipReason::Vanished {
                self.occupy(path);
            }
            if *reason == SkipReason::Unreadable && self.would_go(path) {
                self.conflict.insert(path.clone(), not_saved(*reason));
            }
        }
        for (path, to, from) in std::mem::take(&mut self.differences).into_iter().rev() {
            let Some(from) = from.filter(|_| to.is_none() && !path.is_root()) else { continue };
            // A damaged target may lack a directory of which it holds something.
            if self.is_selected(path) && !matches(self.input.target, path) {
                self.plan_removal(path, from);
            }
        }
    }

    /// Tells whether a file of which nothing is known but its path would be deleted, if it could be saved.
    fn would_go(&self, path: &RelPath) -> bool {
        let unknown = ManifestEntry { kind: EntryKind::File, perm: 0o644, id: ObjectId::EMPTY_TREE, size: 0 };
        let input = self.input;
        let unseen = !matches(input.target, path) && !input.present.contains(path);
        let absent = unseen && self.is_selected(path) && !in_git(path);
        absent
            && !input.keep_new
            && (input.stays)(path, Some(&unknown)).is_none()
            && !(input.target_skipped)(path)
            && (input.covered)(path, &unknown).is_ok()
    }

    fn plan_removal(&mut self, path: &RelPath, from: &ManifestEntry) {
        if let Some(reason) = self.removal_conflict(path, from) {
            self.conflict.insert(path.clone(), reason);
            self.occupy(path);
        } else if let Some(reason) = self.keep_reason(path, from) {
            self.keep.insert(path.clone(), reason);
            self.occupy(path);
        } else {
            self.delete.insert(path.clone(), *from);
        }
    }

    fn removal_conflict(&self, path: &RelPath, from: &ManifestEntry) -> Option<ConflictReason> {
        if in_git(path) {
            return Some(ConflictReason::GitDir);
        }
        let moved = (self.input.agreed)(path, Some(from), None) == Agreement::Other;
        self.unsaved(path, from).or(moved.then_some(ConflictReason::Moved))
    }

    fn keep_reason(&self, path: &RelPath, from: &ManifestEntry) -> Option<KeepReason> {
        if (self.input.target_skipped)(path) {
            return Some(KeepReason::SkippedInTarget);
        }
        if self.input.keep_new {
            return Some(KeepReason::KeepNew);
        }
        if let Some(reason) = (self.input.stays)(path, Some(from)) {
            return Some(reason);
        }
        if let Err(why) = (self.input.covered)(path, from) {
            return Some(KeepReason::NotCovered(why));
        }
        if let Some(inside) = self.occupied.get(path).filter(|_| from.kind == EntryKind::Dir) {
            return Some(KeepReason::NotEmpty(Some(inside.clone())));
        }
        let agreed = (self.input.agreed)(path, Some(from), None) == Agreement::Given;
        (!agreed).then_some(KeepReason::NotAgreed)
    }

    /// Returns a file that is in the manifest and was skipped all the same: its content is not the one saved.
    fn unsaved(&self, path: &RelPath, from: &ManifestEntry) -> Option<ConflictReason> {
        let reason = self.input.present_skipped.get(path)?;
        (from.kind != EntryKind::Dir && *reason != SkipReason::Vanished).then(|| not_saved(*reason))
    }

    /// Everything wanted, directories before what is in them.
    fn plan_arrivals(&mut self) {
        let wanted = std::mem::take(&mut self.wanted);
        for (path, Wanted { entry, selected }) in &wanted {
            let from = self.input.present.get(path).copied();
            if from.is_some_and(|from| from.same(entry) || (!selected && from.kind == EntryKind::Dir)) {
                continue;
            }
            if let Some(reason) = (self.input.stays)(path, from.as_ref()) {
                if from.is_some_and(|from| from.kind != EntryKind::Dir) && entry.kind == EntryKind::Dir {
                    self.blocked.insert(path.clone());
                }
                self.keep.insert(path.clone(), reason);
                continue;
            }
            match self.arrival_conflict(path, from.as_ref(), entry, *selected, &wanted) {
                Some(reason) => self.refuse(path, from.as_ref(), entry, reason, *selected),
                None => match from {
                    Some(from) => drop(self.replace.insert(path.clone(), (from, *entry))),
                    None => drop(self.create.insert(path.clone(), *entry)),
                },
            }
        }
    }

    fn arrival_conflict(
        &self,
        path: &RelPath,
        from: Option<&ManifestEntry>,
        to: &ManifestEntry,
        selected: bool,
        wanted: &BTreeMap<RelPath, Wanted>,
    ) -> Option<ConflictReason> {
        if in_git(path) {
            return Some(ConflictReason::GitDir);
        }
        let parent = path.parent().unwrap_or_default();
        let parent_is_dir = wanted.get(&parent).is_none_or(|parent| parent.entry.kind == EntryKind::Dir);
        if self.blocked.contains(&parent) || !parent_is_dir {
            return Some(ConflictReason::Blocked(parent));
        }
        let obstacle = match from {
            // Only a parent: what is outside of the selection is not replaced for its sake.
            Some(_) if !selected => Some(ConflictReason::Blocked(path.clone())),
            Some(from) if from.kind == EntryKind::Dir && to.kind != EntryKind::Dir => {
                self.occupied.get(path).cloned().map(ConflictReason::Blocked)
            }
            Some(from) => self.unsaved(path, from),
            None => self.skipped_there(path),
        };
        let agreed = || (self.input.agreed)(path, from, Some(to)) == Agreement::Given;
        obstacle.or_else(|| (!agreed()).then_some(ConflictReason::Moved))
    }

    /// Returns what is known to be at, or above, a path that the pre-restore checkpoint does not hold.
    ///
    /// Below a directory whose *contents* were left out nothing is known; creating there is safe, because applying never
    /// takes a name that exists.
    fn skipped_there(&self, path: &RelPath) -> Option<ConflictReason> {
        if let Some(reason) = self.input.present_skipped.get(path) {
            return (*reason != SkipReason::Vanished).then(|| not_saved(*reason));
        }
        let (above, reason) =
            upwards(path).skip(1).find_map(|above| Some((above.clone(), *self.input.present_skipped.get(&above)?)))?;
        match reason {
            SkipReason::OverCount
            | SkipReason::OverBudget(_)
            | SkipReason::Generated(_)
            | SkipReason::Repository(_)
            | SkipReason::Secret
            | SkipReason::LinkedWorktree
            | SkipReason::IgnoredRepository
            | SkipReason::Vanished
            | SkipReason::Beyond(_)
            | SkipReason::Forgotten => None,
            SkipReason::Special | SkipReason::TooLarge(_) | SkipReason::Collision => {
                Some(ConflictReason::Blocked(above))
            }
            SkipReason::Unreadable | SkipReason::Store => Some(ConflictReason::NotSaved(reason)),
        }
    }

    fn refuse(
        &mut self,
        path: &RelPath,
        from: Option<&ManifestEntry>,
        to: &ManifestEntry,
        reason: ConflictReason,
        selected: bool,
    ) {
        let is_dir = |entry: &ManifestEntry| entry.kind == EntryKind::Dir;
        if is_dir(to) {
            // A directory that was not agreed to get other permissions blocks no other path.
            if reason != ConflictReason::Moved || !from.is_some_and(is_dir) {
                self.blocked.insert(path.clone());
            }
        } else {
            self.hold_inside(path);
        }
        // A mere parent was not asked for; what was asked for below it is listed as blocked by it.
        if selected {
            self.conflict.insert(path.clone(), reason);
        }
    }

    /// A directory that had to make way for a file and cannot: what is in it stays too, for nothing would be gained.
    fn hold_inside(&mut self, dir: &RelPath) {
        let from_here = self.delete.range(dir.clone()..).map(|(path, _)| path);
        let inside = from_here.take_while(|path| path.as_bytes().starts_with(dir.as_bytes()));
        for path in inside.filter(|path| path.starts_with(dir)).cloned().collect::<Vec<_>>() {
            self.delete.remove(&path);
            self.keep.insert(path, KeepReason::InsideBlocked(dir.clone()));
        }
    }

    /// Notes that `path` stays: no directory above it can go.
    fn occupy(&mut self, path: &RelPath) {
        for dir in upwards(path).skip(1) {
            if self.occupied.contains_key(&dir) {
                return;
            }
            self.occupied.insert(dir, path.clone());
        }
    }

    fn finish(self) -> Plan {
        Plan {
            create: self.create.into_iter().collect(),
            replace: self.replace.into_iter().map(|(path, (from, to))| (path, from, to)).collect(),
            delete: self.delete.into_iter().collect(),
            keep: self.keep.into_iter().collect(),
            conflict: self.conflict.into_iter().collect(),
        }
    }
}

fn not_saved(reason: SkipReason) -> ConflictReason {
    match reason {
        SkipReason::Special => ConflictReason::Special,
        SkipReason::TooLarge(_)
        | SkipReason::Unreadable
        | SkipReason::OverCount
        | SkipReason::Secret
        | SkipReason::LinkedWorktree
        | SkipReason::IgnoredRepository
        | SkipReason::Store
        | SkipReason::OverBudget(_)
        | SkipReason::Generated(_)
        | SkipReason::Repository(_)
        | SkipReason::Collision
        | SkipReason::Vanished
        | SkipReason::Beyond(_)
        | SkipReason::Forgotten => ConflictReason::NotSaved(reason),
    }
}
