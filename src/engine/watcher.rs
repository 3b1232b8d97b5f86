//! The watcher of one workspace's timeline. It is started in idle time and shown in `status`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::checkpoint::Timeline;
use crate::model::change::{Admits, ChangeSource, Changes, Clock, Why};
use crate::model::path::RelPath;
use crate::watch::{ChangeSignal, Options, Refusal, Uncovered, Watcher};

/// The longest wait of a sync; after it, everything is scanned.
const PATIENCE: Duration = Duration::from_millis(250);

/// The time for which watches may be placed at once, so that an event can come in between. The rest counts as changed
/// until it is watched.
const SLICE: Duration = Duration::from_millis(30);

/// The most directories without a watch that are listed.
const MAX_LISTED: usize = 20;

/// The state of the watcher, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatcherStatus {
    /// True if the next checkpoint looks only at what changed.
    pub warm: bool,
    /// The reason why there is no watcher, if one was wanted.
    pub refused: Option<String>,
    /// Watched directories.
    pub watches: usize,
    /// Directories without a watch, which are scanned each time: the first of them, with their reasons.
    pub unwatched: Vec<(RelPath, String)>,
    /// The number of all of them.
    pub unwatched_count: usize,
    /// Events that the kernel has reported since the watcher started.
    pub events: u64,
    /// The number of overflows of the kernel's queue, after each of which everything was scanned.
    pub overflows: u64,
    /// The reason why it does not cover all that it should, as long as that is so.
    pub degraded: Option<String>,
    /// The number of times that this has begun.
    pub degradations: u64,
    /// The reason of the last time.
    pub last_degradation: Option<String>,
    /// Audits in idle time since the workspace was opened.
    pub audits: u64,
    /// Paths of which an audit found a change that no event had told of.
    pub divergences: u64,
    /// The number of paths whose changes may give no event: they are looked at each time.
    pub unreported: usize,
    /// The task that could not be done in idle time, and is tried again.
    pub fault: Option<String>,
}

/// The news of a watcher that a session was told.
#[derive(Default)]
pub(super) struct WatcherNews {
    /// The number of times that the watcher was degraded by then; `None` before the first look.
    told: Option<u64>,
}

impl WatcherNews {
    /// Returns the reason why the watcher is degraded, if that is news: once each time. Of times before the session, only one that
    /// lasts is news.
    pub(super) fn next(&mut self, status: WatcherStatus) -> Option<String> {
        let is_news = match self.told.replace(status.degradations) {
            Some(told) => told != status.degradations,
            None => status.degraded.is_some(),
        };
        status.last_degradation.filter(|_| is_news)
    }
}

/// The state that a worker writes and `status` reads.
pub type SharedStatus = Arc<Mutex<WatcherStatus>>;

