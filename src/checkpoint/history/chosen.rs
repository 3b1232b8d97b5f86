//! Interactive choice: the single changes of a plan, and the restore of the chosen ones alone.
//!
//! The chosen part is carried out as any other restore. Before it is shown again, the fresh plan is compared with the one that
//! was chosen from. If files changed in between, nothing is done.

use std::collections::{BTreeMap, BTreeSet};

use super::hunks::ComposedFiles;
use super::request::{Preview, Restore};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::worktree::restore::{Agreement, Plan};

/// A change of a plan that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedChange {
    /// The path.
    pub path: RelPath,
    /// The present state; `None` if nothing is there.
    pub now: Option<ManifestEntry>,
    /// The state to restore; `None` if the path is to be deleted.
    pub then: Option<ManifestEntry>,
    /// The paths below it that change with it, because a directory takes the place of something else, or something else that of one.
    pub with: Vec<RelPath>,
}

/// A part of a plan, as a person chose it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenPart {
    /// The paths of the changes that are chosen as a whole.
    pub whole: BTreeSet<RelPath>,
    /// The files with only some of their hunks chosen.
    pub hunks: BTreeMap<RelPath, ChosenHunks>,
}

impl ChosenPart {
    /// Returns true if nothing is chosen.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.hunks.is_empty()
    }
}

/// The chosen hunks of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenHunks {
    /// The places of the hunks that are taken back.
    pub places: BTreeSet<usize>,
    /// True if the permissions are restored too.
    pub takes_permissions: bool,
}

/// The plan of a chosen part.
#[derive(Debug)]
pub struct ChosenPlan {
    plan: Plan,
    /// The checkpoint that was made of chosen hunks.
    composed: Option<Checkpoint>,
}

impl ChosenPlan {
    /// Refuses a fresh plan of the same part that would do something else.
    ///
    /// # Errors
    /// `stale-plan`.
    pub fn refuse_other(&self, fresh: &Plan) -> Result<()> {
        let agrees = |path: &RelPath, from: Option<&ManifestEntry>, to: Option<&ManifestEntry>| {
            self.plan.agreement(path, from, to) == Agreement::Given
        };
        let is_same = fresh.changes() == self.plan.changes()
            && fresh.create.iter().all(|(path, to)| agrees(path, None, Some(to)))
            && fresh.replace.iter().all(|(path, from, to)| agrees(path, Some(from), Some(to)))
            && fresh.delete.iter().all(|(path, from)| agrees(path, Some(from), None));
        if is_same { Ok(()) } else { Err(changed()) }
    }
}

/// Returns the refusal of a choice among files that have changed since they were shown.
pub(super) fn changed() -> Error {
    Error::new(Code::StalePlan, "the files have changed since they were shown; nothing was done")
        .field("plan")
        .hint("choose again")
}

/// Lists the changes of a plan that can be chosen, in the order of their paths.
///
/// A directory that is created or deleted around other changes is none of them: it follows these.
pub fn planned_changes(plan: &Plan) -> Vec<PlannedChange> {
    let created = plan.create.iter().map(|(path, then)| (path, None, Some(*then)));
    let replaced = plan.replace.iter().map(|(path, now, then)| (path, Some(*now), Some(*then)));
    let deleted = plan.delete.iter().map(|(path, now)| (path, Some(*now), None));
    let mut all: Vec<_> = created.chain(replaced).chain(deleted).collect();
    all.sort_by(|(one, ..), (other, ..)| one.components().cmp(other.components()));
    let mut changes: Vec<PlannedChange> = Vec::new();
    for (at, (path, now, then)) in all.iter().enumerate() {
        let is_dir = |side: &Option<ManifestEntry>| side.is_some_and(|entry| entry.kind == EntryKind::Dir);
        if let Some(above) = changes.last_mut().filter(|above| swaps_directory(above) && path.starts_with(&above.path))
        {
            above.with.push((*path).clone());
            continue;
        }
        // The paths below a directory follow right after it.
        let has_below = all.get(at + 1).is_some_and(|(next, ..)| next.starts_with(path));
        let is_around = has_below && (now.is_none() && is_dir(then) || then.is_none() && is_dir(now));
        if !is_around {
            changes.push(PlannedChange { path: (*path).clone(), now: *now, then: *then, with: Vec::new() });
        }
    }
    changes
}

