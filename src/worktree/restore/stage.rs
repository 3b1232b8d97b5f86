//! Single steps: staging content beside its place, and moving it there.

use std::fs::File;

use super::apply::Copy;
use super::prove::is_same_file;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::model::manifest::{Entry, EntryKind};
use crate::model::path::RelPath;
use crate::sys::dir::{Dir, Status, keep_attributes, set_perm};
use crate::sys::durable::unique_suffix;
use crate::worktree::walk::TEMPORARY;

/// A staged file or link beside its place; removed again unless it was moved there.
pub struct Staged<'d> {
    dir: &'d Dir,
    name: Vec<u8>,
    placed: bool,
    /// Attributes of the old file that the system did not let the new one have.
    pub lost: Vec<String>,
}

/// A name for a temporary in the directory of what it will replace.
pub fn temporary_name() -> Vec<u8> {
    [TEMPORARY, unique_suffix().as_bytes()].concat()
}

impl<'d> Staged<'d> {
    /// Writes `entry`'s content aside, with its permissions; `old` gives owner and attributes.
    ///
    /// # Errors
    /// `disk-full`, `permission`, `store-damaged`; nothing is left behind.
    pub fn write(dir: &'d Dir, entry: &Entry, old: Option<&File>, sync: bool, copy: Copy<'_>) -> Result<Staged<'d>> {
        let name = temporary_name();
        let mut staged = Staged { dir, name, placed: false, lost: Vec::new() };
        match entry.kind {
            EntryKind::Link => {
                let target = read_all(&entry.id, copy)?;
                dir.make_link(&staged.name, &target)?;
            }
            EntryKind::File | EntryKind::Dir => {
                let mut file = dir.make_file(&staged.name)?;
                copy(&entry.id, &mut file).map_err(|error| error.path(dir.child(&staged.name)))?;
                if let Some(old) = old {
                    staged.lost = keep_attributes(old, &file);
                }
                let path = dir.child(&staged.name);
                set_perm(&file, entry.perm, &path)?;
                if sync {
                    file.sync_data().at("syncing", &path)?;
                }
            }
        }
        Ok(staged)
    }

    /// Moves it to `name`, where nothing may be.
    ///
    /// # Errors
    /// `conflict` when something appeared there.
    pub fn create(mut self, name: &[u8]) -> Result<()> {
        self.dir.rename(&self.name, name, false)?;
        self.placed = true;
        Ok(())
    }

    /// Puts it in the place of the file that was proven. Where the file system can exchange names, the old file is
    /// looked at once more after it was moved aside, and put back if it is not the proven one; elsewhere a write between
    /// the proof and the rename is lost from the tree (the content before it is in the `pre-restore` checkpoint).
    ///
    /// # Errors
    /// `conflict` when it changed meanwhile.
    pub fn replace(mut self, name: &[u8], proven: &Status) -> Result<()> {
        if !self.dir.exchange(&self.name, name)? {
            self.dir.rename(&self.name, name, true)?;
            self.placed = true;
            return Ok(());
        }
        let displaced = self.dir.status(&self.name)?;
        if displaced.is_some_and(|displaced| is_same_file(proven, &displaced)) {
            return Ok(());
        }
        self.dir.exchange(&self.name, name)?;
        Err(changed_meanwhile(self.dir, name))
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        if !self.placed {
            // After an exchange this is the replaced file, else what was never placed. A leftover is only litter: it is
            // never captured, and `restore --continue` and `--abort` remove it.
            let _ = self.dir.remove_file(&self.name);
        }
    }
}

/// Removes the file or link that was proven: moved aside, looked at once more, then removed or put back.
///
/// # Errors
/// `conflict` when it changed meanwhile.
pub fn remove(dir: &Dir, name: &[u8], proven: &Status) -> Result<()> {
    let aside = temporary_name();
    dir.rename(name, &aside, false)?;
    match dir.status(&aside)? {
        Some(moved) if is_same_file(proven, &moved) => dir.remove_file(&aside),
        _ => {
            dir.rename(&aside, name, false)?;
            Err(changed_meanwhile(dir, name))
        }
    }
}

/// Opens a file for its attributes; one that cannot be opened has none to keep.
pub fn open_old(dir: &Dir, name: &[u8]) -> Option<File> {
    RelPath::parse(name).ok().and_then(|name| dir.open_file(&name).ok())
}

fn read_all(id: &ObjectId, copy: Copy<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    copy(id, &mut bytes)?;
    Ok(bytes)
}

fn changed_meanwhile(dir: &Dir, name: &[u8]) -> Error {
    Error::new(Code::Conflict, "it changed since the restore began and was left alone").path(dir.child(name))
}
