//! A commit, as the store reads it.

use crate::model::id::ObjectId;

/// A commit, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The root tree.
    pub tree: ObjectId,
    /// The parents in git's order; empty for a root commit.
    pub parents: Vec<ObjectId>,
    /// The whole message; bytes that are not UTF-8 are replaced.
    pub message: String,
    /// Milliseconds since the epoch; git keeps whole seconds.
    pub time_ms: i64,
}

impl Commit {
    /// Reads a commit; `None` for other bytes.
    pub fn decode(content: &[u8]) -> Option<Commit> {
        let (mut tree, mut parents, mut time, mut rest) = (None, Vec::new(), None, content);
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            if line.is_empty() {
                break;
            }
            let Some(space) = line.iter().position(|byte| *byte == b' ') else { continue };
            let (key, value) = (&line[..space], &line[space + 1..]);
            // An id that cannot be read makes it no commit: the caller calls it damaged.
            let id = || std::str::from_utf8(value).ok()?.parse::<ObjectId>().ok();
            match key {
                b"tree" if tree.is_none() => tree = Some(id()?),
                b"parent" => parents.push(id()?),
                b"committer" if time.is_none() => {
                    let text = String::from_utf8_lossy(value).into_owned();
                    let mut words = text.rsplit(' ');
                    // The zone, and the seconds before it.
                    time = words.nth(1).and_then(|seconds| seconds.parse::<i64>().ok());
                }
                _ => {}
            }
        }
        let message = String::from_utf8_lossy(rest).into_owned();
        Some(Commit { tree: tree?, parents, message, time_ms: time.unwrap_or(0).saturating_mul(1000) })
    }
}
