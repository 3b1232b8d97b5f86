//! Before anything is touched: every content is at hand, every directory can be written.

use std::collections::{BTreeMap, BTreeSet};

use super::outcome::BlobSource;
use super::plan::Plan;
use crate::error::{Code, Error, Result};
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::FileKind;

/// Files with several names (hard links) of which the plan changes nothing but the permissions.
///
/// Permissions belong to the file and not to the name. Setting them in place would also change the other names, and some of
/// those may lie outside of the workspace. Such a path therefore gets a file of its own, as if its content changed.
pub(super) struct SharedFiles(BTreeSet<RelPath>);

impl SharedFiles {
    /// Looks at every file whose permissions are to change.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn of(root: &Dir, plan: &Plan) -> Result<SharedFiles> {
        let mut shared = BTreeSet::new();
        let changes = plan.replace.iter().filter(|(_, from, to)| is_permissions_only(from, to));
        for (path, _, _) in changes.filter(|(_, from, _)| from.kind == EntryKind::File) {
            let Some(dir) = root.find_dir(path.parent().unwrap_or_default().to_path())? else { continue };
            if dir.stat(path.name())?.is_some_and(|seen| seen.kind == FileKind::File && seen.links > 1) {
                shared.insert(path.clone());
            }
        }
        Ok(SharedFiles(shared))
    }

    /// Returns true if a change only sets the permissions of the very file or directory that is there.
    pub(super) fn is_in_place(&self, path: &RelPath, from: &ManifestEntry, to: &ManifestEntry) -> bool {
        is_permissions_only(from, to) && !self.0.contains(path)
    }
}

/// Refuses a plan of which a content is missing.
///
/// # Errors
/// `incomplete-checkpoint`; those of the source.
pub(super) fn check_contents(plan: &Plan, shared: &SharedFiles, blobs: &dyn BlobSource) -> Result<()> {
    let mut asked = BTreeSet::new();
    for (path, entry) in arrivals(plan, shared) {
        if entry.kind == EntryKind::Dir || !asked.insert(entry.id) || blobs.has(&entry.id)? {
            continue;
        }
        return Err(Error::new(Code::IncompleteCheckpoint, "the content of a file is missing from the store")
            .path(path.to_path())
            .hint("nothing was changed; choose another checkpoint, or omit this path"));
    }
    Ok(())
}

/// Everything that gets a new file, link or directory.
fn arrivals<'p>(plan: &'p Plan, shared: &SharedFiles) -> impl Iterator<Item = (&'p RelPath, &'p ManifestEntry)> {
    let replaced = plan.replace.iter().filter(|(path, from, to)| !shared.is_in_place(path, from, to));
    let created = plan.create.iter().map(|(path, entry)| (path, entry));
    created.chain(replaced.map(|(path, _, to)| (path, to)))
}

/// Returns true if nothing but permission bits changes.
fn is_permissions_only(from: &ManifestEntry, to: &ManifestEntry) -> bool {
    from.kind == to.kind && from.id == to.id
}

/// Returns the deepest real directory above `path`, and where it is.
pub(super) fn deepest_dir(root: &Dir, path: &RelPath) -> Result<(RelPath, Dir)> {
    let mut above = path.parent().unwrap_or_default();
    loop {
        match root.find_dir(above.to_path())? {
            Some(dir) => return Ok((above, dir)),
            None if above.is_root() => return Ok((above, root.open_dir(RelPath::root().to_path())?)),
            None => above = above.parent().unwrap_or_default(),
        }
    }
}

/// The treatment of a directory that cannot be written; found out before anything is.
const UNTOUCHED: &str =
    "nothing was changed; check its owner, permissions and mount, or restore the rest: `piton restore N PATH…`";

/// Directories that the user owns and may not write (0555): made writable while the restore works in them.
#[derive(Default)]
pub(super) struct Loosened(BTreeMap<RelPath, u16>);

impl Loosened {
    /// Checks every directory in which names come or go, then loosens those that need it.
    ///
    /// # Errors
    /// `permission` for a directory that can neither be written nor loosened; nothing has changed then.
    pub(super) fn prepare(root: &Dir, plan: &Plan, shared: &SharedFiles) -> Result<Loosened> {
        let mut needed = BTreeMap::new();
        let removed = plan.delete.iter().map(|(path, _)| path);
        let parents: BTreeSet<RelPath> =
            arrivals(plan, shared).map(|(path, _)| path).chain(removed).filter_map(RelPath::parent).collect();
        for parent in &parents {
            let (path, dir) = deepest_dir(root, &parent.join(b"x"))?;
            if needed.contains_key(&path) || dir.is_writable().map_err(|error| error.hint(UNTOUCHED))? {
                continue;
            }
            let stat = dir.stat_self()?;
            if stat.uid != rustix::process::geteuid().as_raw() {
                return Err(Error::new(Code::Permission, "the directory cannot be written")
                    .path(dir.path())
                    .hint(UNTOUCHED));
            }
            needed.insert(path, stat.perm());
        }
        let mut loosened = Loosened::default();
        for (path, perm) in needed {
            let changed = root.open_dir(path.to_path()).and_then(|dir| dir.chmod_self(perm | 0o700));
            if let Err(error) = changed {
                loosened.restore(root);
                return Err(error);
            }
            loosened.0.insert(path, perm);
        }
        Ok(loosened)
    }

    /// Returns the permissions that a directory had before it was loosened.
    pub(super) fn original(&self, path: &RelPath) -> Option<u16> {
        self.0.get(path).copied()
    }

    /// Forgets a directory whose permissions have been set to those of the target.
    pub(super) fn forget(&mut self, path: &RelPath) {
        self.0.remove(path);
    }

    /// Gives every directory that is still there its permissions back; returns where that failed.
    pub(super) fn restore(&mut self, root: &Dir) -> Vec<(RelPath, String)> {
        let mut failed = Vec::new();
        while let Some((path, perm)) = self.0.pop_last() {
            let outcome = root.find_dir(path.to_path()).and_then(|dir| dir.map_or(Ok(()), |dir| dir.chmod_self(perm)));
            if let Err(error) = outcome {
                failed.push((path, format!("permissions {perm:04o} could not be restored: {error}")));
            }
        }
        failed
    }
}
