//! The objects of a store, read without libgit2: loose ones, those of packs, and those that a repository borrows.
//!
//! libgit2 maps indexes and packs and trusts what they say, so that a flipped bit or a file that is cut ends the process. Here files are
//! read, every number is checked, and what comes out is proved by its id. *Invariant:* nothing is delivered that its id does not say.
//! *Invariant:* reading changes nothing but a note of what was found damaged; the next writer acts on it ([`Objects::account`]).

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::entry::{Fault, Head};
use super::inventory::Inventory;
use super::loose::{self, Loose};
use super::packs::{Identity, Pack, Set};
use super::{damaged, layout, pack};
use crate::error::{Error, IoContext, Result};
use crate::model::id::{ObjectHasher, ObjectId, ObjectKind};
use crate::sys::durable::{create_private_dir, sync_dir, unique_suffix};

/// Objects that were found damaged when they were read, a line each.
const NOTED: &str = "piton-damaged";

/// Bases of deltas in other packs: so many steps are followed.
const STEPS: usize = 64;

/// Bounds the chain of repositories that borrow from each other.
const BORROWED: usize = 5;

/// Looks for something of the object that begins at a place of a pack.
type Packed<'p, T> = dyn FnMut(&Pack, u64) -> Result<(Kind, T), Fault> + 'p;

/// Looks for the same in a file of its own.
type Alone<'l, T> = dyn Fn(&Path) -> Result<Loose<(ObjectKind, T)>> + 'l;

/// All objects that a repository finds.
pub struct Objects {
    git_dir: PathBuf,
    /// Its directory of objects, and those that it borrows from.
    dirs: Vec<PathBuf>,
    set: Mutex<Option<Arc<Set>>>,
    /// The packs that were compared with the inventory last. What was listed since by readers may lack what these held.
    accounted: Mutex<Option<Arc<Set>>>,
    /// The inventory as it was after that.
    told: Mutex<Option<Identity>>,
}

/// The kind of an object; `None` for tags, which piton never writes.
pub type Kind = Option<ObjectKind>;

