//! The steps of a restore: each proves what it is about to replace or delete, then acts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::access::{Loosened, SharedFiles};
use super::clean::temporary_name;
use super::outcome::{Outcome, Saved};
use super::parallel_swap::{ParallelSwap, Turns};
use super::plan::Plan;
use super::proof::Proof;
use super::stage::Staging;
use super::step::{RestoreStep, StepOutcome};
use super::swap::{NameIn, set_aside, swap};
use super::threads::threads;
use crate::error::Result;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::sys::fs::deferred::DeferredUnlink;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::{FileKind, Stat};
use crate::sys::interrupt::Flow;
use crate::sys::parallel::Results;
use crate::sys::progress::{Amount, Stage, WorkControl};

const CHANGED: &str = "changed since the preview; not touched";
const STOPPED: &str = "not done: the restore was stopped";

/// The second half of applying a plan.
pub(super) struct Commit<'a> {
    pub root: &'a Dir,
    pub saved: &'a Saved<'a>,
    pub control: WorkControl<'a>,
    pub plan: &'a Plan,
    /// Files whose permissions are not set in place.
    pub shared: &'a SharedFiles,
    pub turns: Turns,
    /// Contents that wait beside their places, by path.
    pub staged: BTreeMap<RelPath, Staging>,
    /// Directories that are writable for the time of the restore.
    pub loosened: Loosened,
    /// Frees what was displaced.
    pub deferred: DeferredUnlink,
    /// Directories made by this restore.
    pub made: BTreeSet<RelPath>,
    /// Directories that stay although a file was to take their place.
    pub held: BTreeSet<RelPath>,
    /// Paths in the outcome's `failed`.
    pub listed: BTreeSet<RelPath>,
    /// Directories whose names changed.
    pub touched: BTreeSet<RelPath>,
    pub outcome: Outcome,
}

/// The steps in their order.
struct Steps<'a> {
    /// Directories to be made, from the top.
    dirs: Vec<RestoreStep<'a>>,
    /// Of files and links that are not directories before or afterwards: each independent of all others.
    files: Vec<RestoreStep<'a>>,
    /// Deletions and permissions of directories, from the bottom.
    rest: Vec<RestoreStep<'a>>,
}

/// Directories from the top, files, then deletions and permissions of directories from the bottom.
fn steps<'p>(plan: &'p Plan, shared: &SharedFiles) -> Steps<'p> {
    let is_dir = |entry: &ManifestEntry| entry.kind == EntryKind::Dir;
    let (mut dirs, mut files, mut vacated, mut modes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (path, to) in &plan.create {
        if is_dir(to) {
            dirs.push(RestoreStep::MakeDir(path, to));
            modes.push(RestoreStep::FinishDir(path, to));
        } else {
            files.push(RestoreStep::Place(path, to));
        }
    }
    for (path, from, to) in &plan.replace {
        match (is_dir(from), is_dir(to)) {
            (true, true) => modes.push(RestoreStep::SetMode(path, from, to)),
            (true, false) => vacated.push((path, from)),
            (false, true) => {
                dirs.push(RestoreStep::DirOver(path, from));
                modes.push(RestoreStep::FinishDir(path, to));
            }
            (false, false) if shared.is_in_place(path, from, to) => files.push(RestoreStep::SetMode(path, from, to)),
            (false, false) => files.push(RestoreStep::Replace(path, from)),
        }
    }
    dirs.sort_by_key(RestoreStep::path);
    files.sort_by_key(RestoreStep::path);
    // Children before parents: a directory may lose the write permission that steps inside of it need.
    modes.sort_by_key(|step| std::cmp::Reverse(step.path()));
    let removals = plan.delete.iter().rev().map(|(path, from)| match from.kind {
        EntryKind::Dir => RestoreStep::RemoveDir(path, from),
        EntryKind::File | EntryKind::Link => RestoreStep::Remove(path, from),
    });
    // A directory that becomes a file is checked as a whole before anything in it is deleted.
    let mut rest: Vec<RestoreStep<'_>> = vacated.iter().map(|(path, _)| RestoreStep::Vacate(path)).collect();
    rest.extend(removals);
    rest.extend(vacated.iter().map(|(path, from)| RestoreStep::Replace(path, from)));
    rest.extend(modes);
    Steps { dirs, files, rest }
}

