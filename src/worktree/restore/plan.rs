//! The restore plan: what would be created, replaced, deleted and kept, and what is in conflict. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::model::coverage::SkipReason;
use crate::model::id::ObjectId;
use crate::model::manifest::{Entry, EntryKind, Manifest};
use crate::model::path::RelPath;

/// Why a path cannot be brought back; it stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// What stands there now could not be saved.
    NotSaved(SkipReason),
    /// A directory on its way, or below it, holds or is something that stays.
    Blocked(RelPath),
    /// It lies in a repository's own directory.
    GitDir,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conflict::NotSaved(why) => write!(f, "what stands there now could not be saved: {why}"),
            Conflict::Blocked(by) => write!(f, "`{}` is in the way and stays", by.display()),
            Conflict::GitDir => f.write_str("piton never writes to a `.git`"),
        }
    }
}

/// A path that changes its content, kind or permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    pub path: RelPath,
    pub from: Entry,
    pub to: Entry,
}

/// What a restore would do. All lists are in byte order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub create: Vec<(RelPath, Entry)>,
    pub replace: Vec<Replace>,
    pub delete: Vec<(RelPath, Entry)>,
    /// Files created since the checkpoint that stay, and why.
    pub keep: Vec<(RelPath, String)>,
    pub conflict: Vec<(RelPath, Conflict)>,
}

/// What a plan is made from.
pub struct PlanInput<'a> {
    pub target: &'a Manifest,
    /// What the `pre-restore` checkpoint holds, captured just now.
    pub present: &'a Manifest,
    /// What exists and could not be captured.
    pub present_skipped: &'a BTreeMap<RelPath, SkipReason>,
    /// Selected paths with all below them; empty means everything.
    pub select: &'a [RelPath],
    pub keep_new: bool,
    /// Whether the target's coverage would have captured a path that it does not hold; the error says why not.
    pub covered: &'a dyn Fn(&RelPath, &Entry) -> Result<(), String>,
}

impl Plan {
    /// Whether nothing would be changed.
    pub fn is_empty(&self) -> bool {
        self.create.is_empty() && self.replace.is_empty() && self.delete.is_empty()
    }

    /// Every path that would be changed.
    pub fn touched(&self) -> impl Iterator<Item = &RelPath> {
        let created = self.create.iter().map(|(path, _)| path);
        let replaced = self.replace.iter().map(|replace| &replace.path);
        created.chain(replaced).chain(self.delete.iter().map(|(path, _)| path))
    }

    /// The blobs it needs.
    pub fn needed(&self) -> impl Iterator<Item = ObjectId> {
        let created = self.create.iter().map(|(_, entry)| entry);
        let entries = created.chain(self.replace.iter().map(|replace| &replace.to));
        entries.filter(|entry| entry.kind != EntryKind::Dir).map(|entry| entry.id)
    }

    /// Keeps only the steps for which `wanted` says so.
    pub fn retain(&mut self, wanted: &dyn Fn(&RelPath) -> bool) {
        self.create.retain(|(path, _)| wanted(path));
        self.replace.retain(|replace| wanted(&replace.path));
        self.delete.retain(|(path, _)| wanted(path));
        self.keep.retain(|(path, _)| wanted(path));
        self.conflict.retain(|(path, _)| wanted(path));
    }
}

/// Makes the plan.
pub fn plan(input: &PlanInput<'_>) -> Plan {
    let mut planner = Planner { input, plan: Plan::default(), stays: BTreeSet::new() };
    planner.new_paths();
    planner.target_paths();
    planner.directories_that_stay();
    planner.plan.create.sort_by(|a, b| a.0.cmp(&b.0));
    planner.plan
}

struct Planner<'a> {
    input: &'a PlanInput<'a>,
    plan: Plan,
    /// Everything that stays although the target does not have it.
    stays: BTreeSet<RelPath>,
}

