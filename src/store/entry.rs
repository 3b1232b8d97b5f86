//! Reading one object out of a pack, with and without deltas, by positioned reads.
//!
//! Nothing is mapped: a pack that is cut while it is read gives an error for the objects that it lost, and never a
//! signal. A stated size is only a claim: no more memory is used than the pack's bytes could unpack to. The result is
//! not proved here; see [`Objects`].
//!
//! [`Objects`]: super::objects::Objects

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

use flate2::read::ZlibDecoder;

use super::{deflate, header};
use crate::error::Error;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::weight::object_too_large;

/// The longest chain of deltas that is followed; git makes them 50 long, and at most 4095.
const DEEPEST: usize = 4096;

/// The size up to which an object is read at once; a larger one is read piece by piece.
const AT_ONCE: u64 = 256 << 10;

/// The size up to which a delta is inflated as a whole for its first bytes.
const SMALL_DELTA: u64 = 16 << 10;

/// The bytes of one read of a larger object.
const PIECE: usize = 64 << 10;

/// The most bytes of an entry's header, including the base of a delta.
const HEADER: usize = 48;

/// The form of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The object's own content.
    Whole(ObjectKind),
    /// An annotated tag: piton writes none.
    Tag,
    /// A delta on the entry at this offset.
    OnOffset(u64),
    /// A delta on an object.
    OnObject(ObjectId),
}

/// The head of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// The form, which decides how the content is made.
    pub form: Form,
    /// The inflated size; of a delta, that of the delta itself.
    pub size: u64,
    /// The place where the compressed bytes begin.
    pub begin: u64,
}

/// The reason why an object cannot be read.
pub(super) enum Fault {
    /// The pack does not hold it as it should.
    Damaged(&'static str),
    /// A system call failed, which says nothing of the object.
    System(std::io::Error),
    /// It is not judged: it would take more memory than the reader allows, or its base cannot be read now.
    Refused(Error),
}

/// The fault of a readable copy whose content does not have its id.
pub(super) const OTHER_BYTES: Fault = Fault::Damaged("its bytes do not match its id");

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Fault::Damaged("its file is truncated"),
            std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData => {
                Fault::Damaged("its compressed bytes are damaged")
            }
            _ => Fault::System(error),
        }
    }
}

/// Reads the base of a delta from another pack or a loose file.
pub(super) type Elsewhere<'e> = dyn Fn(&ObjectId) -> Result<(ObjectKind, Vec<u8>), Fault> + 'e;

/// The size that a base may always have, even for a smaller object.
const SMALL_BASE: u64 = 32 << 20;

/// Returns how large a base may be for an object that may have `most` bytes.
pub(super) fn most_of_base(most: u64) -> u64 {
    most.saturating_mul(4).max(SMALL_BASE)
}

/// A pack as its objects are read from it.
pub(super) struct PackSource<'p> {
    /// The open pack.
    pub file: &'p File,
    /// Bytes of the file.
    pub length: u64,
    /// The place where an object of the same pack begins.
    pub find: &'p dyn Fn(&ObjectId) -> Option<u64>,
    /// Reads a base from elsewhere.
    pub other: &'p Elsewhere<'p>,
}

/// Reads up to `bytes.len()` bytes, fewer only at the end.
fn read_some(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// A range of a file as a stream.
pub(super) struct Stream<'f> {
    file: &'f File,
    /// The offset in the file at which the next piece begins.
    at: u64,
    /// The offset at which the range ends.
    end: u64,
    /// Bytes that were read ahead.
    piece: Vec<u8>,
    /// The number of these that were given away.
    used: usize,
}

