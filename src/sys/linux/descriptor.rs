//! The kernel's own links to open descriptors.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

/// Returns a path that leads to what a descriptor has open, whatever its name is by now; it holds while the descriptor
/// is open.
pub fn path(fd: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Lists the numbers of the descriptors that this process has open; none where the system does not tell.
pub fn open() -> Vec<i32> {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
