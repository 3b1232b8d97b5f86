//! Starts writing to the disk early, before a sync has to wait for it.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Asks the kernel to begin writing a range. It does not wait, and a refusal loses nothing.
pub fn start(file: &File, from: u64, length: u64) {
    #[expect(unsafe_code, reason = "rustix has no such call")]
    // SAFETY: the descriptor is open for the length of the call; no memory is handed over.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), from.cast_signed(), length.cast_signed(), libc::SYNC_FILE_RANGE_WRITE)
    };
}
