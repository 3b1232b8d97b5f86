//! The workspace files that the user trusts, by path and content, and the values of the user's own file that are in force.
//!
//! A file `$PITON_HOME/trusted`. A line of a workspace's file has the content's id (git's SHA-1 of it, with collision detection) and the
//! percent-quoted path. Another content at the same path is not trusted. The line `user` has the record of the user's file
//! (`narrowing`) and the path of that file, both percent-quoted.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Result;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::meta::{quote, unquote};
use crate::model::stamp::is_before;
use crate::sys::fs::durable::replace_file;
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::fs::mark::FileMark;

/// The time to wait for another process that writes the list.
const PATIENCE: Duration = Duration::from_secs(10);

/// The word with which the line of the user's file begins.
const USER: &str = "user ";

/// The record of a user's file that sets nothing.
pub(super) const NOTHING: &str = "{}";

fn line_of(file: &Path, content: &[u8]) -> Result<String> {
    let id = ObjectId::of(ObjectKind::Blob, content)?;
    Ok(format!("{id} {}", quote(file.as_os_str().as_bytes())))
}

/// Returns the file that holds them.
pub(super) fn place(home: &Path) -> PathBuf {
    home.join("trusted")
}

fn lines(home: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(place(home)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns whether this very content of the file is trusted.
pub fn is_trusted(home: &Path, file: &Path, content: &[u8]) -> bool {
    line_of(file, content).is_ok_and(|line| lines(home).contains(&line))
}

/// Trusts this very content of the file.
///
/// # Errors
/// I/O errors of writing; `store-locked` if another process holds the lock for too long.
pub fn trust(home: &Path, file: &Path, content: &[u8]) -> Result<()> {
    let line = line_of(file, content)?;
    // Two that trust at the same time both have what the other one wrote.
    let _lock = FileLock::acquire(&home.join("trusted.lock"), Mode::Exclusive, "trusting", PATIENCE)?;
    let path = line.split_once(' ').map(|(_, path)| path.to_owned()).unwrap_or_default();
    let mut kept: Vec<String> =
        lines(home).into_iter().filter(|known| known.split_once(' ').is_none_or(|(_, known)| known != path)).collect();
    kept.push(line);
    replace_file(&place(home), format!("{}\n", kept.join("\n")).as_bytes())
}

/// The record of what is in force by a user's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserRecord {
    /// The values.
    pub values: String,
    /// The file.
    pub file: PathBuf,
}

/// Returns the record of what is in force by the user's file; `None` where none can be read.
pub(super) fn recorded(home: &Path) -> Option<UserRecord> {
    // The file is missing before the first record.
    let text = std::fs::read_to_string(place(home)).ok()?;
    let (values, file) = text.lines().find_map(|line| line.strip_prefix(USER))?.split_once(' ')?;
    // A damaged line counts as none.
    let (values, file) = (String::from_utf8(unquote(values).ok()?).ok()?, unquote(file).ok()?);
    Some(UserRecord { values, file: PathBuf::from(OsString::from_vec(file)) })
}

/// Records what is in force by the user's file, in the place of `known`. Where it cannot be written, or another process has written it,
/// the next process that reads the settings does it.
pub(super) fn record(home: &Path, known: Option<&UserRecord>, record: &UserRecord) {
    // A verb that only looks makes no home, and nothing in an empty one.
    if !std::fs::read_dir(home).is_ok_and(|mut entries| entries.next().is_some()) {
        return;
    }
    let is_known = || recorded(home).as_ref() == known;
    if let Err(error) = replace_record(home, record, Duration::ZERO, &is_known) {
        tracing::debug!(%error, "could not record which settings are in force");
    }
}

/// Records that a person trusts these values of the user's file ([`super::as_written`]).
///
/// # Errors
/// I/O errors of writing; `store-locked` if another process holds the lock for too long.
pub fn trust_user_file(home: &Path, file: &Path, written: &str) -> Result<()> {
    let record = UserRecord { values: written.to_owned(), file: file.to_owned() };
    replace_record(home, &record, PATIENCE, &|| true)
}

fn replace_record(home: &Path, record: &UserRecord, patience: Duration, is_wanted: &dyn Fn() -> bool) -> Result<()> {
    let _lock = FileLock::acquire(&home.join("trusted.lock"), Mode::Exclusive, "trusting", patience)?;
    if !is_wanted() {
        return Ok(());
    }
    let mut kept: Vec<String> = lines(home).into_iter().filter(|line| !line.starts_with(USER)).collect();
    let (values, file) = (quote(record.values.as_bytes()), quote(record.file.as_os_str().as_bytes()));
    kept.push(format!("{USER}{values} {file}"));
    replace_file(&place(home), format!("{}\n", kept.join("\n")).as_bytes())
}

/// Returns true if a file changed last before a moment, in nanoseconds since 1970. A link may lead to another file since: both count.
pub(super) fn is_older(file: &Path, moment: i64) -> bool {
    let is_older = |facts: std::io::Result<std::fs::Metadata>| {
        facts.is_ok_and(|facts| is_before(FileMark::from(&facts).ctime, moment))
    };
    is_older(file.metadata()) && is_older(file.symlink_metadata())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobodys_trust_is_lost() {
        let home = tempfile::tempdir().unwrap();
        let file = |n: usize| PathBuf::from(format!("/w{n}/.piton.yaml"));
        std::thread::scope(|scope| {
            for n in 0..16 {
                let home = home.path();
                scope.spawn(move || trust(home, &file(n), format!("a: {n}").as_bytes()).unwrap());
            }
        });
        for n in 0..16 {
            assert!(is_trusted(home.path(), &file(n), format!("a: {n}").as_bytes()), "{n}");
        }
        trust(home.path(), &file(3), b"b").unwrap();
        assert!(is_trusted(home.path(), &file(3), b"b") && !is_trusted(home.path(), &file(3), b"a: 3"));
        assert_eq!(lines(home.path()).len(), 16);
    }
}
