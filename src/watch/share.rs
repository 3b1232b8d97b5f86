//! The share of the system's watchers that one process takes: the user's other programs need some too.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::limits::Limits;

/// The part of a user's watchers that one process takes, as a divisor.
const PART: u64 = 4;

/// The fewest watchers that a process may take.
const LEAST: u64 = 8;

/// The watchers of this process.
static TAKEN: AtomicU64 = AtomicU64::new(0);

/// The place of one watcher in the share. Dropped, it is free again.
#[derive(Debug)]
pub(super) struct WatcherPlace(&'static AtomicU64);

impl WatcherPlace {
    /// Takes a place. `limits` is the directory of the system's limits.
    ///
    /// # Errors
    /// Returns the number of places where all are taken.
    pub(super) fn take(limits: &Path) -> Result<WatcherPlace, u64> {
        WatcherPlace::take_of(&TAKEN, limits)
    }

    fn take_of(taken: &'static AtomicU64, limits: &Path) -> Result<WatcherPlace, u64> {
        // Where the limit cannot be read, the system itself refuses.
        let most = Limits::read(limits).instances.map_or(u64::MAX, |all| (all / PART).max(LEAST));
        let more = |before: u64| (before < most).then_some(before + 1);
        let updated = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        updated.map(|_| WatcherPlace(taken)).map_err(|_| most)
    }
}

impl Drop for WatcherPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_keep_their_watchers() {
        static OWN: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::tempdir().unwrap();
        for (all, most) in [("400", 100), ("5", LEAST)] {
            std::fs::write(dir.path().join("max_user_instances"), all).unwrap();
            let places: Vec<_> = (0..most).map(|_| WatcherPlace::take_of(&OWN, dir.path()).unwrap()).collect();
            assert_eq!(WatcherPlace::take_of(&OWN, dir.path()).unwrap_err(), most);
            drop(places);
            WatcherPlace::take_of(&OWN, dir.path()).unwrap();
        }
    }
}
