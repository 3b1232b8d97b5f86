//! The objects of a store, read without libgit2: loose ones, those of packs, and those that a repository borrows.
//!
//! libgit2 maps indexes and packs and trusts them, so a flipped bit or a cut file ends the process. Here files are
//! read, every number is checked, and each object is proved by its id. *Invariant:* delivered content always has its
//! id. *Invariant:* reading changes nothing but a note of what was found damaged or missing; the next writer acts on it
//! ([`Objects::account`]).

mod account;

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::damage::damaged;
use super::entry::{Fault, Form, OTHER_BYTES, most_of_base};
use super::index::PackEntry;
use super::inventory::Inventory;
use super::packs::{Pack, Set};
use super::{hash, loose};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectHasher, ObjectId, ObjectKind};
use crate::sys::fs::durable::append_private;
use account::Accounted;

/// The file of objects that were found damaged or missing when they were read, a line each.
const NOTED: &str = "piton-damaged";

/// The most bytes of notes. A note without room is made when the object is read again.
const MOST_NOTED: u64 = 1 << 20;

/// The most bases in other packs that are read for one object. No git makes one, so a few are enough; each takes stack.
pub(super) const STEPS: usize = 32;

/// Bounds the chain of repositories that borrow from each other.
const BORROWED: usize = 5;

/// A copy of an object: in a pack, or in a file of its own.
#[derive(Clone, Copy)]
pub(super) enum ObjectPlace<'p> {
    /// The pack, and the offset of the entry in it.
    Packed(&'p Pack, u64),
    /// The same, where the objects that it is a delta on come from any copy that is whole.
    Rebased(&'p Pack, u64),
    /// The loose file.
    Alone(&'p Path),
}

impl ObjectPlace<'_> {
    fn is_rebased(self) -> bool {
        matches!(self, ObjectPlace::Rebased(..))
    }
}

/// Reads something of an object at one of its places.
type Reading<'r, T> = dyn FnMut(ObjectPlace<'_>) -> Result<T, Fault> + 'r;

/// Takes kind, size and content of an object.
pub(super) type Taking<'t, T> = dyn FnMut(ObjectKind, u64, &mut dyn Read) -> Result<T, Fault> + 't;

/// All objects that a repository finds.
pub(super) struct Objects {
    git_dir: PathBuf,
    /// The file in which damaged and missing objects are noted.
    noted: PathBuf,
    /// Its directory of objects, and those that it borrows from.
    dirs: Vec<PathBuf>,
    /// The packs as they were listed last; `None` before the first listing.
    set: Mutex<Option<Arc<Set>>>,
    /// The packs that were compared with the inventory last. The set that readers listed since may lack what this one holds.
    accounted: Mutex<Option<Arc<Accounted>>>,
    /// True if all indexes were verified because an object could not be read. Each process does so once.
    is_verified: AtomicBool,
}

/// The kind of an object; `None` for tags, which piton never writes.
pub(super) type StoredKind = Option<ObjectKind>;