impl<'f> Stream<'f> {
    /// From `at` up to `end`.
    pub(super) fn new(file: &'f File, at: u64, end: u64) -> Stream<'f> {
        Stream { file, at, end, piece: Vec::new(), used: 0 }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.used == self.piece.len() {
            let length = (self.end.saturating_sub(self.at)).min(PIECE as u64) as usize;
            self.piece.resize(length, 0);
            let read = read_some(self.file, &mut self.piece, self.at)?;
            self.piece.truncate(read);
            (self.used, self.at) = (0, self.at + read as u64);
        }
        let n = into.len().min(self.piece.len() - self.used);
        into[..n].copy_from_slice(&self.piece[self.used..self.used + n]);
        self.used += n;
        Ok(n)
    }
}

impl PackSource<'_> {
    /// Returns the head of the entry at `at`.
    pub(super) fn head(&self, at: u64) -> Result<Head, Fault> {
        let mut bytes = [0; HEADER];
        let read = read_some(self.file, &mut bytes, at)?;
        let bytes = &bytes[..read];
        let (number, size, mut length) = header::type_and_size(bytes).ok_or(Fault::Damaged("its header is damaged"))?;
        let form = match number {
            1 => Form::Whole(ObjectKind::Commit),
            2 => Form::Whole(ObjectKind::Tree),
            3 => Form::Whole(ObjectKind::Blob),
            4 => Form::Tag,
            6 => {
                let (back, used) = distance(&bytes[length..]).ok_or(Fault::Damaged("its header is damaged"))?;
                length += used;
                let base = at.checked_sub(back).filter(|base| *base >= 12 && back > 0);
                Form::OnOffset(base.ok_or(Fault::Damaged("its base is outside of the pack"))?)
            }
            7 => {
                let id = bytes.get(length..length + 20).and_then(|id| id.try_into().ok());
                length += 20;
                Form::OnObject(ObjectId::from_bytes(id.ok_or(Fault::Damaged("its file is truncated"))?))
            }
            _ => return Err(Fault::Damaged("git has no objects of its kind")),
        };
        let begin = at + length as u64;
        if size / deflate::RATIO as u64 > self.length.saturating_sub(begin) {
            return Err(Fault::Damaged("the pack is too short for it"));
        }
        Ok(Head { form, size, begin })
    }

    /// Returns the bytes that an entry holds compressed.
    fn inflated(&self, head: &Head) -> Result<Vec<u8>, Fault> {
        if head.size <= AT_ONCE {
            let mut bytes =
                vec![0; deflate::most_compressed(head.size).min(self.length.saturating_sub(head.begin)) as usize];
            let read = read_some(self.file, &mut bytes, head.begin)?;
            let content = deflate::inflate(&bytes[..read], head.size as usize);
            return content.ok_or(Fault::Damaged("its compressed bytes are damaged"));
        }
        let mut content = Vec::new();
        self.stream(head).take(head.size + 1).read_to_end(&mut content)?;
        if content.len() as u64 == head.size { Ok(content) } else { Err(Fault::Damaged("its size is wrong")) }
    }

