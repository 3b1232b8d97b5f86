//! The record of actions: each one that a checkpoint was due for, and each one with effects that no restore undoes.
//!
//! All processes of a workspace append to one file `actions`, one JSON object per line. It is a file next to the journal, because every
//! hook reads the journal and only lists read this. Nothing here promises anything, so a line is appended without a sync: a power cut
//! may cost the last lines. A line that cannot be read is skipped. Records are removed with the checkpoints and turns they belong to.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::append_lock::locked;
use super::lock::WorkspaceLock;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::effect::{Class, Severity};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::{open_private, replace_cache};

/// The longest wait for a process that shortens the file.
const PATIENCE: Duration = Duration::from_millis(250);

/// The most paths of one action that are recorded.
pub const MAX_NAMED: usize = 64;

/// The workspace's root among the named paths.
const ROOT: &str = "%";

/// The field with which a line begins.
const FIRST: &[u8] = b"{\"after\":";

/// The protection that an action got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionProtection {
    /// No checkpoint was needed.
    #[default]
    None,
    /// A checkpoint was taken before it.
    Taken,
    /// An earlier checkpoint contained everything it may destroy.
    Held,
    /// The checkpoint was not finished when the client was answered.
    Late,
    /// No checkpoint could be taken.
    Failed,
    /// The guard was off.
    Off,
}

/// An effect that restoring files does not undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalEffect {
    /// The effect's class.
    pub class: Class,
    /// The effect's weight when it happened.
    pub severity: Severity,
    /// The sentence that the user was warned with, redacted.
    pub message: String,
    /// True if it destroys files that checkpoints of other workspaces contain: an undo of the turn restores them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_saved: bool,
}

/// One action.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// The newest place in the sequence of checkpoints when it ran: its effects come after that one.
    pub after: u64,
    /// The checkpoint that contains the files from before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<ObjectId>,
    /// The protection it got.
    #[serde(default)]
    pub protection: ActionProtection,
    /// The action, redacted and cut: `shell: rm -rf src`.
    pub command: String,
    /// The client's id of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The classes of its effects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Class>,
    /// True if piton could not see what it does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_opaque: bool,
    /// True if it may destroy more than the paths it names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_wide: bool,
    /// The paths it names, each with everything below it (percent-quoted), at most [`MAX_NAMED`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// Its effects that no restore undoes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalEffect>,
    /// The id of its run.
    pub run: String,
    /// The client's name of its turn; `None` outside of turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The turn's own name, which no other turn has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The moment when it was recorded: RFC 3339, UTC, milliseconds.
    pub time: String,
    /// The reason why it ran without a checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl ActionRecord {
    /// Returns true if the action names a path (percent-quoted), or a directory above it.
    pub fn names(&self, path: &str) -> bool {
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        self.named.iter().any(|named| named == ROOT || path.strip_prefix(named.as_str()).is_some_and(is_below))
    }
}

/// The checkpoints and turns whose actions are kept.
pub struct KeptActions {
    /// The ids of all checkpoints.
    pub checkpoints: HashSet<ObjectId>,
    /// Their places in the sequence.
    pub places: BTreeSet<u64>,
    /// The own names of the turns that are kept.
    pub turns: HashSet<String>,
}

impl KeptActions {
    fn keeps(&self, record: &ActionRecord) -> bool {
        let is_of_turn = || record.key.as_ref().is_some_and(|key| self.turns.contains(key));
        let is_held = || record.checkpoint.is_some_and(|id| self.checkpoints.contains(&id));
        // A restore of an older checkpoint still has to name it.
        let is_external =
            || !record.external.is_empty() && self.places.first().is_some_and(|first| *first <= record.after);
        is_held() || is_of_turn() || is_external()
    }
}

/// The record of the actions of one workspace.
pub struct ActionLog {
    path: PathBuf,
}

impl ActionLog {
    /// Returns the record in a workspace's record directory.
    pub fn in_dir(dir: &Path) -> ActionLog {
        ActionLog::at(dir.join("actions"))
    }

    /// Returns the record in a file.
    pub(super) fn at(path: PathBuf) -> ActionLog {
        ActionLog { path }
    }

    /// Appends an action, without waiting for the disk.
    ///
    /// # Errors
    /// `store-locked`, `disk-full`, `permission`: the action will not be listed.
    pub fn append(&self, record: &ActionRecord) -> Result<()> {
        self.append_all(std::slice::from_ref(record)).map(drop)
    }

