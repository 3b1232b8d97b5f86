//! Which packs were there, and how: so that a loss is noticed by whoever writes next, and an index is verified once.
//!
//! `piton-packs` in the store names each pack with what the file system said of both its files and how many objects it holds. A writer
//! compares it with what stands before it trusts anything ([`Objects::account`]). A pack that is gone or holds less changes the store's
//! epoch: everything that is remembered of the store's content is then looked up again. *Invariant:* who removes packs takes them out of
//! the inventory first. *Invariant:* what is derived from it is only trust; a missing or damaged inventory costs looking.
//!
//! [`Objects::account`]: super::objects::Objects::account

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::packs::{Identity, Set};
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::sys::durable::replace_cache;

/// The first line.
const MARK: &str = "piton packs 1";

/// A pack as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub idx: Identity,
    pub pack: Identity,
    /// Counts its objects.
    pub objects: u64,
    /// Objects that its index names and it does not hold.
    pub bad: Vec<ObjectId>,
}

/// All packs as they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// By name, without an extension.
    pub packs: BTreeMap<String, Known>,
    /// True if objects may be missing that checkpoints name.
    pub is_suspect: bool,
}

impl Inventory {
    /// The identity of its file: another process that found something damaged has written it anew.
    ///
    /// # Errors
    /// When the file cannot be looked at.
    pub fn identity(git_dir: &Path) -> Result<Option<Identity>> {
        Identity::of(&git_dir.join("piton-packs"))
    }

    /// Reads it; `None` when it is missing or damaged.
    pub fn load(git_dir: &Path) -> Option<Inventory> {
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
            let mut words = line.split(' ');
            let name = words.next()?.to_owned();
            let idx = identity(words.next()?)?;
            let pack = identity(words.next()?)?;
            let objects = words.next()?.parse().ok()?;
            let bad = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
            inventory.packs.insert(name, Known { idx, pack, objects, bad });
        }
        Some(inventory)
    }

    /// Returns the inventory of a set of packs.
    pub fn of(set: &Set, is_suspect: bool) -> Inventory {
        let known = |pack: &super::packs::Pack| {
            // An index that is derived at each look is never taken for verified: no file is so.
            let idx = pack.idx.filter(|_| pack.derived.is_none()).unwrap_or(Identity::NONE);
            let bad = pack.bad.iter().copied().collect();
            (pack.name(), Known { idx, pack: pack.pack, objects: pack.objects(), bad })
        };
        let plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        let packs = set.packs.iter().map(|pack| known(pack));
        let packs = packs.filter(|(name, _)| plain(name)).collect();
        Inventory { packs, is_suspect }
    }

    /// Writes it.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn save(&self, git_dir: &Path) -> Result<()> {
        let mut text = MARK.to_owned();
        if self.is_suspect {
            text.push_str("\nsuspect");
        }
        for (name, Known { idx, pack, objects, bad }) in &self.packs {
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
    /// As [`Inventory::save`].
    pub fn forget(git_dir: &Path, names: &[&str]) -> Result<()> {
        let Some(mut inventory) = Inventory::load(git_dir) else { return Ok(()) };
        let before = inventory.packs.len();
        inventory.packs.retain(|name, _| !names.contains(&name.as_str()));
        if inventory.packs.len() == before { Ok(()) } else { inventory.save(git_dir) }
    }
}

fn spelled(identity: &Identity) -> String {
    let Identity { dev, ino, size, mtime, ctime } = identity;
    format!("{dev}:{ino}:{size}:{mtime}:{ctime}")
}

fn identity(text: &str) -> Option<Identity> {
    let mut parts = text.split(':');
    let identity = Identity {
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
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Inventory::load(dir.path()), None);
        let identity = Identity { dev: 1, ino: u64::MAX, size: 3, mtime: -4, ctime: i64::MAX };
        let bad = vec![ObjectId::EMPTY_TREE];
        let known = Known { idx: identity, pack: identity, objects: 7, bad };
        let packs = [("pack-a".to_owned(), known.clone()), ("pack-b".to_owned(), Known { bad: vec![], ..known })];
        for is_suspect in [false, true] {
            let inventory = Inventory { packs: packs.clone().into(), is_suspect };
            inventory.save(dir.path()).unwrap();
            assert_eq!(Inventory::load(dir.path()).as_ref(), Some(&inventory));
        }
        let path = dir.path().join("piton-packs");
        let bytes = std::fs::read(&path).unwrap();
        for bit in 0..(bytes.len() - 1) * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &wrong).unwrap();
            assert_eq!(Inventory::load(dir.path()), None, "bit {bit}");
        }
        std::fs::write(&path, &bytes).unwrap();
        Inventory::forget(dir.path(), &["pack-a", "pack-z"]).unwrap();
        assert_eq!(Inventory::load(dir.path()).unwrap().packs.len(), 1);
    }
}
