//! Work on many files, on several threads.
//!
//! The calling thread takes its share, and asks before each of its own items whether to go on. Few items are done by it
//! alone, one by one in their order. Neighbours are done by the same thread, because those of one directory would wait
//! for each other.

use crate::sys::interrupt::{Flow, Interrupt};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;

/// Up to so many items are done sooner than a thread is woken.
const FEW: usize = 32;

/// Neighbours that are done by the same thread.
const BLOCK: usize = 8;

/// Most threads: beyond it a file system gains little.
const MAX_WORKERS: usize = 4;

/// What became of each item, and whether the work was told to stop. `None`: it was not come to.
pub(super) struct Work<R> {
    pub done: Vec<Option<R>>,
    pub stopped: bool,
}

/// Does `work` for every item. `control` may stop it; so does a result for which `ends` says so.
pub(super) fn work<T: Sync, R: Send>(
    items: &[T],
    work: &(dyn Fn(&T) -> R + Sync),
    ends: &(dyn Fn(&R) -> bool + Sync),
    control: Interrupt<'_>,
) -> Work<R> {
    let shared =
        Shared { items, work, ends, next: AtomicUsize::new(0), halt: AtomicBool::new(false), done: Mutex::default() };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
    let helpers = if items.len() <= FEW { 0 } else { workers - 1 };
    let stopped = std::thread::scope(|scope| {
        for _ in 0..helpers {
            let thread = Builder::new().name("restore".to_owned());
            // A system that has no thread to give leaves more to the others.
            let _ = thread.spawn_scoped(scope, || shared.share(&|| Flow::Continue));
        }
        shared.share(control)
    });
    let mut done: Vec<Option<R>> = items.iter().map(|_| None).collect();
    for (index, result) in shared.done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        done[index] = Some(result);
    }
    Work { done, stopped }
}

struct Shared<'a, T, R> {
    items: &'a [T],
    work: &'a (dyn Fn(&T) -> R + Sync),
    ends: &'a (dyn Fn(&R) -> bool + Sync),
    next: AtomicUsize,
    halt: AtomicBool,
    done: Mutex<Vec<(usize, R)>>,
}

impl<T: Sync, R: Send> Shared<'_, T, R> {
    /// One thread's share; whether it was told to stop.
    fn share(&self, control: Interrupt<'_>) -> bool {
        let mut own = Vec::new();
        let stopped = self.blocks(control, &mut own);
        self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut own);
        stopped
    }

    fn blocks(&self, control: Interrupt<'_>, own: &mut Vec<(usize, R)>) -> bool {
        loop {
            let start = self.next.fetch_add(BLOCK, Ordering::Relaxed);
            let end = self.items.len().min(start + BLOCK);
            if start >= end {
                return false;
            }
            for index in start..end {
                if self.halt.load(Ordering::Relaxed) {
                    return false;
                }
                if control() == Flow::Stop {
                    self.halt.store(true, Ordering::Relaxed);
                    return true;
                }
                let result = (self.work)(&self.items[index]);
                if (self.ends)(&result) {
                    self.halt.store(true, Ordering::Relaxed);
                }
                own.push((index, result));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;

    const GO_ON: Interrupt<'_> = &|| Flow::Continue;

    #[test]
    fn every_item_is_done_once_and_keeps_its_place() {
        for count in [0, 1, FEW, FEW + 1, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let seen = Mutex::new(Vec::new());
            let each = |item: &usize| {
                seen.lock().unwrap().push(*item);
                item * 2
            };
            let Work { done, stopped } = work(&items, &each, &|_| false, GO_ON);
            assert!(!stopped);
            assert_eq!(done, items.iter().map(|item| Some(item * 2)).collect::<Vec<_>>());
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert_eq!(seen, items);
        }
    }

    #[test]
    fn whoever_is_told_to_stop_tells_what_was_done() {
        for after in [0, 1, 20, 100] {
            let items: Vec<usize> = (0..1000).collect();
            let (seen, asked) = (Mutex::new(BTreeSet::new()), Cell::new(0));
            let control = || match asked.replace(asked.get() + 1) >= after {
                true => Flow::Stop,
                false => Flow::Continue,
            };
            let Work { done, stopped } = work(&items, &|item| seen.lock().unwrap().insert(*item), &|_| false, &control);
            // Unless the others were done with everything first.
            assert!(stopped || done.iter().all(Option::is_some), "after {after}");
            let told: BTreeSet<usize> = items.into_iter().filter(|item| done[*item].is_some()).collect();
            assert_eq!(told, seen.into_inner().unwrap());
        }
    }

    #[test]
    fn a_result_that_ends_the_work_leaves_the_rest() {
        let items: Vec<usize> = (0..100_000).collect();
        let Work { done, stopped } = work(&items, &|item| *item, &|item| *item == 40, GO_ON);
        assert!(!stopped && done[40] == Some(40));
        let few: Vec<usize> = (0..FEW).collect();
        let Work { done, .. } = work(&few, &|item| *item, &|item| *item == 4, GO_ON);
        assert_eq!(done.iter().flatten().count(), 5, "one thread does nothing after it");
    }
}
