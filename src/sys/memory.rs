//! The memory of this process.

pub use super::linux::memory::{give_back, resident};

/// The number of parts whose freeing takes as long as the start of a thread.
const FEW: u64 = 4096;

/// Frees a value on a thread of its own if it has many parts, so that the caller need not wait. If the process ends
/// first, the work is saved.
pub fn drop_beside(value: impl Send + 'static, parts: u64) {
    if parts > FEW {
        // Without a thread it is freed here.
        let _ = std::thread::Builder::new().name("drop".to_owned()).spawn(move || drop(value));
    }
}
