//! The screen of a person: its width, and texts that fit it.

use std::io::{IsTerminal, stdout};

use crate::model::text::{fitted, width};
use crate::sys::clock::{ago, now_ms};
use crate::sys::terminal;

use super::print;

/// The age from which on a time is shown by its date, in days.
const DATED: i64 = 30;

/// Separates the facts of a line.
const BETWEEN: &str = " · ";

/// Returns the columns of the screen: `COLUMNS` where it is set, else the width of the terminal; `None` where the output has no width.
pub(super) fn columns() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    set.or_else(|| if stdout().is_terminal() { terminal::columns(&stdout()) } else { None })
}

/// Returns the text of a line that fits the screen; all of it where the output has no width.
pub(super) fn line(text: &str, columns: Option<usize>) -> String {
    columns.map_or_else(|| text.to_owned(), |columns| fitted(text, columns))
}

/// Puts facts side by side in as many lines as they need, each line with an indent. A fact that is wider than the screen is cut.
pub(super) fn facts(facts: &[String], indent: usize, columns: Option<usize>) -> Vec<String> {
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(indent).max(1));
    let mut lines: Vec<String> = Vec::new();
    for fact in facts {
        match lines.last_mut() {
            Some(last) if width(last) + width(BETWEEN) + width(fact) <= room => {
                last.push_str(BETWEEN);
                last.push_str(fact);
            }
            _ => lines.push(fitted(fact, room)),
        }
    }
    lines.iter().map(|line| format!("{:indent$}{line}", "")).collect()
}

/// Returns how long ago a time was, with the time of day on the last day, and the date of an old one.
pub(super) fn age(rfc3339: &str) -> String {
    let Ok(time) = rfc3339.parse::<jiff::Timestamp>() else { return print::local_time(rfc3339) };
    let ms = time.as_millisecond();
    match (now_ms().saturating_sub(ms)).div_euclid(60_000) {
        // The clock was set back since.
        i64::MIN..-1 => print::local_time(rfc3339),
        -1..1 => "just now".to_owned(),
        minutes if minutes < 1440 => format!("{} ({})", ago(ms), local(time, "%H:%M")),
        minutes if minutes < DATED * 1440 => ago(ms),
        _ => local(time, "%Y-%m-%d"),
    }
}

/// Formats a time in the person's time zone.
fn local(time: jiff::Timestamp, format: &str) -> String {
    time.to_zoned(jiff::tz::TimeZone::system()).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::rfc3339;

    #[test]
    fn facts_fill_lines_up_to_the_width() {
        let words: Vec<String> = ["one", "two", "three is long", "日本語日本語"].map(str::to_owned).to_vec();
        let lines = |columns| facts(&words, 2, columns).join("|");
        assert_eq!(lines(None), "  one · two · three is long · 日本語日本語");
        assert_eq!(lines(Some(14)), "  one · two|  three is lo…|  日本語日本語");
        assert_eq!(
            (lines(Some(13)), lines(Some(0))),
            ("  one · two|  three is l…|  日本語日本…".to_owned(), "  …|  …|  …|  …".to_owned())
        );
    }

    #[test]
    fn an_age_is_short() {
        let at = |seconds: i64| age(&rfc3339(now_ms() - seconds * 1000));
        assert_eq!([at(-20), at(30)], ["just now", "just now"]);
        let with_time =
            [at(150), at(9000)].map(|age| age.split_once(" (").map(|(age, time)| (age.to_owned(), time.len())));
        assert_eq!(
            with_time,
            [Some(("2 min ago".to_owned(), "10:00)".len())), Some(("2 h ago".to_owned(), "10:00)".len()))]
        );
        assert_eq!(at(3 * 86400), "3 days ago");
        assert_eq!((at(40 * 86400).len(), at(-86400).len()), ("2026-10-01".len(), "2026-10-01 10:00".len()));
        assert_eq!(age("\u{1b}["), "\\u{1b}[");
    }
}
