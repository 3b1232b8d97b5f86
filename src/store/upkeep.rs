//! Keeps the store small: deletes what no checkpoint reaches, and packs the rest densely. In idle time.
//!
//! The marks ([`super::mark`]) are made without a lock. Before anything is deleted, the store lock is taken alone, and
//! the refs and logs that have changed are read again. A writer holds that lock shared until its ref has moved, so what
//! it took for stored is marked by then. The lock is held alone for a moment at a time.
//!
//! The epoch changes before objects are deleted and once more behind that, in each such moment: a process that looks
//! objects up without the lock may have seen one that goes. Deleted refs are durable before their objects go, or a power
//! cut would bring back a ref without its objects.
//!
//! Objects are packed anew in groups ([`super::levels`]). A group's old copies go as soon as its new pack is durable.
//! Where copies stand in packs that are still of use, these are written anew without them, before the store has grown
//! by more than it may. Wherever the process is killed, every object exists at least once; a copy that is left over is
//! surplus in the next round.
//!
//! *Invariant:* one process at a time ([`super::consolidate`]'s lock). *Invariant:* while a marked object cannot be read,
//! nothing is deleted. *Invariant:* the last copy of an object goes only if nothing reaches it; a surplus copy only if
//! the best one is whole. *Invariant:* a copy is deleted only after every other pack that lists the object was checked. If one
//! of them is damaged, the deltas that depend on its copy are written to loose files first.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::{Duration, Instant};

use super::deltas::Plain;
use super::inventory::Inventory;
use super::layout::change_epoch;
use super::levels::{self, Item, Sizes};
use super::loose;
use super::mark::Marks;
use super::newcomers::{SeenRefs, mark_newcomers};
use super::pack;
use super::pack_files::{self, gone, remove_files, try_lock};
use super::packing::{Made, Packing};
use super::repository::Store;
use super::stock::{HUGE, Stock, StockPack, spans};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::lock::FileLock;
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::progress::{Amount, Stage};

/// The longest time for which loose objects are deleted while the store lock is held alone.
const ALONE: Duration = Duration::from_millis(20);

/// The most packs that are removed at once.
const PACKS: usize = 4;

/// The number of useless loose objects after which progress is reported.
const REPORTED: usize = 1000;

/// The time that a deletion waits for the store lock.
const PATIENCE: Duration = Duration::from_millis(500);

/// The reason of a round that gave way.
const OTHER_WORK: &str = "there is other work to do";

/// The result of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upkept {
    /// The objects that nothing reached and that are deleted.
    pub deleted: u64,
    /// The bytes that became free.
    pub freed: u64,
    /// The bytes that were written.
    pub written: u64,
    /// The greatest extra room that was taken at once, in bytes.
    pub extra: u64,
    /// The reason why something was left for another time; `None` if all is done.
    pub left: Option<String>,
    /// True if the rest waits only for other work to end, here or in another process.
    pub is_interrupted: bool,
}

/// A round at work.
struct Upkeep<'s> {
    store: &'s mut Store,
    marks: &'s mut Marks,
    stock: Stock,
    sizes: Sizes,
    control: Interrupt<'s>,
    seen: SeenRefs,
    /// True if the epoch was changed since the store lock is held alone.
    is_deleting: bool,
    /// Bytes on the disk more than at the beginning.
    extra: i64,
    done: Upkept,
}

impl Store {
    /// Deletes what `marks` do not contain, and packs the rest densely. Gives way as soon as `control` says so; the next
    /// round goes on.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `store-damaged`; every marked object is there still.
    pub fn keep_up(&mut self, marks: &mut Marks, control: Interrupt<'_>) -> Result<Upkept> {
        self.keep_up_within(&|sizes| sizes, marks, control)
    }

