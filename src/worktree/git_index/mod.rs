//! A read-only reader of git's index: which paths the user's git tracks.
//!
//! Versions 2, 3 and 4, split indexes and sparse directories, in SHA-1 and SHA-256 repositories. Ids and the checksum are passed over. Everything is bounded and taken for hostile: damage is an
//! error, never a panic and never a guess.

mod ewah;
mod parse;

use std::collections::BTreeMap;
use std::path::Path;

pub use self::parse::SeenFile;
use self::parse::{IndexHash, IndexSlot, Parsed};
use super::git_dir::read_regular;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::path::RelPath;

/// Largest index file that is read.
const CAP: u64 = 256 << 20;

/// Returns the paths that the index of `git_dir` tracks, sorted, each once. Submodules and sparse directories are left
/// out; unmerged, intent-to-add and skip-worktree entries count. No index means no paths.
///
/// # Errors
/// `conflict` for an index that is damaged or of a kind this reader does not know; I/O errors.
pub fn tracked(git_dir: &Path) -> Result<Vec<RelPath>> {
    Ok(read(git_dir)?.into_iter().map(|(path, _)| path).collect())
}

fn read(git_dir: &Path) -> Result<Vec<(RelPath, SeenFile)>> {
    let file = git_dir.join("index");
    let Some(bytes) = read_regular(&file, CAP).at("reading the git index", &file)? else {
        return Ok(Vec::new());
    };
    let shared = &mut |id: &str| {
        let shared = git_dir.join(format!("sharedindex.{id}"));
        let content = read_regular(&shared, CAP).at("reading the shared git index", &shared)?;
        content.ok_or_else(|| damaged("refers to a shared index that is missing"))
    };
    decode(&bytes, shared).and_then(files).map_err(|error| error.path(&file))
}

/// As [`tracked`], from the bytes of an index; `shared` gives those of the shared index with that hash, which a split
/// index refers to.
///
/// # Errors
/// As [`tracked`]; errors of `shared`.
pub fn tracked_in(bytes: &[u8], shared: &mut dyn FnMut(&str) -> Result<Vec<u8>>) -> Result<Vec<RelPath>> {
    Ok(files(decode(bytes, shared)?)?.into_iter().map(|(path, _)| path).collect())
}

/// As [`tracked_in`], with each file as git has seen it last.
///
/// # Errors
/// As [`tracked_in`].
pub fn seen_in(bytes: &[u8], shared: &mut dyn FnMut(&str) -> Result<Vec<u8>>) -> Result<BTreeMap<RelPath, SeenFile>> {
    Ok(files(decode(bytes, shared)?)?.into_iter().collect())
}

/// Returns true if two indexes stage the same: the same paths with the same modes, contents and flags. Times and sizes of files on the
/// disk, and the caches of git, do not count.
///
/// # Errors
/// `conflict` for an index that is damaged or of a kind this reader does not know.
pub fn stage_the_same(one: &[u8], other: &[u8]) -> Result<bool> {
    let (one, other) = (parse_any(one)?, parse_any(other)?);
    let staged = |parsed: &Parsed| parsed.link.as_ref().map(|link| (link.base.clone(), link.deleted.clone()));
    let same = |(one, other): (&IndexSlot, &IndexSlot)| one.name == other.name && one.staged == other.staged;
    let is_same_length = one.slots.len() == other.slots.len();
    Ok(is_same_length && staged(&one) == staged(&other) && one.slots.iter().zip(&other.slots).all(same))
}

/// Reads a whole index; `shared` gives the bytes of the shared index of a split one.
fn decode(bytes: &[u8], shared: &mut dyn FnMut(&str) -> Result<Vec<u8>>) -> Result<Vec<IndexSlot>> {
    let parsed = parse_any(bytes)?;
    let Some(link) = parsed.link else {
        return Ok(parsed.slots);
    };
    let base = parse_any(&shared(&link.base)?)?;
    if base.link.is_some() {
        return Err(damaged("refers to a shared index that is split itself"));
    }
    let mut slots = base.slots;
    for position in &link.deleted {
        match slots.get_mut(*position as usize) {
            Some(slot) => slot.tracked = false,
            None => return Err(damaged("deletes an entry that is missing from its shared index")),
        }
    }
    // Entries that replace one of the shared index come without a name; the name stands there already.
    slots.extend(parsed.slots.into_iter().filter(|slot| !slot.name.is_empty()));
    Ok(slots)
}

/// SHA-256 repositories say so only in their configuration; the length of the ids decides which reading fits.
fn parse_any(bytes: &[u8]) -> Result<Parsed> {
    parse::parse(bytes, IndexHash::Sha1).or_else(|error| parse::parse(bytes, IndexHash::Sha256).map_err(|_| error))
}

fn files(slots: Vec<IndexSlot>) -> Result<Vec<(RelPath, SeenFile)>> {
    let tracked = slots.into_iter().filter(|slot| slot.tracked && !slot.name.is_empty());
    let mut files = tracked
        // git writes no `.`, `..` or empty component: what reads as another path is damage.
        .map(|slot| {
            let path = RelPath::parse(&slot.name).ok().filter(|path| path.as_bytes() == slot.name);
            Ok((path.ok_or_else(|| damaged("tracks an invalid path"))?, slot.seen))
        })
        .collect::<Result<Vec<_>>>()?;
    if !files.is_sorted_by(|one, other| one.0 <= other.0) {
        files.sort_by(|one, other| one.0.cmp(&other.0));
    }
    files.dedup_by(|one, other| one.0 == other.0);
    Ok(files)
}

fn damaged(what: &str) -> Error {
    Error::new(Code::Conflict, format!("the git index {what}"))
        .hint("`git fsck` and `git status` in that repository show details")
}

#[cfg(test)]
mod tests;
