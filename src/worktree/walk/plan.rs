//! The directories of files that were captured before, read ahead of the walk.
//!
//! Each has a slot. Scouts read them in the order in which the walk comes to them. Where the walk comes to one that is being
//! read, it reads the next one meanwhile, and where that does not help it reads for itself: it never sleeps.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::listing::DirListing;
use crate::model::path::RelPath;
use crate::model::stamp::KnownPaths;

/// The number of times that the walk looks again whether a scout has finished, before it reads the directory itself: some 20 µs.
const SPINS: usize = 1_000;

/// The progress of a directory.
enum PlanSlot {
    /// No thread reads it yet.
    Waiting,
    /// A scout is reading it.
    Claimed,
    /// `None`: it could not be read ahead.
    Ready(Option<Box<DirListing>>),
    /// The walk has it, or went past it.
    Passed,
}

/// The plan; empty where nothing is known.
#[derive(Default)]
pub(super) struct ReadPlan {
    /// In the walk's order.
    dirs: Vec<RelPath>,
    slots: Vec<Mutex<PlanSlot>>,
    /// The next unclaimed one.
    next: AtomicUsize,
    /// Directories before it are passed.
    passed: AtomicUsize,
    /// Names in what is ready.
    names: AtomicUsize,
}

/// Byte order of what lies in two directories.
fn walk_order(a: &RelPath, b: &RelPath) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let both = a.len().min(b.len());
    a[..both].cmp(&b[..both]).then_with(|| match (a.get(both), b.get(both)) {
        (None, None) => Ordering::Equal,
        (None, Some(next)) => b'/'.cmp(next).then(Ordering::Less),
        (Some(next), None) => next.cmp(&b'/').then(Ordering::Greater),
        (Some(a), Some(b)) => a.cmp(b),
    })
}

/// Returns the directories in which `known` has files, in the order of the walk; the root is none of them.
pub(crate) fn dirs_of(known: &KnownPaths) -> Vec<RelPath> {
    let mut dirs: Vec<RelPath> = Vec::new();
    let mut last: &[u8] = b"";
    for (path, _) in known.entries() {
        let path = path.as_bytes();
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        if path[..end] != *last {
            last = &path[..end];
            // The root's own files come between.
            dirs.extend(RelPath::parse(last).ok().filter(|dir| !dir.is_root()));
        }
    }
    dirs.sort_unstable_by(walk_order);
    dirs.dedup();
    dirs
}

impl ReadPlan {
    /// Directories as [`dirs_of`] gives them.
    pub(super) fn of(dirs: Vec<RelPath>) -> ReadPlan {
        let slots = dirs.iter().map(|_| Mutex::new(PlanSlot::Waiting)).collect();
        ReadPlan { dirs, slots, ..ReadPlan::default() }
    }

    /// Returns where a directory stands in the plan.
    pub(super) fn find(&self, path: &RelPath) -> Option<usize> {
        self.dirs.binary_search_by(|planned| walk_order(planned, path)).ok()
    }

    /// Names in what waits for the walk.
    pub(super) fn names(&self) -> usize {
        self.names.load(SeqCst)
    }

    /// Tells whether some directory is unclaimed.
    pub(super) fn is_open(&self) -> bool {
        self.next.load(SeqCst).max(self.passed.load(SeqCst)) < self.dirs.len()
    }

    /// Returns a directory for the caller to read, and to [`ReadPlan::publish`].
    pub(super) fn claim(&self) -> Option<(usize, &RelPath)> {
        loop {
            self.next.fetch_max(self.passed.load(SeqCst), SeqCst);
            let at = self.next.fetch_add(1, SeqCst);
            if at >= self.dirs.len() {
                // No counter runs away, however often it is asked.
                self.next.store(self.dirs.len(), SeqCst);
                return None;
            }
            let mut slot = self.slot(at);
            if matches!(*slot, PlanSlot::Waiting) {
                *slot = PlanSlot::Claimed;
                return Some((at, &self.dirs[at]));
            }
        }
    }