impl Objects {
    /// Of the repository at `git_dir`. Nothing is read yet.
    pub fn new(git_dir: &Path) -> Objects {
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
            dirs,
            set: Mutex::new(None),
            accounted: Mutex::new(None),
            told: Mutex::new(None),
        }
    }

    /// True if it borrows from others.
    pub fn borrows(&self) -> bool {
        self.dirs.len() > 1
    }

    fn load(&self, old: Option<&Set>, known: Option<&Inventory>) -> Result<Arc<Set>> {
        let dirs: Vec<PathBuf> = self.dirs.iter().map(|dir| dir.join("pack")).collect();
        Set::load(&dirs, old, known).map(Arc::new)
    }

    /// The packs as they were listed last.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn set(&self) -> Result<Arc<Set>> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = &*set {
            return Ok(Arc::clone(set));
        }
        let loaded = self.load(None, Inventory::load(&self.git_dir).as_ref())?;
        Ok(Arc::clone(set.insert(loaded)))
    }

    /// The packs as they are now.
    ///
    /// # Errors
    /// As [`Objects::set`].
    pub fn refresh(&self) -> Result<Arc<Set>> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = set.as_ref().filter(|set| set.is_current()) {
            return Ok(Arc::clone(set));
        }
        let loaded = self.load(set.as_deref(), Inventory::load(&self.git_dir).as_ref())?;
        Ok(Arc::clone(set.insert(loaded)))
    }

    /// True if an object stands alone in a file that is not empty.
    pub fn is_loose(&self, id: &ObjectId) -> bool {
        self.dirs.iter().any(|dir| loose::path_in(dir, id).symlink_metadata().is_ok_and(|facts| facts.len() > 0))
    }

    /// True if an object is there.
    ///
    /// # Errors
    /// As [`Objects::set`].
    pub fn has(&self, id: &ObjectId) -> Result<bool> {
        let set = self.set()?;
        Ok(set.has(id) || self.is_loose(id) || (!set.is_current() && self.refresh()?.has(id)))
    }

    /// An object, proved; `None` for its kind if it is a tag.
    ///
    /// # Errors
    /// `store-damaged` when it is missing, cut or not what its id says.
    pub fn read(&self, id: &ObjectId) -> Result<(Kind, Vec<u8>)> {
        self.read_by(id, STEPS)
    }

    fn read_by(&self, id: &ObjectId, steps: usize) -> Result<(Kind, Vec<u8>)> {
        let packed = &mut |pack: &Pack, at: u64| {
            let (kind, content) = pack.with(&|base| self.base(base, steps), |source| source.read(at))?;
            match kind {
                Some(kind) if pack::plain_id(kind, &content) != *id => Err(Fault::Damaged("it has other bytes")),
                kind => Ok((kind, content)),
            }
        };
        self.tried(id, packed, &|path| loose::read(path, id))
    }

    /// An object that another one is a delta on.
    fn base(&self, id: &ObjectId, steps: usize) -> Option<(ObjectKind, Vec<u8>)> {
        let (kind, content) = self.read_by(id, steps.checked_sub(1)?).ok()?;
        Some((kind?, content))
    }

    /// Kind and size of an object, which is not proved.
    ///
    /// # Errors
    /// `store-damaged` when it is missing or its beginning cannot be read.
    pub fn describe(&self, id: &ObjectId) -> Result<(Kind, u64)> {
        let packed =
            &mut |pack: &Pack, at: u64| pack.with(&|base| self.base(base, STEPS), |source| source.describe(at));
        self.tried(id, packed, &loose::describe)
    }

    /// Tries each place where an object may be, and once more where packs came meanwhile.
    fn tried<T>(&self, id: &ObjectId, packed: &mut Packed<'_, T>, loose: &Alone<'_, T>) -> Result<(Kind, T)> {
        let (mut set, mut fault) = (self.set()?, None);
        loop {
            for pack in &set.packs {
                let Some(at) = pack.find(id) else { continue };
                let path = pack.stem.with_extension("pack");
                match packed(pack, at) {
                    Ok(found) => return Ok(found),
                    Err(Fault::Damaged(why)) => fault = Some((why, path)),
                    // Consolidated away; the new pack is found below.
                    Err(Fault::System(error)) if error.kind() == ErrorKind::NotFound => {}
                    Err(Fault::System(error)) => return Err(Error::io(error, "reading", &path)),
                }
            }
            for dir in &self.dirs {
                let path = loose::path_in(dir, id);
                match loose(&path)? {
                    Loose::There((kind, found)) => return Ok((Some(kind), found)),
                    Loose::Damaged => fault = Some(("it has other bytes than its id says", path)),
                    Loose::Absent => {}
                }
            }
            let now = self.refresh()?;
            if Arc::ptr_eq(&now, &set) {
                break;
            }
            set = now;
        }
        Err(match fault {
            None => damaged(id, "is missing from the store"),
            Some((why, path)) => {
                self.note(id);
                damaged(id, &format!("is damaged: {why}")).path(path)
            }
        })
    }

    /// Writes down that an object is damaged, for the next writer.
    pub fn note(&self, id: &ObjectId) {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(self.git_dir.join(NOTED));
        // It is found again when it is read again: where nothing can be written, nothing is lost.
        let _ = file.and_then(|mut file| file.write_all(format!("{id}\n").as_bytes()));
    }

    /// Writes a blob that stands whole in a pack to `out` piece by piece; `None` if it does not stand so.
    ///
    /// # Errors
    /// `store-damaged`; those of writing. What was written before is to be thrown away then.
    pub fn stream(&self, id: &ObjectId, out: &mut dyn Write) -> Result<Option<u64>> {
        let set = self.set()?;
        let Some((pack, at)) = set.packs.iter().find_map(|pack| Some((pack, pack.find(id)?))) else { return Ok(None) };
        let mut refused = None;
        let done = pack.with(&|_| None, |source| {
            let head = source.head(at)?;
            if head.form != super::entry::Form::Whole(ObjectKind::Blob) {
                return Ok(None);
            }
            let Head { size, .. } = head;
            let (mut hasher, mut stream) =
                (ObjectHasher::new(ObjectKind::Blob, size), source.stream(&head).take(size + 1));
            let (mut piece, mut total) = (vec![0; 64 << 10], 0);
            loop {
                let n = stream.read(&mut piece)?;
                if n == 0 {
                    break;
                }
                total += n as u64;
                hasher.update(&piece[..n]);
                if let Err(error) = out.write_all(&piece[..n]) {
                    refused = Some(error);
                    return Ok(None);
                }
            }
            let is_whole = total == size && hasher.finish().is_ok_and(|found| found == *id);
            if is_whole { Ok(Some(size)) } else { Err(Fault::Damaged("it has other bytes")) }
        });
        if let Some(error) = refused {
            return Err(error).at("writing", "restored content");
        }
        match done {
            Ok(done) => Ok(done),
            Err(Fault::System(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(Fault::System(error)) => Err(Error::io(error, "reading", &pack.stem.with_extension("pack"))),
            Err(Fault::Damaged(why)) => {
                self.note(id);
                Err(damaged(id, &format!("is damaged: {why}")).path(pack.stem.with_extension("pack")))
            }
        }
    }

    /// Gives every object to `each` until that says no; some are given twice.
    ///
    /// # Errors
    /// When directories cannot be listed.
    pub fn each(&self, each: &mut dyn FnMut(ObjectId) -> bool) -> Result<()> {
        let set = self.refresh()?;
        for pack in &set.packs {
            if !pack.index.entries().filter(|entry| !pack.bad.contains(&entry.id)).all(|entry| each(entry.id)) {
                return Ok(());
            }
        }
        for dir in &self.dirs {
            if !loose::list_in(dir)?.into_iter().all(&mut *each) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Compares what stands with what was known, before anything is taken for stored. The caller holds the store's lock.
    ///
    /// Indexes that are not to be trusted are written anew from their packs; what was found damaged is put aside. If objects went, the
    /// epoch changes. Costs a few looks where nothing moved.
    ///
    /// # Errors
    /// `disk-full`, `permission`; when packs cannot be listed or read.
    pub fn account(&self) -> Result<()> {
        let before = self.accounted.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let noted = self.git_dir.join(NOTED);
        let is_noted = noted.symlink_metadata().is_ok();
        let told = Inventory::identity(&self.git_dir)?;
        let is_told = told.is_some() && *self.told.lock().unwrap_or_else(PoisonError::into_inner) == told;
        if !is_noted && is_told && before.as_ref().is_some_and(|set| set.stands()) {
            return Ok(());
        }
        let known = Inventory::load(&self.git_dir);
        let mut set = self.load(before.as_deref(), known.as_ref())?;
        if mend(&set)? {
            set = self.load(Some(&set), known.as_ref())?;
        }
        let went = self.has_lost(before.as_deref(), known.as_ref(), &set);
        let mut next = Inventory::of(&set, went || known.as_ref().is_some_and(|known| known.is_suspect));
        // Without an inventory nobody can tell.
        let mut lost = went || known.is_none();
        if is_noted && self.put_aside(&noted, &set, &mut next)? {
            (lost, next.is_suspect) = (true, true);
            set = self.load(None, Some(&next))?;
        }
        if lost {
            tracing::warn!(
                "packs of the store are gone or hold less: what is remembered of its content is looked up again"
            );
            layout::change_epoch(&self.git_dir)?;
        }
        if known.as_ref() != Some(&next) {
            next.save(&self.git_dir)?;
        }
        if is_noted {
            std::fs::remove_file(&noted).at("removing", &noted)?;
        }
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&set));
        *self.accounted.lock().unwrap_or_else(PoisonError::into_inner) = Some(set);
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Inventory::identity(&self.git_dir)?;
        Ok(())
    }

    /// True if an object that stood in a pack stands nowhere, or may not.
    fn has_lost(&self, before: Option<&Set>, known: Option<&Inventory>, now: &Set) -> bool {
        let old = |name: &str| before.and_then(|before| before.packs.iter().find(|pack| pack.name() == name));
        let held = before.into_iter().flat_map(|before| &before.packs);
        let changed = held.filter(|old| !now.packs.iter().any(|pack| Arc::ptr_eq(pack, old)));
        for pack in changed {
            let mut ids = pack.index.entries().map(|entry| entry.id).filter(|id| !pack.bad.contains(id));
            if ids.any(|id| !now.has(&id) && !self.is_loose(&id)) {
                return true;
            }
        }
        known.into_iter().flat_map(|known| &known.packs).any(|(name, known)| {
            match now.packs.iter().find(|pack| pack.name() == *name) {
                Some(pack) => pack.objects() < known.objects,
                // What it held is known to stand elsewhere only if it was looked at before.
                None => old(name).is_none(),
            }
        })
    }

    /// Looks again at objects that were found damaged, and has them count as not there; says whether one was.
    fn put_aside(&self, noted: &Path, set: &Set, next: &mut Inventory) -> Result<bool> {
        let text = std::fs::read(noted).at("reading", noted)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut found = false;
        for id in text.lines().filter_map(|line| line.parse::<ObjectId>().ok()) {
            let path = loose::path_of(&self.git_dir, &id);
            if loose::is_damaged(&path) {
                if !found {
                    // Before the file goes: a process that is killed behind that leaves nothing that is taken for stored.
                    layout::change_epoch(&self.git_dir)?;
                }
                let aside = self.git_dir.join("damaged");
                create_private_dir(&aside)?;
                std::fs::rename(&path, aside.join(id.to_string())).at("putting aside", &path)?;
                found = true;
            }
            let holds = |pack: &Arc<Pack>| pack.find(&id).is_some() && !pack.holds(&id, &|base| self.base(base, STEPS));
            for pack in set.packs.iter().filter(|pack| holds(pack)) {
                if let Some(known) = next.packs.get_mut(&pack.name()).filter(|known| !known.bad.contains(&id)) {
                    known.bad.push(id);
                    known.objects = known.objects.saturating_sub(1);
                    found = true;
                }
            }
        }
        Ok(found)
    }

    /// Takes back that objects may be missing, after a look has shown that none is.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn trust(&self) -> Result<()> {
        match Inventory::load(&self.git_dir).filter(|known| known.is_suspect) {
            Some(known) => Inventory { is_suspect: false, ..known }.save(&self.git_dir),
            None => Ok(()),
        }
    }

    /// True if objects may be missing that checkpoints name.
    pub fn is_suspect(&self) -> bool {
        let stands = self.set.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_known = Inventory::load(&self.git_dir).is_some_and(|known| {
            let Ok(set) = stands.map_or_else(|| self.set(), Ok) else { return false };
            let is_sound = set.packs.iter().all(|pack| pack.derived.is_none() && pack.bad.is_empty());
            is_sound && !known.is_suspect && !self.has_lost(None, Some(&known), &set)
        });
        !is_known
    }
}

/// Writes indexes that were derived; says whether there were any.
fn mend(set: &Set) -> Result<bool> {
    let mut mended = false;
    for pack in &set.packs {
        let Some(bytes) = pack.derived.as_ref().and_then(|rescue| rescue.bytes.as_ref()) else { continue };
        let path = pack.stem.with_extension("idx");
        let aside = path.with_file_name(format!("tmp_idx_{}", unique_suffix()));
        pack::write_synced(&aside, bytes)?;
        std::fs::rename(&aside, &path).at("renaming", &aside)?;
        sync_dir(path.parent().unwrap_or(Path::new(".")))?;
        tracing::warn!(path = %path.display(), "a pack's index was written anew");
        mended = true;
    }
    Ok(mended)
}
