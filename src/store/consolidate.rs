//! Makes few packs of many, and a pack of very many loose objects, in idle time.
//!
//! One call does one step: it copies small packs' entries as they are (or packs loose objects) into one new pack,
//! synced with its index before anything goes. The replaced files are first written down in `superseded`. They are then
//! removed with the store lock held alone, without waiting for it; while another process writes, the next call does
//! only that. Wherever the process is killed, every object exists at least once. No object is lost or replaced: the
//! epoch stays.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::damage::damaged;
use super::deflate::Effort;
use super::index::PackEntry;
use super::inventory::Inventory;
use super::loose;
use super::pack::{self, PackWriter, Packed};
use super::pack_files::{PackFile, StorePaths, gone, packs, read, remove_files, spans, try_lock};
use super::repository::Store;
use crate::error::{Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::{replace_file, sync_dir};

/// The bounds at which work begins, and the amount that one call does.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// The most packs that may exist.
    pub packs: usize,
    /// The number of packs that is left when there were more.
    pub left: usize,
    /// The most bytes that one call copies; it copies two packs at least.
    pub bytes: u64,
    /// The most loose objects that may exist.
    pub loose: usize,
}

/// The bounds that piton keeps to.
pub const BOUNDS: Bounds = Bounds { packs: 50, left: 25, bytes: 256 << 20, loose: 6000 };

impl Store {
    /// Does one step, if there is one to do and no other process does it. Returns true if something was removed.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `internal`; nothing is lost then.
    pub fn consolidate(&mut self, bounds: Bounds) -> Result<bool> {
        let place = &self.paths();
        if !is_due(place, bounds)? {
            return Ok(false);
        }
        let Some(_ours) = try_lock(&place.home.join("consolidate.lock"))? else {
            return Ok(false);
        };
        let mut superseded = read_superseded(place)?;
        if superseded.is_empty() {
            let packs = dense(&place.git_dir)?;
            superseded =
                if packs.len() > bounds.packs { merge(place, packs, bounds)? } else { pack_loose(place, bounds)? };
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
}

/// Tells whether there may be something to do: asked without a lock, since most often there is not.
fn is_due(place: &StorePaths, bounds: Bounds) -> Result<bool> {
    // Ids are as good as random: one directory of 256 shows if counting them all is worth it.
    Ok(superseded_file(place).exists()
        || dense(&place.git_dir)?.len() > bounds.packs
        || loose::sample(&place.git_dir)? > bounds.loose / 256)
}

fn superseded_file(place: &StorePaths) -> PathBuf {
    place.home.join("superseded")
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

/// Returns the packs that may be merged: light ones are waiting to be compressed, long-lasting ones are merged already.
fn dense(git_dir: &Path) -> Result<Vec<PackFile>> {
    let mut packs = packs(git_dir)?;
    packs.retain(|found| !found.is_light() && !found.is_long());
    Ok(packs)
}

/// Copies the smallest packs into one; gives its name and theirs.
fn merge(place: &StorePaths, packs: Vec<PackFile>, bounds: Bounds) -> Result<Vec<String>> {
    let wanted = packs.len() - bounds.left.min(packs.len()) + 1;
    let mut writer = PackWriter::create(&place.git_dir, pack::DENSE)?;
    let (mut old, mut copied) = (Vec::new(), 0);
    for found in &packs {
        if old.len() >= wanted || (old.len() >= 2 && copied + found.length > bounds.bytes) {
            break;
        }
        // Deltas point to other entries by their distance, and damage is not to be copied: such packs stay.
        let Some(entries) = readable(found)? else {
            continue;
        };
        copy(found, &entries, &mut writer)?;
        copied += found.length;
        old.push(found.name());
    }
    if old.len() < 2 {
        return Ok(Vec::new());
    }
    let mut superseded = vec![format!("pack/{}", writer.finish()?)];
    superseded.append(&mut old);
    Ok(superseded)
}

/// Returns the entries of a pack in their order; `None` when there are deltas among them, or one is damaged.
fn readable(found: &PackFile) -> Result<Option<Vec<(PackEntry, u64)>>> {
    let Some(spans) = spans(found)? else {
        return Ok(None);
    };
    let path = found.path.with_extension("pack");
    let file = File::open(&path).at("opening", &path)?;
    for (entry, end) in &spans {
        let Some(bytes) = read(&file, entry, *end, &path)? else {
            tracing::warn!(path = %path.display(), id = %entry.id, "a pack is damaged");
            return Ok(None);
        };
        // Types 1 to 4 are whole objects; others are deltas.
        if !matches!(bytes[0] >> 4 & 7, 1..=4) {
            return Ok(None);
        }
    }
    Ok(Some(spans))
}

fn copy(found: &PackFile, entries: &[(PackEntry, u64)], writer: &mut PackWriter) -> Result<()> {
    let path = found.path.with_extension("pack");
    let file = File::open(&path).at("opening", &path)?;
    for (entry, end) in entries {
        // Two packs may hold the same object.
        if writer.contains(&entry.id) {
            continue;
        }
        let bytes = read(&file, entry, *end, &path)?.ok_or_else(|| damaged(&entry.id, "changed meanwhile"))?;
        writer.append(&Packed { id: entry.id, bytes })?;
    }
    Ok(())
}

/// Packs loose objects when there are very many, as many as one call may; gives the pack's name and theirs.
fn pack_loose(place: &StorePaths, bounds: Bounds) -> Result<Vec<String>> {
    let ids = loose::list(&place.git_dir)?;
    if ids.len() <= bounds.loose {
        return Ok(Vec::new());
    }
    let mut writer = PackWriter::create(&place.git_dir, pack::DENSE)?;
    let (mut old, mut copied) = (Vec::new(), 0);
    for id in ids {
        let path = loose::path_of(&place.git_dir, &id);
        let length = path.metadata().at("looking at", &path)?.len();
        if copied + length > bounds.bytes {
            // A large object may stay loose: it was written as a file of its own because of its size.
            continue;
        }
        if let Some((kind, content)) = loose::read_whole(&path, &id)? {
            writer.append(&pack::compress(kind, id, &content, Effort::Fast)?)?;
            copied += length;
            old.push(loose_name(&id));
        }
    }
    if old.is_empty() {
        return Ok(old);
    }
    old.insert(0, format!("pack/{}", writer.finish()?));
    // The pack's name has to be durable before its loose objects are removed.
    sync_dir(&place.git_dir.join("objects/pack"))?;
    Ok(old)
}

fn loose_name(id: &ObjectId) -> String {
    let hex = id.to_string();
    format!("{}/{}", &hex[..2], &hex[2..])
}
