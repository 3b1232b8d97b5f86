//! Mishaps of hooks and workers, which have no person to tell: they are written down, and `piton status` shows them.

use std::collections::VecDeque;
use std::io::Write;

use super::home::Home;
use crate::error::{IoContext, Result};
use crate::model::redact::redact;
use crate::model::text::{cut, printable};
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::fs::durable::{append_private, replace_cache};

/// The size from which on the file is cut to its newest entries.
const MAX_BYTES: u64 = 64 << 10;

/// The number of entries that are kept then, and the most that are shown.
const KEPT: usize = 50;

/// The longest entry, in characters.
const MAX_TEXT: usize = 500;

/// Writes one sentence down, with the time.
///
/// # Errors
/// `disk-full`, `permission`.
pub fn note(home: &Home, text: &str) -> Result<()> {
    let path = home.path().join("mishaps");
    if path.metadata().is_ok_and(|facts| facts.len() > MAX_BYTES) {
        let kept = newest(home).join("\n");
        replace_cache(&path, format!("{kept}\n").as_bytes())?;
    }
    let line = format!("{} {}\n", rfc3339(now_ms()), told(text));
    // One call, so that the entries of two processes do not mix.
    append_private(&path).and_then(|mut file| file.write_all(line.as_bytes())).at("recording a failure", &path)
}

/// As [`note`], but for a sentence that is among the newest already.
///
/// # Errors
/// As [`note`].
pub fn note_once(home: &Home, text: &str) -> Result<()> {
    let told = told(text);
    let is_known = newest(home).iter().any(|known| known.split_once(' ').is_some_and(|(_, known)| known == told));
    if is_known { Ok(()) } else { note(home, text) }
}

/// Returns a sentence as it is written down.
fn told(text: &str) -> String {
    cut(&printable(&redact(text)), MAX_TEXT)
}

/// Returns the newest entries, oldest first.
pub fn newest(home: &Home) -> Vec<String> {
    let text = std::fs::read(home.path().join("mishaps")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut kept: VecDeque<&str> = VecDeque::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    kept.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        assert!(newest(&home).is_empty());
        for n in 0..2000 {
            note(&home, &format!("number {n}\n{}", "x".repeat(40))).unwrap();
        }
        let kept = newest(&home);
        assert!(kept.len() == KEPT && kept[KEPT - 1].contains("number 1999"));
        assert!(std::fs::metadata(dir.path().join("mishaps")).unwrap().len() < MAX_BYTES + 1000);
        let long = format!("a long one\n{}", "y".repeat(MAX_TEXT));
        (0..3).for_each(|_| note_once(&home, &long).unwrap());
        assert_eq!(newest(&home).iter().filter(|entry| entry.contains("a long one")).count(), 1);
    }
}
