//! The steps of a restore: each proves what it is about to replace or delete, then acts.

use crate::sys::interrupt::{Flow, Interrupt};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::access::{Loosened, SharedFiles};
use super::clean::temporary_name;
use super::crew::{self, Work};
use super::hands::{Hands, Turns};
use super::outcome::{Outcome, Saved};
use super::plan::Plan;
use super::proof::Proof;
use super::stage::Staging;
use super::swap::{set_aside, swap};
use crate::error::Result;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::sys::fs::deferred::DeferredUnlink;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::{FileKind, Stat};

const CHANGED: &str = "changed since the preview; not touched";
const STOPPED: &str = "not done: the restore was stopped";

/// One step, in the order in which they are taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    /// A directory where nothing is.
    MakeDir(&'a RelPath, &'a ManifestEntry),
    /// A directory in the place of a file or link.
    DirOver(&'a RelPath, &'a ManifestEntry),
    /// A staged file or link where nothing is.
    Place(&'a RelPath, &'a ManifestEntry),
    /// A staged file or link in the place of what is there; of a directory only when it is empty.
    Replace(&'a RelPath, &'a ManifestEntry),
    /// Looks whether everything in a directory may go, before any of it does.
    Vacate(&'a RelPath),
    Remove(&'a RelPath, &'a ManifestEntry),
    RemoveDir(&'a RelPath, &'a ManifestEntry),
    SetMode(&'a RelPath, &'a ManifestEntry, &'a ManifestEntry),
    /// The permissions of a directory that this restore made.
    FinishDir(&'a RelPath, &'a ManifestEntry),
}

/// What a step came to.
pub(super) enum Done {
    Changed,
    /// It was so already.
    Already,
    /// It stays, for a good reason.
    Kept(String),
    /// It is not what was saved.
    Moved,
    Failed(String),
}

/// The second half of applying a plan.
pub(super) struct Commit<'a> {
    pub root: &'a Dir,
    pub saved: &'a Saved<'a>,
    pub control: Interrupt<'a>,
    pub plan: &'a Plan,
    /// Files whose permissions are not set in place.
    pub shared: &'a SharedFiles,
    pub turns: Turns,
    pub staged: BTreeMap<RelPath, Staging>,
    pub loosened: Loosened,
    /// Frees what was displaced.
    pub remains: DeferredUnlink,
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
    dirs: Vec<Step<'a>>,
    /// Of files and links that are not directories before or afterwards: each independent of all others.
    files: Vec<Step<'a>>,
    rest: Vec<Step<'a>>,
}

/// Directories from the top, files, then deletions and permissions of directories from the bottom.
fn steps<'p>(plan: &'p Plan, shared: &SharedFiles) -> Steps<'p> {
    let is_dir = |entry: &ManifestEntry| entry.kind == EntryKind::Dir;
    let (mut dirs, mut files, mut vacated, mut modes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (path, to) in &plan.create {
        if is_dir(to) {
            dirs.push(Step::MakeDir(path, to));
            modes.push(Step::FinishDir(path, to));
        } else {
            files.push(Step::Place(path, to));
        }
    }
    for (path, from, to) in &plan.replace {
        match (is_dir(from), is_dir(to)) {
            (true, true) => modes.push(Step::SetMode(path, from, to)),
            (true, false) => vacated.push((path, from)),
            (false, true) => {
                dirs.push(Step::DirOver(path, from));
                modes.push(Step::FinishDir(path, to));
            }
            (false, false) if shared.is_in_place(path, from, to) => files.push(Step::SetMode(path, from, to)),
            (false, false) => files.push(Step::Replace(path, from)),
        }
    }
    dirs.sort_by_key(Step::path);
    files.sort_by_key(Step::path);
    modes.sort_by_key(|step| std::cmp::Reverse(step.path()));
    let removals = plan.delete.iter().rev().map(|(path, from)| match from.kind {
        EntryKind::Dir => Step::RemoveDir(path, from),
        EntryKind::File | EntryKind::Link => Step::Remove(path, from),
    });
    let mut rest: Vec<Step<'_>> = vacated.iter().map(|(path, _)| Step::Vacate(path)).collect();
    rest.extend(removals);
    rest.extend(vacated.iter().map(|(path, from)| Step::Replace(path, from)));
    rest.extend(modes);
    Steps { dirs, files, rest }
}

impl<'a> Step<'a> {
    fn path(&self) -> &'a RelPath {
        match self {
            Step::MakeDir(path, _)
            | Step::DirOver(path, _)
            | Step::Place(path, _)
            | Step::Replace(path, _)
            | Step::Vacate(path)
            | Step::Remove(path, _)
            | Step::RemoveDir(path, _)
            | Step::SetMode(path, _, _)
            | Step::FinishDir(path, _) => path,
        }
    }
}

