//! Reading directories ahead of the walk, on other threads.
//!
//! The walk decides where to go and in which order; what the kernel says of a directory can be asked beforehand. The
//! walk offers directories that it will surely list; a scout lists the one that comes next. Nothing depends on a scout:
//! what it has not read, or could not read, the walk reads itself.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Stat, fstat};
use rustix::io::Errno;

use super::super::beneath::{Root, lstat_in, names_in};
use super::super::names::Names;
use super::super::probe::stamp_of;
use crate::model::path::RelPath;
use crate::model::stamp::Stamp;
use crate::sys::clock::file_clock;

/// Most listings that wait for the walk; each holds a file descriptor.
const READY: usize = 16;

/// Directories with more names are left to the walk, so that memory stays small.
const MAX_NAMES: usize = 10_000;

/// Most scouts: beyond it the kernel's directory cache gains little.
pub(super) const MAX_SCOUTS: usize = 3;

/// Bytes for one `getdents` call.
pub(super) const BUFFER: usize = 64 << 10;

/// What the kernel said of an open directory.
pub(super) struct Listing {
    pub(super) dir: OwnedFd,
    pub(super) facts: Stat,
    /// Sorted by bytes.
    pub(super) names: Names,
    /// `lstat` of each name.
    pub(super) seen: Vec<Seen>,
}

/// `lstat` of one name, and the file system's clock just before.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) at: i64,
    pub(super) stamp: Result<Stamp, Errno>,
}

impl Seen {
    /// Looks at a name in an open directory.
    pub(super) fn now(dir: BorrowedFd<'_>, name: &[u8]) -> Seen {
        Seen { at: file_clock(), stamp: lstat_in(dir, name).map(|stat| stamp_of(&stat)) }
    }
}

#[derive(Default)]
struct Queue {
    /// The walk comes to the last one first.
    waiting: Vec<RelPath>,
    working: Vec<RelPath>,
    /// `None`: the scout could not.
    ready: HashMap<RelPath, Option<Listing>>,
    closed: bool,
}

/// What walk and scouts share.
#[derive(Default)]
pub(super) struct Ahead {
    queue: Mutex<Queue>,
    /// Something to do for scouts.
    offered: Condvar,
    /// Something done for the walk.
    done: Condvar,
}

impl Ahead {
    /// Offers directories that will be listed whole; the one that is visited first comes last.
    pub(super) fn offer(&self, paths: impl Iterator<Item = RelPath>) {
        let mut queue = self.lock();
        let before = queue.waiting.len();
        queue.waiting.extend(paths);
        if queue.waiting.len() > before {
            self.offered.notify_all();
        }
    }

    /// What a scout read of a directory, if one did or is at it.
    pub(super) fn take(&self, path: &RelPath) -> Option<Listing> {
        let mut queue = self.lock();
        loop {
            if let Some(listing) = queue.ready.remove(path) {
                self.offered.notify_one();
                return listing;
            }
            if !queue.working.contains(path) {
                break;
            }
            queue = self.done.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(at) = queue.waiting.iter().rposition(|waiting| waiting == path) {
            queue.waiting.remove(at);
        }
        None
    }

    /// The walk is over: scouts end.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.offered.notify_all();
    }

    /// A scout's life.
    pub(super) fn scout(&self, root: &Root) {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return;
            }
            let room = queue.ready.len() + queue.working.len() < READY;
            let Some(path) = room.then(|| queue.waiting.pop()).flatten() else {
                queue = self.offered.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            queue.working.push(path.clone());
            drop(queue);
            let listing = read(root, &path, &mut buffer);
            queue = self.lock();
            queue.working.retain(|working| *working != path);
            queue.ready.insert(path, listing);
            self.done.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(root: &Root, path: &RelPath, buffer: &mut [MaybeUninit<u8>]) -> Option<Listing> {
    let dir = root.open_dir(path).ok()?;
    let facts = fstat(&dir).ok()?;
    let names = names_in(dir.as_fd(), buffer).ok()?;
    if names.len() > MAX_NAMES {
        return None;
    }
    let seen = names.iter().map(|name| Seen::now(dir.as_fd(), name)).collect();
    Some(Listing { dir, facts, names, seen })
}
