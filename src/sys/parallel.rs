//! Work on many items, on a few threads that end with it.
//!
//! The same thread does neighbouring items, because those of one directory would wait for each other. If the system has
//! no thread to give, the others do more; the calling thread does the rest.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use super::interrupt::{Flow, Interrupt};
use crate::error::Result;

/// The longest time between two checks of a calling thread that watches.
const PAUSE: Duration = Duration::from_millis(5);

/// The part of the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// It takes its share, and checks the interrupt before each of its own items.
    Works,
    /// It only checks the interrupt every few milliseconds, because a single item may take long.
    Watches,
}

/// The threads that share some work.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    /// The name of each thread, for debuggers and `ps`; Linux shows 15 bytes of it.
    pub name: &'static str,
    /// The most threads that work, including a calling thread that [`Caller::Works`].
    pub most: usize,
    /// The number of neighbouring items that the same thread does.
    pub block: usize,
    /// The part that the calling thread takes.
    pub caller: Caller,
}

/// The results of the items, in their places; `None` for an item that was not reached.
pub struct Results<R> {
    /// One place for each item; `None` where the work was stopped before it.
    pub done: Vec<Option<R>>,
    /// True if the work was stopped.
    pub stopped: bool,
}

/// Returns how many threads are worth having, at most `most`.
pub fn cores(most: usize) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(most)
}

impl Threads {
    /// The calling thread alone, which does one item after the other.
    pub const NONE: Threads = Threads { name: "", most: 1, block: 1, caller: Caller::Works };

    /// Does `work` for each number below `count`. A result for which `ends` is true ends the work early; so does
    /// `control`.
    pub fn run<R: Send>(
        &self,
        count: usize,
        work: &(dyn Fn(usize) -> R + Sync),
        ends: &(dyn Fn(&R) -> bool + Sync),
        control: Interrupt<'_>,
    ) -> Results<R> {
        let shared = SharedWork {
            count,
            block: self.block,
            work,
            ends,
            next: AtomicUsize::new(0),
            halt: AtomicBool::new(false),
            done: Mutex::default(),
            running: Mutex::new(0),
            ended: Condvar::new(),
        };
        let most = self.most.min(count.div_ceil(self.block.max(1)));
        let wanted = if self.caller == Caller::Works { most.saturating_sub(1) } else { most };
        let stopped = std::thread::scope(|scope| {
            let helpers: Vec<_> = (0..wanted).filter_map(|_| shared.spawn(scope, self.name)).collect();
            let stopped = match self.caller {
                Caller::Watches if !helpers.is_empty() => shared.watch(control),
                Caller::Works | Caller::Watches => shared.share(control),
            };
            for helper in helpers {
                // A panic of the work is raised in the calling thread, whichever thread it came from.
                helper.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            stopped
        });
        let mut done: Vec<Option<R>> = (0..count).map(|_| None).collect();
        for (index, result) in shared.done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            done[index] = Some(result);
        }
        Results { done, stopped }
    }

    /// Does `each` for each number below `count`; the first error ends it.
    ///
    /// # Errors
    /// Returns the first error of `each`.
    pub fn try_each(&self, count: usize, each: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
        let results = self.run(count, each, &Result::is_err, &|| Flow::Continue);
        results.done.into_iter().flatten().collect()
    }
}

/// The state that the threads share.
struct SharedWork<'a, R> {
    count: usize,
    block: usize,
    work: &'a (dyn Fn(usize) -> R + Sync),
    ends: &'a (dyn Fn(&R) -> bool + Sync),
    next: AtomicUsize,
    halt: AtomicBool,
    done: Mutex<Vec<(usize, R)>>,
    /// Counts the helpers at work.
    running: Mutex<usize>,
    ended: Condvar,
}

/// Counts a helper as ended, also after a panic.
struct HelperEnd<'s>(&'s Mutex<usize>, &'s Condvar);

