//! The proof that a path is, at this moment, exactly a given entry.

use std::fs::File;

use crate::error::{Code, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::sink::hash_stream;
use crate::model::stamp::{KnownFile, Stamp};
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::{FileKind, Stat};

/// The object at a path, compared with an entry.
#[derive(Debug)]
pub(super) enum Proof {
    /// Exactly the entry; what `lstat` said of it.
    Exact(Stat),
    /// Something else.
    Differs,
    /// Nothing.
    Absent,
}

/// Compares `path`, which is in `dir`, with `entry`. An unchanged and trustworthy stamp saves reading the content.
pub(super) fn prove(dir: &Dir, path: &RelPath, entry: &ManifestEntry, known: Option<KnownFile>) -> Result<Proof> {
    match dir.stat(path.name())? {
        Some(seen) => prove_seen(dir, path, entry, known, seen),
        None => Ok(Proof::Absent),
    }
}

/// As [`prove`], for a path that was looked at already.
pub(super) fn prove_seen(
    dir: &Dir,
    path: &RelPath,
    entry: &ManifestEntry,
    known: Option<KnownFile>,
    seen: Stat,
) -> Result<Proof> {
    let exact = match (entry.kind, seen.kind) {
        (EntryKind::Dir, FileKind::Dir) => seen.perm() == entry.perm,
        (EntryKind::Link, FileKind::Link) => {
            ObjectId::of(ObjectKind::Blob, &dir.read_link(path.name())?).is_ok_and(|id| id == entry.id)
        }
        (EntryKind::File, FileKind::File) => {
            seen.perm() == entry.perm && (stamp_proves(&seen, entry, known) || content_is(dir, path, entry, &seen)?)
        }
        (EntryKind::File | EntryKind::Link | EntryKind::Dir, _) => false,
    };
    Ok(if exact { Proof::Exact(seen) } else { Proof::Differs })
}

fn stamp_proves(seen: &Stat, entry: &ManifestEntry, known: Option<KnownFile>) -> bool {
    known.is_some_and(|known| known.proven && known.id == entry.id && known.stamp == Stamp::from(seen))
}

/// Reads the file, and looks at it again afterwards: it must have held still.
fn content_is(dir: &Dir, path: &RelPath, entry: &ManifestEntry, seen: &Stat) -> Result<bool> {
    let file = match dir.open_file(path.name()) {
        Ok(file) => file,
        Err(error) if error.code() == Code::Conflict => return Ok(false),
        // The file was removed after it was checked.
        Err(_) if dir.stat(path.name())?.is_none() => return Ok(false),
        Err(error) => return Err(error),
    };
    let at = path.under(dir.path());
    let opened = Stat::of_file(&file, &at)?;
    if !opened.same_state(seen) {
        return Ok(false);
    }
    let equal = file_id(&file, seen.size)?.is_some_and(|id| id == entry.id);
    Ok(equal && Stat::of_file(&file, &at)? == opened)
}

/// Returns the id of a file's content; `None` when it does not have `size` bytes or is not storable at all.
pub(super) fn file_id(mut file: &File, size: u64) -> Result<Option<ObjectId>> {
    match hash_stream(size, &mut file, &mut |_| Ok(())) {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.code() == Code::Conflict => Ok(None),
        Err(error) => Err(error),
    }
}

impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Stamp {
        Stamp {
            size: stat.size,
            mtime: stat.mtime,
            ctime: stat.ctime,
            dev: stat.dev,
            ino: stat.ino,
            mode: stat.mode,
            links: stat.links,
        }
    }
}
