//! Foreign objects: a separate repository into which an ordinary git fetches, and from which packs and refs are brought
//! over.
//!
//! It borrows the store's objects, so that present ones are not sent again, unless some of them may be missing.
//! *Invariant:* its packs are in the store, durable, before a ref of ours names something in them. *Invariant:* nothing
//! is brought over if the store lost objects meanwhile: borrowed ones may be among them.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::layout;
use super::repository::Store;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::sys::fs::durable::{create_private_dir, replace_cache, sync_dir};

/// The bytes that are compared at once.
const PIECE: usize = 256 << 10;

/// A separate repository, which is removed when it is dropped.
pub struct Quarantine {
    store: Store,
    /// The store's epoch when objects began to be borrowed.
    epoch: String,
}

/// A ref to bring over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The full name that the ref gets in the store.
    pub name: String,
    /// The commit that it stood at there; `None` if it is new.
    pub old: Option<ObjectId>,
    /// The commit that it gets.
    pub new: ObjectId,
}

impl Quarantine {
    /// Returns it as a store, for reading; the fetched packs are listed anew.
    ///
    /// # Errors
    /// Returns the errors of opening.
    pub fn store(&mut self) -> Result<&Store> {
        self.store.objects.refresh()?;
        Ok(&self.store)
    }

    /// Returns where it is.
    pub fn git_dir(&self) -> &Path {
        &self.store.git_dir
    }

    /// Sets its refs to exactly these.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub fn set_refs(&self, refs: &[(String, ObjectId)]) -> Result<()> {
        let dir = self.git_dir();
        let loose = dir.join("refs");
        // Loose refs win over packed ones, so they have to go.
        std::fs::remove_dir_all(&loose).at("removing", &loose)?;
        create_private_dir(&loose.join("heads"))?;
        let mut sorted: Vec<String> = refs.iter().map(|(name, id)| format!("{name} {id}")).collect();
        sorted.sort();
        let line =
            |entry: &String| entry.split_once(' ').map(|(name, id)| format!("{id} {name}\n")).unwrap_or_default();
        let text: String = sorted.iter().map(line).collect();
        replace_cache(&dir.join("packed-refs"), text.as_bytes())
    }

    fn packs(&self) -> Result<Vec<PathBuf>> {
        let dir = self.git_dir().join("objects/pack");
        let mut packs = Vec::new();
        for entry in std::fs::read_dir(&dir).at("listing", &dir)? {
            let path = entry.at("listing", &dir)?.path();
            if path.extension().is_some_and(|kind| kind == "idx") && path.with_extension("pack").is_file() {
                packs.push(path.with_extension(""));
            }
        }
        Ok(packs)
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        // Leftovers are removed before the next quarantine is made.
        let _ = std::fs::remove_dir_all(&self.store.git_dir);
    }
}

impl Store {
    /// Makes a repository at the new path `dir`, three directories below piton's own. The objects of `known` need not
    /// be sent again, if the store is sound.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub fn quarantine(&self, dir: &Path, known: &[(String, ObjectId)]) -> Result<Quarantine> {
        for inner in ["objects/info", "objects/pack", "refs/heads"] {
            create_private_dir(&dir.join(inner))?;
        }
        let epoch = self.epoch()?;
        layout::configure_aside(dir)?;
        // git takes borrowed objects for complete. Nothing is borrowed from a store that may lack objects, and
        // everything is sent again.
        let borrows = !self.is_suspect();
        if borrows {
            replace_cache(&dir.join("objects/info/alternates"), b"../../../../store.git/objects\n")?;
        }
        let mut store = Store::over(&self.home, dir);
        store.objects.note_in(&self.git_dir);
        let quarantine = Quarantine { store, epoch };
        quarantine.set_refs(if borrows { known } else { &[] })?;
        Ok(quarantine)
    }

    /// Brings packs over, durably, and then moves refs. The caller holds the workspace's lock, and the store's shared.
    ///
    /// # Errors
    /// `busy` when the store lost objects meanwhile; `conflict`, `disk-full`, `permission`. Refs before the one that failed have moved.
    pub fn adopt(&self, quarantine: &Quarantine, arrivals: &[Arrival]) -> Result<()> {
        if self.epoch()? != quarantine.epoch {
            return Err(Error::new(Code::Busy, "the store changed during the fetch").hint("try again"));
        }
        // Borrowed objects may be in log records that are not synced yet.
        self.sync_logs(None)?;
        let dir = self.git_dir.join("objects/pack");
        for pack in quarantine.packs()? {
            let place = |kind: &str| {
                let (from, name) = (pack.with_extension(kind), pack.with_extension(kind));
                let to = dir.join(name.file_name().unwrap_or_default());
                File::open(&from).and_then(|file| file.sync_all()).at("syncing", &from)?;
                // A pack is named by its content: a different file of this name was damaged since.
                if is_same(&from, &to)? { Ok(()) } else { std::fs::rename(&from, &to).at("renaming", &from) }
            };
            // The pack before its index: git finds packs by their indexes.
            place("pack")?;
            place("idx")?;
        }
        // The names have to be durable before a ref is.
        sync_dir(&dir)?;
        self.objects.account()?;
        arrivals.iter().try_for_each(|arrival| self.update_ref(&arrival.name, arrival.old, arrival.new))
    }
}

/// Returns true if an existing file has the bytes of a coming one. An unreadable one does not.
fn is_same(coming: &Path, stands: &Path) -> Result<bool> {
    let Ok(other) = File::open(stands) else { return Ok(false) };
    let file = File::open(coming).at("opening", coming)?;
    let length = file.metadata().at("checking", coming)?.len();
    if !other.metadata().is_ok_and(|facts| facts.len() == length) {
        return Ok(false);
    }
    let (mut ours, mut theirs, mut at) = (vec![0; PIECE], vec![0; PIECE], 0);
    while at < length {
        let n = PIECE.min((length - at) as usize);
        file.read_exact_at(&mut ours[..n], at).at("reading", coming)?;
        if other.read_exact_at(&mut theirs[..n], at).is_err() || ours[..n] != theirs[..n] {
            return Ok(false);
        }
        at += n as u64;
    }
    Ok(true)
}
