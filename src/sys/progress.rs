//! Counters of long work: the work adds to them, and one thread that draws on a terminal reads them.
//!
//! Hooks, the daemon and scripts have no terminal. Their [`Progress`] has no counters, so adding to it costs one branch.
//! Counters are relaxed atomics: a reader may see one of them a moment later than another, which only a drawing notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::interrupt::{Flow, Interrupt};

/// A stage of long work. Each stage counts from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Opens and lists what the work needs. Nothing is counted.
    #[default]
    Start,
    /// Looks for files. Counts files.
    Listing,
    /// Reads files, and stores their content. Counts files.
    Reading,
    /// Makes a checkpoint durable. Nothing is counted.
    Recording,
    /// Writes files next to their places. Counts files.
    Writing,
    /// Waits until the disk has everything. Nothing is counted.
    Syncing,
    /// Moves files to their places, and deletes others. Counts steps.
    Placing,
    /// Looks for the objects that checkpoints need. Counts objects.
    Marking,
    /// Deletes objects that no checkpoint needs. Counts objects.
    Removing,
    /// Packs objects again. Counts objects.
    Packing,
    /// Searches checkpoints for content that is to be forgotten. Counts objects.
    Searching,
    /// Reads everything to prove that content is gone. Counts objects.
    Proving,
    /// Reads objects, and compares them with their ids. Counts objects.
    Verifying,
    /// Copies the store. Counts files.
    Copying,
    /// Waits for the server that git talks to, which may ask for a password. Nothing is counted.
    Connecting,
    /// Waits for git, which counts and compresses objects. Counts objects.
    Preparing,
    /// Sends or receives objects through git. Counts objects.
    Transferring,
    /// Checks what was fetched. Counts refs.
    Judging,
}

impl Stage {
    /// All stages, each at the place of its number.
    const ALL: [Stage; 18] = [
        Stage::Start,
        Stage::Listing,
        Stage::Reading,
        Stage::Recording,
        Stage::Writing,
        Stage::Syncing,
        Stage::Placing,
        Stage::Marking,
        Stage::Removing,
        Stage::Packing,
        Stage::Searching,
        Stage::Proving,
        Stage::Verifying,
        Stage::Copying,
        Stage::Connecting,
        Stage::Preparing,
        Stage::Transferring,
        Stage::Judging,
    ];
}

/// An amount of work: files, objects or the like, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of files, objects or other items; 0 in a total means that it is not known.
    pub items: u64,
    /// Bytes of their content; 0 in a total means that they are not known.
    pub bytes: u64,
}

impl Amount {
    /// A total that is not known.
    pub const UNKNOWN: Amount = Amount { items: 0, bytes: 0 };

    /// Returns an amount of items without bytes.
    pub const fn items(items: u64) -> Amount {
        Amount { items, bytes: 0 }
    }
}

/// The state of long work at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressReading {
    /// The stage that runs.
    pub stage: Stage,
    /// The part of the stage that is done.
    pub done: Amount,
    /// All of the stage, as far as it is known.
    pub total: Amount,
}

#[derive(Debug, Default)]
struct Counters {
    stage: AtomicU8,
    items: AtomicU64,
    bytes: AtomicU64,
    all_items: AtomicU64,
    all_bytes: AtomicU64,
}

/// The sink to which long work reports. Clones share their counters.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<Arc<Counters>>);

impl Progress {
    /// A sink that drops everything.
    pub const NONE: Progress = Progress(None);

    /// Makes a sink with counters, for a reader.
    pub fn counted() -> Progress {
        Progress(Some(Arc::default()))
    }

    /// Begins a stage with a total, and counts from zero.
    pub fn begin(&self, stage: Stage, total: Amount) {
        let Some(counters) = &self.0 else { return };
        // No total is compared with the count of another stage: there is none in between.
        counters.all_items.store(0, Ordering::Relaxed);
        counters.all_bytes.store(0, Ordering::Relaxed);
        counters.items.store(0, Ordering::Relaxed);
        counters.bytes.store(0, Ordering::Relaxed);
        counters.stage.store(stage as u8, Ordering::Relaxed);
        counters.all_bytes.store(total.bytes, Ordering::Relaxed);
        counters.all_items.store(total.items, Ordering::Relaxed);
    }

    /// Counts `items` with `bytes` of content as done. Any thread may call it.
    pub fn add(&self, items: u64, bytes: u64) {
        let Some(counters) = &self.0 else { return };
        counters.items.fetch_add(items, Ordering::Relaxed);
        if bytes > 0 {
            counters.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the present state; `None` for a sink without counters.
    pub fn read(&self) -> Option<ProgressReading> {
        let counters = self.0.as_ref()?;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stage = Stage::ALL.get(usize::from(counters.stage.load(Ordering::Relaxed))).copied().unwrap_or_default();
        let total = Amount { items: of(&counters.all_items), bytes: of(&counters.all_bytes) };
        let done = Amount { items: of(&counters.items), bytes: of(&counters.bytes) };
        Some(ProgressReading { stage, done, total })
    }
}

static NO_PROGRESS: Progress = Progress::NONE;

/// The caller's side of long work: the question that may stop it, and the sink to which it reports.
#[derive(Clone, Copy)]
pub struct WorkControl<'w> {
    /// Checked again and again.
    pub interrupt: Interrupt<'w>,
    /// Counts what is done.
    pub progress: &'w Progress,
}

impl<'w> WorkControl<'w> {
    /// Returns the control of work that reports to no one.
    pub fn unwatched(interrupt: Interrupt<'w>) -> WorkControl<'w> {
        WorkControl { interrupt, progress: &NO_PROGRESS }
    }

    /// Checks the interrupt.
    pub fn flow(&self) -> Flow {
        (self.interrupt)()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_counts_from_zero_and_clones_share_the_counters() {
        let progress = Progress::counted();
        let worker = progress.clone();
        worker.begin(Stage::Reading, Amount { items: 3, bytes: 30 });
        std::thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(|| worker.add(1, 10))));
        });
        let all = Amount { items: 3, bytes: 30 };
        assert_eq!(progress.read(), Some(ProgressReading { stage: Stage::Reading, done: all, total: all }));
        worker.begin(Stage::Recording, Amount::UNKNOWN);
        let empty = ProgressReading { stage: Stage::Recording, ..ProgressReading::default() };
        assert_eq!(progress.read(), Some(empty));
    }

    #[test]
    fn each_stage_is_read_as_it_was_begun() {
        let progress = Progress::counted();
        for (number, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, number);
            progress.begin(stage, Amount::items(1));
            assert_eq!(progress.read().map(|reading| reading.stage), Some(stage));
        }
    }

    #[test]
    fn a_sink_without_counters_has_nothing_to_read() {
        let progress = Progress::default();
        progress.begin(Stage::Reading, Amount::items(1));
        progress.add(1, 1);
        assert_eq!((progress.read(), Progress::NONE.read()), (None, None));
    }
}
