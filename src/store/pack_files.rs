//! The files of packs: lists them, reads their entries, and removes them.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::index::{self, PackEntry};
use super::inventory::Inventory;
use super::pack;
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::lock::{FileLock, Mode};

/// The places of a store.
pub(super) struct StorePaths {
    /// piton's directory, which has the lock of the store.
    pub home: PathBuf,
    /// The bare repository in it.
    pub git_dir: PathBuf,
    /// The name of the list of packs that another one replaces.
    pub superseded: &'static str,
}

/// A pack on the disk.
#[derive(Clone)]
pub(super) struct PackFile {
    /// Without its extension.
    pub path: PathBuf,
    /// Bytes of the pack file.
    pub length: u64,
    /// The time of its last write; `None` where the file system tells none.
    modified: Option<SystemTime>,
}

impl PackFile {
    /// Below `objects`.
    pub(super) fn name(&self) -> String {
        format!("pack/{}", self.stem())
    }

    /// One of its files.
    pub(super) fn file(&self, kind: &str) -> PathBuf {
        self.path.with_extension(kind)
    }

    /// Tells whether its objects are not compressed yet.
    pub(super) fn is_light(&self) -> bool {
        self.stem().starts_with(pack::LIGHT)
    }

    /// Returns true if its objects are packed against each other.
    pub(super) fn is_long(&self) -> bool {
        self.stem().starts_with(pack::LONG)
    }

    /// Returns how long ago it was written; `None` when that cannot be told.
    pub(super) fn age(&self, now: SystemTime) -> Option<Duration> {
        now.duration_since(self.modified?).ok()
    }

    /// Returns the error of one that is not whole.
    pub(super) fn damaged(&self) -> Error {
        Error::new(Code::StoreDamaged, "a pack is damaged")
            .path(self.file("pack"))
            .hint("run `git fsck --full` in the store")
    }

    /// Its name without directory and extension.
    pub(super) fn stem(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Returns the packs with an index, smallest first, without those that have a `.keep` file.
pub(super) fn packs(git_dir: &Path) -> Result<Vec<PackFile>> {
    let dir = git_dir.join("objects/pack");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&dir).at("listing", &dir)? {
        let path = entry.at("listing", &dir)?.path();
        let kept = ["keep", "promisor"].iter().any(|kind| path.with_extension(kind).exists());
        if path.extension().is_none_or(|kind| kind != "pack") || kept || !path.with_extension("idx").is_file() {
            continue;
        }
        let facts = path.metadata().at("checking", &path)?;
        found.push(PackFile { path: path.with_extension(""), length: facts.len(), modified: facts.modified().ok() });
    }
    found.sort_by(|a, b| (a.length, &a.path).cmp(&(b.length, &b.path)));
    Ok(found)
}

/// Returns the entries of a pack in their order, each with where the next begins; `None` when its index is damaged.
pub(super) fn spans(found: &PackFile) -> Result<Option<Vec<(PackEntry, u64)>>> {
    let path = found.path.with_extension("idx");
    let bytes = std::fs::read(&path).at("reading", &path)?;
    let Some(mut entries) = index::parse(bytes) else {
        tracing::warn!(path = %path.display(), "a pack's index is damaged");
        return Ok(None);
    };
    entries.sort_by_key(|entry| entry.offset);
    let end = found.length.saturating_sub(20);
    let ends = entries.iter().skip(1).map(|entry| entry.offset).chain([end]).collect::<Vec<_>>();
    Ok(Some(entries.into_iter().zip(ends).collect()))
}

/// Returns an entry's bytes; `None` when they are not what the index says.
pub(super) fn read(file: &File, entry: &PackEntry, end: u64, path: &Path) -> Result<Option<Vec<u8>>> {
    let length = end.checked_sub(entry.offset).filter(|length| (1..=u64::from(u32::MAX)).contains(length));
    let Some(length) = length else {
        return Ok(None);
    };
    let mut bytes = vec![0; length as usize];
    match file.read_exact_at(&mut bytes, entry.offset) {
        Ok(()) => Ok((crc32fast::hash(&bytes) == entry.crc).then_some(bytes)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(Error::io(error, "reading", path)),
    }
}

/// Removes a pack.
pub(super) fn remove_pack(git_dir: &Path, found: &PackFile) -> Result<()> {
    Inventory::forget(git_dir, &[&found.stem()])?;
    remove_files(&found.path)
}

/// Removes the files of a pack, the index first: to git a pack without an index does not exist.
pub(super) fn remove_files(path: &Path) -> Result<()> {
    ["idx", "rev", "bitmap", "mtimes", "pack"].iter().try_for_each(|kind| gone(&path.with_extension(kind)))
}

/// Removes a file that may be removed already.
pub(super) fn gone(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(error, "removing packs that were merged", path)),
    }
}

/// Takes the lock alone; `None` when it is not free now.
pub(super) fn try_lock(path: &Path) -> Result<Option<FileLock>> {
    match FileLock::acquire(path, Mode::Exclusive, "consolidating", Duration::ZERO) {
        Ok(lock) => Ok(Some(lock)),
        Err(error) if error.code() == Code::StoreLocked => Ok(None),
        Err(error) => Err(error),
    }
}
