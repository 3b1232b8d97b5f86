//! Reading directories ahead of the walk, on other threads.
//!
//! The walk decides where to go and in which order; what the kernel says of a directory can be asked beforehand. Scouts
//! read the directories that hold what was captured before ([`super::plan`]), and others that the walk offers because it
//! will surely list them, the one that comes next first. Nothing depends on a scout: what it has not read, or could not
//! read, the walk reads itself.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

use rustix::fs::fstat;

use super::super::beneath::{Root, names_in};
use super::super::stopped::unless_stopped;
use super::listing::{BUFFER, DirListing, Here, Seen};
use super::plan::ReadPlan;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::sys::interrupt::Interrupt;
use crate::sys::parallel::cores;

/// Most names in listings that wait for the walk, so that memory stays small: some megabytes.
const READY: usize = 50_000;

/// Directories with more names are left to the walk, so that memory stays small.
const MAX_NAMES: usize = 10_000;

/// Most scouts: beyond it the kernel's directory cache gains little.
const MAX_SCOUTS: usize = 3;

/// Returns the number of scouts: one core is the walk's own.
pub(super) fn scouts() -> usize {
    cores(MAX_SCOUTS + 1) - 1
}

/// Longest time between two calls of `control`.
const PAUSE: Duration = Duration::from_millis(5);

/// The number of times that the walk looks again whether a scout has finished, before it goes to sleep.
const SPINS: usize = 200;

#[derive(Default)]
struct Queue {
    /// The walk comes to the last one first.
    waiting: Vec<RelPath>,
    /// Directories that scouts are listing now.
    working: Vec<RelPath>,
    /// `None`: the scout could not.
    ready: HashMap<RelPath, Option<DirListing>>,
    /// Names in what is ready.
    names: usize,
    /// True if the walk sleeps.
    awaited: bool,
    /// True once the walk has ended: scouts end too.
    closed: bool,
}

/// The state that walk and scouts share.
#[derive(Default)]
pub(super) struct Ahead {
    plan: ReadPlan,
    queue: Mutex<Queue>,
    /// Scouts that sleep, or are about to.
    idle: AtomicUsize,
    /// Something to do for scouts.
    offered: Condvar,
    /// Something done for the walk.
    done: Condvar,
}

impl Ahead {
    /// For a walk to which files are known already.
    pub(super) fn of(plan: ReadPlan) -> Ahead {
        Ahead { plan, ..Ahead::default() }
    }

    /// Offers directories that will be listed whole; the one that is visited first comes last.
    pub(super) fn offer(&self, paths: impl Iterator<Item = RelPath>) {
        let mut unplanned = paths.filter(|path| self.plan.find(path).is_none()).peekable();
        if unplanned.peek().is_some() {
            self.lock().waiting.extend(unplanned);
            self.wake();
        }
    }

    /// Wakes scouts that sleep. The state that they wait for has changed before: a scout looks once more after it
    /// counts as idle.
    fn wake(&self) {
        if self.idle.load(SeqCst) > 0 {
            drop(self.lock());
            self.offered.notify_all();
        }
    }

    /// Returns what was read ahead of a directory, if a scout has read it or is at it. `control` is called while a
    /// scout is waited for.
    ///
    /// # Errors
    /// `shutting-down` when `control` said so.
    pub(super) fn take(
        &self,
        path: &RelPath,
        root: &Root,
        buffer: &mut [MaybeUninit<u8>],
        control: Interrupt<'_>,
    ) -> Result<Option<DirListing>> {
        if let Some(at) = self.plan.find(path) {
            let was_full = self.plan.names() >= READY;
            let listing = self.plan.take(at, &mut || self.plan.names() < READY && self.read_planned(root, buffer));
            if was_full {
                self.wake();
            }
            return Ok(listing);
        }
        self.take_offered(path, control)
    }

