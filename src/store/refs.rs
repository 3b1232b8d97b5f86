//! Refs: our own reader, which reports broken ones, and compare-and-swap writes.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{Store, from_oid, refusal, to_oid};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;

/// How long a `.lock` file must stand untouched to count as left over: git holds one for milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked at meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A ref, or what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefEntry {
    /// The full name.
    pub name: String,
    pub target: Result<ObjectId, String>,
}

impl Store {
    /// All refs whose name begins with `prefix`, by name. Loose ones win over packed ones; lock files are no refs.
    ///
    /// # Errors
    /// When the directories cannot be listed; a single broken ref is reported in its entry.
    pub fn refs(&self, prefix: &str) -> Result<Vec<RefEntry>> {
        let mut found = BTreeMap::new();
        self.packed(&mut found)?;
        let start = prefix.rsplit_once('/').map_or("", |(dir, _)| dir);
        collect(&self.git_dir, if start.is_empty() { "refs" } else { start }, &mut found)?;
        let entries = found.into_iter().filter(|(name, _)| name.starts_with(prefix));
        Ok(entries.map(|(name, target)| RefEntry { name, target }).collect())
    }

    fn packed(&self, found: &mut BTreeMap<String, Result<ObjectId, String>>) -> Result<()> {
        let path = self.git_dir.join("packed-refs");
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io(error, "reading", &path)),
        };
        for line in String::from_utf8_lossy(&bytes).lines() {
            if line.starts_with('#') || line.starts_with('^') {
                continue;
            }
            if let Some((id, name)) = line.split_once(' ') {
                found.insert(name.to_owned(), parse(id.as_bytes()));
            }
        }
        Ok(())
    }

    /// Moves a ref from `expect` (`None`: it must not exist) to `new`, durably.
    ///
    /// The caller holds the workspace lock, under which all of piton's ref writes of a workspace happen: a `.lock` file
    /// found here is left over from a killed process, or a person's git is at work. It is waited for, then removed.
    ///
    /// # Errors
    /// `conflict` when the ref is not at `expect`; `disk-full`, `permission`.
    pub fn update_ref(&self, name: &str, expect: Option<ObjectId>, new: ObjectId) -> Result<()> {
        self.remove_stale_lock(name)?;
        let moved = match expect {
            None => self.repo.reference(name, to_oid(&new), false, "").map(drop),
            Some(old) => self.repo.reference_matching(name, to_oid(&new), true, to_oid(&old), "").map(drop),
        };
        moved.map_err(|error| match error.message().starts_with("target OID") {
            true => super::damaged(&new, "was written and could not be read back"),
            false => self.ref_error(name, &error),
        })
    }

    /// Deletes a ref that is at `expect`.
    ///
    /// # Errors
    /// `conflict` when it is not; `disk-full`, `permission`.
    pub fn delete_ref(&self, name: &str, expect: ObjectId) -> Result<()> {
        self.remove_stale_lock(name)?;
        let mut reference = self.repo.find_reference(name).map_err(|error| self.ref_error(name, &error))?;
        if reference.target().map(from_oid) != Some(expect) {
            return Err(moved(name));
        }
        reference.delete().map_err(|error| self.ref_error(name, &error))
    }

    /// Waits for whoever holds a `.lock` beside the ref, an ordinary git for example, and removes one that nobody touches.
    fn remove_stale_lock(&self, name: &str) -> Result<()> {
        let path = self.git_dir.join(format!("{name}.lock"));
        let mut seen = lock_file(&path)?;
        let mut since = Instant::now();
        while seen.is_some() && since.elapsed() < PATIENCE {
            std::thread::sleep(LOOK_AGAIN);
            let now = lock_file(&path)?;
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        if seen.is_none() {
            return Ok(());
        }
        match std::fs::remove_file(&path) {
            Ok(()) => {
                tracing::warn!(path = %path.display(), "removed a lock left over from a killed process");
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io(error, "removing a stale lock", &path)),
        }
    }

    fn ref_error(&self, name: &str, error: &git2::Error) -> Error {
        match error.code() {
            git2::ErrorCode::Modified | git2::ErrorCode::Exists | git2::ErrorCode::NotFound => moved(name),
            _ => {
                let path = self.git_dir.join(name);
                match refusal(error) {
                    Some(last) => Error::io(last, "moving the ref", &path),
                    None => {
                        Error::new(Code::Internal, format!("moving the ref failed: {}", error.message())).path(path)
                    }
                }
            }
        }
    }
}

/// Which file a lock is, and when it was written; `None` when there is none.
fn lock_file(path: &Path) -> Result<Option<(u64, i64, i64)>> {
    match path.symlink_metadata() {
        Ok(facts) => Ok(Some((facts.ino(), facts.mtime(), facts.mtime_nsec()))),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(Error::io(error, "looking at a lock", path)),
    }
}

fn moved(name: &str) -> Error {
    Error::new(Code::Conflict, format!("`{name}` was moved by somebody else")).hint("try again")
}

fn collect(git_dir: &Path, dir: &str, found: &mut BTreeMap<String, Result<ObjectId, String>>) -> Result<()> {
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        let path = git_dir.join(&dir);
        let listing = match std::fs::read_dir(&path) {
            Ok(listing) => listing,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                continue;
            }
            Err(error) => return Err(Error::io(error, "listing", &path)),
        };
        for entry in listing {
            let entry = entry.at("listing", &path)?;
            let name = format!("{dir}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().at("reading the type of", entry.path())?.is_dir() {
                pending.push(name);
            } else if !name.ends_with(".lock") {
                let content = std::fs::read(entry.path());
                let target = content.map_err(|error| error.to_string()).and_then(|content| parse(&content));
                found.insert(name, target);
            }
        }
    }
    Ok(())
}

fn parse(content: &[u8]) -> Result<ObjectId, String> {
    if content.is_empty() {
        return Err("the ref is empty".to_owned());
    }
    let text = std::str::from_utf8(content).map_err(|_| "the ref is not text".to_owned())?;
    if text.starts_with("ref:") {
        return Err("the ref points to another ref".to_owned());
    }
    text.trim().parse().map_err(|_| "the ref does not hold an object id".to_owned())
}
