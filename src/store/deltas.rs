//! Packs objects against each other: libgit2's pack builder chooses the deltas, and each of its entries is proved before
//! it is used.
//!
//! libgit2 never sees the store: the objects are given to it in memory. Its deltas name their base by its id, so that an
//! entry stands at any place of a pack that holds the base too.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use flate2::bufread::ZlibDecoder;
use git2::{ObjectType, Odb, Oid, Repository};

use super::commit::Commit;
use super::entry::{apply, varint};
use super::hash::plain_id;
use super::mark;
use super::pack::Packed;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::libgit2::isolate;

/// The pause between two checks of the interrupt while objects are packed.
const PAUSE: Duration = Duration::from_millis(5);

/// An object to pack.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Plain {
    /// Its id.
    pub id: ObjectId,
    /// Its kind.
    pub kind: ObjectKind,
    /// Its content.
    pub content: Vec<u8>,
    /// The path at which it stands, by which similar objects are found. May be wrong.
    pub path: Vec<u8>,
}

/// Notes the paths of objects whose commits and trees are among them, and puts the objects of a path together.
pub(super) fn put_in_order(objects: &mut [Plain]) {
    let places: HashMap<ObjectId, usize> = objects.iter().enumerate().map(|(at, object)| (object.id, at)).collect();
    let trees = objects.iter().filter(|object| object.kind == ObjectKind::Commit);
    let trees = trees.filter_map(|object| places.get(&Commit::decode(&object.content)?.tree).copied());
    let mut open: Vec<usize> = trees.collect();
    let mut is_met: Vec<bool> = vec![false; objects.len()];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut is_met[at], true) || objects[at].kind != ObjectKind::Tree {
            continue;
        }
        let mut below = Vec::new();
        let mut rest = &objects[at].content[..];
        while let Some((entry, after)) = mark::entry(rest) {
            rest = after;
            if let Some(place) = places.get(&entry.id).filter(|place| !is_met[**place]) {
                below.push((*place, [&objects[at].path[..], entry.name].join(&b'/')));
            }
        }
        for (place, path) in below {
            objects[place].path = path;
            open.push(place);
        }
    }
    objects.sort_by(|a, b| (a.kind as u8, &a.path, a.id).cmp(&(b.kind as u8, &b.path, b.id)));
}

/// Compresses objects, some as deltas on others of them; `None` if `control` stopped it.
///
/// libgit2 asks seldom if it should go on, so it works on a thread of its own. A stopped one ends by itself.
///
/// # Errors
/// `internal` when libgit2 fails or packs something else; nothing is written.
pub(super) fn packed(objects: Vec<Plain>, control: Interrupt<'_>) -> Result<Option<Vec<Packed>>> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let stop = Arc::clone(&is_stopped);
    let work = move || {
        let pack = built(&objects, &stop);
        let failed = |error| Error::new(Code::Internal, "objects could not be packed").caused_by(error);
        // Without a receiver the result is not needed.
        let _ = sender.send(pack.map_err(failed).and_then(|pack| split(&pack, &objects)));
    };
    let started = Builder::new().name("pack".to_owned()).spawn(work);
    started.map_err(|error| Error::new(Code::Internal, "cannot start a thread").caused_by(error))?;
    while control() == Flow::Continue {
        match receiver.recv_timeout(PAUSE) {
            Ok(outcome) => return outcome.map(Some),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(Code::Internal, "objects were not packed"));
            }
        }
    }
    is_stopped.store(true, Ordering::Relaxed);
    Ok(None)
}