/// Returns a copy of the status.
pub fn snapshot(shared: &SharedStatus) -> WatcherStatus {
    shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Changes the status.
pub fn note(shared: &SharedStatus, change: impl FnOnce(&mut WatcherStatus)) {
    change(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
}

impl WatcherStatus {
    /// Notes whether the watcher covers what it should, and why not.
    fn degrade(&mut self, reason: Option<String>) {
        if reason == self.degraded {
            return;
        }
        if let Some(reason) = &reason {
            self.degradations += u64::from(self.degraded.is_none());
            self.last_degradation = Some(reason.clone());
        }
        self.degraded = reason;
    }
}

/// Says which part of a workspace is not watched for want of watches.
fn shortage(root: &Path, count: usize) -> Option<String> {
    let many = if count == 1 { "1 directory".to_owned() } else { format!("{count} directories") };
    (count > 0).then(|| {
        format!(
            "no watches are left for {many} of {}; piton scans these each time; to watch them, raise fs.inotify.max_user_watches",
            root.display()
        )
    })
}

/// Says that a watcher has lost its sight for a while, where an answer tells so; everything is checked then.
fn blindness(root: &Path, changes: &Changes) -> Option<String> {
    match changes {
        Changes::Everything(why @ (Why::Mounts | Why::RootMoved | Why::Uncovered | Why::NoCookie | Why::Failed)) => {
            Some(format!(
                "changes in {} were not watched for a while ({why}), so piton scans everything",
                root.display()
            ))
        }
        Changes::Everything(_) | Changes::Paths(_) => None,
    }
}

/// Starts watching a workspace whose tree is warm. `signal` is given for each change from then on.
///
/// # Errors
/// Returns why it is not watched; every checkpoint scans then.
pub fn start(timeline: &Timeline, shared: &SharedStatus, signal: ChangeSignal) -> Result<WatcherSource, Refusal> {
    let workspace = timeline.workspace();
    let cookies = workspace.dir.join("cookies");
    let options = Options { start_within: SLICE, signal: Some(signal), ..Options::new(cookies) };
    let rules = |dir: &RelPath| timeline.admits(dir);
    let watcher = Watcher::start(Path::new(&workspace.path), &rules, options)?;
    let root = workspace.path.clone();
    let mut source =
        WatcherSource { watcher, root, is_known: false, clock: Clock::default(), shared: Arc::clone(shared) };
    source.tell(None);
    Ok(source)
}

/// A watcher and the clock of its last answer.
pub struct WatcherSource {
    watcher: Watcher,
    /// The root of the workspace.
    root: PathBuf,
    /// True once an answer has told paths: from then on it can lose its sight.
    is_known: bool,
    /// The moment up to which changes were asked for.
    clock: Clock,
    /// The status that sessions and `piton status` read.
    shared: SharedStatus,
}

impl WatcherStatus {
    /// Returns true if every change in the workspace gives an event.
    pub fn covers_all(&self) -> bool {
        self.warm && self.unwatched_count == 0 && self.unreported == 0
    }
}

impl WatcherSource {
    /// Tells the state. `blind` is the reason why changes were not seen for a while.
    fn tell(&mut self, blind: Option<String>) {
        let stats = self.watcher.stats();
        let short = stats.uncovered.iter().filter(|(_, why)| *why == Uncovered::Limit).count();
        let degraded = blind.filter(|_| self.is_known).or_else(|| shortage(&self.root, short));
        note(&self.shared, |status| {
            (status.watches, status.events, status.overflows) = (stats.watches, stats.events, stats.overflows);
            status.unwatched_count = stats.uncovered.len();
            let listed = stats.uncovered.into_iter().take(MAX_LISTED);
            status.unwatched = listed.map(|(path, why)| (path, why.to_string())).collect();
            status.degrade(degraded);
        });
    }
}

impl WatcherSource {
    fn is_degraded(&self) -> bool {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).degraded.is_some()
    }
}

impl ChangeSource for WatcherSource {
    fn sync(&mut self, admits: Admits<'_>) -> Changes {
        let (clock, changes) = self.watcher.sync(self.clock, admits, Instant::now() + PATIENCE);
        self.clock = clock;
        let blind = blindness(&self.root, &changes);
        if blind.is_some() || self.is_degraded() {
            self.tell(blind);
        }
        self.is_known |= matches!(changes, Changes::Paths(_));
        changes
    }

    fn watch(&mut self, dir: &RelPath, admits: Admits<'_>) {
        self.watcher.rewatch(dir, admits, Instant::now() + SLICE);
        self.tell(None);
    }

    fn place_watches(&mut self, admits: Admits<'_>) -> bool {
        let is_left = self.watcher.settle(admits, Instant::now() + SLICE);
        self.tell(None);
        is_left
    }

    fn always_report(&mut self, paths: &BTreeSet<RelPath>) {
        self.watcher.set_always_dirty(paths.iter().cloned());
        note(&self.shared, |status| status.unreported = paths.len());
    }

    fn is_unwatched(&self, dir: &RelPath) -> bool {
        self.watcher.is_uncovered(dir)
    }
}

#[cfg(test)]
mod tests;