    /// Streams the inflated content of an entry.
    pub(super) fn stream(&self, head: &Head) -> impl Read + use<'_> {
        ZlibDecoder::new(Stream::new(self.file, head.begin, self.length))
    }

    /// Reads the object at `at`, whatever memory it takes.
    pub(super) fn read(&self, at: u64) -> Result<(Option<ObjectKind>, Vec<u8>), Fault> {
        self.read_within(at, &ObjectId::EMPTY_TREE, u64::MAX)
    }

    /// Reads the object `id` at `at` if it has at most so many bytes; its kind is `None` if it is a tag. Nothing is unpacked before
    /// its size is known to fit, no delta and no base either.
    pub(super) fn read_within(
        &self,
        at: u64,
        id: &ObjectId,
        most: u64,
    ) -> Result<(Option<ObjectKind>, Vec<u8>), Fault> {
        let fits = |size: u64, most: u64| match size <= most {
            true => Ok(()),
            false => Err(Fault::Refused(object_too_large(id, size, most))),
        };
        let first = self.head(at)?;
        fits(self.size_of(&first)?, most)?;
        let mut deltas = Vec::new();
        let mut next = at;
        let (kind, mut content) = loop {
            let head = self.head(next)?;
            if deltas.len() >= DEEPEST {
                return Err(Fault::Damaged("its chain of deltas is circular"));
            }
            fits(head.size, most_of_base(most))?;
            match head.form {
                Form::Whole(kind) => break (Some(kind), self.inflated(&head)?),
                Form::Tag => break (None, self.inflated(&head)?),
                Form::OnOffset(base) => next = base,
                Form::OnObject(id) => match (self.find)(&id) {
                    Some(base) => next = base,
                    None => {
                        let (kind, base) = (self.other)(&id)?;
                        deltas.push(head);
                        break (Some(kind), base);
                    }
                },
            }
            deltas.push(head);
        };
        while let Some(head) = deltas.pop() {
            let delta = self.inflated(&head)?;
            fits(made_by(&delta).unwrap_or(0), most_of_base(most))?;
            content = apply(&content, &delta)?.ok_or(Fault::Damaged("its delta is damaged"))?;
        }
        Ok((kind, content))
    }

    /// Kind and size of the object at `at`, without reading it.
    pub(super) fn describe(&self, at: u64) -> Result<(Option<ObjectKind>, u64), Fault> {
        let first = self.head(at)?;
        let (mut head, mut steps) = (first, 0);
        let kind = loop {
            steps += 1;
            if steps > DEEPEST {
                return Err(Fault::Damaged("its chain of deltas is circular"));
            }
            match head.form {
                Form::Whole(kind) => break Some(kind),
                Form::Tag => break None,
                Form::OnOffset(base) => head = self.head(base)?,
                Form::OnObject(id) => match (self.find)(&id) {
                    Some(base) => head = self.head(base)?,
                    None => break Some((self.other)(&id)?.0),
                },
            }
        };
        Ok((kind, self.size_of(&first)?))
    }

    /// Returns the size of an object that begins with this head: a delta says what it makes.
    fn size_of(&self, head: &Head) -> Result<u64, Fault> {
        if matches!(head.form, Form::Whole(_) | Form::Tag) {
            return Ok(head.size);
        }
        // Most deltas are small, and a stream costs more than all of such a one.
        if head.size <= SMALL_DELTA {
            return made_by(&self.inflated(head)?).ok_or(Fault::Damaged("its delta is damaged"));
        }
        let mut begin = Vec::new();
        self.stream(head).take(20).read_to_end(&mut begin)?;
        made_by(&begin).ok_or(Fault::Damaged("its delta is damaged"))
    }
}

/// Returns the size that a delta says it makes.
fn made_by(delta: &[u8]) -> Option<u64> {
    let (_, used) = varint(delta)?;
    Some(varint(&delta[used..])?.0)
}

/// Returns how far before a delta its base begins: seven bits a byte, the most significant first, each further byte one
/// more.
fn distance(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut last = *bytes.first()?;
    let (mut back, mut at) = (u64::from(last & 0x7f), 1);
    while last & 0x80 != 0 {
        last = *bytes.get(at)?;
        back = back.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(last & 0x7f))?;
        at += 1;
    }
    Some((back, at))
}

/// Returns a size as deltas begin with: seven bits a byte, the least significant first.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let (mut value, mut shift, mut at) = (0_u64, 0, 0);
    loop {
        let byte = *bytes.get(at)?;
        let part = u64::from(byte & 0x7f);
        if shift > 60 || part << shift >> shift != part {
            return None;
        }
        value |= part << shift;
        (shift, at) = (shift + 7, at + 1);
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
    }
}

/// Applies a delta to its base; `None` if it belongs to another base or is damaged.
pub(super) fn apply(base: &[u8], delta: &[u8]) -> std::io::Result<Option<Vec<u8>>> {
    let Some((size, instructions)) = sizes(base, delta) else { return Ok(None) };
    let mut out = Vec::new();
    // If the system refuses the memory, this is an error and not the end of the process.
    out.try_reserve_exact(size).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    Ok(follow(base, instructions, size, out))
}