impl<'a> Commit<'a> {
    /// Takes every step; none stops the others.
    pub(super) fn run(&mut self) {
        let Steps { dirs, files, rest } = steps(self.plan, self.shared);
        self.one_by_one(dirs);
        self.together(files);
        self.one_by_one(rest);
    }

    fn one_by_one(&mut self, steps: Vec<Step<'_>>) {
        for step in steps {
            if !self.outcome.stopped && (self.control)() == Flow::Stop {
                self.outcome.stopped = true;
            }
            let done = if self.outcome.stopped {
                Done::Failed(STOPPED.to_owned())
            } else {
                self.take(step).unwrap_or_else(|error| Done::Failed(error.to_string()))
            };
            self.record(step, done);
        }
    }

    /// Puts staged files in their places, on several threads.
    fn together(&mut self, steps: Vec<Step<'_>>) {
        let (swaps, others): (Vec<Step<'_>>, Vec<Step<'_>>) =
            steps.into_iter().partition(|step| matches!(step, Step::Place(..) | Step::Replace(..)));
        let swaps: Vec<(Step<'_>, Option<Staging>)> =
            swaps.into_iter().map(|step| (step, self.staged.remove(step.path()))).collect();
        let work = if self.outcome.stopped {
            Work { done: swaps.iter().map(|_| None).collect(), stopped: true }
        } else {
            let hands = self.hands();
            crew::work(&swaps, &|(step, staging)| hands.put(step, staging.as_ref()), &|_| false, self.control)
        };
        self.outcome.stopped |= work.stopped;
        for ((step, staging), done) in swaps.into_iter().zip(work.done) {
            let done = match done {
                Some(done) => done.unwrap_or_else(|error| Done::Failed(error.to_string())),
                None => Done::Failed(STOPPED.to_owned()),
            };
            self.settle(step.path(), staging, matches!(done, Done::Changed));
            self.record(step, done);
        }
        self.one_by_one(others);
    }

    fn record(&mut self, step: Step<'_>, done: Done) {
        let path = step.path().clone();
        match done {
            Done::Already => {}
            Done::Kept(why) => self.outcome.kept.push((path, why)),
            Done::Moved => self.fail(path, CHANGED.to_owned()),
            Done::Failed(why) => self.fail(path, why),
            Done::Changed => {
                self.touched.extend(path.parent());
                match step {
                    Step::MakeDir(..) | Step::Place(..) => self.outcome.created.push(path),
                    Step::DirOver(..) | Step::Replace(..) | Step::SetMode(..) => self.outcome.replaced.push(path),
                    Step::Remove(..) | Step::RemoveDir(..) => self.outcome.deleted.push(path),
                    Step::Vacate(..) | Step::FinishDir(..) => {}
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

    fn take(&mut self, step: Step<'_>) -> Result<Done> {
        match step {
            Step::MakeDir(path, to) => self.make_dir(path, to),
            Step::DirOver(path, from) => self.dir_over(path, from),
            Step::Place(path, _) | Step::Replace(path, _) if self.held.contains(path) => Ok(Done::Already),
            Step::Place(path, _) | Step::Replace(path, _) => {
                let staging = self.staged.remove(path);
                let done = self.hands().put(&step, staging.as_ref());
                self.settle(path, staging, matches!(done, Ok(Done::Changed)));
                done
            }
            Step::Vacate(path) => self.vacate(path),
            Step::Remove(path, from) => self.remove(path, from),
            Step::RemoveDir(path, from) => self.remove_dir(path, from),
            Step::SetMode(path, from, to) => self.set_mode(path, from, to),
            Step::FinishDir(path, to) => self.finish_dir(path, to),
        }
    }

    fn hands(&self) -> Hands<'_> {
        Hands {
            root: self.root,
            saved: self.saved,
            loosened: &self.loosened,
            remains: &self.remains,
            turns: &self.turns,
        }
    }

    fn parent(&self, path: &RelPath) -> Result<Dir> {
        self.hands().parent(path)
    }

    /// For steps that are taken one by one: no other thread of this restore is at work.
    fn prove(&self, dir: &Dir, path: &RelPath, from: &ManifestEntry) -> Result<Proof> {
        self.hands().prove(dir, path, from).map(|(proof, _turn)| proof)
    }

    fn make_dir(&mut self, path: &RelPath, to: &ManifestEntry) -> Result<Done> {
        let dir = self.parent(path)?;
        if dir.create_dir(path.name(), 0o700)? {
            self.made.insert(path.clone());
            return Ok(Done::Changed);
        }
        Ok(match dir.stat(path.name())? {
            Some(there) if there.kind == FileKind::Dir && there.perm() == to.perm => Done::Already,
            Some(there) if there.kind == FileKind::Dir => {
                Done::Kept(format!("was there already; its permissions stay {:04o}", there.perm()))
            }
            Some(_) | None => Done::Moved,
        })
    }

    fn dir_over(&mut self, path: &RelPath, from: &ManifestEntry) -> Result<Done> {
        let dir = self.parent(path)?;
        let Proof::Exact(seen) = self.prove(&dir, path, from)? else {
            return Ok(Done::Moved);
        };
        let name = temporary_name();
        dir.create_dir(&name, 0o700)?;
        let swapped = swap(&self.remains, (&dir, &name), (&dir, path.name()), &seen);
        if matches!(swapped, Ok(true)) {
            self.made.insert(path.clone());
            return Ok(Done::Changed);
        }
        // Only the empty directory made above can go by this.
        let _ = dir.rmdir(&name);
        swapped.map(|_| Done::Moved)
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

    fn vacate(&mut self, path: &RelPath) -> Result<Done> {
        let Some(dir) = self.root.find_dir(path.to_path())? else {
            return Ok(Done::Already);
        };
        let obstacle = match self.obstacle(path, &dir) {
            Ok(None) => return Ok(Done::Already),
            Ok(Some(obstacle)) => format!("it holds {obstacle}"),
            Err(error) => error.to_string(),
        };
        self.held.insert(path.clone());
        Ok(Done::Failed(format!("stays a directory: {obstacle}")))
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

    /// A directory above that stays although a file was to take its place.
    fn held_above(&self, path: &RelPath) -> Option<&RelPath> {
        self.held.iter().find(|held| path.starts_with(held))
    }

    fn remove(&mut self, path: &RelPath, from: &ManifestEntry) -> Result<Done> {
        if let Some(held) = self.held_above(path) {
            return Ok(Done::Kept(format!("`{}` stays a directory", held.display())));
        }
        let dir = self.parent(path)?;
        match self.prove(&dir, path, from)? {
            Proof::Absent => Ok(Done::Already),
            Proof::Differs => Ok(Done::Moved),
            Proof::Exact(seen) if set_aside(&self.remains, &dir, path.name(), &seen)? => Ok(Done::Changed),
            Proof::Exact(_) => Ok(Done::Moved),
        }
    }

    fn remove_dir(&mut self, path: &RelPath, from: &ManifestEntry) -> Result<Done> {
        if let Some(held) = self.held_above(path) {
            return Ok(Done::Kept(format!("`{}` stays a directory", held.display())));
        }
        let dir = self.parent(path)?;
        match self.prove(&dir, path, from)? {
            Proof::Absent => Ok(Done::Already),
            Proof::Differs => Ok(Done::Moved),
            Proof::Exact(_) if dir.rmdir(path.name())? => Ok(Done::Changed),
            Proof::Exact(_) => Ok(Done::Kept("not empty".to_owned())),
        }
    }

    fn set_mode(&mut self, path: &RelPath, from: &ManifestEntry, to: &ManifestEntry) -> Result<Done> {
        let dir = self.parent(path)?;
        let Proof::Exact(seen) = self.prove(&dir, path, from)? else {
            return Ok(Done::Moved);
        };
        self.chmod(&dir, path, &seen, to.perm)
    }

    fn finish_dir(&mut self, path: &RelPath, to: &ManifestEntry) -> Result<Done> {
        if !self.made.contains(path) {
            return Ok(Done::Already);
        }
        let dir = self.parent(path)?;
        match dir.stat(path.name())? {
            Some(seen) if seen.kind == FileKind::Dir => self.chmod(&dir, path, &seen, to.perm),
            Some(_) | None => Ok(Done::Moved),
        }
    }

    fn chmod(&mut self, dir: &Dir, path: &RelPath, seen: &Stat, perm: u16) -> Result<Done> {
        if !dir.chmod(path.name(), seen, perm)? {
            return Ok(Done::Moved);
        }
        self.loosened.forget(path);
        // The kernel drops setgid without an error when the group is not one of ours.
        let now = dir.stat(path.name())?.map(|stat| stat.perm());
        if let Some(now) = now.filter(|now| *now != perm) {
            self.outcome.warnings.push((path.clone(), format!("permissions are {now:04o} instead of {perm:04o}")));
        }
        Ok(Done::Changed)
    }
}