impl Drop for HelperEnd<'_> {
    fn drop(&mut self) {
        *locked(self.0) -= 1;
        self.1.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Send> SharedWork<'_, R> {
    fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
    ) -> Option<ScopedJoinHandle<'scope, ()>> {
        *locked(&self.running) += 1;
        let helper = || {
            let _ending = HelperEnd(&self.running, &self.ended);
            self.share(&|| Flow::Continue);
        };
        let spawned = Builder::new().name(name.to_owned()).spawn_scoped(scope, helper);
        if spawned.is_err() {
            *locked(&self.running) -= 1;
        }
        spawned.ok()
    }

    /// Checks the interrupt until all helpers have ended. Returns true if the work was stopped.
    fn watch(&self, control: Interrupt<'_>) -> bool {
        let mut running = locked(&self.running);
        while *running > 0 {
            // Unlocked for the check: it may take long, and helpers need the lock to end.
            drop(running);
            if control() == Flow::Stop {
                self.halt.store(true, Ordering::Relaxed);
                return true;
            }
            running = locked(&self.running);
            if *running > 0 {
                running = self.ended.wait_timeout(running, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        false
    }

    /// Does one thread's share. Returns true if the work was stopped.
    fn share(&self, control: Interrupt<'_>) -> bool {
        let mut own = Vec::new();
        let mut stopped = false;
        while !stopped && let Some(block) = self.next_block() {
            stopped = self.do_block(block, control, &mut own);
        }
        // Once at the end, so that threads do not wait for each other at every item.
        locked(&self.done).append(&mut own);
        stopped
    }

    fn next_block(&self) -> Option<Range<usize>> {
        let start = self.next.fetch_add(self.block, Ordering::Relaxed);
        let is_there = start < self.count && !self.halt.load(Ordering::Relaxed);
        is_there.then(|| start..self.count.min(start + self.block))
    }

    fn do_block(&self, block: Range<usize>, control: Interrupt<'_>, own: &mut Vec<(usize, R)>) -> bool {
        for index in block {
            if self.halt.load(Ordering::Relaxed) {
                return false;
            }
            if control() == Flow::Stop {
                self.halt.store(true, Ordering::Relaxed);
                return true;
            }
            let result = (self.work)(index);
            if (self.ends)(&result) {
                self.halt.store(true, Ordering::Relaxed);
            }
            own.push((index, result));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use super::*;

    const FOUR: Threads = Threads { name: "test", most: 4, block: 8, caller: Caller::Works };
    const WATCHED: Threads = Threads { caller: Caller::Watches, ..FOUR };
    const GO_ON: Interrupt<'_> = &|| Flow::Continue;

    #[test]
    fn every_item_is_done_once_and_keeps_its_place() {
        for threads in [Threads::NONE, FOUR, WATCHED] {
            for count in [0, 1, 8, 33, 1000] {
                let seen = Mutex::new(Vec::new());
                let each = |item: usize| {
                    seen.lock().unwrap().push(item);
                    item * 2
                };
                let Results { done, stopped } = threads.run(count, &each, &|_| false, GO_ON);
                assert!(!stopped);
                assert_eq!(done, (0..count).map(|item| Some(item * 2)).collect::<Vec<_>>());
                let mut seen = seen.into_inner().unwrap();
                seen.sort_unstable();
                assert_eq!(seen, (0..count).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn whoever_is_told_to_stop_tells_what_was_done() {
        for (threads, after) in [(FOUR, 0), (FOUR, 1), (FOUR, 20), (FOUR, 100), (WATCHED, 0), (WATCHED, 1)] {
            let (seen, asked) = (Mutex::new(BTreeSet::new()), Cell::new(0));
            let control = || if asked.replace(asked.get() + 1) >= after { Flow::Stop } else { Flow::Continue };
            let each = |item| seen.lock().unwrap().insert(item);
            let Results { done, stopped } = threads.run(1000, &each, &|_| false, &control);
            // Not so if the other threads finished everything first.
            assert!(stopped || done.iter().all(Option::is_some), "after {after}");
            let told: BTreeSet<usize> = (0..1000).filter(|item| done[*item].is_some()).collect();
            assert_eq!(told, seen.into_inner().unwrap());
        }
    }

    #[test]
    fn a_long_item_does_not_keep_the_calling_thread_from_asking() {
        let asked = Cell::new(0);
        let control = || {
            asked.set(asked.get() + 1);
            Flow::Continue
        };
        let long = |_| std::thread::sleep(Duration::from_millis(100));
        assert!(!WATCHED.run(1, &long, &|()| false, &control).stopped);
        assert!(asked.get() >= 3, "{}", asked.get());
    }

    #[test]
    fn a_result_that_ends_the_work_leaves_the_rest() {
        for threads in [FOUR, WATCHED] {
            let Results { done, stopped } = threads.run(100_000, &|item| item, &|item| *item == 40, GO_ON);
            assert!(!stopped && done[40] == Some(40));
        }
        let Results { done, .. } = Threads::NONE.run(32, &|item| item, &|item| *item == 4, GO_ON);
        assert_eq!(done.iter().flatten().count(), 5, "one thread does nothing after it");
        let refused =
            |item| if item == 7 { Err(crate::error::Error::new(crate::error::Code::Internal, "7")) } else { Ok(()) };
        assert!(FOUR.try_each(100, &refused).is_err() && FOUR.try_each(5, &refused).is_ok());
    }
}
