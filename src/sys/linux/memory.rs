//! The memory of this process, as the kernel and the C library report it.

/// Returns the resident bytes; `None` where the system does not tell.
pub fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"))?;
    Some(kilobytes.trim().parse::<u64>().ok()? << 10)
}

/// Gives freed memory that the allocator keeps back to the system. It is for idle time, because new use has to get it
/// again page by page. Does nothing for other allocators.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "glibc's allocator has no safe interface of its own")]
pub fn give_back() {
    // SAFETY: takes one integer by value and only touches the allocator's own free memory, under its locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Does nothing: this allocator has no such call.
#[cfg(not(target_env = "gnu"))]
pub fn give_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_written_to_counts() {
        let before = resident().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(resident().unwrap() > before + (32 << 20));
        drop(block);
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn what_is_freed_is_given_back() {
        let pieces: Vec<Vec<u8>> = (0..64 << 10).map(|_| vec![1u8; 1 << 10]).collect();
        // Keeps the end of the heap in use, so that only the call below can give the middle back.
        let last = std::hint::black_box(vec![1u8; 1 << 10]);
        drop(pieces);
        let before = resident().unwrap();
        give_back();
        assert!(resident().unwrap() + (32 << 20) < before, "{before}");
        drop(last);
    }
}
