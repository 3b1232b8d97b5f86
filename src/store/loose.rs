//! Loose objects: `objects/xx/yyyy…`, zlib over git's header and the content.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use libdeflater::{CompressionLvl, Compressor};

use super::deflate::{self, Effort};
use super::entry::{Fault, OTHER_BYTES};
use super::hash;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::sink::hash_stream;
use crate::model::weight::object_too_large;
use crate::sys::fs::durable::{sync_dir, unique_suffix};
use crate::sys::parallel::{Caller, Threads};

/// Returns where a loose object stands.
pub(super) fn path_of(git_dir: &Path, id: &ObjectId) -> PathBuf {
    path_in(&git_dir.join("objects"), id)
}

/// Returns where a loose object stands below a directory of objects.
pub(super) fn path_in(objects: &Path, id: &ObjectId) -> PathBuf {
    let hex = id.to_string();
    objects.join(&hex[..2]).join(&hex[2..])
}

/// The size up to which a file takes one block of most file systems, compressed or not.
const BLOCK: usize = 4000;

/// The longest header that is read; none is written longer.
const HEADER: usize = 32;

/// The bytes of a file that are read before its header is judged.
const BEGINNING: u64 = 64 << 10;

/// The size up to which content is inflated at once. Larger content is inflated as a stream, because then refused
/// memory is an error and not the end of the process.
const AT_ONCE: usize = 1 << 20;

thread_local! {
    /// The compressor that only puts the frame of zlib around the content.
    static FRAME: RefCell<Compressor> = RefCell::new(Compressor::new(CompressionLvl::new(0).unwrap_or_default()));
}

/// Compresses an object as a loose file holds it. A small one is only framed: compressing would save no block.
pub(super) fn compress(kind: ObjectKind, content: &[u8]) -> Result<Vec<u8>> {
    let mut plain = Vec::with_capacity(content.len() + 32);
    plain.extend_from_slice(format!("{} {}\0", kind.as_str(), content.len()).as_bytes());
    plain.extend_from_slice(content);
    let mut out = Vec::new();
    if plain.len() > BLOCK {
        deflate::zlib(&plain, Effort::Fast, &mut out)?;
        return Ok(out);
    }
    FRAME.with_borrow_mut(|frame| {
        out.resize(frame.zlib_compress_bound(plain.len()), 0);
        let written = frame.zlib_compress(&plain, &mut out);
        out.truncate(written.map_err(|_| Error::new(Code::Internal, "an object could not be framed"))?);
        Ok(out)
    })
}

/// A temporary file in the object directory, removed unless it is put in its place.
struct Temporary {
    path: PathBuf,
    /// True once the file has its name: it is not removed then.
    kept: bool,
}

