//! The journal of a workspace: restores, undos, turns, and external effects, one framed JSON line each.
//!
//! A line is `{crc32 of the JSON, 8 hex digits} {JSON}\n`, appended and synced before the announced operation begins. A
//! torn tail is a line that was being written when the machine died: readers ignore it, and the next writer cuts it
//! off. A damaged line elsewhere is passed over and counted, so that one bad sector does not hide the rest.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::logged_limits::LoggedLimits;
use crate::checkpoint::records::framed;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::read_position::ReadPosition;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::effect::{Class, Severity};
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::meta::{quote, unquote};
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::sys::fs::durable::{open_private, replace_file};

/// The announcement of an operation: all that `--continue` and `--abort` need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationStart {
    /// `o-1`, `o-2`, … in the order of the journal.
    pub op: String,
    /// The kind, which decides what moves beside the files.
    pub kind: OperationKind,
    /// The id of the run that asked for it; a rollback moves this run.
    pub run: String,
    /// The checkpoint that it goes to.
    pub target: ObjectId,
    /// The checkpoint that holds the files from before.
    pub pre_restore: ObjectId,
    /// Selected paths (percent-quoted); empty means the whole tree.
    pub paths: Vec<String>,
    /// Patterns of further paths, and what they except.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<LoggedLimits>,
    /// Exactly these paths and no others (an undo or redo).
    pub only: Option<Vec<String>>,
    /// Every path that the plan would create, replace or delete.
    pub planned: Vec<String>,
    /// True if files created since the target stay.
    pub keep_new: bool,
    /// True if private files are replaced and deleted too, though nobody named them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// The operation that an undo or redo steps over.
    pub over: Option<String>,
    /// True if it steps over a part of that only, whose rest can still be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The paths of which only chosen hunks are undone (percent-quoted). The rest can still be undone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_hunks: Vec<String>,
    /// The moment of the announcement: RFC 3339, UTC, milliseconds.
    pub time: String,
}

impl OperationStart {
    /// Returns true if it is about the whole tree.
    pub fn is_of_whole_tree(&self) -> bool {
        self.paths.is_empty() && self.limits.is_none()
    }
}

/// The end of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationEnd {
    /// The operation, as its announcement calls it.
    pub op: String,
    /// Every path that was created, replaced or deleted (percent-quoted).
    pub changed: Vec<String>,
    /// The number of paths that could not be brought back.
    pub failed: u64,
    /// The workspace's newest ordinal at that time.
    pub ordinal: u64,
}

/// A path as one end of a turn has it: kind, permissions and content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct LoggedEntry(pub ManifestEntry);

impl From<LoggedEntry> for String {
    fn from(LoggedEntry(entry): LoggedEntry) -> String {
        let kind = match entry.kind {
            EntryKind::File => 'f',
            EntryKind::Link => 'l',
            EntryKind::Dir => 'd',
        };
        format!("{kind} {:o} {}", entry.perm, entry.id)
    }
}

impl TryFrom<String> for LoggedEntry {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<LoggedEntry, String> {
        let read = || {
            let mut words = text.split(' ');
            let kind = match words.next()? {
                "f" => EntryKind::File,
                "l" => EntryKind::Link,
                "d" => EntryKind::Dir,
                _ => return None,
            };
            let perm = u16::from_str_radix(words.next()?, 8).ok()?;
            let id = words.next()?.parse().ok()?;
            Some(LoggedEntry(ManifestEntry { kind, perm, id, size: 0 }))
        };
        read().ok_or_else(|| format!("`{text}` is no entry of a turn"))
    }
}

/// One path that changed during a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnChange {
    /// The path (percent-quoted).
    pub path: String,
    /// The state when the turn began; `None` for nothing there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<LoggedEntry>,
    /// The state at its end; `None` for nothing there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<LoggedEntry>,
    /// The share of the turn in it.
    pub who: Attribution,
    /// The checkpoint that has saved `before`, where the one of the turn's beginning has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ObjectId>,
}

impl TurnChange {
    /// Returns true if an undo of the turn includes the change without `include`.
    pub fn is_undone_by_default(&self) -> bool {
        match self.after {
            Some(_) => self.who.is_own(),
            None => self.who.may_have_deleted(),
        }
    }
}

