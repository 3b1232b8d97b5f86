//! Writing the objects of one checkpoint: few as loose files, many as one pack.
//!
//! Objects come from several threads; each compresses its own and only the appending is serialised, so that hashing,
//! compressing and writing overlap without a queue. Under [`MAX_LOOSE`] objects wait in memory and become loose
//! files; from there on everything goes into a pack.

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use git2::{Odb, OdbLookupFlags};

use super::log::{self, Log, Record};
use super::pack::{self, PackWriter};
use super::{Store, git_error, layout, lazy, loose, to_oid};
use crate::error::Result;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::sink::ObjectSink;
use crate::sys::room::Room;

/// From this many objects on a pack is written.
pub(super) const MAX_LOOSE: usize = 64;
/// From this many bytes on a pack is written, so that memory stays bounded.
const MAX_LOOSE_BYTES: usize = 8 << 20;

/// How often, in compressed bytes, free space is asked for again while a pack grows.
const ASK_ROOM: u64 = 16 << 20;

/// A commit to be written; identity and time zone are piton's own.
pub struct NewCommit<'a> {
    pub tree: ObjectId,
    pub parents: &'a [ObjectId],
    pub message: &'a str,
    /// Milliseconds since the epoch; git keeps whole seconds.
    pub time_ms: i64,
}

impl NewCommit<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut text = format!("tree {}\n", self.tree);
        for parent in self.parents {
            text.push_str(&format!("parent {parent}\n"));
        }
        let who = format!("piton <piton@localhost> {} +0000", self.time_ms.max(0) / 1000);
        text.push_str(&format!("author {who}\ncommitter {who}\n\n{}", self.message));
        text.into_bytes()
    }
}

/// What a batch wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    pub objects: u64,
    /// Compressed bytes.
    pub bytes: u64,
}

struct Inner {
    /// Everything this batch was given.
    ids: HashSet<ObjectId>,
    /// Waiting to become loose files, not yet compressed.
    waiting: Vec<(ObjectId, ObjectKind, Vec<u8>)>,
    waiting_bytes: usize,
    pack: Option<PackWriter>,
    bytes: u64,
    /// Compressed bytes at which free space is asked for.
    ask_room_at: u64,
}

/// Where the objects of one checkpoint land.
pub struct Landing<'l> {
    /// The workspace's log.
    pub log: &'l mut Log,
    /// The ref to move, from where to where.
    pub name: &'l str,
    pub expect: Option<ObjectId>,
    pub new: ObjectId,
    /// Whether it is to survive a power cut at once.
    pub synced: bool,
}

/// Objects on their way into the store. Dropped unfinished, it leaves nothing that a ref could name.
pub struct Batch<'s> {
    git_dir: PathBuf,
    odb: Odb<'s>,
    inner: Mutex<Inner>,
}

