//! Records beside the store: ids of replaced checkpoints become the new ones, and secrets in texts go.
//!
//! Files of JSON are read and written as a whole, so that no pattern can take their structure with it. Logs that a
//! process may have open are overwritten in their place, byte by byte. Derived files are removed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::checkpoint::catalog::dropped::Ledger;
use crate::checkpoint::records::framed;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::leftovers::FETCH;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::{Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::model::sought::{SecretPattern, SecretSearch};
use crate::store::{Log, Store};
use crate::sys::fs::aside::is_aside;
use crate::sys::fs::durable::replace_file;

/// Files of a workspace that are made anew when they are missing.
const DERIVED: [&str; 3] = ["stamps", "commits", "view.git"];

/// Files that have a checksum or are no texts: none of them is edited as a text.
const UNTOUCHED: [&str; 4] = ["workspace.json", "workspaces.index", "forget.json", "lock"];

/// The changes of records.
pub(super) struct RecordEdit<'e> {
    /// Replaced checkpoints, each with the new one.
    pub map: HashMap<ObjectId, ObjectId>,
    /// The secret, where that is known.
    pub pattern: Option<&'e SecretPattern>,
}

impl RecordEdit<'_> {
    /// Returns what takes the place of a text; `None` if it stays.
    fn text(&self, text: &str) -> Option<String> {
        let id = if text.len() == 40 { text.parse::<ObjectId>().ok() } else { None }; // another text is no id
        match id.and_then(|id| self.map.get(&id)) {
            Some(new) => Some(new.to_string()),
            None => self.secret(text),
        }
    }

    fn secret(&self, text: &str) -> Option<String> {
        self.pattern.and_then(|pattern| pattern.redacted(text))
    }

    /// Edits all texts in a value. Returns true if one changed.
    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.text(text) {
                Some(new) => {
                    *text = new;
                    true
                }
                None => false,
            },
            Value::Array(items) => self.values(items.iter_mut()) > 0,
            Value::Object(fields) => {
                let secret: Vec<(String, String)> =
                    fields.keys().filter_map(|key| Some((key.clone(), self.secret(key)?))).collect();
                for (old, new) in &secret {
                    let moved = fields.remove(old);
                    moved.and_then(|value| fields.insert(new.clone(), value));
                }
                self.values(fields.values_mut()) > 0 || !secret.is_empty()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Edits all texts in values. Returns the number of values that changed.
    fn values<'v>(&self, values: impl Iterator<Item = &'v mut Value>) -> usize {
        values.filter_map(|value| self.value(value).then_some(())).count()
    }

    /// Edits the texts of a file that is one JSON value. Another file is overwritten in its place.
    fn json(&self, path: &Path) -> Result<()> {
        let Some(bytes) = content(path)? else { return Ok(()) };
        let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) else { return self.mask(path) };
        if !self.value(&mut value) {
            return Ok(());
        }
        replace_file(path, value.to_string().as_bytes())
    }

    /// Edits the lines of a journal. The secret in a damaged one is overwritten.
    fn journal(&self, path: &Path) -> Result<()> {
        let Some(bytes) = content(path)? else { return Ok(()) };
        let (mut edited, mut is_news) = (Vec::with_capacity(bytes.len()), false);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let new = match unframed(line) {
                Some(mut value) => self.value(&mut value).then(|| frame(&value)),
                None => self.pattern.and_then(|pattern| pattern.masked(line)),
            };
            is_news |= new.is_some();
            edited.extend_from_slice(new.as_deref().unwrap_or(line));
        }
        if is_news { replace_file(path, &edited) } else { Ok(()) }
    }

    /// Edits the lines of the log of actions, each of which is one JSON value. Its writers open a replaced file anew.
    fn lines(&self, path: &Path) -> Result<()> {
        let Some(bytes) = content(path)? else { return Ok(()) };
        let (mut edited, mut is_news) = (Vec::with_capacity(bytes.len()), false);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let new = match serde_json::from_slice::<Value>(line) {
                Ok(mut value) => self.value(&mut value).then(|| format!("{value}\n").into_bytes()),
                Err(_) => self.pattern.and_then(|pattern| pattern.masked(line)),
            };
            is_news |= new.is_some();
            edited.extend_from_slice(new.as_deref().unwrap_or(line));
        }
        if is_news { replace_file(path, &edited) } else { Ok(()) }
    }

    /// Overwrites the secret in a file that another process may have open.
    fn mask(&self, path: &Path) -> Result<()> {
        let (Some(pattern), Some(bytes)) = (self.pattern, content(path)?) else { return Ok(()) };
        let Some(masked) = pattern.masked(&bytes) else { return Ok(()) };
        let file = OpenOptions::new().write(true).open(path).at("opening", path)?;
        // Only what differs: others may append meanwhile.
        for (at, (new, old)) in masked.chunks(4096).zip(bytes.chunks(4096)).enumerate() {
            if new != old {
                file.write_all_at(new, at as u64 * 4096).at("overwriting", path)?;
            }
        }
        file.sync_all().at("syncing", path)
    }

    /// Edits the records of a workspace, and removes the derived ones. The caller holds its lock.
    ///
    /// # Errors
    /// `disk-full`, `permission`; each file is as it was or as it should be.
    pub(super) fn workspace(&self, dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
        self.journal(&dir.join("journal"))?;
        Ledger::of_workspace(dir).edit_labels(&|label| self.secret(label))?;
        for path in files(&dir.join("runs"))? {
            self.json(&path)?;
        }
        for path in files(dir)? {
            match name(&path) {
                "journal" | "log" => {}
                "windows" | "actions" | "unguarded" => self.lines(&path)?,
                file if DERIVED.contains(&file) || is_aside(file) => remove(&path)?,
                file if file.starts_with(FETCH) || file.starts_with("dropped") => {}
                _ => self.json(&path)?,
            }
        }
        remove(&dir.join("view.git"))
    }

    /// Edits the records in piton's home.
    ///
    /// # Errors
    /// As [`RecordEdit::workspace`].
    pub(super) fn home(&self, home: &Home) -> Result<()> {
        let home = home.path();
        Ledger::of_home(home).edit_labels(&|label| self.secret(label))?;
        for path in files(home)?.into_iter().filter(|path| !name(path).starts_with("pruned")) {
            self.json(&path)?;
        }
        for path in files(&home.join("sessions"))? {
            self.json(&path)?;
        }
        let mut open = vec![home.join("daemon"), home.join("backups")];
        while let Some(dir) = open.pop() {
            for path in files(&dir)? {
                self.mask(&path)?;
            }
            open.extend(dirs(&dir)?);
        }
        // Files that were damaged: nobody can tell what is in them.
        remove(&home.join("store.git/damaged"))
    }
}

