//! Writing the objects of one checkpoint: few as loose files, many as one pack.
//!
//! Objects come from several threads; each compresses its own and only the appending is serialised, so that hashing,
//! compressing and writing overlap without a queue. Under [`MAX_LOOSE`] objects wait in memory and become loose
//! files; from there on everything goes into a pack.
//!
//! For a very large batch ([`LIGHT_FROM`]), compressing would take as long as all the rest, so it is put off. Each
//! thread then appends to a pack of its own. These packs are *light*: their objects are framed and not compressed. They
//! are known by their name and are compressed in idle time ([`super::recompress`]).
//!
//! No pack becomes much longer than 32 MiB ([`PACK_FULL`]), so that writing one anew takes little room.
//!
//! [`PACK_FULL`]: super::repository::PACK_FULL

use std::collections::HashSet;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::deflate::Effort;
use super::log::{self, Log, Record};
use super::loose::MAX_LOOSE;
use super::objects::Objects;
use super::pack::{self, PackWriter, Sealed};
use super::packs::Set;
use super::present::Present;
use super::repository::Store;
use super::stock::BLOCK;
use super::{lazy, loose};
use crate::error::Result;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::sink::ObjectSink;
use crate::sys::fs::space::DiskSpace;

/// The bytes in memory from which on a pack is written, so that memory stays bounded.
const MAX_LOOSE_BYTES: usize = 8 << 20;

/// The number of expected objects from which on the present ones are listed at once, not looked up one by one.
const MANY: usize = 1000;

/// The compressed bytes after which free space is checked again while a pack grows.
const ASK_ROOM: u64 = 16 << 20;

/// A commit to be written; identity and time zone are piton's own.
pub struct NewCommit<'a> {
    /// The root tree; it must be in the batch or in the store.
    pub tree: ObjectId,
    /// The parents in git's order; empty for a root commit.
    pub parents: &'a [ObjectId],
    /// The whole message, its first line and trailers included.
    pub message: &'a str,
    /// Milliseconds since the epoch; git keeps whole seconds.
    pub time_ms: i64,
}

impl NewCommit<'_> {
    /// Returns the content of its object.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("tree {}\n", self.tree);
        for parent in self.parents {
            text.push_str(&format!("parent {parent}\n"));
        }
        let who = format!("piton <piton@localhost> {} +0000", self.time_ms.max(0) / 1000);
        text.push_str(&format!("author {who}\ncommitter {who}\n\n{}", self.message));
        text.into_bytes()
    }
}

/// The amount that a batch wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    /// Objects that were not in the store before.
    pub objects: u64,
    /// Compressed bytes; of loose files their blocks.
    pub bytes: u64,
}

struct Inner {
    /// Everything this batch was given.
    ids: HashSet<ObjectId>,
    /// Waiting to become loose files, not yet compressed.
    waiting: Vec<(ObjectId, ObjectKind, Vec<u8>)>,
    /// Bytes of the contents in `waiting`.
    waiting_bytes: usize,
    /// True if there are too many to be loose files.
    packing: bool,
    /// The compressed bytes at which free space is checked next.
    ask_room_at: u64,
}

/// The landing place of the objects of one checkpoint.
pub struct Landing<'l> {
    /// The workspace's log.
    pub log: &'l mut Log,
    /// The full name of the ref to move.
    pub name: &'l str,
    /// The commit that the ref stands at; `None` if the ref must not exist.
    pub expect: Option<ObjectId>,
    /// The commit that the ref moves to, an object of the batch.
    pub new: ObjectId,
    /// True if it is to survive a power cut at once; else it does after a moment.
    pub synced: bool,
}

/// Objects on their way into the store. Dropped unfinished, it leaves nothing that a ref could name.
pub struct Batch<'s> {
    git_dir: PathBuf,
    objects: &'s Objects,
    /// The packs as they were when the batch began.
    set: Arc<Set>,
    /// The loose objects that were there already, if it was worth listing them.
    present: OnceLock<Present>,
    /// The size of a batch from which on its objects are not compressed yet.
    light_from: u64,
    /// True if packs are not compressed, decided once the batch is large enough.
    light: AtomicBool,
    inner: Mutex<Inner>,
    /// The length from which on a pack is full.
    full: u64,
    /// Packs that no thread appends to at this moment.
    packs: Mutex<Vec<PackWriter>>,
    /// Full packs.
    sealed: Mutex<Vec<Sealed>>,
    /// Compressed bytes.
    bytes: AtomicU64,
}

