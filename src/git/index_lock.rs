//! The lock of an index, `index.lock`, as git itself takes it. No git changes the index while it is there.
//!
//! piton writes its process into its own lock, so that a later piton knows when that process is gone. *Invariant:* a lock of a process
//! that may be alive is never removed. A process that removes a left-over lock holds a kernel lock on that very file, so two never do it
//! at once. A person may remove it meanwhile, and a git may take the index: so the file is renamed first, looked at, and put back.

use std::fs::{File, Metadata, OpenOptions, hard_link, remove_file, rename};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::durable::{unique_suffix, with_callers_umask};
use crate::sys::processes::ProcessId;

/// The beginning of a lock of piton's; the identity of its process follows.
const LOCKED_BY: &str = "piton git-undo ";

/// The longest text of a lock of piton's, in bytes.
const LONGEST: u64 = 1000;

/// A lock that is held. Dropped, the index is free again.
#[derive(Debug)]
pub struct IndexLock {
    place: PathBuf,
    /// Its file, open: another one at that place is somebody else's.
    file: File,
}

impl IndexLock {
    /// Takes the lock of the index in a git directory.
    ///
    /// # Errors
    /// `busy` while a git has it.
    pub(super) fn take(dir: &Path) -> Result<IndexLock> {
        let place = dir.join("index.lock");
        let is_there =
            |made: &std::io::Result<File>| made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
        let mut made = locked(&place);
        if is_there(&made) && remove_left_over(&place, &mut || {})? {
            made = locked(&place);
        }
        match made {
            Ok(file) => Ok(IndexLock { place, file }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let text = "a git command is running here and has locked the index";
                Err(Error::new(Code::Busy, text)
                    .path(&place)
                    .hint("try again when it has ended; if it was killed, delete that file"))
            }
            Err(error) => Err(Error::io(error, "locking the index", &place)),
        }
    }

    /// Removes the lock of a piton that was killed; no other one.
    ///
    /// # Errors
    /// `permission`; errors of reading.
    pub(super) fn remove_left_over(dir: &Path) -> Result<()> {
        remove_left_over(&dir.join("index.lock"), &mut || {}).map(drop)
    }

    /// Returns true while its own file is at its place.
    fn stands(&self) -> bool {
        self.file.metadata().is_ok_and(|own| is_at(&self.place, &own))
    }

    /// Requires that nobody has taken it away.
    ///
    /// # Errors
    /// `busy` where another one is there, or none: a git may be at work.
    pub(super) fn require(&self) -> Result<()> {
        if self.stands() {
            return Ok(());
        }
        let text = "another process removed the lock of the index, so the index was not changed";
        Err(Error::new(Code::Busy, text).path(&self.place).hint("try again when no git command is running here"))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if self.stands() {
            // A person who finds it left over is told by git what to do.
            let _ = remove_file(&self.place);
        }
    }
}

/// Makes a lock that tells its owner, so that it is known when that was killed.
fn locked(place: &Path) -> std::io::Result<File> {
    let aside = aside(place);
    // Without an identity the lock counts as that of a live git.
    let own = ProcessId::of(std::process::id()).and_then(|id| serde_json::to_string(&id).ok()).unwrap_or_default();
    let made = with_callers_umask(|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&aside)?;
        write!(file, "{LOCKED_BY}{own}")?;
        hard_link(&aside, place)?;
        Ok(file)
    });
    // One that stays is small.
    let _ = remove_file(&aside);
    made
}

/// Removes the lock of a piton that is gone. Returns false for any other lock. `between` runs before the file is renamed.
///
/// # Errors
/// `permission`; errors of reading.
fn remove_left_over(place: &Path, between: &mut dyn FnMut()) -> Result<bool> {
    // Opening a pipe would wait.
    if place.symlink_metadata().is_ok_and(|facts| !facts.is_file()) {
        return Ok(false);
    }
    let mut file = match File::open(place) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        // A lock that cannot be read is no lock of piton's.
        Err(_) => return Ok(false),
    };
    let facts = file.metadata().at("checking", place)?;
    if file.try_lock().is_err() || !is_left_over(&mut file) || !is_at(place, &facts) {
        return Ok(false);
    }
    between();
    let aside = aside(place);
    match rename(place, &aside) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        renamed => renamed.at("moving aside", place)?,
    }
    let is_it = is_at(&aside, &facts);
    if !is_it {
        // Nothing replaces a lock that has been taken in this moment.
        hard_link(&aside, place).at("restoring the index lock of another git process", place)?;
    }
    remove_file(&aside).at("removing", &aside)?;
    Ok(is_it)
}

