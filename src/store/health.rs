//! Looks for damage of the store: packs and indexes that lack each other or are damaged, refs that name nothing, and
//! checkpoints with holes. It repairs nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::holes::Holes;
use super::inventory::{self, Inventory};
use super::packs;
use super::repository::Store;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::progress::{Amount, Stage};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ailment {
    /// A pack without an index, in which no object is found.
    PackWithoutIndex(PathBuf),
    /// An index whose objects are gone.
    IndexWithoutPack(PathBuf),
    /// An index that is damaged, and how. The next checkpoint writes it anew.
    DamagedIndex(PathBuf, &'static str),
    /// A pack that does not fit its index, and the number of its objects that exist nowhere else.
    TornPack(PathBuf, usize),
    /// A ref whose checkpoint is incomplete: its file, and the missing part.
    Hole(PathBuf, String),
    /// A ref that cannot be read, or whose commit is missing: its file, and why.
    BrokenRef(PathBuf, String),
}

impl fmt::Display for Ailment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ailment::PackWithoutIndex(pack) => write!(f, "{} has no index", pack.display()),
            Ailment::IndexWithoutPack(index) => {
                write!(f, "{} is the index of a missing pack; objects stored only there are lost", index.display())
            }
            Ailment::DamagedIndex(index, why) => {
                write!(f, "the index {} is damaged: {why}; the next checkpoint writes it again", index.display())
            }
            Ailment::TornPack(pack, 0) => {
                write!(f, "{} is damaged at its start or end; all its objects are intact", pack.display())
            }
            Ailment::TornPack(pack, objects) => {
                write!(f, "{} is damaged: {objects} of its objects are missing", pack.display())
            }
            Ailment::Hole(file, what) => write!(f, "the checkpoint of {} is damaged: {what}", file.display()),
            Ailment::BrokenRef(file, why) => {
                write!(f, "the ref {} is broken ({why}), so its checkpoint is not listed", file.display())
            }
        }
    }
}

/// The objects of a store that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvenObjects {
    /// The number of objects. One with two copies counts twice.
    pub objects: u64,
    /// Objects of which no copy is whole.
    pub damaged: BTreeSet<ObjectId>,
}

impl ProvenObjects {
    /// Says which objects are damaged; `None` where none is.
    pub fn sentence(&self) -> Option<String> {
        let first = self.damaged.first()?;
        let more = match self.damaged.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        Some(format!("the content of object {first}{more} is damaged"))
    }
}

/// The longest wait for somebody who deletes objects.
const DELETING: Duration = Duration::from_secs(5);

impl Store {
    /// Looks at all packs and their indexes, without trust in earlier results. Halves are passed over while another
    /// process writes.
    ///
    /// # Errors
    /// When they cannot be listed or read.
    pub fn pack_ailments(&self) -> Result<Vec<Ailment>> {
        let dir = self.git_dir.join("objects/pack");
        let mut found = Vec::new();
        // The holder writes, and a new pack appears before its index.
        let lock = self.home.join("store.lock");
        if let Ok(_alone) = FileLock::acquire(&lock, Mode::Exclusive, "looking", Duration::ZERO) {
            let known = Inventory::load(&self.git_dir);
            found.extend(halves(&dir)?.into_iter().filter(|half| !is_leftover(half, known.as_ref())));
        }
        let set = self.objects.look_again()?;
        for pack in set.packs.iter().filter(|pack| pack.stem.parent() == Some(dir.as_path()) && pack.idx.is_some()) {
            let index = pack.stem.with_extension("idx");
            match packs::examine(&index)? {
                Some(why) => found.push(Ailment::DamagedIndex(index, why)),
                None => {
                    // Objects that were stored anew are not missing, and nothing else can be done about this pack.
                    let gone = pack.bad.iter().filter(|id| !self.objects.proves(id)).count();
                    if gone > 0 || (pack.bad.is_empty() && !pack.is_closed()?) {
                        found.push(Ailment::TornPack(pack.stem.with_extension("pack"), gone));
                    }
                }
            }
        }
        Ok(found)
    }