/// A turn that changed files, at its end; or so far, while it is open. A later line of the same name takes its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// `t-1`, `t-2`, … in the order of the journal.
    pub op: String,
    /// The turn's own name, the same in all workspaces in which it acted.
    pub key: String,
    /// The id of its run.
    pub run: String,
    /// The client's name of it.
    pub turn: String,
    /// The first words of its prompt, without secrets; `None` where none is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The name of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// True if the client has a name that belongs to a person's doors, and is an agent all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_agents: bool,
    /// The checkpoint of the workspace as it was when the turn began.
    pub base: ObjectId,
    /// The checkpoint of its end.
    pub end: ObjectId,
    /// The moment of its beginning: RFC 3339, UTC, milliseconds.
    pub began: String,
    /// The moment of its end, in the same form.
    pub time: String,
    /// The workspace's newest ordinal at that time.
    pub ordinal: u64,
    /// True if its client or its connection ended within the turn.
    #[serde(default, rename = "interrupted", skip_serializing_if = "std::ops::Not::not")]
    pub is_interrupted: bool,
    /// True for a part of the turn behind a restore that was made while it was open.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_later_part: bool,
    /// The roots of all workspaces in which it acted; empty if that is this one alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<PathBuf>,
    /// Every path that the turn changed, alone or with others.
    pub changes: Vec<TurnChange>,
    /// Paths that the turn changed on its own, and that the checkpoint at one of its ends does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missed: Vec<MissedChange>,
    /// True if an undo has stopped at the turn, restored nothing, and named what is left: the next undo takes an older one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_passed: bool,
    /// The branch or commit that HEAD was on before the turn switched branches; `None` if it switched none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_from: Option<String>,
    /// The processes that it had started and that were running at its end. Empty when later deletions are no longer checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<LeftProcess>,
}

impl TurnEnd {
    /// Returns true if the turn changed anything, held or not.
    pub fn has_changed(&self) -> bool {
        !self.changes.is_empty() || !self.missed.is_empty()
    }

    /// Returns true if the turn changed a path or something below it, saved or not.
    pub fn has_changed_at(&self, path: &RelPath) -> bool {
        let of_missed = self.missed.iter().map(|missed| &missed.path);
        let mut changed = self.changes.iter().map(|change| &change.path).chain(of_missed);
        // A path that the journal spells wrongly is reported where the turn is undone.
        changed.any(|quoted| {
            unquote(quoted).and_then(|name| RelPath::parse(&name)).is_ok_and(|name| name.starts_with(path))
        })
    }

    /// Returns the checkpoints that the turn's changes name, in addition to those of its ends.
    pub fn named_checkpoints(&self) -> impl Iterator<Item = ObjectId> {
        let from = self.changes.iter().filter_map(|change| change.from);
        from.chain(self.missed.iter().filter_map(|missed| missed.saved))
    }
}

/// A process that an action of a turn has started, and that was running when the turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftProcess {
    /// The name of its program, for people.
    pub name: String,
    /// The name that no other process has.
    pub key: String,
}

/// A change of a turn that its undo does not take back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissedChange {
    /// Percent-quoted.
    pub path: String,
    /// The reason, for people.
    pub why: String,
    /// The share of the turn in it.
    pub who: Attribution,
    /// A checkpoint that has saved content that the turn destroyed: it is restored by the path's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<ObjectId>,
}

/// An effect that restoring files does not undo, as earlier versions wrote it. Now it is part of the action's record
/// (`records/action_log`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// The newest ordinal when it happened: restoring to it or to an older one cannot undo the effect.
    pub after: u64,
    /// The effect's class.
    pub class: Class,
    /// The effect's weight when it happened.
    pub severity: Severity,
    /// The sentence that the user was warned with.
    pub message: String,
    /// The action that had it, redacted and cut: `shell: psql -c …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The id of the run whose action had it.
    pub run: String,
    /// The client's name of the turn; `None` outside of turns.
    pub turn: Option<String>,
    /// The moment when it was noted: RFC 3339, UTC, milliseconds.
    pub time: String,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Line {
    /// An operation is about to change files.
    Restoring(OperationStart),
    /// The operation has ended.
    Restored(OperationEnd),
    /// An interrupted operation was given up: the tree is as before it.
    Aborted {
        /// The operation, as its announcement calls it.
        op: String,
    },
    /// Something happened that no restore undoes; written by earlier versions.
    External(External),
    /// A turn has changed files.
    Turn(Box<TurnEnd>),
}

