//! The jobs that wait for the worker of a workspace, in bounded memory.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::job::Job;
use super::protect::{Pressing, Wanted};
use super::saves::{Saver, Saves};
use crate::model::policy::Policy;

/// The most jobs that may wait.
const ROOM: usize = 256;

/// The time for which a base capture waits for an action whose checkpoint serves as well, where nothing has to be scanned for it.
const BASE_WAIT: Duration = Duration::from_millis(20);

/// A thing that waits for the worker.
pub(super) enum Item {
    /// A job of a session that is no checkpoint of an action.
    Do(Job),
    /// The note of an action: the workspace is watched first, if that is possible in time.
    Note(Job),
    /// A checkpoint that somebody waits for.
    Capture(Box<Wanted>),
    /// A policy that was read anew.
    Policy(Box<Policy>),
    /// Ask the watcher ahead of an action that is being judged.
    SyncAhead,
}

/// The next thing that the worker does.
pub(super) enum Next {
    /// The first thing that waits.
    Item(Item),
    /// The captures that sessions begin with.
    Bases(Vec<Wanted>),
    /// The changes since the last save are to be saved.
    Save,
    /// Nothing came by the time of the next idle task.
    Idle,
    /// The worker was dropped: nothing comes any more.
    Closed,
}

/// The queue of one worker.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Woken by whatever comes, and by the end.
    changed: Condvar,
    /// The number of waiting captures, which can be read without the lock.
    captures: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// The things that wait, in the order in which they came.
    items: VecDeque<Item>,
    /// Captures that sessions begin with. They give way to those of actions, and no job overtakes them.
    bases: Vec<Wanted>,
    /// The time at which the oldest of `bases` came.
    since: Option<Instant>,
    /// True from the moment at which something was taken out until the worker asks again.
    is_at_work: bool,
    /// True once the worker was dropped.
    is_closed: bool,
    /// The time until which the worker may drop checkpoints at its end; `None`: for a moment.
    rest_until: Option<Instant>,
    /// The saves that sessions want.
    saves: Saves,
}

