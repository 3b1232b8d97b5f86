//! The parts of a workspace that an action takes away.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::model::loss::WorkSort;
use crate::model::path::RelPath;

/// A part of the workspace that an action takes away.
#[derive(Clone, Debug)]
pub enum LostPlace {
    /// All that stands at a path, and below it.
    Tree(RelPath),
    /// The content of one file.
    File(RelPath),
    /// Work that no commit has.
    Repository {
        /// The top of the work tree.
        top: PathBuf,
        /// The pathspecs; none for all of it.
        pathspecs: Vec<LostPaths>,
        /// The pathspecs of what stays.
        spared: Vec<LostPaths>,
        /// The sorts of work that go.
        sorts: Vec<WorkSort>,
    },
}

/// A pathspec of git.
#[derive(Clone, Debug)]
pub enum LostPaths {
    /// This absolute path, and all below it.
    Below(PathBuf),
    /// The absolute paths that a pattern matches.
    Matching(globset::GlobMatcher),
}

/// The paths of some places, for the question whether one of many files is among them.
pub(super) struct TakenPaths<'p> {
    trees: HashSet<&'p RelPath>,
    files: HashSet<&'p RelPath>,
    repositories: Vec<TakenWork<'p>>,
}

/// The work that goes from one repository.
struct TakenWork<'p> {
    top: &'p Path,
    pathspecs: &'p [LostPaths],
    spared: &'p [LostPaths],
    sorts: &'p [WorkSort],
}

impl LostPaths {
    fn has(&self, full: &Path) -> bool {
        match self {
            LostPaths::Below(dir) => full.starts_with(dir),
            LostPaths::Matching(pattern) => pattern.is_match(full),
        }
    }
}

impl TakenPaths<'_> {
    /// Makes it of places.
    pub(super) fn of(places: &[LostPlace]) -> TakenPaths<'_> {
        let mut taken = TakenPaths { trees: HashSet::new(), files: HashSet::new(), repositories: Vec::new() };
        for place in places {
            match place {
                LostPlace::Tree(path) => _ = taken.trees.insert(path),
                LostPlace::File(path) => _ = taken.files.insert(path),
                LostPlace::Repository { top, pathspecs, spared, sorts } => {
                    taken.repositories.push(TakenWork { top, pathspecs, spared, sorts });
                }
            }
        }
        taken
    }

    /// Returns the tops of the work trees in which something is destroyed.
    pub(super) fn tops(&self, tops: &mut Tops<'_>) -> BTreeSet<PathBuf> {
        let mut found: BTreeSet<PathBuf> = self.repositories.iter().map(|work| work.top.to_owned()).collect();
        for path in self.trees.iter().chain(&self.files) {
            let full = path.under(tops.root);
            let own = full.join(".git").symlink_metadata().is_ok().then_some(full);
            found.extend(own.or_else(|| Some(tops.around(path)?.0)));
        }
        found
    }

    /// Returns true if a file goes. `sorts` are those of its work, once they are known: a command of git does not take each.
    pub(super) fn holds(&self, path: &RelPath, sorts: Option<&[WorkSort]>, tops: &mut Tops<'_>) -> bool {
        // Files that are not in any commit are lost as well.
        let mut above = std::iter::successors(Some(path.clone()), RelPath::parent);
        if self.files.contains(path) || (!self.trees.is_empty() && above.any(|path| self.trees.contains(&path))) {
            return true;
        }
        let Some(full) = (!self.repositories.is_empty()).then(|| path.under(tops.root)) else { return false };
        let Some((around, _)) = tops.around(path) else { return false };
        self.repositories.iter().any(|work| {
            let is_named = work.pathspecs.is_empty() || work.pathspecs.iter().any(|paths| paths.has(&full));
            let is_spared = work.spared.iter().any(|paths| paths.has(&full));
            let is_of_sort = sorts.is_none_or(|found| found.iter().any(|sort| work.sorts.contains(sort)));
            work.top == around && is_named && !is_spared && is_of_sort
        })
    }
}

/// The repositories around the files of a workspace.
pub(super) struct Tops<'r> {
    root: &'r Path,
    /// The top of the work tree around each directory.
    known: HashMap<PathBuf, Option<PathBuf>>,
}

impl Tops<'_> {
    /// Makes an empty list for a workspace.
    pub(super) fn of(root: &Path) -> Tops<'_> {
        Tops { root, known: HashMap::new() }
    }

    /// Returns the top of the work tree in which a file lies, and the file's path below that.
    pub(super) fn around(&mut self, path: &RelPath) -> Option<(PathBuf, Vec<u8>)> {
        let full = path.under(self.root);
        let dir = full.parent()?;
        let top = match self.known.get(dir) {
            Some(known) => known.clone(),
            None => {
                let top = dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok()).map(Path::to_owned);
                self.known.insert(dir.to_owned(), top.clone());
                top
            }
        }?;
        let below = full.strip_prefix(&top).ok()?.as_os_str().as_bytes().to_vec();
        Some((top, below))
    }
}

/// Returns the paths of places that are single files of the workspace, as they stand there; `None` where a place is more.
pub(super) fn single_files<'p>(root: &Path, places: &'p [LostPlace]) -> Option<Vec<&'p RelPath>> {
    let is_dir = |path: &RelPath| path.under(root).symlink_metadata().is_ok_and(|facts| facts.is_dir());
    let single = |place: &'p LostPlace| match place {
        LostPlace::Tree(path) | LostPlace::File(path) => (!is_dir(path)).then_some(path),
        LostPlace::Repository { .. } => None,
    };
    places.iter().map(single).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_take_what_is_in_them_and_spare_what_is_excluded() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        std::fs::create_dir_all(root.join("r/.git")).unwrap();
        std::fs::create_dir_all(root.join("r/d")).unwrap();
        let path = |text: &str| RelPath::parse(text.as_bytes()).unwrap();
        let below = |text: &str| LostPaths::Below(root.join(text));
        let glob = globset::Glob::new(&format!("{}/r/*.x", root.display())).unwrap().compile_matcher();
        let places = [
            LostPlace::Tree(path("t")),
            LostPlace::File(path("f")),
            LostPlace::Repository {
                top: root.join("r"),
                pathspecs: vec![below("r/d"), LostPaths::Matching(glob)],
                spared: vec![below("r/d/s")],
                sorts: vec![WorkSort::Staged],
            },
        ];
        let (taken, mut tops) = (TakenPaths::of(&places), Tops::of(root));
        for (name, sorts, expected) in [
            ("t", None, true),
            ("t/a/b", Some(WorkSort::Ignored), true),
            ("t-", None, false),
            ("f", None, true),
            ("f/a", None, false),
            ("r/d/a", None, true),
            ("r/d/a", Some(WorkSort::Staged), true),
            ("r/d/a", Some(WorkSort::Untracked), false),
            ("r/d/s/a", None, false),
            ("r/e", None, false),
            ("r/e.x", None, true),
        ] {
            let sorts = sorts.map(|sort| vec![sort]);
            assert_eq!(taken.holds(&path(name), sorts.as_deref(), &mut tops), expected, "{name} {sorts:?}");
        }
        let all = [LostPlace::Tree(RelPath::root())];
        assert!(TakenPaths::of(&all).holds(&path("a/b"), None, &mut tops));
    }
}
