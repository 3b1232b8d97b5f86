//! Applying a plan, path by path.
//!
//! Order: what stands in the way of a change of kind goes first, then directories, then files and links, then deletions,
//! then the permissions of directories, deepest first. A step that fails is listed and the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use super::plan::{Plan, Replace};
use super::prove::{Saved, prove};
use super::stage::{Staged, open_old, remove};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::model::manifest::{Entry, EntryKind, Manifest};
use crate::model::path::RelPath;
use crate::sys::dir::{Dir, FileKind, set_perm};
use crate::worktree::walk::TEMPORARY;

/// Gives the content of a blob.
pub type Copy<'a> = &'a dyn Fn(&ObjectId, &mut dyn Write) -> Result<u64>;

/// Up to this many files are synced one by one; above, the file system is synced once.
const SYNC_EACH: usize = 64;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub created: Vec<RelPath>,
    pub replaced: Vec<RelPath>,
    pub deleted: Vec<RelPath>,
    /// Paths that stay by plan, and why.
    pub kept: Vec<(RelPath, String)>,
    /// Paths that should have been changed and were not, and why.
    pub failed: Vec<(RelPath, String)>,
    pub warnings: Vec<String>,
}

impl Outcome {
    /// Every path that was changed.
    pub fn changed(&self) -> impl Iterator<Item = &RelPath> {
        self.created.iter().chain(&self.replaced).chain(&self.deleted)
    }
}

/// Applies a plan below `root`.
///
/// # Errors
/// Only when the root cannot be opened or the result cannot be made durable; failures of single paths are listed.
pub fn apply(root: &Path, plan: &Plan, saved: &Saved<'_>, copy: Copy<'_>) -> Result<Outcome> {
    let sync = plan.create.len() + plan.replace.len() <= SYNC_EACH;
    let root = Dir::open_root(root)?;
    let outcome = Outcome { kept: plan.keep.clone(), ..Outcome::default() };
    let (opened, perms, tried) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let mut apply = Apply { root: &root, saved, copy, sync, outcome, opened, perms, tried };
    apply.clear_the_way(plan);
    for (path, entry) in plan.create.iter().filter(|(_, entry)| entry.kind == EntryKind::Dir) {
        apply.make_dir(path, entry);
    }
    for (path, entry) in plan.create.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir) {
        apply.create(path, entry);
    }
    for replace in &plan.replace {
        apply.replace(replace);
    }
    for (path, entry) in plan.delete.iter().rev() {
        apply.delete(path, entry);
    }
    apply.set_permissions();
    if !sync {
        root.sync_file_system()?;
    }
    apply.outcome.created.sort();
    apply.outcome.replaced.sort();
    apply.outcome.deleted.sort();
    Ok(apply.outcome)
}

struct Apply<'a> {
    root: &'a Dir,
    saved: &'a Saved<'a>,
    copy: Copy<'a>,
    sync: bool,
    outcome: Outcome,
    /// Directories that were made writable for the time being, and their permissions before.
    opened: BTreeMap<RelPath, u16>,
    /// Final permissions of directories.
    perms: BTreeMap<RelPath, u16>,
    /// Paths whose deletion was tried already.
    tried: BTreeSet<RelPath>,
}

