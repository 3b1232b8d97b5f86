//! What can be wrong with the store, told by looking: packs and indexes that lack each other, refs that name nothing. Nothing is
//! mended here.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Store;
use crate::error::{IoContext, Result};
use crate::model::id::ObjectKind;
use crate::sys::lock::{FileLock, Mode};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ailment {
    /// A pack that nobody finds an object in.
    PackWithoutIndex(PathBuf),
    /// An index whose objects are gone.
    IndexWithoutPack(PathBuf),
    /// A ref that cannot be read, or whose commit is not there: its file, and why.
    BrokenRef(PathBuf, String),
}

impl Store {
    /// Looks at all packs and all refs. Packs are passed over while somebody writes, since a new pack is there before its index.
    ///
    /// # Errors
    /// When the directories cannot be listed.
    pub fn ailments(&self) -> Result<Vec<Ailment>> {
        let mut found = Vec::new();
        let lock = self.home.join("store.lock");
        // Whoever holds it writes: what is seen then proves nothing.
        if let Ok(_alone) = FileLock::acquire(&lock, Mode::Exclusive, "looking", Duration::ZERO) {
            found.extend(packs(&self.git_dir.join("objects/pack"))?);
        }
        for entry in self.refs("refs/")? {
            let path = self.git_dir.join(&entry.name);
            match entry.target {
                Err(why) => found.push(Ailment::BrokenRef(path, why)),
                Ok(id) if self.kind_of(&id)? != Some(ObjectKind::Commit) => {
                    found.push(Ailment::BrokenRef(path, format!("the commit {} is not there", id.short())));
                }
                Ok(_) => {}
            }
        }
        Ok(found)
    }
}

/// Packs and indexes of which the other one is missing.
fn packs(dir: &Path) -> Result<Vec<Ailment>> {
    let mut names: BTreeSet<OsString> = BTreeSet::new();
    for entry in std::fs::read_dir(dir).at("listing", dir)? {
        names.insert(entry.at("listing", dir)?.file_name());
    }
    let lacks = |path: &Path, other: &str| !names.contains(path.with_extension(other).as_os_str());
    let ailments = names.iter().filter_map(|name| {
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
        for name in ["pack-a.pack", "pack-a.idx", "pack-b.pack", "pack-c.idx", "tmp_x", "pack-d.rev"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let expected = [
            Ailment::PackWithoutIndex(dir.path().join("pack-b.pack")),
            Ailment::IndexWithoutPack(dir.path().join("pack-c.idx")),
        ];
        assert_eq!(packs(dir.path()).unwrap(), expected);
    }
}
