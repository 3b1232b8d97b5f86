//! Deriving from a pack what its index should say: the index itself, or which of its objects the pack still holds.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use flate2::read::ZlibDecoder;

use super::entry::{Fault, Form, Source, Stream};
use super::index::{Entry, Index};
use super::pack;
use crate::model::id::{ObjectHasher, ObjectId};

/// An index that was derived.
pub struct Derived {
    pub bytes: Vec<u8>,
    /// True if every object of the pack is in it.
    pub is_whole: bool,
}

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Reads a pack from its first object to its last and makes the index that it should have. Where an object is damaged, it goes on at the
/// next place that the old index names.
pub fn index(file: &File, length: u64, old: &[u8]) -> std::io::Result<Derived> {
    let mut hints: Vec<u64> = Index::bounded(old.to_vec())
        .map(|old| old.entries().map(|entry| entry.offset).filter(|offset| *offset >= 12).collect())
        .unwrap_or_default();
    hints.sort_unstable();
    let mut head = [0; 12];
    let count = match file.read_exact_at(&mut head, 0) {
        Ok(()) if head.starts_with(b"PACK\0\0\0\x02") => {
            Some(u32::from_be_bytes([head[8], head[9], head[10], head[11]]))
        }
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => return Err(error),
        _ => None,
    };
    let (mut found, mut deltas, mut at, mut damaged) = (Vec::new(), Vec::new(), 12, false);
    while at < length && count.is_none_or(|count| found.len() + deltas.len() < count as usize) {
        match one(file, length, at) {
            Ok((id, end)) => {
                let crc = crc(file, at, end)?;
                match id {
                    Some(id) => found.push(Entry { id, crc, offset: at }),
                    None => deltas.push((at, crc)),
                }
                at = end;
            }
            Err(Fault::System(error)) => return Err(error),
            Err(Fault::Damaged(_)) => {
                damaged = true;
                match hints.iter().find(|hint| **hint > at) {
                    Some(next) => at = *next,
                    None => break,
                }
            }
        }
    }
    damaged |= resolve(file, length, deltas, &mut found)?;
    found.sort_by_key(|entry| entry.id);
    found.dedup_by_key(|entry| entry.id);
    let mut end = [0; 20];
    let is_closed = length >= 32 && file.read_exact_at(&mut end, length - 20).is_ok() && at + 20 == length;
    let is_whole = is_closed && !damaged && count.is_some_and(|count| found.len() == count as usize);
    Ok(Derived { bytes: pack::index_bytes(&found, &end), is_whole })
}

/// The object at `at` and where it ends; `None` for a delta, whose object is not known yet.
fn one(file: &File, length: u64, at: u64) -> Result<(Option<ObjectId>, u64), Fault> {
    let source = Source { file, length, find: &|_| None, other: &|_| None };
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
            return Err(Fault::Damaged("it has another size"));
        }
        if let Some(hasher) = &mut hasher {
            hasher.update(&piece[..n]);
        }
    }
    if total != head.size {
        return Err(Fault::Damaged("it has another size"));
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

/// Finds out what deltas make; says whether some make nothing.
fn resolve(file: &File, length: u64, mut deltas: Vec<(u64, u32)>, found: &mut Vec<Entry>) -> std::io::Result<bool> {
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
                Source { file, length, find: &find, other: &|_| None }.read(at)
            };
            match read {
                Ok((Some(kind), content)) => {
                    let id = pack::plain_id(kind, &content);
                    places.insert(id, at);
                    found.push(Entry { id, crc, offset: at });
                }
                Err(Fault::System(error)) => return Err(error),
                // Its base may be an object that another delta makes.
                Ok((None, _)) | Err(Fault::Damaged(_)) => left.push((at, crc)),
            }
        }
        if left.is_empty() || left.len() == before {
            return Ok(!left.is_empty());
        }
        deltas = left;
    }
}

/// The objects of a whole index that its pack does not hold as they were written.
pub fn missing(file: &File, length: u64, index: &Index) -> std::io::Result<BTreeSet<ObjectId>> {
    let mut entries: Vec<Entry> = index.entries().collect();
    entries.sort_by_key(|entry| entry.offset);
    let mut bad = BTreeSet::new();
    let ends = entries.iter().skip(1).map(|entry| entry.offset).chain([length.saturating_sub(20)]);
    for (at, (entry, end)) in entries.iter().zip(ends).enumerate() {
        let is_last = at + 1 == entries.len();
        let is_there = entry.offset < end && end <= length && crc(file, entry.offset, end)? == entry.crc;
        // Where the last one ends is not known of a pack that was cut or grew.
        let is_there = is_there
            || (is_last
                && matches!(one(file, length, entry.offset), Ok((id, _)) if id.is_none_or(|id| id == entry.id)));
        if !is_there {
            bad.insert(entry.id);
        }
    }
    Ok(bad)
}
