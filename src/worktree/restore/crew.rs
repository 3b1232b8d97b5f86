//! Work on many files, on several threads.
//!
//! The calling thread takes its share, and asks before each of its own items whether to go on. Few items are done by it
//! alone, one by one in their order. Neighbours are done by the same thread, because those of one directory would wait
//! for each other.

use std::ops::ControlFlow;
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
    control: &dyn Fn() -> ControlFlow<()>,
) -> Work<R> {
    let shared =
        Shared { items, work, ends, next: AtomicUsize::new(0), halt: AtomicBool::new(false), done: Mutex::default() };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_WORKERS);
    let helpers = if items.len() <= FEW { 0 } else { workers - 1 };
    let stopped = std::thread::scope(|scope| {
        for _ in 0..helpers {
            let thread = Builder::new().name("restore".to_owned());
            // A system that has no thread to give leaves more to the others.
            let _ = thread.spawn_scoped(scope, || shared.share(&|| ControlFlow::Continue(())));
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
    fn share(&self, control: &dyn Fn() -> ControlFlow<()>) -> bool {
        let mut own = Vec::new();
        let stopped = self.blocks(control, &mut own);
        self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).append(&mut own);
        stopped
    }

    fn blocks(&self, control: &dyn Fn() -> ControlFlow<()>, own: &mut Vec<(usize, R)>) -> bool {
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
                if control().is_break() {
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
