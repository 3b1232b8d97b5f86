//! Actions that ran although no checkpoint could be taken before them. They are kept until a person has read them.
//!
//! The store's disk may be full, so an action is first written into the user's runtime directory ([`crate::sys::runtime`]), before
//! its client is answered: `unguarded.WORKSPACE`. The first process that can write to the store appends it to the file `unguarded`
//! among the workspace's records, syncs that, and only then removes the copy. A kill in between leaves both; equal records count once.
//! A person who has read the file removes it, as with the record of mishaps.
//!
//! An action whose workspace is not known, because no engine ran, is in a file `unstarted.…`. The hook's command line appends to one
//! for each directory: `SECONDS PROCESS CLIENT EVENT DIRECTORY`. The next process in that workspace claims it. A line that cannot be
//! read still says that an action ran, and the first reader claims it.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::action_log::{ActionLog, ActionProtection, ActionRecord};
use super::append_lock::locked;
use super::workspace::Workspace;
use crate::error::{Error, IoContext, Result};
use crate::model::redact::redact;
use crate::model::text::{cut, printable};
use crate::sys::clock::{ms_of, now_ms, rfc3339};
use crate::sys::fs::durable::append_private;
use crate::sys::process::user;
use crate::sys::runtime;

/// The name of the file among a workspace's records, and the first part of that in the runtime directory.
const NAME: &str = "unguarded";

/// The first part of the names of files whose workspace is not known.
const UNSTARTED: &str = "unstarted.";

/// The size from which on a file takes no further actions.
const MAX_BYTES: u64 = 1 << 20;

/// The longest text of a record that was written by another program, in characters.
const MAX_TEXT: usize = 200;

/// The age from which on a line without an end is not being written any more.
const TORN: Duration = Duration::from_secs(10);

/// The longest wait for a process that writes the same file.
const PATIENCE: Duration = Duration::from_millis(250);

/// Says why a client's hook left nothing but its own line.
const NOT_STARTED: &str = "piton could not be started";

/// An action that no engine judged.
pub struct UnguardedCommand {
    /// The directory in which it ran; `None` where that is not known.
    pub cwd: Option<PathBuf>,
    /// The action in words; it is redacted and cut here.
    pub command: String,
    /// The reason why there is no checkpoint.
    pub why: String,
    /// True if the client's model was informed.
    pub is_told: bool,
}

/// An action whose workspace is not known yet.
#[derive(Serialize, Deserialize)]
struct Unplaced {
    /// The directory in which it ran; `None` where that is not known.
    cwd: Option<PathBuf>,
    /// True if the client's model was informed.
    #[serde(default)]
    is_told: bool,
    /// The action.
    #[serde(flatten)]
    record: ActionRecord,
}

/// The actions that ran unguarded while no runtime directory took them.
#[derive(Debug, Default)]
pub struct UnguardedMemory(Mutex<Vec<ActionRecord>>);

impl UnguardedMemory {
    /// Keeps an action of a workspace in the runtime directory, else here.
    pub fn keep(&self, workspace: &Workspace, record: ActionRecord) {
        if let Err(error) = keep(workspace, &record) {
            tracing::warn!(%error, "an unguarded action is recorded only in memory");
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        }
    }

    /// Returns true if an action waits here, or in a runtime directory.
    pub fn is_waiting(&self, workspace: &Workspace) -> bool {
        are_waiting(workspace) || !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Brings what is kept here and in the runtime directory into the records of the workspace.
    ///
    /// # Errors
    /// As [`settle`].
    pub fn settle(&self, workspace: &Workspace) -> Result<()> {
        // The lock is not kept while the disk is waited for: an event may add an action meanwhile.
        let kept = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = append(workspace, &kept) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).splice(0..0, kept);
            return Err(error);
        }
        settle(workspace)
    }
}

/// Keeps an action in the runtime directory, without waiting for a disk.
///
/// # Errors
/// When there is no place for it, or it has no room.
fn keep(workspace: &Workspace, record: &ActionRecord) -> Result<()> {
    keep_as(&format!("{NAME}.{}", workspace.id), |path| {
        if path.metadata().is_ok_and(|facts| facts.len() > MAX_BYTES) {
            return Err(Error::io(std::io::ErrorKind::FileTooLarge.into(), "keeping an unguarded action", path));
        }
        ActionLog::at(path.to_owned()).append(record)
    })
}

/// Keeps an action of a directory whose workspace could not be opened.
///
/// # Errors
/// When there is no place for it, or it has no room.
pub fn keep_unplaced(action: UnguardedCommand) -> Result<()> {
    let UnguardedCommand { cwd, command, why, is_told } = action;
    let record = ActionRecord {
        protection: ActionProtection::Failed,
        command: shown(&command),
        time: rfc3339(now_ms()),
        why: Some(shown(&why)),
        ..ActionRecord::default()
    };
    // A file is claimed as a whole, so each directory has one of its own.
    let mut hasher = DefaultHasher::new();
    cwd.hash(&mut hasher);
    let place = hasher.finish();
    let mut line = serde_json::to_vec(&Unplaced { cwd, is_told, record }).unwrap_or_default(); // a path that is no text
    line.push(b'\n');
    keep_as(&format!("{UNSTARTED}{}-{place:x}", std::process::id()), |path| {
        append_private(path).and_then(|mut file| file.write_all(&line)).at("keeping an unguarded action", path)
    })
}

