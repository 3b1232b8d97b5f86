//! Read leases, which show that some process has a file open for writing.

use std::os::fd::{AsRawFd, BorrowedFd};

/// Tells whether some process may be writing to a file, through a descriptor or a mapping. Only the file's owner gets a
/// sure answer; for others, and on file systems without leases, the answer is yes.
///
/// The kernel grants a read lease only if no process has the file open for writing. It is given back at once. A writer
/// that comes in between waits for these microseconds. The kernel then sends SIGIO, which has to be caught: its default
/// would end the process.
pub fn is_written(file: BorrowedFd<'_>) -> bool {
    let granted = lease(file, libc::F_RDLCK);
    if granted {
        // A lease that stays ends with its descriptor.
        lease(file, libc::F_UNLCK);
    }
    !granted
}

#[expect(unsafe_code, reason = "no safe library knows leases")]
fn lease(file: BorrowedFd<'_>, kind: i32) -> bool {
    // SAFETY: a plain system call on a descriptor that is borrowed, so open, and integers by value.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) == 0 }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_that_is_open_for_writing_is_written() {
        signal_hook::flag::register(signal_hook::consts::SIGIO, std::sync::Arc::default()).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("f");
        std::fs::write(&path, "x").unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        let alone = is_written(reader.as_fd());
        let writer = std::fs::File::options().append(true).open(&path).unwrap();
        assert!(is_written(reader.as_fd()));
        drop(writer);
        assert_eq!(is_written(reader.as_fd()), alone, "a file system either knows leases or not");
    }
}
