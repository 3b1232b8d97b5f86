//! Writing a checkpoint into another directory: `restore N --to DIR`.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::blobs::Blobs;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::held::refusal;
use crate::checkpoint::catalog::open::Catalog;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::path::RelPath;
use crate::worktree::restore::Outcome;

impl Catalog {
    /// Writes a checkpoint, or some of its paths, into an absent or empty directory.
    ///
    /// # Errors
    /// `no-such-checkpoint` for a path that it does not hold; `bad-path` for a directory in which piton keeps its own files, and one in a
    /// `.git`; `conflict` when the directory holds something; `store-damaged`, `disk-full`, `permission`.
    pub fn export(&self, checkpoint: &Checkpoint, select: &[RelPath], dir: &Path) -> Result<Outcome> {
        let blamed = |error| self.blamed(error, &[checkpoint]);
        for path in select.iter().filter(|path| !path.is_root()) {
            if !self.is_held(checkpoint, path).map_err(blamed)? {
                return Err(refusal(checkpoint.record.number, path.to_path()));
            }
        }
        // The resolved path is judged and then written to, so that links and `..` in the name cannot lead elsewhere.
        let real = resolved(dir)?;
        self.home.own_dirs().iter().try_for_each(|own| refuse_own(&real, own))?;
        refuse_git(&real)?;
        let (manifest, _) = self.contents(checkpoint).map_err(blamed)?;
        crate::worktree::restore::export(&real, &manifest, select, &Blobs::of(self)?)
    }
}

/// Returns the real path of a directory of which the last parts may not exist yet.
fn resolved(dir: &Path) -> Result<PathBuf> {
    let mut real = PathBuf::new();
    for part in std::path::absolute(dir).at("resolving", dir)?.components() {
        if part == Component::ParentDir {
            real.pop();
            continue;
        }
        real.push(part);
        if let Ok(found) = real.canonicalize() {
            real = found;
        }
    }
    Ok(real)
}

/// Refuses a directory of piton's own, the directories in it, and those around it.
fn refuse_own(dir: &Path, own: &Path) -> Result<()> {
    // A directory that does not exist yet gets its real name from those above it.
    let home = &resolved(own)?;
    let object = |path: &Path| path.metadata().ok().map(|facts| (facts.dev(), facts.ino()));
    // Compared by device and inode too: bind mounts and file systems that ignore case give it other names.
    let above: HashSet<(u64, u64)> = dir.ancestors().filter_map(object).collect();
    let is_inside =
        dir.starts_with(home) || directories(home).any(|own| object(&own).is_some_and(|own| above.contains(&own)));
    if !is_inside && !home.starts_with(dir) {
        return Ok(());
    }
    Err(Error::new(Code::BadPath, "piton keeps its own files there, and nothing is restored among them")
        .path(dir)
        .hint("name another directory, one that does not exist or is empty"))
}

/// Lists a directory and all directories below it.
fn directories(top: &Path) -> impl Iterator<Item = PathBuf> {
    let mut open = vec![top.to_owned()];
    std::iter::from_fn(move || {
        let dir = open.pop()?;
        // If piton cannot list a directory of its own, it cannot write there either.
        let listing = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        open.extend(
            listing.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
        Some(dir)
    })
}

fn refuse_git(dir: &Path) -> Result<()> {
    if dir.components().all(|part| part.as_os_str() != ".git") {
        return Ok(());
    }
    Err(Error::new(Code::BadPath, "piton never writes into a `.git`").path(dir).hint("name another directory"))
}