impl Store {
    /// Starts writing objects.
    ///
    /// # Errors
    /// When the object database cannot be opened.
    pub fn batch(&self) -> Result<Batch<'_>> {
        Batch::new(self)
    }
}

impl<'s> Batch<'s> {
    fn new(store: &'s Store) -> Result<Batch<'s>> {
        // Other processes may have added packs since; after this, misses need not look again.
        let set = store.objects.refresh()?;
        let inner =
            Inner { ids: HashSet::new(), waiting: Vec::new(), waiting_bytes: 0, packing: false, ask_room_at: 0 };
        Ok(Batch {
            git_dir: store.git_dir.clone(),
            objects: &store.objects,
            set,
            present: OnceLock::new(),
            light_from: store.light_from,
            light: AtomicBool::new(false),
            inner: Mutex::new(inner),
            full: store.pack_full,
            packs: Mutex::new(Vec::new()),
            sealed: Mutex::new(Vec::new()),
            bytes: AtomicU64::new(0),
        })
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
        let stats = BatchStats { objects: inner.ids.len() as u64, bytes: self.bytes.into_inner() };
        finish_packs(self.objects, self.packs, self.sealed)?;
        write_loose(&self.git_dir, &inner.waiting)?;
        Ok(stats)
    }

    /// Makes everything durable, and moves the ref, with one wait for the disk where the objects are few.
    ///
    /// # Errors
    /// `conflict` when the ref is not where it was expected, `disk-full`, `permission`. The ref has not moved then.
    pub fn land(self, store: &Store, landing: Landing<'_>) -> Result<BatchStats> {
        let Landing { log, name, expect, new, synced } = landing;
        // A branch's ref stands for more than its newest checkpoint: if the file were torn, all would be lost.
        let synced = synced || expect.is_some();
        let inner = self.inner.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stats = BatchStats { objects: inner.ids.len() as u64, bytes: self.bytes.into_inner() };
        // Before the append: a flush empties the log, and must not run between this record and its ref.
        if log.length() > log::FULL {
            store.flush(log)?;
        }
        let mut objects = Vec::with_capacity(inner.waiting.len());
        finish_packs(self.objects, self.packs, self.sealed)?;
        for (id, kind, content) in &inner.waiting {
            objects.push((*id, loose::compress(*kind, content)?));
        }
        let record = Record { name: name.to_owned(), old: expect, new, objects };
        if synced {
            // This checkpoint may share objects with log records that are not synced yet.
            store.sync_logs(Some(log.path()))?;
        } else {
            lazy::announce(&store.home.join(store.names.lazy), log.path())?;
        }
        // The record comes first: from here on the checkpoint survives, and all below can be made again from it.
        let begin = log.append(&record, synced)?;
        let git_dir = &self.git_dir;
        let written = record.objects.iter().try_for_each(|(id, bytes)| {
            let is_put = store.ready.put(&loose::path_of(git_dir, id), bytes, 0o400);
            if is_put { Ok(()) } else { loose::write_quick(git_dir, id, bytes) }
        });
        if let Err(error) = written.and_then(|()| store.swap_ref(name, expect, new, false)) {
            // The record was not answered; the first error is the one to report.
            let _ = log.cut(begin);
            return Err(error);
        }
        let loose = record.objects.iter().map(|(_, bytes)| (bytes.len() as u64).next_multiple_of(BLOCK));
        Ok(BatchStats { bytes: stats.bytes + loose.sum::<u64>(), ..stats })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked leaves the set and the pack as they were before its object.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses new content on a disk that is nearly full: before the first object, and now and then while a pack grows.
    fn require_room(&self, inner: &mut Inner) -> Result<()> {
        let bytes = self.bytes.load(Ordering::Relaxed);
        if bytes < inner.ask_room_at {
            return Ok(());
        }
        inner.ask_room_at = bytes + ASK_ROOM;
        DiskSpace::at(&self.git_dir)?.require_floor(&self.git_dir)
    }

    /// Keeps an object in memory while there are few; returns `false` when a pack is being written.
    fn keep_waiting(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<bool> {
        let mut inner = self.lock();
        if inner.ids.contains(&id) {
            return Ok(true);
        }
        self.require_room(&mut inner)?;
        inner.ids.insert(id);
        if inner.packing {
            return Ok(false);
        }
        if inner.waiting.len() + 1 < MAX_LOOSE && inner.waiting_bytes + content.len() < MAX_LOOSE_BYTES {
            inner.waiting_bytes += content.len();
            inner.waiting.push((id, kind, content.to_vec()));
            return Ok(true);
        }
        inner.packing = true;
        // The objects kept so far go into the pack too, so that the batch is one pack and not both.
        let waiting = std::mem::take(&mut inner.waiting);
        // Packed without the lock: compressing is slow, and other threads would wait for it.
        drop(inner);
        waiting.iter().try_for_each(|(id, kind, content)| self.pack(*kind, *id, content))?;
        Ok(false)
    }

    /// Compresses an object, and appends it to a pack that no other thread uses.
    fn pack(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()> {
        let light = self.light.load(Ordering::Relaxed);
        let effort = if light { Effort::Stored } else { Effort::Fast };
        let packed = pack::compress(kind, id, content, effort)?;
        self.bytes.fetch_add(packed.bytes.len() as u64, Ordering::Relaxed);
        let mut packs = self.packs.lock().unwrap_or_else(PoisonError::into_inner);
        let free = packs.pop();
        // There may be many light packs at once, since they are compressed into one later; of others there is one.
        let (free, packs) = if light {
            drop(packs);
            (free, None)
        } else {
            (free, Some(packs))
        };
        let mut pack = match free {
            Some(pack) => pack,
            None => PackWriter::create(&self.git_dir, if light { pack::LIGHT } else { pack::DENSE })?,
        };
        pack.append(&packed)?;
        if pack.length() >= self.full {
            // Without the lock: others begin another pack meanwhile.
            drop(packs);
            let sealed = pack.seal()?;
            self.sealed.lock().unwrap_or_else(PoisonError::into_inner).push(sealed);
            return Ok(());
        }
        packs.unwrap_or_else(|| self.packs.lock().unwrap_or_else(PoisonError::into_inner)).push(pack);
        Ok(())
    }
}

impl ObjectSink for Batch<'_> {
    fn contains(&self, id: &ObjectId) -> Result<bool> {
        if self.lock().ids.contains(id) {
            return Ok(true);
        }
        // Packs first: they are in memory, while a loose object costs a system call.
        Ok(self.set.has(id)
            || match self.present.get() {
                Some(present) => present.contains(id),
                None => self.objects.is_loose(id),
            })
    }

    fn expect(&self, objects: usize, bytes: u64) -> Result<()> {
        if objects >= MANY && self.present.get().is_none() && !self.objects.borrows() {
            // If another thread has set it meanwhile, its list is the same.
            let _ = self.present.set(Present::read(&self.git_dir)?);
        }
        if bytes >= self.light_from {
            let room = DiskSpace::at(&self.git_dir)?;
            // Room for both, the light and the compressed, and for others.
            let fits = room.free >= room.floor().saturating_add(bytes.saturating_mul(3));
            self.light.store(fits, Ordering::Relaxed);
        }
        Ok(())
    }

    fn write(&self, kind: ObjectKind, id: ObjectId, content: &[u8]) -> Result<()> {
        if self.keep_waiting(kind, id, content)? {
            return Ok(());
        }
        self.pack(kind, id, content)
    }

    fn write_stream(&self, size: u64, source: &mut dyn Read) -> Result<ObjectId> {
        self.require_room(&mut self.lock())?;
        let id = loose::write_stream(&self.git_dir, size, source)?;
        self.lock().ids.insert(id);
        Ok(id)
    }
}

/// Finishes packs, and adds them to the inventory before a ref names their objects: a pack that disappears later is
/// then noticed.
fn finish_packs(objects: &Objects, packs: Mutex<Vec<PackWriter>>, sealed: Mutex<Vec<Sealed>>) -> Result<()> {
    let packs = packs.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sealed = sealed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if packs.is_empty() && sealed.is_empty() {
        return Ok(());
    }
    pack::finish_all(packs, sealed)?;
    objects.account()
}

fn write_loose(git_dir: &std::path::Path, waiting: &[(ObjectId, ObjectKind, Vec<u8>)]) -> Result<()> {
    let aside = |(id, kind, content): &(ObjectId, ObjectKind, Vec<u8>)| {
        loose::UnsyncedObject::write(git_dir, *id, &loose::compress(*kind, content)?)
    };
    loose::finish(git_dir, waiting.iter().map(aside).collect::<Result<_>>()?)
}