/// Writes into a file of the first runtime directory that takes it.
fn keep_as(name: &str, write: impl Fn(&Path) -> Result<()>) -> Result<()> {
    let missing = || Error::io(std::io::ErrorKind::NotFound.into(), "finding", Path::new("a runtime directory"));
    let mut failed = None;
    for dir in runtime::usable() {
        match write(&dir.join(name)) {
            Ok(()) => return Ok(()),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(missing))
}

/// Returns true if actions of a workspace, or of one that is not known, wait in a runtime directory.
pub fn are_waiting(workspace: &Workspace) -> bool {
    let own = format!("{NAME}.{}", workspace.id);
    let mut names = runtime::existing().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten());
    names.any(|entry| entry.file_name().to_str().is_some_and(|name| name == own || name.starts_with(UNSTARTED)))
}

/// Takes the actions of no known workspace that belong to this one, and returns those that no model was informed of. `is_here` judges a
/// directory.
pub fn claim(workspace: &Workspace, is_here: impl Fn(&Path) -> bool) -> Vec<ActionRecord> {
    let mut claimed = Vec::new();
    for dir in runtime::existing() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_name().to_str().is_some_and(|name| name.starts_with(UNSTARTED)) {
                continue;
            }
            // One that cannot be read stays for another process.
            let Some((lines, length)) = unplaced(&path) else { continue };
            if lines.is_empty() || !lines.iter().all(|line| line.cwd.as_deref().is_none_or(&is_here)) {
                continue;
            }
            let new = lines.iter().filter(|line| !line.is_told).map(|line| line.record.clone()).collect::<Vec<_>>();
            let records: Vec<ActionRecord> = lines.into_iter().map(|line| line.record).collect();
            let log = ActionLog::at(dir.join(format!("{NAME}.{}", workspace.id)));
            let kept = log.append_all(&records).map(drop).or_else(|_| append(workspace, &records));
            // A line that was appended meanwhile is claimed with the others at the next event; equal records count once.
            if kept.is_ok() && path.metadata().is_ok_and(|facts| facts.len() == length) {
                // Another process that has claimed it meanwhile has the same records, which count once.
                let _ = std::fs::remove_file(&path);
                claimed.extend(new);
            }
        }
    }
    claimed
}

/// Appends actions to the records of a workspace, and waits for the disk.
///
/// # Errors
/// `disk-full`, `permission`: none is appended.
fn append(workspace: &Workspace, records: &[ActionRecord]) -> Result<()> {
    let path = file(workspace);
    // A person who has not read so many will not read more.
    if records.is_empty() || path.metadata().is_ok_and(|facts| facts.len() > MAX_BYTES) {
        return Ok(());
    }
    ActionLog::at(path.clone()).append_all(records)?.sync_data().at("syncing", &path)
}

/// Brings the actions that wait in a runtime directory into the records of their workspace.
///
/// # Errors
/// `disk-full`, `permission`: they wait on.
pub fn settle(workspace: &Workspace) -> Result<()> {
    for dir in runtime::existing() {
        let path = dir.join(format!("{NAME}.{}", workspace.id));
        let Some(file) = own_file(&path) else { continue };
        locked(&file, &path, Instant::now() + PATIENCE, File::try_lock)?;
        // Another process has brought them in.
        if file.metadata().at("examining", &path)?.nlink() == 0 {
            continue;
        }
        let known = read(&self::file(workspace));
        let mut new: Vec<ActionRecord> = Vec::new();
        for record in records(&file) {
            if !known.contains(&record) && !new.contains(&record) {
                new.push(record);
            }
        }
        append(workspace, &new)?;
        std::fs::remove_file(&path).at("removing", &path)?;
    }
    Ok(())
}

/// Returns the actions of a workspace that ran without a checkpoint, the oldest first, until a person removes [`file()`].
pub fn list(workspace: &Workspace) -> Vec<ActionRecord> {
    let mut all = read(&file(workspace));
    for record in runtime::existing().flat_map(|dir| read(&dir.join(format!("{NAME}.{}", workspace.id)))) {
        if !all.contains(&record) {
            all.push(record);
        }
    }
    all.sort_by(|one, two| one.time.cmp(&two.time));
    all
}

/// Returns the file that a person removes once its actions are read.
pub fn file(workspace: &Workspace) -> PathBuf {
    workspace.dir.join(NAME)
}

/// Opens a plain file of this user; `None` for anything else.
fn own_file(path: &Path) -> Option<File> {
    let is_own = path.symlink_metadata().is_ok_and(|facts| facts.is_file() && facts.uid() == user());
    // Another process may have removed it since.
    if is_own { File::open(path).ok() } else { None }
}

