//! Names on a file system that ignores case or the normal form of Unicode.
//!
//! There a path of a checkpoint may be found under another spelling, as after a rename from `Readme` to `README`. A restore would create the
//! one, find the other in its place, and then delete that. piton does not support such names yet, so it changes neither of both.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::path::RelPath;
use crate::worktree::restore::{ConflictReason, Plan};

/// Device and inode of a file.
type Identity = (u64, u64);

/// The names in a directory as they are spelled, with their files.
type Listing = Arc<HashMap<OsString, Identity>>;

/// Makes conflicts of the paths that a plan would create although they are there under another spelling, and of those spellings.
pub(super) fn refuse_other_spellings(plan: &mut Plan, root: &Path) {
    let listings: RefCell<HashMap<PathBuf, Listing>> = RefCell::default();
    let list = |dir: &Path| {
        let read = || {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let named = entries.filter_map(|entry| Some((entry.file_name(), identity(&entry.path())?)));
            Arc::new(named.collect())
        };
        Arc::clone(listings.borrow_mut().entry(dir.to_owned()).or_insert_with(read))
    };
    refuse(plan, &|path| spelled(root, path, &identity, &list));
}

/// Does that with the help of `spelled`, which returns the other spelling of a path that is there.
fn refuse(plan: &mut Plan, spelled: &dyn Fn(&RelPath) -> Option<RelPath>) {
    let found = plan.create.iter().filter_map(|(path, _)| Some((path.clone(), spelled(path)?)));
    let refused: BTreeMap<RelPath, RelPath> = found.collect();
    if refused.is_empty() {
        return;
    }
    let there: BTreeSet<&RelPath> = refused.values().collect();
    plan.create.retain(|(path, _)| !refused.contains_key(path));
    plan.replace.retain(|(path, ..)| !there.contains(path));
    plan.delete.retain(|(path, _)| !there.contains(path));
    plan.conflict.extend(refused.into_iter().map(|(path, there)| (path, ConflictReason::OtherSpelling(there))));
    plan.conflict.sort_by(|(one, _), (other, _)| one.cmp(other));
}

/// Returns the spelling under which a path is found; `None` if it is not there, or is spelled so.
fn spelled(
    root: &Path,
    path: &RelPath,
    identity: &dyn Fn(&Path) -> Option<Identity>,
    list: &dyn Fn(&Path) -> Listing,
) -> Option<RelPath> {
    identity(&path.under(root))?;
    let mut there = RelPath::root();
    for name in path.components() {
        let (dir, name) = (there.under(root), std::ffi::OsStr::from_bytes(name));
        let listing = list(&dir);
        if listing.contains_key(name) {
            there = there.join(name.as_bytes());
            continue;
        }
        let file = identity(&dir.join(name))?;
        let (other, _) = listing.iter().find(|(_, known)| **known == file)?;
        there = there.join(other.as_bytes());
    }
    (there != *path).then_some(there)
}

fn identity(path: &Path) -> Option<Identity> {
    let facts = path.symlink_metadata().ok()?; // it is not there
    Some((facts.dev(), facts.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectId;
    use crate::model::manifest::{EntryKind, ManifestEntry};

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    /// Returns the spelling of a path among these on a file system that ignores case.
    fn spelled_among(names: &[&str], sought: &str) -> Option<RelPath> {
        let root = Path::new("/w");
        let number = |path: &Path| {
            let below = path.strip_prefix(root).ok()?.to_str()?.to_lowercase();
            names.iter().position(|name| name.to_lowercase() == below).map(|at| (1, at as u64))
        };
        let list = |dir: &Path| {
            let dir = dir.strip_prefix(root).unwrap();
            let inside = names.iter().filter(|name| Path::new(name).parent() == Some(dir));
            Arc::new(
                inside
                    .map(|name| (Path::new(name).file_name().unwrap().into(), number(&root.join(name)).unwrap()))
                    .collect(),
            )
        };
        spelled(root, &path(sought), &number, &list)
    }

    #[test]
    fn another_spelling_is_found_by_the_file_itself() {
        let names = ["README", "src", "src/a", "src/Deep", "src/Deep/b"];
        for (sought, found) in [
            ("README", None),
            ("none", None),
            ("src/a", None),
            ("Readme", Some("README")),
            ("Src", Some("src")),
            ("Src/a", Some("src/a")),
            ("src/deep/B", Some("src/Deep/b")),
            ("Src/none", None),
        ] {
            assert_eq!(spelled_among(&names, sought), found.map(path), "{sought}");
        }
    }

    #[test]
    fn neither_spelling_is_changed() {
        let id: ObjectId = "0123456789012345678901234567890123456789".parse().unwrap();
        let entry = ManifestEntry { kind: EntryKind::File, perm: 0o644, id, size: 1 };
        let mut plan = Plan {
            create: vec![(path("Readme"), entry), (path("new"), entry)],
            delete: vec![(path("README"), entry), (path("old"), entry)],
            ..Plan::default()
        };
        refuse(&mut plan, &|path| spelled_among(&["README", "old"], &path.display()));
        assert_eq!((plan.create, plan.delete), (vec![(path("new"), entry)], vec![(path("old"), entry)]));
        assert_eq!(plan.conflict, [(path("Readme"), ConflictReason::OtherSpelling(path("README")))]);
    }
}
