//! Facts of commits, in memory and in one file of the workspace.
//!
//! A commit never changes, so its kept facts are never wrong; missing ones are read from the store. The file spares a
//! process the reading of thousands of commits. It has a header with the store's epoch, then a frame for each commit:
//! the CRC-32 of its content and the content's length (32 bits each, little-endian), and the content. The file is written
//! without a sync, appended to under the workspace's lock, cut where it is torn, and written anew once most of its
//! commits are gone.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::{IoContext, Result};
use crate::model::binary::{BAD, BinaryReader, put, put_bytes, put_option};
use crate::model::checkpoint::{CheckpointKind, Record, parse_class};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::{open_private, replace_cache};

/// The number of commits of no use that are always put up with.
const FEW: usize = 256;

/// The facts of one commit.
#[derive(Clone)]
pub(crate) struct CommitFacts {
    /// The root tree.
    pub tree: ObjectId,
    /// The parents in git's order.
    pub parents: Vec<ObjectId>,
    /// The record in its message.
    pub record: Arc<Record>,
}

/// The facts of all commits that were read or written.
#[derive(Default)]
pub(crate) struct CommitCache {
    /// Every commit that was read or written, by id; a commit never changes.
    known: HashMap<ObjectId, CommitFacts>,
    /// The epoch of what is remembered; `None` as long as the file was not read. It is read once.
    epoch: Option<String>,
    /// Commits that may not be in the file.
    unsaved: Vec<ObjectId>,
    /// The file as this process left it: its length, and the epoch in its header.
    left: Option<(u64, String)>,
}

impl CommitCache {
    /// Returns the facts of a commit that was read before.
    pub(crate) fn get(&self, id: &ObjectId) -> Option<&CommitFacts> {
        self.known.get(id)
    }

    /// Remembers the facts of a commit.
    pub(crate) fn put(&mut self, id: ObjectId, said: CommitFacts) {
        if self.known.insert(id, said).is_none() {
            self.unsaved.push(id);
        }
    }

    /// Returns the number of commits that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns the number of commits that the file lacks.
    pub(crate) fn unsaved(&self) -> usize {
        self.unsaved.len()
    }

    /// Reads the file at the first call. A file of another epoch is ignored: the store has lost objects since.
    pub(crate) fn load(&mut self, path: &Path, epoch: &str) -> Result<()> {
        if self.epoch.is_some() {
            return Ok(());
        }
        self.epoch = Some(epoch.to_owned());
        let bytes = content(path)?;
        let (frames, whole) = frames(&bytes, epoch);
        self.known.reserve(frames.len());
        for frame in frames {
            if let Ok((id, said)) = decode(frame) {
                self.known.entry(id).or_insert(said);
            }
        }
        self.left = (whole == bytes.len()).then(|| (whole as u64, epoch.to_owned()));
        Ok(())
    }

