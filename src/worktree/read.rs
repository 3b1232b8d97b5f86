//! Reading files: twice if they change meanwhile, on several threads, in bounded memory.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;

use super::capture::Flow;
use super::walk::Found;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::coverage::SkipReason;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::sink::ObjectSink;
use crate::model::stamp::Known;
use crate::sys::clock::file_clock;
use crate::sys::dir::{Dir, FileKind, Status, status_of};

/// Files above this many bytes are streamed instead of held in memory.
const STREAM_ABOVE: u64 = 16 << 20;
/// How often a file that changes while it is read is read again.
const TRIES: u32 = 3;
/// Fewer files than this are read without threads.
const FEW: usize = 8;
/// How often the calling thread looks up while others read.
const TICK: Duration = Duration::from_millis(2);

/// What reading a file gave.
#[derive(Clone, Debug)]
pub enum Read {
    Content { known: Known, perm: u16, unstable: bool },
    Skip(SkipReason),
}

/// Reads all files into the sink; results stand in the order of `jobs`.
pub fn read_all(
    root: &Dir,
    jobs: &[Found],
    file_cap: u64,
    (sink, control): (&dyn ObjectSink, &dyn Fn() -> Flow),
) -> Result<Vec<Read>> {
    if jobs.len() < FEW {
        return jobs.iter().map(|job| checked(control).and_then(|()| read_one(root, job, file_cap, sink))).collect();
    }
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(4));
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel::<(usize, Result<Read>)>();
    let mut results: Vec<Option<Read>> = vec![None; jobs.len()];
    let outcome = std::thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, stop) = (&next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    // The receiver is gone only when the whole capture was given up.
                    let _ = sender.send((at, read_one(root, job, file_cap, sink)));
                }
            });
        }
        drop(sender);
        let outcome = gather(&receiver, &mut results, control);
        stop.store(true, Ordering::Relaxed);
        outcome
    });
    outcome?;
    let missing = || Error::new(Code::Internal, "a reading thread ended early");
    results.into_iter().map(|result| result.ok_or_else(missing)).collect()
}