    /// As [`Store::keep_up`], but leaves no object that `marks` do not contain: packs with few of them are written anew
    /// too. Objects were left if the result says so.
    ///
    /// # Errors
    /// As [`Store::keep_up`].
    pub fn purge(&mut self, marks: &mut Marks, control: Interrupt<'_>) -> Result<Upkept> {
        self.keep_up_within(&|sizes| Sizes { surplus: None, ..sizes }, marks, control)
    }

    /// As [`Store::keep_up`], within the sizes that `choose` makes of those of the store.
    pub(super) fn keep_up_within(
        &mut self,
        choose: &dyn Fn(Sizes) -> Sizes,
        marks: &mut Marks,
        control: Interrupt<'_>,
    ) -> Result<Upkept> {
        let left = |why: &str| Ok(Upkept { left: Some(why.to_owned()), ..Upkept::default() });
        // An own light pack at work holds the lock that is taken now.
        self.recompressing = None;
        let interrupted =
            |why: &str| Ok(Upkept { left: Some(why.to_owned()), is_interrupted: true, ..Upkept::default() });
        let Some(_ours) = try_lock(&self.home.join("consolidate.lock"))? else {
            return interrupted("another process is active on the store");
        };
        self.sweep()?;
        let seen = match mark_newcomers(self, marks, None, control) {
            Err(error) if error.code() == Code::ShuttingDown => return interrupted(OTHER_WORK),
            seen => seen?,
        };
        if let Some((id, why)) = marks.unread() {
            return left(&format!("cannot read an object of a checkpoint ({why}: {id}), so nothing was deleted"));
        }
        let stock = Stock::of(self, marks)?;
        let sizes = choose(Sizes::of(stock.bytes(), self.pack_full));
        let done = Upkept::default();
        let mut upkeep = Upkeep { store: self, marks, stock, sizes, control, seen, is_deleting: false, extra: 0, done };
        match upkeep.run() {
            Err(error) if error.code() == Code::ShuttingDown => {
                (upkeep.done.left, upkeep.done.is_interrupted) = (Some(OTHER_WORK.into()), true);
            }
            Err(error) if matches!(error.code(), Code::Busy | Code::StoreLocked) => {
                (upkeep.done.left, upkeep.done.is_interrupted) = (Some(error.text()), true);
            }
            outcome => outcome?,
        }
        Ok(upkeep.done)
    }
}

