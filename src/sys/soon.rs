//! Waiting for what comes at once. To be put to sleep and woken costs 10 to 100 µs (the most where a virtual processor was given
//! back); what another thread answers in less is sooner had by looking again.

use std::hint::spin_loop;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// For how long is looked before the thread goes to sleep: some three times what a thread's waking takes.
const PATIENCE: Duration = Duration::from_micros(200);

/// Looks until there is something, for a moment at most; on a single processor once, because nobody else can be at work.
pub fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    static ALONE: OnceLock<bool> = OnceLock::new();
    let found = look();
    let alone = || std::thread::available_parallelism().map_or(true, |processors| processors.get() == 1);
    if found.is_some() || *ALONE.get_or_init(alone) {
        return found;
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        (0..16).for_each(|_| spin_loop());
        if let Some(found) = look() {
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_had_and_nothing_is_waited_for_long() {
        assert_eq!(soon(|| Some(1)), Some(1));
        let mut looks = 0;
        let third = soon(|| {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        assert!(third == Some(3) || alone);
        assert_eq!(soon(|| None::<()>), None);
    }
}