/// Spells paths as the journal does.
pub fn quoted<'a>(paths: impl IntoIterator<Item = &'a RelPath>) -> Vec<String> {
    paths.into_iter().map(|path| quote(path.as_bytes())).collect()
}

/// Reads paths in the journal's spelling.
///
/// # Errors
/// `store-damaged` for a spelling the journal would not have made.
pub fn unquoted(paths: &[String]) -> Result<BTreeSet<RelPath>> {
    paths.iter().map(|text| RelPath::parse(&unquote(text)?)).collect()
}

/// The content of a journal that was read.
#[derive(Debug, Default)]
pub struct Contents {
    /// The lines that could be read, in the order in which they were written.
    pub lines: Vec<Line>,
    /// Damaged lines that were passed over, the torn tail left out.
    pub damaged: u64,
    /// The number of `lines` before the last damaged one; `None` without damage.
    pub damage_at: Option<usize>,
    /// True if the bytes behind the last line are not the beginning of one.
    pub odd_tail: bool,
    /// The bytes up to the end of the last whole line, which the next writer keeps.
    pub whole: u64,
    /// The byte at which reading began.
    pub from: u64,
}

/// The journal file of one workspace.
pub struct Journal {
    path: PathBuf,
}

impl Journal {
    /// Returns the journal in a workspace's record directory.
    pub fn in_dir(dir: &Path) -> Journal {
        Journal { path: dir.join("journal") }
    }

    /// Reads everything; no file is an empty journal.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn read(&self) -> Result<Contents> {
        self.read_on(&mut ReadPosition::default())
    }

    /// Reads what was appended since `position`, and moves that behind it; reads everything if the file is another one
    /// now or shorter. Whole lines are never cut off, so a line that was read stays valid.
    ///
    /// # Errors
    /// As [`Journal::read`].
    pub(crate) fn read_on(&self, position: &mut ReadPosition) -> Result<Contents> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                *position = ReadPosition::default();
                return Ok(Contents::default());
            }
            Err(error) => return Err(Error::io(error, "opening the journal", &self.path)),
        };
        let bytes = position.unread(&mut file, &self.path)?;
        let contents = Contents { from: position.whole(), ..parse(&bytes) };
        position.pass(&bytes[..usize::try_from(contents.whole).unwrap_or(bytes.len())]);
        Ok(contents)
    }

    /// Appends lines and makes them durable.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `internal`; the earlier lines are not harmed.
    pub fn append(&self, lines: &[Line], _lock: &WorkspaceLock) -> Result<()> {
        let mut file = open_private(&self.path).at("opening the journal", &self.path)?;
        let whole = whole_lines(&mut file).at("reading the journal", &self.path)?;
        let mut bytes = Vec::new();
        for line in lines {
            bytes.extend_from_slice(&frame(line)?);
        }
        file.set_len(whole).at("removing the incomplete end of the journal", &self.path)?;
        file.seek(SeekFrom::Start(whole)).at("seeking in the journal", &self.path)?;
        file.write_all(&bytes).at("appending to the journal", &self.path)?;
        file.sync_all().at("syncing the journal", &self.path)
    }
}

/// The length from which on a journal is shortened, in bytes.
const LONG: u64 = 4 << 20;

