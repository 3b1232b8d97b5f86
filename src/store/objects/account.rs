//! The check of a writer before it takes any object for stored. It compares the existing packs with the inventory,
//! writes damaged indexes anew, and counts damaged and missing objects as not there.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use super::{ObjectPlace, Objects, STEPS};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::store::entry::Fault;
use crate::store::inventory::{self, Inventory};
use crate::store::packs::{Pack, Set};
use crate::store::{layout, loose, pack};
use crate::sys::fs::durable::{create_private_dir, sync_dir, unique_suffix};
use crate::sys::fs::mark::FileMark;

/// The most missing objects that are remembered. Each costs a look per checkpoint; a further missing one costs a look
/// at all.
const MOST_LOST: usize = 1000;

/// The result of a comparison with the inventory.
pub(super) struct Accounted {
    /// The packs that stood then.
    pub(super) set: Arc<Set>,
    /// The inventory as it was after that.
    told: Option<FileMark>,
    /// Objects that are known to be missing.
    lost: BTreeSet<ObjectId>,
}

/// The objects that readers have noted.
struct Notes {
    /// The ids in the order in which they were noted.
    ids: Vec<ObjectId>,
    /// Bytes of the file when it was read.
    length: usize,
}

impl Objects {
    /// Compares the packs with the inventory, before any object is taken for stored. The caller holds the store's lock.
    ///
    /// Indexes that cannot be trusted are written anew from their packs; damaged objects are put aside. If objects were
    /// lost, the epoch changes. Without a change it costs a few looks.
    ///
    /// # Errors
    /// `disk-full`, `permission`; when packs cannot be listed or read.
    pub(crate) fn account(&self) -> Result<()> {
        let before = self.accounted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_noted = self.noted.symlink_metadata().is_ok();
        let told = Inventory::identity(&self.git_dir)?;
        let stands = |before: &Accounted| {
            let is_told = told.is_some() && before.told == told;
            is_told && before.set.stands() && !before.lost.iter().any(|id| self.is_loose(id))
        };
        if !is_noted && before.as_deref().is_some_and(stands) {
            return Ok(());
        }
        let before = before.as_deref().map(|before| &*before.set);
        let accounted = match self.compare(before, false)? {
            Some(accounted) => accounted,
            None => {
                // One process at a time: the inventory must not change between its reading and its writing.
                let _lock = Inventory::lock(&self.git_dir)?;
                let changed = self.compare(before, true)?;
                changed.ok_or_else(|| Error::new(Code::Internal, "the packs of the store could not be compared"))?
            }
        };
        self.put(Arc::clone(&accounted.set));
        *self.accounted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(accounted));
        Ok(())
    }

    /// Does the work of [`Objects::account`]. Returns `None` if something has to be changed, which only the holder of
    /// the inventory's lock may do.
    fn compare(&self, before: Option<&Set>, holds_lock: bool) -> Result<Option<Accounted>> {
        let notes = self.notes()?;
        if notes.is_some() && !holds_lock {
            return Ok(None);
        }
        // Taken before the inventory is read, so that a later change is noticed by the next look.
        let told = Inventory::identity(&self.git_dir)?;
        let mut known = Inventory::load(&self.git_dir);
        // A noted object may be whole: its index may have rotted without a change that the file system shows.
        let mut set = if notes.is_some() {
            known = known.map(|known| known.verified(&self.git_dir));
            self.load(None, known.as_ref())?
        } else {
            let listed = self.set.lock().unwrap_or_else(PoisonError::into_inner).clone();
            self.load(Some(listed.as_ref().map_or(&[][..], |set| &set.packs)), known.as_ref())?
        };
        if !holds_lock && set.packs.iter().any(|pack| pack.derived.is_some()) {
            // Kept, so that a damaged index is derived only once.
            self.put(set);
            return Ok(None);
        }
        if let Some(mended) = mend(&set)? {
            set = self.load(Some(&set.packs), Some(&mended))?;
        }
        let went = self.has_lost(before, known.as_ref(), &set);
        // Without an inventory a loss cannot be excluded.
        let mut next = set.inventory(went || known.as_ref().is_none_or(|known| known.is_suspect));
        let mut is_news = went || known.is_none();
        let lost = known.iter().flat_map(|known| &known.lost).copied();
        next.lost = lost.filter(|id| !set.has(id) && !self.is_loose(id)).collect();
        if let Some(notes) = &notes
            && self.put_aside(&notes.ids, &set, &mut next)?
        {
            (is_news, next.is_suspect) = (true, true);
            set = self.load(None, Some(&next))?;
        }
        if !holds_lock && (is_news || known.as_ref() != Some(&next)) {
            return Ok(None);
        }
        if is_news {
            tracing::warn!("objects of the store are missing or damaged, so piton reads the store's content again");
            layout::change_epoch(&self.git_dir)?;
        }
        if known.as_ref() != Some(&next) {
            next.save(&self.git_dir)?;
        }
        if let Some(notes) = notes {
            self.take_back(&notes)?;
        }
        let told = if holds_lock { Inventory::identity(&self.git_dir)? } else { told };
        Ok(Some(Accounted { set, told, lost: next.lost }))
    }

    /// Reads the notes; `None` if there are none.
    fn notes(&self) -> Result<Option<Notes>> {
        let text = match std::fs::read(&self.noted) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(error, "reading", &self.noted)),
        };
        let ids: BTreeSet<ObjectId> =
            String::from_utf8_lossy(&text).lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Some(Notes { ids: ids.into_iter().collect(), length: text.len() }))
    }

    /// Returns the objects that readers have found damaged or missing since somebody wrote last.
    ///
    /// # Errors
    /// When the notes cannot be read.
    pub(crate) fn noted(&self) -> Result<Vec<ObjectId>> {
        Ok(self.notes()?.map(|notes| notes.ids).unwrap_or_default())
    }

    /// Removes notes that were acted on. If a reader has added some meanwhile, all stay for the next writer.
    fn take_back(&self, notes: &Notes) -> Result<()> {
        if self.noted.metadata().is_ok_and(|facts| facts.len() > notes.length as u64) {
            return Ok(());
        }
        std::fs::remove_file(&self.noted).at("removing", &self.noted)
    }

    /// Returns true if packs that were there at the last comparison, of this process or another, are gone with objects. Changes
    /// nothing; the next writer acts on it.
    ///
    /// # Errors
    /// When the packs cannot be listed.
    pub(crate) fn lacks_packs(&self) -> Result<bool> {
        let before = self.accounted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if before.as_ref().is_some_and(|before| before.set.is_current()) {
            return Ok(false);
        }
        let now = self.refresh()?;
        let before = before.as_deref().map(|before| &*before.set);
        Ok(self.has_lost(before, Inventory::load(&self.git_dir).as_ref(), &now))
    }

    /// Returns true if an object of a pack is gone, or may be gone.
    fn has_lost(&self, before: Option<&Set>, known: Option<&Inventory>, now: &Set) -> bool {
        let old = |name: &str| before.and_then(|before| before.packs.iter().find(|pack| pack.name() == name));
        let held = before.into_iter().flat_map(|before| &before.packs);
        let changed = held.filter(|old| !now.packs.iter().any(|pack| Arc::ptr_eq(pack, old)));
        // A pack that was taken out of the inventory was removed on purpose, or another writer has noticed its loss. In both
        // cases the epoch has changed if objects went.
        let was_taken_out = |pack: &Pack| {
            let name = pack.name();
            inventory::may_name(&name) && known.is_some_and(|known| !known.packs.contains_key(&name))
        };
        for pack in changed.filter(|pack| !was_taken_out(pack)) {
            let mut ids: Vec<ObjectId> =
                pack.index.entries().map(|entry| entry.id).filter(|id| !pack.bad.contains(id)).collect();
            now.packs.iter().for_each(|pack| pack.strike_out(&mut ids));
            if ids.iter().any(|id| !self.is_loose(id)) {
                return true;
            }
        }
        known.into_iter().flat_map(|known| &known.packs).any(|(name, known)| {
            match now.packs.iter().find(|pack| pack.name() == *name) {
                Some(pack) => pack.objects() < known.objects,
                // Its objects are known to be elsewhere only if the pack was looked at before.
                None => old(name).is_none(),
            }
        })
    }

    /// Looks again at objects that were found damaged or missing, and counts them as not there. Returns true if one of
    /// them was not known before.
    fn put_aside(&self, ids: &[ObjectId], set: &Set, next: &mut Inventory) -> Result<bool> {
        let mut is_news = false;
        for id in ids {
            let path = loose::path_of(&self.git_dir, id);
            if loose::is_damaged(&path, id) {
                if !is_news {
                    // Changed before the file is moved: if the process is killed in between, no object is wrongly taken
                    // for stored.
                    layout::change_epoch(&self.git_dir)?;
                }
                is_news |= self.put_file_aside(&path, id)?;
            }
            let (mut stands, steps) = (self.is_loose(id), Cell::new(STEPS));
            for pack in &set.packs {
                let Some(at) = pack.find(id) else { continue };
                match self.prove(ObjectPlace::Packed(pack, at), id, &steps) {
                    Err(Fault::Damaged(_)) => {}
                    // An object that the system cannot read now is not judged.
                    Ok(()) | Err(Fault::System(_) | Fault::Refused(_)) => {
                        stands = true;
                        continue;
                    }
                }
                if let Some(known) = next.packs.get_mut(&pack.name()).filter(|known| !known.bad.contains(id)) {
                    known.bad.push(*id);
                    known.objects = known.objects.saturating_sub(1);
                    is_news = true;
                }
            }
            if !stands && !next.lost.contains(id) {
                is_news = true;
                if next.lost.len() < MOST_LOST {
                    next.lost.insert(*id);
                }
            }
        }
        Ok(is_news)
    }

    /// Moves a damaged file of an object out of the way; `false` if a writer has put a whole one there meanwhile.
    fn put_file_aside(&self, path: &Path, id: &ObjectId) -> Result<bool> {
        let dir = self.git_dir.join("damaged");
        create_private_dir(&dir)?;
        let aside = dir.join(id.to_string());
        std::fs::rename(path, &aside).at("putting aside", path)?;
        if loose::is_damaged(&aside, id) {
            return Ok(true);
        }
        std::fs::rename(&aside, path).at("putting back", &aside)?;
        Ok(false)
    }

    /// Takes back the suspicion that objects are missing, after a look that began at `epoch` has found none.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(crate) fn trust(&self, epoch: &str) -> Result<()> {
        if Inventory::load(&self.git_dir).is_none_or(|known| !known.is_suspect) {
            return Ok(());
        }
        let _lock = Inventory::lock(&self.git_dir)?;
        // A loss that the look may not have seen has changed the epoch or left a note.
        if layout::epoch(&self.git_dir)? != epoch || self.noted.symlink_metadata().is_ok() {
            return Ok(());
        }
        match Inventory::load(&self.git_dir).filter(|known| known.is_suspect) {
            Some(known) => Inventory { is_suspect: false, ..known }.save(&self.git_dir),
            None => Ok(()),
        }
    }

    /// Returns true if objects may be missing that checkpoints name.
    pub(crate) fn is_suspect(&self) -> bool {
        if self.noted.symlink_metadata().is_ok() {
            return true;
        }
        let stands = self.set.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_known = Inventory::load(&self.git_dir).is_some_and(|known| {
            let Ok(set) = stands.map_or_else(|| self.set(), Ok) else { return false };
            let is_elsewhere = |id: &ObjectId| set.has(id) || self.is_loose(id);
            let is_sound = set.packs.iter().all(|pack| pack.derived.is_none() && pack.bad.iter().all(is_elsewhere));
            is_sound && !known.is_suspect && !self.has_lost(None, Some(&known), &set)
        });
        !is_known
    }
}