impl Objects {
    /// Makes the objects of the repository at `git_dir`. Nothing is read yet.
    pub(super) fn new(git_dir: &Path) -> Objects {
        let mut dirs = vec![git_dir.join("objects")];
        let mut at = 0;
        while at < dirs.len() && dirs.len() < BORROWED {
            let listed = std::fs::read(dirs[at].join("info/alternates")).unwrap_or_default();
            let listed = String::from_utf8_lossy(&listed).into_owned();
            for line in listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let dir = dirs[at].join(line);
                if dir.is_dir() && !dirs.contains(&dir) {
                    dirs.push(dir);
                }
            }
            at += 1;
        }
        Objects {
            git_dir: git_dir.to_owned(),
            noted: git_dir.join(NOTED),
            dirs,
            set: Mutex::new(None),
            accounted: Mutex::new(None),
            is_verified: AtomicBool::new(false),
        }
    }

    /// Has damage noted in the repository at `git_dir`, from which this one borrows.
    pub(super) fn note_in(&mut self, git_dir: &Path) {
        self.noted = git_dir.join(NOTED);
    }

    /// Returns true if it borrows from others.
    pub(super) fn borrows(&self) -> bool {
        self.dirs.len() > 1
    }

    /// Lists the packs, as [`Set::load`].
    fn load(&self, old: Option<&[Arc<Pack>]>, known: Option<&Inventory>) -> Result<Arc<Set>> {
        let dirs: Vec<PathBuf> = self.dirs.iter().map(|dir| dir.join("pack")).collect();
        Set::load(&dirs, old, known).map(Arc::new)
    }

    /// Returns the packs as they were listed last.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub(super) fn set(&self) -> Result<Arc<Set>> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = &*set {
            return Ok(Arc::clone(set));
        }
        let loaded = self.load(Some(&[]), Inventory::load(&self.git_dir).as_ref())?;
        Ok(Arc::clone(set.insert(loaded)))
    }

    /// Returns the packs as they are now.
    ///
    /// # Errors
    /// As [`Objects::set`].
    pub(super) fn refresh(&self) -> Result<Arc<Set>> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = set.as_ref().filter(|set| set.is_current()) {
            return Ok(Arc::clone(set));
        }
        let old = set.as_ref().map_or(&[][..], |set| &set.packs);
        let loaded = self.load(Some(old), Inventory::load(&self.git_dir).as_ref())?;
        Ok(Arc::clone(set.insert(loaded)))
    }

    /// Returns the packs as they are now, those too that were changed in their place.
    ///
    /// # Errors
    /// As [`Objects::set`].
    pub(super) fn look_again(&self) -> Result<Arc<Set>> {
        let set = self.refresh()?;
        if set.stands() {
            return Ok(set);
        }
        Ok(self.put(self.load(Some(&set.packs), Inventory::load(&self.git_dir).as_ref())?))
    }

    fn put(&self, loaded: Arc<Set>) -> Arc<Set> {
        Arc::clone(self.set.lock().unwrap_or_else(PoisonError::into_inner).insert(loaded))
    }

    /// Lists the packs with indexes that are verified again: one may have rotted without a change that the file system
    /// shows. `None` if this process has done so before.
    fn verified(&self) -> Result<Option<Arc<Set>>> {
        if self.is_verified.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let known = Inventory::load(&self.git_dir).map(|known| known.verified(&self.git_dir));
        Ok(Some(self.put(self.load(None, known.as_ref())?)))
    }

    /// Closes the packs until they are read again.
    pub(super) fn close(&self) {
        let listed = self.set.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let accounted = self.accounted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for set in [listed.as_ref(), accounted.as_ref().map(|accounted| &accounted.set)].into_iter().flatten() {
            set.packs.iter().for_each(|pack| pack.close());
        }
    }

    /// Returns true if an object has a loose file that is not empty.
    pub(super) fn is_loose(&self, id: &ObjectId) -> bool {
        self.dirs.iter().any(|dir| loose::path_in(dir, id).symlink_metadata().is_ok_and(|facts| facts.len() > 0))
    }

    /// Returns true if an object is there.
    ///
    /// # Errors
    /// As [`Objects::set`].
    pub(super) fn has(&self, id: &ObjectId) -> Result<bool> {
        let set = self.set()?;
        Ok(set.has(id) || self.is_loose(id) || (!set.is_current() && self.refresh()?.has(id)))
    }

    /// Returns true if an object is there that a checkpoint names. A missing one is noted, so that the next writer
    /// stores it anew.
    ///
    /// # Errors
    /// As [`Objects::set`].
    pub(super) fn has_expected(&self, id: &ObjectId) -> Result<bool> {
        if self.has(id)? {
            return Ok(true);
        }
        self.note(id);
        Ok(self.verified()?.is_some_and(|set| set.has(id)))
    }

    /// Reads an object of at most so many bytes and proves it; its kind is `None` if it is a tag.
    ///
    /// # Errors
    /// `too-large`, before anything is unpacked; `store-damaged` when it is missing, cut or not what its id says.
    pub(super) fn read(&self, id: &ObjectId, most: u64) -> Result<(StoredKind, Vec<u8>)> {
        self.read_by(id, most, &Cell::new(STEPS))
    }

    fn read_by(&self, id: &ObjectId, most: u64, steps: &Cell<usize>) -> Result<(StoredKind, Vec<u8>)> {
        self.tried(id, &mut |place| match place {
            ObjectPlace::Packed(pack, at) | ObjectPlace::Rebased(pack, at) => {
                let other = |base: &ObjectId| self.base(base, most_of_base(most), steps);
                let (kind, content) =
                    pack.with(&other, place.is_rebased(), |source| source.read_within(at, id, most))?;
                match kind {
                    Some(kind) if hash::plain_id(kind, &content) != *id => Err(OTHER_BYTES),
                    kind => Ok((kind, content)),
                }
            }
            ObjectPlace::Alone(path) => loose::read(path, id, most).map(|(kind, content)| (Some(kind), content)),
        })
    }

    /// Reads an object that another one is a delta on. Uses one of `steps`, which all attempts share.
    fn base(&self, id: &ObjectId, most: u64, steps: &Cell<usize>) -> Result<(ObjectKind, Vec<u8>), Fault> {
        take_step(steps)?;
        match self.read_by(id, most, steps) {
            Ok((Some(kind), content)) => Ok((kind, content)),
            // An object that cannot be read now is not known to be damaged.
            Err(error) if error.code() != Code::StoreDamaged => Err(Fault::Refused(error)),
            Ok((None, _)) | Err(_) => Err(Fault::Damaged("its base is missing")),
        }
    }

    /// Kind and size of an object, which is not proved.
    ///
    /// # Errors
    /// `store-damaged` when it is missing or its beginning cannot be read.
    pub(super) fn describe(&self, id: &ObjectId) -> Result<(StoredKind, u64)> {
        self.describe_by(id, &Cell::new(STEPS))
    }

    fn describe_by(&self, id: &ObjectId, steps: &Cell<usize>) -> Result<(StoredKind, u64)> {
        // Only the kind of a base counts: it is not unpacked.
        let other = |base: &ObjectId| {
            take_step(steps)?;
            match self.describe_by(base, steps) {
                Ok((Some(kind), _)) => Ok((kind, Vec::new())),
                Err(error) if error.code() != Code::StoreDamaged => Err(Fault::Refused(error)),
                Ok((None, _)) | Err(_) => Err(Fault::Damaged("its base is missing")),
            }
        };
        self.tried(id, &mut |place| match place {
            ObjectPlace::Packed(pack, at) | ObjectPlace::Rebased(pack, at) => {
                pack.with(&other, place.is_rebased(), |source| source.describe(at))
            }
            ObjectPlace::Alone(path) => loose::describe(path).map(|(kind, size)| (Some(kind), size)),
        })
    }

    /// Tries each copy of an object until one can be read. Tries again if packs came meanwhile, and if an index has
    /// rotted.
    fn tried<T>(&self, id: &ObjectId, read: &mut Reading<'_, T>) -> Result<T> {
        let (mut set, mut damage, mut failed) = (self.set()?, None, None);
        loop {
            let mut tried = |place: ObjectPlace<'_>, path: PathBuf| match read(place) {
                Ok(found) => Some(found),
                Err(Fault::Damaged(why)) => {
                    damage = Some((why, path));
                    None
                }
                // The pack was consolidated into a new one, which is found below.
                Err(Fault::System(error)) if loose::is_absent(&error) => None,
                // Another copy may be whole.
                Err(Fault::System(error)) => {
                    failed = Some(Error::io(error, "reading", &path));
                    None
                }
                // Another copy may not be a delta on a large base.
                Err(Fault::Refused(error)) => {
                    failed = Some(error);
                    None
                }
            };
            for pack in &set.packs {
                let Some(at) = pack.find(id) else { continue };
                for place in [ObjectPlace::Packed(pack, at), ObjectPlace::Rebased(pack, at)] {
                    if let Some(found) = tried(place, pack.stem.with_extension("pack")) {
                        return Ok(found);
                    }
                }
            }
            for dir in &self.dirs {
                let path = loose::path_in(dir, id);
                if let Some(found) = tried(ObjectPlace::Alone(&path), path.clone()) {
                    return Ok(found);
                }
            }
            let now = self.refresh()?;
            if !Arc::ptr_eq(&now, &set) {
                set = now;
                continue;
            }
            // An object that cannot be read now is not known to be damaged.
            if let Some(error) = failed {
                return Err(error);
            }
            self.note(id);
            match self.verified()? {
                Some(now) => set = now,
                None => break,
            }
        }
        Err(match damage {
            None => damaged(id, "is missing from the store"),
            Some((why, path)) => damaged(id, &format!("is damaged: {why}")).path(path),
        })
    }

    /// Writes down that an object is damaged or missing, for the next writer.
    pub(super) fn note(&self, id: &ObjectId) {
        let write = |mut file: std::fs::File| match file.metadata()?.len() < MOST_NOTED {
            true => file.write_all(format!("{id}\n").as_bytes()),
            false => Ok(()),
        };
        // The damage is found again at the next reading, so a failed note loses nothing.
        let _ = append_private(&self.noted).and_then(write);
    }

    /// Gives kind, size and content of a copy to `take`. A delta is applied in memory first; other content is a stream.
    pub(super) fn stream<T>(
        &self,
        place: ObjectPlace<'_>,
        steps: &Cell<usize>,
        take: &mut Taking<'_, T>,
    ) -> Result<T, Fault> {
        let (pack, at) = match place {
            ObjectPlace::Alone(path) => return loose::with(path, take),
            ObjectPlace::Packed(pack, at) | ObjectPlace::Rebased(pack, at) => (pack, at),
        };
        pack.with(&|base| self.base(base, u64::MAX, steps), place.is_rebased(), |source| {
            let head = source.head(at)?;
            match head.form {
                Form::Whole(kind) => take(kind, head.size, &mut source.stream(&head)),
                Form::Tag => Err(Fault::System(ErrorKind::NotFound.into())),
                Form::OnOffset(_) | Form::OnObject(_) => match source.read(at)? {
                    (Some(kind), content) => take(kind, content.len() as u64, &mut &content[..]),
                    (None, _) => Err(Fault::System(ErrorKind::NotFound.into())),
                },
            }
        })
    }

    /// Reads a copy and proves it by its id, in constant memory.
    fn prove(&self, place: ObjectPlace<'_>, id: &ObjectId, steps: &Cell<usize>) -> Result<(), Fault> {
        self.stream(place, steps, &mut |kind, size, content| proved(id, kind, size, content, &mut |_| Ok(())))
    }

    /// Returns true if the copy of an object that a pack has is whole.
    pub(super) fn proves_in(&self, pack: &Pack, entry: &PackEntry) -> bool {
        self.prove(ObjectPlace::Packed(pack, entry.offset), &entry.id, &Cell::new(STEPS)).is_ok()
    }

    /// Returns true if a copy of an object is whole.
    pub(super) fn proves(&self, id: &ObjectId) -> bool {
        let steps = Cell::new(STEPS);
        self.tried(id, &mut |place| self.prove(place, id, &steps)).is_ok()
    }

    /// Writes a blob to `out` piece by piece, and gives its size.
    ///
    /// The only copy is proved while it is written. Of several copies each is proved before anything of it is written.
    ///
    /// # Errors
    /// `store-damaged`; those of writing. The caller then throws away the bytes written before.
    pub(super) fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        let packed = self.set()?.packs.iter().filter(|pack| pack.find(id).is_some()).count();
        let is_only = packed + usize::from(self.is_loose(id)) < 2;
        let (mut has_begun, mut refused) = (false, None);
        let (proving, writing) = (Cell::new(STEPS), Cell::new(STEPS));
        let copied = self.tried(id, &mut |place| {
            if has_begun {
                // Bytes already written cannot be taken back, so no other copy is tried.
                return Err(if refused.is_some() { Fault::System(ErrorKind::Other.into()) } else { OTHER_BYTES });
            }
            if !is_only {
                self.prove(place, id, &proving)?;
            }
            self.stream(place, &writing, &mut |kind, size, content| {
                if kind != ObjectKind::Blob {
                    return Err(Fault::Damaged("it is not a blob"));
                }
                proved(id, kind, size, content, &mut |piece| {
                    has_begun = true;
                    out.write_all(piece).map_err(|error| {
                        refused = Some(error);
                        // An error of `out` does not mean that the object is damaged.
                        Fault::System(ErrorKind::Other.into())
                    })
                })?;
                Ok(size)
            })
        });
        match refused {
            Some(error) => Err(error).at("writing", "restored content"),
            None => copied,
        }
    }

    /// Gives every object to `each` until that says no; some are given twice.
    ///
    /// # Errors
    /// When directories cannot be listed.
    pub(super) fn each(&self, each: &mut dyn FnMut(ObjectId) -> bool) -> Result<()> {
        self.each_near("", each)
    }

    /// As [`Objects::each`], of all objects whose ids begin with these hex digits, and of some others.
    ///
    /// # Errors
    /// As [`Objects::each`].
    pub(super) fn each_near(&self, hex: &str, each: &mut dyn FnMut(ObjectId) -> bool) -> Result<()> {
        let set = self.refresh()?;
        for pack in &set.packs {
            if !pack.index.entries().filter(|entry| !pack.bad.contains(&entry.id)).all(|entry| each(entry.id)) {
                return Ok(());
            }
        }
        for dir in &self.dirs {
            if !loose::list_in(dir, hex)?.into_iter().all(&mut *each) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Takes one of the steps from pack to pack.
fn take_step(steps: &Cell<usize>) -> Result<(), Fault> {
    steps.set(steps.get().checked_sub(1).ok_or(Fault::Damaged("its deltas refer to too many packs"))?);
    Ok(())
}

/// Gives content to `each` piece by piece, and proves that it is that of an id.
fn proved(
    id: &ObjectId,
    kind: ObjectKind,
    size: u64,
    content: &mut dyn Read,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let (mut hasher, mut content) = (ObjectHasher::new(kind, size), content.take(size.saturating_add(1)));
    let (mut piece, mut total) = (vec![0; 64 << 10], 0);
    loop {
        let n = content.read(&mut piece)?;
        if n == 0 {
            break;
        }
        total += n as u64;
        hasher.update(&piece[..n]);
        each(&piece[..n])?;
    }
    let is_whole = total == size && hasher.finish().is_ok_and(|found| found == *id);
    if is_whole { Ok(()) } else { Err(OTHER_BYTES) }
}
