//! The changes of a plan as items of a choice, and the part of the plan that was chosen among them.

use std::path::Path;

use super::super::context::Context;
use super::super::print;
use super::picker::{ChoiceItem, ItemDetails, ItemPart, PickedParts, Picker};
use crate::checkpoint::history::chosen::{ChosenHunks, ChosenPart, PlannedChange};
use crate::checkpoint::history::hunks::HunkedFile;
use crate::checkpoint::history::request::Preview;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::text::count;
use crate::model::turn::Attribution;
use crate::worktree::restore::KeepReason;

/// Returns the items: first the changes, then the paths that stay as they are and why.
pub(super) fn items(context: &Context, changes: &[PlannedChange], preview: &Preview) -> Vec<ChoiceItem> {
    let mut items: Vec<ChoiceItem> = changes.iter().map(|change| item(context, change, preview)).collect();
    let plan = &preview.plan;
    let changed = plan.keep.iter().filter(|(_, why)| *why == KeepReason::ChangedSince);
    let changed = changed.map(|(path, why)| (path, why.to_string()));
    let conflicts = plan.conflict.iter().map(|(path, why)| (path, why.to_string()));
    let whole = "a repository cannot be restored on its own; `piton undo` undoes the whole turn";
    let repositories = preview.repositories.iter().map(|path| (path, whole.to_owned()));
    items.extend(changed.chain(conflicts).chain(repositories).map(|(path, why)| ChoiceItem {
        name: name(context, path),
        state: "kept",
        blocked: Some(why),
        ..ChoiceItem::default()
    }));
    items
}

fn item(context: &Context, change: &PlannedChange, preview: &Preview) -> ChoiceItem {
    let share = preview.shares.get(&change.path).copied().unwrap_or(Attribution::Sure);
    let sides = [change.then, change.now];
    let is = |kind: EntryKind| sides.iter().flatten().any(|entry| entry.kind == kind);
    let mut notes = Vec::new();
    notes.extend(is(EntryKind::Dir).then(|| "directory".to_owned()));
    notes.extend(is(EntryKind::Link).then(|| "link".to_owned()));
    notes.extend((share != Attribution::Sure).then(|| share.as_str().to_owned()));
    ChoiceItem {
        name: name(context, &change.path),
        state: state(change),
        notes,
        // Creating what is absent overwrites nothing.
        is_default: share == Attribution::Sure || change.now.is_none(),
        ..ChoiceItem::default()
    }
}

/// Returns one word: how a path differs from the version to restore.
fn state(change: &PlannedChange) -> &'static str {
    match (change.then, change.now) {
        (None, _) => "new",
        (_, None) => "deleted",
        (Some(_), Some(_)) => "changed",
    }
}

fn name(context: &Context, path: &RelPath) -> String {
    print::path(Path::new(&context.place(path)))
}

/// Returns the text and the parts of a change. The parts are its hunks, and last the permissions.
pub(super) fn details(change: &PlannedChange, file: &HunkedFile) -> ItemDetails {
    let mut text = vec![effect(change, file)];
    let (then, now) = (change.then.map(describe), change.now.map(describe));
    if then != now {
        text.push(format!("then: {}", then.as_deref().unwrap_or("nothing")));
        text.push(format!("now:  {}", now.as_deref().unwrap_or("nothing")));
    }
    // The head of a patch repeats what the list says.
    text.extend(file.patch.lines().skip_while(|line| !line.starts_with("@@ ")).map(str::to_owned));
    let mut parts: Vec<ItemPart> = Vec::new();
    if file.parts() > 0 {
        parts.extend(file.hunks.iter().map(|hunk| {
            let lines: Vec<String> = hunk.text.lines().map(str::to_owned).collect();
            ItemPart { title: lines.first().cloned().unwrap_or_default(), text: lines, is_chosen: false }
        }));
        parts.extend(file.permissions.map(|(then, now)| {
            let title = format!("permissions {then:04o}, now {now:04o}");
            ItemPart { text: vec![title.clone()], title, is_chosen: false }
        }));
    }
    ItemDetails { text, parts }
}

/// Says in a sentence what taking a change back does.
fn effect(change: &PlannedChange, file: &HunkedFile) -> String {
    let with = match change.with.len() as u64 {
        0 => String::new(),
        below => format!(", including {} below it", count(below, "path")),
    };
    match (change.then, change.now) {
        (None, _) => format!("New; choose it to delete it{with}."),
        (_, None) => format!("Deleted; choose it to restore it{with}."),
        (Some(_), Some(_)) if file.parts() > 0 => "Changed; press → to list its parts.".to_owned(),
        (Some(_), Some(_)) if file.is_binary => {
            format!("This file changed. It is binary or large, so it can only be chosen as a whole{with}.")
        }
        (Some(_), Some(_)) => format!("This file changed. It can only be chosen as a whole{with}."),
    }
}

fn describe(entry: ManifestEntry) -> String {
    match entry.kind {
        EntryKind::File => format!("file, permissions {:04o}", entry.perm),
        EntryKind::Link => "symbolic link".to_owned(),
        EntryKind::Dir => format!("directory, permissions {:04o}", entry.perm),
    }
}

/// Returns the part of the plan that was chosen. The items of the changes come first, in the same order.
pub(super) fn chosen(picker: &Picker, changes: &[PlannedChange]) -> ChosenPart {
    let mut part = ChosenPart::default();
    for (at, picked) in picker.picked() {
        let (change, parts) = (&changes[at], picker.items[at].details.as_ref().map_or(0, |one| one.parts.len()));
        match picked {
            PickedParts::Whole => _ = part.whole.insert(change.path.clone()),
            PickedParts::Some(mut places) => {
                let has_permissions = change.then.map(|entry| entry.perm) != change.now.map(|entry| entry.perm);
                let takes_permissions = has_permissions && places.remove(&(parts - 1));
                part.hunks.insert(change.path.clone(), ChosenHunks { places, takes_permissions });
            }
        }
    }
    part
}
