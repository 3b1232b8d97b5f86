//! Facts of commits, in memory and in one file of the workspace.
//!
//! A commit never changes, so its kept facts are never wrong; missing ones are read from the store. The file spares a
//! process the reading of thousands of commits. It has a header with the store's epoch, then a frame for each commit:
//! the CRC-32 of its content and the content's length (32 bits each, little-endian), and the content. The file is written
//! without a sync, appended to under the workspace's lock, cut where it is torn, and written anew once most of its
//! commits are gone.

use std::collections::hash_map::Entry;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::lazy_record::{KeptRecords, LazyRecord};
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::{IoContext, Result};
use crate::model::binary::{BAD, BinaryReader, put};
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::{IdMap, IdSet, ObjectId};
use crate::sys::fs::durable::{open_private, replace_cache};

/// The number of commits of no use that are always put up with.
const FEW: usize = 256;

/// The usual length of a frame in bytes.
const USUAL: usize = 160;

/// The facts of one commit.
#[derive(Clone)]
pub(crate) struct CommitFacts {
    /// The root tree.
    pub tree: ObjectId,
    /// The parents in git's order.
    pub parents: Vec<ObjectId>,
    /// The record in its message.
    pub record: LazyRecord,
}

/// The facts of all commits that were read or written.
#[derive(Default)]
pub(crate) struct CommitCache {
    /// Every commit that was read or written, by id; a commit never changes.
    known: IdMap<Known>,
    /// The file as it was read.
    kept: Arc<KeptRecords>,
    /// The epoch of what is remembered; `None` as long as the file was not read. It is read once.
    epoch: Option<String>,
    /// Commits that may not be in the file.
    unsaved: Vec<ObjectId>,
    /// The file as this process left it: its length, and the epoch in its header.
    left: Option<(u64, String)>,
}

/// The facts of a commit, wherever they are.
enum Known {
    /// In the file: its frame's content begins at `from`, and its record has an index.
    Kept { from: u32, record: u32 },
    /// Read from the commit itself, or about to be written.
    Read(Box<CommitFacts>),
}

impl CommitCache {
    /// Returns the facts of a commit that was read before.
    pub(crate) fn get(&self, id: &ObjectId) -> Option<CommitFacts> {
        match self.known.get(id)? {
            Known::Read(said) => Some(CommitFacts::clone(said)),
            Known::Kept { from, record } => decode(&self.kept, *from, *record).ok(),
        }
    }

    /// Returns the facts of a commit that was read in this process.
    fn read(&self, id: &ObjectId) -> Option<&CommitFacts> {
        match self.known.get(id)? {
            Known::Read(said) => Some(said),
            Known::Kept { .. } => None,
        }
    }

    /// Remembers the facts of a commit.
    pub(crate) fn put(&mut self, id: ObjectId, said: CommitFacts) {
        if self.known.insert(id, Known::Read(said.into())).is_none() {
            self.unsaved.push(id);
        }
    }

    /// Returns true if the file lacks so `many` commits, or the store has lost objects since it was written.
    pub(crate) fn is_outdated(&self, epoch: &str, many: usize) -> bool {
        self.unsaved.len() >= many || self.epoch.as_ref().is_some_and(|known| known != epoch)
    }

    /// Reads the file at the first call. If the store has lost objects since it was written, only what it says of commits
    /// that `is_there` counts.
    pub(crate) fn load(&mut self, path: &Path, epoch: &str, is_there: &dyn Fn(&ObjectId) -> bool) -> Result<()> {
        if self.epoch.is_some() {
            return Ok(());
        }
        let bytes = content(path)?;
        let Some((written, start)) = epoch_of(&bytes) else {
            self.epoch = Some(epoch.to_owned());
            return Ok(());
        };
        let (is_older, mut whole) = (written != epoch, start);
        self.epoch = Some(written.to_owned());
        self.known.reserve(bytes.len() / USUAL);
        let mut kept = KeptRecords::of(bytes);
        while let Some((frame, next)) = frame(kept.file(), whole) {
            whole = next;
            let Some(id) = id_of(&kept.file()[frame.clone()]).filter(|id| !is_older || is_there(id)) else { continue };
            // One that cannot be read is read from its commit.
            let Ok((from, place)) = record_in(kept.file(), &frame) else { continue };
            if let (Entry::Vacant(free), Ok(record)) = (self.known.entry(id), kept.add(place)) {
                free.insert(Known::Kept { from, record });
            }
        }
        self.left = (whole == kept.file().len() && !is_older).then(|| (whole as u64, epoch.to_owned()));
        self.kept = Arc::new(kept);
        Ok(())
    }

