//! Remembers the checkpoints that retention dropped, so that their numbers, ids and labels are still explained.
//!
//! The file `dropped` of the workspace's directory has one JSON object a line, oldest first, written before the ref is
//! deleted. A lost or torn line costs an explanation, never a checkpoint, so the file is not synced.

use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::{IoContext, Result};
use crate::sys::fs::durable::{append_private, replace_cache};

/// The size in bytes above which the older half of the file is dropped.
const MAX_BYTES: u64 = 2 << 20;

const FILE: &str = "dropped";

/// A checkpoint that retention dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedCheckpoint {
    /// Its permanent number.
    pub n: u64,
    /// 40 hex digits.
    pub id: String,
    /// Its label, for one taken by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The rule by which it was dropped, as a setting or in words.
    pub rule: String,
}

/// Notes checkpoints that are about to be dropped.
///
/// # Errors
/// `disk-full`, `permission`.
pub(crate) fn note(dir: &Path, dropped: &[DroppedCheckpoint], _lock: &WorkspaceLock) -> Result<()> {
    if dropped.is_empty() {
        return Ok(());
    }
    let path = dir.join(FILE);
    if path.metadata().is_ok_and(|facts| facts.len() > MAX_BYTES) {
        let text = std::fs::read(&path).at("reading what was dropped", &path)?;
        let newer = &text[text.len() / 2..];
        let whole = newer.iter().position(|byte| *byte == b'\n').map_or(newer.len(), |at| at + 1);
        replace_cache(&path, &newer[whole..])?;
    }
    let lines = dropped.iter().filter_map(|one| serde_json::to_string(one).ok()); // texts and numbers are always valid JSON
    let text: String = lines.map(|line| line + "\n").collect();
    // One call, so that a killed process leaves whole lines, but for the last.
    append_private(&path).and_then(|mut file| file.write_all(text.as_bytes())).at("noting what was dropped", &path)
}

/// Returns the newest dropped checkpoint for which `is_meant` holds; `None` also where the file cannot be read.
pub(crate) fn find(dir: &Path, is_meant: impl Fn(&DroppedCheckpoint) -> bool) -> Option<DroppedCheckpoint> {
    let text = std::fs::read(dir.join(FILE)).unwrap_or_default();
    // A torn line explains nothing and is passed over.
    let mut known = text.split(|byte| *byte == b'\n').rev().filter_map(|line| serde_json::from_slice(line).ok());
    known.find(|one: &DroppedCheckpoint| is_meant(one))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    fn one(n: u64, label: Option<&str>) -> DroppedCheckpoint {
        DroppedCheckpoint { n, id: format!("{n:040x}"), label: label.map(str::to_owned), at: 0, rule: "r".into() }
    }

    #[test]
    fn the_newest_is_found_and_torn_lines_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        assert_eq!(find(dir.path(), |_| true), None);
        note(dir.path(), &[one(1, Some("a")), one(2, Some("a"))], &lock).unwrap();
        let mut file = OpenOptions::new().append(true).open(dir.path().join(FILE)).unwrap();
        file.write_all(b"{\"n\": 3, \"id\"\n").unwrap();
        note(dir.path(), &[one(4, None)], &lock).unwrap();
        assert_eq!(find(dir.path(), |one| one.label.as_deref() == Some("a")), Some(one(2, Some("a"))));
        assert_eq!(find(dir.path(), |one| one.n == 4), Some(one(4, None)));
        assert_eq!(find(dir.path(), |one| one.n == 3), None);
    }

    #[test]
    fn the_file_is_bounded_and_keeps_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        let label = "x".repeat(1000);
        for hundred in 0..30 {
            let some: Vec<_> = (0..100).map(|n| one(hundred * 100 + n, Some(&label))).collect();
            note(dir.path(), &some, &lock).unwrap();
        }
        let length = std::fs::metadata(dir.path().join(FILE)).unwrap().len();
        assert!(length < MAX_BYTES + (200 << 10), "{length}");
        assert!(find(dir.path(), |one| one.n == 2999).is_some() && find(dir.path(), |one| one.n == 0).is_none());
    }
}
