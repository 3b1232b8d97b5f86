//! Light packs become dense ones: what a large first checkpoint had no time to compress is compressed when nobody waits.
//!
//! A pack is light by its name ([`pack::LIGHT`]), so that any later process finds it, whatever became of the one that
//! wrote it; to ordinary git it is a pack like others. Its objects are read, proved and appended to dense packs of
//! bounded size, one after the other. There is no other record of how far that went: what some dense pack holds is done.
//! When dense packs hold everything, the light one is removed, with the store lock held alone and without waiting for it.
//! Cut anywhere, every object is there at least once. No object is lost or replaced: the epoch stays.
//!
//! *Invariant:* one at a time ([`super::consolidate`]'s lock). *Invariant:* while a dense pack is unfinished the store lock
//! is held shared, so that nobody sweeps it away.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, SystemTime};

use super::Store;
use super::consolidate::{self, Found, Place};
use super::deflate::{self, Effort};
use super::index::{self, Entry};
use super::inventory::Inventory;
use super::pack::{self, PackWriter};
use super::present::Present;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectKind;
use crate::sys::fs::lock::FileLock;
use crate::sys::fs::space::DiskSpace;
use crate::sys::interrupt::{Flow, Interrupt};

/// How much is done at once.
#[derive(Clone, Copy)]
pub struct Slice {
    /// Only packs that were written so long ago.
    pub age: Duration,
    /// Bytes of content.
    pub bytes: u64,
    /// Bytes after which a dense pack is finished: no more work than that is lost with the process.
    pub pack: u64,
    /// Whether an unfinished pack is kept for the next time.
    pub goes_on: bool,
}

/// For a process that stays: until it is told to stop.
pub const IDLE: Slice = Slice { age: Duration::ZERO, bytes: u64::MAX, pack: 32 << 20, goes_on: true };

/// For a command that ends: little, and nothing of what a sidecar may be about to do.
pub const COMMAND: Slice = Slice { age: Duration::from_secs(600), bytes: 8 << 20, pack: u64::MAX, goes_on: false };

/// How often somebody is asked whether to go on while a pack is being synced.
const PAUSE: Duration = Duration::from_millis(5);

/// One light pack at work.
pub struct Recompression {
    light: Found,
    file: File,
    /// What no dense pack holds, with its end.
    todo: VecDeque<(Entry, u64)>,
    writer: Option<PackWriter>,
    /// A pack that is being synced, by a thread of its own: a disk may take long.
    finishing: Option<Receiver<Result<String>>>,
    /// Whether an object could not be read. The others are compressed all the same, and the light pack stays.
    damaged: bool,
    _consolidating: FileLock,
    _shared: FileLock,
}

impl Drop for Recompression {
    fn drop(&mut self) {
        if let Some(finishing) = self.finishing.take() {
            // A pack without its index would lie there for ever. Its outcome matters to nobody any more.
            let _ = finishing.recv();
        }
    }
}

