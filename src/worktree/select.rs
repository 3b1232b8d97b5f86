//! The count guard: who stays when there are more files than a checkpoint may contain.
//!
//! Files captured before come first, then what git tracks, then the order of paths. Files over the limit are listed, as
//! a directory where nothing below it was taken or where the files would be many. The walk lists every directory that
//! it meets once the guard has struck, without looking for more than files captured before, tracked or targeted in it;
//! those are captured all the same.

use std::collections::{BTreeMap, BTreeSet};

use super::keep::PathList;
use super::walk::{Class, WalkResult};
use crate::model::coverage::SkipReason;
use crate::model::path::RelPath;

/// More files than this in one directory are listed as the directory.
const MANY: usize = 100;

/// Drops candidates until at most `limit` are left (targets not counted), and lists everything that is over.
pub(super) fn guard(found: &mut WalkResult, limit: u64) {
    for class in [Class::Ordinary, Class::Tracked, Class::Kept] {
        let counted =
            found.files.iter().filter(|file| !file.class.is_private() && file.class != Class::Wanted).count() as u64;
        if counted <= limit {
            break;
        }
        drop_last(found, class, counted - limit);
    }
    if !found.over.is_empty() || found.skipped.values().any(|reason| *reason == SkipReason::OverCount) {
        list(found);
    }
}

/// Drops the last `excess` files of a class; those that are targets too stay as such.
fn drop_last(found: &mut WalkResult, class: Class, excess: u64) {
    let of_class = found.files.iter().filter(|file| file.class == class).count() as u64;
    let mut stay = of_class.saturating_sub(excess);
    let over = &mut found.over;
    found.files.retain_mut(|file| {
        if file.class != class {
            return true;
        }
        if stay > 0 {
            stay -= 1;
            return true;
        }
        if file.targeted {
            file.class = Class::Targeted;
            return true;
        }
        over.push(file.path.clone());
        false
    });
}

fn list(found: &mut WalkResult) {
    let taken = PathList::new(found.files.iter().map(|file| &file.path));
    let mut dirs: BTreeMap<RelPath, Vec<RelPath>> = BTreeMap::new();
    for path in std::mem::take(&mut found.over) {
        dirs.entry(path.parent().unwrap_or_default()).or_default().push(path);
    }
    for (dir, files) in dirs {
        let whole = highest_untouched(&dir, &taken);
        let many = (files.len() > MANY && !dir.is_root()).then_some(dir);
        let listed = whole.or(many).map_or(files, |dir| vec![dir]);
        found.skipped.extend(listed.into_iter().map(|path| (path, SkipReason::OverCount)));
    }
    let over: BTreeSet<RelPath> = found
        .skipped
        .iter()
        .filter(|(_, reason)| **reason == SkipReason::OverCount)
        .map(|(path, _)| path.clone())
        .collect();
    let below_over =
        |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent).any(|dir| over.contains(&dir));
    found.skipped.retain(|path, _| !over.contains(path) || !below_over(path));
    for visited in &mut found.visited {
        let dir = &visited.place.path;
        visited.recorded &= taken.any_below(dir) || !(over.contains(dir) || below_over(dir));
    }
}

/// Returns the highest directory at or above `dir` below which nothing was taken.
fn highest_untouched(dir: &RelPath, taken: &PathList<'_, &RelPath>) -> Option<RelPath> {
    let mut highest = None;
    let mut current = Some(dir.clone());
    while let Some(dir) = current.filter(|dir| !dir.is_root() && !taken.any_below(dir)) {
        current = dir.parent();
        highest = Some(dir);
    }
    highest
}