/// Returns a pack of the objects as libgit2 writes it. Ends with an error if it is stopped.
fn built(objects: &[Plain], is_stopped: &AtomicBool) -> Result<Vec<u8>, git2::Error> {
    isolate();
    let odb = Odb::new()?;
    odb.add_new_mempack_backend(1)?;
    for object in objects {
        odb.write(kind_of(object.kind), &object.content)?;
    }
    let repository = Repository::from_odb(odb)?;
    let mut builder = repository.packbuilder()?;
    builder.set_threads(1);
    builder.set_progress_callback(|_, _, _| !is_stopped.load(Ordering::Relaxed))?;
    for object in objects {
        // The name only helps to find similar objects: one that is no text is passed on as well as it can be.
        let name = String::from_utf8_lossy(&object.path).replace('\0', "");
        builder.insert_object(Oid::from_bytes(object.id.as_bytes())?, Some(&name))?;
    }
    let mut pack = Vec::new();
    builder.foreach(|piece| {
        pack.extend_from_slice(piece);
        !is_stopped.load(Ordering::Relaxed)
    })?;
    Ok(pack)
}

fn kind_of(kind: ObjectKind) -> ObjectType {
    match kind {
        ObjectKind::Commit => ObjectType::Commit,
        ObjectKind::Tree => ObjectType::Tree,
        ObjectKind::Blob => ObjectType::Blob,
    }
}

/// Returns the entries of a pack, each proved to be one of `objects`.
fn split(pack: &[u8], objects: &[Plain]) -> Result<Vec<Packed>> {
    let wrong = |why: &str| Error::new(Code::Internal, format!("libgit2 packed something else: {why}"));
    let known: HashMap<&ObjectId, &Plain> = objects.iter().map(|object| (&object.id, object)).collect();
    let body = pack.len().checked_sub(20).and_then(|end| pack.get(12..end)).ok_or_else(|| wrong("it is cut"))?;
    let (mut rest, mut found) = (body, Vec::with_capacity(objects.len()));
    while !rest.is_empty() {
        let (entry, length) = Entry::read(rest).ok_or_else(|| wrong("an entry is truncated"))?;
        let made = match entry.base {
            None => Some(plain_id(entry.kind.ok_or_else(|| wrong("an unknown kind"))?, &entry.bytes)),
            Some(base) => {
                let base = known.get(&base).ok_or_else(|| wrong("the base of a delta is missing"))?;
                let content = apply(&base.content, &entry.bytes).map_err(|_| wrong("no memory for a delta"))?;
                content.map(|content| plain_id(base.kind, &content))
            }
        };
        let id = made.filter(|id| known.contains_key(id)).ok_or_else(|| wrong("an object is missing"))?;
        found.push(Packed { id, bytes: rest[..length].to_vec() });
        rest = &rest[length..];
    }
    let mut ids: Vec<ObjectId> = found.iter().map(|packed| packed.id).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() != known.len() || found.len() != known.len() {
        return Err(wrong("an object is missing"));
    }
    Ok(found)
}

/// An entry of a pack, unpacked.
struct Entry {
    /// The kind of a whole object; `None` for a delta.
    kind: Option<ObjectKind>,
    /// The base of a delta.
    base: Option<ObjectId>,
    /// The content, or the delta.
    bytes: Vec<u8>,
}

