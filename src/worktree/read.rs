//! Reading one file so that its content belongs to its stamp.

use std::fs::File;
use std::io::Read;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::beneath::Root;
use super::probe::stamp_of;
use crate::error::{Code, Error, Result};
use crate::model::coverage::SkipReason;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::model::stamp::Stamp;
use crate::sys::clock::file_clock;

/// Files above this size are streamed instead of being held in memory.
pub(super) const WHOLE: u64 = 16 << 20;

/// The number of times that a file is read while it changes.
const ATTEMPTS: usize = 3;

/// The whole content of a file.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) mark: ReadMark,
}

/// The state of a file, as reading found it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadMark {
    /// The stamp of the content that was read.
    pub(super) stamp: Stamp,
    /// The degree to which that stamp can be trusted.
    pub(super) held: HeldStill,
}

/// The degree to which a file held still while it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldStill {
    /// It did, and an equal stamp will prove equal content.
    Proven,
    /// It did, so shortly after a change that its stamp proves nothing.
    Fresh,
    /// It never did.
    Never,
}

impl ReadMark {
    /// Returns the mark of a file that held still and was read no earlier than `read_at`.
    pub(super) fn still(stamp: Stamp, read_at: i64) -> ReadMark {
        let proven = stamp.proves_content_read_at(read_at);
        ReadMark { stamp, held: if proven { HeldStill::Proven } else { HeldStill::Fresh } }
    }
}

/// The reason why there is no content.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The file is left out of the capture, for this reason.
    Skip(SkipReason),
    /// It is not there any more.
    Gone,
    /// The sink failed, or this process has run out of a resource: the capture ends.
    Fatal(Error),
}

/// A file whose content is in the sink.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// The blob of its content.
    pub(super) id: ObjectId,
    /// Bytes of its content.
    pub(super) bytes: u64,
    pub(super) mark: ReadMark,
}

/// Reads a small file whole. Above `cap` bytes it is refused as too large.
pub(super) fn whole(root: &Root, path: &RelPath, cap: u64) -> Result<Content, Refusal> {
    attempts(root, path, cap, &mut |opened, last| opened.whole(last))
}

/// Sizes in bytes that decide how a file is read.
#[derive(Clone, Copy)]
pub(super) struct SizeLimits {
    /// A larger file is refused as too large.
    pub(super) cap: u64,
    /// A larger file is streamed.
    pub(super) whole: u64,
}

/// Reads a file and hands its content to the sink.
pub(super) fn store(root: &Root, path: &RelPath, limits: SizeLimits, sink: &dyn ObjectSink) -> Result<Stored, Refusal> {
    // As much as was there when it turned out shorter than it had said.
    let mut short = None;
    let SizeLimits { cap, whole } = limits;
    let stored = attempts(root, path, cap, &mut |opened, last| {
        if opened.before.size > whole {
            return opened.stream(sink, last, u64::MAX, &mut short);
        }
        let Some(content) = opened.whole(last)? else {
            return Ok(None);
        };
        store_bytes(&content.bytes, content.mark, sink).map(Some)
    });
    match (stored, short) {
        (Err(Refusal::Skip(SkipReason::Vanished)), Some(most)) => {
            // It shrank under the last attempt too: so much of it was there a moment ago.
            let streamed = Opened::open(root, path, cap)?.stream(sink, true, most, &mut short)?;
            streamed.ok_or(Refusal::Skip(SkipReason::Vanished))
        }
        (stored, _) => stored,
    }
}

/// Hands content that was read already to the sink.
pub(super) fn store_bytes(bytes: &[u8], mark: ReadMark, sink: &dyn ObjectSink) -> Result<Stored, Refusal> {
    let id = ObjectId::of(ObjectKind::Blob, bytes).map_err(|_| Refusal::Skip(SkipReason::Collision))?;
    let present = sink.contains(&id).map_err(Refusal::Fatal)?;
    if !present {
        sink.write(ObjectKind::Blob, id, bytes).map_err(Refusal::Fatal)?;
    }
    Ok(Stored { id, bytes: bytes.len() as u64, mark })
}

/// Opens and reads until one attempt holds still; the last one counts whatever happens.
fn attempts<T>(
    root: &Root,
    path: &RelPath,
    cap: u64,
    attempt: &mut dyn FnMut(Opened, bool) -> Result<Option<T>, Refusal>,
) -> Result<T, Refusal> {
    for n in 1..=ATTEMPTS {
        let opened = Opened::open(root, path, cap)?;
        if let Some(done) = attempt(opened, n == ATTEMPTS)? {
            return Ok(done);
        }
    }
    Err(Refusal::Skip(SkipReason::Vanished))
}