/// Removes what may hold anything and is of no use: derived files, leftovers of fetches.
///
/// # Errors
/// `permission`.
pub(super) fn remove_derived(dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
    DERIVED.iter().try_for_each(|file| remove(&dir.join(file)))?;
    dirs(dir)?.iter().filter(|path| name(path).starts_with(FETCH)).try_for_each(|path| remove(path))
}

/// Returns the value of a journal's line; `None` if the line is damaged.
fn unframed(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(framed::framed(line.strip_suffix(b"\n")?)?).ok() // it has its sum
}

fn frame(value: &Value) -> Vec<u8> {
    framed::frame(&value.to_string()).into_bytes()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn content(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        read => read.at("reading", path).map(Some),
    }
}

/// Returns the plain files of a directory that may be edited as texts; none if it is missing.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let is_text = |path: &PathBuf| {
        let name = name(path);
        !UNTOUCHED.contains(&name) && !name.ends_with(".lock") && path.symlink_metadata().is_ok_and(|it| it.is_file())
    };
    Ok(listed(dir)?.into_iter().filter(is_text).collect())
}

fn dirs(dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(listed(dir)?.into_iter().filter(|path| path.symlink_metadata().is_ok_and(|it| it.is_dir())).collect())
}

/// Returns the paths of what a directory holds; none if it is missing.
///
/// # Errors
/// When it cannot be listed.
pub(super) fn listed(dir: &Path) -> Result<Vec<PathBuf>> {
    match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        listing => {
            listing.at("listing", dir)?.map(|entry| entry.map(|entry| entry.path()).at("listing", dir)).collect()
        }
    }
}