/// Returns the size that a delta makes, and its instructions; `None` when it is a delta on something else.
fn sizes<'d>(base: &[u8], delta: &'d [u8]) -> Option<(usize, &'d [u8])> {
    let (from, used) = varint(delta)?;
    let (size, more) = varint(&delta[used..])?;
    let instructions = &delta[used + more..];
    // An instruction copies the whole base at most: a larger size is false, and no memory is allocated for it.
    let most = base.len().saturating_add(1).saturating_mul(instructions.len());
    let fits = |size: &usize| from == base.len() as u64 && *size <= most;
    Some((usize::try_from(size).ok().filter(fits)?, instructions))
}

/// Follows the instructions of a delta.
fn follow(base: &[u8], instructions: &[u8], size: usize, mut out: Vec<u8>) -> Option<Vec<u8>> {
    let mut rest = instructions;
    while let Some((&code, after)) = rest.split_first() {
        rest = after;
        if code & 0x80 == 0 {
            let (added, after) = rest.split_at_checked(usize::from(code)).filter(|_| code != 0)?;
            out.extend_from_slice(added);
            rest = after;
        } else {
            let mut number = |bits: std::ops::Range<u32>| {
                let mut number = 0;
                for bit in bits.clone() {
                    if code & 1 << bit != 0 {
                        let (&byte, after) = rest.split_first()?;
                        number |= usize::from(byte) << (8 * (bit - bits.start));
                        rest = after;
                    }
                }
                Some(number)
            };
            let at = number(0..4)?;
            let length = Some(number(4..7)?).filter(|length| *length != 0).unwrap_or(0x10000);
            out.extend_from_slice(base.get(at..at.checked_add(length)?)?);
        }
        if out.len() > size {
            return None;
        }
    }
    (out.len() == size).then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn applied(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
        apply(base, delta).unwrap()
    }

    #[test]
    fn a_delta_copies_and_adds() {
        // Sizes 10 and 8: copies 4 bytes from 2, adds "xy", copies 2 bytes from 0.
        let delta = [10, 8, 0x91, 2, 4, 2, b'x', b'y', 0x90, 2];
        assert_eq!(applied(b"0123456789", &delta).as_deref(), Some(&b"2345xy01"[..]));
        assert_eq!(applied(b"012345678", &delta), None, "another base");
        assert_eq!(applied(b"0123456789", &delta[..9]), None, "cut");
        assert_eq!(applied(b"0123456789", &[10, 9, 0x91, 2, 4, 2, b'x', b'y', 0x90, 2]), None, "another size");
        assert_eq!(applied(b"0123456789", &[10, 1, 0]), None, "a code that git reserves");
        assert_eq!(distance(&[0x80, 0x00]), Some((128, 2)));
        assert_eq!(varint(&[0xac, 0x02]), Some((300, 2)));
    }

    #[test]
    fn what_a_fast_compressor_makes_longer_is_read() {
        use std::io::Write;
        let (mut state, file) = (1_u32, tempfile::tempfile().unwrap());
        for size in [1, 100, 5000, AT_ONCE] {
            let noise = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8 | 0x90
            };
            let content: Vec<u8> = (0..size).map(noise).collect();
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(1));
            encoder.write_all(&content).unwrap();
            let bytes = encoder.finish().unwrap();
            file.set_len(0).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            let (find, other) = (|_: &ObjectId| None, |_: &ObjectId| Err(Fault::Damaged("there is none")));
            let source = PackSource { file: &file, length: bytes.len() as u64, find: &find, other: &other };
            let head = Head { form: Form::Whole(ObjectKind::Blob), size, begin: 0 };
            assert!(source.inflated(&head).is_ok_and(|found| found == content), "{size} bytes, {}", bytes.len());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_deltas_never_panic(base in proptest::collection::vec(any::<u8>(), 0..50),
                                        delta in proptest::collection::vec(any::<u8>(), 0..60)) {
            applied(&base, &delta);
            header::type_and_size(&delta);
            distance(&delta);
        }
    }
}
