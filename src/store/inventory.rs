//! The inventory of packs and of their states. By it the next writer notices a loss, and an index is verified only
//! once.
//!
//! `piton-packs` in the store names each pack with what the file system said of both its files and how many objects it
//! holds. A writer compares it with the actual files before it trusts anything ([`Objects::account`]). A pack that is
//! gone or holds less changes the store's epoch: all knowledge of the store's content is then looked up again.
//! *Invariant:* packs are taken out of the inventory before they are removed. *Invariant:* a writer has read the
//! inventory under its lock. *Invariant:* it only saves looking: a missing or damaged inventory costs time and nothing
//! else.
//!
//! [`Objects::account`]: super::objects::Objects::account

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::index::Index;
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::sys::fs::durable::replace_cache;
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::fs::mark::FileMark;

/// The longest wait for the lock: the holder may read a large pack from its beginning to its end.
const PATIENCE: Duration = Duration::from_mins(1);

/// The first line.
const MARK: &str = "piton packs 1";

/// A pack as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownPack {
    /// The mark of the index file when it was trusted.
    pub idx: FileMark,
    /// The mark of the pack file at that moment.
    pub pack: FileMark,
    /// Counts its objects.
    pub objects: u64,
    /// Objects that its index names and it does not hold.
    pub bad: Vec<ObjectId>,
}

/// All packs as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inventory {
    /// By name, without an extension.
    pub packs: BTreeMap<String, KnownPack>,
    /// True if objects may be missing that checkpoints name.
    pub is_suspect: bool,
    /// Missing objects that a checkpoint names and that are known to be missing.
    pub lost: BTreeSet<ObjectId>,
}

impl Inventory {
    /// Takes its lock, for a reading that is followed by a write. It is taken after the store's lock, and held only for
    /// that time.
    ///
    /// # Errors
    /// `store-locked` when another process holds it for very long; `permission`.
    pub(super) fn lock(git_dir: &Path) -> Result<FileLock> {
        FileLock::acquire(&git_dir.with_file_name("inventory.lock"), Mode::Exclusive, "looking at packs", PATIENCE)
    }

    /// Returns the inventory without the indexes that are damaged by now: those are derived again when packs are
    /// listed.
    pub(super) fn verified(mut self, git_dir: &Path) -> Inventory {
        let dir = git_dir.join("objects/pack");
        for (name, known) in &mut self.packs {
            // An unreadable one is missing, or is reported when packs are listed.
            if std::fs::read(dir.join(format!("{name}.idx"))).is_ok_and(|bytes| Index::verified(bytes).is_err()) {
                known.idx = FileMark::NONE;
            }
        }
        self
    }

    /// Returns the mark of its file, which changes when another process writes it anew.
    ///
    /// # Errors
    /// When the file cannot be looked at.
    pub(super) fn identity(git_dir: &Path) -> Result<Option<FileMark>> {
        FileMark::behind(&git_dir.join("piton-packs"))
    }

    /// Reads it; `None` when it is missing or damaged.
    pub(super) fn load(git_dir: &Path) -> Option<Inventory> {
        let text = std::fs::read_to_string(git_dir.join("piton-packs")).ok()?;
        let (body, sum) = text.trim_end().rsplit_once('\n')?;
        if sum != format!("sum {:08x}", crc32fast::hash(body.as_bytes())) {
            return None;
        }
        let mut lines = body.lines();
        lines.next().filter(|line| *line == MARK)?;
        let mut inventory = Inventory::default();
        for line in lines {
            if line == "suspect" {
                inventory.is_suspect = true;
                continue;
            }
            if let Some(lost) = line.strip_prefix("lost ") {
                inventory.lost = lost.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
                continue;
            }
            let mut words = line.split(' ');
            let name = words.next()?.to_owned();
            let idx = identity(words.next()?)?;
            let pack = identity(words.next()?)?;
            let objects = words.next()?.parse().ok()?;
            let bad = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
            inventory.packs.insert(name, KnownPack { idx, pack, objects, bad });
        }
        Some(inventory)
    }

    /// Writes it.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn save(&self, git_dir: &Path) -> Result<()> {
        let mut text = MARK.to_owned();
        if self.is_suspect {
            text.push_str("\nsuspect");
        }
        if !self.lost.is_empty() {
            text.push_str("\nlost");
            self.lost.iter().for_each(|id| text.push_str(&format!(" {id}")));
        }
        for (name, KnownPack { idx, pack, objects, bad }) in &self.packs {
            // Writing to a string does not fail.
            let _ = write!(text, "\n{name} {} {} {objects}", spelled(idx), spelled(pack));
            bad.iter().for_each(|id| text.push_str(&format!(" {id}")));
        }
        let sum = crc32fast::hash(text.as_bytes());
        replace_cache(&git_dir.join("piton-packs"), format!("{text}\nsum {sum:08x}\n").as_bytes())
    }

    /// Takes out packs that are about to be removed.
    ///
    /// # Errors
    /// As [`Inventory::lock`] and [`Inventory::save`].
    pub(super) fn forget(git_dir: &Path, names: &[&str]) -> Result<()> {
        let _lock = Inventory::lock(git_dir)?;
        let Some(mut inventory) = Inventory::load(git_dir) else { return Ok(()) };
        let before = inventory.packs.len();
        inventory.packs.retain(|name, _| !names.contains(&name.as_str()));
        if inventory.packs.len() == before { Ok(()) } else { inventory.save(git_dir) }
    }
}

/// Returns true if the inventory may list a pack of this name: a word.
pub(super) fn may_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn spelled(identity: &FileMark) -> String {
    let FileMark { dev, ino, size, mtime, ctime } = identity;
    format!("{dev}:{ino}:{size}:{mtime}:{ctime}")
}

fn identity(text: &str) -> Option<FileMark> {
    let mut parts = text.split(':');
    let identity = FileMark {
        dev: parts.next()?.parse().ok()?,
        ino: parts.next()?.parse().ok()?,
        size: parts.next()?.parse().ok()?,
        mtime: parts.next()?.parse().ok()?,
        ctime: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_flipped_bit_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("store.git");
        std::fs::create_dir(&dir).unwrap();
        assert_eq!(Inventory::load(&dir), None);
        let identity = FileMark { dev: 1, ino: u64::MAX, size: 3, mtime: -4, ctime: i64::MAX };
        let bad = vec![ObjectId::EMPTY_TREE];
        let known = KnownPack { idx: identity, pack: identity, objects: 7, bad };
        let packs = [("pack-a".to_owned(), known.clone()), ("pack-b".to_owned(), KnownPack { bad: vec![], ..known })];
        for is_suspect in [false, true] {
            let lost =
                if is_suspect { [ObjectId::EMPTY_TREE, ObjectId::from_bytes([7; 20])].into() } else { [].into() };
            let inventory = Inventory { packs: packs.clone().into(), is_suspect, lost };
            inventory.save(&dir).unwrap();
            assert_eq!(Inventory::load(&dir).as_ref(), Some(&inventory));
        }
        let path = dir.join("piton-packs");
        let bytes = std::fs::read(&path).unwrap();
        for bit in 0..(bytes.len() - 1) * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &wrong).unwrap();
            assert_eq!(Inventory::load(&dir), None, "bit {bit}");
        }
        std::fs::write(&path, &bytes).unwrap();
        Inventory::forget(&dir, &["pack-a", "pack-z"]).unwrap();
        assert_eq!(Inventory::load(&dir).unwrap().packs.len(), 1);
    }
}
