//! The watcher of one workspace. It reports the changes since a clock.
//!
//! [`Watcher::sync`] writes a *cookie*, a file of piton's own that the same instance of inotify watches, and waits for
//! its event. When it comes, all events before it have come too. `sync` then gives watches to new directories. It
//! returns the paths that changed since a clock, or says that everything may have changed.
//!
//! It knows paths and events, and nothing of captures, stores and ignore rules: the caller brings the rules for which
//! directories get watches.
//!
//! *Invariant:* an answer covers every change between the answer that gave the clock and the call of `sync`, except for
//! those that "Limits" names. In doubt the answer is everything. *Invariant:* a new directory counts as changed as a
//! whole, in an answer that is given after its watch is in place. *Invariant:* nothing is written into the tree, and no
//! symbolic link is followed. *Invariant:* there is no timer and no polling: at rest the only thread, notify's, sleeps
//! in the kernel. *Invariant:* memory is bounded by the directories and the caps, never by the number of changes.
//!
//! # Limits
//! Some changes give no event: writes through a name outside of the watched directories (hard links), and writes through a
//! mapping until it is closed. [`Watcher::set_always_dirty`] is for both. A mount gives no event either: each answer checks the table of
//! mounts. Rules outside of the tree (a global excludes file, the git directory of a linked worktree) are not
//! watched. A directory that is swapped for a link and back while its watch is placed may leave a watch on what the
//! link led to.

mod cookie;
mod dirty_set;
mod events;
mod git_files;
pub mod limits;
mod places;
mod refusal;
mod share;
mod signal;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use notify::event::EventKindMask;
use notify::{RecommendedWatcher, Watcher as _};

use self::cookie::Cookies;
use self::events::{Listener, PendingChanges, SharedChanges};
use self::places::Places;
pub use self::places::Uncovered;
pub use self::refusal::Refusal;
use self::share::WatcherPlace;
pub use self::signal::ChangeSignal;
use crate::model::change::{Changes, Clock, Dirty, Reach, Why};
use crate::model::path::RelPath;
use crate::sys::inotify::LIMITS;
use crate::sys::mount::{self, MountsBelow};

/// The rules by which directories get watches. Asked only of directories whose parents have one, never of the root and of a `.git`.
///
/// An excluded directory that holds something captured (tracked by git, captured before) needs its watch too. A new
/// directory may have ignore files that are not read yet. Admitting too much costs watches. Admitting too little loses
/// changes, unless [`Watcher::rewatch`] follows.
pub type WatchRules<'r> = &'r dyn Fn(&RelPath) -> bool;

/// The options of a watcher.
#[derive(Clone, Debug)]
pub struct Options {
    /// A directory of piton's own for cookies, outside of what is captured; made if it is missing. Several watchers may
    /// share it.
    pub cookies: PathBuf,
    /// Directories to watch at most; the system's own limit holds besides.
    pub max_watches: usize,
    /// Dirty paths to keep one by one.
    pub max_paths: usize,
    /// The time that the start may take to place watches. The rest counts as changed until a later sync has placed its
    /// watches.
    pub start_within: Duration,
    /// Called for each event of a change; `None` where nobody waits for changes.
    pub signal: Option<ChangeSignal>,
}

impl Options {
    /// Returns the defaults, with a directory for cookies.
    pub fn new(cookies: impl Into<PathBuf>) -> Options {
        Options {
            cookies: cookies.into(),
            max_watches: 500_000,
            max_paths: 100_000,
            start_within: Duration::from_secs(10),
            signal: None,
        }
    }
}

/// Figures of a watcher, for status and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Watched directories.
    pub watches: usize,
    /// Directories without a watch: dirty as a whole at every sync.
    pub uncovered: Vec<(RelPath, Uncovered)>,
    /// Events so far.
    pub events: u64,
    /// The number of overflows of the kernel's queue.
    pub overflows: u64,
    /// The number of times that all watches were placed anew.
    pub restarts: u64,
    /// Changed paths that are kept.
    pub dirty: usize,
}

/// Watches one workspace.
pub struct Watcher {
    id: u64,
    root: Arc<Path>,
    options: Options,
    shared: Arc<SharedChanges>,
    cookies: Cookies,
    /// `None` when the last attempt to make an instance of notify failed.
    places: Option<Places>,
    always: BTreeSet<RelPath>,
    /// `None` where the system has no table of mounts.
    mounts: Option<MountsBelow>,
    restarts: u64,
    _place: WatcherPlace,
}

