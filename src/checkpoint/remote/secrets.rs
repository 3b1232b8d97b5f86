//! Finds secrets in the shared part of checkpoints: by the names of files, in names of files and directories, in contents and in the
//! targets of links.
//!
//! A capture saves files with such names in the private part. A checkpoint of an older version, or one that was taken while git tracked such
//! a file, may contain it in the shared part. Names and contents are searched only here, before they leave the machine.
//!
//! *Invariant:* a file that the commit of HEAD also contains is not a secret by its name, because every clone of the repository contains it.
//! A text that HEAD contains at the same path is not one either. *Invariant:* each content is read once.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use crate::checkpoint::catalog::open::Catalog;
use crate::error::Result;
use crate::filter::secret::is_secret;
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::redact::content::{ContentSearch, searched};
use crate::model::redact::redact;
use crate::model::tree::Mode;
use crate::sys::libgit2::{are_committed, committed_content};
use crate::worktree::repository_state::RepositoryPlace;

/// The most secrets that are collected per tree. One is enough to withhold a checkpoint.
const MOST: usize = 10_000;

/// A file that is a secret, or has one in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFile {
    /// The path of the file.
    pub path: RelPath,
    /// True if it is found by its content, false if it is found by its name.
    pub is_by_content: bool,
}

impl SecretFile {
    /// Returns it as a part of a sentence. A secret in the name is masked.
    pub fn text(&self) -> String {
        let place = if self.is_by_content { "in the content of " } else { "" };
        format!("{place}`{}`", redact(&self.path.display()))
    }
}

/// A finding below a tree, with the content in which it was found, or by the name alone.
#[derive(Clone)]
struct Finding {
    path: Vec<u8>,
    content: Option<ObjectId>,
}

/// The secrets of the trees that were checked so far.
#[derive(Default)]
pub(super) struct SharedSecrets {
    /// The findings below each tree, by the tree and the end of its directory's path: some rules need the last two names.
    known: HashMap<(ObjectId, Vec<u8>), Vec<Finding>>,
    /// The contents and targets without a secret.
    clean: HashSet<ObjectId>,
    /// The secrets in the other contents.
    texts: HashMap<ObjectId, Vec<Vec<u8>>>,
    /// Maps a path to true if the commit of HEAD contains it, with the secrets of the content.
    committed: HashMap<(RelPath, Option<ObjectId>), bool>,
}

impl SharedSecrets {
    /// Returns the first secret of a tree that the commit of HEAD does not contain.
    ///
    /// # Errors
    /// `store-damaged`; errors of reading.
    pub(super) fn first(&mut self, catalog: &Catalog, tree: &ObjectId) -> Result<Option<SecretFile>> {
        let found = self.below(catalog, tree, b"")?;
        let is_full = found.len() >= MOST;
        for Finding { path, content } in found {
            // git refuses to check out a tree with an invalid path.
            let Ok(path) = RelPath::parse(&path) else { continue };
            if is_full || !self.is_committed(catalog, &path, content) {
                return Ok(Some(SecretFile { path, is_by_content: content.is_some() }));
            }
        }
        Ok(None)
    }

    fn below(&mut self, catalog: &Catalog, tree: &ObjectId, dir: &[u8]) -> Result<Vec<Finding>> {
        let key = (*tree, dir.to_vec());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        for entry in catalog.read_tree(tree)? {
            if has_secret_in_name(&entry.name) {
                found.push(Finding { path: entry.name.clone(), content: None });
            }
            if entry.mode == Mode::Dir {
                let parent = dir.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                let inner = self.below(catalog, &entry.id, &[parent, b"/", &entry.name].concat())?;
                let under = |path: &[u8]| [&entry.name, b"/".as_slice(), path].concat();
                found.extend(inner.into_iter().map(|found| Finding { path: under(&found.path), ..found }));
            } else {
                if is_secret(&[dir, b"/", &entry.name].concat()) {
                    found.push(Finding { path: entry.name.clone(), content: None });
                }
                if self.has_secret(catalog, &entry.id) {
                    found.push(Finding { path: entry.name, content: Some(entry.id) });
                }
            }
            if found.len() >= MOST {
                break;
            }
        }
        self.known.insert(key, found.clone());
        Ok(found)
    }

    /// Returns true if a content or the target of a link has a secret in it. Of one that cannot be read, nothing can be sent.
    fn has_secret(&mut self, catalog: &Catalog, blob: &ObjectId) -> bool {
        if self.clean.contains(blob) || self.texts.contains_key(blob) {
            return self.texts.contains_key(blob);
        }
        let mut search = ContentSearch::default();
        if let Err(error) = catalog.store.copy_blob(blob, &mut search) {
            tracing::debug!(%error, "part of a file was not checked for secrets");
        }
        let texts = search.found();
        if texts.is_empty() {
            self.clean.insert(*blob);
            return false;
        }
        self.texts.insert(*blob, texts);
        true
    }

    fn is_committed(&mut self, catalog: &Catalog, path: &RelPath, content: Option<ObjectId>) -> bool {
        let key = (path.clone(), content);
        if let Some(known) = self.committed.get(&key) {
            return *known;
        }
        let texts = content.and_then(|blob| self.texts.get(&blob));
        let is_committed = is_committed(catalog, path, texts.map(Vec::as_slice));
        self.committed.insert(key, is_committed);
        is_committed
    }
}

/// Returns true if the name of a file or directory contains a token or an address with a password.
fn has_secret_in_name(name: &[u8]) -> bool {
    let mut search = ContentSearch::default();
    // Writing into memory cannot fail.
    let _ = search.write_all(name);
    !search.found().is_empty()
}

/// Returns true if the commit of HEAD in the repository around a path contains it, and all of these texts in it.
fn is_committed(catalog: &Catalog, path: &RelPath, texts: Option<&[Vec<u8>]>) -> bool {
    let full = path.under(&catalog.workspace.path);
    let Some(place) = full.parent().and_then(RepositoryPlace::around) else { return false };
    // The repository was found above the path, so the prefix fits; otherwise the path counts as not committed.
    let Ok(inside) = full.strip_prefix(&place.top) else { return false };
    match texts {
        None => are_committed(&place.dir, std::iter::once(inside)) == [true],
        Some(texts) => committed_content(&place.dir, inside).is_some_and(|content| {
            let content = searched(&content);
            let has = |text: &Vec<u8>| content.windows(text.len()).any(|part| part == text.as_slice());
            texts.iter().all(has)
        }),
    }
}

/// A checkpoint with a secret in its shared part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretCheckpoint {
    /// The number of the checkpoint.
    pub number: Number,
    /// The first secret; `None` where only its record says that there is one.
    pub file: Option<SecretFile>,
}

impl Catalog {
    /// Returns the first checkpoint with a secret in its shared part, as its record or a file shows.
    ///
    /// # Errors
    /// Returns the errors of listing and reading.
    pub fn shown_secret(&self) -> Result<Option<SecretCheckpoint>> {
        let mut secrets = SharedSecrets::default();
        let (own, fetched) = (self.all()?, self.foreign()?);
        for checkpoint in own.checkpoints.iter().chain(&fetched.checkpoints) {
            let file = secrets.first(self, &checkpoint.tree)?;
            if file.is_some() || checkpoint.record.holds_secrets() {
                return Ok(Some(SecretCheckpoint { number: checkpoint.record.number, file }));
            }
        }
        Ok(None)
    }

    /// Returns the first secret of a tree.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub fn secret_of_tree(&self, tree: &ObjectId) -> Result<Option<SecretFile>> {
        SharedSecrets::default().first(self, tree)
    }
}
