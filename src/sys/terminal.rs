//! The terminal of a person.

#![expect(unsafe_code, reason = "the system's own call")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::termios::tcgetwinsize;

/// Returns the columns of a terminal; `None` where they are not known.
pub fn columns(terminal: &impl AsFd) -> Option<usize> {
    let size = tcgetwinsize(terminal).ok()?; // no terminal
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Returns the rows of a terminal; `None` where they are not known.
pub fn rows(terminal: &impl AsFd) -> Option<usize> {
    let size = tcgetwinsize(terminal).ok()?; // no terminal
    Some(usize::from(size.ws_row)).filter(|rows| *rows > 0)
}

/// Forgets the keys that were pressed and are not read yet.
///
/// # Errors
/// The system's error, as for a file that is no terminal.
pub fn forget_input(terminal: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as it is borrowed, and the call touches no memory of ours.
    let done = unsafe { libc::tcflush(terminal.as_raw_fd(), libc::TCIFLUSH) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
