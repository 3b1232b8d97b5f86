//! Facts of commits, in memory and, for those of run branches, in one file of the workspace.
//!
//! A commit never changes, so its kept facts are never wrong; missing ones are read from the store. The file spares a
//! process the reading of thousands of commits. It has a header with the store's epoch, then a frame for each commit.
//! It is written without a sync, appended to under the workspace's lock, and cut where it is torn.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use crate::checkpoint::records::lock::WorkspaceLock;
use crate::error::{IoContext, Result};
use crate::model::checkpoint::Record;
use crate::model::id::ObjectId;
use crate::sys::fs::durable::open_private;

/// Bytes of an id.
const ID: usize = 20;

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
    /// True if the file was read; it is read once.
    loaded: bool,
    /// Typed ones that may not be in the file.
    unsaved: Vec<ObjectId>,
}

impl CommitCache {
    /// Returns the facts of a commit that was read before.
    pub(crate) fn get(&self, id: &ObjectId) -> Option<&CommitFacts> {
        self.known.get(id)
    }

    /// Remembers the facts of a commit.
    pub(crate) fn put(&mut self, id: ObjectId, said: CommitFacts) {
        if said.record.kind.is_typed() {
            self.unsaved.push(id);
        }
        self.known.insert(id, said);
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
        if std::mem::replace(&mut self.loaded, true) {
            return Ok(());
        }
        let bytes = content(path)?;
        let (frames, _) = frames(&bytes, epoch);
        self.known.reserve(frames.len());
        for frame in frames {
            if let Some((id, said)) = decode(frame) {
                self.known.entry(id).or_insert(said);
            }
        }
        Ok(())
    }

    /// Appends the facts that the file lacks.
    pub(crate) fn save(&mut self, path: &Path, epoch: &str, _lock: &WorkspaceLock) -> Result<()> {
        if self.unsaved.is_empty() {
            return Ok(());
        }
        let bytes = content(path)?;
        let (there, whole) = frames(&bytes, epoch);
        let there: HashSet<&[u8]> = there.into_iter().filter_map(|frame| frame.get(..ID)).collect();
        let mut out = if whole == 0 { header(epoch) } else { Vec::new() };
        for id in &self.unsaved {
            if let Some(said) = self.known.get(id).filter(|_| !there.contains(id.as_bytes().as_slice())) {
                out.extend(encode(id, said));
            }
        }
        let mut file = open_private(path).at("opening", path)?;
        file.set_len(whole as u64).at("cutting", path)?;
        file.seek(SeekFrom::Start(whole as u64)).at("seeking in", path)?;
        file.write_all(&out).at("writing", path)?;
        self.unsaved.clear();
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
    format!("piton commits 1 {}\n", epoch.trim()).into_bytes()
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

/// Encodes id, tree, number of parents, parents and message.
fn encode(id: &ObjectId, said: &CommitFacts) -> Vec<u8> {
    let parents = said.parents.iter().take(usize::from(u8::MAX));
    let mut content = [id.as_bytes().as_slice(), said.tree.as_bytes(), &[parents.len() as u8]].concat();
    parents.for_each(|parent| content.extend_from_slice(parent.as_bytes()));
    content.extend_from_slice(said.record.message().as_bytes());
    let crc = crc32fast::hash(&content).to_le_bytes();
    [crc.as_slice(), &(content.len() as u32).to_le_bytes(), &content].concat()
}

fn decode(frame: &[u8]) -> Option<(ObjectId, CommitFacts)> {
    let id = |at: usize| Some(ObjectId::from_bytes(frame.get(at..at + ID)?.try_into().ok()?));
    let count = usize::from(*frame.get(2 * ID)?);
    let parents: Option<Vec<ObjectId>> = (0..count).map(|n| id(2 * ID + 1 + n * ID)).collect();
    let message = std::str::from_utf8(frame.get(2 * ID + 1 + count * ID..)?).ok()?;
    let record = Arc::new(Record::parse(message)?);
    Some((id(0)?, CommitFacts { tree: id(ID)?, parents: parents?, record }))
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
        filled(1..5).save(&path, "e1", &lock).unwrap();
        filled(3..8).save(&path, "e1", &lock).unwrap();
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
            filled(1..8).save(&path, "e1", &lock).unwrap();
            assert_eq!(read(&path, "e1").known.len(), 7, "{cut}");
        }
        let mut wrong = whole.clone();
        wrong[whole.len() / 2] ^= 1;
        std::fs::write(&path, &wrong).unwrap();
        assert!(read(&path, "e1").known.len() < 7);
        filled(1..3).save(&path, "e2", &lock).unwrap();
        assert_eq!((read(&path, "e2").known.len(), read(&path, "e1").known.len()), (2, 0));
    }
}