fn gather(
    receiver: &mpsc::Receiver<(usize, Result<Read>)>,
    results: &mut [Option<Read>],
    control: &dyn Fn() -> Flow,
) -> Result<()> {
    loop {
        match receiver.recv_timeout(TICK) {
            Ok((at, result)) => results[at] = Some(result?),
            Err(mpsc::RecvTimeoutError::Timeout) => checked(control)?,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Asks whether to go on.
pub fn checked(control: &dyn Fn() -> Flow) -> Result<()> {
    match control() {
        Flow::Continue => Ok(()),
        Flow::Stop => Err(Error::new(Code::ShuttingDown, "the capture was given up")),
    }
}

fn read_one(root: &Dir, job: &Found, file_cap: u64, sink: &dyn ObjectSink) -> Result<Read> {
    if job.is_link() {
        return read_link(root, job, sink);
    }
    for attempt in 1..=TRIES {
        let read_at = file_clock();
        let file = match root.open_file(&job.path) {
            Ok(file) => file,
            Err(errno) => return Ok(Read::Skip(open_failed(errno))),
        };
        let Ok(before) = status_of(&file) else {
            return Ok(Read::Skip(SkipReason::Unreadable));
        };
        if before.kind != FileKind::File {
            return Ok(Read::Skip(SkipReason::Special));
        }
        if !job.uncapped && before.stamp.size > file_cap {
            return Ok(Read::Skip(SkipReason::TooLarge(before.stamp.size)));
        }
        let last = attempt == TRIES;
        match read_content(&file, &before, sink, last)? {
            Attempt::Done { id, after } => {
                let unstable = after.stamp != before.stamp;
                let proven = !unstable && after.stamp.proves_content_read_at(read_at);
                let known = Known { stamp: after.stamp, id, proven };
                return Ok(Read::Content { known, perm: after.perm(), unstable });
            }
            Attempt::Again => {}
            Attempt::Skip(reason) => return Ok(Read::Skip(reason)),
        }
    }
    Ok(Read::Skip(SkipReason::Unreadable))
}

enum Attempt {
    Done {
        id: ObjectId,
        after: Status,
    },
    /// It changed meanwhile.
    Again,
    Skip(SkipReason),
}

/// Reads and stores one version of a file; on the last try a changing file's content is taken as it came.
fn read_content(file: &File, before: &Status, sink: &dyn ObjectSink, last: bool) -> Result<Attempt> {
    if before.stamp.size > STREAM_ABOVE {
        return stream(file, before, sink, last);
    }
    let mut content = Vec::with_capacity(before.stamp.size as usize + 1);
    // One byte more than expected shows growth; a file that grows for ever does not fill the memory.
    if file.take(before.stamp.size + 1).read_to_end(&mut content).is_err() {
        return Ok(Attempt::Skip(SkipReason::Unreadable));
    }
    let Ok(after) = status_of(file) else {
        return Ok(Attempt::Skip(SkipReason::Unreadable));
    };
    let still = after.stamp == before.stamp && content.len() as u64 == before.stamp.size;
    if !still && !last {
        return Ok(Attempt::Again);
    }
    match store(&content, sink)? {
        Some(id) if still => Ok(Attempt::Done { id, after }),
        Some(id) => {
            // Never equal to a later look: the stamp says a size that the content does not have.
            let mut after = after;
            after.stamp.ctime = -1;
            Ok(Attempt::Done { id, after })
        }
        None => Ok(Attempt::Skip(SkipReason::Collision)),
    }
}

fn stream(file: &File, before: &Status, sink: &dyn ObjectSink, last: bool) -> Result<Attempt> {
    let mut source = file;
    match sink.write_stream(before.stamp.size, &mut source) {
        Ok(id) => {
            let Ok(after) = status_of(file) else {
                return Ok(Attempt::Skip(SkipReason::Unreadable));
            };
            if after.stamp != before.stamp && !last {
                return Ok(Attempt::Again);
            }
            Ok(Attempt::Done { id, after })
        }
        // Its size changed, or it carries an attack; either way this reading is void.
        Err(error) if error.code() == Code::Conflict => {
            Ok(if last { Attempt::Skip(SkipReason::Unreadable) } else { Attempt::Again })
        }
        Err(error) => Err(error),
    }
}

/// Stores a blob unless it is there; `None` for content that carries a collision attack.
fn store(content: &[u8], sink: &dyn ObjectSink) -> Result<Option<ObjectId>> {
    let id = match ObjectId::of(ObjectKind::Blob, content) {
        Ok(id) => id,
        Err(error) if error.code() == Code::Conflict => return Ok(None),
        Err(error) => return Err(error),
    };
    if !sink.contains(&id)? {
        sink.write(ObjectKind::Blob, id, content)?;
    }
    Ok(Some(id))
}

fn read_link(root: &Dir, job: &Found, sink: &dyn ObjectSink) -> Result<Read> {
    let parent = job.path.parent().unwrap_or_default();
    let read_at = file_clock();
    let opened = match root.open_dir(&parent) {
        Ok(dir) => dir,
        Err(errno) => return Ok(Read::Skip(open_failed(errno))),
    };
    let (Ok(target), Ok(Some(status))) = (opened.read_link(job.path.name()), opened.status(job.path.name())) else {
        return Ok(Read::Skip(SkipReason::Vanished));
    };
    match store(&target, sink)? {
        Some(id) => {
            let known = Known { stamp: status.stamp, id, proven: status.stamp.proves_content_read_at(read_at) };
            Ok(Read::Content { known, perm: 0o777, unstable: false })
        }
        None => Ok(Read::Skip(SkipReason::Collision)),
    }
}

fn open_failed(errno: Errno) -> SkipReason {
    match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => SkipReason::Vanished,
        _ => SkipReason::Unreadable,
    }
}

/// The content of a small file or link of the work tree as it is now, `None` above `max` bytes; an absent one is empty.
///
/// # Errors
/// I/O errors of opening and reading.
pub fn read_small(root: &Path, path: &RelPath, max: u64) -> Result<Option<Vec<u8>>> {
    let dir = Dir::open_root(root)?;
    let parent = dir.open_dir(&path.parent().unwrap_or_default()).at("opening the directory of", path.under(root))?;
    match parent.status(path.name())? {
        None => Ok(Some(Vec::new())),
        Some(status) if status.kind == FileKind::Link => parent.read_link(path.name()).map(Some),
        Some(status) if status.kind != FileKind::File || status.stamp.size > max => Ok(None),
        Some(_) => {
            let file = dir.open_file(path).at("opening", path.under(root))?;
            let mut content = Vec::new();
            file.take(max).read_to_end(&mut content).at("reading", path.under(root))?;
            Ok(Some(content))
        }
    }
}
