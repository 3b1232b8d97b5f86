//! The kernel's clock of file times, and the id of its boot.

use rustix::time::{ClockId, clock_gettime};

/// Returns nanoseconds since the epoch on the clock from which the kernel stamps files (`CLOCK_REALTIME_COARSE`).
pub fn file_clock() -> i64 {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Returns the milliseconds since the start of the machine, with those in which it slept.
pub fn since_boot_ms() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.saturating_mul(1000).saturating_add(now.tv_nsec / 1_000_000)
}

/// Returns the nanoseconds since the start of the machine, with those in which it slept. All processes read the same clock,
/// and nobody sets it.
pub fn since_boot_ns() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec)
}

/// Returns the kernel's boot id, which tells a file kept over a reboot from one of this boot; empty where there is
/// none.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}
