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

/// A span of time that a person named, by its first and its last millisecond since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedTime {
    /// The first millisecond.
    pub from: i64,
    /// The last millisecond.
    pub until: i64,
}

impl NamedTime {
    /// Parses `yesterday`, a date, a date with a time in the local zone, RFC 3339, or how long ago it was (`10m`, `3 days`). A time of
    /// the day (`13:20`) is yesterday's if it is still to come today. A minute, a second and a day are spans. `None` for any other text.
    pub fn parse(text: &str, now_ms: i64) -> Option<NamedTime> {
        let zone = jiff::tz::TimeZone::system();
        let now = jiff::Timestamp::from_millisecond(now_ms).ok()?.to_zoned(zone.clone());
        let day = jiff::Span::new().days(1);
        let has_digit = text.starts_with(|c: char| c.is_ascii_digit());
        let (is_date, is_time) = (has_digit && text.contains('-'), has_digit && text.contains(':'));
        let (from, length) = if text == "yesterday" {
            (now.date().yesterday().ok()?.at(0, 0, 0, 0), day)
        } else if let Some(time) = (is_time && !is_date).then(|| text.parse::<jiff::civil::Time>().ok()).flatten() {
            let date = if time > now.time() { now.date().yesterday().ok()? } else { now.date() };
            (date.to_datetime(time), unit_of(text))
        } else if let Some(ms) = ms_of(text) {
            return Some(NamedTime { from: ms, until: ms });
        } else if let Some(date) = is_date.then(|| text.parse::<jiff::civil::DateTime>().ok()).flatten() {
            (date, if is_time { unit_of(text) } else { day })
        } else if has_digit {
            let span: jiff::Span = text.strip_suffix("ago").unwrap_or(text).trim_end().parse().ok()?;
            let ago = now.checked_sub(span).ok().filter(|ago| *ago < now)?.timestamp().as_millisecond();
            return Some(NamedTime { from: ago, until: ago });
        } else {
            return None;
        };
        let until = from.checked_add(length).ok()?.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond();
        Some(NamedTime { from: from.to_zoned(zone).ok()?.timestamp().as_millisecond(), until: until.saturating_sub(1) })
    }
}

/// Returns the length of the smallest unit of a time that is written with colons.
fn unit_of(time: &str) -> jiff::Span {
    match time.matches(':').count() {
        1 => jiff::Span::new().minutes(1),
        _ if time.contains('.') => jiff::Span::new().milliseconds(1),
        _ => jiff::Span::new().seconds(1),
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
    fn times_that_people_name() {
        let local = |text: &str| {
            let time: jiff::civil::DateTime = text.parse().unwrap();
            time.to_zoned(jiff::tz::TimeZone::system()).unwrap().timestamp().as_millisecond()
        };
        let now = local("2026-03-10T13:30:00");
        let table = [
            ("13:20", "2026-03-10T13:20:00", "2026-03-10T13:21:00"),
            ("13:20:05", "2026-03-10T13:20:05", "2026-03-10T13:20:06"),
            ("13:31", "2026-03-09T13:31:00", "2026-03-09T13:32:00"),
            ("yesterday", "2026-03-09T00:00:00", "2026-03-10T00:00:00"),
            ("2026-03-01", "2026-03-01T00:00:00", "2026-03-02T00:00:00"),
            ("2026-03-01 07:08", "2026-03-01T07:08:00", "2026-03-01T07:09:00"),
            ("2026-03-01T07:08:09", "2026-03-01T07:08:09", "2026-03-01T07:08:10"),
        ];
        for (text, from, until) in table {
            let expected = NamedTime { from: local(from), until: local(until) - 1 };
            assert_eq!(NamedTime::parse(text, now), Some(expected), "{text}");
        }
        for (text, minutes) in [("10m", 10), ("2h", 120), ("3 days", 4320), ("1h30m", 90), ("5 minutes ago", 5)] {
            let ago = now - minutes * 60_000;
            assert_eq!(NamedTime::parse(text, now), Some(NamedTime { from: ago, until: ago }), "{text}");
        }
        for text in [
            "",
            "now",
            "12",
            "12.1",
            "1234567",
            "-5m",
            "0m",
            "P1D",
            "25:00",
            "13:20:src",
            "2026-13-01",
            "10 apples",
            "m10",
        ] {
            assert_eq!(NamedTime::parse(text, now), None, "{text}");
        }
    }

    #[test]
    fn times_are_utc_with_milliseconds() {
        assert_eq!(rfc3339(1_767_225_600_042), "2026-01-01T00:00:00.042Z");
        assert!(file_clock() > 1_700_000_000_000_000_000);
    }
}
