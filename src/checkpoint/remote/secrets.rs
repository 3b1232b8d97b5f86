//! Finds secrets in the shared part of checkpoints, by file name.
//!
//! A capture saves files with such names in the private part. A checkpoint of an older version, or one that was taken while git tracked such
//! a file, may contain it in the shared part. *Invariant:* a file that the commit of HEAD also contains is not a secret, because every clone
//! of the repository contains it.

use std::collections::HashMap;

use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::filter::secret::is_secret;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::tree::Mode;
use crate::sys::libgit2::are_committed;
use crate::worktree::repository_state::RepositoryPlace;

/// The most secret paths that are collected per tree. One is enough to withhold a checkpoint.
const MOST: usize = 10_000;

/// The secret paths of the trees that were checked so far.
#[derive(Default)]
pub(super) struct SecretNames {
    /// The secret paths below each tree, by the tree and the name of its directory: some rules need that name.
    known: HashMap<(ObjectId, Vec<u8>), Vec<Vec<u8>>>,
    /// Maps a path to true if the commit of HEAD contains it.
    committed: HashMap<RelPath, bool>,
}

impl SecretNames {
    /// Returns the first secret path of a tree that the commit of HEAD does not contain.
    ///
    /// # Errors
    /// `store-damaged`; errors of reading.
    pub(super) fn first(&mut self, catalog: &Catalog, tree: &ObjectId) -> Result<Option<RelPath>> {
        let found = self.below(catalog, tree, b"")?;
        if found.len() >= MOST {
            return RelPath::parse(&found[0]).map(Some);
        }
        for path in found {
            // git refuses to check out a tree with an invalid path.
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

/// Returns true if the commit of HEAD in the repository around a path contains it.
fn is_committed(catalog: &Catalog, path: &RelPath) -> bool {
    let full = path.under(&catalog.workspace.path);
    let Some(place) = full.parent().and_then(RepositoryPlace::around) else { return false };
    // The repository was found above the path, so the prefix fits; otherwise the path counts as not committed.
    full.strip_prefix(&place.top).is_ok_and(|inside| are_committed(&place.dir, std::iter::once(inside)) == [true])
}

impl Catalog {
    /// Returns true if the shared part of a checkpoint contains secrets, by its record or by the name of a file.
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
