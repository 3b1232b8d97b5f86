//! The signal that something has changed, for those who wait for changes.

use std::fmt;
use std::sync::Arc;

/// A function that is called, on a thread of the watcher's, when something may have changed since the last sync.
///
/// It has to be quick, and must not call the watcher.
#[derive(Clone)]
pub struct ChangeSignal(Arc<dyn Fn() + Send + Sync>);

impl ChangeSignal {
    /// Makes a signal of a function.
    pub fn new(call: impl Fn() + Send + Sync + 'static) -> ChangeSignal {
        ChangeSignal(Arc::new(call))
    }

    /// Calls the function.
    pub fn give(&self) {
        (self.0)();
    }
}

impl fmt::Debug for ChangeSignal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ChangeSignal")
    }
}