impl Watcher {
    /// Watches `root`, which should be canonical, as far as the rules admit. Everything counts as changed at first.
    ///
    /// # Errors
    /// Returns why the workspace is not watched; the caller scans instead.
    pub fn start(root: &Path, rules: WatchRules<'_>, options: Options) -> Result<Watcher, Refusal> {
        let deadline = Instant::now() + options.start_within;
        let refused = |error: std::io::Error| Refusal::Unusable(error.to_string());
        let root: Arc<Path> = std::fs::canonicalize(root).map_err(refused)?.into();
        crate::sys::fs::durable::create_private_dir(&options.cookies)?;
        let cookies: Arc<Path> = std::fs::canonicalize(&options.cookies).map_err(refused)?.into();
        for path in [&root, &cookies] {
            if let Some(name) = mount::foreign(path)? {
                return Err(Refusal::Foreign(name));
            }
        }
        let place = WatcherPlace::take(Path::new(LIMITS)).map_err(Refusal::Share)?;
        let id = number();
        let shared = Arc::new(SharedChanges::new(PendingChanges::new(options.max_paths)));
        let cookies = Cookies::new(cookies, id);
        let mut watcher = Watcher {
            id,
            root,
            options,
            shared,
            cookies,
            places: None,
            always: BTreeSet::new(),
            mounts: None,
            restarts: 0,
            _place: place,
        };
        // Must run before the watches are placed, so that a mount in between is noticed.
        watcher.mounts =
            MountsBelow::new(&watcher.root).inspect_err(|error| tracing::warn!(%error, "mounts are not followed")).ok();
        watcher.begin_afresh()?;
        watcher.reconcile(rules, deadline);
        match watcher.places.as_ref().and_then(|places| places.uncovered().get(&RelPath::root())) {
            None => Ok(watcher),
            Some(why) => Err(Refusal::Root(*why)),
        }
    }

    /// Returns the changes since a clock, and the clock for the next call. A clock may be used again until a later one
    /// was used.
    ///
    /// The caller keeps the new clock only together with what it found at the changed paths: else a change would be
    /// lost.
    pub fn sync(&mut self, since: Clock, rules: WatchRules<'_>, deadline: Instant) -> (Clock, Changes) {
        let outcome = self.catch_up(rules, deadline);
        self.answer(since, outcome)
    }

    fn answer(&mut self, since: Clock, outcome: Result<(), Why>) -> (Clock, Changes) {
        let mut pending = self.shared.lock();
        let found = match (since.tick_of(self.id), outcome) {
            (Err(why), _) | (Ok(_), Err(why)) => Err(why),
            (Ok(tick), Ok(())) => pending.marks.since(tick),
        };
        // Directories without their watch yet may change without an event, so they count as changed.
        let waiting: Vec<RelPath> = pending.came.union(&pending.left).cloned().collect();
        // Cut under the same lock as the answer: no event may fall between both.
        let clock = Clock::new(self.id, pending.marks.cut());
        drop(pending);
        (clock, found.map_or_else(Changes::Everything, |paths| self.changes(paths, waiting)))
    }

    /// Follows changed rules: decides anew which directories at and below `dir` get watches.
    ///
    /// Call it after the sync that reported the changed rules ([`Dirty::rule_files`]), and before the scan of `dir`
    /// under the new ones. That scan finds what was there before the watches. A directory without a watch at the
    /// deadline counts as changed until a later sync.
    pub fn rewatch(&mut self, dir: &RelPath, rules: WatchRules<'_>, deadline: Instant) {
        self.place(BTreeSet::from([dir.clone()]), rules, deadline);
    }

    /// Sets the paths that every answer names because their changes may give no event: files with several links, and
    /// files written through mappings.
    pub fn set_always_dirty(&mut self, paths: impl IntoIterator<Item = RelPath>) {
        self.always = paths.into_iter().collect();
    }

    /// Returns true for a directory without a watch, which every answer names with all below it.
    pub fn is_uncovered(&self, dir: &RelPath) -> bool {
        self.places.as_ref().is_some_and(|places| places.uncovered().contains_key(dir))
    }

    /// Returns the figures.
    pub fn stats(&self) -> Stats {
        let pending = self.shared.lock();
        let uncovered = self.places.iter().flat_map(Places::uncovered);
        Stats {
            watches: self.places.as_ref().map_or(0, Places::watches),
            uncovered: uncovered.map(|(path, why)| (path.clone(), *why)).collect(),
            events: pending.events,
            overflows: pending.overflows,
            restarts: self.restarts,
            dirty: pending.marks.len(),
        }
    }

    /// Makes sure that all changes before now are marked.
    fn catch_up(&mut self, rules: WatchRules<'_>, deadline: Instant) -> Result<(), Why> {
        // A move of a parent directory gives no event in here.
        if self.places.as_ref().is_some_and(|places| !places.root_stands()) {
            self.shared.lock().lose(Why::RootMoved);
        }
        // A mount gives no event either.
        if let Some(Ok(true) | Err(_)) = self.mounts.as_mut().map(MountsBelow::have_changed) {
            self.shared.lock().lose(Why::Mounts);
        }
        if !self.shared.lock().afresh {
            let patience = Instant::now() + self.places.as_ref().map_or(Duration::ZERO, Places::restart_costs);
            match self.cookies.wait(&self.shared, patience, deadline) {
                Ok(()) => self.reconcile(rules, deadline),
                Err(Why::Late) => return Err(Why::Late),
                Err(why) => self.shared.lock().lose(why),
            }
        }
        // Twice at most: a loss while watches are placed anew can wait for the next sync.
        for _ in 0..2 {
            if !self.shared.lock().afresh {
                break;
            }
            self.begin_afresh().map_err(|refusal| {
                tracing::warn!(%refusal, root = %self.root.display(), "no longer watched");
                if self.root.is_dir() { Why::Failed } else { Why::RootMoved }
            })?;
            self.reconcile(rules, deadline);
        }
        Ok(())
    }

