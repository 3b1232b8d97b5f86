//! Processes: the identity of this program, its terminal and limits, and the end of another process.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::{Code, Error, Result};

pub use super::linux::process::{close_inherited, deleted_working_dir, end_by, ignore, ignored_signals, peer};

/// Returns a text that differs for a rebuilt or replaced program: version, and inode, size and time of the running
/// file.
pub fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    // A deleted program is not the file that is there now.
    match std::env::current_exe().and_then(std::fs::metadata) {
        Ok(facts) => format!("{version}-{:x}-{:x}-{:x}", facts.ino(), facts.size(), facts.mtime_nsec() ^ facts.mtime()),
        Err(_) => format!("{version}-unknown"),
    }
}

/// Returns the path of this program.
///
/// # Errors
/// `internal` where the system does not tell it.
pub fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| {
        Error::new(Code::Internal, format!("cannot determine the path of piton's own program: {error}"))
            .hint("call it by its full path")
    })
}

/// Returns when the file of this program was last written, in nanoseconds since the epoch; 0 when it is gone.
pub fn built_at() -> i64 {
    let facts = std::env::current_exe().and_then(std::fs::metadata);
    facts.map_or(0, |facts| facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec()))
}

/// Returns whether this process may run a file.
pub fn may_run(path: &Path) -> bool {
    access(path, Access::EXEC_OK).is_ok()
}

/// Requires that this process may write to a file or directory, as far as the kernel tells without a try.
///
/// # Errors
/// Returns the error of the system.
pub fn require_writable(path: &Path) -> std::io::Result<()> {
    Ok(access(path, Access::WRITE_OK)?)
}

/// Returns how many descriptors this process may have.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The descriptors that a long-lived process asks for: it keeps new files ready, and removed ones open until they are
/// freed.
const DESCRIPTORS: u64 = 16 << 10;

/// Takes as many descriptors as the system grants anyway, up to a bound; the usual 1,024 are for programs that call `select`.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(DESCRIPTORS);
    if limit.current.is_some_and(|current| current < wanted) {
        // Where the system refuses, the process keeps its old limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum });
    }
}

/// Returns the user whose rights this process has.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Leaves the terminal and the process group of the parent, so that neither ends this process.
pub fn leave_session() {
    // It fails for the leader of a group, which needs no change.
    let _ = rustix::process::setsid();
}

/// Asks a process to end (SIGTERM).
///
/// # Errors
/// `internal` when there is none of this number, or it belongs to another user.
pub fn ask_to_end(pid: i32) -> Result<()> {
    let pid = rustix::process::Pid::from_raw(pid).filter(|pid| pid.as_raw_nonzero().get() > 1);
    let pid = pid.ok_or_else(|| Error::new(Code::BadRequest, "not the number of a process"))?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        .map_err(|errno| Error::io(errno.into(), "ending the process", &Path::new("/proc").join(pid.to_string())))
}

/// Returns true if a process of that id exists, of whichever user.
pub fn exists(id: u32) -> bool {
    let pid = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