    /// Appends the facts that the file lacks, of commits that may be `kept`. `live` counts the commits that are still of
    /// use: where most are not, or after a change of the epoch, the file is written anew with those that `is_live`.
    pub(crate) fn save(
        &mut self,
        (path, epoch): (&Path, &str),
        (live, is_live): (usize, &dyn Fn(&ObjectId) -> bool),
        kept: &dyn Fn(&ObjectId, &LazyRecord) -> bool,
        _lock: &WorkspaceLock,
    ) -> Result<()> {
        // Commits may be gone on purpose since, and nothing they said may be written down again.
        let is_older = self.epoch.as_ref().is_some_and(|known| known != epoch);
        if is_older || self.known.len() > FEW + 2 * live {
            self.epoch = Some(epoch.to_owned());
            self.known.retain(|id, _| is_live(id));
            let later: IdSet = self
                .unsaved
                .iter()
                .filter(|id| self.read(id).is_some_and(|said| !kept(id, &said.record)))
                .copied()
                .collect();
            self.unsaved.retain(|id| later.contains(id));
            let mut out = header(epoch);
            for id in self.known.keys().filter(|id| !later.contains(*id)) {
                self.get(id).into_iter().for_each(|said| out.extend(encode(id, &said)));
            }
            replace_cache(path, &out)?;
            self.left = Some((out.len() as u64, epoch.to_owned()));
            return Ok(());
        }
        let is_due = |id: &ObjectId| self.read(id).is_none_or(|said| kept(id, &said.record));
        let (due, later): (Vec<ObjectId>, Vec<ObjectId>) = self.unsaved.iter().partition(|id| is_due(id));
        if due.is_empty() {
            return Ok(());
        }
        let mut file = open_private(path).at("opening", path)?;
        let length = file.metadata().at("checking", path)?.len();
        let (mut there, mut whole) = (IdSet::default(), length);
        // Another process may have written it, or a kill have torn it.
        if self.left.as_ref().is_none_or(|left| (left.0, left.1.as_str()) != (length, epoch)) {
            let bytes = content(path)?;
            let (frames, end) = frames(&bytes, epoch);
            there = frames.into_iter().filter_map(|frame| id_of(&bytes[frame])).collect();
            whole = end as u64;
        }
        let mut out = if whole == 0 { header(epoch) } else { Vec::new() };
        for id in due.iter().filter(|id| !there.contains(*id)) {
            self.read(id).into_iter().for_each(|said| out.extend(encode(id, said)));
        }
        self.left = None;
        file.set_len(whole).at("cutting", path)?;
        file.seek(SeekFrom::Start(whole)).at("seeking in", path)?;
        file.write_all(&out).at("writing", path)?;
        self.left = Some((whole + out.len() as u64, epoch.to_owned()));
        self.unsaved = later;
        Ok(())
    }
}

fn content(path: &Path) -> Result<Vec<u8>> {
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        other => other.at("reading", path),
    }
}

/// Returns the first line. It names the kinds in the order by which records name them: a file of other kinds is no file.
fn header(epoch: &str) -> Vec<u8> {
    let kinds = CheckpointKind::ALL.map(CheckpointKind::as_str).join(",");
    format!("piton commits 5 {kinds} {}\n", epoch.trim()).into_bytes()
}

/// Returns the epoch in the first line, and where the frames begin; `None` for a file that another version wrote.
fn epoch_of(bytes: &[u8]) -> Option<(&str, usize)> {
    let start = header("");
    let rest = bytes.strip_prefix(start.trim_ascii_end())?.strip_prefix(b" ")?;
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(&rest[..end]).ok()?, bytes.len() - rest.len() + end + 1))
}

/// Returns the id with which a frame begins.
fn id_of(frame: &[u8]) -> Option<ObjectId> {
    frame.first_chunk().map(|id| ObjectId::from_bytes(*id))
}

/// Returns the places of the contents of all whole frames, and where they end; nothing if the header is not that of this epoch.
fn frames(bytes: &[u8], epoch: &str) -> (Vec<Range<usize>>, usize) {
    let (mut found, start) = (Vec::new(), header(epoch));
    if !bytes.starts_with(&start) {
        return (found, 0);
    }
    let mut at = start.len();
    while let Some((frame, next)) = frame(bytes, at) {
        found.push(frame);
        at = next;
    }
    (found, at)
}

/// Returns the place of the content of the frame at `at`, if it is whole, and where the next one begins.
fn frame(bytes: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (crc, length) = (word(at)?, word(at + 4)? as usize);
    let end = (at + 8).checked_add(length)?;
    let content = bytes.get(at + 8..end)?;
    (crc32fast::hash(content) == crc).then_some((at + 8..end, end))
}

/// Encodes id, tree, parents and record.
fn encode(id: &ObjectId, said: &CommitFacts) -> Vec<u8> {
    let mut content = [id.as_bytes().as_slice(), said.tree.as_bytes()].concat();
    put(&mut content, said.parents.len() as u64);
    said.parents.iter().for_each(|parent| content.extend_from_slice(parent.as_bytes()));
    said.record.encode(&mut content);
    let crc = crc32fast::hash(&content).to_le_bytes();
    [crc.as_slice(), &(content.len() as u32).to_le_bytes(), &content].concat()
}