impl Temporary {
    fn create(git_dir: &Path) -> Result<(Temporary, File)> {
        let path = git_dir.join("objects").join(format!("tmp_obj_{}", unique_suffix()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path).at("creating", &path)?;
        Ok((Temporary { path, kept: false }, file))
    }

    /// Renames it to the object's place; the fan-out directory is made when missing.
    fn place(mut self, git_dir: &Path, id: &ObjectId) -> Result<()> {
        let target = path_of(git_dir, id);
        let dir = target.parent().unwrap_or(git_dir);
        if !dir.is_dir() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).at("creating the directory", dir)?;
            sync_dir(&git_dir.join("objects"))?;
        }
        std::fs::rename(&self.path, &target).at("renaming", &self.path)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // Nobody reads temporary files; one that cannot be removed only costs space.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns true if a file does not hold the object of an id. One that cannot be read is not judged. Takes constant
/// memory.
pub(super) fn is_damaged(path: &Path, id: &ObjectId) -> bool {
    let is_of_id = with(path, |kind, size, content| Ok(proven_id(content, kind, size)? == Some(*id)));
    match is_of_id {
        Ok(is_of_id) => !is_of_id,
        Err(Fault::Damaged(_)) => true,
        Err(Fault::System(_) | Fault::Refused(_)) => false,
    }
}

/// Gives kind, size and content of a loose object to `take`, as a stream, so that a large object needs no memory of its
/// size.
pub(super) fn with<T>(
    path: &Path,
    take: impl FnOnce(ObjectKind, u64, &mut dyn Read) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let open = || File::open(path).map(|file| BufReader::with_capacity(1 << 16, file));
    let (kind, size, begin) = header(open()?)?.object()?;
    let mut content = ZlibDecoder::new(open()?);
    content.read_exact(&mut [0; HEADER][..begin])?;
    take(kind, size, &mut content)
}

/// Returns the id of content; `None` when its size is wrong than its header says.
fn proven_id(content: &mut dyn Read, kind: ObjectKind, size: u64) -> std::io::Result<Option<ObjectId>> {
    let (mut hasher, mut piece, mut total) = (hash::PlainHasher::new(kind, size), vec![0; 1 << 16], 0);
    loop {
        let n = content.read(&mut piece)?;
        if n == 0 {
            return Ok((total == size).then(|| hasher.finish()));
        }
        total += n as u64;
        hasher.update(&piece[..n]);
    }
}

/// Writes an object and puts it in its place without waiting for the disk: a log holds it.
pub(super) fn write_quick(git_dir: &Path, id: &ObjectId, compressed: &[u8]) -> Result<()> {
    let (mut temporary, mut file) = Temporary::create(git_dir)?;
    file.write_all(compressed).at("writing", &temporary.path)?;
    let target = path_of(git_dir, id);
    let moved = std::fs::rename(&temporary.path, &target).or_else(|error| {
        let dir = target.parent().filter(|_| error.kind() == ErrorKind::NotFound);
        let Some(dir) = dir else { return Err(error) };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        std::fs::rename(&temporary.path, &target)
    });
    moved.at("moving into place", &temporary.path)?;
    temporary.kept = true;
    Ok(())
}

/// Writes an object durably, exactly as a log holds it.
pub(super) fn put_back(git_dir: &Path, id: &ObjectId, compressed: &[u8]) -> Result<()> {
    let path = path_of(git_dir, id);
    if std::fs::read(&path).is_ok_and(|bytes| bytes == compressed) {
        return Ok(());
    }
    let pending = UnsyncedObject::write(git_dir, *id, compressed)?;
    pending.sync()?;
    pending.temporary.place(git_dir, id)
}

/// Syncs files or directories, several at a time; missing ones are passed over.
pub(super) fn sync_files(paths: &BTreeSet<PathBuf>) -> Result<()> {
    let paths: Vec<&PathBuf> = paths.iter().collect();
    SYNCERS.try_each(paths.len(), &|at| match File::open(paths[at]) {
        Ok(file) => file.sync_all().at("syncing", paths[at]),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io(error, "syncing", paths[at])),
    })
}

/// A loose object on its way: written, not yet synced, not yet in its place.
pub(super) struct UnsyncedObject {
    temporary: Temporary,
    /// The object's id, which decides its name.
    id: ObjectId,
}

impl UnsyncedObject {
    /// Writes already compressed bytes aside.
    pub(super) fn write(git_dir: &Path, id: ObjectId, compressed: &[u8]) -> Result<UnsyncedObject> {
        let (temporary, mut file) = Temporary::create(git_dir)?;
        file.write_all(compressed).at("writing", &temporary.path)?;
        // Many may be on their way at once: none keeps a descriptor.
        Ok(UnsyncedObject { temporary, id })
    }

    fn sync(&self) -> Result<()> {
        let path = &self.temporary.path;
        File::open(path).and_then(|file| file.sync_all()).at("syncing", path)
    }
}

/// The threads that wait for the disk at once; their number does not depend on the processors.
pub(super) const SYNCERS: Threads = Threads { name: "sync", most: 8, block: 1, caller: Caller::Works };

/// The most objects that a batch writes as loose files; more become a pack.
pub(super) const MAX_LOOSE: usize = 64;

