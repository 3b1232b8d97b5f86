//! Pack files: version 2 packs without deltas, and their version 2 indexes, after git's `gitformat-pack`.
//!
//! Objects are appended as they come; the header's count and the trailing checksum are written when the number is known.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use super::deflate::{self, Effort};
use super::hash::{checksum, checksum_of};
use super::header::entry_header;
use super::index::PackEntry;
use super::loose::SYNCERS;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::sys::fs::durable::{sync_dir, unique_suffix};
use crate::sys::writeback;

/// An object as a pack holds it: its type-and-size header and the compressed content.
pub(super) struct Packed {
    /// The object's id.
    pub id: ObjectId,
    /// The entry as it stands in a pack.
    pub bytes: Vec<u8>,
}

/// Compresses an object for a pack.
pub(super) fn compress(kind: ObjectKind, id: ObjectId, content: &[u8], effort: Effort) -> Result<Packed> {
    let mut bytes = entry_header(kind, content.len() as u64);
    deflate::zlib(content, effort, &mut bytes)?;
    Ok(Packed { id, bytes })
}

/// Returns true if an open pack is the one that ends with `checksum`, from its first byte to its last as far as its
/// ends tell.
pub(super) fn ends_as(file: &File, length: u64, checksum: &[u8]) -> std::io::Result<bool> {
    let (mut begin, mut end) = ([0; 8], [0; 20]);
    if length < 32 {
        return Ok(false);
    }
    file.read_exact_at(&mut begin, 0)?;
    file.read_exact_at(&mut end, length - 20)?;
    Ok(begin == header(0)[..8] && checksum == end)
}

/// Counts the objects of an open pack as its header does; `None` if it does not begin as a pack.
pub(super) fn counted(file: &File) -> std::io::Result<Option<u32>> {
    let mut begin = [0; 12];
    match file.read_exact_at(&mut begin, 0) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let [.., a, b, c, d] = begin;
    Ok((begin[..8] == header(0)[..8]).then(|| u32::from_be_bytes([a, b, c, d])))
}

/// Returns true if a pack is there and is the one that an index was made for, as far as its ends tell.
pub(super) fn is_of(path: &Path, index: &[u8]) -> Result<bool> {
    let Some(checksum) = index.len().checked_sub(40).map(|at| &index[at..at + 20]) else { return Ok(false) };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Error::io(error, "opening", path)),
    };
    let length = file.metadata().at("checking", path)?.len();
    match ends_as(&file, length, checksum) {
        // Cut meanwhile.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        ends => ends.at("reading", path),
    }
}

/// The growth of a pack after which the kernel is asked to begin writing, so that the sync at the end has little left
/// to do.
const EARLY: u64 = 8 << 20;

/// The beginning of the names of packs.
pub(super) const DENSE: &str = "pack-";
/// The beginning of the names of long-lasting packs, whose objects are packed against each other.
pub(super) const LONG: &str = "pack-long-";
/// The beginning of the names of light packs, whose objects are not compressed yet.
pub(super) const LIGHT: &str = "pack-light-";

/// A pack that is being written; dropped unfinished, it leaves nothing behind.
pub(super) struct PackWriter {
    /// The directory of packs.
    dir: PathBuf,
    /// The temporary name of the pack.
    path: PathBuf,
    file: BufWriter<File>,
    /// The place of the next entry, in bytes.
    offset: u64,
    /// Up to here the kernel was asked to write already.
    started: u64,
    /// The entries so far, in the order in which they stand in the pack.
    objects: Vec<PackEntry>,
    /// The ids of `objects`.
    ids: HashSet<ObjectId>,
    /// The beginning of its later name: [`DENSE`] or [`LIGHT`].
    name: &'static str,
    /// True once the pack has its name: the temporary file is not removed then.
    finished: bool,
}

