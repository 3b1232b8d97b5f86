//! Reading and hashing on worker threads, while the calling thread stays free for urgent work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, Scope};
use std::time::Duration;

use super::beneath::Root;
use super::budget::Budget;
use super::read::{self, Refusal, Stored};
use super::stopped::unless_stopped;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::sys::interrupt::Interrupt;

/// Most threads that read: beyond it a disk gains little.
const MAX_WORKERS: usize = 4;

/// Up to so many files of so many bytes altogether are read by the calling thread.
const FEW: usize = 32;
const LITTLE: u64 = 512 << 10;

/// Results are handed over so many at a time: waking a thread costs as much as reading a small file.
const HANDFUL: usize = 64;

/// Longest time between two calls of `control`.
const PAUSE: Duration = Duration::from_millis(5);

/// One file to read.
pub(super) struct Job<'a> {
    /// The caller's number for it.
    pub(super) index: usize,
    pub(super) path: &'a RelPath,
    /// Refused as too large above this many bytes.
    pub(super) cap: u64,
    /// Bytes that it seems to have.
    pub(super) size: u64,
}

/// What became of it; never [`Refusal::Fatal`].
pub(super) struct Done {
    pub(super) index: usize,
    pub(super) outcome: Result<Stored, Refusal>,
}

/// Reads all `jobs`, in no particular order. At most one file per worker is in memory, and no more than `memory` has room
/// for.
pub(super) fn run(
    root: &Root,
    jobs: &[Job<'_>],
    memory: u64,
    sink: &dyn ObjectSink,
    control: Interrupt<'_>,
) -> Result<Vec<Done>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    if jobs.len() <= FEW && jobs.iter().map(|job| job.size).sum::<u64>() <= LITTLE {
        return one_by_one(root, jobs, sink, control);
    }
    sink.expect(jobs.len(), jobs.iter().map(|job| job.size).sum())?;
    let shared = Shared {
        root,
        jobs,
        sink,
        budget: Budget::new(memory, jobs.len()),
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, MAX_WORKERS).min(jobs.len());
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        let spawned = (0..workers).filter(|_| shared.spawn(scope, &sender)).count();
        if spawned == 0 {
            // Without threads the work is done here; `control` has to wait for it.
            shared.work(&sender);
        }
        drop(sender);
        let outcome = collect(&receiver, jobs.len(), control);
        shared.stop.store(true, Ordering::Relaxed);
        outcome
    })
}

/// Reads here and now what is done sooner than a thread is woken.
fn one_by_one(root: &Root, jobs: &[Job<'_>], sink: &dyn ObjectSink, control: Interrupt<'_>) -> Result<Vec<Done>> {
    let mut all = Vec::with_capacity(jobs.len());
    for job in jobs {
        unless_stopped(control)?;
        match read::store(root, job.path, (job.cap, read::WHOLE), sink) {
            Err(Refusal::Fatal(error)) => return Err(error),
            outcome => all.push(Done { index: job.index, outcome }),
        }
    }
    Ok(all)
}

fn collect(receiver: &Receiver<Vec<Done>>, expected: usize, control: Interrupt<'_>) -> Result<Vec<Done>> {
    let mut all = Vec::with_capacity(expected);
    loop {
        unless_stopped(control)?;
        match receiver.recv_timeout(PAUSE) {
            Ok(some) => {
                for done in some {
                    if let Err(Refusal::Fatal(error)) = done.outcome {
                        return Err(error);
                    }
                    all.push(done);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(all),
        }
    }
}

struct Shared<'a> {
    root: &'a Root,
    jobs: &'a [Job<'a>],
    sink: &'a dyn ObjectSink,
    budget: Budget,
    next: AtomicUsize,
    stop: AtomicBool,
}

impl Shared<'_> {
    /// Starts a worker; false when the system has no thread to give.
    fn spawn<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, sender: &Sender<Vec<Done>>) -> bool {
        let sender = sender.clone();
        let thread = Builder::new().name("capture".to_owned());
        thread.spawn_scoped(scope, move || self.work(&sender)).is_ok()
    }

    fn work(&self, sender: &Sender<Vec<Done>>) {
        let mut some = Vec::with_capacity(HANDFUL);
        while !self.stop.load(Ordering::Relaxed) {
            let Some(job) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) else {
                break;
            };
            let admitted = self.budget.admit(job.size.min(job.cap));
            let outcome = read::store(self.root, job.path, (job.cap, admitted.whole), self.sink);
            drop(admitted);
            let fatal = matches!(outcome, Err(Refusal::Fatal(_)));
            some.push(Done { index: job.index, outcome });
            if (fatal || some.len() == HANDFUL) && sender.send(std::mem::take(&mut some)).is_err() {
                return;
            }
        }
        // Nobody listens any more after an error or a stop.
        let _ = sender.send(some);
    }
}
