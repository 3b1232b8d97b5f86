//! Memory for content on its way from the files to the store: what does not fit waits.

use std::sync::{Condvar, Mutex, PoisonError};

use super::read::WHOLE;
use crate::sys::memory::resident;

/// Content always has so much, or nothing would move.
const LEAST: u64 = 8 << 20;

/// Memory for other things than content: the store's buffers, and objects that wait to become loose files.
const OTHERS: u64 = 24 << 20;

/// Memory that one file still takes when its content is gone: its entry, its stamp, its share of the trees.
const A_FILE: u64 = 400;

/// The growth since it was listed with which a file is still held whole.
const GROWTH: u64 = 64 << 10;

/// Memory that a streamed file takes: its buffers.
const STREAM: u64 = 2 << 20;

/// So many bytes, shared by all threads of one capture.
pub(super) struct Budget {
    /// The bytes that all files together may take.
    total: u64,
    /// The bytes that are free.
    left: Mutex<u64>,
    /// Woken when bytes come back.
    freed: Condvar,
}

/// Bytes that one file may take; dropped, others may.
pub(super) struct Admitted<'b> {
    budget: &'b Budget,
    /// The bytes that come back when it is dropped.
    bytes: u64,
    /// A file up to this size may be held whole.
    pub(super) whole: u64,
}

impl Budget {
    /// For `files` files under a limit, of which this process takes a part already.
    pub(super) fn new(limit: u64, files: usize) -> Budget {
        let taken = resident().unwrap_or(0).saturating_add(OTHERS).saturating_add(A_FILE * files as u64);
        Budget::of(limit.saturating_sub(taken).max(LEAST))
    }

    fn of(total: u64) -> Budget {
        Budget { total, left: Mutex::new(total), freed: Condvar::new() }
    }

    /// Waits until a file of `size` bytes fits. It is held twice: as it is, and as the store writes it.
    pub(super) fn admit(&self, size: u64) -> Admitted<'_> {
        let whole = WHOLE.min(self.total / 4);
        // One that grows a little meanwhile is still held whole.
        let (bytes, whole) = if size > whole { (STREAM, 0) } else { (2 * (size + GROWTH), size + GROWTH) };
        let bytes = bytes.min(self.total);
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let enough = |left: &mut u64| *left < bytes;
        let mut left = self.freed.wait_while(left, enough).unwrap_or_else(PoisonError::into_inner);
        *left -= bytes;
        Admitted { budget: self, bytes, whole }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        *self.budget.left.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn what_is_on_its_way_stays_within_the_budget_and_everything_gets_its_turn() {
        for total in [LEAST, 40 << 20, 200 << 20] {
            let budget = Budget::of(total);
            let (now, most, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
            std::thread::scope(|scope| {
                for thread in 0..8u64 {
                    let (budget, now, most, done) = (&budget, &now, &most, &done);
                    scope.spawn(move || {
                        for n in 0..200u64 {
                            let size = (thread * 7919 + n * 104_729) % (20 << 20);
                            let admitted = budget.admit(size);
                            let held = if size > admitted.whole { STREAM } else { 2 * size };
                            let sum = now.fetch_add(held, Ordering::SeqCst) + held;
                            most.fetch_max(sum, Ordering::SeqCst);
                            now.fetch_sub(held, Ordering::SeqCst);
                            drop(admitted);
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                    });
                }
            });
            assert_eq!(done.into_inner(), 1600);
            assert!(most.into_inner() <= total);
            assert_eq!(*budget.left.lock().unwrap(), total);
        }
    }

    #[test]
    fn large_files_are_streamed_and_a_process_that_takes_all_leaves_the_least() {
        for (total, size, whole) in [
            (200 << 20, 16 << 20, true),
            (200 << 20, (16 << 20) + 1, false),
            (LEAST, 2 << 20, true),
            (LEAST, (2 << 20) + 1, false),
            (LEAST, 0, true),
        ] {
            assert_eq!(Budget::of(total).admit(size).whole >= size, whole, "{size} of {total}");
        }
        assert_eq!(Budget::new(0, 1000).total, LEAST);
        assert!(Budget::new(u64::MAX, 1000).total > 1 << 60);
    }
}
