//! The journal of a workspace: restores, undos, and external effects, one framed JSON line each.
//!
//! A line is `{crc32 of the JSON, 8 hex digits} {JSON}\n`, appended and synced before what it announces begins. A torn
//! tail (a line that was being written when the machine died) is ignored by readers and cut off by the next writer; a
//! damaged line elsewhere is passed over and counted, so that one bad sector does not hide the rest.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, IoContext, Result};
use crate::model::effect::{Class, Severity};
use crate::model::id::ObjectId;
use crate::model::meta::{quote, unquote};
use crate::model::path::RelPath;

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    Restore,
    Rollback,
    Undo,
    Redo,
}

/// The announcement of an operation: all that `--continue` and `--abort` need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    /// `o-1`, `o-2`, … in the order of the journal.
    pub op: String,
    pub kind: OpKind,
    pub run: String,
    pub target: ObjectId,
    /// The checkpoint that holds what was there before.
    pub pre_restore: ObjectId,
    /// Selected paths (percent-quoted); empty means the whole tree.
    pub paths: Vec<String>,
    /// Exactly these paths and no others (an undo or redo).
    pub only: Option<Vec<String>>,
    /// Every path that the plan would create, replace or delete.
    pub planned: Vec<String>,
    pub keep_new: bool,
    /// The operation that an undo or redo steps over.
    pub over: Option<String>,
    pub time: String,
}

/// The end of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub op: String,
    /// Every path that was created, replaced or deleted (percent-quoted).
    pub changed: Vec<String>,
    /// How many paths could not be brought back.
    pub failed: u64,
    /// The workspace's newest ordinal at that time.
    pub ordinal: u64,
}

/// An effect that bringing files back does not undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// The newest ordinal when it happened: restoring to it or to an older one cannot undo the effect.
    pub after: u64,
    pub class: Class,
    pub severity: Severity,
    pub message: String,
    pub run: String,
    pub turn: Option<String>,
    pub time: String,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Line {
    Restoring(Begin),
    Restored(End),
    /// An interrupted operation was given up: the tree is as before it.
    Aborted {
        op: String,
    },
    External(External),
}

/// Paths as the journal spells them.
pub fn quoted<'a>(paths: impl IntoIterator<Item = &'a RelPath>) -> Vec<String> {
    paths.into_iter().map(|path| quote(path.as_bytes())).collect()
}

/// Paths back from the journal's spelling.
///
/// # Errors
/// `store-damaged` for a spelling the journal would not have made.
pub fn unquoted(paths: &[String]) -> Result<BTreeSet<RelPath>> {
    paths.iter().map(|text| RelPath::parse(&unquote(text)?)).collect()
}

/// What was read.
#[derive(Debug, Default)]
pub struct Contents {
    pub lines: Vec<Line>,
    /// Damaged lines that were passed over, the torn tail left out.
    pub damaged: u64,
    /// Bytes up to the end of the last whole line: what the next writer keeps.
    pub whole: u64,
}

/// The journal file of one workspace.
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// The journal in a workspace's record directory.
    pub fn in_dir(dir: &Path) -> Journal {
        Journal { path: dir.join("journal") }
    }

    /// Reads everything; no file is an empty journal.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn read(&self) -> Result<Contents> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(mut file) => file.read_to_end(&mut bytes).at("reading the journal", &self.path)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(Error::io(error, "opening the journal", &self.path)),
        };
        Ok(parse(&bytes))
    }

    /// Appends lines and makes them durable. The caller holds the workspace lock.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `internal`; nothing that was there before is harmed.
    pub fn append(&self, lines: &[Line]) -> Result<()> {
        let whole = self.read()?.whole;
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)
            .at("opening the journal", &self.path)?;
        let mut bytes = Vec::new();
        for line in lines {
            bytes.extend_from_slice(&frame(line)?);
        }
        file.set_len(whole).at("cutting the torn tail of the journal", &self.path)?;
        file.seek(SeekFrom::Start(whole)).at("seeking in the journal", &self.path)?;
        file.write_all(&bytes).at("appending to the journal", &self.path)?;
        file.sync_all().at("syncing the journal", &self.path)
    }
}

/// A line as it stands in the file, its checksum before it and its newline behind it.
///
/// # Errors
/// `internal`, when it cannot be written as JSON.
pub fn frame(line: &Line) -> Result<Vec<u8>> {
    let json = serde_json::to_string(line)
        .map_err(|error| Error::new(Code::Internal, "writing a journal line").caused_by(error))?;
    Ok(format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes())).into_bytes())
}

/// Reads journal bytes; never fails.
pub fn parse(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    contents.whole = end as u64;
    for line in bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match parse_line(line) {
            Some(line) => contents.lines.push(line),
            None => contents.damaged += 1,
        }
    }
    contents
}

fn parse_line(line: &[u8]) -> Option<Line> {
    let (crc, json) = (line.get(..8)?, line.get(9..)?);
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    (crc == crc32fast::hash(json)).then(|| serde_json::from_slice(json).ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(op: &str) -> Line {
        Line::Aborted { op: op.to_owned() }
    }

    #[test]
    fn torn_tails_are_cut_and_damage_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::in_dir(dir.path());
        assert!(journal.read().unwrap().lines.is_empty());
        journal.append(&[line("o-1"), line("o-2")]).unwrap();
        let whole = std::fs::read(dir.path().join("journal")).unwrap();
        std::fs::write(dir.path().join("journal"), &whole[..whole.len() - 3]).unwrap();
        assert_eq!(journal.read().unwrap().lines, [line("o-1")]);
        journal.append(&[line("o-3")]).unwrap();
        assert_eq!(journal.read().unwrap().lines, [line("o-1"), line("o-3")]);
        let mut bytes = std::fs::read(dir.path().join("journal")).unwrap();
        bytes[12] ^= 1;
        std::fs::write(dir.path().join("journal"), &bytes).unwrap();
        let read = journal.read().unwrap();
        assert_eq!((read.lines, read.damaged), (vec![line("o-3")], 1));
    }

    #[test]
    fn paths_of_any_bytes_come_back() {
        let paths: BTreeSet<RelPath> =
            [&b"a b"[..], b"new\nline", b"\xff\xfe", b"%41"].iter().map(|p| RelPath::parse(p).unwrap()).collect();
        assert_eq!(unquoted(&quoted(&paths)).unwrap(), paths);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let contents = parse(&bytes);
            prop_assert!(contents.whole <= bytes.len() as u64);
        }
    }
}