impl PackWriter {
    /// Starts a pack in `objects/pack`; `name` is what its name begins with.
    pub(super) fn create(git_dir: &Path, name: &'static str) -> Result<PackWriter> {
        let dir = git_dir.join("objects/pack");
        let path = dir.join(format!("tmp_pack_{}", unique_suffix()));
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).mode(0o400).open(&path).at("creating", &path)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(&header(0)).at("writing", &path)?;
        Ok(PackWriter {
            dir,
            path,
            file,
            offset: 12,
            started: 0,
            objects: Vec::new(),
            ids: HashSet::new(),
            name,
            finished: false,
        })
    }

    /// Tells whether an object was appended.
    pub(super) fn contains(&self, id: &ObjectId) -> bool {
        self.ids.contains(id)
    }

    /// Appends an object.
    pub(super) fn append(&mut self, packed: &Packed) -> Result<()> {
        self.file.write_all(&packed.bytes).at("writing", &self.path)?;
        let crc = crc32fast::hash(&packed.bytes);
        self.ids.insert(packed.id);
        self.objects.push(PackEntry { id: packed.id, crc, offset: self.offset });
        self.offset += packed.bytes.len() as u64;
        if self.offset >= self.started + EARLY {
            writeback::start(self.file.get_ref(), self.started, self.offset - self.started);
            self.started = self.offset;
        }
        Ok(())
    }

    /// Returns its length so far.
    pub(super) fn length(&self) -> u64 {
        self.offset
    }

    /// Writes count, checksum and index, syncs all, and puts both files in their place: the index last, since git finds
    /// packs by their indexes.
    ///
    /// Returns the pack's name, which is made from its bytes, as in today's git. Two writers of the same objects in
    /// another order must not take each other's index for their own.
    pub(super) fn finish(self) -> Result<String> {
        let dir = self.dir.clone();
        let name = self.seal()?.place()?;
        sync_dir(&dir)?;
        Ok(name)
    }

    /// Makes both files whole and durable, and leaves them aside.
    pub(super) fn seal(mut self) -> Result<Sealed> {
        self.file.flush().at("writing", &self.path)?;
        let checksum = self.end()?;
        self.objects.sort_by_key(|object| object.id);
        let index = index_bytes(&std::mem::take(&mut self.objects), &checksum);
        self.ids = HashSet::new();
        let sealed =
            Sealed { index: self.path.with_extension("idx"), name: ObjectId::from_bytes(checksum), writer: self };
        write_synced(&sealed.index, &index)?;
        Ok(sealed)
    }

    /// Patches the header and appends the SHA-1 of everything before it.
    fn end(&mut self) -> Result<[u8; 20]> {
        let count = u32::try_from(self.objects.len())
            .map_err(|_| Error::new(Code::Internal, "more than 4 billion objects in one pack"))?;
        let path = self.path.clone();
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(0)).at("seeking in", &path)?;
        file.write_all(&header(count)).at("writing", &path)?;
        file.seek(SeekFrom::Start(0)).at("seeking in", &path)?;
        let other = file.try_clone().at("opening again", &path)?;
        // The disk and the processor work at the same time; the second sync only has to write the last page.
        let checksum = std::thread::scope(|scope| {
            let syncing = Builder::new().name("sync".to_owned()).spawn_scoped(scope, || other.sync_data());
            let checksum = checksum_of(file).at("reading back", &path);
            // If it could not be started, the sync below does it all.
            if let Ok(Ok(synced)) = syncing.map(std::thread::ScopedJoinHandle::join) {
                synced.at("syncing", &path)?;
            }
            checksum
        })?;
        file.write_all(&checksum).at("writing", &path)?;
        file.sync_all().at("syncing", &path)?;
        Ok(checksum)
    }
}

/// A pack that is durable and has no name yet; dropped, it leaves nothing behind.
pub(super) struct Sealed {
    writer: PackWriter,
    /// The temporary name of the index.
    index: PathBuf,
    /// The checksum of the pack, which ends the names of both.
    name: ObjectId,
}

impl Sealed {
    fn place(mut self) -> Result<String> {
        let PackWriter { dir, path, name, .. } = &self.writer;
        let name = format!("{name}{}", self.name);
        std::fs::rename(path, dir.join(format!("{name}.pack"))).at("renaming", path)?;
        let target = dir.join(format!("{name}.idx"));
        self.writer.finished = true;
        std::fs::rename(&self.index, target).at("renaming", &self.index)?;
        Ok(name)
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // It is in its place already, or is a leftover that only costs space.
        let _ = std::fs::remove_file(&self.index);
    }
}