impl Apply<'_> {
    /// Opens the directory that holds `path`, writable.
    fn parent(&mut self, path: &RelPath) -> Result<Dir> {
        let parent = path.parent().unwrap_or_default();
        let dir = self.root.open_dir(&parent).at("opening the directory of", path.to_path())?;
        if !dir.is_writable() {
            let perm = dir.own_status()?.perm();
            dir.set_own_perm(perm | 0o700)?;
            self.opened.entry(parent).or_insert(perm);
        }
        Ok(dir)
    }

    fn fail(&mut self, path: &RelPath, error: &Error) {
        self.outcome.failed.push((path.clone(), error.message().to_owned()));
    }

    /// Removes directories that become files or links (with what is in them), and files that become directories.
    fn clear_the_way(&mut self, plan: &Plan) {
        for replace in plan.replace.iter().filter(|replace| becomes_other(replace)) {
            let inside = plan.delete.iter().rev().filter(|(path, _)| path.starts_with(&replace.path));
            inside.for_each(|(path, entry)| self.delete(path, entry));
            let removed = self.remove_for_change(replace);
            if let Err(error) = removed {
                self.fail(&replace.path, &error);
            }
        }
    }

    fn remove_for_change(&mut self, replace: &Replace) -> Result<()> {
        let dir = self.parent(&replace.path)?;
        let name = replace.path.name();
        let Some(proven) = prove(&dir, &replace.path, self.saved)? else {
            return Err(changed(&replace.path));
        };
        if replace.from.kind != EntryKind::Dir {
            remove(&dir, name, &proven)?;
        } else if !dir.remove_dir(name)? {
            let text = "the directory holds something that is in no checkpoint";
            return Err(Error::new(Code::Conflict, text).path(replace.path.to_path()));
        }
        if replace.to.kind == EntryKind::Dir {
            dir.make_dir(name)?;
            self.perms.insert(replace.path.clone(), replace.to.perm);
            self.outcome.replaced.push(replace.path.clone());
            return Ok(());
        }
        let staged = Staged::write(&dir, &replace.to, None, self.sync, self.copy)?;
        staged.create(name)?;
        self.outcome.replaced.push(replace.path.clone());
        self.sync_dir(&dir)
    }

    fn make_dir(&mut self, path: &RelPath, entry: &Entry) {
        let made = self.parent(path).and_then(|dir| match dir.status(path.name())? {
            Some(status) if status.kind == FileKind::Dir => Ok(false),
            Some(_) => Err(changed(path)),
            None => dir.make_dir(path.name()).map(|()| true),
        });
        match made {
            Ok(made) => {
                self.perms.insert(path.clone(), entry.perm);
                if made {
                    self.outcome.created.push(path.clone());
                }
            }
            Err(error) => self.fail(path, &error),
        }
    }

    fn create(&mut self, path: &RelPath, entry: &Entry) {
        let created = self.parent(path).and_then(|dir| {
            Staged::write(&dir, entry, None, self.sync, self.copy)?.create(path.name())?;
            self.sync_dir(&dir)
        });
        match created {
            Ok(()) => self.outcome.created.push(path.clone()),
            Err(error) => self.fail(path, &error),
        }
    }

    fn replace(&mut self, replace: &Replace) {
        let Replace { path, from, to } = replace;
        if becomes_other(replace) {
            return;
        }
        let replaced = if from.kind == EntryKind::Dir {
            self.perms.insert(path.clone(), to.perm);
            Ok(())
        } else if from.kind == EntryKind::File && to.kind == EntryKind::File && from.id == to.id {
            self.set_perm(path, to.perm)
        } else {
            self.replace_content(path, to)
        };
        match replaced {
            Ok(()) => self.outcome.replaced.push(path.clone()),
            Err(error) => self.fail(path, &error),
        }
    }

    fn set_perm(&mut self, path: &RelPath, perm: u16) -> Result<()> {
        let dir = self.parent(path)?;
        if prove(&dir, path, self.saved)?.is_none() {
            return Err(changed(path));
        }
        let file = self.root.open_file(path).at("opening", path.to_path())?;
        set_perm(&file, perm, path.to_path())
    }

    fn replace_content(&mut self, path: &RelPath, to: &Entry) -> Result<()> {
        let dir = self.parent(path)?;
        let old = open_old(&dir, path.name());
        let staged = Staged::write(&dir, to, old.as_ref(), self.sync, self.copy)?;
        // The proof comes last, as near to the act as can be.
        let Some(proven) = prove(&dir, path, self.saved)? else {
            return Err(changed(path));
        };
        if !staged.lost.is_empty() {
            self.outcome.warnings.push(format!("{}: not kept: {}", path.display(), staged.lost.join(", ")));
        }
        staged.replace(path.name(), &proven)?;
        self.sync_dir(&dir)
    }

    fn delete(&mut self, path: &RelPath, entry: &Entry) {
        if !self.tried.insert(path.clone()) {
            return;
        }
        let deleted = self.parent(path).and_then(|dir| {
            let Some(proven) = prove(&dir, path, self.saved)? else {
                // Gone already is what was wanted.
                return if dir.status(path.name())?.is_none() { Ok(None) } else { Err(changed(path)) };
            };
            if entry.kind == EntryKind::Dir {
                return dir.remove_dir(path.name()).map(Some);
            }
            remove(&dir, path.name(), &proven).map(|()| Some(true))
        });
        match deleted {
            Ok(Some(true)) => self.outcome.deleted.push(path.clone()),
            Ok(Some(false)) => self.outcome.kept.push((path.clone(), "the directory is not empty".to_owned())),
            Ok(None) => {}
            Err(error) => self.fail(path, &error),
        }
    }

    fn sync_dir(&self, dir: &Dir) -> Result<()> {
        if self.sync { dir.sync() } else { Ok(()) }
    }

    /// Deepest first, so that a directory that loses its write permission is not needed any more.
    fn set_permissions(&mut self) {
        let mut perms = std::mem::take(&mut self.opened);
        perms.extend(std::mem::take(&mut self.perms));
        for (path, perm) in perms.into_iter().rev() {
            let set = match self.root.open_dir(&path) {
                Ok(dir) => dir.set_own_perm(perm),
                // A directory that was removed meanwhile has no permissions.
                Err(rustix::io::Errno::NOENT) => Ok(()),
                Err(errno) => Err(Error::io(errno.into(), "opening", path.to_path())),
            };
            if let Err(error) = set {
                self.fail(&path, &error);
            }
        }
    }
}

