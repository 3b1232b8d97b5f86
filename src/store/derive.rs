//! Derives from a pack the index that it should have, or the objects of an index that the pack still holds.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::read::ZlibDecoder;

use super::entry::{Fault, Form, PackSource, Stream};
use super::index::{Index, PackEntry};
use super::{hash, pack};
use crate::model::id::{ObjectHasher, ObjectId, ObjectKind};

/// An index that was derived.
pub(super) struct Derived {
    /// The content of an index file of version 2.
    pub bytes: Vec<u8>,
    /// Objects that it names as the old index did, and that the pack does not hold whole.
    pub bad: BTreeSet<ObjectId>,
}

/// The bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Reads a pack from its first object to its last and makes the index that it should have. After a damaged object it
/// continues at the next place that the old index names. An ordinary git wants an index to name as many objects as the
/// pack counts, so damaged ones keep their entry of the old index.
pub(super) fn index(file: &File, length: u64, old: &Arc<Vec<u8>>) -> std::io::Result<Derived> {
    let mut hints: Vec<PackEntry> = Index::bounded(Arc::clone(old))
        .map(|old| old.entries().filter(|entry| entry.offset >= 12).collect())
        .unwrap_or_default();
    hints.sort_unstable_by_key(|hint| (hint.offset, hint.id));
    let (mut found, mut deltas, mut at) = (Vec::new(), Vec::new(), 12);
    while at < length {
        match one(file, length, at) {
            Ok((id, end)) => {
                let crc = crc(file, at, end)?;
                match id {
                    Some(id) => found.push(PackEntry { id, crc, offset: at }),
                    None => deltas.push((at, crc)),
                }
                at = end;
            }
            Err(Fault::System(error)) => return Err(error),
            // Either damage, or the checksum at the end.
            Err(Fault::Damaged(_) | Fault::Refused(_)) => {
                match hints.get(hints.partition_point(|hint| hint.offset <= at)) {
                    Some(next) => at = next.offset,
                    None => break,
                }
            }
        }
    }
    resolve(file, length, deltas, &mut found)?;
    let bad = add_damaged(&mut found, &hints);
    found.sort_by_key(|entry| entry.id);
    found.dedup_by_key(|entry| entry.id);
    let mut end = [0; 20];
    if let Some(at) = length.checked_sub(20) {
        file.read_exact_at(&mut end, at)?;
    }
    Ok(Derived { bytes: pack::index_bytes(&found, &end), bad })
}

/// Adds the objects that only the old index names. If another object was found at that place, the old index is wrong.
fn add_damaged(found: &mut Vec<PackEntry>, hints: &[PackEntry]) -> BTreeSet<ObjectId> {
    let ids: HashSet<ObjectId> = found.iter().map(|entry| entry.id).collect();
    let mut places: HashSet<u64> = found.iter().map(|entry| entry.offset).collect();
    let mut bad = BTreeSet::new();
    for hint in hints {
        if !ids.contains(&hint.id) && !bad.contains(&hint.id) && places.insert(hint.offset) {
            bad.insert(hint.id);
            found.push(*hint);
        }
    }
    bad
}

/// Finds no base in another pack.
fn nowhere(_: &ObjectId) -> Result<(ObjectKind, Vec<u8>), Fault> {
    Err(Fault::Damaged("its base is missing"))
}

/// Returns the object at `at` and where it ends; `None` for a delta, whose object is not known yet.
fn one(file: &File, length: u64, at: u64) -> Result<(Option<ObjectId>, u64), Fault> {
    let source = PackSource { file, length, find: &|_| None, other: &nowhere };
    let head = source.head(at)?;
    let mut hasher = match head.form {
        Form::Whole(kind) => Some(ObjectHasher::new(kind, head.size)),
        Form::Tag => return Err(Fault::Damaged("it is a tag")),
        Form::OnOffset(_) | Form::OnObject(_) => None,
    };
    let mut stream = ZlibDecoder::new(Stream::new(file, head.begin, length));
    let (mut piece, mut total) = (vec![0; PIECE.min(head.size as usize + 1)], 0);
    loop {
        let n = stream.read(&mut piece)?;
        if n == 0 {
            break;
        }
        total += n as u64;
        if total > head.size {
            return Err(Fault::Damaged("its size is wrong"));
        }
        if let Some(hasher) = &mut hasher {
            hasher.update(&piece[..n]);
        }
    }
    if total != head.size {
        return Err(Fault::Damaged("its size is wrong"));
    }
    let id = hasher.map(|hasher| hasher.finish().map_err(|_| Fault::Damaged("it collides"))).transpose()?;
    Ok((id, head.begin + stream.total_in()))
}

fn crc(file: &File, from: u64, to: u64) -> std::io::Result<u32> {
    let (mut hasher, mut at, mut piece) = (crc32fast::Hasher::new(), from, vec![0; PIECE]);
    while at < to {
        let n = (to - at).min(PIECE as u64) as usize;
        file.read_exact_at(&mut piece[..n], at)?;
        hasher.update(&piece[..n]);
        at += n as u64;
    }
    Ok(hasher.finalize())
}

/// Resolves deltas, and adds their objects. A delta on a damaged base makes none.
fn resolve(file: &File, length: u64, mut deltas: Vec<(u64, u32)>, found: &mut Vec<PackEntry>) -> std::io::Result<()> {
    let mut places: HashMap<ObjectId, u64> = HashMap::new();
    if !deltas.is_empty() {
        places.extend(found.iter().map(|entry| (entry.id, entry.offset)));
    }
    loop {
        let before = deltas.len();
        let mut left = Vec::new();
        for (at, crc) in deltas {
            let read = {
                let find = |id: &ObjectId| places.get(id).copied();
                PackSource { file, length, find: &find, other: &nowhere }.read(at)
            };
            match read {
                Ok((Some(kind), content)) => {
                    let id = hash::plain_id(kind, &content);
                    places.insert(id, at);
                    found.push(PackEntry { id, crc, offset: at });
                }
                Err(Fault::System(error)) => return Err(error),
                // Its base may be an object that another delta makes.
                Ok((None, _)) | Err(Fault::Damaged(_) | Fault::Refused(_)) => left.push((at, crc)),
            }
        }
        if left.is_empty() || left.len() == before {
            return Ok(());
        }
        deltas = left;
    }
}

/// Returns the objects of a whole index that its pack does not hold as they were written.
pub(super) fn missing(file: &File, length: u64, index: &Index) -> std::io::Result<BTreeSet<ObjectId>> {
    let mut entries: Vec<PackEntry> = index.entries().collect();
    entries.sort_by_key(|entry| entry.offset);
    let mut bad = BTreeSet::new();
    let ends = entries.iter().skip(1).map(|entry| entry.offset).chain([length.saturating_sub(20)]);
    for (at, (entry, end)) in entries.iter().zip(ends).enumerate() {
        let is_last = at + 1 == entries.len();
        let is_there = entry.offset < end && end <= length && crc(file, entry.offset, end)? == entry.crc;
        // In a pack that was cut or grew, the end of the last entry is not known.
        let is_there = is_there
            || (is_last
                && matches!(one(file, length, entry.offset), Ok((id, _)) if id.is_none_or(|id| id == entry.id)));
        if !is_there {
            bad.insert(entry.id);
        }
    }
    Ok(bad)
}