/// Writes derived indexes. Returns the resulting inventory, if there were any.
fn mend(set: &Set) -> Result<Option<Inventory>> {
    let mut known = None;
    for pack in &set.packs {
        let Some(bytes) = &pack.derived else { continue };
        let path = pack.stem.with_extension("idx");
        let aside = path.with_file_name(format!("tmp_idx_{}", unique_suffix()));
        pack::write_synced(&aside, bytes)?;
        std::fs::rename(&aside, &path).at("renaming", &aside)?;
        sync_dir(path.parent().unwrap_or(Path::new(".")))?;
        tracing::warn!(path = %path.display(), "rebuilt the index of a pack");
        let known = known.get_or_insert_with(|| set.inventory(false));
        if let (Some(known), Some(idx)) = (known.packs.get_mut(&pack.name()), FileMark::behind(&path)?) {
            known.idx = idx;
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectKind;

    #[test]
    fn a_whole_object_that_came_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (id, objects) = (ObjectId::of(ObjectKind::Blob, b"content").unwrap(), Objects::new(dir.path()));
        let path = loose::path_of(dir.path(), &id);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let whole = loose::compress(ObjectKind::Blob, b"content").unwrap();
        std::fs::write(&path, &whole).unwrap();
        assert!(!objects.put_file_aside(&path, &id).unwrap() && std::fs::read(&path).unwrap() == whole);
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        assert!(objects.put_file_aside(&path, &id).unwrap() && !path.exists());
    }
}