impl<'s> Batch<'s> {
    pub(super) fn new(store: &'s Store) -> Result<Batch<'s>> {
        let odb = store.repo.odb().map_err(git_error)?;
        // Other processes may have added packs since; after this, misses need not look again.
        if layout::packs_changed(&store.git_dir)? != store.packs {
            odb.refresh().map_err(git_error)?;
        }
        let inner =
            Inner { ids: HashSet::new(), waiting: Vec::new(), waiting_bytes: 0, pack: None, bytes: 0, ask_room_at: 0 };
        Ok(Batch { git_dir: store.git_dir.clone(), odb, inner: Mutex::new(inner) })
    }

    /// Adds a commit.
    ///
    /// # Errors
    /// As [`ObjectSink::write`].
    pub fn put_commit(&self, commit: &NewCommit<'_>) -> Result<ObjectId> {
        let content = commit.encode();
        let id = ObjectId::of(ObjectKind::Commit, &content)?;
        self.write(ObjectKind::Commit, id, &content)?;
        Ok(id)
    }

    /// Makes everything durable. Only now may a ref name it.
    ///
    /// # Errors
    /// `disk-full`, `permission`; nothing is named by anything then.
    pub fn finish(self) -> Result<BatchStats> {
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stats = BatchStats { objects: inner.ids.len() as u64, bytes: inner.bytes };
        match inner.pack {
            Some(pack) => drop(pack.finish()?),
            None => write_loose(&self.git_dir, &inner.waiting)?,
        }
        self.odb.refresh().map_err(git_error)?;
        Ok(stats)
    }

    /// Makes everything durable, and moves the ref, with one wait for the disk where the objects are few.
    ///
    /// # Errors
    /// `conflict` when the ref is not where it was expected, `disk-full`, `permission`. The ref has not moved then.
    pub fn land(self, store: &Store, landing: Landing<'_>) -> Result<BatchStats> {
        let Landing { log, name, expect, new, synced } = landing;
        // A branch holds more than its newest checkpoint: torn, all of them would be lost.
        let synced = synced || expect.is_some();
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stats = BatchStats { objects: inner.ids.len() as u64, bytes: inner.bytes };
        if log.length() > log::FULL {
            store.flush(log)?;
        }
        let mut objects = Vec::with_capacity(inner.waiting.len());
        match inner.pack {
            Some(pack) => drop(pack.finish()?),
            None => {
                for (id, kind, content) in &inner.waiting {
                    objects.push((*id, loose::compress(*kind, content)?));
                }
            }
        }
        let record = Record { name: name.to_owned(), old: expect, new, objects };
        if synced {
            // This checkpoint may share objects with records that nobody waited for.
            lazy::sync_logs(&store.home)?;
        } else {
            lazy::announce(&store.home, log.path())?;
        }
        let begin = log.append(&record, synced)?;
        let git_dir = &self.git_dir;
        let written = record.objects.iter().try_for_each(|(id, bytes)| {
            let is_put = store.ready.put(&loose::path_of(git_dir, id), bytes, 0o400);
            if is_put { Ok(()) } else { loose::write_quick(git_dir, id, bytes) }
        });
        if let Err(error) = written.and_then(|()| store.swap_ref(name, expect, new, false)) {
            // Nobody was told of it; the first error is the one to tell.
            let _ = log.cut(begin);
            return Err(error);
        }
        if record.objects.is_empty() {
            // A pack is found only by looking anew.
            self.odb.refresh().map_err(git_error)?;
        }
        Ok(stats)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked leaves the set and the pack as they were before its object.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses new content on a disk that is nearly full: before the first object, and now and then while a pack grows.
    fn require_room(&self, inner: &mut Inner) -> Result<()> {
        if inner.bytes < inner.ask_room_at {
            return Ok(());
        }
        inner.ask_room_at = inner.bytes + ASK_ROOM;
        Room::at(&self.git_dir)?.require_floor(&self.git_dir)
    }

    /// Keeps an object in memory while there are few; `false` when a pack is being written.
    fn keep_waiting(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<bool> {
        let mut inner = self.lock();
        if inner.ids.contains(&id) {
            return Ok(true);
        }
        self.require_room(&mut inner)?;
        inner.ids.insert(id);
        if inner.pack.is_some() {
            return Ok(false);
        }
        if inner.waiting.len() + 1 < MAX_LOOSE && inner.waiting_bytes + content.len() < MAX_LOOSE_BYTES {
            inner.waiting_bytes += content.len();
            inner.waiting.push((id, kind, content.to_vec()));
            return Ok(true);
        }
        let mut pack = PackWriter::create(&self.git_dir)?;
        for (id, kind, content) in std::mem::take(&mut inner.waiting) {
            let packed = pack::compress(kind, id, &content)?;
            inner.bytes += packed.bytes.len() as u64;
            pack.append(&packed)?;
        }
        inner.pack = Some(pack);
        Ok(false)
    }
}

impl ObjectSink for Batch<'_> {
    fn contains(&self, id: &ObjectId) -> Result<bool> {
        if self.lock().ids.contains(id) {
            return Ok(true);
        }
        Ok(self.odb.exists_ext(to_oid(id), OdbLookupFlags::NO_REFRESH))
    }

    fn write(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()> {
        if self.keep_waiting(kind, id, content)? {
            return Ok(());
        }
        let packed = pack::compress(kind, id, content)?;
        let mut inner = self.lock();
        inner.bytes += packed.bytes.len() as u64;
        match inner.pack.as_mut() {
            Some(pack) => pack.append(&packed),
            None => Ok(()),
        }
    }

    fn write_stream(&self, size: u64, source: &mut dyn Read) -> Result<ObjectId> {
        self.require_room(&mut self.lock())?;
        let id = loose::write_stream(&self.git_dir, size, source)?;
        self.lock().ids.insert(id);
        Ok(id)
    }
}

fn write_loose(git_dir: &std::path::Path, waiting: &[(ObjectId, ObjectKind, Vec<u8>)]) -> Result<()> {
    let aside = |(id, kind, content): &(ObjectId, ObjectKind, Vec<u8>)| {
        loose::Pending::write(git_dir, *id, &loose::compress(*kind, content)?)
    };
    loose::finish(git_dir, waiting.iter().map(aside).collect::<Result<_>>()?)
}