/// Returns true if a directory takes the place of something else, or something else that of a directory.
fn swaps_directory(change: &PlannedChange) -> bool {
    let is_dir = |entry: ManifestEntry| entry.kind == EntryKind::Dir;
    matches!((change.now.map(is_dir), change.then.map(is_dir)), (Some(now), Some(then)) if now != then)
}

/// Returns all paths of a chosen part: with those that change with a chosen one, and the deleted directories that become empty.
fn chosen_paths(plan: &Plan, changes: &[PlannedChange], part: &ChosenPart) -> BTreeSet<RelPath> {
    let is_chosen = |path: &RelPath| part.whole.contains(path) || part.hunks.contains_key(path);
    let (chosen, left): (Vec<_>, Vec<_>) = changes.iter().partition(|change| is_chosen(&change.path));
    let mut paths: BTreeSet<RelPath> = chosen.iter().map(|change| change.path.clone()).collect();
    paths.extend(chosen.iter().flat_map(|change| change.with.iter().cloned()));
    let is_dir = |entry: &ManifestEntry| entry.kind == EntryKind::Dir;
    let listed: BTreeSet<&RelPath> =
        changes.iter().flat_map(|change| change.with.iter().chain([&change.path])).collect();
    let around = plan.delete.iter().filter(|(path, entry)| is_dir(entry) && !listed.contains(path));
    let is_left_in = |dir: &RelPath| left.iter().any(|change| change.path.starts_with(dir));
    paths.extend(around.map(|(path, _)| path).filter(|dir| !is_left_in(dir)).cloned());
    paths
}

impl Timeline {
    /// Limits a restore to a chosen part of its plan. Where only some hunks of a file are chosen, a checkpoint of them is made, which
    /// [`Timeline::discard_choice`] removes.
    ///
    /// # Errors
    /// `stale-plan` if a file has changed since the preview; `store-damaged`, `store-locked`, `disk-full`.
    pub fn choose(&mut self, restore: Restore, preview: &Preview, part: &ChosenPart) -> Result<(Restore, ChosenPlan)> {
        let changes = planned_changes(&preview.plan);
        let paths = chosen_paths(&preview.plan, &changes, part);
        let mut plan = Plan::clone(&preview.plan);
        plan.retain(&|path| paths.contains(path));
        let mut restore = Restore { only: Some(paths), ..restore };
        if part.hunks.is_empty() {
            return Ok((restore, ChosenPlan { plan, composed: None }));
        }
        let mut files = ComposedFiles::default();
        let saved = restore.from.keys().filter(|path| !preview.private.contains(path));
        let saved: BTreeSet<RelPath> = saved.cloned().collect();
        let states = plan.create.iter().map(|(path, to)| (path, to));
        let states = states.chain(plan.replace.iter().map(|(path, _, to)| (path, to)));
        files.entries.extend(states.filter(|(path, _)| saved.contains(path)).map(|(path, to)| (path.clone(), *to)));
        for change in &changes {
            let (Some(chosen), Some(now), Some(then)) = (part.hunks.get(&change.path), change.now, change.then) else {
                continue;
            };
            let content = self.catalog().hunked(change, preview)?.without(&chosen.places);
            let id = ObjectId::of(ObjectKind::Blob, &content)?;
            let perm = if chosen.takes_permissions { then.perm } else { now.perm };
            let entry = ManifestEntry { id, perm, size: content.len() as u64, ..now };
            files.entries.insert(change.path.clone(), entry);
            files.contents.push((id, content));
            plan.replace.iter_mut().filter(|(path, ..)| *path == change.path).for_each(|(.., to)| *to = entry);
        }
        let reason = format!("chosen hunks of: {}", preview.target.record.reason);
        let composed = self.lock("choosing hunks")?.compose(restore.target, files, reason)?;
        restore.from.extend(part.hunks.keys().map(|path| (path.clone(), composed.id)));
        restore.composed = Some(composed.id);
        Ok((restore, ChosenPlan { plan, composed: Some(composed) }))
    }