    /// Appends actions, all or none, without waiting for the disk. Returns the file.
    ///
    /// # Errors
    /// As [`ActionLog::append`].
    pub(super) fn append_all(&self, records: &[ActionRecord]) -> Result<File> {
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, record)
                .map_err(|error| Error::new(Code::Internal, "writing the record of an action").caused_by(error))?;
            lines.push(b'\n');
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let mut file = open_private(&self.path).at("opening", &self.path)?;
            // Lines of two processes must not overlap; the lock is free as soon as the line is written.
            locked(&file, &self.path, until, File::try_lock)?;
            let facts = file.metadata().at("examining", &self.path)?;
            // Another process has replaced the file by a shorter one.
            if facts.nlink() == 0 {
                continue;
            }
            if !ends_whole(&file, facts.len()).at("reading", &self.path)? {
                lines.insert(0, b'\n');
            }
            let written = file.write_all_at(&lines, facts.len()).and_then(|()| file.flush());
            if written.is_err() {
                // Nothing is left behind: a part of a line says nothing. If that fails, the next line begins after it.
                let _ = match facts.len() {
                    0 => std::fs::remove_file(&self.path),
                    before => file.set_len(before),
                };
            }
            return written.map(|()| file).at("appending to", &self.path);
        }
    }

    /// Returns the actions in the order in which they were recorded; without a file, none.
    ///
    /// # Errors
    /// When the file exists and cannot be read.
    pub fn read(&self) -> Result<Vec<ActionRecord>> {
        // A line of a later version, or one that a full disk cut, says nothing.
        Ok(lines(&self.bytes()?).filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Removes the actions whose checkpoint and turn are gone.
    ///
    /// # Errors
    /// `disk-full`, `permission`; the file is unchanged then.
    pub fn shorten(&self, kept: &KeptActions, _lock: &WorkspaceLock) -> Result<()> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            opened => opened.at("opening", &self.path)?,
        };
        if locked(&file, &self.path, Instant::now(), File::try_lock).is_err() {
            // Another process is appending; the next removal of a checkpoint does it.
            return Ok(());
        }
        let (bytes, mut short) = (self.bytes()?, Vec::new());
        for line in lines(&bytes) {
            // Most lines are of a checkpoint that is there, which their beginning tells.
            let is_kept = place(line).is_some_and(|after| kept.places.contains(&after))
                || serde_json::from_slice(line).is_ok_and(|record| kept.keeps(&record));
            if is_kept {
                short.extend_from_slice(line);
                short.push(b'\n');
            }
        }
        if short.len() < bytes.len() { replace_cache(&self.path, &short) } else { Ok(()) }
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        match std::fs::read(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            read => read.at("reading", &self.path),
        }
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// Returns the place in the sequence with which a line begins.
fn place(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(FIRST)?;
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&digits[..length]).ok()?.parse().ok()
}

/// Returns true if the file ends with a whole line: a killed process or a full disk may leave a part of one.
fn ends_whole(file: &File, length: u64) -> std::io::Result<bool> {
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last == [b'\n'])
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::model::id::ObjectKind;

    fn record(after: u64, command: &str) -> ActionRecord {
        ActionRecord { after, command: command.to_owned(), run: "r".to_owned(), ..ActionRecord::default() }
    }

    fn commands(log: &ActionLog) -> Vec<String> {
        log.read().unwrap().into_iter().map(|record| record.command).collect()
    }

    #[test]
    fn a_torn_line_costs_itself_alone() {
        let dir = tempfile::tempdir().unwrap();
        let log = ActionLog::in_dir(dir.path());
        assert!(log.read().unwrap().is_empty());
        log.append(&record(1, "one")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&log.path).unwrap();
        file.write_all(b"{\"after\":1,\"comm").unwrap();
        log.append(&record(1, "two")).unwrap();
        assert_eq!(commands(&log), ["one", "two"]);
        assert!(log.read().unwrap()[0] == record(1, "one"));
    }

    #[test]
    fn actions_are_removed_with_their_checkpoint_and_turn() {
        let dir = tempfile::tempdir().unwrap();
        let log = ActionLog::in_dir(dir.path());
        let lock = WorkspaceLock::acquire(dir.path(), "test", Duration::ZERO).unwrap();
        let id = ObjectId::of(ObjectKind::Blob, b"x").unwrap();
        let effect = ExternalEffect {
            class: Class::Database,
            severity: Severity::High,
            message: String::new(),
            is_saved: false,
        };
        for record in [
            record(1, "gone"),
            record(2, "of a place"),
            ActionRecord { checkpoint: Some(id), ..record(3, "of a checkpoint") },
            ActionRecord { key: Some("k".to_owned()), ..record(3, "of a turn") },
            ActionRecord { key: Some("j".to_owned()), ..record(3, "of a turn that is gone") },
            ActionRecord { external: vec![effect.clone()], ..record(3, "external") },
            ActionRecord { external: vec![effect], ..record(1, "external, before all") },
        ] {
            log.append(&record).unwrap();
        }
        let kept = KeptActions {
            checkpoints: HashSet::from([id]),
            places: BTreeSet::from([2]),
            turns: HashSet::from(["k".to_owned()]),
        };
        log.shorten(&kept, &lock).unwrap();
        assert_eq!(commands(&log), ["of a place", "of a checkpoint", "of a turn", "external"]);
        log.append(&record(4, "new")).unwrap();
        assert_eq!(log.read().unwrap().len(), 5);
    }

    #[test]
    fn an_action_names_what_is_below_its_paths() {
        let action = ActionRecord { named: vec!["src".into(), "x%20y/z".into()], ..ActionRecord::default() };
        for (path, is_named) in [("src", true), ("src/a", true), ("srcs", false), ("x%20y/z/q", true), ("x%20y", false)]
        {
            assert_eq!(action.names(path), is_named, "{path}");
        }
        let whole = ActionRecord { named: vec![ROOT.to_owned()], ..ActionRecord::default() };
        assert!(whole.names("any"));
    }
}