impl Journal {
    /// Makes a long journal shorter: of each turn among `kept` only the newest line stays, in the place of the first, and of all others
    /// none. Damaged lines stay.
    ///
    /// # Errors
    /// `disk-full`, `permission`; the journal is as it was then.
    pub fn shorten(&self, kept: &BTreeSet<String>, _lock: &WorkspaceLock) -> Result<()> {
        let bytes = match std::fs::read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            read => read.at("reading the journal", &self.path)?,
        };
        if (bytes.len() as u64) < LONG {
            return Ok(());
        }
        let turn_of = |line: &[u8]| match parse_line(line.strip_suffix(b"\n")?) {
            Some(Line::Turn(turn)) => Some(turn.op),
            _ => None,
        };
        let lines: Vec<(&[u8], Option<String>)> =
            bytes.split_inclusive(|byte| *byte == b'\n').map(|line| (line, turn_of(line))).collect();
        let newest: HashMap<&String, &[u8]> =
            lines.iter().filter_map(|(line, op)| Some((op.as_ref()?, *line))).collect();
        let (mut seen, mut short) = (BTreeSet::new(), Vec::new());
        for (line, op) in &lines {
            match op {
                Some(op) if kept.contains(op) && seen.insert(op) => short.extend_from_slice(newest[op]),
                Some(_) => {}
                None => short.extend_from_slice(line),
            }
        }
        if short.len() < bytes.len() / 2 { replace_file(&self.path, &short) } else { Ok(()) }
    }
}

/// Returns the bytes up to the end of the last whole line.
fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    let mut block = [0; 4096];
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..usize::try_from(end - start).unwrap_or_default()];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(newline) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + newline as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Writes a line as it stands in the file, its checksum before it and its newline behind it.
///
/// # Errors
/// `internal`, when it cannot be written as JSON.
pub fn frame(line: &Line) -> Result<Vec<u8>> {
    let json = serde_json::to_string(line)
        .map_err(|error| Error::new(Code::Internal, "writing a journal line").caused_by(error))?;
    Ok(framed::frame(&json).into_bytes())
}

/// Reads journal bytes; never fails.
pub fn parse(bytes: &[u8]) -> Contents {
    let mut contents = Contents::default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    contents.whole = end as u64;
    for line in bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match parse_line(line) {
            Some(line) => contents.lines.push(line),
            None => {
                contents.damaged += 1;
                contents.damage_at = Some(contents.lines.len());
            }
        }
    }
    // A torn tail begins as a line does, or is the zeros of a block that was never written.
    let tail = &bytes[end..];
    let is_begun = tail.iter().take(8).all(u8::is_ascii_hexdigit) && tail.get(8).is_none_or(|byte| *byte == b' ');
    contents.odd_tail = !is_begun && tail.iter().any(|byte| *byte != 0);
    contents
}

