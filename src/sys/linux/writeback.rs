//! Starts writing to the disk early, before a sync has to wait for it.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Returns the bytes in memory of all file systems that are not on the disk yet; `None` where the kernel does not report them.
pub fn waiting_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?; // not mounted
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok() // another form
    };
    Some((of("Dirty:")? + of("Writeback:")?) << 10)
}

/// Asks the kernel to begin writing a range. It does not wait, and a refusal loses nothing.
pub fn start(file: &File, from: u64, length: u64) {
    #[expect(unsafe_code, reason = "rustix has no such call")]
    // SAFETY: the descriptor is open for the length of the call; no memory is handed over.
    unsafe {
        libc::sync_file_range(file.as_raw_fd(), from.cast_signed(), length.cast_signed(), libc::SYNC_FILE_RANGE_WRITE)
    };
}
