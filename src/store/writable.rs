//! The try whether a checkpoint could be written: the calls of a real one, of which nothing is left.
//!
//! A file as large as an object is written beside the objects, synced, and renamed into one of their directories. A second
//! one takes the way of a ref. Both keep names that no reader takes for an object or a ref.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::loose;
use super::repository::Store;
use crate::error::{IoContext, Result};
use crate::model::id::ObjectKind;
use crate::sys::fs::durable::unique_suffix;
use crate::sys::fs::space::DiskSpace;

/// The bytes of the content that is written; its file takes a block.
const CONTENT: usize = 3900;

impl Store {
    /// Tries whether an object could be written, and a ref in the directory `refs`, and leaves nothing behind. With `synced` the
    /// disk itself has to take the object.
    ///
    /// # Errors
    /// `disk-full`, `permission`: then no checkpoint can be taken.
    pub fn try_writing(&self, refs: &str, synced: bool) -> Result<()> {
        let git_dir = self.git_dir();
        DiskSpace::at(git_dir)?.require_floor(git_dir)?;
        try_object(git_dir, synced)?;
        try_ref(git_dir, refs)
    }
}

fn try_object(git_dir: &Path, synced: bool) -> Result<()> {
    let objects = git_dir.join("objects");
    let name = format!("tmp_obj_try-{}", unique_suffix());
    let first = Attempt::create(objects.join(&name), &loose::compress(ObjectKind::Blob, &[b'p'; CONTENT])?, synced)?;
    // A new directory would be made where the first one was written.
    let is_fan = |path: &PathBuf| path.is_dir() && path.file_name().is_some_and(|name| name.len() == 2);
    let listed = std::fs::read_dir(&objects).at("listing", &objects)?.flatten().map(|entry| entry.path());
    match listed.into_iter().find(is_fan) {
        Some(fan) => first.rename(fan.join(&name))?.map_or(Ok(()), Attempt::remove),
        None => first.remove(),
    }
}

fn try_ref(git_dir: &Path, refs: &str) -> Result<()> {
    let dir = git_dir.join(refs);
    let dir = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(git_dir);
    let file = |n: u32| dir.join(format!("try-{}-{n}.lock", unique_suffix()));
    Attempt::create(file(1), format!("{}\n", "0".repeat(40)).as_bytes(), false)?
        .rename(file(2))?
        .map_or(Ok(()), Attempt::remove)
}

/// A file of the try; it goes with the value, whatever happens.
struct Attempt(PathBuf);

impl Attempt {
    fn create(path: PathBuf, content: &[u8], is_synced: bool) -> Result<Attempt> {
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path).at("creating", &path);
        let (attempt, mut file) = (Attempt(path), file?);
        let written = file.write_all(content).and_then(|()| if is_synced { file.sync_all() } else { Ok(()) });
        written.at("writing", &attempt.0)?;
        Ok(attempt)
    }

    /// Renames it; `None` where another process has removed it, or the directory, as one does whose objects went into a pack.
    fn rename(mut self, to: PathBuf) -> Result<Option<Attempt>> {
        match std::fs::rename(&self.0, &to) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            renamed => renamed.at("renaming to", &to)?,
        }
        self.0 = to;
        Ok(Some(self))
    }

    fn remove(self) -> Result<()> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.at("removing", &self.0),
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // Removed already, or the first error is the one to report.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_another_process_removes_is_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let attempt = |name: &str| Attempt::create(dir.path().join(name), b"x", false).unwrap();
        assert!(attempt("a").rename(dir.path().join("gone/a")).unwrap().is_none());
        let taken = attempt("b");
        std::fs::remove_file(dir.path().join("b")).unwrap();
        assert!(taken.remove().is_ok());
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(attempt("c").rename(dir.path().join("file/c")).is_err());
        attempt("d").rename(dir.path().join("e")).unwrap().unwrap().remove().unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
