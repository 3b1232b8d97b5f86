//! The memory that this process takes of the machine.

pub use super::linux::memory::{give_back, resident};

/// Parts that are freed as fast as a thread is begun.
const FEW: u64 = 4096;

/// Frees something on a thread of its own if it has many parts: nobody waits for it, and where the process ends it need not be
/// done at all.
pub fn drop_beside(value: impl Send + 'static, parts: u64) {
    if parts > FEW {
        // Without a thread it is freed here.
        let _ = std::thread::Builder::new().name("drop".to_owned()).spawn(move || drop(value));
    }
}
