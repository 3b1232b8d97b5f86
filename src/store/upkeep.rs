//! Keeps the store small: deletes what no checkpoint reaches, and packs the rest densely. In idle time.
//!
//! The marks ([`super::mark`]) are made without a lock. Before anything is deleted, the store lock is taken alone, and
//! the refs are read again: a writer holds that lock shared until its ref has moved, so what it took for stored is
//! marked by then. The lock is held alone for a moment at a time. A deletion of objects changes the epoch, so that every
//! process looks up what it remembers.
//!
//! Objects are packed anew in groups ([`super::levels`]). A group's old copies go as soon as its new pack is durable.
//! Wherever the process is killed, every object exists at least once; a copy that is left over is surplus in the next
//! round.
//!
//! *Invariant:* one process at a time ([`super::consolidate`]'s lock). *Invariant:* while a marked object cannot be read,
//! nothing is deleted. *Invariant:* the last copy of an object goes only if nothing reaches it; a surplus copy only if
//! the best one is whole.

use std::time::{Duration, Instant};

use super::deflate::Effort;
use super::deltas::{self, Plain};
use super::inventory::Inventory;
use super::levels::{self, Item, SURPLUS, Sizes};
use super::loose;
use super::mark::{Marks, Root};
use super::pack::{self, PackWriter};
use super::pack_files::{gone, remove_files, try_lock};
use super::refs::RefMarks;
use super::repository::Store;
use super::stock::{Stock, StockPack, spans};
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::lock::FileLock;
use crate::sys::interrupt::{Flow, Interrupt};

/// The bytes of content that are packed against each other at once.
const BATCH: usize = 24 << 20;

/// The size from which on an object is compressed by itself.
const LARGE: u64 = 4 << 20;

/// The size from which on an object stays as it is.
const HUGE: u64 = 256 << 20;

/// The longest time for which the store lock is held alone at once.
const ALONE: Duration = Duration::from_millis(20);

/// The time that a deletion waits for the store lock.
const PATIENCE: Duration = Duration::from_millis(500);

/// The owner of roots that came while the store was kept up.
const NEWCOMER: u32 = u32::MAX;

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
}

/// A round at work.
struct Upkeep<'s> {
    store: &'s mut Store,
    marks: &'s mut Marks,
    stock: Stock,
    sizes: Sizes,
    control: Interrupt<'s>,
    /// The refs as they were marked from.
    refs: RefMarks,
    /// True once this round has changed the epoch.
    has_new_epoch: bool,
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
        let left = |why: &str| Ok(Upkept { left: Some(why.to_owned()), ..Upkept::default() });
        let Some(_ours) = try_lock(&self.home.join("consolidate.lock"))? else {
            return left("another process is at work on the store");
        };
        self.sweep()?;
        let refs = mark_newcomers(self, marks, control)?;
        if let Some((id, why)) = marks.unread() {
            return left(&format!("an object of a checkpoint cannot be read ({why}: {id}), so nothing may be deleted"));
        }
        let stock = Stock::of(self, marks)?;
        let sizes = Sizes::of(stock.bytes());
        let done = Upkept::default();
        let mut upkeep =
            Upkeep { store: self, marks, stock, sizes, control, refs, has_new_epoch: false, extra: 0, done };
        match upkeep.run() {
            Err(error) if error.code() == Code::ShuttingDown => {
                upkeep.done.left = Some("something else is to do".into())
            }
            outcome => outcome?,
        }
        Ok(upkeep.done)
    }
}

/// Marks what refs reach that were not marked from, and returns the marks of the refs.
fn mark_newcomers(store: &Store, marks: &mut Marks, control: Interrupt<'_>) -> Result<RefMarks> {
    let (entries, seen) = store.refs_marked("refs/")?;
    let mut roots = Vec::new();
    for entry in entries {
        let target = entry.target.map_err(|why| {
            Error::new(Code::StoreDamaged, format!("the ref `{}` cannot be read: {why}", entry.name))
                .hint("run `piton doctor --refs`; nothing is deleted meanwhile")
        })?;
        roots.extend(Some(Root { commit: target, owner: NEWCOMER }).filter(|root| !marks.contains(&root.commit)));
    }
    if !roots.is_empty() {
        marks.add(store, roots, control)?;
    }
    Ok(seen)
}