/// Makes objects durable and puts them in their places. Syncs their directories too.
///
/// Syncs wait for the file system's journal. Those that wait at the same time share one commit of it, so that many wait
/// hardly longer than one.
pub(super) fn finish(git_dir: &Path, pending: Vec<UnsyncedObject>) -> Result<()> {
    SYNCERS.try_each(pending.len(), &|at| pending[at].sync())?;
    let mut dirs = BTreeSet::new();
    for UnsyncedObject { temporary, id } in pending {
        temporary.place(git_dir, &id)?;
        dirs.extend(path_of(git_dir, &id).parent().map(PathBuf::from));
    }
    dirs.iter().try_for_each(|dir| sync_dir(dir))
}

/// Returns how many loose objects there are, judged by eight directories of 256: ids are as good as random.
pub(super) fn estimate(git_dir: &Path) -> Result<usize> {
    let mut count = 0;
    for first in (0x17..=255_u8).step_by(32) {
        let dir = git_dir.join(format!("objects/{first:02x}"));
        match std::fs::read_dir(&dir) {
            Ok(listing) => count += listing.count(),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(error, "listing", &dir)),
        }
    }
    Ok(count * 32)
}

/// Returns the ids of all loose objects.
pub(super) fn list(git_dir: &Path) -> Result<Vec<ObjectId>> {
    list_in(&git_dir.join("objects"), "")
}

/// Returns the ids of all loose objects below a directory of objects. Directories in which no id begins with `hex` are passed
/// over.
pub(super) fn list_in(objects: &Path, hex: &str) -> Result<Vec<ObjectId>> {
    let mut ids = Vec::new();
    for dir in std::fs::read_dir(objects).at("listing", objects)? {
        let dir = dir.at("listing", objects)?;
        let fan_out = dir.file_name().to_string_lossy().into_owned();
        let may_have = fan_out.starts_with(hex) || hex.starts_with(&fan_out);
        if fan_out.len() != 2 || !may_have || !dir.path().is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(dir.path()).at("listing", dir.path())? {
            let entry = entry.at("listing", dir.path())?;
            // An empty file holds no object: a power cut may have left it.
            if entry.metadata().is_ok_and(|facts| facts.len() > 0) {
                ids.extend(format!("{fan_out}{}", entry.file_name().to_string_lossy()).parse::<ObjectId>());
            }
        }
    }
    Ok(ids)
}

/// Reads a loose object into memory and proves it; `None` when the file does not hold the object of this id.
pub(super) fn read_whole(path: &Path, id: &ObjectId) -> Result<Option<(ObjectKind, Vec<u8>)>> {
    match read(path, id, u64::MAX) {
        Ok(object) => Ok(Some(object)),
        Err(Fault::Damaged(_)) => Ok(None),
        Err(Fault::System(error)) => Err(Error::io(error, "reading", path)),
        Err(Fault::Refused(error)) => Err(error),
    }
}

/// Reads a loose object of at most so many bytes into memory and proves it. A larger one is refused before it is unpacked.
pub(super) fn read(path: &Path, id: &ObjectId, most: u64) -> Result<(ObjectKind, Vec<u8>), Fault> {
    let mut file = File::open(path)?;
    // The buffer gets its full size at once: one that grows among lasting objects would fragment the heap.
    let mut bytes = Vec::with_capacity(file.metadata()?.len().min(BEGINNING) as usize);
    Read::by_ref(&mut file).take(BEGINNING).read_to_end(&mut bytes)?;
    let (kind, size, begin) = header(&bytes[..])?.object()?;
    if size > most {
        return Err(Fault::Refused(object_too_large(id, size, most)));
    }
    if bytes.len() as u64 == BEGINNING {
        // Further bytes of the file are not read.
        file.take(deflate::most_compressed(size).saturating_sub(BEGINNING)).read_to_end(&mut bytes)?;
    }
    content(&bytes, id, kind, size, begin).map(|content| (kind, content))
}

/// Returns the content of an object, proved, from the bytes of its loose file.
fn content(bytes: &[u8], id: &ObjectId, kind: ObjectKind, size: u64, begin: usize) -> Result<Vec<u8>, Fault> {
    let whole = usize::try_from(size).ok().and_then(|size| size.checked_add(begin));
    let inflated = match whole {
        Some(whole) if whole > AT_ONCE => inflated_in_pieces(bytes, whole)?,
        whole => whole.and_then(|whole| deflate::inflate(bytes, whole)),
    };
    let mut plain = inflated.ok_or(OTHER_BYTES)?;
    plain.drain(..begin);
    if hash::plain_id(kind, &plain) == *id { Ok(plain) } else { Err(OTHER_BYTES) }
}