    /// Appends the facts that the file lacks, of commits that may be `kept`. `live` counts the commits that are still of
    /// use: where most are not, or after a change of the epoch, the file is written anew with those that `is_live`.
    pub(crate) fn save(
        &mut self,
        (path, epoch): (&Path, &str),
        (live, is_live): (usize, &dyn Fn(&ObjectId) -> bool),
        kept: &dyn Fn(&ObjectId, &Record) -> bool,
        _lock: &WorkspaceLock,
    ) -> Result<()> {
        // Commits may be gone on purpose since, and nothing they said may be written down again.
        let is_older = self.epoch.as_ref().is_some_and(|known| known != epoch);
        if is_older || self.known.len() > FEW + 2 * live {
            self.epoch = Some(epoch.to_owned());
            self.known.retain(|id, _| is_live(id));
            self.unsaved.retain(|id| self.known.get(id).is_some_and(|said| !kept(id, &said.record)));
            let later: HashSet<&ObjectId> = self.unsaved.iter().collect();
            let mut out = header(epoch);
            let now = self.known.iter().filter(|(id, _)| !later.contains(id));
            now.for_each(|(id, said)| out.extend(encode(id, said)));
            replace_cache(path, &out)?;
            self.left = Some((out.len() as u64, epoch.to_owned()));
            return Ok(());
        }
        let is_due = |id: &ObjectId| self.known.get(id).is_none_or(|said| kept(id, &said.record));
        let (due, later): (Vec<ObjectId>, Vec<ObjectId>) = self.unsaved.iter().partition(|id| is_due(id));
        if due.is_empty() {
            return Ok(());
        }
        let mut file = open_private(path).at("opening", path)?;
        let length = file.metadata().at("looking at", path)?.len();
        let (mut there, mut whole) = (HashSet::new(), length);
        // Another process may have written it, or a kill have torn it.
        if self.left.as_ref().is_none_or(|left| (left.0, left.1.as_str()) != (length, epoch)) {
            let bytes = content(path)?;
            let (frames, end) = frames(&bytes, epoch);
            there = frames
                .into_iter()
                .filter_map(|frame| frame.first_chunk().map(|id| ObjectId::from_bytes(*id)))
                .collect();
            whole = end as u64;
        }
        let mut out = if whole == 0 { header(epoch) } else { Vec::new() };
        for id in due.iter().filter(|id| !there.contains(*id)) {
            self.known.get(id).into_iter().for_each(|said| out.extend(encode(id, said)));
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

fn header(epoch: &str) -> Vec<u8> {
    format!("piton commits 2 {}\n", epoch.trim()).into_bytes()
}

/// Returns the contents of all whole frames, and where they end; nothing if the header is not that of this epoch.
fn frames<'b>(bytes: &'b [u8], epoch: &str) -> (Vec<&'b [u8]>, usize) {
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

/// Returns the frame at `at`, if it is whole, and where the next one begins.
fn frame(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let (crc, length) = (word(at)?, word(at + 4)? as usize);
    let end = (at + 8).checked_add(length)?;
    let content = bytes.get(at + 8..end)?;
    (crc32fast::hash(content) == crc).then_some((content, end))
}

/// Encodes id, tree, parents and record.
fn encode(id: &ObjectId, said: &CommitFacts) -> Vec<u8> {
    let mut content = [id.as_bytes().as_slice(), said.tree.as_bytes()].concat();
    put(&mut content, said.parents.len() as u64);
    said.parents.iter().for_each(|parent| content.extend_from_slice(parent.as_bytes()));
    let record = &*said.record;
    put_bytes(&mut content, record.kind.as_str().as_bytes());
    [record.ordinal, record.files, record.bytes, record.skipped]
        .into_iter()
        .for_each(|number| put(&mut content, number));
    for text in [&record.workspace, &record.run, &record.reason, &record.time] {
        put_bytes(&mut content, text.as_bytes());
    }
    for text in [&record.turn, &record.codon_id, &record.codon_name] {
        put_option(&mut content, text.as_deref());
    }
    content.push(u8::from(record.duration_ms.is_some()));
    record.duration_ms.into_iter().for_each(|duration| put(&mut content, duration));
    content.push(u8::from(record.pinned));
    put(&mut content, record.effects.len() as u64);
    record.effects.iter().for_each(|class| put_bytes(&mut content, class.as_str().as_bytes()));
    put(&mut content, record.flags.len() as u64);
    record.flags.iter().for_each(|flag| put_bytes(&mut content, flag.as_bytes()));
    let crc = crc32fast::hash(&content).to_le_bytes();
    [crc.as_slice(), &(content.len() as u32).to_le_bytes(), &content].concat()
}

/// Returns the inverse of [`encode`].
fn decode(frame: &[u8]) -> Result<(ObjectId, CommitFacts), &'static str> {
    let mut reader = BinaryReader(frame);
    let (id, tree) = (ObjectId::from_bytes(reader.array()?), ObjectId::from_bytes(reader.array()?));
    let mut parents = Vec::new();
    for _ in 0..reader.number()? {
        parents.push(ObjectId::from_bytes(reader.array()?));
    }
    let kind = CheckpointKind::parse(reader.str()?).ok_or(BAD)?;
    let (ordinal, files, bytes, skipped) = (reader.number()?, reader.number()?, reader.number()?, reader.number()?);
    let (workspace, run, reason, time) = (reader.text()?, reader.text()?, reader.text()?, reader.text()?);
    let (turn, codon_id, codon_name) = (reader.option()?, reader.option()?, reader.option()?);
    let duration_ms = if reader.flag()? { Some(reader.number()?) } else { None };
    let pinned = reader.flag()?;
    let mut effects = Vec::new();
    for _ in 0..reader.number()? {
        effects.push(parse_class(reader.str()?).ok_or(BAD)?);
    }
    let mut flags = Vec::new();
    for _ in 0..reader.number()? {
        flags.push(reader.text()?);
    }
    let record = Record {
        kind,
        ordinal,
        workspace,
        run,
        turn,
        codon_id,
        codon_name,
        reason,
        time,
        duration_ms,
        effects,
        files,
        bytes,
        skipped,
        flags,
        pinned,
    };
    Ok((id, CommitFacts { tree, parents, record: Arc::new(record) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::catalog::checkpoint::tests::checkpoint;
    use crate::model::checkpoint::CheckpointKind;

    fn filled(numbers: std::ops::Range<u64>) -> CommitCache {
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
        commits.load(path, epoch).unwrap();
        commits
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
        for (id, said) in &filled(1..8).known {
            let same = back.get(id).unwrap();
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
            let (id, said) = filled(n..n + 1).known.into_iter().next().unwrap();
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
        for (id, said) in filled(1000..1002).known {
            commits.put(id, said);
        }
        commits.save((&path, "e"), (11, &|_| true), &|_, record| record.ordinal != 1001, &lock).unwrap();
        assert_eq!((read(&path, "e").known.len(), commits.unsaved()), (11, 1), "one may not be kept yet");
    }
}
