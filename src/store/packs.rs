//! The existing packs, each with a verified index in private memory.
//!
//! An index is verified before it is first trusted, and again when the file system shows a change; `inventory`
//! remembers that across processes. One that is damaged or missing is derived from its pack again, in memory: reading
//! writes nothing. A pack that was changed in its place is compared with its index; objects that it does not hold any
//! more count as missing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::derive;
use super::entry::{Elsewhere, Fault, PackSource};
use super::index::Index;
use super::inventory::{self, Inventory, KnownPack};
use super::pack;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::clock::file_clock;
use crate::sys::fs::mark::FileMark;

/// The age below which a directory's time may hide a further change (nanoseconds).
const RACY: u64 = 20_000_000;

/// The age of a pack without an index from which on the index is lost (nanoseconds): writers rename both at once.
const ORPHANED: i64 = 1_000_000_000;

/// The size above which a pack is compared with its index only if its ends are wrong.
const EXAMINED: u64 = 1 << 30;

/// The number of objects that can be walked past at the cost of one binary search.
const FEW: usize = 16;

/// A pack and its index.
pub(super) struct Pack {
    /// Without an extension.
    pub stem: PathBuf,
    /// The index that is used: the file's own, or `derived`.
    pub index: Index,
    /// The mark of the index file; `None` if there is none.
    pub idx: Option<FileMark>,
    /// The mark of the pack file when its index was trusted.
    pub pack: FileMark,
    /// Objects that the index names and the pack does not hold.
    pub bad: BTreeSet<ObjectId>,
    /// Holds what the index file should hold, if its content is not to be trusted.
    pub derived: Option<Vec<u8>>,
    /// The open file, while the pack is read now and then.
    file: Mutex<Option<Arc<File>>>,
}

/// The packs in memory, for all workspaces of the process, so that it keeps one copy of each index.
static IN_MEMORY: Mutex<Vec<Weak<Pack>>> = Mutex::new(Vec::new());

impl Pack {
    /// Returns the name without directory and extension.
    pub(super) fn name(&self) -> String {
        self.stem.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns where an object begins.
    pub(super) fn find(&self, id: &ObjectId) -> Option<u64> {
        self.index.find(id).filter(|_| self.bad.is_empty() || !self.bad.contains(id))
    }

    /// Takes out of `ids`, which ascend, the objects that it holds. Walks along both: many lookups cost more.
    pub(super) fn strike_out(&self, ids: &mut Vec<ObjectId>) {
        if ids.len() < self.index.len() / FEW {
            return ids.retain(|id| self.find(id).is_none());
        }
        let mut held = self.index.entries().map(|entry| entry.id).peekable();
        ids.retain(|id| {
            while held.next_if(|held| held < id).is_some() {}
            held.peek() != Some(id) || self.bad.contains(id)
        });
    }

    /// Counts its objects.
    pub(super) fn objects(&self) -> u64 {
        (self.index.len() - self.bad.len().min(self.index.len())) as u64
    }

    /// Returns true if index and pack are the files that were looked at.
    fn stands(&self) -> bool {
        let same = |kind: &str, known: Option<FileMark>| {
            FileMark::behind(&self.stem.with_extension(kind)).is_ok_and(|now| now == known)
        };
        same("pack", Some(self.pack)) && same("idx", self.idx)
    }

    /// Returns true if the pack begins and ends as its index says.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn is_closed(&self) -> Result<bool> {
        let path = self.stem.with_extension("pack");
        let file = File::open(&path).at("opening", &path)?;
        let length = file.metadata().at("checking", &path)?.len();
        match pack::ends_as(&file, length, self.index.of_pack()) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            ends => ends.at("reading", &path),
        }
    }

    fn file(&self) -> std::io::Result<Arc<File>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        Ok(Arc::clone(file.insert(Arc::new(File::open(self.stem.with_extension("pack"))?))))
    }

    /// Closes the file until it is read again: while it is open, a pack that was removed keeps its room on the disk.
    pub(super) fn close(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Calls `act` with the open pack. Bases that it does not hold are read by `other`; all of them if it `is_rebased`.
    pub(super) fn with<T>(
        &self,
        other: &Elsewhere<'_>,
        is_rebased: bool,
        act: impl FnOnce(&PackSource<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let file = self.file()?;
        act(&PackSource {
            file: &file,
            length: self.pack.size,
            find: &|id| if is_rebased { None } else { self.index.find(id) },
            other,
        })
    }
}

/// The packs of a store.
pub(super) struct Set {
    /// The packs, in the order of directories and names.
    pub packs: Vec<Arc<Pack>>,
    /// The directories as they were before they were listed.
    marks: Vec<(PathBuf, Option<FileMark>)>,
    /// The moment before the first directory was listed, by the file system's clock in nanoseconds.
    listed: i64,
}

impl Set {
    /// Lists the packs in `dirs`. An unchanged file that `old`, another set of this process or the inventory knows is
    /// not looked at again. Without `old`, nothing in memory is trusted.
    ///
    /// # Errors
    /// When a directory cannot be listed, or a file not read.
    pub(super) fn load(dirs: &[PathBuf], old: Option<&[Arc<Pack>]>, known: Option<&Inventory>) -> Result<Set> {
        let (mut packs, mut marks, listed) = (Vec::new(), Vec::new(), file_clock());
        for dir in dirs {
            marks.push((dir.clone(), FileMark::behind(dir)?));
            let listing = match std::fs::read_dir(dir) {
                Ok(listing) => listing,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io(error, "listing", dir)),
            };
            let mut stems = Vec::new();
            for entry in listing {
                let path = entry.at("listing", dir)?.path();
                if path.extension().is_some_and(|kind| kind == "pack") {
                    stems.push(path.with_extension(""));
                }
            }
            stems.sort();
            for stem in stems {
                match look(&stem, old, known, listed) {
                    Ok(pack) => packs.extend(pack),
                    Err(error) if is_shortage(&error) => return Err(error),
                    // One unreadable pack must not hide the others: it counts as removed.
                    Err(error) => tracing::warn!(%error, pack = %stem.display(), "a pack cannot be read"),
                }
            }
        }
        Ok(Set { packs, marks, listed })
    }

    /// Returns true if no pack came or went since.
    pub(super) fn is_current(&self) -> bool {
        self.marks.iter().all(|(dir, mark)| {
            // A time far ahead is not recent: the next change sets another one.
            let is_racy = mark.is_some_and(|mark| mark.mtime.abs_diff(self.listed) <= RACY);
            !is_racy && FileMark::behind(dir).is_ok_and(|now| now == *mark)
        })
    }

    /// Returns true if every file is the one that was looked at, and no pack came or went.
    pub(super) fn stands(&self) -> bool {
        self.is_current() && self.packs.iter().all(|pack| pack.stands())
    }

    /// Returns true if some pack holds an object.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.packs.iter().any(|pack| pack.find(id).is_some())
    }

    /// Returns the inventory of these packs.
    pub(super) fn inventory(&self, is_suspect: bool) -> Inventory {
        let known = |pack: &Pack| {
            // A derived index has no file yet that could count as verified.
            let idx = pack.idx.filter(|_| pack.derived.is_none()).unwrap_or(FileMark::NONE);
            let bad = pack.bad.iter().copied().collect();
            (pack.name(), KnownPack { idx, pack: pack.pack, objects: pack.objects(), bad })
        };
        let packs = self.packs.iter().map(|pack| known(pack));
        let packs = packs.filter(|(name, _)| inventory::may_name(name)).collect();
        Inventory { packs, is_suspect, lost: BTreeSet::new() }
    }
}