    /// Reads every object and proves it by its id. Damage is noted, so that lists and the next writer know.
    ///
    /// # Errors
    /// When directories cannot be listed; `store-locked` while another process deletes objects; `shutting-down` when
    /// `control` stopped it.
    pub fn read_everything(&self, control: Interrupt<'_>) -> Result<ProvenObjects> {
        let _shared = self.lock_shared("reading all objects", DELETING)?;
        let (mut proven, mut is_stopped) = (ProvenObjects::default(), false);
        let mut all = 0;
        self.objects.each(&mut |_| {
            all += 1;
            true
        })?;
        self.progress.begin(Stage::Verifying, Amount::items(all));
        self.objects.each(&mut |id| {
            is_stopped = control() == Flow::Stop;
            if is_stopped {
                return false;
            }
            proven.objects += 1;
            self.progress.add(1, 0);
            if !self.objects.proves(&id) {
                proven.damaged.insert(id);
            }
            true
        })?;
        match is_stopped {
            true => Err(Error::new(Code::ShuttingDown, "reading the store was stopped")),
            false => Ok(proven),
        }
    }

    /// Looks at all packs and all refs. Packs are passed over while another process writes, since a new pack appears
    /// before its index. If nothing is wrong, the suspicion that objects are missing is taken back.
    ///
    /// # Errors
    /// When the directories cannot be listed.
    pub fn ailments(&self) -> Result<Vec<Ailment>> {
        let mut holes = self.holes();
        let mut found = self.pack_ailments()?;
        for entry in self.refs("refs/")? {
            let path = self.git_dir.join(&*entry.name);
            match entry.target {
                Err(why) => found.push(Ailment::BrokenRef(path, why)),
                Ok(id) if !self.has(&id)? => {
                    found.push(Ailment::BrokenRef(path, format!("the commit {} is missing", id.short())));
                }
                Ok(id) => match self.read_commit(&id) {
                    Err(error) => found.push(Ailment::BrokenRef(path, error.message().to_owned())),
                    Ok(_) => found.extend(self.hole_behind(id, &mut holes)?.map(|what| Ailment::Hole(path, what))),
                },
            }
        }
        if found.is_empty() {
            holes.trust();
        }
        Ok(found)
    }
}

impl Store {
    /// Names the first missing object of a commit or of its ancestors.
    fn hole_behind(&self, id: ObjectId, holes: &mut Holes<'_>) -> Result<Option<String>> {
        let mut next = Some(id);
        while let Some(id) = next {
            let Ok(commit) = self.read_commit(&id) else {
                return Ok(Some(format!("commit {id} is missing")));
            };
            if let Some(what) = holes.below(commit.tree)? {
                return Ok(Some(what));
            }
            next = commit.parents.first().copied();
        }
        Ok(None)
    }
}

/// Returns true if a pack has no index because its writer was killed before it had one, or while the pack was being
/// removed. No ref names anything that only such a pack holds: the inventory lists a pack before a ref moves, and as long as
/// its objects are of use. The next writer makes the index, and the next round deletes what is of no use.
fn is_leftover(half: &Ailment, known: Option<&Inventory>) -> bool {
    let Ailment::PackWithoutIndex(pack) = half else { return false };
    let name = pack.file_stem().unwrap_or_default().to_string_lossy();
    known.is_some_and(|known| !known.packs.contains_key(name.as_ref())) && inventory::may_name(&name)
}

/// Packs and indexes of which the other one is missing.
fn halves(dir: &Path) -> Result<Vec<Ailment>> {
    let mut names: BTreeSet<OsString> = BTreeSet::new();
    for entry in std::fs::read_dir(dir).at("listing", dir)? {
        names.insert(entry.at("listing", dir)?.file_name());
    }
    let lacks = |path: &Path, other: &str| !names.contains(path.with_extension(other).as_os_str());
    // A temporary index stands beside a temporary pack, which has no extension. Those of killed writers are swept.
    let finished = names.iter().filter(|name| !name.as_encoded_bytes().starts_with(b"tmp_"));
    let ailments = finished.filter_map(|name| {
        let path = Path::new(name);
        match path.extension()?.to_str()? {
            "pack" if lacks(path, "idx") => Some(Ailment::PackWithoutIndex(dir.join(path))),
            "idx" if lacks(path, "pack") => Some(Ailment::IndexWithoutPack(dir.join(path))),
            _ => None,
        }
    });
    Ok(ailments.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_packs_are_told() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["pack-a.pack", "pack-a.idx", "pack-b.pack", "pack-c.idx", "tmp_x", "tmp_pack_1.idx", "pack-d.rev"]
        {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let expected = [
            Ailment::PackWithoutIndex(dir.path().join("pack-b.pack")),
            Ailment::IndexWithoutPack(dir.path().join("pack-c.idx")),
        ];
        assert_eq!(halves(dir.path()).unwrap(), expected);
    }
}
