//! Clocks: the kernel's file-timestamp clock, and wall time as RFC 3339 text.

pub use super::linux::clock::{boot_id, file_clock, is_same_boot, since_boot_ms, since_boot_ns, wall_clock_offset};

/// Milliseconds since the epoch.
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond().saturating_add(test_offset_ms())
}

/// Returns the offset of the wall clock in tests, from `PITON_TEST_CLOCK_OFFSET` in seconds. Only in builds for
/// debugging.
fn test_offset_ms() -> i64 {
    let named = cfg!(debug_assertions).then(|| std::env::var("PITON_TEST_CLOCK_OFFSET").ok()).flatten();
    named.and_then(|text| text.parse::<i64>().ok()).map_or(0, |seconds| seconds.saturating_mul(1000))
}

/// RFC 3339 in UTC with milliseconds, as messages and the protocol carry it.
pub fn rfc3339(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string(),
        Err(_) => "1970-01-01T00:00:00.000Z".to_owned(),
    }
}

/// Returns the milliseconds since the epoch of a time that [`rfc3339`] wrote; `None` for any other text.
pub fn ms_of(rfc3339: &str) -> Option<i64> {
    rfc3339.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// Returns a time (milliseconds since the epoch) for people: in the local zone, to the minute.
pub fn local_minute(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => rfc3339(ms),
    }
}

/// Returns a time (milliseconds since the epoch) as a part of a name: in the local zone, to the second.
pub fn local_stamp(ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(ms) {
        Ok(time) => time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y%m%d-%H%M%S").to_string(),
        Err(_) => ms.to_string(),
    }
}

/// Says how long ago a time was (milliseconds since the epoch), for people.
pub fn ago(ms: i64) -> String {
    match now_ms().saturating_sub(ms) / 60_000 {
        i64::MIN..=0 => "less than a minute ago".to_owned(),
        minutes @ 1..120 => format!("{minutes} min ago"),
        minutes @ 120..2880 => format!("{} h ago", minutes / 60),
        minutes => format!("{} days ago", minutes / 1440),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_time_is_rounded_down() {
        let age = |seconds: i64| ago(now_ms() - seconds * 1000);
        assert_eq!(
            [age(-500), age(59), age(61), age(7199)].join(", "),
            "less than a minute ago, less than a minute ago, 1 min ago, 119 min ago"
        );
        assert_eq!([age(7201), age(172_700), age(172_801)].join(", "), "2 h ago, 47 h ago, 2 days ago");
    }

    #[test]
    fn times_are_utc_with_milliseconds() {
        assert_eq!(rfc3339(1_767_225_600_042), "2026-01-01T00:00:00.042Z");
        assert!(file_clock() > 1_700_000_000_000_000_000);
    }
}
