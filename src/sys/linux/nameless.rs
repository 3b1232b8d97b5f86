//! Files that are made without a name, and get it once they are whole.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, linkat};

use super::descriptor;

/// Makes a file without a name on the file system of `dir`, readable for its owner only.
///
/// # Errors
/// Returns the errors of the system; not every file system has such files.
pub fn create(dir: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).mode(0o400).custom_flags(libc::O_TMPFILE).open(dir)
}

/// Gives a file without a name the name `path`, which must be free.
///
/// # Errors
/// Returns the errors of the system; a taken name is one.
pub fn name(file: &File, path: &Path) -> io::Result<()> {
    Ok(linkat(CWD, descriptor::path(file.as_fd()), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}
