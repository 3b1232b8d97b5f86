//! The proof that what stands at a path is what the `pre-restore` checkpoint holds.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{Entry, EntryKind, Manifest};
use crate::model::path::RelPath;
use crate::model::sink::hash_stream;
use crate::model::stamp::Known;
use crate::sys::dir::{Dir, FileKind, Status, status_of};

/// What the `pre-restore` checkpoint holds, and how its files looked then.
pub struct Saved<'a> {
    pub manifest: &'a Manifest,
    pub known: &'a BTreeMap<RelPath, Known>,
}

/// The status of `path` if it is exactly what was saved; `None` if it is something else, or gone.
pub fn prove(parent: &Dir, path: &RelPath, saved: &Saved<'_>) -> Result<Option<Status>> {
    let Some(entry) = saved.manifest.get(path) else {
        return Ok(None);
    };
    let Some(status) = parent.status(path.name())? else {
        return Ok(None);
    };
    if !same_kind(entry, &status) {
        return Ok(None);
    }
    let same = match entry.kind {
        EntryKind::Dir => true,
        EntryKind::Link => {
            let target = parent.read_link(path.name())?;
            ObjectId::of(ObjectKind::Blob, &target).is_ok_and(|id| id == entry.id)
        }
        EntryKind::File => same_content(parent, path, entry, &status, saved)?,
    };
    Ok(same.then_some(status))
}

fn same_kind(entry: &Entry, status: &Status) -> bool {
    match entry.kind {
        EntryKind::Dir => status.kind == FileKind::Dir,
        EntryKind::Link => status.kind == FileKind::Link,
        EntryKind::File => status.kind == FileKind::File && status.perm() == entry.perm,
    }
}

fn same_content(parent: &Dir, path: &RelPath, entry: &Entry, status: &Status, saved: &Saved<'_>) -> Result<bool> {
    let known = saved.known.get(path).filter(|known| known.proven && known.id == entry.id);
    if known.is_some_and(|known| known.stamp == status.stamp) {
        return Ok(true);
    }
    let Ok(name) = RelPath::parse(path.name()) else {
        return Ok(false);
    };
    let Ok(mut file) = parent.open_file(&name) else {
        return Ok(false);
    };
    let Ok(opened) = status_of(&file) else { return Ok(false) };
    if opened.stamp != status.stamp {
        return Ok(false);
    }
    // A file that changes its size meanwhile is not what was saved either.
    Ok(hash_stream(status.stamp.size, &mut file, &mut |_| Ok(())).is_ok_and(|id| id == entry.id))
}

/// Whether a file that was moved aside is still the one that was proven. Renaming moves ctime, so that is left out.
pub fn is_same_file(proven: &Status, now: &Status) -> bool {
    let facts = |status: &Status| (status.stamp.dev, status.stamp.ino, status.stamp.size, status.stamp.mtime);
    facts(proven) == facts(now)
}