/// Returns where the content of a frame begins, and the place of its record.
fn record_in(file: &[u8], frame: &Range<usize>) -> Result<(u32, Range<u32>), &'static str> {
    let (from, to) = (u32::try_from(frame.start).map_err(|_| BAD)?, u32::try_from(frame.end).map_err(|_| BAD)?);
    let mut reader = BinaryReader(file.get(frame.clone()).ok_or(BAD)?);
    reader.take(40)?; // its id and its tree
    let parents = usize::try_from(reader.number()?).map_err(|_| BAD)?;
    reader.take(parents.saturating_mul(20))?;
    Ok((from, to - reader.0.len() as u32..to))
}

/// Returns the facts in the frame whose content begins at `from`.
fn decode(kept: &Arc<KeptRecords>, from: u32, record: u32) -> Result<CommitFacts, &'static str> {
    let mut reader = BinaryReader(kept.file().get(from as usize..).ok_or(BAD)?);
    reader.take(20)?; // its id
    let tree = ObjectId::from_bytes(reader.array()?);
    let mut parents = Vec::new();
    for _ in 0..reader.number()? {
        parents.push(ObjectId::from_bytes(reader.array()?));
    }
    Ok(CommitFacts { tree, parents, record: kept.record(record) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::catalog::checkpoint::tests::checkpoint;

    fn filled(numbers: Range<u64>) -> CommitCache {
        let mut commits = CommitCache::default();
        for n in numbers {
            let made = checkpoint(n, CheckpointKind::Completed, "r");
            commits.put(
                made.id,
                CommitFacts { tree: made.tree, parents: vec![made.id; n as usize % 3], record: made.record },
            );
        }
        commits
    }

    fn read(path: &Path, epoch: &str) -> CommitCache {
        let mut commits = CommitCache::default();
        commits.load(path, epoch, &|_| false).unwrap();
        commits
    }

    /// Returns what a cache knows.
    fn all_of(commits: &CommitCache) -> Vec<(ObjectId, CommitFacts)> {
        commits.known.keys().map(|id| (*id, commits.get(id).unwrap())).collect()
    }

    #[test]
    fn what_was_saved_is_read_and_what_is_torn_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commits");
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        let save = |commits: &mut CommitCache, epoch: &str, live: usize| {
            commits.save((&path, epoch), (live, &|_| true), &|_, _| true, &lock)
        };
        save(&mut filled(1..5), "e1", 100).unwrap();
        save(&mut filled(3..8), "e1", 100).unwrap();
        let back = read(&path, "e1");
        assert_eq!(back.known.len(), 7);
        for (id, said) in all_of(&filled(1..8)) {
            let same = back.get(&id).unwrap();
            assert_eq!((&same.record, &same.parents, same.tree), (&said.record, &said.parents, said.tree));
        }
        assert_eq!(read(&path, "e2").known.len(), 0, "another epoch");
        let whole = std::fs::read(&path).unwrap();
        for cut in [1, 100, whole.len() / 2, whole.len() - 30] {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            assert!(read(&path, "e1").known.len() < 7);
            save(&mut filled(1..8), "e1", 100).unwrap();
            assert_eq!(read(&path, "e1").known.len(), 7, "{cut}");
        }
        let mut wrong = whole.clone();
        wrong[whole.len() / 2] ^= 1;
        std::fs::write(&path, &wrong).unwrap();
        assert!(read(&path, "e1").known.len() < 7);
        save(&mut filled(1..3), "e2", 100).unwrap();
        assert_eq!((read(&path, "e2").known.len(), read(&path, "e1").known.len()), (2, 0));
    }

    #[test]
    fn what_one_process_appends_is_read_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commits");
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        let (mut one, mut other) = (read(&path, "e"), read(&path, "e"));
        let add = |commits: &mut CommitCache, n: u64| {
            let (id, said) = all_of(&filled(n..n + 1)).remove(0);
            commits.put(id, said);
            commits.save((&path, "e"), (1000, &|_| true), &|_, _| true, &lock).unwrap();
        };
        for n in 1..20 {
            add(if n % 3 == 0 { &mut other } else { &mut one }, n);
            assert_eq!(read(&path, "e").known.len() as u64, n);
        }
    }

    #[test]
    fn a_file_of_commits_that_are_gone_is_written_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("commits");
        let lock = WorkspaceLock::acquire(dir.path(), "test", std::time::Duration::ZERO).unwrap();
        let mut commits = filled(1..1000);
        let live = filled(1..11).known;
        commits.save((&path, "e"), (999, &|_| true), &|_, _| true, &lock).unwrap();
        commits.save((&path, "e"), (10, &|id| live.contains_key(id)), &|_, _| true, &lock).unwrap();
        assert_eq!((commits.known.len(), read(&path, "e").known.len()), (10, 10));
        for (id, said) in all_of(&filled(1000..1002)) {
            commits.put(id, said);
        }
        commits.save((&path, "e"), (11, &|_| true), &|_, record| record.ordinal != 1001, &lock).unwrap();
        assert_eq!((read(&path, "e").known.len(), commits.unsaved.len()), (11, 1), "one may not be kept yet");
    }
}
