//! One thread per workspace: it owns the timeline and does one job after another.
//!
//! The inbox is bounded: a full one is told, it never grows. While a job captures, urgent jobs (the capture of just the
//! paths an action is about to destroy) are done in between, on a second handle of the same store.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::checkpoint::Timeline;
use crate::model::policy::Policy;
use crate::worktree::Flow;

/// Jobs that may wait.
const INBOX: usize = 256;

/// Where answers go, with the ticket of the job. `None`: the job died (a bug, caught so that guarding goes on).
pub type Finished<A> = Arc<dyn Fn(u64, Option<A>) + Send + Sync>;

/// What a job may ask while it works.
pub type Control<'c> = &'c dyn Fn() -> Flow;

type Work<A> = Box<dyn FnOnce(&mut Timeline, Control<'_>) -> A + Send>;
type Urgent<A> = Arc<Mutex<Vec<(u64, Work<A>)>>>;

enum Job<A> {
    Do(u64, Work<A>),
    Policy(Policy),
}

/// A worker; dropping it lets its thread end after the jobs that wait.
pub struct Worker<A: Send + 'static> {
    inbox: Option<SyncSender<Job<A>>>,
    urgent: Urgent<A>,
    stop: Arc<AtomicBool>,
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl<A: Send + 'static> Worker<A> {
    /// Starts the thread.
    pub fn start(timeline: Timeline, finished: Finished<A>) -> Worker<A> {
        let (sender, receiver) = mpsc::sync_channel(INBOX);
        let urgent: Urgent<A> = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let waiting = Arc::new(AtomicUsize::new(0));
        let mut desk = Desk {
            timeline,
            finished,
            urgent: Arc::clone(&urgent),
            stop: Arc::clone(&stop),
            waiting: Arc::clone(&waiting),
        };
        let thread = std::thread::spawn(move || desk.work(&receiver));
        Worker { inbox: Some(sender), urgent, stop, waiting, thread: Some(thread) }
    }

    /// Puts a job in the inbox; `false` when it is full.
    pub fn submit(&self, ticket: u64, work: impl FnOnce(&mut Timeline, Control<'_>) -> A + Send + 'static) -> bool {
        let Some(inbox) = &self.inbox else { return false };
        self.waiting.fetch_add(1, Ordering::SeqCst);
        match inbox.try_send(Job::Do(ticket, Box::new(work))) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                false
            }
        }
    }

    /// Has a job done in between while another one captures. It is dropped, unanswered, when none is at work.
    pub fn submit_urgent(&self, ticket: u64, work: impl FnOnce(&mut Timeline, Control<'_>) -> A + Send + 'static) {
        self.urgent.lock().unwrap_or_else(PoisonError::into_inner).push((ticket, Box::new(work)));
    }

    /// Whether jobs wait or are at work.
    pub fn is_busy(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Puts another policy in force after the jobs that wait.
    pub fn set_policy(&self, policy: Policy) {
        if let Some(inbox) = &self.inbox
            && inbox.try_send(Job::Policy(policy)).is_err()
        {
            tracing::warn!("the worker is too busy to take the new configuration");
        }
    }

    /// Has captures given up at their next look-up.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Takes no more jobs; `true` when the thread has ended.
    pub fn close(&mut self) -> bool {
        self.inbox = None;
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// The thread's side.
struct Desk<A> {
    timeline: Timeline,
    finished: Finished<A>,
    urgent: Urgent<A>,
    stop: Arc<AtomicBool>,
    waiting: Arc<AtomicUsize>,
}

impl<A: Send + 'static> Desk<A> {
    fn work(&mut self, inbox: &Receiver<Job<A>>) {
        while let Ok(job) = inbox.recv() {
            match job {
                Job::Policy(policy) => self.timeline.set_policy(policy),
                Job::Do(ticket, work) => self.one(ticket, work),
            }
        }
        self.settle();
    }

    fn one(&mut self, ticket: u64, work: Work<A>) {
        let (urgent, finished, stop) = (Arc::clone(&self.urgent), Arc::clone(&self.finished), Arc::clone(&self.stop));
        let (home, workspace) = (self.timeline.home().clone(), self.timeline.workspace().clone());
        let policy = self.timeline.policy().clone();
        let control = move || {
            let jobs = std::mem::take(&mut *urgent.lock().unwrap_or_else(PoisonError::into_inner));
            for (ticket, work) in jobs {
                let beside = Timeline::open(&home, workspace.clone(), policy.clone());
                let answer = beside.ok().map(|mut beside| work(&mut beside, &|| Flow::Continue));
                finished(ticket, answer);
            }
            if stop.load(Ordering::SeqCst) { Flow::Stop } else { Flow::Continue }
        };
        let timeline = &mut self.timeline;
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(timeline, &control)));
        // Urgent jobs that came too late to be done in between are the ordinary job's business.
        self.urgent.lock().unwrap_or_else(PoisonError::into_inner).clear();
        (self.finished)(ticket, caught.ok());
        if self.waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.settle();
        }
    }

    fn settle(&mut self) {
        if let Err(error) = self.timeline.settle() {
            tracing::warn!(%error, "stamps or retention could not be written");
        }
    }
}
