//! The log of one workspace. It holds the checkpoints that were answered and are not durable elsewhere yet.
//!
//! A small checkpoint is one record, appended and synced once: its objects as their loose files hold them, and the ref
//! it moves. The record of a step that no reply names is synced a moment later (`late`). Only then the loose files and the ref are written, without waiting for the disk, so that every process
//! sees them. In idle time they are synced and the log is emptied ([`Store::flush`]). After a power cut all logs are
//! applied before anything else is done ([`Store::recover`]): objects that are missing or torn are written again, refs
//! that did not move are moved.
//!
//! A record is `PTNL`, the length of the body and its CRC-32 (both 32 bits, little-endian), and the body. The body is
//! the old id and the new one (an old one of zeros: none), the ref's name, and the objects, each an id and its bytes.
//! Name and bytes have their lengths before them. Bytes after the last whole record were never answered and are cut
//! off.
//!
//! A process that is killed between the two leaves a record whose ref did not move. The next writer moves it
//! ([`Store::complete`]): it was not answered, but it is whole.
//!
//! *Invariant:* there is one writer at a time, the holder of the workspace's lock. *Invariant:* refs are deleted only
//! after a flush, so that no record brings one back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::late::LateSync;
use super::repository::{LOCAL, Store};
use super::{lazy, loose};
use crate::error::{Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::clock::is_same_boot;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::durable::{replace_file, sync_dir};
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::fs::mark::FileMark;
use crate::sys::writeback::waiting_bytes;

const MAGIC: &[u8; 4] = b"PTNL";
const HEAD: usize = 12;

/// The size above which a log is not read: no writer lets one grow so far.
const CAP: u64 = 1 << 30;

/// The size from which on a log is flushed before anything is appended.
pub const FULL: u64 = 32 << 20;

/// The number of files from which on the whole file system is synced, and not each of them, if little else waits for the disk.
const MANY_FILES: usize = 64;

/// The bytes that are little.
const LITTLE: u64 = 64 << 20;

/// The time that the first process after a power cut waits for others.
const PATIENCE: Duration = Duration::from_mins(1);

/// The marks of all logs and of the directory of workspaces.
pub(super) type LogMarks = Vec<(PathBuf, Option<FileMark>)>;

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The full name of the ref that is moved.
    pub name: String,
    /// The commit that it is moved from; `None` if the ref was new.
    pub old: Option<ObjectId>,
    /// The commit that it is moved to.
    pub new: ObjectId,
    /// Each as its loose file holds it.
    pub objects: Vec<(ObjectId, Vec<u8>)>,
}

impl Record {
    /// Returns the record as it is appended.
    pub fn encode(&self) -> Vec<u8> {
        let size: usize = self.objects.iter().map(|(_, bytes)| bytes.len() + 24).sum();
        let mut body = Vec::with_capacity(HEAD + 48 + self.name.len() + size);
        body.extend_from_slice(&[0; HEAD]);
        let none = [0u8; 20];
        body.extend_from_slice(self.old.as_ref().map_or(&none, |old| old.as_bytes()));
        body.extend_from_slice(self.new.as_bytes());
        put(&mut body, self.name.as_bytes());
        for (id, bytes) in &self.objects {
            body.extend_from_slice(id.as_bytes());
            put(&mut body, bytes);
        }
        let (length, crc) = ((body.len() - HEAD) as u32, crc32fast::hash(&body[HEAD..]));
        body[..4].copy_from_slice(MAGIC);
        body[4..8].copy_from_slice(&length.to_le_bytes());
        body[8..HEAD].copy_from_slice(&crc.to_le_bytes());
        body
    }

    fn decode(mut body: &[u8]) -> Option<Record> {
        let old = take_id(&mut body)?;
        let new = take_id(&mut body)?;
        let name = String::from_utf8(take(&mut body)?.to_vec()).ok()?;
        // The name becomes a path below the repository, so a damaged log must not lead out of it.
        let plain = name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'));
        if !(name.starts_with("refs/") && plain) || name.contains('\0') {
            return None;
        }
        let mut objects = Vec::new();
        while !body.is_empty() {
            objects.push((take_id(&mut body)?, take(&mut body)?.to_vec()));
        }
        Some(Record { name, old: Some(old).filter(|old| *old.as_bytes() != [0; 20]), new, objects })
    }
}

fn put(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    body.extend_from_slice(bytes);
}

fn take_id(body: &mut &[u8]) -> Option<ObjectId> {
    let (id, rest) = body.split_first_chunk::<20>()?;
    *body = rest;
    Some(ObjectId::from_bytes(*id))
}

