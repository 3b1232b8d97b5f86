//! Reading a directory with a buffer of the caller's, without an allocation for each entry.

use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, RawDir};
use rustix::io::Errno;

/// Calls `each` with name, kind and inode of every entry but `.` and `..`, in the order of the file system.
///
/// # Errors
/// Returns the errors of `getdents64`; the entries before it were given to `each`.
pub fn read(
    dir: BorrowedFd<'_>,
    buffer: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&[u8], FileType, u64),
) -> Result<(), Errno> {
    let mut entries = RawDir::new(dir, buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            each(entry.file_name().to_bytes(), entry.file_type(), entry.ino());
        }
    }
    Ok(())
}
