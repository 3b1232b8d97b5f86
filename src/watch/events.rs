//! Turns the events of notify into marks.
//!
//! [`Listener`] runs on notify's own thread, which sleeps in the kernel while nothing happens. It only notes changes.
//! The thread that calls `sync` places and removes watches, because a handler that called notify would wait for itself.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Event, EventHandler, EventKind};

use super::dirty_set::DirtySet;
use super::git_files;
use super::signal::ChangeSignal;
use crate::model::change::{Reach, Why};
use crate::model::path::RelPath;

/// Endings of files that a database writes beside its own file. A change of one counts as a change of the database
/// file, whose own writes may give no event.
const NEIGHBOURS: &[&[u8]] = &[b"-wal", b"-journal", b"-shm"];

/// Changes reported by events that no sync has handled yet.
pub(super) struct PendingChanges {
    pub(super) marks: DirtySet,
    /// Names that were removed or moved away: directories, perhaps files.
    pub(super) gone: BTreeSet<RelPath>,
    /// New names without watches: directories, perhaps files.
    pub(super) came: BTreeSet<RelPath>,
    /// Directories that the last deadline left out. No further event will name them.
    pub(super) left: BTreeSet<RelPath>,
    /// The number of the current instance of notify; events of older ones are ignored.
    pub(super) instance: u64,
    /// True if that instance cannot be trusted any more.
    pub(super) afresh: bool,
    /// The number of the current cookie, and how many of its events came.
    pub(super) cookie: (u64, u64),
    /// Directories deleted since the last round (most count twice).
    pub(super) deleted: usize,
    /// The number of them from which on a new instance is cheaper: see [`Places::patience`].
    ///
    /// [`Places::patience`]: super::places::Places::patience
    pub(super) patience: usize,
    pub(super) events: u64,
    pub(super) overflows: u64,
    cap: usize,
}

impl PendingChanges {
    /// Makes an empty set of changes.
    pub(super) fn new(cap: usize) -> PendingChanges {
        PendingChanges {
            marks: DirtySet::new(cap),
            gone: BTreeSet::new(),
            came: BTreeSet::new(),
            left: BTreeSet::new(),
            instance: 0,
            afresh: false,
            cookie: (0, 0),
            deleted: 0,
            patience: usize::MAX,
            events: 0,
            overflows: 0,
            cap,
        }
    }

    /// Notes that everything may have changed and that the watches have to be placed anew.
    pub(super) fn lose(&mut self, why: Why) {
        self.marks.lose(why);
        self.afresh = true;
        self.gone.clear();
        self.came.clear();
        self.left.clear();
        self.deleted = 0;
    }

    fn came(&mut self, path: RelPath) {
        self.marks.mark(path.clone(), Reach::Subtree);
        self.came.insert(path);
        self.bound();
    }

    fn gone(&mut self, path: RelPath) {
        if path.is_root() {
            return self.lose(Why::RootMoved);
        }
        self.marks.mark(path.clone(), Reach::Subtree);
        self.gone.insert(path);
        self.bound();
    }

    fn bound(&mut self) {
        if self.came.len() + self.gone.len() > self.cap {
            self.lose(Why::TooManyPaths);
        }
    }
}

/// The pending changes, shared between notify's thread and the thread that syncs.
pub(super) struct SharedChanges {
    pending: Mutex<PendingChanges>,
    wake: Condvar,
}

impl SharedChanges {
    /// Makes an empty set of changes.
    pub(super) fn new(pending: PendingChanges) -> SharedChanges {
        SharedChanges { pending: Mutex::new(pending), wake: Condvar::new() }
    }