impl Store {
    /// Compresses what light packs hold, until nothing is left, `slice` is used up or `control` says so; says whether a pack
    /// was replaced. A call of `control` is never further away than one object.
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
        let place = Place::of(self);
        let old = |found: &Found| age.is_zero() || found.age(SystemTime::now()).is_some_and(|its| its >= age);
        let due = |found: &Found| found.is_light() && old(found) && !self.refused.contains(&found.name());
        let Some(light) = consolidate::packs(&place.git_dir)?.into_iter().find(due) else {
            return Ok(None);
        };
        let Some(consolidating) = consolidate::try_lock(&place.home.join("consolidate.lock"))? else {
            return Ok(None);
        };
        let shared = match self.lock_shared("compressing", Duration::ZERO) {
            Ok(shared) => shared,
            Err(error) if error.code() == Code::StoreLocked => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(spans) = consolidate::spans(&light)? else {
            return Err(light.damaged());
        };
        let dense = dense(&place)?;
        let todo: VecDeque<_> = spans.into_iter().filter(|(entry, _)| !dense.contains(&entry.id)).collect();
        let room = DiskSpace::at(&place.git_dir)?;
        let needed = todo.iter().map(|(entry, end)| end.saturating_sub(entry.offset)).sum::<u64>();
        if room.free < room.floor().saturating_add(needed) {
            let text =
                format!("{} MB of the store stay uncompressed: there is no room for a second copy", needed / 1_000_000);
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

    /// Removes a light pack if dense ones hold all of it and nobody writes; `false` leaves it for another time.
    fn replace(&mut self, work: Box<Recompression>) -> Result<bool> {
        let place = Place::of(self);
        let light = work.light.clone();
        // The lock held shared would be in the way of the same lock held alone.
        drop(work);
        let Some(_ours) = consolidate::try_lock(&place.home.join("consolidate.lock"))? else {
            return Ok(false);
        };
        let Some(alone) = consolidate::try_lock(&place.home.join("store.lock"))? else {
            return Ok(false);
        };
        let Some(spans) = consolidate::spans(&light)? else {
            return Err(light.damaged());
        };
        let dense = dense(&place)?;
        if let Some((entry, _)) = spans.iter().find(|(entry, _)| !dense.contains(&entry.id)) {
            tracing::warn!(id = %entry.id, "a light pack stays: not everything in it is compressed");
            return Ok(false);
        }
        consolidate::remove_pack(&place.git_dir, &light)?;
        self.objects.account()?;
        drop(alone);
        tracing::info!(pack = light.name(), objects = spans.len(), bytes = light.length, "compressed a light pack");
        Ok(true)
    }
}

/// What the packs hold that are not light.
fn dense(place: &Place) -> Result<Present> {
    let (mut ids, known) = (Vec::new(), Inventory::load(&place.git_dir));
    for found in consolidate::packs(&place.git_dir)?.into_iter().filter(|found| !found.is_light()) {
        let path = found.file("idx");
        let bytes = std::fs::read(&path).at("reading", &path)?;
        // One that is torn or cannot be read holds nothing that could be relied on.
        if !pack::is_of(&found.file("pack"), &bytes)? {
            continue;
        }
        let bad = known.as_ref().and_then(|known| known.packs.get(&found.stem()));
        let bad = bad.map_or(&[][..], |known| &known.bad);
        // What is damaged there stands nowhere but in the light pack, perhaps.
        let whole = index::parse(bytes).unwrap_or_default().into_iter().map(|entry| entry.id);
        ids.extend(whole.filter(|id| !bad.contains(id)));
    }
    Ok(Present::from(ids))
}

impl Recompression {
    /// Goes on until everything is done (`true`), or `left` is used up or `control` says so.
    fn work(&mut self, pack: u64, left: &mut u64, control: Interrupt<'_>) -> Result<bool> {
        while let Some((entry, end)) = self.todo.front() {
            if *left == 0 || control() == Flow::Stop {
                return Ok(false);
            }
            let Some((packed, size)) = self.dense(entry, *end)? else {
                tracing::warn!(id = %entry.id, pack = self.light.name(), "an object is damaged");
                self.damaged = true;
                self.todo.pop_front();
                continue;
            };
            let writer = match &mut self.writer {
                Some(writer) => writer,
                None => self.writer.insert(PackWriter::create(&self.git_dir(), pack::DENSE)?),
            };
            writer.append(&packed)?;
            let full = writer.length() >= pack;
            self.todo.pop_front();
            *left = left.saturating_sub(size);
            if full {
                if !self.wait(control)? {
                    return Ok(false);
                }
                self.finish()?;
            }
        }
        if !self.wait(control)? {
            return Ok(false);
        }
        self.finish()?;
        self.wait(control)
    }

    fn git_dir(&self) -> PathBuf {
        self.light.path.ancestors().nth(3).unwrap_or(&self.light.path).to_owned()
    }

    /// Has the pack that was written so far put in its place, behind this thread.
    fn finish(&mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let (sender, receiver) = channel();
        let finishing = move || {
            // Nobody waits any more when the receiver is gone.
            let _ = sender.send(writer.finish());
        };
        let started = Builder::new().name("sync".to_owned()).spawn(finishing);
        started.map_err(|error| Error::new(Code::Internal, "no thread could be started").caused_by(error))?;
        self.finishing = Some(receiver);
        Ok(())
    }

    /// Waits for the pack that is being finished; `false` when `control` says so before.
    fn wait(&mut self, control: Interrupt<'_>) -> Result<bool> {
        while let Some(finishing) = &self.finishing {
            match finishing.recv_timeout(PAUSE) {
                Ok(outcome) => {
                    self.finishing = None;
                    outcome?;
                }
                Err(RecvTimeoutError::Timeout) if control() == Flow::Continue => {}
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => {
                    self.finishing = None;
                    return Err(Error::new(Code::Internal, "a pack was not finished"));
                }
            }
        }
        Ok(true)
    }

    /// An entry, proved and compressed, and the bytes of its content; `None` when it is damaged.
    fn dense(&self, entry: &Entry, end: u64) -> Result<Option<(pack::Packed, u64)>> {
        let Some(bytes) = consolidate::read(&self.file, entry, end, &self.light.file("pack"))? else {
            return Ok(None);
        };
        let content = |(kind, size, at): (ObjectKind, u64, usize)| {
            let content = deflate::inflate(&bytes[at..], usize::try_from(size).ok()?)?;
            Some((kind, content)).filter(|(kind, content)| pack::plain_id(*kind, content) == entry.id)
        };
        let Some((kind, content)) = pack::entry_of(&bytes).and_then(content) else {
            return Ok(None);
        };
        let size = content.len() as u64;
        Ok(Some((pack::compress(kind, entry.id, &content, Effort::Small)?, size)))
    }
}