/// Returns true if the process lacks memory or descriptors, so that no pack can be looked at.
fn is_shortage(error: &Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    let number = source.and_then(std::io::Error::raw_os_error);
    error.code() == Code::NoMemory || matches!(number, Some(libc::EMFILE | libc::ENFILE))
}

/// Finds a pack among those that this process has in memory.
fn in_memory(is_wanted: &dyn Fn(&Arc<Pack>) -> bool) -> Option<Arc<Pack>> {
    // Upgraded first, so that the last reference to a pack is dropped without the lock.
    let all: Vec<Arc<Pack>> =
        IN_MEMORY.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
    all.into_iter().find(is_wanted)
}

/// Shares a pack with the other stores of this process.
fn kept(pack: Pack) -> Arc<Pack> {
    let pack = Arc::new(pack);
    let mut known = IN_MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|pack| pack.strong_count() > 0);
    known.push(Arc::downgrade(&pack));
    pack
}

/// Looks at one pack; `None` if it went, or its index is still to come.
fn look(stem: &Path, old: Option<&[Arc<Pack>]>, known: Option<&Inventory>, now: i64) -> Result<Option<Arc<Pack>>> {
    let (index_path, pack_path) = (stem.with_extension("idx"), stem.with_extension("pack"));
    let idx = FileMark::behind(&index_path)?;
    let Some(pack) = FileMark::behind(&pack_path)? else { return Ok(None) };
    let same = |other: &&Arc<Pack>| other.stem == stem && other.idx == idx && other.pack == pack;
    let name = stem.file_name().unwrap_or_default().to_string_lossy();
    let line = known.and_then(|known| known.packs.get(name.as_ref())).filter(|known| known.pack == pack);
    // Damage that another process found meanwhile counts here too.
    let knows_all = |other: &Arc<Pack>| line.is_none_or(|line| line.bad.iter().all(|id| other.bad.contains(id)));
    if let Some(old) = old {
        if let Some(same) = old.iter().find(same).filter(|same| knows_all(same)) {
            return Ok(Some(Arc::clone(same)));
        }
        if let Some(same) = in_memory(&|other| same(&other) && knows_all(other) && other.derived.is_none()) {
            return Ok(Some(same));
        }
    }
    if idx.is_none() && now.saturating_sub(pack.ctime) < ORPHANED {
        return Ok(None);
    }
    let bytes = match std::fs::read(&index_path) {
        Ok(bytes) => Arc::new(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => Arc::default(),
        Err(error) => return Err(Error::io(error, "reading", &index_path)),
    };
    let known = known.and_then(|known| known.packs.get(name.as_ref()));
    let made = |index: Index, bad: BTreeSet<ObjectId>, derived: Option<Vec<u8>>| {
        let stem = stem.to_owned();
        Some(kept(Pack { stem, index, idx, pack, bad, derived, file: Mutex::default() }))
    };
    if let Some(known) = known.filter(|known| Some(known.idx) == idx && known.pack == pack)
        && let Ok(index) = Index::bounded(Arc::clone(&bytes))
    {
        return Ok(made(index, known.bad.iter().copied().collect(), None));
    }
    let file = match File::open(&pack_path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(error, "opening", &pack_path)),
    };
    let reading = |error| Error::io(error, "reading", &pack_path);
    let why = match Index::verified(Arc::clone(&bytes)) {
        Ok(index) => match missing(&file, &index, pack, known).map_err(reading)? {
            Some(bad) => return Ok(made(index, bad, None)),
            None => "the pack contains more objects than its header says",
        },
        Err(_) if idx.is_none() => "it is missing",
        Err(why) => why,
    };
    tracing::warn!(path = %index_path.display(), why, "rebuilding the index of a pack");
    let derived = derive::index(&file, pack.size, &bytes).map_err(reading)?;
    let Ok(index) = Index::bounded(derived.bytes.clone()) else { return Ok(None) };
    Ok(made(index, derived.bad, Some(derived.bytes)))
}

