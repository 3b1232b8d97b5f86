//! The secrets among the files of checkpoints, by their names.
//!
//! A capture keeps the files whose names it knows apart. A checkpoint of an older version, and one that was taken while git tracked such a
//! file, may have one among the files that git sees. *Invariant:* a file that the commit of HEAD has too counts as no secret: whoever has
//! the repository has it too.

use std::collections::HashMap;

use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::filter::secret::is_secret;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::tree::Mode;
use crate::sys::libgit2::are_committed;
use crate::worktree::repository_state::RepositoryPlace;

/// The most names of secrets of one tree that are kept. A tree with more is not looked at further: one of them is enough.
const MOST: usize = 10_000;

/// The names of secrets in the trees that were looked at.
#[derive(Default)]
pub(super) struct SecretNames {
    /// By tree, and by the name of its directory, which is a part of some names: the paths below it.
    known: HashMap<(ObjectId, Vec<u8>), Vec<Vec<u8>>>,
    /// True for the paths that the commit of HEAD has.
    committed: HashMap<RelPath, bool>,
}

impl SecretNames {
    /// Returns the first secret of a tree that the commit of HEAD has not.
    ///
    /// # Errors
    /// `store-damaged`; errors of reading.
    pub(super) fn first(&mut self, catalog: &Catalog, tree: &ObjectId) -> Result<Option<RelPath>> {
        let found = self.below(catalog, tree, b"")?;
        if found.len() >= MOST {
            return RelPath::parse(&found[0]).map(Some);
        }
        for path in found {
            // A tree that names what is no path shows no file to git either.
            let Ok(path) = RelPath::parse(&path) else { continue };
            let is_committed = *self.committed.entry(path.clone()).or_insert_with(|| is_committed(catalog, &path));
            if !is_committed {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn below(&mut self, catalog: &Catalog, tree: &ObjectId, dir: &[u8]) -> Result<Vec<Vec<u8>>> {
        let key = (*tree, dir.to_vec());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for entry in catalog.read_tree(tree)? {
            if entry.mode == Mode::Dir {
                let inner = self.below(catalog, &entry.id, &entry.name)?;
                found.extend(inner.into_iter().map(|path| [&entry.name, b"/".as_slice(), &path].concat()));
            } else if is_secret(&[dir, b"/", &entry.name].concat()) {
                found.push(entry.name);
            }
            if found.len() >= MOST {
                break;
            }
        }
        self.known.insert(key, found.clone());
        Ok(found)
    }
}

/// Returns true if the commit of HEAD, in the repository around a path, has it.
fn is_committed(catalog: &Catalog, path: &RelPath) -> bool {
    let full = path.under(&catalog.workspace.path);
    let Some(place) = full.parent().and_then(RepositoryPlace::around) else { return false };
    let inside = full.strip_prefix(&place.top).ok();
    inside.is_some_and(|inside| are_committed(&place.dir, std::iter::once(inside)) == [true])
}

impl Catalog {
    /// Returns true if a checkpoint holds secrets in files that git sees: its own record says so, or the name of a file.
    ///
    /// # Errors
    /// Returns the errors of listing and reading.
    pub fn shows_secrets(&self) -> Result<bool> {
        let mut names = SecretNames::default();
        let (own, fetched) = (self.all()?, self.foreign()?);
        for checkpoint in own.checkpoints.iter().chain(&fetched.checkpoints) {
            if checkpoint.record.holds_secrets() || names.first(self, &checkpoint.tree)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
