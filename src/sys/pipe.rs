//! Writing to a pipe without ever waiting for who reads it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{FileType, fstat};

/// What a pipe takes as a whole or not at all.
const WHOLE: usize = 4096;

/// A pipe's end for writing that nobody else shares, so that it can be told not to wait.
#[derive(Debug)]
pub struct Ready(File);

impl Ready {
    /// A second end of the pipe that `end` leads to; `None` for what is no pipe, or where the system gives none.
    pub fn of(end: impl AsFd) -> Option<Ready> {
        let end = end.as_fd();
        let is_pipe = fstat(end).is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Fifo);
        let path = format!("/proc/self/fd/{}", end.as_raw_fd());
        let open = || OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path).ok();
        is_pipe.then(open)?.map(Ready)
    }

    /// Writes a short piece whole, if there is room for it now; else nothing of it.
    pub fn write(&self, piece: &[u8]) -> bool {
        // Whatever is wrong is met again, and told, by who waits.
        piece.len() <= WHOLE && (&self.0).write(piece).is_ok_and(|written| written == piece.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};

    use super::*;

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
}