/// Returns the actions of a file; none where it cannot be read.
fn read(path: &Path) -> Vec<ActionRecord> {
    own_file(path).map(|file| records(&file)).unwrap_or_default()
}

/// Returns the actions of a file, as far as piton fills one.
fn records(file: &File) -> Vec<ActionRecord> {
    let lines = BufReader::new(file.take(2 * MAX_BYTES)).split(b'\n').map_while(std::result::Result::ok);
    // A line of a later version, or one that a full disk cut, says nothing.
    lines.filter_map(|line| serde_json::from_slice(&line).ok()).collect()
}

/// Returns the actions of a file that a client's shell may have written, and its length. They are none while a line may not be whole yet.
fn unplaced(path: &Path) -> Option<(Vec<Unplaced>, u64)> {
    let file = own_file(path)?;
    let facts = file.metadata().ok()?; // removed meanwhile
    let written = facts.modified().unwrap_or(UNIX_EPOCH);
    let mut bytes = Vec::new();
    (&file).take(MAX_BYTES).read_to_end(&mut bytes).ok()?; // the next process tries again
    let is_whole = bytes.ends_with(b"\n") || bytes.len() as u64 == MAX_BYTES;
    if !is_whole && written.elapsed().is_ok_and(|age| age < TORN) {
        return Some((Vec::new(), 0));
    }
    let written = written.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Some((lines.map(|line| parsed(line, written)).collect(), facts.len()))
}

/// Parses a line: of this program, else of a shell. `written` is the time of one that says none.
fn parsed(line: &[u8], written: i64) -> Unplaced {
    if let Ok(unplaced) = serde_json::from_slice::<Unplaced>(line) {
        return Unplaced { record: harmless(unplaced.record), ..unplaced };
    }
    let text = String::from_utf8_lossy(line);
    let mut words = text.splitn(5, ' ');
    let seconds = words.next().and_then(|word| word.parse::<u32>().ok()); // torn, or another text
    let [process, client, event] = std::array::from_fn(|_| words.next().unwrap_or_default());
    let cwd = words.next().map(PathBuf::from).filter(|cwd| cwd.is_absolute());
    let (command, action) = match (seconds, &cwd) {
        (Some(_), Some(_)) => (format!("{client} {event}"), Some(shown(&format!("hook-{process}")))),
        _ => (format!("unknown: {text}"), None),
    };
    let record = ActionRecord {
        protection: ActionProtection::Failed,
        command: shown(&command),
        time: rfc3339(seconds.map_or(written, |seconds| i64::from(seconds) * 1000)),
        action,
        why: Some(NOT_STARTED.to_owned()),
        ..ActionRecord::default()
    };
    Unplaced { cwd: cwd.filter(|_| seconds.is_some()), is_told: false, record }
}

/// Returns a record as it may be shown. Any program may have written the file.
fn harmless(record: ActionRecord) -> ActionRecord {
    ActionRecord {
        command: shown(&record.command),
        run: shown(&record.run),
        turn: record.turn.as_deref().map(shown),
        why: record.why.as_deref().map(shown),
        time: ms_of(&record.time).map_or_else(|| rfc3339(0), rfc3339),
        ..record
    }
}

fn shown(text: &str) -> String {
    cut(&printable(&redact(&cut(text, 4 * MAX_TEXT))), MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_shell_is_read_whatever_it_says() {
        let long = format!("1700000000 7 claude-code PreToolUse /{}", "x".repeat(1 << 20));
        let table: [(&[u8], &str, Option<&str>); 6] = [
            (b"1700000000 7 claude-code PreToolUse /w/a b", "claude-code PreToolUse", Some("/w/a b")),
            (b"1700000000 7 claude-code PreT", "unknown: 1700000000 7 claude-code PreT", None),
            (b"x 7 claude-code PreToolUse /w", "unknown: x 7 claude-code PreToolUse /w", None),
            (b"1700000000 7 claude-code PreToolUse w", "unknown: 1700000000 7 claude-code PreToolUse w", None),
            (b"1700000000 7 \x1b[2J PreToolUse /w", "\\u{1b}[2J PreToolUse", Some("/w")),
            (b"{\"cwd\":\"/w\"}", "unknown: {\"cwd\":\"/w\"}", None),
        ];
        for (line, command, cwd) in table {
            let read = parsed(line, 5);
            assert!(read.record.command.contains(command), "{:?}", read.record.command);
            assert!(!read.record.command.contains('\x1b') && read.record.protection == ActionProtection::Failed);
            assert_eq!(read.cwd.as_deref(), cwd.map(Path::new));
        }
        let read = parsed(long.as_bytes(), 5);
        assert!(read.record.command.len() <= 4 * MAX_TEXT && read.record.time.starts_with("2023-11-14"));
        let read = parsed(&[0xff; 1 << 20], 5);
        assert!(read.record.command.chars().count() <= MAX_TEXT + 1 && read.record.time.starts_with("1970-01-01"));
    }
}