    /// Puts down what was read of a claimed directory.
    pub(super) fn publish(&self, at: usize, listing: Option<DirListing>) {
        let mut slot = self.slot(at);
        if matches!(*slot, PlanSlot::Claimed) {
            self.names.fetch_add(names_of(listing.as_ref()), SeqCst);
            *slot = PlanSlot::Ready(listing.map(Box::new));
        }
    }

    /// Takes the listing of directory `at`, at which the walk has arrived. `help` reads another one meanwhile, and says
    /// whether it did.
    pub(super) fn take(&self, at: usize, help: &mut dyn FnMut() -> bool) -> Option<DirListing> {
        for passed in self.passed.load(SeqCst)..at {
            self.pass(passed);
        }
        self.passed.store(at + 1, SeqCst);
        let mut spins = 0;
        while matches!(*self.slot(at), PlanSlot::Claimed) && spins < SPINS {
            if !help() {
                spins += 1;
                std::hint::spin_loop();
            }
        }
        self.pass(at)
    }

    fn pass(&self, at: usize) -> Option<DirListing> {
        match std::mem::replace(&mut *self.slot(at), PlanSlot::Passed) {
            PlanSlot::Ready(listing) => {
                let listing = listing.map(|listing| *listing);
                self.names.fetch_sub(names_of(listing.as_ref()), SeqCst);
                listing
            }
            PlanSlot::Waiting | PlanSlot::Claimed | PlanSlot::Passed => None,
        }
    }

    fn slot(&self, at: usize) -> MutexGuard<'_, PlanSlot> {
        self.slots[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names_of(listing: Option<&DirListing>) -> usize {
    listing.map_or(0, |listing| listing.names.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectId;
    use crate::model::stamp::{KnownFile, Stamp};

    fn plan(paths: &[&str]) -> ReadPlan {
        let stamp = Stamp { size: 0, mtime: 0, ctime: 0, dev: 0, ino: 0, mode: 0, links: 1 };
        let known = KnownFile { stamp, id: ObjectId::from_bytes([0; 20]), proven: true, private: false };
        let entry = |path: &&str| (RelPath::parse(path.as_bytes()).unwrap(), known);
        ReadPlan::of(dirs_of(&KnownPaths::new(paths.iter().map(entry).collect())))
    }

    fn dirs(plan: &ReadPlan) -> Vec<String> {
        plan.dirs.iter().map(|dir| dir.display().clone()).collect()
    }

    #[test]
    fn directories_stand_in_the_order_of_the_walk() {
        let plan = plan(&["a/b/c", "a/z", "a.d/x", "top", "a/b-/q", "b"]);
        assert_eq!(dirs(&plan), ["a.d", "a", "a/b-", "a/b"]);
        for (at, dir) in plan.dirs.iter().enumerate() {
            assert_eq!(plan.find(dir), Some(at));
        }
        assert_eq!(plan.find(&RelPath::root()), None);
    }

    #[test]
    fn what_is_passed_is_neither_claimed_nor_kept() {
        let plan = plan(&["a/x", "b/x", "c/x", "d/x"]);
        let (first, _) = plan.claim().unwrap();
        assert_eq!(first, 0);
        // The walk never came to `a`, and comes to `b` before a scout has begun with it.
        assert!(plan.take(1, &mut || panic!("nothing to wait for")).is_none());
        plan.publish(first, None);
        assert_eq!(plan.names(), 0);
        assert_eq!(plan.claim().map(|(at, _)| at), Some(2));
        let mut helped = 0;
        let listing = plan.take(2, &mut || {
            helped += 1;
            if helped == 3 {
                plan.publish(2, None);
            }
            helped < 3
        });
        assert!(listing.is_none() && helped == 3);
        assert_eq!(plan.claim().map(|(at, _)| at), Some(3));
        assert!(plan.claim().is_none() && plan.claim().is_none());
        // No scout publishes: the walk reads the directory itself.
        assert!(plan.take(3, &mut || false).is_none());
    }
}
