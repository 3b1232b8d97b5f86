//! Replaces and deletes in two moves, so that a dropped file was looked at after it left its place.
//!
//! Between the proof and a plain `rename` somebody else may save a file, and it would be lost. So the old file is first
//! moved to a temporary name (in the same call that puts the new one in its place) and looked at there. It is dropped
//! only when it is the very object, in the very state, that was proved; else it goes back. One risk remains: a writer
//! that still holds the old file open may write after the last look. Where the file system cannot exchange names, the
//! window between the proof and the rename remains as well.

use crate::error::{Code, Error, Result};
use crate::sys::fs::deferred::DeferredUnlink;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::{FileKind, Stat};

/// A name in an open directory.
#[derive(Clone, Copy)]
pub(super) struct NameIn<'a> {
    pub dir: &'a Dir,
    pub name: &'a [u8],
}

/// The beginning of the name of a file that could not go back to its own.
const KEPT_PREFIX: &str = ".piton-kept";

/// Puts `new` in the place of `old`, which was proved to be in state `seen`, and drops the old one.
///
/// `false` when it was not in that state any more, or was a directory that is not empty: it is in its place again.
pub(super) fn swap(deferred: &DeferredUnlink, new: NameIn<'_>, old: NameIn<'_>, seen: &Stat) -> Result<bool> {
    let (NameIn { dir: from, name: new }, NameIn { dir, name }) = (new, old);
    let ours = from.stat(new)?;
    if !from.exchange(new, dir, name)? {
        return swap_plainly(deferred, NameIn { dir: from, name: new }, old, seen);
    }
    let dropped = drop_displaced(deferred, from, new, seen);
    if matches!(dropped, Ok(true)) {
        return dropped;
    }
    // The displaced file is not the proved one, so a writer was faster: it gets its place back.
    let back = from.exchange(new, dir, name);
    match (back, from.stat(new), ours) {
        // Only if our own file came back, no other process took the name in between.
        (Ok(true), Ok(Some(there)), Some(ours)) if there.same_object(&ours) => dropped,
        _ => Err(stranded(from, new)),
    }
}

/// Drops a displaced object if it is the one that was seen.
fn drop_displaced(deferred: &DeferredUnlink, dir: &Dir, name: &[u8], seen: &Stat) -> Result<bool> {
    match dir.stat(name)? {
        Some(displaced) if displaced.same_state(seen) => match displaced.kind {
            FileKind::Dir => dir.rmdir(name),
            FileKind::File | FileKind::Link | FileKind::Other => deferred.unlink(dir, name, &displaced).map(|()| true),
        },
        Some(_) | None => Ok(false),
    }
}

/// For file systems without an exchange: the kinds decide how.
pub(super) fn swap_plainly(deferred: &DeferredUnlink, new: NameIn<'_>, old: NameIn<'_>, seen: &Stat) -> Result<bool> {
    let (NameIn { dir: from, name: new }, NameIn { dir, name }) = (new, old);
    let new_is_dir = from.stat(new)?.is_some_and(|stat| stat.kind == FileKind::Dir);
    // A rename cannot replace a directory by a file, so the empty one is removed first.
    if seen.kind == FileKind::Dir {
        return Ok(dir.rmdir(name)? && from.rename_new(new, dir, name)?);
    }
    if new_is_dir {
        return Ok(set_aside(deferred, dir, name, seen)? && from.rename_new(new, dir, name)?);
    }
    from.rename(new, dir, name).map(|()| true)
}

/// Deletes the file or link `name`, which was proved to be in state `seen`; `false` when it was not any more.
pub(super) fn set_aside(deferred: &DeferredUnlink, dir: &Dir, name: &[u8], seen: &Stat) -> Result<bool> {
    let aside = super::clean::temporary_name();
    if !dir.rename_new(name, dir, &aside)? {
        return Ok(false);
    }
    let dropped = drop_displaced(deferred, dir, &aside, seen);
    if matches!(dropped, Ok(true)) {
        return dropped;
    }
    if dir.rename_new(&aside, dir, name)? { dropped } else { Err(stranded(dir, &aside)) }
}

/// Handles a file whose name was taken while it was set aside: it gets a name that no clean-up removes.
fn stranded(dir: &Dir, name: &[u8]) -> Error {
    let kept = [KEPT_PREFIX, &String::from_utf8_lossy(name)].concat();
    let renamed = dir.rename_new(name, dir, kept.as_bytes());
    let name = if matches!(renamed, Ok(true)) { kept.into() } else { String::from_utf8_lossy(name) };
    Error::new(
        Code::Conflict,
        format!("another program wrote to the file during the restore; the earlier content is kept as `{name}`"),
    )
    .path(dir.path().join(name.as_ref()))
}
