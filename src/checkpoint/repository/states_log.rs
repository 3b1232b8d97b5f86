//! The file `git-states` of a workspace: the state of the repository at each checkpoint. A line may have several, the newest is last.
//!
//! A line is JSON behind its checksum. Of two lines about one checkpoint the later one counts. A torn or damaged line is passed over: the
//! repository of that checkpoint is not known then.

use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::checkpoint::records::framed::{frame, framed};
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::{append_private, replace_cache};

/// The name of the file.
const NAME: &str = "git-states";

/// The end of the file in which the last line is looked for, in bytes.
const TAIL: u64 = 32 << 10;

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StateLine {
    /// The places of the checkpoints in the sequence of their workspace.
    pub(super) checkpoints: Vec<u64>,
    /// Their state; `None` where it is not known.
    pub(super) state: Option<u64>,
    /// The highest number of a state up to here.
    pub(super) newest: u64,
    /// The size of the index in the state, in bytes.
    pub(super) bytes: u64,
    /// The mark of the repository's files; `None` if one of them was from just now.
    pub(super) mark: Option<ObjectId>,
    /// The identity of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) repository: Option<String>,
}

fn encoded(line: &StateLine) -> Result<String> {
    let json = serde_json::to_string(line)
        .map_err(|error| Error::new(Code::Internal, "writing the state of a repository").caused_by(error))?;
    Ok(frame(&json))
}

fn parsed(bytes: &[u8]) -> impl Iterator<Item = StateLine> {
    // A line of a later piton is none that is known.
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(framed(line)?).ok())
}

fn file(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// Returns the lines that can be read; none where there is no file.
///
/// # Errors
/// Errors of reading.
pub(super) fn lines(dir: &Path) -> Result<Vec<StateLine>> {
    let path = file(dir);
    match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => Ok(parsed(&read.at("reading the states of the repository", &path)?).collect()),
    }
}

/// Returns the last line; `None` without one.
///
/// # Errors
/// Errors of reading.
pub(super) fn last_line(dir: &Path) -> Result<Option<StateLine>> {
    let path = file(dir);
    let mut bytes = Vec::new();
    let read = std::fs::File::open(&path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        file.take(TAIL).read_to_end(&mut bytes)
    });
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.at("reading the states of the repository", &path).map(|_| parsed(&bytes).last()),
    }
}

/// Returns the length of the file in bytes.
pub(super) fn length(dir: &Path) -> u64 {
    file(dir).metadata().map_or(0, |facts| facts.len())
}

/// Appends a line.
///
/// # Errors
/// `disk-full`, `permission`.
pub(super) fn append(dir: &Path, line: &StateLine, _lock: &WorkspaceLock) -> Result<()> {
    let (path, text) = (file(dir), encoded(line)?);
    // The line before may be torn.
    append_private(&path)
        .and_then(|mut file| file.write_all(format!("\n{text}").as_bytes()))
        .at("recording the state of the repository", &path)
}

/// Writes the file anew.
///
/// # Errors
/// `disk-full`, `permission`.
pub(super) fn rewrite(dir: &Path, kept: &[&StateLine], _lock: &WorkspaceLock) -> Result<()> {
    let text: String = kept.iter().map(|line| encoded(line)).collect::<Result<_>>()?;
    replace_cache(&file(dir), text.as_bytes())
}

/// Removes the file.
///
/// # Errors
/// `permission`.
pub(super) fn remove(dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
    let path = file(dir);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(error, "removing", &path)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn line(checkpoint: u64) -> StateLine {
        StateLine { checkpoints: vec![checkpoint], state: Some(3), newest: 3, bytes: 0, mark: None, repository: None }
    }

    #[test]
    fn a_damaged_line_hides_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        let lock = WorkspaceLock::acquire(dir.path(), "test", Duration::ZERO).unwrap();
        assert_eq!((lines(dir.path()).unwrap(), last_line(dir.path()).unwrap()), (vec![], None));
        append(dir.path(), &line(1), &lock).unwrap();
        append(dir.path(), &line(2), &lock).unwrap();
        let whole = std::fs::read(file(dir.path())).unwrap();
        // A number of a state that has become another one, and a line that is not whole.
        let flipped = String::from_utf8(whole.clone()).unwrap().replacen("\"state\":3", "\"state\":7", 1);
        std::fs::write(file(dir.path()), format!("{flipped}{}", &flipped[1..40])).unwrap();
        append(dir.path(), &line(4), &lock).unwrap();
        assert_eq!(lines(dir.path()).unwrap(), [line(2), line(4)]);
        assert_eq!(last_line(dir.path()).unwrap(), Some(line(4)));
        rewrite(dir.path(), &[&line(5)], &lock).unwrap();
        assert_eq!(lines(dir.path()).unwrap(), [line(5)]);
        remove(dir.path(), &lock).unwrap();
        assert_eq!(length(dir.path()), 0);
    }
}