fn take<'b>(body: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, rest) = body.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *body = rest;
    Some(bytes)
}

/// Returns the length of a record's body and its CRC-32, as its head says; `None` for other bytes.
fn length_and_crc(head: &[u8; HEAD]) -> Option<(u32, u32)> {
    let (magic, numbers) = head.split_first_chunk::<4>()?;
    let (length, crc) = numbers.split_first_chunk::<4>()?;
    let crc = u32::from_le_bytes(*crc.first_chunk()?);
    (magic == MAGIC).then_some((u32::from_le_bytes(*length), crc))
}

/// Returns the whole records of a log, and how many bytes they take; the rest is torn.
pub fn decode(bytes: &[u8]) -> (Vec<Record>, usize) {
    let mut records = Vec::new();
    let mut at = 0;
    while let Some((head, rest)) = bytes[at..].split_first_chunk::<HEAD>()
        && let Some((length, crc)) = length_and_crc(head)
    {
        let body = rest.get(..length as usize).filter(|body| crc32fast::hash(body) == crc);
        let Some(record) = body.and_then(Record::decode) else { break };
        records.push(record);
        at += HEAD + length as usize;
    }
    (records, at)
}

/// An open log. Its caller holds the lock of its workspace.
pub struct Log {
    path: PathBuf,
    /// The open file, at whose end records are appended.
    file: File,
    /// Bytes of whole records.
    length: u64,
    /// The records that a thread syncs.
    late: Arc<LateSync>,
}

impl Log {
    /// Opens a log, or makes it when it is missing; a torn tail is cut off.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn open(path: &Path) -> Result<Log> {
        let options = |create: bool| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(create).mode(0o600);
            options
        };
        let file = match options(false).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = options(true).open(path).at("creating the log", path)?;
                // Without this a power cut could take the name of the log, and its synced records with it.
                sync_dir(path.parent().unwrap_or(Path::new(".")))?;
                file
            }
            Err(error) => return Err(Error::io(error, "opening the log", path)),
        };
        let size = file.metadata().at("reading the log", path)?.len();
        let mut log = Log { path: path.to_owned(), file, length: size, late: Arc::default() };
        if size > 0 {
            let (_, whole) = log.records()?;
            log.length = whole as u64;
            if log.length < size {
                // A torn tail has to go before the next append, or readers would stop at it.
                log.cut(log.length)?;
            }
        }
        Ok(log)
    }

    /// Tells whether no other process has appended to it or emptied it since.
    pub fn is_current(&self) -> bool {
        self.file.metadata().is_ok_and(|facts| facts.len() == self.length)
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether nothing waits in it.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns bytes of what waits in it.
    pub fn length(&self) -> u64 {
        self.length
    }

    fn records(&self) -> Result<(Vec<Record>, usize)> {
        let bytes = read(&self.path)?;
        Ok(decode(&bytes))
    }

    /// Appends a record. With `synced` it survives a power cut from here on, without it a moment later. Returns where it begins, so
    /// that it can be taken back.
    ///
    /// # Errors
    /// `disk-full`, `permission`; the log is as it was then.
    pub fn append(&mut self, record: &Record, synced: bool) -> Result<u64> {
        let bytes = record.encode();
        let begin = self.length;
        let written = self.file.seek(SeekFrom::Start(begin)).and_then(|_| self.file.write_all(&bytes));
        let written =
            written.and_then(|()| if synced { self.sync() } else { self.late.sync_soon(&self.file, &self.path) });
        if let Err(error) = written {
            // The first error is the one to report. A tail that stays is torn, or holds a checkpoint that was never
            // answered.
            let _ = self.cut(begin);
            return Err(Error::io(error, "writing the log", &self.path));
        }
        self.length += bytes.len() as u64;
        Ok(begin)
    }

    /// Makes all records durable.
    fn sync(&self) -> io::Result<()> {
        self.late.sync(&self.file)
    }

    /// Makes the records durable that were appended unsynced, if there are any. Needs no lock.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn sync_late(&self) -> Result<()> {
        self.late.sync_if_due(&self.file).at("syncing the log", &self.path)
    }

    /// Takes back the records from `length` on.
    ///
    /// # Errors
    /// Returns the errors of the system.
    pub fn cut(&mut self, length: u64) -> Result<()> {
        self.file.set_len(length).at("cutting the log", &self.path)?;
        self.length = length;
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(bytes),
        Err(error) => return Err(Error::io(error, "opening the log", path)),
    };
    file.take(CAP).read_to_end(&mut bytes).at("reading the log", path)?;
    Ok(bytes)
}