fn parse_line(line: &[u8]) -> Option<Line> {
    // A line of a later piton is none that is known.
    serde_json::from_slice(framed::framed(line)?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use proptest::prelude::*;

    use super::*;

    fn lock(dir: &Path) -> WorkspaceLock {
        WorkspaceLock::acquire(dir, "test", std::time::Duration::ZERO).unwrap()
    }

    fn line(op: &str) -> Line {
        Line::Aborted { op: op.to_owned() }
    }

    #[test]
    fn torn_tails_are_cut_and_damage_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, lock) = (Journal::in_dir(dir.path()), lock(dir.path()));
        assert!(journal.read().unwrap().lines.is_empty());
        journal.append(&[line("o-1"), line("o-2")], &lock).unwrap();
        let whole = std::fs::read(dir.path().join("journal")).unwrap();
        std::fs::write(dir.path().join("journal"), &whole[..whole.len() - 3]).unwrap();
        assert_eq!(journal.read().unwrap().lines, [line("o-1")]);
        journal.append(&[line("o-3")], &lock).unwrap();
        assert_eq!(journal.read().unwrap().lines, [line("o-1"), line("o-3")]);
        let mut bytes = std::fs::read(dir.path().join("journal")).unwrap();
        bytes[12] ^= 1;
        std::fs::write(dir.path().join("journal"), &bytes).unwrap();
        let read = journal.read().unwrap();
        assert_eq!((read.lines, read.damaged), (vec![line("o-3")], 1));
    }

    #[test]
    fn whoever_reads_on_reads_each_line_once() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, path) = (Journal::in_dir(dir.path()), dir.path().join("journal"));
        let lock = lock(dir.path());
        let mut position = ReadPosition::default();
        let mut news = || journal.read_on(&mut position).map(|contents| (contents.from == 0, contents.lines)).unwrap();
        assert_eq!(news(), (true, vec![]));
        journal.append(&[line("o-1"), line("o-2")], &lock).unwrap();
        assert_eq!(news(), (true, vec![line("o-1"), line("o-2")]));
        assert_eq!(news(), (false, vec![]));
        let mut torn = OpenOptions::new().append(true).open(&path).unwrap();
        torn.write_all(&frame(&line("o-3")).unwrap()[..20]).unwrap();
        assert_eq!(news(), (false, vec![]));
        journal.append(&[line(&"long".repeat(5000))], &lock).unwrap();
        journal.append(&[line("o-4")], &lock).unwrap();
        assert_eq!(news(), (false, vec![line(&"long".repeat(5000)), line("o-4")]));
        // The file is replaced by another one, and by one that was cut.
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(dir.path().join("other"), &whole).unwrap();
        std::fs::rename(dir.path().join("other"), &path).unwrap();
        assert_eq!(news().1.len(), 4);
        let first = frame(&line("o-1")).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(first.len() as u64).unwrap();
        assert_eq!(news(), (true, vec![line("o-1")]));
        // A longer one may have the inode of the one before it.
        std::fs::write(&path, [frame(&line("o-7")).unwrap(), whole].concat()).unwrap();
        assert_eq!(
            news(),
            (true, vec![line("o-7"), line("o-1"), line("o-2"), line(&"long".repeat(5000)), line("o-4")])
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(news(), (true, vec![]));
    }

    #[test]
    fn paths_of_any_bytes_come_back() {
        let paths: BTreeSet<RelPath> =
            [&b"a b"[..], b"new\nline", b"\xff\xfe", b"%41"].iter().map(|p| RelPath::parse(p).unwrap()).collect();
        assert_eq!(unquoted(&quoted(&paths)).unwrap(), paths);
    }

    #[test]
    fn a_long_journal_keeps_the_newest_line_of_each_turn_in_the_place_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, lock) = (Journal::in_dir(dir.path()), lock(dir.path()));
        let id = ObjectId::of(crate::model::id::ObjectKind::Blob, b"x").unwrap();
        let turn = |op: &str, time: usize, paths: usize| {
            let change = |at: usize| TurnChange {
                path: format!("{at}"),
                before: None,
                after: None,
                who: Attribution::Sure,
                from: None,
            };
            let [key, run, turn, began] = ["k", "r", "t", ""].map(str::to_owned);
            let time = time.to_string();
            let changes = (0..paths).map(change).collect();
            let (op, members) = (op.to_owned(), Vec::new());
            let (client, ordinal, is_later_part) = (None, 1, false);
            let end = TurnEnd {
                op,
                key,
                run,
                turn,
                prompt: None,
                client,
                is_agents: false,
                base: id,
                end: id,
                began,
                time,
                ordinal,
                is_interrupted: false,
                is_later_part,
                members,
                changes,
                missed: Vec::new(),
                is_passed: false,
                switched_from: None,
                running: Vec::new(),
            };
            Line::Turn(Box::new(end))
        };
        let mut lines = vec![turn("t-1", 0, 1), line("o-1"), turn("t-2", 0, 1)];
        journal.append(&lines, &lock).unwrap();
        let kept = BTreeSet::from(["t-2".to_owned()]);
        journal.shorten(&kept, &lock).unwrap();
        assert_eq!(journal.read().unwrap().lines, lines, "it is short");
        lines = (0..120).map(|time| turn("t-2", time, 2000)).collect();
        lines.push(line("o-2"));
        journal.append(&lines, &lock).unwrap();
        journal.shorten(&kept, &lock).unwrap();
        assert_eq!(journal.read().unwrap().lines, [line("o-1"), turn("t-2", 119, 2000), line("o-2")]);
    }

    #[test]
    fn entries_of_turns_come_back() {
        let id = ObjectId::of(crate::model::id::ObjectKind::Blob, b"x").unwrap();
        for (kind, perm) in [(EntryKind::File, 0o644), (EntryKind::Link, 0o777), (EntryKind::Dir, 0o7700)] {
            let entry = LoggedEntry(ManifestEntry { kind, perm, id, size: 0 });
            assert_eq!(LoggedEntry::try_from(String::from(entry)), Ok(entry));
        }
        for text in ["", "f", "f 644", "x 644 ab", "f 999 ab", "f 644 ab"] {
            assert!(LoggedEntry::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let contents = parse(&bytes);
            prop_assert!(contents.whole <= bytes.len() as u64);
        }
    }
}
