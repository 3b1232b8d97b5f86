//! The objects that the store holds, each with its best copy, and the bytes that every copy takes.
//!
//! An object may stand in several packs and in a loose file. The best copy is the one that stays; the others are
//! surplus, and so is every copy of an object that nothing reaches.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::index::PackEntry;
use super::mark::{Charges, Marks};
use super::pack;
use super::packs::Pack;
use super::repository::Store;
use super::{derive, loose};
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::sync_dir;
use crate::sys::interrupt::{Flow, Interrupt};

/// The size from which on an object stays as it is.
pub(super) const HUGE: u64 = 64 << 20;

/// The bytes that a file takes at least on most file systems: one block.
pub(super) const BLOCK: u64 = 4096;

/// The bytes that an index has for each object.
const INDEXED: u64 = 28;

/// The bytes that a pack and its index have beside their objects.
const FRAME: u64 = 1104;

/// A pack, and what of it is of use.
pub(super) struct StockPack {
    /// The pack.
    pub pack: Arc<Pack>,
    /// Bytes of its files.
    pub length: u64,
    /// The number of best copies in it.
    pub best: usize,
    /// The bytes of these.
    pub best_bytes: u64,
    /// True once it was removed.
    pub is_gone: bool,
    /// True if somebody has asked to keep it, as git does it: by a file beside it.
    pub is_kept: bool,
}

impl StockPack {
    fn new(pack: &Arc<Pack>) -> StockPack {
        let is_kept = ["keep", "promisor"].iter().any(|kind| pack.stem.with_extension(kind).exists());
        let length = pack.pack.size + pack.idx.map_or(0, |idx| idx.size);
        StockPack { pack: Arc::clone(pack), length, best: 0, best_bytes: 0, is_gone: false, is_kept }
    }

    /// Returns true if it may be written anew or removed.
    pub(super) fn may_change(&self) -> bool {
        !self.is_gone && !self.is_kept
    }

    /// Returns true if its objects are packed against each other.
    pub(super) fn is_long(&self) -> bool {
        self.pack.name().starts_with(pack::LONG)
    }

    /// Returns true if its objects are not compressed yet.
    pub(super) fn is_light(&self) -> bool {
        self.pack.name().starts_with(pack::LIGHT)
    }

    /// Returns the bytes that are of no use.
    pub(super) fn surplus(&self) -> u64 {
        self.length.saturating_sub(self.best_bytes + FRAME)
    }
}

/// The best copy of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Best {
    /// Its pack, by its place in the stock; `None` for a loose file.
    pub pack: Option<u32>,
    /// The bytes that it takes there.
    pub bytes: u64,
}

/// Everything that the store holds, as of one moment.
pub(super) struct Stock {
    /// The packs of the store itself, the best first.
    pub packs: Vec<StockPack>,
    /// The best copy of each marked object.
    pub best: HashMap<ObjectId, Best>,
    /// The loose objects, each with the bytes that its file takes.
    pub loose: BTreeMap<ObjectId, u64>,
    /// The packs that were examined, each with the answer of [`Stock::examine`].
    sound: HashMap<u32, bool>,
}

