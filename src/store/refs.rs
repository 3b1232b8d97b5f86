//! Refs: our own reader, which reports broken ones, and compare-and-swap writes.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::packed_refs::PACKED;
use super::ref_name::RefName;
use super::repository::Store;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::clock::file_clock;
use crate::sys::fs::durable::sync_dir;
use crate::sys::fs::mark::FileMark;

/// The age from which on an untouched `.lock` file counts as left over: git holds one for milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause between two looks at it meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A ref, or its fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefEntry {
    /// The full name.
    pub name: RefName,
    /// The object that it names; else the reason why nobody can tell.
    pub target: Result<ObjectId, String>,
}

/// The marks that show a changed listing of refs: one for each listed directory and one for the packed refs. Replacing
/// a ref, as git and piton do it, changes the times of its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMarks {
    marks: Vec<(PathBuf, Option<FileMark>)>,
    /// The moment before they were taken, by the file system's clock in nanoseconds.
    listed: i64,
}

/// The age below which the time of a directory may hide a further change (nanoseconds).
const RACY: u64 = 20_000_000;

/// Returns the mark of a path. A path that cannot be looked at counts as missing, and is reported when it is read.
fn mark(path: &Path) -> Option<FileMark> {
    FileMark::at(path).ok().flatten()
}

impl RefMarks {
    /// Tells whether nothing changed since. A change in the same tick of the file system's clock as an earlier one is
    /// not seen.
    pub fn stand(&self) -> bool {
        self.marks.iter().all(|(path, known)| mark(path) == *known)
    }

    /// Returns true if certainly nothing changed since: neither does a change show, nor could one be hidden.
    pub fn stand_surely(&self) -> bool {
        !self.marks.iter().any(|(_, mark)| self.may_hide(mark.as_ref())) && self.stand()
    }

    /// Returns true if a further change may not show in a mark.
    fn may_hide(&self, mark: Option<&FileMark>) -> bool {
        mark.is_some_and(|mark| mark.mtime.abs_diff(self.listed) <= RACY)
    }

    /// Returns the paths that were looked at.
    pub(super) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.marks.iter().map(|(path, _)| path)
    }

    /// Returns the marks after the caller itself has written or deleted a ref.
    #[must_use]
    pub fn after(&self, git_dir: &Path, name: &str) -> RefMarks {
        let listed = file_clock();
        let mut paths: Vec<PathBuf> = self.marks.iter().map(|(path, _)| path.clone()).collect();
        let above = git_dir.join(name).parent().map(Path::to_owned);
        paths.extend(above.filter(|above| !paths.contains(above)));
        RefMarks { marks: paths.into_iter().map(|path| (path.clone(), mark(&path))).collect(), listed }
    }
}

