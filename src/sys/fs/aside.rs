//! Files and directories that are made aside and renamed to their places when they are whole.
//!
//! The writer holds a kernel lock on its file until it is in its place. The kernel frees the lock of a killed writer,
//! also of one in another container. So a file whose lock is free belongs to nobody, and is removed at once.
//!
//! *Invariant:* the lock is taken before anything is written, and freed after the rename.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::durable::unique_suffix;
use crate::error::{Code, Error, IoContext, Result};

/// The part of a name that tells a file aside from others.
const MARK: &str = ".tmp-";

/// The number of names that are tried: each try may meet a process that is removing leftovers.
const TRIES: u32 = 100;

/// Returns true if this is the name of a file that is, or was, made aside.
pub fn is_aside(name: &str) -> bool {
    name.contains(MARK)
}

/// A file or directory beside the place that it is made for. Others leave it alone until it is dropped.
#[derive(Debug)]
pub struct Aside {
    /// Its path for now.
    pub path: PathBuf,
    /// It, open and locked.
    pub file: File,
}

impl Aside {
    /// Makes a private file (0600) beside `place`.
    ///
    /// # Errors
    /// `permission`, `disk-full`, `internal`.
    pub fn file(place: &Path) -> Result<Aside> {
        Aside::make(place, &|path| OpenOptions::new().write(true).create_new(true).mode(0o600).open(path))
    }

    /// Makes a private directory (0700) beside `place`.
    ///
    /// # Errors
    /// As [`Aside::file`].
    pub fn dir(place: &Path) -> Result<Aside> {
        Aside::make(place, &|path| DirBuilder::new().mode(0o700).create(path).and_then(|()| File::open(path)))
    }

    fn make(place: &Path, open: &dyn Fn(&Path) -> std::io::Result<File>) -> Result<Aside> {
        for _ in 0..TRIES {
            let path = name_aside(place);
            let file = match open(&path) {
                // A process of another container may have the same number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                // A directory may be removed before it is open; for a file this is an error of its parent.
                Err(error) if error.kind() == ErrorKind::NotFound && place.parent().is_some_and(Path::is_dir) => {
                    continue;
                }
                file => file.at("creating", &path)?,
            };
            // Before the lock was held, another process may have taken it for a leftover.
            let is_ours = match file.try_lock() {
                Ok(()) => file.metadata().at("checking", &path)?.nlink() > 0,
                Err(TryLockError::WouldBlock) => false,
                // Without locks nobody can take it for a leftover.
                Err(TryLockError::Error(_)) => true,
            };
            if is_ours {
                return Ok(Aside { path, file });
            }
        }
        Err(no_name(place))
    }

    /// Gives it its place.
    ///
    /// # Errors
    /// Returns the errors of renaming.
    pub fn put(&self, place: &Path) -> std::io::Result<()> {
        std::fs::rename(&self.path, place)
    }
}

/// Puts a symbolic link in the place of what is there, at once. A link cannot be locked: one aside that a killed writer has left stays.
///
/// # Errors
/// `permission`, `disk-full`, `internal`.
pub fn put_link(target: &Path, place: &Path) -> Result<()> {
    for _ in 0..TRIES {
        let path = name_aside(place);
        match symlink(target, &path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            made => made.at("making the link", &path)?,
        }
        let renamed = std::fs::rename(&path, place).at("renaming", &path);
        if renamed.is_err() {
            // The first error is the one to report.
            let _ = std::fs::remove_file(&path);
        }
        return renamed;
    }
    Err(no_name(place))
}

/// Returns a name beside a place that no other thread or process of this system uses at the same time.
fn name_aside(place: &Path) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!("{MARK}{}", unique_suffix()));
    place.with_file_name(name)
}

fn no_name(place: &Path) -> Error {
    Error::new(Code::Internal, "cannot create a temporary file").path(place).hint("try again")
}

/// Removes the files and directories that killed writers have left in `dir`, and returns their number.
///
/// # Errors
/// When the directory cannot be listed, or a leftover not removed. A directory that is missing has none.
pub fn remove_abandoned(dir: &Path) -> Result<u64> {
    let listing = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        listing => listing.at("listing", dir)?,
    };
    let mut removed = 0;
    for entry in listing {
        let entry = entry.at("listing", dir)?;
        if is_aside(&entry.file_name().to_string_lossy()) {
            removed += u64::from(remove(&entry.path())?);
        }
    }
    Ok(removed)
}

/// Removes one whose writer is dead.
fn remove(path: &Path) -> Result<bool> {
    let Ok(facts) = path.symlink_metadata() else { return Ok(false) }; // it has its place by now
    // Nothing else is ever made aside, and opening a pipe would wait.
    if !facts.is_file() && !facts.is_dir() {
        return Ok(false);
    }
    let held = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file.at("opening", path)?,
    };
    if held.try_lock().is_err() {
        return Ok(false);
    }
    let removed = if facts.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.at("removing the files that a killed process left", path).map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::sys::fs::durable::replace_cache;

    #[test]
    fn only_what_has_no_writer_goes() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("state");
        let (file, inner) = (Aside::file(&place).unwrap(), Aside::dir(&place).unwrap());
        std::fs::write(inner.path.join("a"), "a").unwrap();
        std::fs::write(dir.path().join("other"), "").unwrap();
        assert_eq!(remove_abandoned(dir.path()).unwrap(), 0);
        // As a kill leaves them.
        let paths = [file.path.clone(), inner.path.clone()];
        drop((file, inner));
        assert!(paths.iter().all(|path| path.exists()));
        assert_eq!(remove_abandoned(dir.path()).unwrap(), 2);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(remove_abandoned(&dir.path().join("none")).unwrap(), 0);
    }

    #[test]
    fn writers_and_those_who_remove_leftovers_do_not_disturb_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sweeper = scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    remove_abandoned(dir.path()).unwrap();
                }
            });
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let place = dir.path().join(format!("state{writer}"));
                    scope.spawn(move || (0..2000).for_each(|n| replace_cache(&place, &[n as u8; 64]).unwrap()))
                })
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_done.store(true, Ordering::Relaxed);
            sweeper.join().unwrap();
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