/// Returns an object of at most so many bytes, proved, from the bytes that its loose file should have; `None` if they are damaged.
pub(super) fn decode(bytes: &[u8], id: &ObjectId, most: u64) -> Option<(ObjectKind, Vec<u8>)> {
    // Bytes in memory are refused for no other reason than damage.
    let (kind, size, begin) = header(bytes).ok()?.object().ok()?;
    let content = (size <= most).then(|| content(bytes, id, kind, size, begin).ok())??;
    Some((kind, content))
}

/// Returns the `whole` bytes that `compressed` holds; `None` when it holds more or fewer.
fn inflated_in_pieces(compressed: &[u8], whole: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut plain = Vec::new();
    ZlibDecoder::new(compressed).take((whole as u64).saturating_add(1)).read_to_end(&mut plain)?;
    Ok((plain.len() == whole).then_some(plain))
}

/// Returns true if an error says that there is no such file.
pub(super) fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The header of a loose file.
enum Head {
    /// Kind, size, and how many bytes the header takes.
    Object(ObjectKind, u64, usize),
    /// A tag: piton neither writes nor reads one, and leaves it alone.
    Tag,
    /// No object: it is damaged.
    Nothing,
}

impl Head {
    /// Kind, size and how many bytes the header takes. A tag counts as not there.
    fn object(self) -> Result<(ObjectKind, u64, usize), Fault> {
        match self {
            Head::Object(kind, size, begin) => Ok((kind, size, begin)),
            Head::Tag => Err(Fault::System(ErrorKind::NotFound.into())),
            Head::Nothing => Err(OTHER_BYTES),
        }
    }
}

/// Reads the header of a compressed object.
///
/// # Errors
/// Returns the errors of reading. Content that cannot be inflated is no error but no object.
fn header(compressed: impl Read) -> std::io::Result<Head> {
    let mut begin = Vec::new();
    if let Err(error) = ZlibDecoder::new(compressed).take(HEADER as u64).read_to_end(&mut begin) {
        return if is_of_decoder(&error) { Ok(Head::Nothing) } else { Err(error) };
    }
    Ok(parsed(&begin).unwrap_or(Head::Nothing))
}

/// Returns true if the bytes could be read and are no valid compressed data.
fn is_of_decoder(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
}

fn parsed(begin: &[u8]) -> Option<Head> {
    let end = begin.iter().position(|byte| *byte == 0)?;
    let (kind, size) = std::str::from_utf8(&begin[..end]).ok()?.split_once(' ')?;
    if kind == "tag" {
        return Some(Head::Tag);
    }
    let kinds = [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Commit];
    let kind = kinds.into_iter().find(|known| known.as_str() == kind)?;
    Some(Head::Object(kind, size.parse().ok()?, end + 1))
}

/// Kind and size that a loose object says it has.
pub(super) fn describe(path: &Path) -> Result<(ObjectKind, u64), Fault> {
    let (kind, size, _) = header(File::open(path)?)?.object()?;
    Ok((kind, size))
}

/// Writes a blob of `size` bytes from a reader, in constant memory, synced with its directory.
pub(super) fn write_stream(git_dir: &Path, size: u64, source: &mut dyn Read) -> Result<ObjectId> {
    let (temporary, file) = Temporary::create(git_dir)?;
    let mut encoder = ZlibEncoder::new(file, Compression::new(1));
    encoder.write_all(format!("blob {size}\0").as_bytes()).at("writing", &temporary.path)?;
    let path = temporary.path.clone();
    let id = hash_stream(size, source, &mut |piece| encoder.write_all(piece).at("writing", &path))?;
    let file = encoder.finish().at("writing", &path)?;
    file.sync_all().at("syncing", &path)?;
    temporary.place(git_dir, &id)?;
    let target = path_of(git_dir, &id);
    sync_dir(target.parent().unwrap_or(git_dir))?;
    Ok(id)
}
