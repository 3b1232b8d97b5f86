//! The process at the other end of a socket, descriptors that were inherited, and signals that were.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use super::descriptor;
use crate::error::{Error, Result};

/// Returns the user at the other end of a socket.
///
/// # Errors
/// Returns the errors of the system.
pub fn peer(stream: &UnixStream) -> Result<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream)
        .map_err(|errno| Error::io(errno.into(), "reading which user is connected", Path::new("socket")))?;
    Ok(peer.uid.as_raw())
}

/// Closes every descriptor but the standard streams. The parent process may have left some open by mistake: a shell
/// would wait for the end of `$(…)`, and a lock would stay taken. Call it before anything is opened.
pub fn close_inherited() {
    #[expect(unsafe_code, reason = "no safe interface closes descriptors that nothing here owns")]
    fn close(first: i32, last: u32) -> bool {
        // SAFETY: nothing was opened yet that could miss its descriptor; the numbers are plain integers.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
    }
    if close(3, u32::MAX) {
        return;
    }
    // A kernel before 5.9: one by one.
    for number in descriptor::open().into_iter().filter(|number| *number > 2) {
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: as above; one that is closed already is refused with an error.
        unsafe {
            libc::close(number);
        }
    }
}

/// Returns the place of the working directory of this process if it was deleted.
pub fn deleted_working_dir() -> Option<PathBuf> {
    let named = std::fs::read_link("/proc/self/cwd").ok()?.into_os_string().into_vec();
    let place = named.strip_suffix(b" (deleted)").filter(|place| place.starts_with(b"/"))?;
    Some(PathBuf::from(OsString::from_vec(place.to_vec())))
}

/// Ends this process by a signal. It comes back where the system does not let it end so.
pub fn end_by(signal: i32) {
    let mut one = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    #[expect(unsafe_code, reason = "safe libraries know the named signals alone")]
    // SAFETY: the set is initialised before it is read, and no handler is given. Each call refuses what it does not know.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::sigemptyset(one.as_mut_ptr());
        libc::sigaddset(one.as_mut_ptr(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, one.as_ptr(), std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Ignores a signal, also in the program that this process becomes.
pub fn ignore(signal: i32) {
    #[expect(unsafe_code, reason = "safe libraries only know handlers")]
    // SAFETY: no handler is given. A signal that does not exist is refused.
    unsafe {
        libc::signal(signal, libc::SIG_IGN);
    }
}

/// Returns the signals that were ignored when this process was started: whoever started it wants them ignored in the child.
pub fn ignored_signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).filter(|signal| mask & (1 << (signal - 1)) != 0).collect()
}