/// Returns true for a lock of piton's whose owner is gone.
fn is_left_over(lock: &mut File) -> bool {
    let mut text = String::new();
    // An index in the making is no text.
    if lock.take(LONGEST).read_to_string(&mut text).is_err() {
        return false;
    }
    let Some(owner) = text.strip_prefix(LOCKED_BY) else { return false };
    if let Ok(owner) = serde_json::from_str::<ProcessId>(owner) {
        return owner.is_alive() == Some(false);
    }
    false
}

/// Returns true if a certain file is at a place.
fn is_at(place: &Path, file: &Metadata) -> bool {
    let node = |facts: &Metadata| (facts.dev(), facts.ino());
    place.symlink_metadata().is_ok_and(|there| node(&there) == node(file))
}

fn aside(place: &Path) -> PathBuf {
    place.with_file_name(format!("{}.piton", unique_suffix()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a lock whose process is gone: this one began at another moment.
    fn left_over() -> String {
        let mut owner = serde_json::to_value(ProcessId::of(std::process::id()).unwrap()).unwrap();
        owner["started"] = 1.into();
        format!("{LOCKED_BY}{owner}")
    }

    #[test]
    fn a_lock_of_a_live_git_stays() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("index.lock");
        for text in [&b"DIRC"[..], b"", b"piton git-undo", b"piton git-undo x", b"\xff\xfe"] {
            std::fs::write(&place, text).unwrap();
            assert_eq!(IndexLock::take(dir.path()).unwrap_err().code(), Code::Busy);
            assert_eq!(std::fs::read(&place).unwrap(), text);
        }
        std::fs::write(&place, left_over()).unwrap();
        let held = IndexLock::take(dir.path()).unwrap();
        assert_eq!(IndexLock::take(dir.path()).unwrap_err().code(), Code::Busy);
        held.require().unwrap();
        drop(held);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_lock_of_a_piton_that_was_killed_goes() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("index.lock");
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let owner = serde_json::to_string(&ProcessId::of(child.id()).unwrap()).unwrap();
        std::fs::write(&place, format!("{LOCKED_BY}{owner}")).unwrap();
        assert_eq!(IndexLock::take(dir.path()).unwrap_err().code(), Code::Busy);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(IndexLock::take(dir.path()).is_ok());
        assert!(!place.exists());
    }

    #[test]
    fn a_lock_that_was_taken_meanwhile_is_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("index.lock");
        std::fs::write(&place, left_over()).unwrap();
        let other = |text: &str| {
            remove_file(&place).unwrap();
            std::fs::write(&place, text).unwrap();
        };
        // A git, and a piton that has a lock by now.
        for text in ["DIRC", "piton git-undo 1-1"] {
            assert!(!remove_left_over(&place, &mut || other(text)).unwrap());
            assert_eq!(std::fs::read_to_string(&place).unwrap(), text);
            other(&left_over());
        }
        let held = File::open(&place).unwrap();
        held.try_lock().unwrap();
        assert!(!remove_left_over(&place, &mut || {}).unwrap(), "another one is about to remove it");
        drop(held);
        assert!(remove_left_over(&place, &mut || {}).unwrap());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_that_is_lost_is_neither_used_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("index.lock");
        let held = IndexLock::take(dir.path()).unwrap();
        remove_file(&place).unwrap();
        assert_eq!(held.require().unwrap_err().code(), Code::Busy);
        std::fs::write(&place, "DIRC").unwrap();
        assert_eq!(held.require().unwrap_err().code(), Code::Busy);
        drop(held);
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "DIRC");
    }

    #[test]
    fn one_of_many_takes_a_lock_that_is_left_over() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..50 {
            std::fs::write(dir.path().join("index.lock"), left_over()).unwrap();
            let taken: Vec<_> = std::thread::scope(|scope| {
                let takers: Vec<_> = (0..4).map(|_| scope.spawn(|| IndexLock::take(dir.path()).ok())).collect();
                takers.into_iter().filter_map(|taker| taker.join().unwrap()).collect()
            });
            assert!(taken.len() <= 1 && taken.iter().all(IndexLock::stands), "{taken:?}");
            drop(taken);
            assert!(IndexLock::take(dir.path()).is_ok());
        }
    }
}
