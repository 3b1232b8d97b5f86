//! The parts of a workspace that an action takes away.

use std::collections::HashMap;
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

impl LostPlace {
    /// Returns true if a file lies in the place.
    pub(super) fn takes(&self, path: &RelPath, tops: &mut Tops<'_>) -> bool {
        match self {
            LostPlace::Tree(dir) => path.starts_with(dir),
            LostPlace::File(file) => path == file,
            LostPlace::Repository { top, pathspecs, spared, .. } => {
                let full = path.under(tops.root);
                let is_named = |spec: &LostPaths| match spec {
                    LostPaths::Below(dir) => full.starts_with(dir),
                    LostPaths::Matching(pattern) => pattern.is_match(&full),
                };
                let is_here = tops.around(path).is_some_and(|(around, _)| around == *top);
                let is_in = pathspecs.is_empty() || pathspecs.iter().any(is_named);
                is_here && is_in && !spared.iter().any(is_named)
            }
        }
    }

    /// Returns true if it takes work of one of some sorts.
    pub(super) fn takes_one_of(&self, found: &[WorkSort]) -> bool {
        match self {
            // Files that are not in any commit are lost as well.
            LostPlace::Tree(_) | LostPlace::File(_) => true,
            LostPlace::Repository { sorts, .. } => found.iter().any(|sort| sorts.contains(sort)),
        }
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
