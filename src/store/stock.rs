//! The objects that the store holds, each with its best copy, and the bytes that every copy takes.
//!
//! An object may stand in several packs and in a loose file. The best copy is the one that stays; the others are
//! surplus, and so is every copy of an object that nothing reaches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::mark::{Charges, Marks};
use super::pack;
use super::packs::Pack;
use super::repository::Store;
use super::{derive, loose};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;

/// The bytes that a file takes at least on most file systems: one block.
const BLOCK: u64 = 4096;

/// A pack, and what of it is of use.
pub(super) struct StockPack {
    /// The pack.
    pub pack: Arc<Pack>,
    /// Bytes of the pack file.
    pub length: u64,
    /// The number of best copies in it.
    pub best: usize,
    /// The bytes of these.
    pub best_bytes: u64,
    /// True once it was removed.
    pub is_gone: bool,
}

impl StockPack {
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
        self.length.saturating_sub(self.best_bytes)
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
    /// Packs whose bytes were compared with their index already, with the outcome.
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
        let mut packs: Vec<StockPack> = Vec::new();
        for pack in set.packs.iter().filter(|pack| pack.stem.parent() == Some(&dir)) {
            packs.push(StockPack {
                length: pack.pack.size,
                best: 0,
                best_bytes: 0,
                is_gone: false,
                pack: Arc::clone(pack),
            });
        }
        // Long-lasting packs first, light ones last; of two the larger one.
        packs.sort_by_key(|pack| (!pack.is_long(), pack.is_light(), std::cmp::Reverse(pack.length)));
        let mut best: HashMap<ObjectId, Best> = HashMap::new();
        for (at, stock) in packs.iter_mut().enumerate() {
            for (id, bytes) in spans(&stock.pack) {
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
            let length = path.metadata().at("looking at", &path)?.len();
            let bytes = length.div_ceil(BLOCK) * BLOCK;
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
        let (new, sizes) = (self.packs.len() as u32, spans(pack).into_iter().collect::<HashMap<_, _>>());
        let mut stock =
            StockPack { length: pack.pack.size, best: 0, best_bytes: 0, is_gone: false, pack: Arc::clone(pack) };
        let (mut useless, mut loose) = (BTreeSet::new(), Vec::new());
        for id in moved {
            let bytes = sizes.get(id).copied().unwrap_or_default();
            stock.best += 1;
            stock.best_bytes += bytes;
            let old = self.best.insert(*id, Best { pack: Some(new), bytes });
            if let Some(Best { pack: Some(at), bytes }) = old {
                let old = &mut self.packs[at as usize];
                old.best -= 1;
                old.best_bytes -= bytes;
                useless.extend((old.best == 0).then_some(at));
            }
            loose.extend(self.loose.contains_key(id).then_some(*id));
        }
        self.packs.push(stock);
        Ok((useless.into_iter().collect(), loose))
    }

    /// Adds up what everything takes.
    pub(super) fn bytes(&self) -> u64 {
        self.packs.iter().map(|pack| pack.length).chain(self.loose.values().copied()).sum()
    }

    /// Returns true if a pack holds every object that its index names, as far as their checksums tell. Each is read once.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn is_sound(&mut self, at: u32) -> Result<bool> {
        if let Some(known) = self.sound.get(&at) {
            return Ok(*known);
        }
        let stock = &self.packs[at as usize];
        let path = stock.pack.stem.with_extension("pack");
        let file = std::fs::File::open(&path).at("opening", &path)?;
        let bad = derive::missing(&file, stock.length, &stock.pack.index).at("reading", &path)?;
        self.sound.insert(at, bad.is_empty());
        Ok(bad.is_empty())
    }
}

impl Store {
    /// Adds up the stored bytes of what `marks` contain.
    ///
    /// # Errors
    /// When packs or loose objects cannot be listed.
    pub fn charges(&self, marks: &Marks) -> Result<Charges> {
        let stock = Stock::of(self, marks)?;
        Ok(marks.charges(&|id| stock.best.get(id).map_or(0, |best| best.bytes)))
    }
}

/// Returns the objects of a pack, each with the bytes of its entry.
pub(super) fn spans(pack: &Pack) -> Vec<(ObjectId, u64)> {
    let mut entries: Vec<_> = pack.index.entries().collect();
    entries.sort_by_key(|entry| entry.offset);
    let ends: Vec<u64> =
        entries.iter().skip(1).map(|entry| entry.offset).chain([pack.pack.size.saturating_sub(20)]).collect();
    entries.iter().zip(ends).map(|(entry, end)| (entry.id, end.saturating_sub(entry.offset))).collect()
}