impl Stock {
    /// Looks at everything that `store` holds, and chooses the best copy of each object of `marks`.
    ///
    /// # Errors
    /// When packs or loose objects cannot be listed.
    pub(super) fn of(store: &Store, marks: &Marks) -> Result<Stock> {
        let set = store.objects.look_again()?;
        let dir = store.git_dir.join("objects/pack");
        let ours = set.packs.iter().filter(|pack| pack.stem.parent() == Some(&dir));
        let mut packs: Vec<StockPack> = ours.map(StockPack::new).collect();
        // Long-lasting packs first, light ones last. Of two long-lasting ones the newer one: a killed round has left both.
        packs.sort_by_key(|pack| {
            let newest = if pack.is_long() { pack.pack.pack.mtime } else { 0 };
            (!pack.is_kept, !pack.is_long(), pack.is_light(), Reverse(newest), Reverse(pack.length))
        });
        let mut best: HashMap<ObjectId, Best> = HashMap::new();
        for (at, stock) in packs.iter_mut().enumerate() {
            for (entry, end) in spans(&stock.pack) {
                let (id, bytes) = (entry.id, stored(&entry, end));
                if marks.contains(&id) && !stock.pack.bad.contains(&id) && !best.contains_key(&id) {
                    best.insert(id, Best { pack: Some(at as u32), bytes });
                    stock.best += 1;
                    stock.best_bytes += bytes;
                }
            }
        }
        let mut found = BTreeMap::new();
        for id in loose::list(&store.git_dir)? {
            let path = loose::path_of(&store.git_dir, &id);
            // One that went meanwhile was damaged.
            let Ok(facts) = path.metadata() else { continue };
            let bytes = facts.len().div_ceil(BLOCK) * BLOCK;
            found.insert(id, bytes);
            if marks.contains(&id) {
                best.entry(id).or_insert(Best { pack: None, bytes });
            }
        }
        Ok(Stock { packs, best, loose: found, sound: HashMap::new() })
    }

    /// Notes that a new pack of the store holds the best copies of `moved`. Returns the packs that are of no use any more, and
    /// the loose objects.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub(super) fn moved(&mut self, store: &Store, name: &str, moved: &[ObjectId]) -> Result<(Vec<u32>, Vec<ObjectId>)> {
        let set = store.objects.refresh()?;
        let Some(pack) = set.packs.iter().find(|pack| pack.name() == name) else {
            return Err(Error::new(Code::StoreDamaged, format!("the new pack {name} is gone")));
        };
        // Packs are named by their bytes: the same objects packed once more make the same pack.
        let is_same = |old: &StockPack| !old.is_gone && old.pack.name() == name;
        let new = self.packs.iter().position(is_same).unwrap_or(self.packs.len()) as u32;
        if new as usize == self.packs.len() {
            self.packs.push(StockPack::new(pack));
        }
        let sizes: HashMap<ObjectId, u64> =
            spans(pack).into_iter().map(|(entry, end)| (entry.id, stored(&entry, end))).collect();
        let (mut useless, mut loose) = (BTreeSet::new(), Vec::new());
        for id in moved {
            let bytes = sizes.get(id).copied().unwrap_or_default();
            if let Some(Best { pack: Some(at), bytes }) = self.best.insert(*id, Best { pack: Some(new), bytes }) {
                let old = &mut self.packs[at as usize];
                old.best -= 1;
                old.best_bytes -= bytes;
                useless.insert(at);
            }
            let stock = &mut self.packs[new as usize];
            stock.best += 1;
            stock.best_bytes += bytes;
            loose.extend(self.loose.contains_key(id).then_some(*id));
        }
        useless.retain(|at| self.packs[*at as usize].best == 0 && self.packs[*at as usize].may_change());
        Ok((useless.into_iter().collect(), loose))
    }

    /// Returns true if it holds an object that is not marked.
    pub(super) fn has_garbage(&self, marks: &Marks) -> bool {
        let is_garbage = |id: &ObjectId| !marks.contains(id);
        self.loose.keys().any(is_garbage)
            || self.packs.iter().any(|pack| pack.pack.index.entries().any(|entry| is_garbage(&entry.id)))
    }

    /// Adds up what everything takes.
    pub(super) fn bytes(&self) -> u64 {
        self.packs.iter().map(|pack| pack.length).chain(self.loose.values().copied()).sum()
    }

    /// Returns true if a pack holds whole each object that it counts for. If its checksums say otherwise, each of these is read,
    /// and what the pack does not hold whole is copied out ([`Store::copy_out`]). That is done for objects that nothing reaches
    /// too: a new checkpoint may take them for stored. A pack is examined once. One that cannot be read is not sound.
    ///
    /// # Errors
    /// `disk-full`, `permission`; `shutting-down` as soon as `control` says so.
    pub(super) fn examine(&mut self, at: u32, store: &Store, control: Interrupt<'_>) -> Result<bool> {
        if let Some(known) = self.sound.get(&at) {
            return Ok(*known);
        }
        let pack = &self.packs[at as usize].pack;
        let path = pack.stem.with_extension("pack");
        let bad = std::fs::File::open(&path).and_then(|file| derive::missing(&file, pack.pack.size, &pack.index));
        let mut is_sound = bad.is_ok();
        match bad {
            Err(error) => tracing::warn!(%error, path = %path.display(), "a pack cannot be examined"),
            Ok(bad) if bad.is_empty() => {}
            // A delta on a damaged object has a checksum of its own that is right.
            Ok(_) => {
                for entry in pack.index.entries() {
                    if control() == Flow::Stop {
                        return Err(Error::new(Code::ShuttingDown, "looking for damage was stopped"));
                    }
                    if pack.find(&entry.id).is_some() && !store.objects.proves_in(pack, &entry) {
                        store.copy_out(&entry.id)?;
                        is_sound = false;
                    }
                }
            }
        }
        self.sound.insert(at, is_sound);
        Ok(is_sound)
    }

    /// Returns the packs whose index lists an object, even if that copy is damaged.
    pub(super) fn holders(&self, id: &ObjectId) -> Vec<u32> {
        let holds = |pack: &StockPack| !pack.is_gone && pack.pack.index.find(id).is_some();
        (0..).zip(&self.packs).filter(|(_, pack)| holds(pack)).map(|(at, _)| at).collect()
    }

    /// Returns true if a pack was examined that is not sound.
    pub(super) fn has_damage(&self) -> bool {
        self.sound.values().any(|is_sound| !is_sound)
    }
}