impl Entry {
    /// Reads the first entry of a pack's body, and its length there.
    fn read(body: &[u8]) -> Option<(Entry, usize)> {
        let first = *body.first()?;
        // Four bits of the size stand beside the kind, the others follow.
        let (mut size, mut at) = (u64::from(first & 15), 1);
        if first & 0x80 != 0 {
            let (more, used) = varint(&body[1..])?;
            size |= more << 4;
            at += used;
        }
        let (kind, base) = match first >> 4 & 7 {
            1 => (Some(ObjectKind::Commit), None),
            2 => (Some(ObjectKind::Tree), None),
            3 => (Some(ObjectKind::Blob), None),
            7 => {
                let (base, _) = body.get(at..)?.split_first_chunk::<20>()?;
                at += 20;
                (None, Some(ObjectId::from_bytes(*base)))
            }
            _ => return None,
        };
        let mut stream = ZlibDecoder::new(body.get(at..)?);
        let mut bytes = Vec::new();
        stream.by_ref().take(size + 1).read_to_end(&mut bytes).ok()?; // damaged bytes have no entry
        let end = at + usize::try_from(stream.total_in()).ok()?; // never more than the body
        (bytes.len() as u64 == size).then_some((Entry { kind, base, bytes }, end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::tree::{Mode as TreeMode, TreeEntry, encode};

    fn plain(content: &[u8], path: &str) -> Plain {
        let id = plain_id(ObjectKind::Blob, content);
        Plain { id, kind: ObjectKind::Blob, content: content.to_vec(), path: path.into() }
    }

    #[test]
    fn versions_of_a_file_take_little_more_than_one() {
        let mut seed = 7_u32;
        let mut line = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            format!("{seed:x} and {:x}\n", seed.rotate_left(9))
        };
        let mut lines: Vec<String> = (0..400).map(|_| line()).collect();
        let mut objects = Vec::new();
        for version in 0..40 {
            lines[version * 7] = line();
            objects.push(plain(lines.concat().as_bytes(), "src/main.c"));
        }
        let sizes = |objects: &[Plain]| {
            let all = packed(objects.to_vec(), &|| Flow::Continue).unwrap().unwrap();
            all.iter().map(|one| one.bytes.len()).sum::<usize>()
        };
        let (one, all) = (sizes(&objects[..1]), sizes(&objects));
        assert!(all < one * 2, "{one} and {all}");
        assert!(packed(objects, &|| Flow::Stop).unwrap().is_none());
    }

    #[test]
    fn an_entry_that_is_not_what_was_asked_for_is_refused() {
        let objects = [plain(b"one and only one content, which is long enough for a delta", "a"), plain(b"two", "b")];
        let mut pack = built(&objects, &AtomicBool::new(false)).unwrap();
        assert_eq!(split(&pack, &objects).unwrap().len(), 2);
        assert!(split(&pack, &objects[..1]).is_err() && split(&pack[..pack.len() - 3], &objects).is_err());
        let middle = pack.len() - 26;
        pack[middle] ^= 1;
        assert!(split(&pack, &objects).is_err());
    }

    #[test]
    fn paths_are_found_from_commits() {
        let entry = |name: &str, mode: TreeMode, id| TreeEntry { name: name.into(), mode, id };
        let tree = |entries: Vec<TreeEntry>| {
            let content = encode(entries);
            Plain { id: plain_id(ObjectKind::Tree, &content), kind: ObjectKind::Tree, content, path: Vec::new() }
        };
        let files = [plain(b"one", ""), plain(b"two", ""), plain(b"alone", "")];
        let inner = tree(vec![entry("f", TreeMode::File, files[1].id)]);
        let top = tree(vec![entry("a", TreeMode::File, files[0].id), entry("d", TreeMode::Dir, inner.id)]);
        let content = format!("tree {}\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nx\n", top.id).into_bytes();
        let commit =
            Plain { id: plain_id(ObjectKind::Commit, &content), kind: ObjectKind::Commit, content, path: Vec::new() };
        let mut all: Vec<Plain> = files.into_iter().chain([inner, top, commit]).collect();
        put_in_order(&mut all);
        let mut paths: Vec<String> = all.iter().map(|one| String::from_utf8_lossy(&one.path).into_owned()).collect();
        paths.sort();
        assert_eq!(paths, ["", "", "", "/a", "/d", "/d/f"]);
    }

    proptest! {
        #[test]
        fn every_object_is_packed_once(contents in proptest::collection::vec("[a-c\n]{0,300}", 0..20)) {
            let mut objects: Vec<Plain> = contents.iter().map(|text| plain(text.as_bytes(), "x")).collect();
            objects.sort_by_key(|object| object.id);
            objects.dedup_by_key(|object| object.id);
            let count = objects.len();
            let all = packed(objects, &|| Flow::Continue).unwrap().unwrap();
            prop_assert_eq!(all.len(), count);
        }
    }
}
