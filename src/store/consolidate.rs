//! Makes few packs of many, and a pack of many loose objects, in idle time. It knows no checkpoint and deletes nothing:
//! [`super::upkeep`] does that, more seldom.
//!
//! One call does one step: it packs small packs' objects, or loose ones, against each other into one new pack, synced
//! with its index before anything goes. The replaced files are first written down in `superseded`. They are then
//! removed with the store lock held alone, without waiting for it; while another process writes, the next call does
//! only that. Wherever the process is killed, every object exists at least once. No object is lost or replaced: the
//! epoch stays.

use std::collections::HashSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::damage::damaged;
use super::deltas::{Plain, put_in_order};
use super::index::PackEntry;
use super::inventory::Inventory;
use super::loose;
use super::pack::{self, Packed};
use super::pack_files::{PackFile, StorePaths, gone, packs, read, remove_files, spans, try_lock};
use super::packing::Packing;
use super::repository::Store;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::replace_file;
use crate::sys::interrupt::Interrupt;

/// The bounds at which work begins, and the amount that one call does.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// The most small packs that may exist.
    pub packs: usize,
    /// The number of small packs that is left when there were more.
    pub left: usize,
    /// The most bytes that one call copies; it copies two packs at least. Also the most bytes of content in memory.
    pub bytes: u64,
    /// The number of objects behind which one call takes no more; it copies two packs at least.
    pub objects: usize,
    /// The most loose objects that may exist, roughly.
    pub loose: usize,
}

/// The bounds that piton keeps to.
pub const BOUNDS: Bounds = Bounds { packs: 16, left: 4, bytes: 32 << 20, objects: usize::MAX, loose: 500 };

/// The bounds of a process that is about to end: a step that is stopped was in vain, so it is a short one.
pub const BRIEF: Bounds = Bounds { bytes: 2 << 20, objects: 1000, ..BOUNDS };

/// The length from which on a pack is large enough.
const LARGE_PACK: u64 = 16 << 20;

/// The length from which on a loose object stays as it is: it was written as a file of its own because of its size.
const LARGE_LOOSE: u64 = 1 << 20;

impl Store {
    /// Does one step, if there is one to do and no other process does it. Returns true if something was removed. A step
    /// that `control` stops is begun anew the next time.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `internal`; nothing is lost then.
    pub fn consolidate(&mut self, bounds: Bounds, control: Interrupt<'_>) -> Result<bool> {
        let place = &self.paths();
        if !self.is_due(bounds)? {
            return Ok(false);
        }
        let Some(_ours) = try_lock(&place.home.join("consolidate.lock"))? else {
            return Ok(false);
        };
        let mut superseded = read_superseded(place)?;
        if superseded.is_empty() {
            let packed = if self.small()?.len() > bounds.packs {
                self.merge(bounds, control)
            } else {
                self.pack_loose(bounds, control)
            };
            superseded = match packed {
                Err(error) if error.code() == Code::ShuttingDown => return Ok(false),
                packed => packed?,
            };
            if superseded.is_empty() {
                return Ok(false);
            }
            // Durable before anything is removed: after a kill the next call removes the rest.
            replace_file(&superseded_file(place), superseded.join("\n").as_bytes())?;
        }
        // Never waited for: a consolidation must not hold up a checkpoint. The list stays for the next call.
        let Some(alone) = try_lock(&place.home.join("store.lock"))? else {
            return Ok(false);
        };
        remove(place, &superseded)?;
        self.objects.account()?;
        drop(alone);
        Ok(true)
    }

    /// Tells whether there may be something to do: asked without a lock, since most often there is not.
    fn is_due(&self, bounds: Bounds) -> Result<bool> {
        Ok(superseded_file(&self.paths()).exists()
            || self.small()?.len() > bounds.packs
            || loose::estimate(&self.git_dir)? > bounds.loose)
    }

    /// Returns the packs that may be merged, smallest first: light ones are waiting to be compressed, long-lasting ones
    /// are merged already.
    fn small(&self) -> Result<Vec<PackFile>> {
        let mut packs = packs(&self.git_dir)?;
        packs.retain(|found| {
            !found.is_light() && !found.is_long() && found.length < LARGE_PACK && !self.refused.contains(&found.name())
        });
        Ok(packs)
    }

    /// Packs the smallest packs into one; gives its name and theirs.
    fn merge(&mut self, bounds: Bounds, control: Interrupt<'_>) -> Result<Vec<String>> {
        let packs = self.small()?;
        let wanted = packs.len() - bounds.left.min(packs.len()) + 1;
        let (mut old, mut copied, mut held, mut objects) = (Vec::new(), 0, 0, 0);
        let (mut packing, mut plain) = (Packing::new(pack::DENSE, u64::MAX), Vec::new());
        let mut seen = HashSet::new();
        for found in &packs {
            let is_much = copied + found.length > bounds.bytes || objects >= bounds.objects;
            if old.len() >= wanted || (old.len() >= 2 && is_much) {
                break;
            }
            let Some((entries, has_deltas)) = readable(found)? else {
                // Damage is not to be copied. Said once by each process.
                self.refused.push(found.name());
                continue;
            };
            let size: u64 =
                entries.iter().filter_map(|(entry, _)| Some(self.objects.describe(&entry.id).ok()?.1)).sum();
            if held + size <= bounds.bytes {
                held += size;
                // Two packs may hold the same object.
                for (entry, _) in entries.iter().filter(|(entry, _)| seen.insert(entry.id)) {
                    let (kind, content) = self.objects.read(&entry.id, bounds.bytes)?;
                    let kind = kind.ok_or_else(|| damaged(&entry.id, "is a tag"))?;
                    plain.push(Plain { id: entry.id, kind, content, path: Vec::new() });
                }
            } else if has_deltas {
                // Too much for memory, and its deltas point to other entries by their distance.
                self.refused.push(found.name());
                continue;
            } else {
                copy(self, found, &entries, &mut packing)?;
            }
            copied += found.length;
            objects += entries.len();
            old.push(found.name());
        }
        if old.len() < 2 {
            return Ok(Vec::new());
        }
        self.pack_all(packing, plain, old, control)
    }