/// Returns the last whole record of a log. Only the heads of the others are read.
fn last(path: &Path) -> Result<Option<Record>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(error, "opening the log", path)),
    };
    let size = file.metadata().at("reading the log", path)?.len().min(CAP);
    let (mut at, mut found) = (0, None);
    let mut head = [0; HEAD];
    while at + HEAD as u64 <= size {
        file.read_exact_at(&mut head, at).at("reading the log", path)?;
        let length = length_and_crc(&head).map(|(body, _)| HEAD as u64 + u64::from(body));
        let Some(length) = length.filter(|length| at + length <= size) else { break };
        found = Some((at, length));
        at += length;
    }
    let Some((at, length)) = found else { return Ok(None) };
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at).at("reading the log", path)?;
    // A damaged one was never answered, or is reported by `doctor`.
    Ok(decode(&bytes).0.pop())
}

impl Store {
    /// Makes the content of a log durable elsewhere, and empties it.
    ///
    /// # Errors
    /// `disk-full`, `permission`; the log is as it was then.
    pub fn flush(&self, log: &mut Log) -> Result<()> {
        if log.is_empty() {
            return Ok(());
        }
        let (records, _) = log.records()?;
        let mut files: BTreeSet<PathBuf> = BTreeSet::new();
        for record in &records {
            files.extend(record.objects.iter().map(|(id, _)| loose::path_of(self.git_dir(), id)));
            files.insert(self.git_dir().join(&record.name));
        }
        // Files before their directories, and the log is emptied last: until then it can replace each of them.
        // Where much else waits for the disk, syncing all of it takes too long.
        let is_quick = files.len() >= MANY_FILES && waiting_bytes().is_some_and(|bytes| bytes <= LITTLE);
        let is_synced = is_quick && Dir::open_root(self.git_dir())?.sync_file_system()?;
        if !is_synced {
            self.sync_each(&files)?;
        }
        log.cut(0)?;
        log.sync().at("syncing the log", &log.path)?;
        // Everything is durable, so that no sharer has to wait for this log.
        lazy::rest(&self.home.join(self.names.lazy), &log.path);
        Ok(())
    }

    /// Syncs files and the directories above them.
    fn sync_each(&self, files: &BTreeSet<PathBuf>) -> Result<()> {
        loose::sync_files(files)?;
        // The directories up to the repository: each may be new.
        let above = |path: &PathBuf| {
            path.ancestors().skip(1).take_while(|dir| *dir != self.git_dir()).map(PathBuf::from).collect::<Vec<_>>()
        };
        let dirs: BTreeSet<PathBuf> = files.iter().flat_map(above).collect();
        loose::sync_files(&dirs)
    }

    /// Moves the ref of a log's last record, if the writer was killed before it did that. Each writer calls this before
    /// it lists refs, so that only the last record can be so. The caller holds the lock of the log's workspace.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `store-locked`. The record stays, and the next process tries again.
    pub fn complete(&self, path: &Path) -> Result<()> {
        let Some(record) = last(path)? else { return Ok(()) };
        // A ref that cannot be read is damage, which is not to be overwritten here.
        if record.old == Some(record.new) || self.target(&record.name).unwrap_or(Some(record.new)) != record.old {
            return Ok(());
        }
        let _shared = self.lock_shared("completing", PATIENCE)?;
        for (id, bytes) in &record.objects {
            loose::put_back(self.git_dir(), id, bytes)?;
        }
        tracing::info!(name = record.name, "a killed process did not move the ref of its checkpoint");
        self.update_ref(&record.name, record.old, record.new)
    }

    /// Returns the records of all logs, with the marks that show that a log has changed since.
    ///
    /// # Errors
    /// When a log cannot be read.
    pub(super) fn logged(&self) -> Result<(Vec<Record>, LogMarks)> {
        let (workspaces, mut records, mut marks) = (self.home.join("workspaces"), Vec::new(), LogMarks::new());
        marks.push((workspaces.clone(), FileMark::at(&workspaces)?));
        // Without that directory there are no logs.
        for workspace in std::fs::read_dir(&workspaces).into_iter().flatten() {
            let path = workspace.at("listing", &workspaces)?.path().join(self.names.log);
            let mark = FileMark::at(&path)?;
            if mark.is_some_and(|mark| mark.size > 0) {
                records.extend(decode(&read(&path)?).0);
            }
            marks.push((path, mark));
        }
        Ok((records, marks))
    }