impl Upkeep<'_> {
    fn run(&mut self) -> Result<()> {
        if self.stock.has_garbage(self.marks) {
            let dirs: BTreeSet<_> = self.seen.refs.paths().cloned().collect();
            loose::sync_files(&dirs)?;
        }
        self.remove_useless()?;
        self.remove_behind_damage()?;
        let mut order: Vec<(ObjectId, Item)> = Vec::new();
        let ranks = self.marks.ranked();
        for (id, best) in &self.stock.best {
            let pack = best.pack.map(|at| (at, &self.stock.packs[at as usize]));
            // An object that fills a pack by itself gains nothing, and one that is to be kept cannot move.
            if best.bytes >= self.sizes.pack / 2 || pack.is_some_and(|(_, pack)| pack.is_kept) {
                continue;
            }
            let long = pack.filter(|(_, pack)| pack.is_long()).map(|(at, _)| at);
            order.push((*id, Item { rank: ranks.get(id).copied().unwrap_or(0), bytes: best.bytes, long }));
        }
        order.sort_by_key(|(id, item)| (item.rank, item.long, *id));
        let items: Vec<Item> = order.iter().map(|(_, item)| *item).collect();
        let surplus = (0..).zip(self.stock.packs.iter().map(StockPack::surplus)).collect();
        let groups = levels::due(&items, &surplus, self.sizes);
        let due = groups.iter().flatten();
        let (items, bytes) = due.fold((0, 0), |(count, bytes), at| (count + 1, bytes + items[*at].bytes));
        self.store.progress.begin(Stage::Packing, Amount { items, bytes });
        for group in groups {
            self.rewrite(group.into_iter().map(|at| order[at].0))?;
        }
        for at in 0..self.stock.packs.len() {
            let pack = &self.stock.packs[at];
            let is_young = pack.may_change() && !pack.is_long() && pack.best > 0;
            if is_young && self.sizes.is_wasteful(pack.surplus(), pack.length) {
                self.compact(at as u32)?;
            }
        }
        self.remove_behind_damage()
    }

    /// If packs were found damaged, puts the damaged objects aside that were noted, so that the best of their other copies counts.
    /// Removes what is of no use then.
    fn remove_behind_damage(&mut self) -> Result<()> {
        if !self.stock.has_damage() {
            return Ok(());
        }
        let shared = self.store.lock_shared("reading damaged objects", PATIENCE)?;
        self.store.objects.account()?;
        drop(shared);
        self.stock = Stock::of(self.store, self.marks)?;
        self.remove_useless()
    }

    fn go_on(&self) -> Result<()> {
        match (self.control)() {
            Flow::Continue => Ok(()),
            Flow::Stop => Err(Error::new(Code::ShuttingDown, "maintenance of the store was stopped")),
        }
    }

    /// Removes packs of which nothing is of use, and loose objects that are not the best copy.
    fn remove_useless(&mut self) -> Result<()> {
        let mut packs: Vec<u32> = Vec::new();
        for at in 0..self.stock.packs.len() as u32 {
            let stock = &self.stock.packs[at as usize];
            if stock.best == 0 && stock.may_change() {
                packs.push(at);
            }
        }
        let mut loose = Vec::new();
        let ids: Vec<ObjectId> = self.stock.loose.keys().copied().collect();
        for id in ids {
            let best = self.stock.best.get(&id).map(|best| best.pack);
            let goes = match best {
                None => self.are_sound(self.stock.holders(&id))?,
                Some(None) => false,
                Some(Some(at)) => self.is_sound(at)?,
            };
            loose.extend(goes.then_some(id));
        }
        self.store.progress.begin(Stage::Removing, Amount::items((packs.len() + loose.len()) as u64));
        self.remove(&packs, &[])?;
        self.store.progress.add(packs.len() as u64, 0);
        for some in loose.chunks(REPORTED) {
            self.remove(&[], some)?;
            self.store.progress.add(some.len() as u64, 0);
        }
        Ok(())
    }

    fn is_sound(&mut self, at: u32) -> Result<bool> {
        self.stock.examine(at, self.store, self.control)
    }

    fn are_sound(&mut self, packs: Vec<u32>) -> Result<bool> {
        for at in packs {
            self.go_on()?;
            if !self.is_sound(at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if all other packs are sound that have an entry of an object of a pack. Where that entry is damaged, deltas on
    /// it may need the copy of this pack, also one that nothing reaches.
    fn others_are_sound(&mut self, at: u32) -> Result<bool> {
        let ids = self.stock.packs[at as usize].pack.index.entries().map(|entry| entry.id);
        let others: BTreeSet<u32> = ids.flat_map(|id| self.stock.holders(&id)).filter(|other| *other != at).collect();
        self.are_sound(others.into_iter().collect())
    }

    /// Packs objects anew, against each other.
    fn rewrite(&mut self, ids: impl Iterator<Item = ObjectId>) -> Result<()> {
        let mut packing = Packing::new(pack::LONG, self.sizes.pack);
        for id in ids {
            self.go_on()?;
            let bytes = self.stock.best.get(&id).map_or(0, |best| best.bytes);
            self.store.progress.add(1, bytes);
            let Some(plain) = self.plain(id)? else { continue };
            if let Some(made) = packing.add(self.store, plain, self.control)? {
                self.replace(&made)?;
                self.make_room()?;
            }
        }
        while let Some(made) = packing.end(self.store, self.control)? {
            self.replace(&made)?;
            self.make_room()?;
        }
        Ok(())
    }

    /// Reads an object; `None` if it stays where it is.
    fn plain(&self, id: ObjectId) -> Result<Option<Plain>> {
        let objects = &self.store.objects;
        let is_huge = |(_, size): &(_, u64)| *size >= HUGE;
        match objects
            .describe(&id)
            .and_then(|facts| if is_huge(&facts) { Ok(None) } else { objects.read(&id, HUGE).map(Some) })
        {
            Ok(Some((Some(kind), content))) => Ok(Some(Plain { id, kind, content, path: self.marks.path(&id) })),
            Ok(_) => Ok(None),
            Err(error) if matches!(error.code(), Code::StoreDamaged | Code::TooLarge) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes what a new pack replaces.
    fn replace(&mut self, made: &Made) -> Result<()> {
        self.done.written += made.bytes;
        self.grow(made.bytes.cast_signed());
        let (packs, loose) = self.stock.moved(self.store, &made.name, &made.ids)?;
        self.remove(&packs, &loose)
    }

    /// Writes young packs anew without what has moved out of them, while the store has grown by much.
    fn make_room(&mut self) -> Result<()> {
        while self.extra > self.sizes.crowded().cast_signed() {
            let room = (self.sizes.extra.cast_signed() - self.extra).max(0) as u64;
            let is_due = |pack: &StockPack| {
                let is_young = pack.may_change() && !pack.is_long() && pack.best > 0;
                is_young && pack.surplus() > pack.length / 8 && pack.best_bytes <= room
            };
            let due = (0..).zip(&self.stock.packs).filter(|(_, pack)| is_due(pack));
            let Some((at, _)) = due.max_by_key(|(_, pack)| pack.surplus() * 1000 / pack.length) else { break };
            self.compact(at)?;
        }
        Ok(())
    }

    /// Copies what is of use out of a pack.
    fn compact(&mut self, at: u32) -> Result<()> {
        let stock = &self.stock.packs[at as usize];
        let name = if stock.is_light() { pack::LIGHT } else { pack::DENSE };
        let path = stock.pack.stem.with_extension("pack");
        let entries: Vec<_> = spans(&stock.pack)
            .into_iter()
            .filter(|(entry, _)| self.stock.best.get(&entry.id).is_some_and(|best| best.pack == Some(at)))
            .collect();
        let file = File::open(&path).at("opening", &path)?;
        let mut packing = Packing::new(name, self.sizes.young.max(stock.length));
        for (entry, end) in entries {
            self.go_on()?;
            let bytes = pack_files::read(&file, &entry, end, &path)?;
            // Types 1 to 4 are whole objects; others are deltas, on objects that may not move with them.
            let made = match bytes.filter(|bytes| matches!(bytes[0] >> 4 & 7, 1..=4)) {
                Some(bytes) => packing.append(self.store, vec![pack::Packed { id: entry.id, bytes }])?,
                None => match self.plain(entry.id)? {
                    Some(plain) => packing.add(self.store, plain, self.control)?,
                    None => None,
                },
            };
            if let Some(made) = made {
                self.replace(&made)?;
            }
        }
        while let Some(made) = packing.end(self.store, self.control)? {
            self.replace(&made)?;
        }
        Ok(())
    }

    fn grow(&mut self, by: i64) {
        self.extra += by;
        self.done.extra = self.done.extra.max(self.extra.max(0) as u64);
    }

    /// Removes packs and loose objects, except those that a newcomer needs.
    fn remove(&mut self, packs: &[u32], mut loose: &[ObjectId]) -> Result<()> {
        let mut sure = Vec::new();
        for at in packs {
            sure.extend(self.others_are_sound(*at)?.then_some(*at));
        }
        let mut packs = &sure[..];
        while !(packs.is_empty() && loose.is_empty()) {
            let alone = self.alone()?;
            let removed = self.remove_some(&mut packs, &mut loose);
            if std::mem::take(&mut self.is_deleting) {
                change_epoch(&self.store.git_dir)?;
            }
            removed?;
            self.store.objects.account()?;
            drop(alone);
        }
        Ok(())
    }

    /// Removes as much as one holding of the store lock may.
    fn remove_some(&mut self, packs: &mut &[u32], loose: &mut &[ObjectId]) -> Result<()> {
        let until = Instant::now() + ALONE;
        let (now, rest) = packs.split_at(packs.len().min(PACKS));
        *packs = rest;
        let now: Vec<u32> = now.iter().copied().filter(|at| self.may_go(*at)).collect();
        self.remove_packs(&now)?;
        while let Some((id, rest)) = loose.split_first()
            && Instant::now() < until
        {
            *loose = rest;
            self.remove_loose(id)?;
        }
        Ok(())
    }

    /// Returns true if no marked object has its best or its only copy in a pack.
    fn may_go(&self, at: u32) -> bool {
        let mut ids = self.stock.packs[at as usize].pack.index.entries().map(|entry| entry.id);
        ids.all(|id| !self.marks.contains(&id) || self.stock.best.get(&id).is_some_and(|best| best.pack != Some(at)))
    }

    fn remove_packs(&mut self, packs: &[u32]) -> Result<()> {
        let names: Vec<String> = packs.iter().map(|at| self.stock.packs[*at as usize].pack.name()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let entries = packs.iter().flat_map(|at| self.stock.packs[*at as usize].pack.index.entries());
        let deleted = entries.filter(|entry| !self.marks.contains(&entry.id)).count() as u64;
        if deleted > 0 {
            self.begin_deleting()?;
        }
        // First, or a killed removal would look like a loss of objects.
        Inventory::forget(&self.store.git_dir, &names.iter().map(String::as_str).collect::<Vec<_>>())?;
        for at in packs {
            let stock = &mut self.stock.packs[*at as usize];
            stock.pack.close();
            remove_files(&stock.pack.stem)?;
            stock.is_gone = true;
            let length = stock.length;
            self.done.freed += length;
            self.grow(-length.cast_signed());
        }
        self.done.deleted += deleted;
        Ok(())
    }

    fn remove_loose(&mut self, id: &ObjectId) -> Result<()> {
        let is_marked = self.marks.contains(id);
        if is_marked && self.stock.best.get(id).is_none_or(|best| best.pack.is_none()) {
            return Ok(());
        }
        if !is_marked {
            self.begin_deleting()?;
            self.done.deleted += 1;
        }
        gone(&loose::path_of(&self.store.git_dir, id))?;
        let bytes = self.stock.loose.remove(id).unwrap_or_default();
        self.done.freed += bytes;
        self.grow(-bytes.cast_signed());
        Ok(())
    }

    /// Changes the epoch, before the first object is deleted while the store lock is held alone.
    fn begin_deleting(&mut self) -> Result<()> {
        if !self.is_deleting {
            change_epoch(&self.store.git_dir)?;
            self.is_deleting = true;
        }
        Ok(())
    }

    /// Takes the store lock alone, with all refs marked.
    fn alone(&mut self) -> Result<FileLock> {
        if !self.seen.stands() {
            // Most of the work is done before the lock is held.
            self.seen = mark_newcomers(self.store, self.marks, Some(&self.seen), self.control)?;
        }
        let until = Instant::now() + PATIENCE;
        let lock = loop {
            self.go_on()?;
            match try_lock(&self.store.home.join("store.lock"))? {
                Some(lock) => break lock,
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                None => return Err(Error::new(Code::Busy, "checkpoints were taken during the whole round")),
            }
        };
        if !self.seen.stands() {
            self.seen = mark_newcomers(self.store, self.marks, Some(&self.seen), self.control)?;
        }
        match self.marks.unread() {
            None => Ok(lock),
            Some(_) => Err(Error::new(Code::Busy, "an object of a new checkpoint cannot be read")),
        }
    }
}