impl Planner<'_> {
    fn selected(&self, path: &RelPath) -> bool {
        let select = self.input.select;
        select.is_empty() || select.iter().any(|ancestor| path.starts_with(ancestor))
    }

    /// What exists now and not in the target: deleted where the target's coverage proves its absence.
    fn new_paths(&mut self) {
        for (path, entry) in self.input.present.iter() {
            if self.input.target.contains(path) || !self.selected(path) {
                continue;
            }
            let reason = if self.input.keep_new {
                Err("created since, and new files are kept".to_owned())
            } else {
                (self.input.covered)(path, entry)
            };
            match reason {
                Ok(()) => self.plan.delete.push((path.clone(), *entry)),
                Err(why) => {
                    self.stays.insert(path.clone());
                    if entry.kind != EntryKind::Dir {
                        self.plan.keep.push((path.clone(), why));
                    }
                }
            }
        }
    }

    fn target_paths(&mut self) {
        let target = self.input.target;
        for (path, to) in target.iter() {
            if !self.selected(path) {
                continue;
            }
            if let Some(conflict) = self.conflict(path, to) {
                self.plan.conflict.push((path.clone(), conflict));
                continue;
            }
            match self.input.present.get(path) {
                None => {
                    self.missing_parents(path);
                    self.plan.create.push((path.clone(), *to));
                }
                Some(from) if !from.same(to) => {
                    self.plan.replace.push(Replace { path: path.clone(), from: *from, to: *to });
                }
                Some(_) => {}
            }
        }
        self.plan.create.dedup_by(|a, b| a.0 == b.0);
    }

    fn conflict(&self, path: &RelPath, to: &Entry) -> Option<Conflict> {
        if path.components().any(|name| name == b".git") {
            return Some(Conflict::GitDir);
        }
        if let Some(reason) = self.input.present_skipped.get(path) {
            return Some(Conflict::NotSaved(*reason));
        }
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| !dir.is_root()) {
            let skipped = self.input.present_skipped.contains_key(&dir);
            // A file in the place of a directory is replaced only when it is selected itself.
            let file = self.input.present.get(&dir).is_some_and(|entry| entry.kind != EntryKind::Dir);
            if skipped || (file && !self.selected(&dir)) {
                return Some(Conflict::Blocked(dir));
            }
            parent = dir.parent();
        }
        let becomes_file =
            to.kind != EntryKind::Dir && self.input.present.get(path).is_some_and(|from| from.kind == EntryKind::Dir);
        if becomes_file { self.what_stays_in(path).map(Conflict::Blocked) } else { None }
    }

    /// Something below a directory that will not go away.
    fn what_stays_in(&self, dir: &RelPath) -> Option<RelPath> {
        let below = |path: &&RelPath| path.starts_with(dir) && *path != dir;
        let kept = self.stays.iter().find(below);
        kept.or_else(|| self.input.present_skipped.keys().find(below)).cloned()
    }

    /// Directories that a single restored file needs.
    fn missing_parents(&mut self, path: &RelPath) {
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| !dir.is_root() && !self.input.present.contains(dir)) {
            if !self.selected(&dir) && !self.plan.create.iter().any(|(created, _)| *created == dir) {
                let entry = self.input.target.get(&dir).copied().unwrap_or(Entry::dir(0o755));
                self.plan.create.push((dir.clone(), entry));
            }
            parent = dir.parent();
        }
    }

    /// A directory goes only when everything in it goes.
    fn directories_that_stay(&mut self) {
        let stays = std::mem::take(&mut self.stays);
        let holding: BTreeSet<RelPath> = stays
            .iter()
            .chain(self.input.present_skipped.keys())
            .flat_map(|path| std::iter::successors(path.parent(), RelPath::parent))
            .collect();
        self.plan.delete.retain(|(path, entry)| entry.kind != EntryKind::Dir || !holding.contains(path));
    }
}

#[cfg(test)]
mod tests;