impl Store {
    /// Returns the refs as [`Store::refs`] does, with the marks that show a later change.
    ///
    /// # Errors
    /// As [`Store::refs`].
    pub fn refs_marked(&self, prefix: &str) -> Result<(Vec<RefEntry>, RefMarks)> {
        let start = prefix.rsplit_once('/').map_or("refs", |(dir, _)| dir);
        let packed = self.git_dir.join(PACKED);
        // Marked before they are listed, so that a change meanwhile is noticed the next time.
        let listed = file_clock();
        let mut marks = vec![(packed.clone(), mark(&packed))];
        let mut pending = vec![self.git_dir.join(start)];
        while let Some(dir) = pending.pop() {
            marks.push((dir.clone(), mark(&dir)));
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(entry.path());
                }
            }
        }
        Ok((self.refs(prefix)?, RefMarks { marks, listed }))
    }

    /// Returns the refs in directories that may have changed since, and the marks that show a later change.
    ///
    /// # Errors
    /// As [`Store::refs`].
    pub(super) fn refs_since(&self, before: &RefMarks) -> Result<(Vec<RefEntry>, RefMarks)> {
        let (listed, packed) = (file_clock(), self.git_dir.join(PACKED));
        let (mut found, mut marks, mut pending) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (path, known) in before.marks.iter().filter(|(path, _)| *path != packed) {
            match mark(path) {
                now if now == *known && !before.may_hide(known.as_ref()) => marks.push((path.clone(), now)),
                _ => pending.push(path.clone()),
            }
        }
        while let Some(dir) = pending.pop() {
            marks.push((dir.clone(), mark(&dir)));
            let name = dir.strip_prefix(&self.git_dir).unwrap_or(&dir).to_string_lossy().into_owned();
            let inner = list(&self.git_dir, &name, &mut found)?.into_iter().map(|inner| self.git_dir.join(inner));
            pending.extend(inner.filter(|inner| !before.marks.iter().any(|(known, _)| known == inner)));
        }
        // Last: a ref that is being packed goes from its directory only when it is here.
        let now = mark(&packed);
        if !before.marks.contains(&(packed.clone(), now)) || before.may_hide(now.as_ref()) {
            for RefEntry { name, target } in self.packed()?.below("refs/") {
                found.entry(name.to_string()).or_insert(target);
            }
        }
        marks.push((packed, now));
        let entries = found.into_iter().map(|(name, target)| RefEntry { name: name.into(), target });
        Ok((entries.collect(), RefMarks { marks, listed }))
    }

    /// Returns all refs whose name begins with `prefix`, by name. Loose ones win over packed ones; lock files are no
    /// refs.
    ///
    /// # Errors
    /// When the directories cannot be listed; a single broken ref is reported in its entry.
    pub fn refs(&self, prefix: &str) -> Result<Vec<RefEntry>> {
        let mut loose = BTreeMap::new();
        let start = prefix.rsplit_once('/').map_or("", |(dir, _)| dir);
        // Before the packed ones: a ref that is being packed goes from here only when it is there.
        collect(&self.git_dir, if start.is_empty() { "refs" } else { start }, &mut loose)?;
        let mut entries = self.packed()?.below(prefix);
        let packed = entries.len();
        for (name, target) in loose.into_iter().filter(|(name, _)| name.starts_with(prefix)) {
            match entries[..packed].binary_search_by(|entry| (*entry.name).cmp(&name)) {
                Ok(at) => entries[at].target = target,
                Err(_) => entries.push(RefEntry { name: name.into(), target }),
            }
        }
        if entries.len() > packed {
            entries.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(entries)
    }

    /// Moves a ref from `expect` (`None`: it must not exist) to `new`, durably.
    ///
    /// The caller holds the workspace lock, under which all of piton's ref writes of a workspace happen. So a `.lock` file
    /// found here is left over from a killed process, or a person's git is at work. It is waited for, then removed.
    ///
    /// # Errors
    /// `conflict` when the ref is not at `expect`; `disk-full`, `permission`.
    pub fn update_ref(&self, name: &str, expect: Option<ObjectId>, new: ObjectId) -> Result<()> {
        self.swap_ref(name, expect, new, true)
    }

    /// As [`Store::update_ref`]; without `synced` it does not wait for the disk.
    pub(super) fn swap_ref(&self, name: &str, expect: Option<ObjectId>, new: ObjectId, synced: bool) -> Result<()> {
        self.remove_stale_lock(name)?;
        let path = self.git_dir.join(name);
        let made = if synced { None } else { Locked::made(self, &path, new) };
        let lock = made.map_or_else(|| Locked::create(&path), Ok)?;
        let now = self.target(name).map_err(|what| damaged_ref(name, &what))?;
        if now != expect {
            return Err(moved(name));
        }
        lock.put(new, synced)
    }

    /// Sets a ref durably, wherever it was before. The caller holds the workspace lock.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn put_ref(&self, name: &str, target: ObjectId) -> Result<()> {
        self.remove_stale_lock(name)?;
        Locked::create(&self.git_dir.join(name))?.put(target, true)
    }

    /// Returns the commit at which a ref stands; `None` where there is no such ref, or it cannot be read.
    ///
    /// # Errors
    /// When packed refs cannot be read.
    pub fn target_of(&self, name: &str) -> Result<Option<ObjectId>> {
        Ok(self.target(name).unwrap_or(None))
    }

    /// Returns where a ref is; `None` when there is none. The error says what is wrong with it.
    pub(super) fn target(&self, name: &str) -> Result<Option<ObjectId>, String> {
        if let Some(target) = loose_target(&self.git_dir.join(name))? {
            return Ok(Some(target));
        }
        self.packed().map_err(|error| error.text())?.target(name).transpose()
    }

    /// Deletes refs, each of which is at its object. The packed refs are written anew at most once. Returns the names of
    /// those that are gone; a ref that was moved meanwhile stays.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `store-damaged`; some refs may be gone by then.
    pub fn delete_refs(&self, refs: &[(String, ObjectId)]) -> Result<Vec<String>> {
        let packed = self.packed()?.targets(refs.iter().map(|(name, _)| name.as_str()));
        let mut entries: HashSet<&str> = HashSet::new();
        for (name, expect) in refs {
            let Some(entry) = packed.get(name.as_str()).cloned() else { continue };
            let own = loose_target(&self.git_dir.join(name)).transpose();
            if own.unwrap_or(entry).map_err(|what| damaged_ref(name, &what))? == *expect {
                entries.insert(name);
            }
        }
        // The packed entry is removed first, or it would show again without the loose file.
        if !entries.is_empty() {
            self.unpack(&entries)?;
        }
        let mut gone = Vec::new();
        for (name, expect) in refs {
            if self.delete_loose(name, *expect, entries.contains(name.as_str()))? {
                gone.push(name.clone());
            }
        }
        Ok(gone)
    }

    /// Deletes the file of a ref. Returns true if the ref is gone: of one without a file, if it `was_packed`.
    fn delete_loose(&self, name: &str, expect: ObjectId, was_packed: bool) -> Result<bool> {
        let path = self.git_dir.join(name);
        let target = || loose_target(&path).map_err(|what| damaged_ref(name, &what));
        if target()?.is_none() {
            return Ok(was_packed);
        }
        self.remove_stale_lock(name)?;
        // As in git: the lock file keeps others from moving the ref.
        let _lock = Locked::create(&path)?;
        if target()? != Some(expect) {
            return Ok(false);
        }
        // Not synced: a ref that a power cut brings back is dropped again.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(error, "deleting the ref", &path))
            }
            _ => Ok(true),
        }
    }

    /// Deletes a ref that is at `expect`.
    ///
    /// # Errors
    /// `conflict` when it is not; `disk-full`, `permission`.
    pub fn delete_ref(&self, name: &str, expect: ObjectId) -> Result<()> {
        match self.delete_refs(&[(name.to_owned(), expect)])?.is_empty() {
            true => Err(moved(name)),
            false => Ok(()),
        }
    }

    /// Waits for the holder of a `.lock` beside the ref, such as an ordinary git, and removes a lock that stays
    /// untouched.
    pub(super) fn remove_stale_lock(&self, name: &str) -> Result<()> {
        let path = self.git_dir.join(format!("{name}.lock"));
        let mut seen = FileMark::at(&path)?;
        let mut since = Instant::now();
        while seen.is_some() && since.elapsed() < PATIENCE {
            std::thread::sleep(LOOK_AGAIN);
            let now = FileMark::at(&path)?;
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
}

/// A ref's lock file, as git makes it; removed unless it becomes the ref.
pub(super) struct Locked {
    /// The file of the ref itself.
    path: PathBuf,
    /// The lock file beside it (`<ref>.lock`).
    lock: PathBuf,
    /// Not yet written; `None` when it holds the target already.
    file: Option<std::fs::File>,
    /// True once the lock file has become the ref.
    put: bool,
}

impl Locked {
    /// Makes a lock file that holds its target from the beginning, if a file is ready for it. It is not synced.
    fn made(store: &Store, path: &Path, target: ObjectId) -> Option<Locked> {
        let lock = lock_of(path);
        let is_put = store.ready.put(&lock, format!("{target}\n").as_bytes(), 0o600);
        is_put.then(|| Locked { path: path.to_owned(), lock, file: None, put: false })
    }

    /// Makes the lock file of the ref at `path`; an error is a `conflict` if there is one.
    pub(super) fn create(path: &Path) -> Result<Locked> {
        let lock = lock_of(path);
        let create = || std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock);
        let file = create().or_else(|error| match lock.parent() {
            Some(dir) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
                create()
            }
            _ => Err(error),
        });
        match file {
            Ok(file) => Ok(Locked { path: path.to_owned(), lock, file: Some(file), put: false }),
            // A git took the lock after the wait above: the caller sees a conflict and tries again.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(moved(&path.to_string_lossy())),
            Err(error) => Err(Error::io(error, "moving the ref", path)),
        }
    }

    /// Puts other content in the place of the locked file, durably.
    pub(super) fn replace(&mut self, content: &[u8]) -> Result<()> {
        let write = |file: &mut std::fs::File| file.write_all(content).and_then(|()| file.sync_all());
        let written = self.file.as_mut().map_or(Ok(()), write);
        written.and_then(|()| std::fs::rename(&self.lock, &self.path)).at("writing", &self.path)?;
        self.put = true;
        self.path.parent().map_or(Ok(()), sync_dir)
    }

    fn put(mut self, target: ObjectId, synced: bool) -> Result<()> {
        let write = |file: &mut std::fs::File| {
            file.write_all(format!("{target}\n").as_bytes())?;
            if synced { file.sync_all() } else { Ok(()) }
        };
        let written = self.file.as_mut().map_or(Ok(()), write);
        written.and_then(|()| std::fs::rename(&self.lock, &self.path)).at("moving the ref", &self.path)?;
        self.put = true;
        let dir = self.path.parent().filter(|_| synced);
        // A new parent directory is synced with the log's flush; it is rarely new.
        dir.map_or(Ok(()), sync_dir)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if !self.put {
            // If it stays, the next writer of the ref removes it.
            let _ = std::fs::remove_file(&self.lock);
        }
    }
}

fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    PathBuf::from(lock)
}

/// Returns where a ref's own file leads; `None` without one. The error says what is wrong with it.
pub(super) fn loose_target(path: &Path) -> Result<Option<ObjectId>, String> {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    match std::fs::read(path) {
        Ok(content) => parse(&content).map(Some),
        Err(error) if matches!(error.kind(), NotFound | IsADirectory | NotADirectory) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn moved(name: &str) -> Error {
    Error::new(Code::Conflict, format!("`{name}` was moved by another process")).hint("try again")
}

/// Adds the refs below a directory.
pub(super) fn collect(git_dir: &Path, dir: &str, found: &mut BTreeMap<String, Result<ObjectId, String>>) -> Result<()> {
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        pending.extend(list(git_dir, &dir, found)?);
    }
    Ok(())
}

/// Adds the refs of one directory, and returns the directories in it. One that is missing has none.
fn list(git_dir: &Path, dir: &str, found: &mut BTreeMap<String, Result<ObjectId, String>>) -> Result<Vec<String>> {
    let (path, mut inner) = (git_dir.join(dir), Vec::new());
    let listing = match std::fs::read_dir(&path) {
        Ok(listing) => listing,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(inner);
        }
        Err(error) => return Err(Error::io(error, "listing", &path)),
    };
    for entry in listing {
        let entry = entry.at("listing", &path)?;
        let name = format!("{dir}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().at("reading the type of", entry.path())?.is_dir() {
            inner.push(name);
        } else if !name.ends_with(".lock") {
            let content = content(&entry.path());
            let target = content.map_err(|error| error.to_string()).and_then(|content| parse(&content));
            found.insert(name, target);
        }
    }
    Ok(inner)
}

/// Returns the content of a ref's file. There may be thousands: a short one, as all are, takes one read.
fn content(path: &Path) -> std::io::Result<Vec<u8>> {
    let (mut file, mut start) = (std::fs::File::open(path)?, [0; 256]);
    let length = file.read(&mut start)?;
    let mut content = start[..length].to_vec();
    if length == start.len() {
        file.read_to_end(&mut content)?;
    }
    Ok(content)
}

/// Returns the id that a ref holds. The error says what is wrong with it.
pub(super) fn parse(content: &[u8]) -> Result<ObjectId, String> {
    if content.is_empty() {
        return Err("the ref is empty".to_owned());
    }
    if let Some(id) = ObjectId::from_hex(content.trim_ascii_end()) {
        return Ok(id);
    }
    let text = std::str::from_utf8(content).map_err(|_| "the ref is not text".to_owned())?;
    if text.starts_with("ref:") {
        return Err("the ref points to another ref".to_owned());
    }
    text.trim().parse().map_err(|_| "the ref does not contain an object id".to_owned())
}

fn damaged_ref(name: &str, what: &str) -> Error {
    Error::new(Code::StoreDamaged, format!("the ref `{name}` cannot be moved: {what}"))
        .hint("run `git fsck --full` in the store")
}
