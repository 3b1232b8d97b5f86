//! The steps that change nothing but their own path: several threads take them, each with paths of its own.
//!
//! The directory is reached from the root for every step, through no link. A handle that was kept for the next file of the
//! same directory would go on writing where the directory has been moved to.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::access::Loosened;
use super::outcome::Saved;
use super::proof::{Proof, prove_seen};
use super::stage::{Staged, Staging};
use super::step::{RestoreStep, StepOutcome};
use super::swap::{NameIn, swap};
use crate::error::Result;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::stamp::KnownFile;
use crate::sys::fs::deferred::DeferredUnlink;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::{FileKind, Stat};

/// Locks among which files with several names are distributed.
const TURNS: usize = 64;

/// Keeps the threads of a restore from working on two names of one file at once.
///
/// Replacing or removing a name changes the ctime of the file. A thread that is reading the same file by another name would
/// take that for somebody's edit, and leave its path as it is.
pub(super) struct Turns([Mutex<()>; TURNS]);

impl Default for Turns {
    fn default() -> Turns {
        Turns(std::array::from_fn(|_| Mutex::default()))
    }
}

impl Turns {
    /// Waits until no other thread works on this file; `None` for what has one name.
    fn wait(&self, seen: &Stat) -> Option<MutexGuard<'_, ()>> {
        let shared = seen.kind == FileKind::File && seen.links > 1;
        let turn = &self.0[(seen.ino % TURNS as u64) as usize];
        shared.then(|| turn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A proof, and the turn in which it holds: to be kept until the path has been acted upon.
pub(super) type Proved<'a> = (Proof, Option<MutexGuard<'a, ()>>);

/// Puts staged files in their places; shared by the threads that do so.
#[derive(Clone, Copy)]
pub(super) struct ParallelSwap<'a> {
    pub root: &'a Dir,
    pub saved: &'a Saved<'a>,
    pub loosened: &'a Loosened,
    pub deferred: &'a DeferredUnlink,
    pub turns: &'a Turns,
}

impl<'a> ParallelSwap<'a> {
    /// Opens the directory of a path.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn parent(&self, path: &RelPath) -> Result<Dir> {
        self.root.open_dir(path.parent().unwrap_or_default().to_path())
    }

    /// Returns the proof without which nothing is replaced or deleted: `from` is what the pre-restore checkpoint holds,
    /// and it is what is there now.
    pub(super) fn prove(&self, dir: &Dir, path: &RelPath, from: &ManifestEntry) -> Result<Proved<'a>> {
        if !self.saved.present.get(path).is_some_and(|saved| saved.same(from)) {
            return Ok((Proof::Differs, None));
        }
        let mut expected = *from;
        if from.kind == EntryKind::Dir && self.loosened.original(path) == Some(from.perm) {
            expected.perm |= 0o700;
        }
        self.prove_in_turn(dir, path, &expected, (self.saved.known)(path))
    }

    fn prove_in_turn(
        &self,
        dir: &Dir,
        path: &RelPath,
        entry: &ManifestEntry,
        known: Option<KnownFile>,
    ) -> Result<Proved<'a>> {
        let Some(seen) = dir.stat(path.name())? else {
            return Ok((Proof::Absent, None));
        };
        let turn = self.turns.wait(&seen);
        Ok((prove_seen(dir, path, entry, known, seen)?, turn))
    }

    /// Puts what was staged in its place; steps of any other kind stage nothing.
    pub(super) fn put(&self, step: &RestoreStep<'_>, staging: Option<&Staging>) -> Result<StepOutcome> {
        match (step, staging) {
            (RestoreStep::Place(path, to), Some(Staging::Ready(staged))) => self.place(path, to, staged),
            (RestoreStep::Replace(path, from), Some(Staging::Ready(staged))) => self.replace(path, from, staged),
            (_, Some(Staging::Already)) => Ok(StepOutcome::Already),
            (_, Some(Staging::Taken | Staging::Ready(_)) | None) => Ok(StepOutcome::Moved),
        }
    }

    fn place(&self, path: &RelPath, to: &ManifestEntry, staged: &Staged) -> Result<StepOutcome> {
        let dir = self.parent(path)?;
        let elsewhere = self.waiting(path, staged)?;
        if elsewhere.as_ref().unwrap_or(&dir).rename_new(&staged.name, &dir, path.name())? {
            return Ok(StepOutcome::Changed);
        }
        let there = self.prove_in_turn(&dir, path, to, None)?;
        Ok(if matches!(there, (Proof::Exact(_), _)) { StepOutcome::Already } else { StepOutcome::Moved })
    }

    fn replace(&self, path: &RelPath, from: &ManifestEntry, staged: &Staged) -> Result<StepOutcome> {
        let dir = self.parent(path)?;
        let elsewhere = self.waiting(path, staged)?;
        let (Proof::Exact(seen), _turn) = self.prove(&dir, path, from)? else {
            return Ok(StepOutcome::Moved);
        };
        let new = NameIn { dir: elsewhere.as_ref().unwrap_or(&dir), name: &staged.name };
        let swapped = swap(self.deferred, new, NameIn { dir: &dir, name: path.name() }, &seen)?;
        Ok(if swapped { StepOutcome::Changed } else { StepOutcome::Moved })
    }

    /// Returns the directory in which a staged file waits, where that is not the one of its place.
    fn waiting(&self, path: &RelPath, staged: &Staged) -> Result<Option<Dir>> {
        if path.parent().is_some_and(|parent| parent == staged.dir) {
            return Ok(None);
        }
        self.root.open_dir(staged.dir.to_path()).map(Some)
    }
}