impl Store {
    /// Copies an object out of a damaged pack into a loose file, and notes it for the next writer, who then counts the copy of
    /// the pack as damaged. Until then, a delta could be read with the help of another copy of the damaged object below it.
    fn copy_out(&self, id: &ObjectId) -> Result<()> {
        match self.objects.read(id, HUGE) {
            Ok((Some(kind), content)) => {
                loose::put_back(&self.git_dir, id, &loose::compress(kind, &content)?)?;
                let path = loose::path_of(&self.git_dir, id);
                sync_dir(path.parent().unwrap_or(&self.git_dir))?;
            }
            Ok((None, _)) => return Ok(()),
            // Objects of this size are never stored as deltas, so another copy is independent of this pack.
            Err(error) if error.code() == Code::TooLarge => return Ok(()),
            // No copy is readable. The object is lost until its content is saved again.
            Err(error) if error.code() == Code::StoreDamaged => {}
            Err(error) => return Err(error),
        }
        self.objects.note(id);
        Ok(())
    }

    /// Adds up the stored bytes of what `marks` contain.
    ///
    /// # Errors
    /// When packs or loose objects cannot be listed.
    pub fn charges(&self, marks: &Marks) -> Result<Charges> {
        let stock = Stock::of(self, marks)?;
        Ok(marks.charges(&|id| stock.best.get(id).map_or(0, |best| best.bytes)))
    }

    /// As [`Store::charges`], and adds up what each owner reaches of the shared objects.
    ///
    /// # Errors
    /// As [`Store::charges`].
    pub fn charges_and_shares(&self, marks: &Marks) -> Result<(Charges, HashMap<u32, u64>)> {
        let stock = Stock::of(self, marks)?;
        let size = |id: &ObjectId| stock.best.get(id).map_or(0, |best| best.bytes);
        Ok((marks.charges(&size), marks.shares(&size)))
    }
}

/// Returns the entries of a pack in their order, each with where the next begins.
pub(super) fn spans(pack: &Pack) -> Vec<(PackEntry, u64)> {
    let mut entries: Vec<_> = pack.index.entries().collect();
    entries.sort_by_key(|entry| entry.offset);
    let ends: Vec<u64> =
        entries.iter().skip(1).map(|entry| entry.offset).chain([pack.pack.size.saturating_sub(20)]).collect();
    entries.into_iter().zip(ends).collect()
}

/// Returns the bytes that an object takes in a pack, with its part of the index.
fn stored(entry: &PackEntry, end: u64) -> u64 {
    end.saturating_sub(entry.offset) + INDEXED
}
