//! Writing a checkpoint into another directory: `restore N --to DIR`.

use std::collections::BTreeSet;
use std::path::Path;

use super::blobs::Blobs;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::held::refusal;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::home::{Home, resolved};
use crate::error::{Code, Error, Result};
use crate::filter::PathLimits;
use crate::model::manifest::Manifest;
use crate::model::path::RelPath;
use crate::sys::interrupt::Interrupt;
use crate::worktree::restore::Outcome;

impl Catalog {
    /// Writes a checkpoint, or some of its paths, into an absent or empty directory. If `control` stops it after the first file
    /// has its place, the outcome says so.
    ///
    /// # Errors
    /// `no-such-checkpoint` for a path that it does not hold; `bad-path` for a directory in which piton keeps its own files, and one in a
    /// `.git`; `conflict` when the directory holds something; `store-damaged`, `disk-full`, `permission`.
    pub fn export(
        &self,
        checkpoint: &Checkpoint,
        select: &[RelPath],
        limits: &PathLimits,
        dir: &Path,
        control: Interrupt<'_>,
    ) -> Result<Outcome> {
        let blamed = |error| self.blamed(error, &[checkpoint]);
        for path in select.iter().filter(|path| !path.is_root()) {
            if !self.is_held(checkpoint, path).map_err(blamed)? {
                return Err(refusal(checkpoint.record.number, path.to_path()));
            }
        }
        // The resolved path is judged and then written to, so that links and `..` in the name cannot lead elsewhere.
        let real = resolved(dir)?;
        refuse_own(&real, &self.home)?;
        refuse_git(&real)?;
        let (manifest, _) = self.contents(checkpoint).map_err(blamed)?;
        let blobs = Blobs::of(self)?;
        let work = self.work(control);
        match limits.is_none() {
            true => crate::worktree::restore::export(&real, &manifest, select, &blobs, work),
            false => crate::worktree::restore::export(&real, &limited(&manifest, select, limits), &[], &blobs, work),
        }
    }
}

/// Returns the part of a manifest that counts, with the directories above it.
fn limited(manifest: &Manifest, select: &[RelPath], limits: &PathLimits) -> Manifest {
    let chosen = manifest.iter().filter(|(path, _)| limits.selects(select, path));
    let mut part: Manifest = chosen.map(|(path, entry)| (path.clone(), *entry)).collect();
    let above: BTreeSet<RelPath> =
        part.iter().flat_map(|(path, _)| std::iter::successors(path.parent(), RelPath::parent)).collect();
    for dir in above {
        if let Some(entry) = manifest.get(&dir) {
            part.insert(dir, *entry);
        }
    }
    part
}

/// Refuses a directory of piton's own, the directories in it, and those around it.
fn refuse_own(dir: &Path, home: &Home) -> Result<()> {
    let mut is_around = false;
    for own in home.own_dirs() {
        is_around |= resolved(&own)?.starts_with(dir);
    }
    if !is_around && !home.is_inside(dir)? {
        return Ok(());
    }
    Err(Error::new(Code::BadPath, "piton's own files are there, so nothing is restored there")
        .path(dir)
        .hint("give another directory that does not exist or is empty"))
}

fn refuse_git(dir: &Path) -> Result<()> {
    if dir.components().all(|part| part.as_os_str() != ".git") {
        return Ok(());
    }
    Err(Error::new(Code::BadPath, "piton never writes into a `.git`").path(dir).hint("name another directory"))
}