    /// Removes the checkpoint that was made of chosen hunks, when they are not restored after all.
    ///
    /// # Errors
    /// As [`Timeline::forget`].
    pub fn discard_choice(&mut self, chosen: &ChosenPlan) -> Result<()> {
        chosen.composed.as_ref().map_or(Ok(()), |composed| self.forget(composed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn file(content: &str) -> ManifestEntry {
        let id = ObjectId::of(ObjectKind::Blob, content.as_bytes()).unwrap();
        ManifestEntry { kind: EntryKind::File, perm: 0o644, id, size: content.len() as u64 }
    }

    fn dir() -> ManifestEntry {
        ManifestEntry::dir(0o755)
    }

    /// A plan that restores `back/…`, deletes `new/…` and `new-`, swaps `swap`, and changes `text`.
    fn plan() -> Plan {
        Plan {
            create: vec![
                (path("back"), dir()),
                (path("back/empty"), dir()),
                (path("back/file"), file("1")),
                (path("swap/in"), file("2")),
            ],
            replace: vec![(path("swap"), file("3"), dir()), (path("text"), file("4"), file("5"))],
            delete: vec![
                (path("new"), dir()),
                (path("new-"), file("6")),
                (path("new/deep"), dir()),
                (path("new/deep/file"), file("7")),
                (path("new/other"), file("8")),
            ],
            keep: Vec::new(),
            conflict: Vec::new(),
        }
    }

    fn chosen(names: &[&str]) -> Vec<String> {
        let (plan, whole) = (plan(), names.iter().map(|name| path(name)).collect());
        let part = ChosenPart { whole, hunks: BTreeMap::new() };
        let paths = chosen_paths(&plan, &planned_changes(&plan), &part);
        paths.iter().map(RelPath::display).collect()
    }

    #[test]
    fn directories_follow_what_is_in_them() {
        let listed: Vec<String> = planned_changes(&plan()).iter().map(|one| one.path.display()).collect();
        let expected = ["back/empty", "back/file", "new/deep/file", "new/other", "new-", "swap", "text"];
        assert_eq!(listed, expected);
        assert_eq!(chosen(&["new/deep/file"]), ["new/deep", "new/deep/file"]);
        assert_eq!(chosen(&["new/other"]), ["new/other"]);
        assert_eq!(chosen(&["new/deep/file", "new/other"]), ["new", "new/deep", "new/deep/file", "new/other"]);
        assert_eq!(chosen(&["swap", "new-"]), ["new-", "swap", "swap/in"]);
        assert_eq!(chosen(&["back/file"]), ["back/file"]);
    }

    #[test]
    fn a_fresh_plan_has_to_be_the_chosen_one() {
        let mut limited = plan();
        limited.retain(&|at| *at == path("text") || *at == path("back/file"));
        let chosen = ChosenPlan { plan: limited.clone(), composed: None };
        assert_eq!(limited.changes(), 3, "with the directory around: {limited:?}");
        assert!(chosen.refuse_other(&limited).is_ok());
        let mut other = limited.clone();
        other.replace[0].1 = file("edited");
        assert_eq!(chosen.refuse_other(&other).unwrap_err().code(), Code::StalePlan);
        other.replace.clear();
        assert_eq!(chosen.refuse_other(&other).unwrap_err().code(), Code::StalePlan);
    }
}