    /// Applies all logs below `workspaces`, if this is the first process since the machine was started.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `store-locked`. Nothing is lost by them: the next process tries again.
    pub fn recover(&self, workspaces: &Path, boot: &str) -> Result<()> {
        let mark = self.home.join(self.names.boot);
        // In doubt the logs are applied again, which changes nothing.
        let is_known =
            || std::fs::read_to_string(&mark).is_ok_and(|known| is_same_boot(known.trim(), boot) == Some(true));
        if is_known() {
            return Ok(());
        }
        // Every process passes here before it takes a workspace's lock, so nobody writes to a log now.
        let _lock = FileLock::acquire(&self.home.join("store.lock"), Mode::Exclusive, "recovering", PATIENCE)?;
        // Another process may have recovered while this one waited for the lock.
        if is_known() {
            return Ok(());
        }
        // Both stores are recovered together: one mark tells that it was done.
        if self.names.repository != LOCAL.repository && Store::has_local(&self.home) {
            Store::open_local(&self.home)?.recover_logs(workspaces)?;
        }
        self.recover_logs(workspaces)?;
        // Last: if this process dies before, the next one recovers again.
        replace_file(&mark, format!("{boot}\n").as_bytes())
    }

    /// Applies all logs below `workspaces`. The store lock is held alone.
    fn recover_logs(&self, workspaces: &Path) -> Result<()> {
        let listing = match std::fs::read_dir(workspaces) {
            Ok(listing) => listing.collect::<io::Result<Vec<_>>>().at("listing", workspaces)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io(error, "listing", workspaces)),
        };
        let torn = !lazy::marked(&self.home.join(self.names.lazy))?.is_empty();
        // A torn file would count as the object. Without it a log or the next checkpoint writes the object again.
        self.drop_damaged_objects(torn)?;
        for workspace in listing {
            let path = workspace.path().join(self.names.log);
            if path.is_file() {
                self.apply(&path)?;
            }
        }
        if torn {
            self.drop_torn_refs()?;
        }
        lazy::forget(&self.home.join(self.names.lazy))
    }

    /// Refs that were never synced can be torn: their checkpoints are lost, and their names are free again.
    fn drop_torn_refs(&self) -> Result<()> {
        for entry in self.refs("refs/")?.into_iter().filter(|entry| entry.target.is_err()) {
            let path = self.git_dir().join(&*entry.name);
            tracing::warn!(name = &*entry.name, "a power cut destroyed a checkpoint that was not yet synced to disk");
            std::fs::remove_file(&path).at("removing a torn ref", &path)?;
        }
        Ok(())
    }

    /// Applies a log durably, and empties it.
    fn apply(&self, path: &Path) -> Result<()> {
        let mut log = Log::open(path)?;
        let (records, _) = log.records()?;
        let mut moves: BTreeMap<&str, (Vec<Option<ObjectId>>, ObjectId)> = BTreeMap::new();
        for record in &records {
            for (id, bytes) in &record.objects {
                loose::put_back(self.git_dir(), id, bytes)?;
            }
            let (passed, last) = moves.entry(&record.name).or_insert_with(|| (Vec::new(), record.new));
            passed.extend([record.old, Some(record.new)]);
            *last = record.new;
        }
        for (name, (passed, last)) in moves {
            // A ref that cannot be read counts as missing: it was torn by the power cut.
            let now = self.target(name).unwrap_or(None);
            // A ref that is at another commit was moved after all of these records.
            if now != Some(last) && (now.is_none() || passed.contains(&now)) {
                self.put_ref(name, last)?;
            }
        }
        if !records.is_empty() {
            tracing::info!(checkpoints = records.len(), log = %path.display(), "restored data that a power cut might have destroyed");
        }
        self.flush(&mut log)
    }

    /// Removes unsynced objects that a power cut left empty or torn. Each object is read if a workspace has written
    /// without syncing. They come back from a log, or are written again when a checkpoint needs them.
    fn drop_damaged_objects(&self, read_all: bool) -> Result<()> {
        let objects = self.git_dir().join("objects");
        for dir in std::fs::read_dir(&objects).at("listing", &objects)? {
            let dir = dir.at("listing", &objects)?;
            if dir.file_name().len() != 2 {
                continue;
            }
            for object in std::fs::read_dir(dir.path()).at("listing", dir.path())? {
                let object = object.at("listing", dir.path())?;
                let hex = dir.file_name().to_string_lossy().into_owned() + &object.file_name().to_string_lossy();
                let is_torn = || hex.parse().is_ok_and(|id| loose::is_damaged(&object.path(), &id));
                let empty = object.metadata().is_ok_and(|facts| facts.is_file() && facts.len() == 0);
                if empty || (read_all && is_torn()) {
                    std::fs::remove_file(object.path()).at("removing a damaged object", object.path())?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
