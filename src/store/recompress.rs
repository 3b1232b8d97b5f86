//! Turns light packs into dense ones: compresses in idle time the objects that a large first checkpoint left
//! uncompressed.
//!
//! A pack is light by its name ([`pack::LIGHT`]), so that any later process finds it; to ordinary git it is a pack like
//! others. Its objects are read, proved and appended to dense packs of bounded size, one after the other. There is no
//! other record of the progress: an object in some dense pack is done. When dense packs hold everything, the light one
//! is removed, with the store lock held alone and without waiting for it. Wherever the process is killed, every object
//! exists at least once. No object is lost or replaced: the epoch stays.
//!
//! *Invariant:* one at a time ([`super::consolidate`]'s lock). *Invariant:* while a dense pack is unfinished the store
//! lock is held shared, so that no other process removes it as debris.

use std::collections::VecDeque;
use std::fs::File;
use std::time::{Duration, SystemTime};

use super::inventory::Inventory;
use super::pack_files::{self, PackFile, StorePaths};
use super::present::Present;
use super::recompression::Recompression;
use super::repository::Store;
use super::{index, pack};
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::space::DiskSpace;
use crate::sys::interrupt::{Flow, Interrupt};

/// The amount that is done at once.
#[derive(Clone, Copy)]
pub struct Slice {
    /// The least age of a pack that is compressed.
    pub age: Duration,
    /// The most bytes of content.
    pub bytes: u64,
    /// The bytes after which a dense pack is finished: no more work than that is lost with the process.
    pub pack: u64,
    /// True if an unfinished pack is kept for the next time.
    pub goes_on: bool,
}

/// The slice of a long-lived process, which works until it is interrupted.
pub const IDLE: Slice = Slice { age: Duration::ZERO, bytes: u64::MAX, pack: 32 << 20, goes_on: true };

/// The slice of a short command: little work, and only on packs that no sidecar is about to compress.
pub const COMMAND: Slice = Slice { age: Duration::from_secs(10), bytes: 8 << 20, pack: u64::MAX, goes_on: false };

impl Store {
    /// Compresses the objects of light packs, until nothing is left, `slice` is used up or `control` interrupts it.
    /// Returns true if a pack was replaced. Checks `control` at least once per object.
    ///
    /// # Errors
    /// `disk-full` when there is no room for a second copy, `store-damaged`, `permission`; everything that was there is
    /// there still.
    pub fn recompress(&mut self, slice: Slice, control: Interrupt<'_>) -> Result<bool> {
        let mut left = slice.bytes;
        let (mut replaced, mut fault) = (false, None);
        while left > 0 && control() == Flow::Continue {
            let begun = match self.recompressing.take() {
                Some(work) => Some(work),
                None => self.begin(slice.age)?,
            };
            let Some(mut work) = begun else { break };
            if !work.work(slice.pack, &mut left, control)? {
                if slice.goes_on {
                    self.recompressing = Some(work);
                } else {
                    work.wait(&|| Flow::Continue)?;
                    work.finish()?;
                    work.wait(&|| Flow::Continue)?;
                }
            } else if work.damaged {
                // Said once by each process; others may still be compressed.
                fault = Some(work.light.damaged());
                self.refused.push(work.light.name());
            } else if self.replace(work)? {
                replaced = true;
            } else {
                break;
            }
        }
        fault.map_or(Ok(replaced), Err)
    }

    /// Chooses a light pack; `None` when there is none to do now.
    fn begin(&self, age: Duration) -> Result<Option<Box<Recompression>>> {
        let place = self.paths();
        let old = |found: &PackFile| age.is_zero() || found.age(SystemTime::now()).is_some_and(|its| its >= age);
        let due = |found: &PackFile| found.is_light() && old(found) && !self.refused.contains(&found.name());
        let Some(light) = pack_files::packs(&place.git_dir)?.into_iter().find(due) else {
            return Ok(None);
        };
        let Some(consolidating) = pack_files::try_lock(&place.home.join("consolidate.lock"))? else {
            return Ok(None);
        };
        let shared = match self.lock_shared("compressing", Duration::ZERO) {
            Ok(shared) => shared,
            Err(error) if error.code() == Code::StoreLocked => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(spans) = pack_files::spans(&light)? else {
            return Err(light.damaged());
        };
        let dense = dense(&place)?;
        let todo: VecDeque<_> = spans.into_iter().filter(|(entry, _)| !dense.contains(&entry.id)).collect();
        let room = DiskSpace::at(&place.git_dir)?;
        let needed = todo.iter().map(|(entry, end)| end.saturating_sub(entry.offset)).sum::<u64>();
        if room.free < room.floor().saturating_add(needed) {
            let text = format!(
                "{} MB of the store are still uncompressed, because there is no space for a second copy",
                needed / 1_000_000
            );
            return Err(Error::new(Code::DiskFull, text)
                .path(&place.git_dir)
                .hint("free some space; nothing was changed"));
        }
        let path = light.file("pack");
        let file = File::open(&path).at("opening", &path)?;
        Ok(Some(Box::new(Recompression {
            light,
            file,
            todo,
            writer: None,
            finishing: None,
            damaged: false,
            _consolidating: consolidating,
            _shared: shared,
        })))
    }

    /// Removes a light pack if dense ones hold all of it and no process writes; `false` leaves it for another time.
    fn replace(&mut self, work: Box<Recompression>) -> Result<bool> {
        let place = self.paths();
        let light = work.light.clone();
        // The shared lock of `work` would block the same lock held alone.
        drop(work);
        let Some(_ours) = pack_files::try_lock(&place.home.join("consolidate.lock"))? else {
            return Ok(false);
        };
        let Some(alone) = pack_files::try_lock(&place.home.join("store.lock"))? else {
            return Ok(false);
        };
        let Some(spans) = pack_files::spans(&light)? else {
            return Err(light.damaged());
        };
        let dense = dense(&place)?;
        if let Some((entry, _)) = spans.iter().find(|(entry, _)| !dense.contains(&entry.id)) {
            tracing::warn!(id = %entry.id, "keeping a lightly compressed pack, because some objects in it are not compressed yet");
            return Ok(false);
        }
        pack_files::remove_pack(&place.git_dir, &light)?;
        self.objects.account()?;
        drop(alone);
        tracing::info!(pack = light.name(), objects = spans.len(), bytes = light.length, "compressed a light pack");
        Ok(true)
    }
}

/// Returns the objects of the packs that are not light.
fn dense(place: &StorePaths) -> Result<Present> {
    let (mut ids, known) = (Vec::new(), Inventory::load(&place.git_dir));
    for found in pack_files::packs(&place.git_dir)?.into_iter().filter(|found| !found.is_light()) {
        let path = found.file("idx");
        let bytes = std::fs::read(&path).at("reading", &path)?;
        // A torn or unreadable pack holds nothing that can be relied on.
        if !pack::is_of(&found.file("pack"), &bytes)? {
            continue;
        }
        let bad = known.as_ref().and_then(|known| known.packs.get(&found.stem()));
        let bad = bad.map_or(&[][..], |known| &known.bad);
        // A damaged object there may exist nowhere but in the light pack.
        let whole = index::parse(bytes).unwrap_or_default().into_iter().map(|entry| entry.id);
        ids.extend(whole.filter(|id| !bad.contains(id)));
    }
    Ok(Present::from(ids))
}
