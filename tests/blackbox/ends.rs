//! A flag for threads that go on until a test is over, however it ends: a failed assertion must not leave them running.

use std::sync::atomic::{AtomicBool, Ordering};

/// Raises the flag when it is dropped.
pub(super) struct Ends<'f>(pub &'f AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
