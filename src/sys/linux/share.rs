//! Locks on open files that are shared, and that anybody can ask about without taking one.
//!
//! They belong to the open file and not to the process (`F_OFD_SETLK`, `fcntl(2)`), so the kernel takes each back with
//! the last descriptor of that open file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Shares the lock of a file, for as long as the file is open. Never waits.
///
/// # Errors
/// I/O errors, also where the file system knows no such locks.
pub fn share(file: &File) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, &mut whole(libc::F_RDLCK))
}

/// Returns true if some open file shares the lock. Asking takes nothing, so nobody who asks is in another's way.
///
/// # Errors
/// As [`share`].
pub fn is_shared(file: &File) -> io::Result<bool> {
    let mut found = whole(libc::F_WRLCK);
    control(file, libc::F_OFD_GETLK, &mut found)?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}

/// Describes a lock of the whole file.
fn whole(kind: i32) -> libc::flock {
    let (l_type, l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    libc::flock { l_type, l_whence, l_start: 0, l_len: 0, l_pid: 0 }
}

#[expect(unsafe_code, reason = "no safe library knows locks of open files")]
fn control(file: &File, command: i32, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open as long as `file` is borrowed, and the kernel reads and writes only the structure.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_lock_is_shared_until_the_last_file_is_closed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(file.path()).unwrap();
        let asking = open();
        assert!(!is_shared(&asking).unwrap());
        let (one, other) = (open(), open());
        share(&one).unwrap();
        share(&other).unwrap();
        drop(one);
        assert!(is_shared(&asking).unwrap());
        drop(other);
        // A process that another test is starting holds copies until its `exec`.
        let until = Instant::now() + Duration::from_mins(1);
        while is_shared(&asking).unwrap() {
            assert!(Instant::now() < until, "still shared");
            std::thread::yield_now();
        }
    }
}
