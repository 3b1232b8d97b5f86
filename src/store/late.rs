//! Records of a log that are synced a moment after they were appended.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// The time after which a record that was appended unsynced is made durable.
const LATE: Duration = Duration::from_millis(90);

/// The records of a log that a thread of its own syncs.
#[derive(Default)]
pub(super) struct LateSync {
    /// True if a record is not durable.
    is_due: AtomicBool,
    /// True while a thread waits before it syncs.
    is_waiting: AtomicBool,
    /// Locked during a sync.
    at_work: Mutex<()>,
}

impl LateSync {
    /// Syncs the file, after a sync that is at work.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        let _at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        self.sync_alone(file)
    }

    /// Syncs the file if a record is not durable. A sync that is at work has ended then.
    pub(super) fn sync_if_due(&self, file: &File) -> io::Result<()> {
        let _at_work = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_due.load(Ordering::SeqCst) { self.sync_alone(file) } else { Ok(()) }
    }

    fn sync_alone(&self, file: &File) -> io::Result<()> {
        // Before the sync: a record that comes meanwhile is not part of it.
        self.is_due.store(false, Ordering::SeqCst);
        file.sync_data().inspect_err(|_| self.is_due.store(true, Ordering::SeqCst))
    }

    /// Has the file synced after [`LATE`]. All records that come by then share one sync.
    pub(super) fn sync_soon(self: &Arc<LateSync>, file: &File, path: &Path) -> io::Result<()> {
        self.is_due.store(true, Ordering::SeqCst);
        if self.is_waiting.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        let (late, path) = (Arc::clone(self), path.to_owned());
        let begun = file.try_clone().and_then(|file| {
            Builder::new().name("sync".to_owned()).spawn(move || {
                std::thread::sleep(LATE);
                late.sync_now(&file, &path);
            })
        });
        // Without a thread the caller waits for the disk.
        begun.map(drop).or_else(|_| {
            self.is_waiting.store(false, Ordering::SeqCst);
            self.sync(file)
        })
    }

    /// Syncs the file, unless another sync has included it.
    fn sync_now(&self, file: &File, path: &Path) {
        // In this order: a record that comes from here on begins another wait.
        self.is_waiting.store(false, Ordering::SeqCst);
        if let Err(error) = self.sync_if_due(file) {
            tracing::error!(%error, path = %path.display(), "the newest steps are not synced to disk yet");
        }
    }
}