    /// Locks the changes. A poisoned lock is used all the same: every change to them is complete before anything can
    /// panic.
    pub(super) fn lock(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` returns true. Returns false if the deadline passes first.
    pub(super) fn wait(&self, deadline: Instant, done: impl Fn(&PendingChanges) -> bool) -> bool {
        let mut pending = self.lock();
        while !done(&pending) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            pending = self.wake.wait_timeout(pending, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// The handler of one instance of notify.
pub(super) struct Listener {
    pub(super) shared: Arc<SharedChanges>,
    pub(super) instance: u64,
    pub(super) root: Arc<Path>,
    pub(super) cookies: Arc<Path>,
    /// The beginning of the names of this watcher's cookies.
    pub(super) cookie_prefix: String,
    /// Called after each event that is no cookie's.
    pub(super) signal: Option<ChangeSignal>,
}

impl EventHandler for Listener {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        let mut pending = self.shared.lock();
        if pending.instance != self.instance {
            return;
        }
        pending.events += 1;
        let mut is_change = true;
        match event {
            Ok(event) if event.need_rescan() => {
                pending.overflows += 1;
                pending.lose(Why::Overflow);
            }
            Ok(event) => is_change = self.note(&mut pending, &event),
            Err(error) => {
                tracing::warn!(%error, "watching failed");
                pending.lose(Why::Failed);
            }
        }
        if pending.afresh {
            self.shared.wake.notify_all();
        }
        drop(pending);
        if let Some(signal) = self.signal.as_ref().filter(|_| is_change) {
            signal.give();
        }
    }
}

/// The meaning of an event for its paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Nothing,
    /// The path's own content or permissions changed, or a file came or went.
    Touched,
    /// Something came that may be a directory.
    Came,
    /// Something went that may have been a directory.
    Gone,
    /// Both, in an unknown order.
    Swapped,
    Unmounted,
}

fn meaning(event: &Event) -> Meaning {
    match event.kind {
        EventKind::Create(CreateKind::File) | EventKind::Remove(RemoveKind::File) => Meaning::Touched,
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Meaning::Came,
        EventKind::Remove(RemoveKind::Other) if event.info() == Some("unmount") => Meaning::Unmounted,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Meaning::Gone,
        // It repeats the two halves of a move, which were noted already.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => Meaning::Nothing,
        EventKind::Any | EventKind::Modify(ModifyKind::Name(_)) => Meaning::Swapped,
        // The last close of a file that was written through a mapping comes when the mapping goes.
        EventKind::Modify(_) | EventKind::Access(AccessKind::Close(AccessMode::Write)) => Meaning::Touched,
        EventKind::Access(_) | EventKind::Other => Meaning::Nothing,
    }
}

impl Listener {
    /// Notes an event; true if it tells of a change in the tree.
    fn note(&self, pending: &mut PendingChanges, event: &Event) -> bool {
        let meaning = meaning(event);
        pending.deleted += usize::from(event.kind == EventKind::Remove(RemoveKind::Folder));
        if pending.deleted / 2 > pending.patience {
            pending.lose(Why::ManyGone);
            return true;
        }
        let mut is_change = false;
        for path in &event.paths {
            if let Ok(name) = path.strip_prefix(&self.cookies) {
                self.cookie(pending, name, event, meaning);
            } else if let Ok(path) = path.strip_prefix(&self.root) {
                match RelPath::from_path(path) {
                    Ok(path) => is_change |= note_path(pending, path, meaning),
                    // The kernel reports no such names, so the event cannot be trusted.
                    Err(_) => pending.lose(Why::Failed),
                }
            } else {
                pending.lose(Why::Failed); // nothing else is watched
            }
        }
        is_change || pending.afresh
    }

    fn cookie(&self, pending: &mut PendingChanges, name: &Path, event: &Event, meaning: Meaning) {
        let name = name.as_os_str().as_bytes();
        let own = name.strip_prefix(self.cookie_prefix.as_bytes());
        let number = own.and_then(|number| std::str::from_utf8(number).ok()?.parse::<u64>().ok());
        let waited_for = number == Some(pending.cookie.0);
        match event.kind {
            // One event for each write. Creating and closing the file give further events, which must not count.
            EventKind::Modify(ModifyKind::Data(_)) if waited_for => {
                pending.cookie.1 += 1;
                self.shared.wake.notify_all();
            }
            _ if meaning == Meaning::Unmounted => pending.lose(Why::Mounts),
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From))
                if waited_for || name.is_empty() =>
            {
                pending.lose(Why::NoCookie);
            }
            _ => {}
        }
    }
}

/// Notes the meaning of an event for a path; true if it is a change of the tree.
fn note_path(pending: &mut PendingChanges, path: RelPath, meaning: Meaning) -> bool {
    if meaning == Meaning::Unmounted {
        pending.lose(Why::Mounts);
        return true;
    }
    if meaning == Meaning::Nothing || !git_files::concerns(&path) {
        return false;
    }
    for neighbour in NEIGHBOURS {
        if let Some(file) = path.name().strip_suffix(*neighbour).filter(|file| !file.is_empty()) {
            let dir = path.parent().unwrap_or_default();
            pending.marks.mark(dir.join(file), Reach::Entry);
        }
    }
    match meaning {
        Meaning::Touched => pending.marks.mark(path, Reach::Entry),
        Meaning::Came => pending.came(path),
        Meaning::Gone => pending.gone(path),
        Meaning::Swapped => {
            pending.gone(path.clone());
            pending.came(path);
        }
        Meaning::Nothing | Meaning::Unmounted => {}
    }
    true
}