    /// Reads one planned directory, if there is one that no thread reads.
    fn read_planned(&self, root: &Root, buffer: &mut [MaybeUninit<u8>]) -> bool {
        let Some((at, path)) = self.plan.claim() else {
            return false;
        };
        // A bug here must not leave the walk without an answer.
        let listing = catch_unwind(AssertUnwindSafe(|| read(root, path, buffer))).unwrap_or(None);
        self.plan.publish(at, listing);
        true
    }

    fn take_offered(&self, path: &RelPath, control: Interrupt<'_>) -> Result<Option<DirListing>> {
        let mut queue = self.lock();
        let mut spins = 0;
        loop {
            if let Some(listing) = queue.ready.remove(path) {
                let was_full = queue.names >= READY;
                queue.names -= listing.as_ref().map_or(0, |listing| listing.names.len());
                drop(queue);
                if was_full {
                    self.wake();
                }
                return Ok(listing);
            }
            if !queue.working.contains(path) {
                break;
            }
            // A scout at work is done sooner than a thread is woken.
            spins += 1;
            if spins < SPINS {
                drop(queue);
                std::hint::spin_loop();
                queue = self.lock();
            } else {
                queue.awaited = true;
                let waited = self.done.wait_timeout(queue, PAUSE).unwrap_or_else(PoisonError::into_inner);
                drop(waited);
                unless_stopped(control)?;
                queue = self.lock();
                queue.awaited = false;
            }
        }
        if let Some(at) = queue.waiting.iter().rposition(|waiting| waiting == path) {
            queue.waiting.remove(at);
        }
        Ok(None)
    }

    /// The walk is over: scouts end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    /// Calls `walk` while scouts read ahead of it.
    pub(super) fn scouting<R>(&self, root: &Root, walk: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            for _ in 0..scouts() {
                // Without scouts the walk reads everything itself.
                let _ = Builder::new().name("scout".to_owned()).spawn_scoped(scope, || self.scout(root));
            }
            let found = walk();
            self.close();
            found
        })
    }

    /// A scout's life.
    pub(super) fn scout(&self, root: &Root) {
        let mut buffer = Box::new_uninit_slice(BUFFER);
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return;
            }
            let room = queue.names + self.plan.names() < READY;
            if let Some(path) = room.then(|| queue.waiting.pop()).flatten() {
                queue.working.push(path.clone());
                drop(queue);
                // A bug here must not leave the walk waiting.
                let listing = catch_unwind(AssertUnwindSafe(|| read(root, &path, &mut buffer))).unwrap_or(None);
                queue = self.lock();
                queue.working.retain(|working| *working != path);
                queue.names += listing.as_ref().map_or(0, |listing| listing.names.len());
                queue.ready.insert(path, listing);
                if queue.awaited {
                    self.done.notify_all();
                }
                continue;
            }
            if room {
                drop(queue);
                let read = self.read_planned(root, &mut buffer);
                queue = self.lock();
                if read {
                    continue;
                }
            }
            // The walk wakes who is idle after it has made a change; one that it made before is seen now.
            self.idle.fetch_add(1, SeqCst);
            let something =
                queue.names + self.plan.names() < READY && (!queue.waiting.is_empty() || self.plan.is_open());
            if !something && !queue.closed {
                queue = self.offered.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            self.idle.fetch_sub(1, SeqCst);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(root: &Root, path: &RelPath, buffer: &mut [MaybeUninit<u8>]) -> Option<DirListing> {
    let dir = root.open_dir(path).ok()?;
    let facts = fstat(&dir).ok()?;
    let names = names_in(dir.as_fd(), buffer).ok()?;
    if names.len() > MAX_NAMES {
        return None;
    }
    let here = Here::new(root, path.clone(), Some(dir));
    let seen = names.with_dirs().map(|(name, dir)| dir.map_or_else(|| here.see(name), Seen::listed_dir)).collect();
    Some(DirListing { dir: None, facts, names, seen })
}
