//! The threads of a restore.

use crate::sys::parallel::{Caller, Threads, cores};

/// Up to so many files are done sooner than a thread is woken.
const FEW: usize = 32;

/// Most threads: beyond it a file system gains little.
const MAX_WORKERS: usize = 4;

/// Returns the threads for so many files. Few are done by the calling thread alone, one by one in their order.
pub(super) fn threads(files: usize) -> Threads {
    if files <= FEW {
        return Threads::NONE;
    }
    Threads { name: "restore", most: cores(MAX_WORKERS), block: 8, caller: Caller::Works }
}
