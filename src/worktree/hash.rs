//! Reading and hashing on worker threads, while the calling thread stays free for urgent work.

use super::beneath::Root;
use super::budget::Budget;
use super::read::{self, Refusal, SizeLimits, Stored};
use super::stopped::stopped;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::sys::parallel::{Caller, Threads, cores};
use crate::sys::progress::{Amount, Stage, WorkControl};

/// Most threads that read: beyond it a disk gains little.
const MAX_WORKERS: usize = 4;

/// Up to so many files of so many bytes altogether are read by the calling thread.
const FEW: usize = 32;
const LITTLE: u64 = 512 << 10;

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

/// The result of a job; never [`Refusal::Fatal`].
pub(super) struct Hashed {
    pub(super) index: usize,
    pub(super) outcome: Result<Stored, Refusal>,
}

/// Reads all `jobs`. At most one file per worker is in memory, and no more than `memory` has room for.
pub(super) fn run(
    root: &Root,
    jobs: &[Job<'_>],
    memory: u64,
    sink: &dyn ObjectSink,
    control: WorkControl<'_>,
) -> Result<Vec<Hashed>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let size = jobs.iter().map(|job| job.size).sum();
    if jobs.len() <= FEW && size <= LITTLE {
        let read_whole =
            |job: &Job<'_>| read::store(root, job.path, SizeLimits { cap: job.cap, whole: read::WHOLE }, sink);
        return on(Threads::NONE, jobs, &read_whole, control);
    }
    control.progress.begin(Stage::Reading, Amount { items: jobs.len() as u64, bytes: size });
    sink.expect(jobs.len(), size)?;
    let budget = Budget::new(memory, jobs.len());
    let read_admitted = |job: &Job<'_>| {
        let admitted = budget.admit(job.size.min(job.cap));
        let stored = read::store(root, job.path, SizeLimits { cap: job.cap, whole: admitted.whole }, sink);
        control.progress.add(1, job.size);
        stored
    };
    // A single large file takes long, so the calling thread only checks the interrupt.
    let threads = Threads { name: "capture", most: cores(MAX_WORKERS), block: 1, caller: Caller::Watches };
    on(threads, jobs, &read_admitted, control)
}

fn on(
    threads: Threads,
    jobs: &[Job<'_>],
    read: &(dyn Fn(&Job<'_>) -> Result<Stored, Refusal> + Sync),
    control: WorkControl<'_>,
) -> Result<Vec<Hashed>> {
    let is_fatal = |outcome: &Result<Stored, Refusal>| matches!(outcome, Err(Refusal::Fatal(_)));
    let results = threads.run(jobs.len(), &|at| read(&jobs[at]), &is_fatal, control.interrupt);
    let mut all = Vec::with_capacity(jobs.len());
    for (job, outcome) in jobs.iter().zip(results.done) {
        match outcome {
            Some(Err(Refusal::Fatal(error))) => return Err(error),
            Some(outcome) => all.push(Hashed { index: job.index, outcome }),
            // Missing after a fatal error or an interrupt.
            None => {}
        }
    }
    if results.stopped { Err(stopped()) } else { Ok(all) }
}
