//! Pipes and sockets whose other end may be slow: writing without waiting for the reader, reading without waiting for
//! the end, connecting without waiting for a process that is stopped.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};

use super::linux::descriptor;

/// The most bytes that a pipe takes as a whole or not at all.
const WHOLE: usize = 4096;

/// A private writing end of a pipe, which can be set not to wait.
#[derive(Debug)]
pub struct Ready(File);

impl Ready {
    /// Opens a second writing end of the pipe behind `end`; `None` if it is no pipe, or if the system refuses.
    pub fn of(end: impl AsFd) -> Option<Ready> {
        let end = end.as_fd();
        // Opened anew: `O_NONBLOCK` on the inherited end would hold for every process that shares it.
        let is_pipe = fstat(end).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Fifo);
        let path = descriptor::path(end);
        // A pipe that cannot be opened again is written to through `end` alone.
        let open = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path).ok();
        is_pipe.then(open)?.map(Ready)
    }

    /// Writes a short piece if there is room for all of it now; else writes nothing.
    pub fn write(&self, piece: &[u8]) -> bool {
        // On an error the thread that waits meets it again, and reports it.
        piece.len() <= WHOLE && (&self.0).write(piece).is_ok_and(|written| written == piece.len())
    }
}

/// Connects to the socket at `path`, at most for `wait`. A process that accepts nobody lets its queue fill up, and a
/// client of a full queue would wait without an end.
///
/// # Errors
/// Returns the errors of the system; `WouldBlock` at the end of the wait.
pub fn connect(path: &Path, wait: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The time-out of sending is that of connecting too.
    set_socket_timeout(&socket, Timeout::Send, Some(wait))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// Bounds a writer's pause before its bytes are examined.
const PAUSE: Duration = Duration::from_millis(50);

/// Reads to the end of the input, to `limit` bytes or to `deadline`, whichever comes first. A writer that pauses is not
/// waited for any longer if `is_whole` is true for its bytes.
///
/// # Errors
/// Returns the errors of reading.
pub fn read_until(
    mut input: impl Read + AsFd,
    limit: usize,
    deadline: Instant,
    is_whole: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    let mut looked_at = 0;
    while bytes.len() < limit {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        let is_new = bytes.len() > looked_at;
        if !is_ready(&input, if is_new { left.min(PAUSE) } else { left })? {
            // Not every client closes the pipe after its payload.
            if is_new && is_whole(&bytes) {
                break;
            }
            looked_at = bytes.len();
            continue;
        }
        let room = buffer.len().min(limit - bytes.len());
        match input.read(&mut buffer[..room]) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Waits until a read gives bytes, the end or an error; `false` if none comes in time.
///
/// # Errors
/// Returns the errors of the system.
pub fn is_ready(input: &impl AsFd, wait: Duration) -> io::Result<bool> {
    let wait = Timespec::try_from(wait).map_err(|_| ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&wait)) {
        Err(Errno::INTR) => Ok(false),
        found => Ok(found? > 0),
    }
}

/// Waits until a read of one of two gives bytes, the end or an error; returns which.
///
/// # Errors
/// Returns the errors of the system.
pub fn either_ready(one: &impl AsFd, other: &impl AsFd) -> io::Result<(bool, bool)> {
    let mut polled = [PollFd::new(one, PollFlags::IN), PollFd::new(other, PollFlags::IN)];
    match poll(&mut polled, None) {
        Err(Errno::INTR) => Ok((false, false)),
        Err(error) => Err(error.into()),
        Ok(_) => Ok((!polled[0].revents().is_empty(), !polled[1].revents().is_empty())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::pipe;

    use super::*;

    #[test]
    fn a_writer_that_does_not_close_is_not_waited_for() {
        let soon = || Instant::now() + Duration::from_millis(300);
        let far = Instant::now() + Duration::from_mins(10);
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(b"{}").unwrap();
        assert_eq!(read_until(&reader, 100, far, |bytes| bytes == b"{}").unwrap(), b"{}");
        writer.write_all(b"{").unwrap();
        assert_eq!(read_until(&reader, 100, soon(), |_| false).unwrap(), b"{");
        writer.write_all(&[b'x'; 100]).unwrap();
        assert_eq!(read_until(&reader, 10, far, |_| false).unwrap().len(), 10);
        drop(writer);
        assert_eq!(read_until(&reader, 1000, far, |_| false).unwrap().len(), 90);
    }

    #[test]
    fn it_writes_whole_pieces_and_never_waits() {
        let (mut reader, writer) = pipe().unwrap();
        let ready = Ready::of(&writer).unwrap();
        assert!(!ready.write(&[b'x'; WHOLE + 1]));
        let mut pieces = 0;
        while ready.write(&[b'x'; 1000]) {
            pieces += 1;
        }
        assert!(pieces > 10);
        drop((ready, writer));
        let mut all = Vec::new();
        reader.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), pieces * 1000);
        let file = tempfile::tempfile().unwrap();
        assert!(Ready::of(&file).is_none());
    }

    #[test]
    fn a_process_that_accepts_nobody_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let wait = Duration::from_millis(20);
        // They stay open, and so in the queue.
        let mut waiting = Vec::new();
        let refused = loop {
            match connect(&path, wait) {
                Ok(stream) => waiting.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), ErrorKind::WouldBlock, "after {}", waiting.len());
        listener.accept().unwrap();
        connect(&path, wait).unwrap();
        drop(listener);
        assert_eq!(connect(&path, wait).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