    /// Makes a new instance of notify. Everything counts as changed, because events of the old instance may be lost.
    fn begin_afresh(&mut self) -> Result<(), Refusal> {
        self.restarts += u64::from(self.shared.lock().instance > 0);
        self.places = None;
        // An event of the old cookie must not end a wait in the new instance.
        self.cookies.forget();
        let instance = {
            let mut pending = self.shared.lock();
            pending.lose(Why::Failed);
            // Events of the old instance may still come on its thread: their number is refused.
            pending.instance += 1;
            pending.instance
        };
        crate::sys::fs::durable::create_private_dir(self.cookies.dir())?;
        let listener = Listener {
            shared: Arc::clone(&self.shared),
            instance,
            root: Arc::clone(&self.root),
            cookies: Arc::clone(self.cookies.dir()),
            cookie_prefix: self.cookies.prefix().to_owned(),
            signal: self.options.signal.clone(),
        };
        let kinds = EventKindMask::CORE | EventKindMask::ACCESS_CLOSE;
        let config = notify::Config::default().with_follow_symlinks(false).with_event_kinds(kinds);
        let notify = RecommendedWatcher::new(listener, config)?;
        self.places = Some(Places::new(notify, &self.root, self.cookies.dir(), self.options.max_watches)?);
        let mut pending = self.shared.lock();
        pending.afresh = false;
        // All watches have to be placed anew, from the root on.
        pending.left.insert(RelPath::root());
        Ok(())
    }

    /// Removes the watches of removed directories, gives watches to new ones, and marks the new ones.
    fn reconcile(&mut self, rules: WatchRules<'_>, deadline: Instant) {
        let Some(places) = &mut self.places else { return };
        let (gone, came, left) = {
            let mut pending = self.shared.lock();
            if pending.afresh {
                return;
            }
            // An unreadable directory may have become readable.
            let mut left = std::mem::take(&mut pending.left);
            left.extend(places.uncovered().keys().filter(|path| pending.marks.is_fresh(path)).cloned());
            (std::mem::take(&mut pending.gone), std::mem::take(&mut pending.came), left)
        };
        let existing = places.begin(&gone, &came);
        self.place_and_mark(&(&came | &left) | &existing, rules, deadline);
    }

    /// Places watches that were not placed in time. Returns true if some are still missing.
    pub fn settle(&mut self, rules: WatchRules<'_>, deadline: Instant) -> bool {
        let left = std::mem::take(&mut self.shared.lock().left);
        if left.is_empty() {
            return false;
        }
        self.place_and_mark(left, rules, deadline);
        !self.shared.lock().left.is_empty()
    }

    fn place_and_mark(&mut self, wanted: BTreeSet<RelPath>, rules: WatchRules<'_>, deadline: Instant) {
        for path in self.place(wanted, rules, deadline) {
            // Marked only now, after the watch is in place: the caller's look after this answer finds earlier writes.
            self.shared.lock().marks.mark(path, Reach::Subtree);
        }
    }

    /// Places watches, and returns the directories that were asked for. Those that have to wait are added to `left`.
    fn place(&mut self, wanted: BTreeSet<RelPath>, rules: WatchRules<'_>, deadline: Instant) -> BTreeSet<RelPath> {
        let Some(places) = &mut self.places else { return wanted };
        let left = places.place(wanted.clone(), rules, deadline);
        let mut pending = self.shared.lock();
        if places.is_worn() {
            pending.lose(Why::ManyGone);
        } else {
            if places.uncovered().contains_key(&RelPath::root()) {
                pending.marks.lose(Why::Uncovered);
            }
            (pending.deleted, pending.patience) = (0, places.patience());
            pending.left.extend(left);
        }
        wanted
    }

    /// Joins the marked paths, those that wait for a watch, those that can have none, and those that are always dirty.
    fn changes(&self, paths: Vec<(RelPath, Reach)>, waiting: Vec<RelPath>) -> Changes {
        let Some(places) = &self.places else {
            return Changes::Everything(Why::Failed);
        };
        // An event names a directory itself only when its permissions change: then the paths below may have become
        // readable.
        let widen = |(path, reach): (RelPath, Reach)| match places.is_dir(&path) {
            true => (path, Reach::Subtree),
            false => (path, reach),
        };
        let whole = waiting.into_iter().chain(places.uncovered().keys().cloned());
        let whole = whole.map(|path| (path, Reach::Subtree));
        let always = self.always.iter().map(|path| (path.clone(), Reach::Entry));
        Changes::Paths(Dirty::new(paths.into_iter().map(widen).chain(whole).chain(always)))
    }
}

/// Makes a number that no other watcher has, in this process or any other.
fn number() -> u64 {
    let seed = (std::process::id(), crate::sys::clock::file_clock(), Instant::now());
    std::hash::RandomState::new().hash_one(seed).max(1)
}