impl State {
    /// Takes the base captures for the worker.
    fn bases(&mut self) -> Next {
        self.is_at_work = true;
        self.since = None;
        Next::Bases(std::mem::take(&mut self.bases))
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an item behind the others; gives it back when there is no room, or the queue is closed.
    pub(super) fn push(&self, item: Item) -> Result<(), Item> {
        let mut state = self.lock();
        if state.is_closed || state.items.len() >= ROOM {
            return Err(item);
        }
        self.captures.fetch_add(usize::from(matches!(item, Item::Capture(_))), Ordering::SeqCst);
        state.items.push_back(item);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Puts a base capture aside; `false` when the queue is closed. It is done before the next job, unless an action's
    /// checkpoint comes first and serves as well.
    pub(super) fn push_base(&self, base: Wanted) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        // The oldest base decides, so that further sessions do not put it off.
        state.since.get_or_insert_with(Instant::now);
        state.bases.push(base);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Waits for what is next, at most until `idle_at`. Bases wait a moment for an action where the tree is `warm`.
    pub(super) fn next(&self, idle_at: Option<Instant>, warm: bool) -> Next {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            // Bases come before a plain job, which may depend on them: the outputs of a codon are compared with the
            // files before it.
            if !state.bases.is_empty()
                && matches!(state.items.front(), Some(Item::Do(_) | Item::Note(_) | Item::Policy(_)))
            {
                return state.bases();
            }
            if let Some(item) = state.items.pop_front() {
                self.captures.fetch_sub(usize::from(matches!(item, Item::Capture(_))), Ordering::SeqCst);
                // A sync ahead is short, and an action that follows must not count the worker as busy.
                state.is_at_work = !matches!(item, Item::SyncAhead);
                return Next::Item(item);
            }
            let base_at = state.since.map(|since| if warm { since + BASE_WAIT } else { since });
            // A closed queue does not wait for an action that could serve the bases as well.
            if base_at.is_some_and(|at| at <= now || state.is_closed) {
                return state.bases();
            }
            if state.is_closed {
                return Next::Closed;
            }
            let save_at = state.saves.due();
            if base_at.is_none() && save_at.is_some_and(|at| at <= now) {
                state.is_at_work = true;
                return Next::Save;
            }
            if base_at.is_none() && idle_at.is_some_and(|at| at <= now) {
                return Next::Idle;
            }
            let until = [base_at, save_at, idle_at.filter(|_| base_at.is_none())].into_iter().flatten().min();
            state = match until {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let waited = self.changed.wait_timeout(state, until.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Adds a session that wants changes saved.
    pub(super) fn add_saver(&self, saver: Saver) {
        self.lock().saves.add(saver, Instant::now());
        self.changed.notify_one();
    }

    /// Removes such a session.
    pub(super) fn remove_saver(&self, number: u64) {
        self.lock().saves.remove(number);
    }

    /// Notes that something in the workspace may have changed.
    pub(super) fn note_change(&self) {
        if self.lock().saves.changed(Instant::now()) {
            self.changed.notify_one();
        }
    }

    /// Acts upon the saves.
    pub(super) fn with_saves<T>(&self, act: impl FnOnce(&mut Saves) -> T) -> T {
        act(&mut self.lock().saves)
    }

    /// Takes the captures at the front that one capture serves together with `first`.
    pub(super) fn joining(&self, first: &Wanted) -> Vec<Wanted> {
        let mut state = self.lock();
        let mut group = Vec::new();
        while let Some(Item::Capture(wanted)) = state.items.front() {
            if !wanted.joins(first) {
                break;
            }
            let Some(Item::Capture(wanted)) = state.items.pop_front() else { break };
            self.captures.fetch_sub(1, Ordering::SeqCst);
            group.push(*wanted);
        }
        group
    }

    /// Takes the base captures, which a checkpoint of everything has made superfluous.
    pub(super) fn take_bases(&self) -> Vec<Wanted> {
        let mut state = self.lock();
        state.since = None;
        std::mem::take(&mut state.bases)
    }

    /// Returns true if an action has waited for long.
    pub(super) fn is_pressed(&self, now: Instant) -> bool {
        // The counter spares a running scan, which asks this for every few files, the lock.
        self.captures.load(Ordering::SeqCst) > 0 && captures(&self.lock()).any(|wanted| wanted.is_pressing(now))
    }

    /// Returns what a capture of just the named paths needs, of the actions that wait for one.
    pub(super) fn pressing(&self, now: Instant) -> Vec<Pressing> {
        captures(&self.lock()).filter_map(|wanted| wanted.pressing(now)).collect()
    }

    /// Notes that the worker has done its item.
    pub(super) fn done(&self) {
        self.lock().is_at_work = false;
    }

    /// Returns true if something waits or is at work, base captures aside.
    pub(super) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.is_at_work || !state.items.is_empty()
    }

    /// Returns true if something waits for the worker, or its end does.
    pub(super) fn is_awaited(&self) -> bool {
        let state = self.lock();
        !state.items.is_empty() || !state.bases.is_empty() || state.is_closed
    }

    /// Closes the queue to new items; the waiting ones are still done. `rest_until` limits the work that could also be done by
    /// the next process.
    pub(super) fn close(&self, rest_until: Option<Instant>) {
        let mut state = self.lock();
        state.is_closed = true;
        state.rest_until = rest_until.or(state.rest_until);
        drop(state);
        self.changed.notify_one();
    }

    /// Returns the time until which the worker may drop checkpoints at its end; `None` if nobody waits for that.
    pub(super) fn rest_until(&self) -> Option<Instant> {
        self.lock().rest_until
    }
}

/// The wish of a session that changes be saved; it ends when it is dropped.
pub(super) struct SaveWish {
    queue: Arc<Queue>,
    number: u64,
}

impl SaveWish {
    /// Makes a wish to a worker's queue.
    pub(super) fn new(queue: &Arc<Queue>, saver: Saver) -> SaveWish {
        let number = saver.number;
        queue.add_saver(saver);
        SaveWish { queue: Arc::clone(queue), number }
    }
}

impl Drop for SaveWish {
    fn drop(&mut self) {
        self.queue.remove_saver(self.number);
    }
}

fn captures(state: &State) -> impl Iterator<Item = &Wanted> {
    state.items.iter().filter_map(|item| match item {
        Item::Capture(wanted) => Some(wanted.as_ref()),
        Item::Do(_) | Item::Note(_) | Item::Policy(_) | Item::SyncAhead => None,
    })
}