    /// Packs loose objects when there are many, as many as one call may; gives the pack's name and theirs.
    fn pack_loose(&self, bounds: Bounds, control: Interrupt<'_>) -> Result<Vec<String>> {
        let ids = loose::list(&self.git_dir)?;
        let (mut plain, mut old, mut held) = (Vec::new(), Vec::new(), 0);
        for id in ids {
            let path = loose::path_of(&self.git_dir, &id);
            // One that went meanwhile was damaged.
            if !path.metadata().is_ok_and(|facts| facts.len() < LARGE_LOOSE) {
                continue;
            }
            if let Some((kind, content)) = loose::read_whole(&path, &id)? {
                held += content.len() as u64;
                plain.push(Plain { id, kind, content, path: Vec::new() });
                old.push(loose_name(&id));
            }
            if held > bounds.bytes || old.len() >= bounds.objects {
                break;
            }
        }
        // The number of them is an estimate: a pack of few is not worth its while.
        if old.len() < (bounds.loose / 2).min(bounds.objects) && held <= bounds.bytes {
            return Ok(Vec::new());
        }
        self.pack_all(Packing::new(pack::DENSE, u64::MAX), plain, old, control)
    }

    /// Packs objects into one pack with what is in it already; gives its name and what it replaces.
    fn pack_all(
        &self,
        mut packing: Packing,
        mut plain: Vec<Plain>,
        old: Vec<String>,
        control: Interrupt<'_>,
    ) -> Result<Vec<String>> {
        put_in_order(&mut plain);
        let mut made = None;
        for one in plain {
            made = packing.add(self, one, control)?.or(made);
        }
        while let Some(last) = packing.end(self, control)? {
            made = Some(last);
        }
        let Some(made) = made else { return Ok(Vec::new()) };
        let new = format!("pack/{}", made.name);
        Ok([new].into_iter().chain(old).collect())
    }
}

fn superseded_file(place: &StorePaths) -> PathBuf {
    place.home.join(place.superseded)
}

/// Returns the lines of `superseded`: the pack that replaces the rest, then the paths below `objects` to remove.
fn read_superseded(place: &StorePaths) -> Result<Vec<String>> {
    let path = superseded_file(place);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Error::io(error, "reading", &path)),
    }
}

/// Removes superseded files, if the pack that replaces them still exists.
fn remove(place: &StorePaths, superseded: &[String]) -> Result<()> {
    let objects = place.git_dir.join("objects");
    if let Some((new, old)) = superseded.split_first()
        && objects.join(format!("{new}.idx")).is_file()
        && objects.join(format!("{new}.pack")).is_file()
    {
        let packs: Vec<&str> = old.iter().filter_map(|name| name.strip_prefix("pack/")).collect();
        // First, or a killed removal would look like a loss of objects.
        Inventory::forget(&place.git_dir, &packs)?;
        for name in old.iter().filter(|name| *name != new && is_plain(name)) {
            if name.starts_with("pack/") {
                remove_files(&objects.join(name))?;
            } else {
                gone(&objects.join(name))?;
            }
        }
        tracing::info!(pack = new, replaced = old.len(), "consolidated the store");
    }
    gone(&superseded_file(place))
}

/// Returns true for a directory and a name as this module writes them: a path that leads elsewhere is not followed.
fn is_plain(name: &str) -> bool {
    let word = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    name.split_once('/').is_some_and(|(dir, file)| word(dir) && word(file))
}

/// The entries of a pack in their order, each with where the next begins; and true if there are deltas among them.
type Readable = (Vec<(PackEntry, u64)>, bool);

/// Reads all entries of a pack; `None` when one is damaged.
fn readable(found: &PackFile) -> Result<Option<Readable>> {
    let Some(spans) = spans(found)? else {
        return Ok(None);
    };
    let path = found.path.with_extension("pack");
    let file = File::open(&path).at("opening", &path)?;
    let mut has_deltas = false;
    for (entry, end) in &spans {
        let Some(bytes) = read(&file, entry, *end, &path)? else {
            tracing::warn!(path = %path.display(), id = %entry.id, "a pack is damaged");
            return Ok(None);
        };
        // Types 1 to 4 are whole objects; others are deltas.
        has_deltas |= !matches!(bytes[0] >> 4 & 7, 1..=4);
    }
    Ok(Some((spans, has_deltas)))
}

fn copy(store: &Store, found: &PackFile, entries: &[(PackEntry, u64)], packing: &mut Packing) -> Result<()> {
    let path = found.path.with_extension("pack");
    let file = File::open(&path).at("opening", &path)?;
    for (entry, end) in entries {
        let bytes = read(&file, entry, *end, &path)?.ok_or_else(|| damaged(&entry.id, "changed meanwhile"))?;
        packing.append(store, vec![Packed { id: entry.id, bytes }])?;
    }
    Ok(())
}

fn loose_name(id: &ObjectId) -> String {
    let hex = id.to_string();
    format!("{}/{}", &hex[..2], &hex[2..])
}