/// Finishes several at the same time, and puts them in their places with those that are sealed already.
pub(super) fn finish_all(writers: Vec<PackWriter>, sealed: Vec<Sealed>) -> Result<()> {
    let all = writers.iter().chain(sealed.iter().map(|sealed| &sealed.writer));
    let Some(dir) = all.map(|writer| writer.dir.clone()).next() else {
        return Ok(());
    };
    let lock = |slot: &Mutex<Option<PackWriter>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let slots: Vec<_> = writers.into_iter().map(|writer| Mutex::new(Some(writer))).collect();
    let sealed = Mutex::new(sealed);
    SYNCERS.try_each(slots.len(), &|at| {
        if let Some(writer) = lock(&slots[at]) {
            let one = writer.seal()?;
            sealed.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        }
        Ok(())
    })?;
    for one in sealed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        one.place()?;
    }
    sync_dir(&dir)
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Nobody reads temporary files; one that cannot be removed only costs space.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn header(count: u32) -> [u8; 12] {
    let mut header = *b"PACK\0\0\0\x02\0\0\0\0";
    header[8..].copy_from_slice(&count.to_be_bytes());
    header
}

/// Returns an index of version 2; `objects` are sorted by id.
pub(super) fn index_bytes(objects: &[PackEntry], pack_checksum: &[u8; 20]) -> Vec<u8> {
    let mut out = b"\xfftOc\0\0\0\x02".to_vec();
    let mut at = 0;
    for first in 0..=255u8 {
        while at < objects.len() && objects[at].id.as_bytes()[0] <= first {
            at += 1;
        }
        out.extend_from_slice(&(at as u32).to_be_bytes());
    }
    objects.iter().for_each(|object| out.extend_from_slice(object.id.as_bytes()));
    objects.iter().for_each(|object| out.extend_from_slice(&object.crc.to_be_bytes()));
    let mut large = Vec::new();
    for object in objects {
        // Offsets of 2 GiB and more stand in a table of their own; the high bit marks the reference to it.
        let small = u32::try_from(object.offset).ok().filter(|offset| *offset < 1 << 31).unwrap_or_else(|| {
            large.push(object.offset);
            1 << 31 | (large.len() as u32 - 1)
        });
        out.extend_from_slice(&small.to_be_bytes());
    }
    large.iter().for_each(|offset| out.extend_from_slice(&offset.to_be_bytes()));
    out.extend_from_slice(pack_checksum);
    let sum = checksum(&out);
    out.extend_from_slice(&sum);
    out
}

/// Writes a file that must not be there yet, and waits until it is durable.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(path).at("creating", path)?;
    file.write_all(bytes).at("writing", path)?;
    file.sync_all().at("syncing", path)
}

/// Makes an index of some ids, the first of them the last in the pack.
#[cfg(test)]
pub(super) fn index_of(ids: &[ObjectId]) -> Vec<u8> {
    let offset = |at: usize| if at == 3 { 1 << 33 } else { 12 + at as u64 * 10 };
    let entry = |(at, id): (usize, &ObjectId)| PackEntry { id: *id, crc: 7, offset: offset(at) };
    let mut entries: Vec<PackEntry> = ids.iter().enumerate().map(entry).collect();
    entries.sort_by_key(|entry| entry.id);
    index_bytes(&entries, &[9; 20])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_offsets_stand_in_their_own_table() {
        let object = |first: u8, offset| {
            let mut id = [0u8; 20];
            id[0] = first;
            PackEntry { id: ObjectId::from_bytes(id), crc: 7, offset }
        };
        let bytes = index_bytes(&[object(1, 12), object(2, 1 << 33)], &[0; 20]);
        let offsets = 8 + 1024 + 2 * 20 + 2 * 4;
        assert_eq!(&bytes[offsets..offsets + 8], [0, 0, 0, 12, 0x80, 0, 0, 0]);
        assert_eq!(&bytes[offsets + 8..offsets + 16], (1u64 << 33).to_be_bytes());
    }
}