/// Whether a directory becomes something else, or something else a directory.
fn becomes_other(replace: &Replace) -> bool {
    (replace.from.kind == EntryKind::Dir) != (replace.to.kind == EntryKind::Dir)
}

fn changed(path: &RelPath) -> Error {
    Error::new(Code::Conflict, "it changed since the restore began and was left alone").path(path.to_path())
}

/// Writes a manifest, or the selected part of it, into an absent or empty directory.
///
/// # Errors
/// `conflict` when the directory holds something; I/O errors of making it.
pub fn export(dir: &Path, target: &Manifest, select: &[RelPath], copy: Copy<'_>) -> Result<Outcome> {
    std::fs::create_dir_all(dir).at("creating the directory", dir)?;
    if std::fs::read_dir(dir).at("listing", dir)?.next().is_some() {
        return Err(Error::new(Code::Conflict, "the directory is not empty")
            .path(dir)
            .hint("name a directory that does not exist yet, or an empty one"));
    }
    let nothing = Manifest::new();
    let input = super::plan::PlanInput {
        target,
        present: &nothing,
        present_skipped: &BTreeMap::new(),
        select,
        keep_new: true,
        covered: &|_, _| Ok(()),
    };
    let plan = super::plan::plan(&input);
    let mut outcome = apply(dir, &plan, &Saved { manifest: &nothing, known: &BTreeMap::new() }, copy)?;
    outcome.failed.extend(plan.conflict.into_iter().map(|(path, why)| (path, why.to_string())));
    Ok(outcome)
}

/// Removes temporaries that a killed restore left in these directories; gives their number.
///
/// # Errors
/// When the root cannot be opened; a directory that is gone holds none.
pub fn clean_temporaries<'p>(root: &Path, dirs: impl Iterator<Item = &'p RelPath>) -> Result<u64> {
    let root = Dir::open_root(root)?;
    let mut removed = 0;
    for path in dirs {
        let Ok(dir) = root.open_dir(path) else { continue };
        for name in dir.names()?.iter().filter(|name| name.starts_with(TEMPORARY)) {
            dir.remove_file(name)?;
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests;
