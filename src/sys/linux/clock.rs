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

/// Returns the wall clock minus the time since boot, in nanoseconds. It changes only when the wall clock is set.
pub fn wall_clock_offset() -> i64 {
    let boot = since_boot_ns();
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec).saturating_sub(boot)
}

/// The beginning of a boot id that was made from the clocks.
const BY_CLOCKS: &str = "clock:";

/// The seconds by which the clocks of one boot may differ in the moment of its start: the wall clock is adjusted in small steps.
const CLOCK_SLACK: i64 = 5;

/// Returns the id of this start of the machine. It is the kernel's, or, where that cannot be read, one made from the clocks. Compare
/// two of them with [`is_same_boot`]: those from the clocks differ each time.
pub fn boot_id() -> String {
    let kernels = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    match kernels.trim() {
        "" => {
            let since = since_boot_ms() / 1000;
            format!("{BY_CLOCKS}{since}:{}", (file_clock() / 1_000_000_000).saturating_sub(since))
        }
        id => id.to_owned(),
    }
}

/// Returns true if two ids of [`boot_id`] are of one start of the machine. `None` where that cannot be decided: one is empty, or only
/// one is from the clocks, or the wall clock may have been set in between. The first eight digits of the kernel's id are enough.
pub fn is_same_boot(known: &str, now: &str) -> Option<bool> {
    let by_clocks = |id: &str| -> Option<(i64, i64)> {
        let (since, start) = id.strip_prefix(BY_CLOCKS)?.split_once(':')?;
        Some((since.parse().ok()?, start.parse().ok()?))
    };
    match (by_clocks(known), by_clocks(now)) {
        // The time since the start of the machine only grows.
        (Some((earlier, _)), Some((later, _))) if earlier > later => Some(false),
        (Some((_, start)), Some((_, other))) => (start.abs_diff(other) <= CLOCK_SLACK.unsigned_abs()).then_some(true),
        (None, None) if known.is_empty() || now.is_empty() => None,
        (None, None) if known.len().min(now.len()) >= 8 => Some(known.starts_with(now) || now.starts_with(known)),
        (None, None) => Some(known == now),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_are_of_one_boot_or_of_two_or_that_is_unknown() {
        let (one, other) = ("3c1f8a52-0000-4000-8000-000000000001", "9e07b3d1-0000-4000-8000-000000000002");
        for (known, now, expected, why) in [
            (one, one, Some(true), "the kernel's id"),
            (one, other, Some(false), "another id of the kernel"),
            ("3c1f8a52", one, Some(true), "a shortened id"),
            ("9e07b3d1", one, Some(false), "another shortened id"),
            ("", one, None, "none was known"),
            ("", "", None, "none is known"),
            ("clock:100:5000", "clock:700:5001", Some(true), "the clocks agree"),
            ("clock:100:5000", "clock:700:9000", None, "another start, or the wall clock was set"),
            ("clock:700:5000", "clock:100:5002", Some(false), "less time has passed since the start"),
            ("clock:100:5000", one, None, "the kernel's id could not be read then"),
            (one, "clock:100:5000", None, "it cannot be read now"),
        ] {
            assert_eq!(is_same_boot(known, now), expected, "{why}");
        }
        assert_eq!(is_same_boot(&boot_id(), &boot_id()), Some(true));
    }
}