impl Commit<'_> {
    /// Takes every step; none stops the others.
    pub(super) fn run(&mut self) {
        let Steps { dirs, files, rest } = steps(self.plan, self.shared);
        let all = (dirs.len() + files.len() + rest.len()) as u64;
        self.control.progress.begin(Stage::Placing, Amount::items(all));
        // Directories first, parents before children: files need them.
        self.one_by_one(dirs);
        self.together(files);
        self.one_by_one(rest);
    }

    fn one_by_one(&mut self, steps: Vec<RestoreStep<'_>>) {
        for step in steps {
            if !self.outcome.stopped && self.control.flow() == Flow::Stop {
                self.outcome.stopped = true;
            }
            let done = if self.outcome.stopped {
                StepOutcome::Failed(STOPPED.to_owned())
            } else {
                self.take(step).unwrap_or_else(|error| StepOutcome::Failed(error.to_string()))
            };
            self.control.progress.add(1, 0);
            self.record(step, done);
        }
    }

    /// Puts staged files in their places, on several threads.
    fn together(&mut self, steps: Vec<RestoreStep<'_>>) {
        let (swaps, others): (Vec<RestoreStep<'_>>, Vec<RestoreStep<'_>>) =
            steps.into_iter().partition(|step| matches!(step, RestoreStep::Place(..) | RestoreStep::Replace(..)));
        let swaps: Vec<(RestoreStep<'_>, Option<Staging>)> =
            swaps.into_iter().map(|step| (step, self.staged.remove(step.path()))).collect();
        let work = if self.outcome.stopped {
            Results { done: swaps.iter().map(|_| None).collect(), stopped: true }
        } else {
            let (swap, progress) = (self.swap(), self.control.progress);
            let put = |at: usize| {
                let done = swap.put(&swaps[at].0, swaps[at].1.as_ref());
                progress.add(1, 0);
                done
            };
            threads(swaps.len()).run(swaps.len(), &put, &|_| false, self.control.interrupt)
        };
        self.outcome.stopped |= work.stopped;
        for ((step, staging), done) in swaps.into_iter().zip(work.done) {
            let done = match done {
                Some(done) => done.unwrap_or_else(|error| StepOutcome::Failed(error.to_string())),
                None => StepOutcome::Failed(STOPPED.to_owned()),
            };
            self.settle(step.path(), staging, matches!(done, StepOutcome::Changed));
            self.record(step, done);
        }
        self.one_by_one(others);
    }

    fn record(&mut self, step: RestoreStep<'_>, done: StepOutcome) {
        let path = step.path().clone();
        match done {
            StepOutcome::Already => {}
            StepOutcome::Kept(why) => self.outcome.kept.push((path, why)),
            StepOutcome::Moved => self.fail(path, CHANGED.to_owned()),
            StepOutcome::Failed(why) => self.fail(path, why),
            StepOutcome::Changed => {
                self.touched.extend(path.parent());
                match step {
                    RestoreStep::MakeDir(..) | RestoreStep::Place(..) => self.outcome.created.push(path),
                    RestoreStep::DirOver(..) | RestoreStep::Replace(..) | RestoreStep::SetMode(..) => {
                        self.outcome.replaced.push(path);
                    }
                    RestoreStep::Remove(..) | RestoreStep::RemoveDir(..) => self.outcome.deleted.push(path),
                    RestoreStep::Vacate(..) | RestoreStep::FinishDir(..) => {}
                }
            }
        }
    }

    /// A path of several steps is listed for the first that failed.
    fn fail(&mut self, path: RelPath, why: String) {
        if self.listed.insert(path.clone()) {
            self.outcome.failed.push((path, why));
        }
    }

    fn take(&mut self, step: RestoreStep<'_>) -> Result<StepOutcome> {
        match step {
            RestoreStep::MakeDir(path, to) => self.make_dir(path, to),
            RestoreStep::DirOver(path, from) => self.dir_over(path, from),
            RestoreStep::Place(path, _) | RestoreStep::Replace(path, _) if self.held.contains(path) => {
                Ok(StepOutcome::Already)
            }
            RestoreStep::Place(path, _) | RestoreStep::Replace(path, _) => {
                let staging = self.staged.remove(path);
                let done = self.swap().put(&step, staging.as_ref());
                self.settle(path, staging, matches!(done, Ok(StepOutcome::Changed)));
                done
            }
            RestoreStep::Vacate(path) => self.vacate(path),
            RestoreStep::Remove(path, from) => self.remove(path, from),
            RestoreStep::RemoveDir(path, from) => self.remove_dir(path, from),
            RestoreStep::SetMode(path, from, to) => self.set_mode(path, from, to),
            RestoreStep::FinishDir(path, to) => self.finish_dir(path, to),
        }
    }

    fn swap(&self) -> ParallelSwap<'_> {
        ParallelSwap {
            root: self.root,
            saved: self.saved,
            loosened: &self.loosened,
            deferred: &self.deferred,
            turns: &self.turns,
        }
    }

    fn parent(&self, path: &RelPath) -> Result<Dir> {
        self.swap().parent(path)
    }

    /// For steps that are taken one by one: no other thread of this restore is at work.
    fn prove(&self, dir: &Dir, path: &RelPath, from: &ManifestEntry) -> Result<Proof> {
        self.swap().prove(dir, path, from).map(|(proof, _turn)| proof)
    }

    fn make_dir(&mut self, path: &RelPath, to: &ManifestEntry) -> Result<StepOutcome> {
        let dir = self.parent(path)?;
        // Private and writable until its files are there; `FinishDir` sets the permissions of the target.
        if dir.create_dir(path.name(), 0o700)? {
            self.made.insert(path.clone());
            return Ok(StepOutcome::Changed);
        }
        Ok(match dir.stat(path.name())? {
            Some(there) if there.kind == FileKind::Dir && there.perm() == to.perm => StepOutcome::Already,
            Some(there) if there.kind == FileKind::Dir => {
                StepOutcome::Kept(format!("already existed; its permissions are still {:04o}", there.perm()))
            }
            Some(_) | None => StepOutcome::Moved,
        })
    }

    fn dir_over(&mut self, path: &RelPath, from: &ManifestEntry) -> Result<StepOutcome> {
        let dir = self.parent(path)?;
        let Proof::Exact(seen) = self.prove(&dir, path, from)? else {
            return Ok(StepOutcome::Moved);
        };
        let name = temporary_name();
        dir.create_dir(&name, 0o700)?;
        let swapped =
            swap(&self.deferred, NameIn { dir: &dir, name: &name }, NameIn { dir: &dir, name: path.name() }, &seen);
        if matches!(swapped, Ok(true)) {
            self.made.insert(path.clone());
            return Ok(StepOutcome::Changed);
        }
        // Only the empty directory made above can go by this.
        let _ = dir.rmdir(&name);
        swapped.map(|_| StepOutcome::Moved)
    }

    /// Puts a staged file back on the list of what is to be removed in the end, or notes what it lost.
    fn settle(&mut self, path: &RelPath, staging: Option<Staging>, placed: bool) {
        let Some(Staging::Ready(staged)) = staging else { return };
        if placed {
            let lost = staged.lost.into_iter().map(|lost| (path.clone(), lost));
            self.outcome.warnings.extend(lost);
            self.touched.insert(staged.dir);
        } else {
            self.staged.insert(path.clone(), Staging::Ready(staged));
        }
    }

    fn vacate(&mut self, path: &RelPath) -> Result<StepOutcome> {
        let Some(dir) = self.root.find_dir(path.to_path())? else {
            return Ok(StepOutcome::Already);
        };
        let obstacle = match self.obstacle(path, &dir) {
            Ok(None) => return Ok(StepOutcome::Already),
            Ok(Some(obstacle)) => format!("it contains {obstacle}"),
            Err(error) => error.to_string(),
        };
        // Noted, so that the steps inside of it leave its files where they are.
        self.held.insert(path.clone());
        Ok(StepOutcome::Failed(format!("stays a directory: {obstacle}")))
    }

    /// Something in a directory that this restore may not delete.
    fn obstacle(&self, path: &RelPath, dir: &Dir) -> Result<Option<String>> {
        for name in dir.names()? {
            let inside = path.join(&name);
            let planned = self.plan.delete.binary_search_by(|(path, _)| path.cmp(&inside));
            let Ok(planned) = planned else {
                return Ok(Some(format!("`{}`, which is in no checkpoint", inside.display())));
            };
            let from = &self.plan.delete[planned].1;
            if !matches!(self.prove(dir, &inside, from)?, Proof::Exact(_)) {
                return Ok(Some(format!("`{}`, which changed since the preview", inside.display())));
            }
            if from.kind == EntryKind::Dir {
                let below = dir.open_dir(Path::new(OsStr::from_bytes(&name)))?;
                if let Some(obstacle) = self.obstacle(&inside, &below)? {
                    return Ok(Some(obstacle));
                }
            }
        }
        Ok(None)
    }

    /// Returns a directory above that stays although a file was to take its place.
    fn held_above(&self, path: &RelPath) -> Option<&RelPath> {
        self.held.iter().find(|held| path.starts_with(held))
    }

    fn remove(&mut self, path: &RelPath, from: &ManifestEntry) -> Result<StepOutcome> {
        if let Some(held) = self.held_above(path) {
            return Ok(StepOutcome::Kept(format!("`{}` stays a directory", held.display())));
        }
        let dir = self.parent(path)?;
        match self.prove(&dir, path, from)? {
            Proof::Absent => Ok(StepOutcome::Already),
            Proof::Differs => Ok(StepOutcome::Moved),
            Proof::Exact(seen) if set_aside(&self.deferred, &dir, path.name(), &seen)? => Ok(StepOutcome::Changed),
            Proof::Exact(_) => Ok(StepOutcome::Moved),
        }
    }

    fn remove_dir(&mut self, path: &RelPath, from: &ManifestEntry) -> Result<StepOutcome> {
        if let Some(held) = self.held_above(path) {
            return Ok(StepOutcome::Kept(format!("`{}` stays a directory", held.display())));
        }
        let dir = self.parent(path)?;
        match self.prove(&dir, path, from)? {
            Proof::Absent => Ok(StepOutcome::Already),
            Proof::Differs => Ok(StepOutcome::Moved),
            Proof::Exact(_) if dir.rmdir(path.name())? => Ok(StepOutcome::Changed),
            Proof::Exact(_) => Ok(StepOutcome::Kept("not empty".to_owned())),
        }
    }

    fn set_mode(&mut self, path: &RelPath, from: &ManifestEntry, to: &ManifestEntry) -> Result<StepOutcome> {
        let dir = self.parent(path)?;
        let Proof::Exact(seen) = self.prove(&dir, path, from)? else {
            return Ok(StepOutcome::Moved);
        };
        self.chmod(&dir, path, &seen, to.perm)
    }

    fn finish_dir(&mut self, path: &RelPath, to: &ManifestEntry) -> Result<StepOutcome> {
        if !self.made.contains(path) {
            return Ok(StepOutcome::Already);
        }
        let dir = self.parent(path)?;
        match dir.stat(path.name())? {
            Some(seen) if seen.kind == FileKind::Dir => self.chmod(&dir, path, &seen, to.perm),
            Some(_) | None => Ok(StepOutcome::Moved),
        }
    }

    fn chmod(&mut self, dir: &Dir, path: &RelPath, seen: &Stat, perm: u16) -> Result<StepOutcome> {
        if !dir.chmod(path.name(), seen, perm)? {
            return Ok(StepOutcome::Moved);
        }
        self.loosened.forget(path);
        // The kernel drops setgid without an error when the group is not one of ours.
        let now = dir.stat(path.name())?.map(|stat| stat.perm());
        if let Some(now) = now.filter(|now| *now != perm) {
            self.outcome.warnings.push((path.clone(), format!("permissions are {now:04o} instead of {perm:04o}")));
        }
        Ok(StepOutcome::Changed)
    }
}