impl Upkeep<'_> {
    fn run(&mut self) -> Result<()> {
        self.remove_useless()?;
        let mut order: Vec<(ObjectId, Item)> = Vec::new();
        let ranks = self.marks.ranked();
        for (id, best) in &self.stock.best {
            let long = best.pack.filter(|at| self.stock.packs[*at as usize].is_long());
            order.push((*id, Item { rank: ranks.get(id).copied().unwrap_or(0), bytes: best.bytes, long }));
        }
        order.sort_by_key(|(id, item)| (item.rank, item.long, *id));
        let items: Vec<Item> = order.iter().map(|(_, item)| *item).collect();
        let surplus = (0..).zip(self.stock.packs.iter().map(|pack| pack.surplus())).collect();
        for group in levels::due(&items, &surplus, self.sizes) {
            self.rewrite(group.into_iter().map(|at| order[at].0))?;
        }
        self.compact_all(|pack| pack.surplus() > pack.length / SURPLUS)
    }

    fn go_on(&self) -> Result<()> {
        match (self.control)() {
            Flow::Continue => Ok(()),
            Flow::Stop => Err(Error::new(Code::ShuttingDown, "keeping the store up was stopped")),
        }
    }

    /// Removes packs of which nothing is of use, and loose objects that are not the best copy.
    fn remove_useless(&mut self) -> Result<()> {
        let mut packs: Vec<u32> = Vec::new();
        for at in 0..self.stock.packs.len() as u32 {
            if self.stock.packs[at as usize].best == 0 && self.others_are_sound(at)? {
                packs.push(at);
            }
        }
        let mut loose = Vec::new();
        let ids: Vec<ObjectId> = self.stock.loose.keys().copied().collect();
        for id in ids {
            let best = self.stock.best.get(&id).map(|best| best.pack);
            let goes = match best {
                None => true,
                Some(None) => false,
                Some(Some(at)) => self.stock.is_sound(at)?,
            };
            loose.extend(goes.then_some(id));
        }
        self.remove(&packs, &loose)
    }

    /// Returns true if the best copies of all marked objects of a pack are whole.
    fn others_are_sound(&mut self, at: u32) -> Result<bool> {
        let ids: Vec<ObjectId> = self.stock.packs[at as usize].pack.index.entries().map(|entry| entry.id).collect();
        let mut others: Vec<u32> =
            ids.iter().filter_map(|id| self.stock.best.get(id)?.pack).filter(|other| *other != at).collect();
        others.sort_unstable();
        others.dedup();
        for other in others {
            self.go_on()?;
            if !self.stock.is_sound(other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Packs objects anew, against each other.
    fn rewrite(&mut self, ids: impl Iterator<Item = ObjectId>) -> Result<()> {
        let mut output = Output::default();
        for id in ids {
            self.go_on()?;
            let (kind, size) = match self.store.objects.describe(&id) {
                Ok((Some(kind), size)) if size < HUGE => (kind, size),
                // It stays where it is.
                Ok(_) => continue,
                Err(error) if error.code() == Code::StoreDamaged => continue,
                Err(error) => return Err(error),
            };
            let content = match self.store.objects.read(&id, HUGE) {
                Ok((_, content)) => content,
                Err(error) if matches!(error.code(), Code::StoreDamaged | Code::TooLarge) => continue,
                Err(error) => return Err(error),
            };
            if size >= LARGE {
                let packed = pack::compress(kind, id, &content, Effort::Small)?;
                output.append(self.store, vec![packed])?;
            } else {
                output.waiting_bytes += content.len();
                output.waiting.push(Plain { id, kind, content, path: self.marks.path(&id) });
            }
            if output.waiting_bytes >= BATCH {
                output.pack_waiting(self.store, self.control)?;
            }
            if output.length() >= self.sizes.pack {
                self.finish(&mut output)?;
            }
        }
        output.pack_waiting(self.store, self.control)?;
        self.finish(&mut output)
    }

    /// Puts a pack in its place, and removes what it replaces.
    fn finish(&mut self, output: &mut Output) -> Result<()> {
        let Some(writer) = output.writer.take() else { return Ok(()) };
        let length = writer.length() + 20;
        let name = writer.finish()?;
        self.store.objects.account()?;
        output.shared = None;
        self.done.written += length;
        self.grow(length as i64);
        let moved = std::mem::take(&mut output.moved);
        let (packs, loose) = self.stock.moved(self.store, &name, &moved)?;
        self.remove(&packs, &loose)?;
        if self.extra > self.sizes.extra as i64 {
            // The rest of what this pack replaces stands in packs that are of use still.
            self.compact_all(|pack| pack.surplus() > 0)?;
        }
        Ok(())
    }

    /// Copies what is of use out of packs whose objects are whole.
    fn compact_all(&mut self, is_due: impl Fn(&StockPack) -> bool) -> Result<()> {
        for at in 0..self.stock.packs.len() {
            let pack = &self.stock.packs[at];
            if pack.is_gone || pack.is_long() || pack.best == 0 || !is_due(pack) {
                continue;
            }
            self.go_on()?;
            self.compact(at as u32)?;
        }
        Ok(())
    }

    fn compact(&mut self, at: u32) -> Result<()> {
        let stock = &self.stock.packs[at as usize];
        let kind = if stock.is_light() { pack::LIGHT } else { pack::DENSE };
        let effort = if stock.is_light() { Effort::Stored } else { Effort::Small };
        let ids: Vec<ObjectId> = spans(&stock.pack)
            .into_iter()
            .map(|(id, _)| id)
            .filter(|id| self.stock.best.get(id).is_some_and(|best| best.pack == Some(at)))
            .collect();
        let mut output = Output { name: kind, ..Output::default() };
        for id in ids {
            self.go_on()?;
            match self.store.objects.read(&id, HUGE) {
                Ok((Some(kind), content)) => {
                    output.append(self.store, vec![pack::compress(kind, id, &content, effort)?])?;
                }
                Ok((None, _)) => {}
                Err(error) if matches!(error.code(), Code::StoreDamaged | Code::TooLarge) => {}
                Err(error) => return Err(error),
            }
        }
        // Not `finish`, which compacts in its turn.
        let Some(writer) = output.writer.take() else { return Ok(()) };
        let length = writer.length() + 20;
        let name = writer.finish()?;
        self.store.objects.account()?;
        output.shared = None;
        self.done.written += length;
        self.grow(length as i64);
        let (packs, loose) = self.stock.moved(self.store, &name, &output.moved)?;
        self.remove(&packs, &loose)
    }

    fn grow(&mut self, by: i64) {
        self.extra += by;
        self.done.extra = self.done.extra.max(self.extra.max(0) as u64);
    }

    /// Removes packs and loose objects, except those that a newcomer needs.
    fn remove(&mut self, packs: &[u32], loose: &[ObjectId]) -> Result<()> {
        let mut loose = loose;
        let mut packs = packs;
        while !(packs.is_empty() && loose.is_empty()) {
            let Some(_alone) = self.alone()? else {
                self.done.left = Some("checkpoints were taken all the time".to_owned());
                return Ok(());
            };
            let until = Instant::now() + ALONE;
            let mut names = Vec::new();
            while let Some((at, rest)) = packs.split_first() {
                packs = rest;
                if self.may_go(*at) {
                    names.push(*at);
                }
            }
            self.remove_packs(&names)?;
            while let Some((id, rest)) = loose.split_first()
                && Instant::now() < until
            {
                loose = rest;
                self.remove_loose(id)?;
            }
        }
        self.store.objects.account()
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
            self.grow(-(length as i64));
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
        self.grow(-(bytes as i64));
        Ok(())
    }

    /// Changes the epoch, once, before the first object is deleted.
    fn begin_deleting(&mut self) -> Result<()> {
        if !self.has_new_epoch {
            super::layout::change_epoch(&self.store.git_dir)?;
            self.has_new_epoch = true;
        }
        Ok(())
    }

    /// Takes the store lock alone, with all refs marked; `None` when writers keep it.
    fn alone(&mut self) -> Result<Option<FileLock>> {
        if !self.refs.stand() {
            // Most of the work is done before the lock is held.
            self.refs = mark_newcomers(self.store, self.marks, self.control)?;
        }
        let until = Instant::now() + PATIENCE;
        let lock = loop {
            self.go_on()?;
            match try_lock(&self.store.home.join("store.lock"))? {
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                lock => break lock,
            }
        };
        if lock.is_some() && !self.refs.stand_surely() {
            self.refs = mark_newcomers(self.store, self.marks, self.control)?;
        }
        Ok(lock.filter(|_| self.marks.unread().is_none()))
    }
}

/// A pack that is being written.
struct Output {
    /// The beginning of its name.
    name: &'static str,
    writer: Option<PackWriter>,
    /// Keeps others from taking the unfinished pack for a leftover.
    shared: Option<FileLock>,
    /// Objects that wait to be packed against each other.
    waiting: Vec<Plain>,
    /// The bytes of their contents.
    waiting_bytes: usize,
    /// The objects in the pack.
    moved: Vec<ObjectId>,
}

impl Default for Output {
    fn default() -> Output {
        Output {
            name: pack::LONG,
            writer: None,
            shared: None,
            waiting: Vec::new(),
            waiting_bytes: 0,
            moved: Vec::new(),
        }
    }
}

impl Output {
    fn length(&self) -> u64 {
        self.writer.as_ref().map_or(0, PackWriter::length)
    }

    fn append(&mut self, store: &Store, packed: Vec<pack::Packed>) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                self.shared = Some(store.lock_shared("packing", Duration::from_secs(5))?);
                self.writer.insert(PackWriter::create(&store.git_dir, self.name)?)
            }
        };
        for packed in packed {
            writer.append(&packed)?;
            self.moved.push(packed.id);
        }
        Ok(())
    }

    fn pack_waiting(&mut self, store: &Store, control: Interrupt<'_>) -> Result<()> {
        self.waiting_bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        match deltas::packed(&waiting, control)? {
            Some(packed) => self.append(store, packed),
            None => Err(Error::new(Code::ShuttingDown, "keeping the store up was stopped")),
        }
    }
}
