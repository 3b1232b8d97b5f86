//! Files that are written through a mapping, which may move no time.

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::path::Path;

/// A file that is mapped for writing, and whose descriptor is closed.
pub(crate) struct Mapping {
    start: *mut u8,
    length: usize,
    /// For looking only: it is no writer's.
    file: File,
}

impl Mapping {
    /// Maps the whole of a file that is not empty.
    pub(crate) fn of(path: &Path) -> Mapping {
        let file = File::options().read(true).write(true).open(path).unwrap();
        let length = file.metadata().unwrap().len() as usize;
        assert!(length > 0);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping of a file that is open and as long as that; the kernel chooses where.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(start, libc::MAP_FAILED);
        Mapping { start: start.cast(), length, file: File::open(path).unwrap() }
    }

    /// Stores a byte: the file's times move only if the page was clean.
    pub(crate) fn store(&self, at: usize, byte: u8) {
        let long = self.facts().len() as usize;
        assert!(at < self.length.min(long));
        // SAFETY: inside of the mapping, which is writable, and of its file, which nobody makes shorter meanwhile.
        unsafe { self.start.add(at).write_volatile(byte) };
    }

    /// Returns what is known of the file, whatever its names are now.
    pub(crate) fn facts(&self) -> Metadata {
        self.file.metadata().unwrap()
    }

    /// Has the pages written back: the next store moves the file's time.
    pub(crate) fn sync(&self) {
        // SAFETY: the whole of a mapping of ours.
        assert_eq!(unsafe { libc::msync(self.start.cast(), self.length, libc::MS_SYNC) }, 0);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the whole of a mapping of ours, which nobody uses any more.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
