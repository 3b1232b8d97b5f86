//! What this process takes of the machine's memory.

/// Resident bytes; `None` where the system does not tell.
#[cfg(target_os = "linux")]
pub fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB"))?;
    Some(kilobytes.trim().parse::<u64>().ok()? << 10)
}

/// Resident bytes; `None` where the system does not tell.
#[cfg(not(target_os = "linux"))]
pub fn resident() -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_written_to_counts() {
        let before = resident().unwrap();
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(resident().unwrap() > before + (32 << 20));
        drop(block);
    }
}
