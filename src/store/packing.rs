//! Packs of bounded length, written one after the other, whose objects are packed against each other.

use std::time::Duration;

use super::deflate::Effort;
use super::deltas::{self, Plain};
use super::pack::{self, PackWriter, Packed};
use super::repository::Store;
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::lock::FileLock;
use crate::sys::fs::space::DiskSpace;
use crate::sys::interrupt::Interrupt;

/// The bytes of content that are packed against each other at once.
const BATCH: u64 = 16 << 20;

/// The size from which on an object is compressed by itself.
const LARGE: usize = 4 << 20;

/// The time that a new pack waits for a process that deletes objects.
const PATIENCE: Duration = Duration::from_secs(5);

/// The bytes that an index has for each object, and beside them.
const INDEXED: (u64, u64) = (28, 1072);

/// A finished pack.
pub(super) struct Made {
    /// Its name.
    pub name: String,
    /// Its objects.
    pub ids: Vec<ObjectId>,
    /// The bytes of its files.
    pub bytes: u64,
}

/// A pack that is being written, and the objects that wait for it.
pub(super) struct Packing {
    /// The beginning of its name.
    name: &'static str,
    /// The greatest length. One object may be longer.
    most: u64,
    writer: Option<PackWriter>,
    /// Keeps others from taking the unfinished pack for a leftover. Dropped after it.
    shared: Option<FileLock>,
    /// Objects that wait to be packed against each other.
    waiting: Vec<Plain>,
    /// The bytes of their contents.
    waiting_bytes: u64,
    /// The first entries of the next pack. It is not begun while the caller acts on a finished one, since it would share
    /// the store lock that the caller may want alone.
    behind: Vec<Packed>,
    /// The objects in the pack.
    ids: Vec<ObjectId>,
}

impl Packing {
    /// Makes nothing yet; `name` is what the names of the packs begin with.
    pub(super) fn new(name: &'static str, most: u64) -> Packing {
        let (waiting, behind, ids) = (Vec::new(), Vec::new(), Vec::new());
        Packing { name, most, writer: None, shared: None, waiting, waiting_bytes: 0, behind, ids }
    }

    /// Adds an object. Returns the pack that was finished before it, if it does not fit into that any more.
    ///
    /// # Errors
    /// `shutting-down` when `control` stopped it, `disk-full`, `permission`; nothing unfinished stays.
    pub(super) fn add(&mut self, store: &Store, plain: Plain, control: Interrupt<'_>) -> Result<Option<Made>> {
        if plain.content.len() >= LARGE {
            let packed = pack::compress(plain.kind, plain.id, &plain.content, Effort::Small)?;
            return self.append(store, vec![packed]);
        }
        self.waiting_bytes += plain.content.len() as u64;
        self.waiting.push(plain);
        if self.waiting_bytes >= BATCH.min(self.most) { self.pack_waiting(store, control) } else { Ok(None) }
    }

    /// Adds entries as they are. A delta among them is on another one of them.
    ///
    /// # Errors
    /// As [`Packing::add`].
    pub(super) fn append(&mut self, store: &Store, packed: Vec<Packed>) -> Result<Option<Made>> {
        let behind = std::mem::take(&mut self.behind);
        self.write(store, behind)?;
        let bytes: u64 = packed.iter().map(|packed| packed.bytes.len() as u64).sum();
        if self.writer.as_ref().is_some_and(|writer| writer.length() + bytes > self.most) {
            self.behind = packed;
            return self.finish(store);
        }
        self.write(store, packed)?;
        Ok(None)
    }

    fn write(&mut self, store: &Store, packed: Vec<Packed>) -> Result<()> {
        if packed.is_empty() {
            return Ok(());
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                DiskSpace::at(&store.git_dir)?.require_floor(&store.git_dir)?;
                self.shared = Some(store.lock_shared("packing", PATIENCE)?);
                self.writer.insert(PackWriter::create(&store.git_dir, self.name)?)
            }
        };
        for packed in packed {
            if !writer.contains(&packed.id) {
                writer.append(&packed)?;
                self.ids.push(packed.id);
            }
        }
        Ok(())
    }

    /// Finishes what was added. Called until it returns `None`.
    ///
    /// # Errors
    /// As [`Packing::add`].
    pub(super) fn end(&mut self, store: &Store, control: Interrupt<'_>) -> Result<Option<Made>> {
        match self.pack_waiting(store, control)? {
            Some(made) => Ok(Some(made)),
            None => {
                let behind = std::mem::take(&mut self.behind);
                self.write(store, behind)?;
                self.finish(store)
            }
        }
    }

    fn pack_waiting(&mut self, store: &Store, control: Interrupt<'_>) -> Result<Option<Made>> {
        self.waiting_bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(None);
        }
        match deltas::packed(waiting, control)? {
            Some(packed) => self.append(store, packed),
            None => Err(Error::new(Code::ShuttingDown, "packing was stopped")),
        }
    }

    fn finish(&mut self, store: &Store) -> Result<Option<Made>> {
        let Some(writer) = self.writer.take() else { return Ok(None) };
        let ids = std::mem::take(&mut self.ids);
        let bytes = writer.length() + 20 + INDEXED.0 * ids.len() as u64 + INDEXED.1;
        let name = writer.finish()?;
        store.objects.account()?;
        self.shared = None;
        Ok(Some(Made { name, ids, bytes }))
    }
}