/// Returns the objects that an index names and its pack does not hold; `None` if the pack is another one than the index
/// was made for, and has more objects.
fn missing(
    file: &File,
    index: &Index,
    pack: FileMark,
    known: Option<&KnownPack>,
) -> std::io::Result<Option<BTreeSet<ObjectId>>> {
    let ends = match pack::ends_as(file, pack.size, index.of_pack()) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
        ends => ends?,
    };
    let written = known.is_some_and(|known| (known.pack.size, known.pack.mtime) != (pack.size, pack.mtime));
    if (written || !ends) && pack::counted(file)?.is_some_and(|count| u64::from(count) > index.len() as u64) {
        return Ok(None);
    }
    if ends && !(written && pack.size <= EXAMINED) {
        let unwritten = known.filter(|_| !written);
        return Ok(Some(unwritten.map(|known| known.bad.iter().copied().collect()).unwrap_or_default()));
    }
    derive::missing(file, pack.size, index).map(Some)
}

/// Says what is wrong with an index; `None` for a whole one. Trusts no earlier result.
pub(super) fn examine(index: &Path) -> Result<Option<&'static str>> {
    let bytes = std::fs::read(index).at("reading", index)?;
    Ok(Index::verified(bytes).err())
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;
    use std::time::{Duration, SystemTime};

    use super::super::pack::index_of;
    use super::*;

    /// Makes a pack of which only the index counts.
    fn pack(dir: &Path, name: &str, ids: &[ObjectId], bad: &[ObjectId]) -> Pack {
        Pack {
            stem: dir.join(name),
            index: Index::verified(index_of(ids)).unwrap(),
            idx: None,
            pack: FileMark::NONE,
            bad: bad.iter().copied().collect(),
            derived: None,
            file: Mutex::default(),
        }
    }

    #[test]
    fn held_objects_are_struck_out_however_many_are_asked_for() {
        let id = |n: usize| {
            ObjectId::from_bytes([[(n >> 8) as u8, n as u8].as_slice(), &[7; 18]].concat().try_into().unwrap())
        };
        let held: Vec<ObjectId> = (0..400).map(|n| id(n * 3)).collect();
        let pack = pack(Path::new("/nowhere"), "pack-a", &held, &[id(30), id(1197)]);
        for step in [1, 2, 7, 100, 1200] {
            let mut ids: Vec<ObjectId> = (0..1300).step_by(step).map(id).collect();
            let left: Vec<ObjectId> = ids.iter().copied().filter(|id| pack.find(id).is_none()).collect();
            pack.strike_out(&mut ids);
            assert_eq!(ids, left, "each {step}.");
        }
    }

    #[test]
    fn a_time_ahead_hides_no_change_and_costs_no_look() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path().to_owned();
        let dated = |time: SystemTime| {
            File::open(&dir).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
            Set::load(std::slice::from_ref(&dir), Some(&[]), None).unwrap()
        };
        let now = SystemTime::now();
        assert!(!dated(now).is_current(), "it may change again without telling");
        for ahead in [Duration::from_hours(1), Duration::from_secs(1 << 30)] {
            let set = dated(now + ahead);
            assert!(set.is_current());
            std::fs::write(dir.join("pack-x.pack"), "x").unwrap();
            assert!(!set.is_current());
            std::fs::remove_file(dir.join("pack-x.pack")).unwrap();
        }
    }
}