/// Removes a file, or a directory with all that is in it; none is fine too.
///
/// # Errors
/// `permission`.
pub(super) fn remove(path: &Path) -> Result<()> {
    let is_dir = path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
    let removed = if is_dir { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io(error, "removing", path)),
        _ => Ok(()),
    }
}

/// Opens a file for a search; `None` if it went meanwhile.
///
/// # Errors
/// When it cannot be opened.
pub(super) fn open(path: &Path) -> Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        opened => opened.at("opening", path).map(Some),
    }
}

/// Makes the content of a workspace's log durable elsewhere, and empties the log.
pub(super) fn flush(store: &Store, dir: &Path) -> Result<()> {
    let path = dir.join(store.log_name());
    if path.metadata().is_ok_and(|facts| facts.len() > 0) { store.flush(&mut Log::open(&path)?) } else { Ok(()) }
}

/// Returns true if a file holds the secret now. One that cannot be read is not judged.
pub(super) fn holds(path: &Path, pattern: &SecretPattern) -> bool {
    let mut search = SecretSearch::new(pattern);
    let read = File::open(path).and_then(|mut file| std::io::copy(&mut file, &mut search));
    read.is_ok() && search.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::history::journal::{Journal, Line, frame as framed_line};
    use crate::model::id::ObjectKind;

    #[test]
    fn a_journal_names_new_checkpoints_and_no_line_has_the_secret() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let [old, new] = [b"old", b"new"].map(|text| ObjectId::of(ObjectKind::Blob, text).unwrap());
        let line = |op: String| framed_line(&Line::Aborted { op }).unwrap();
        let damaged = b"deadbeef {\"event\": \"t0ken\"}\n".to_vec();
        let lines = [line(old.to_string()), line("dir/t0ken%20x".into()), damaged, line("plain".into())];
        std::fs::write(&path, lines.concat()).unwrap();
        let pattern = SecretPattern::literal(b"t0ken").unwrap();
        let edit = RecordEdit { map: HashMap::from([(old, new)]), pattern: Some(&pattern) };
        edit.journal(&path).unwrap();
        let read = Journal::in_dir(dir.path()).read().unwrap();
        let op = |line: Line| if let Line::Aborted { op } = line { op } else { String::new() };
        let ops: Vec<String> = read.lines.into_iter().map(op).collect();
        assert_eq!((ops, read.damaged), (vec![new.to_string(), "dir/***%20x".into(), "plain".into()], 1));
        assert!(!pattern.is_in(&std::fs::read(&path).unwrap()));
    }

    #[test]
    fn json_stays_json_whatever_the_pattern_matches() {
        let dir = tempfile::tempdir().unwrap();
        let (path, log) = (dir.path().join("state.json"), dir.path().join("log.txt"));
        std::fs::write(&path, r#"{"runs":{"key=1":{"a":["key=2, and more"],"n":3}},"x":null}"#).unwrap();
        std::fs::write(&log, "one\nkey=4 five\n").unwrap();
        let pattern = SecretPattern::regex("key=.*").unwrap();
        let edit = RecordEdit { map: HashMap::new(), pattern: Some(&pattern) };
        edit.json(&path).unwrap();
        edit.json(&log).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), r#"{"runs":{"***":{"a":["***"],"n":3}},"x":null}"#);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\n**********\n");
    }
}
