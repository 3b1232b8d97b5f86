//! What notify tells, turned into marks.
//!
//! [`Listener`] runs on notify's own thread, which sleeps in the kernel while nothing happens. It only notes: watches are
//! placed and dropped by whoever asks, because a handler that called notify would wait for itself.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RemoveKind, RenameMode};
use notify::{Event, EventHandler, EventKind};

use super::git_files;
use super::marks::Marks;
use crate::model::change::{Reach, Why};
use crate::model::path::RelPath;

/// What a database writes beside its file; a change of it is one of the file, whose own may go unseen.
const NEIGHBOURS: &[&[u8]] = &[b"-wal", b"-journal", b"-shm"];

/// What was heard and not dealt with yet.
pub(super) struct Heard {
    pub(super) marks: Marks,
    /// Directories (or files) that went under these names.
    pub(super) gone: BTreeSet<RelPath>,
    /// Directories (or files) that came under these names and have no watches yet.
    pub(super) came: BTreeSet<RelPath>,
    /// Directories that were not reached in time, and have watches already or wait for them. Of these there are no news.
    pub(super) left: BTreeSet<RelPath>,
    /// The instance of notify that is listened to; what older ones still tell is ignored.
    pub(super) instance: u64,
    /// Whether that instance cannot be trusted any more.
    pub(super) afresh: bool,
    /// The cookie that is waited for, and how often it was seen.
    pub(super) cookie: (u64, u64),
    /// Directories deleted since the last round (most count twice), and how many may be: see [`Places::patience`].
    ///
    /// [`Places::patience`]: super::places::Places::patience
    pub(super) deleted: usize,
    pub(super) patience: usize,
    pub(super) events: u64,
    pub(super) overflows: u64,
    cap: usize,
}

impl Heard {
    pub(super) fn new(cap: usize) -> Heard {
        Heard {
            marks: Marks::new(cap),
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

    /// Everything may have changed, and the watches are to be placed anew.
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

/// What was heard, shared between notify's thread and whoever asks.
pub(super) struct Shared {
    heard: Mutex<Heard>,
    wake: Condvar,
}

impl Shared {
    pub(super) fn new(heard: Heard) -> Shared {
        Shared { heard: Mutex::new(heard), wake: Condvar::new() }
    }

    /// Each change of what was heard is whole, so that a panic elsewhere spoils nothing.
    pub(super) fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` says so; whether it did by the deadline.
    pub(super) fn wait(&self, deadline: Instant, done: impl Fn(&Heard) -> bool) -> bool {
        let mut heard = self.lock();
        while !done(&heard) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            heard = self.wake.wait_timeout(heard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// The handler of one instance of notify.
pub(super) struct Listener {
    pub(super) shared: Arc<Shared>,
    pub(super) instance: u64,
    pub(super) root: Arc<Path>,
    pub(super) cookies: Arc<Path>,
    /// What the names of this watcher's cookies begin with.
    pub(super) cookie_prefix: String,
}

impl EventHandler for Listener {
    fn handle_event(&mut self, event: notify::Result<Event>) {
        let mut heard = self.shared.lock();
        if heard.instance != self.instance {
            return;
        }
        heard.events += 1;
        match event {
            Ok(event) if event.need_rescan() => {
                heard.overflows += 1;
                heard.lose(Why::Overflow);
            }
            Ok(event) => self.note(&mut heard, &event),
            Err(error) => {
                tracing::warn!(%error, "watching failed");
                heard.lose(Why::Failed);
            }
        }
        if heard.afresh {
            self.shared.wake.notify_all();
        }
    }
}

/// What an event says of its paths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// The path's own content or permissions changed, or a file came or went.
    Touched,
    /// Something came that may be a directory.
    Came,
    /// Something went that may have been a directory.
    Gone,
    /// Both, who knows in which order.
    Swapped,
    Unmounted,
}

fn told(event: &Event) -> Told {
    match event.kind {
        EventKind::Create(CreateKind::File) | EventKind::Remove(RemoveKind::File) => Told::Touched,
        EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => Told::Came,
        EventKind::Remove(RemoveKind::Other) if event.info() == Some("unmount") => Told::Unmounted,
        EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From)) => Told::Gone,
        // Follows upon its two halves.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => Told::Nothing,
        EventKind::Any | EventKind::Modify(ModifyKind::Name(_)) => Told::Swapped,
        // The last close of a file that was written through a mapping comes when the mapping goes.
        EventKind::Modify(_) | EventKind::Access(AccessKind::Close(AccessMode::Write)) => Told::Touched,
        EventKind::Access(_) | EventKind::Other => Told::Nothing,
    }
}

impl Listener {
    fn note(&self, heard: &mut Heard, event: &Event) {
        let told = told(event);
        heard.deleted += usize::from(event.kind == EventKind::Remove(RemoveKind::Folder));
        if heard.deleted / 2 > heard.patience {
            return heard.lose(Why::ManyGone);
        }
        for path in &event.paths {
            if let Ok(name) = path.strip_prefix(&self.cookies) {
                self.cookie(heard, name, event, told);
            } else if let Ok(path) = path.strip_prefix(&self.root) {
                match RelPath::from_path(path) {
                    Ok(path) => note_path(heard, path, told),
                    // The kernel tells of no such names.
                    Err(_) => heard.lose(Why::Failed),
                }
            } else {
                heard.lose(Why::Failed); // nothing else is watched
            }
        }
    }

    fn cookie(&self, heard: &mut Heard, name: &Path, event: &Event, told: Told) {
        let name = name.as_os_str().as_bytes();
        let own = name.strip_prefix(self.cookie_prefix.as_bytes());
        let number = own.and_then(|number| std::str::from_utf8(number).ok()?.parse::<u64>().ok());
        let waited_for = number == Some(heard.cookie.0);
        match event.kind {
            // One for each writing; making the file and closing it tell more, which must not count.
            EventKind::Modify(ModifyKind::Data(_)) if waited_for => {
                heard.cookie.1 += 1;
                self.shared.wake.notify_all();
            }
            _ if told == Told::Unmounted => heard.lose(Why::Unmounted),
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(RenameMode::From))
                if waited_for || name.is_empty() =>
            {
                heard.lose(Why::NoCookie);
            }
            _ => {}
        }
    }
}

fn note_path(heard: &mut Heard, path: RelPath, told: Told) {
    if told == Told::Unmounted {
        return heard.lose(Why::Unmounted);
    }
    if told == Told::Nothing || !git_files::concerns(&path) {
        return;
    }
    if let Some(dir) = git_files::ruled_by(&path) {
        heard.marks.mark(dir, Reach::Subtree);
    }
    for neighbour in NEIGHBOURS {
        if let Some(file) = path.name().strip_suffix(*neighbour).filter(|file| !file.is_empty()) {
            let dir = path.parent().unwrap_or_default();
            heard.marks.mark(dir.join(file), Reach::Entry);
        }
    }
    match told {
        Told::Touched => heard.marks.mark(path, Reach::Entry),
        Told::Came => heard.came(path),
        Told::Gone => heard.gone(path),
        Told::Swapped => {
            heard.gone(path.clone());
            heard.came(path);
        }
        Told::Nothing | Told::Unmounted => {}
    }
}
