//! Ctrl-C during long work: the work ends at its next safe point.
//!
//! The first SIGINT only sets a flag that the work checks. The second one ends the process at once, as one does at a question.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

use crate::sys::interrupt::Flow;
use crate::sys::process::ignored_signals;

/// The flags that the signal sets.
static FLAGS: OnceLock<StopFlags> = OnceLock::new();

#[derive(Default)]
struct StopFlags {
    /// True after the first signal.
    is_asked: Arc<AtomicBool>,
    /// True while a signal ends the process at once.
    ends_at_once: Arc<AtomicBool>,
}

/// Has SIGINT stop the work at its next safe point. Where the caller ignores SIGINT, it stays ignored.
pub(super) fn arm() {
    if ignored_signals().contains(&SIGINT) {
        return;
    }
    let flags = FLAGS.get_or_init(StopFlags::default);
    // In this order: the first signal does not see the flag that it sets.
    let armed = flag::register_conditional_default(SIGINT, Arc::clone(&flags.ends_at_once))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&flags.is_asked)))
        .and_then(|_| flag::register(SIGINT, Arc::clone(&flags.ends_at_once)));
    if let Err(error) = armed {
        tracing::warn!(%error, "Ctrl-C ends piton at once");
    }
}

/// Returns true after Ctrl-C.
pub(super) fn is_asked() -> bool {
    FLAGS.get().is_some_and(|flags| flags.is_asked.load(Ordering::Relaxed))
}

/// The interrupt of all verbs: stops after Ctrl-C.
pub(super) fn flow() -> Flow {
    if cfg!(debug_assertions) {
        stop_in_test();
    }
    if is_asked() { Flow::Stop } else { Flow::Continue }
}

/// Raises SIGINT at the check whose number is in `PITON_TEST_STOP_AT`; only builds for debugging call it, for tests.
fn stop_in_test() {
    static CHECKS: AtomicU64 = AtomicU64::new(0);
    static LAST: OnceLock<Option<u64>> = OnceLock::new();
    // A number that is none stops nothing, and the test that set it fails.
    let named = || std::env::var("PITON_TEST_STOP_AT").ok()?.parse().ok();
    let Some(last) = LAST.get_or_init(named) else { return };
    if CHECKS.fetch_add(1, Ordering::Relaxed) == *last
        && let Err(error) = signal_hook::low_level::raise(SIGINT)
    {
        tracing::error!(%error, "SIGINT could not be raised");
    }
}

/// Has Ctrl-C end the process at once, as long as it exists: nothing has begun while a question is open.
pub(super) struct OpenQuestion;

impl OpenQuestion {
    /// Opens it.
    pub(super) fn open() -> OpenQuestion {
        set_ends_at_once(true);
        OpenQuestion
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        set_ends_at_once(is_asked());
    }
}

fn set_ends_at_once(value: bool) {
    if let Some(flags) = FLAGS.get() {
        flags.ends_at_once.store(value, Ordering::Relaxed);
    }
}