struct Opened {
    file: File,
    /// The stamp before anything was read.
    before: Stamp,
    /// The file clock before the file was opened.
    read_at: i64,
}

impl Opened {
    fn open(root: &Root, path: &RelPath, cap: u64) -> Result<Opened, Refusal> {
        let read_at = file_clock();
        let file = root.open_file(path).map_err(refusal)?;
        let stat = fstat(&file).map_err(refusal)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory | FileType::Symlink => return Err(Refusal::Skip(SkipReason::Vanished)),
            _ => return Err(Refusal::Skip(SkipReason::Special)),
        }
        let before = stamp_of(&stat);
        if before.size > cap {
            return Err(Refusal::Skip(SkipReason::TooLarge(before.size)));
        }
        Ok(Opened { file: file.into(), before, read_at })
    }

    /// Returns the content, cut to the length that `fstat` told; `None` when it moved and there is another attempt.
    fn whole(mut self, last: bool) -> Result<Option<Content>, Refusal> {
        let size = self.before.size;
        let mut bytes = Vec::with_capacity(size as usize + 1);
        let read = (&mut self.file).take(size + 1).read_to_end(&mut bytes);
        read.map_err(|error| refusal_of(&error))?;
        let still = bytes.len() as u64 == size && self.holds_still()?;
        if !still && !last {
            return Ok(None);
        }
        bytes.truncate(size as usize);
        Ok(Some(Content { bytes, mark: self.mark(still) }))
    }

    /// Streams a large file, at most `most` bytes of it; `None` when it moved and there is another attempt. If the file
    /// turns out shorter than its size, its content is in `short`.
    fn stream(
        mut self,
        sink: &dyn ObjectSink,
        last: bool,
        most: u64,
        short: &mut Option<u64>,
    ) -> Result<Option<Stored>, Refusal> {
        let size = self.before.size.min(most);
        let mut source = StableSource { file: (&mut self.file).take(size), left: size, failed: None };
        let written = sink.write_stream(size, &mut source);
        let (left, failed) = (source.left, source.failed);
        if let Some(error) = failed {
            return Err(refusal_of(&error));
        }
        let still = left == 0 && size == self.before.size && self.holds_still()?;
        match written {
            Ok(id) if still || last => Ok(Some(Stored { id, bytes: size, mark: self.mark(still) })),
            Ok(_) => Ok(None),
            // Shorter than it said, and the length had to be told first: only another attempt can help.
            Err(error) if error.code() == Code::Conflict && left > 0 => {
                *short = Some(size - left);
                Ok(None)
            }
            Err(error) if error.code() == Code::Conflict => Err(Refusal::Skip(SkipReason::Collision)),
            Err(error) => Err(Refusal::Fatal(error)),
        }
    }

    fn holds_still(&self) -> Result<bool, Refusal> {
        let after = fstat(&self.file).map_err(refusal)?;
        Ok(stamp_of(&after) == self.before)
    }

    fn mark(&self, still: bool) -> ReadMark {
        if still {
            ReadMark::still(self.before, self.read_at)
        } else {
            ReadMark { stamp: self.before, held: HeldStill::Never }
        }
    }
}

/// A large file on its way to the sink; tells its own failures from the sink's.
struct StableSource<R> {
    file: R,
    /// Bytes that are still to come, by the size that the file had when it was opened.
    left: u64,
    /// The error of the file, if reading it ended the stream.
    failed: Option<std::io::Error>,
}

impl<R: Read> Read for StableSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.file.read(buffer) {
            Ok(n) => {
                self.left = self.left.saturating_sub(n as u64);
                Ok(n)
            }
            Err(error) => {
                let kind = error.kind();
                self.failed = Some(error);
                Err(kind.into())
            }
        }
    }
}

/// Returns what a failed system call on the user's file means.
pub(super) fn refusal(errno: Errno) -> Refusal {
    match errno {
        Errno::NOENT => Refusal::Gone,
        // A link or something else took its place, or that of a parent, since it was listed.
        Errno::LOOP | Errno::NOTDIR => Refusal::Skip(SkipReason::Vanished),
        // Sockets, and devices without a driver.
        Errno::NXIO | Errno::NODEV => Refusal::Skip(SkipReason::Special),
        errno if is_ours(errno) => Refusal::Fatal(
            Error::new(Code::Internal, format!("reading the workspace failed: {errno}"))
                .hint("raise the open-file limit (ulimit -n), or free some memory"),
        ),
        _ => Refusal::Skip(SkipReason::Unreadable),
    }
}

/// Tells whether a failure says nothing of the file: this process or machine has run out of something.
pub(super) fn is_ours(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

fn refusal_of(error: &std::io::Error) -> Refusal {
    Errno::from_io_error(error).map_or(Refusal::Skip(SkipReason::Unreadable), refusal)
}
