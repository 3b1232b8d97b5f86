//! Kernel file locks on files that are never deleted. The kernel frees a dead holder's lock, so none is ever broken.
//!
//! Lock order: workspace before store, never the reverse. The file's text (pid, start time, verb) is for messages only.

use std::fs::{File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use crate::error::{Code, Error, IoContext, Result};
use crate::sys::clock;
use crate::sys::fs::durable::open_private;

/// The most bytes of a lock's text that are read.
const MAX_TEXT: usize = 4096;

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Held together with others that share it; keeps exclusive holders out.
    Shared,
    /// Held by one alone; its holder's text stands in the lock file.
    Exclusive,
}

/// A held lock; it is freed when it is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
    /// The text of the last exclusive holder before, and that of this one.
    texts: (String, String),
    /// Its entry in [`TAKEN`].
    number: u64,
}

/// An exclusive lock that this process holds.
struct HeldLock {
    number: u64,
    path: PathBuf,
    /// The thread that took it.
    thread: ThreadId,
}

/// The exclusive locks that this process holds. The kernel tells holders apart by open files, not by threads: without this list a
/// thread would wait for itself.
static TAKEN: Mutex<Vec<HeldLock>> = Mutex::new(Vec::new());

fn taken() -> MutexGuard<'static, Vec<HeldLock>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if the calling thread itself has taken the lock on `path` exclusively and holds it still.
pub fn is_held_here(path: &Path) -> bool {
    let here = std::thread::current().id();
    taken().iter().any(|entry| entry.thread == here && entry.path == path)
}

impl Drop for FileLock {
    fn drop(&mut self) {
        taken().retain(|entry| entry.number != self.number);
    }
}

impl FileLock {
    /// Takes the lock on `path` (created 0600 if missing), waiting at most `wait`. The kernel serves waiting processes
    /// in their order; a newcomer may still get a lock in the moment in which it is free.
    ///
    /// # Errors
    /// `store-locked` with the holder's text when the wait is over; I/O errors.
    pub fn acquire(path: &Path, mode: Mode, verb: &str, wait: Duration) -> Result<FileLock> {
        let mut file = open_private(path).at("opening the lock", path)?;
        if !try_lock(&file, mode, path)? {
            file = wait_for(file, mode, path, wait)?;
        }
        let mut texts = (String::new(), String::new());
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        if mode == Mode::Exclusive {
            // A lock without its text is still a lock. A later holder then cannot take this one for the last holder.
            texts = describe(&file, verb, number).unwrap_or_default();
            taken().push(HeldLock { number, path: path.to_owned(), thread: std::thread::current().id() });
        }
        Ok(FileLock { file, path: path.to_owned(), texts, number })
    }

    /// Tells whether the last exclusive holder before was the one that held `earlier`.
    pub fn follows(&self, earlier: &Held) -> bool {
        !earlier.0.is_empty() && self.texts.0 == earlier.0
    }

    /// Returns true if the locked file is still the one at its path: another one there would be locked by others.
    pub fn stands(&self) -> bool {
        let node = |facts: Metadata| (facts.dev(), facts.ino());
        let here = self.file.metadata().map(node).ok(); // one that cannot be looked at does not stand
        here.is_some() && here == self.path.metadata().map(node).ok() // as above
    }

    /// Returns a mark of this holding. A later holder compares it, to know that nobody held the lock in between.
    pub fn held(&self) -> Held {
        Held(self.texts.1.clone())
    }

    /// Returns the lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn try_lock(file: &File, mode: Mode, path: &Path) -> Result<bool> {
    let outcome = match mode {
        Mode::Shared => file.try_lock_shared(),
        Mode::Exclusive => file.try_lock(),
    };
    match outcome {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(Error::io(error, "locking", path)),
    }
}

/// Waits in the kernel's queue, on a thread of its own: the system call has no timeout.
fn wait_for(file: File, mode: Mode, path: &Path, wait: Duration) -> Result<File> {
    if wait.is_zero() {
        return Err(locked(path, wait));
    }
    let (send, receive) = sync_channel(1);
    let queue = move || {
        let locked = loop {
            let outcome = match mode {
                Mode::Shared => file.lock_shared(),
                Mode::Exclusive => file.lock(),
            };
            match outcome {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        // If the caller has given up, the file is closed and the lock is freed with it.
        let _ = send.send(locked.map(|()| file));
    };
    std::thread::Builder::new().name("lock".to_owned()).spawn(queue).at("waiting for the lock", path)?;
    match receive.recv_timeout(wait) {
        Ok(locked) => locked.at("locking", path),
        Err(_) => Err(locked(path, wait)),
    }
}

/// One holding of an exclusive lock, known by its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held(String);

/// Numbers the locks of this process, so that no two texts are the same.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Writes the holder's text into the file. Returns the text that was there, and the new one.
fn describe(file: &File, verb: &str, number: u64) -> std::io::Result<(String, String)> {
    let since = clock::rfc3339(clock::now_ms());
    let text = format!("pid {} since {since} doing {verb} (lock {number})\n", std::process::id());
    let mut before = [0; MAX_TEXT];
    let length = file.read_at(&mut before, 0)?;
    let before = &before[..length];
    // Longer texts are blanked at their end: the file is written once, and never empty in between.
    let blank = before.len().saturating_sub(text.len());
    file.write_all_at(format!("{text}{:blank$}", "").as_bytes(), 0)?;
    Ok((String::from_utf8_lossy(before.trim_ascii_end()).into_owned(), text.trim_end().to_owned()))
}

/// Returns what the last exclusive holder of a lock wrote about itself: its pid, since when, and its verb.
pub fn holder(path: &Path) -> String {
    // A lock without its text is still a lock.
    std::fs::read_to_string(path).unwrap_or_default()
}

fn locked(path: &Path, wait: Duration) -> Error {
    let holder = holder(path);
    let holder = if holder.trim().is_empty() { "an unknown process".to_owned() } else { holder.trim().to_owned() };
    Error::new(Code::StoreLocked, format!("{holder} still has the lock after {} ms", wait.as_millis()))
        .path(path)
        .hint("try again when it has finished; the lock is released when its process ends")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_gets_it_when_it_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let first = FileLock::acquire(&path, Mode::Exclusive, "testing", Duration::ZERO).unwrap();
        let waiting = std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        FileLock::acquire(&path, Mode::Exclusive, "waiting", Duration::from_mins(1)).map(drop)
                    })
                })
                .collect();
            let impatient = FileLock::acquire(&path, Mode::Shared, "testing", Duration::from_millis(20));
            assert_eq!(impatient.unwrap_err().code(), Code::StoreLocked);
            drop(first);
            waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(waiting.iter().all(Result::is_ok), "{waiting:?}");
        // The place of the caller that gave up delays the others only until it is freed.
        FileLock::acquire(&path, Mode::Exclusive, "testing", Duration::from_mins(1)).unwrap();
    }

    #[test]
    fn a_thread_knows_which_locks_it_holds_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("lock"), dir.path().join("other"));
        let take = |mode| FileLock::acquire(&path, mode, "testing", Duration::ZERO).unwrap();
        drop(take(Mode::Shared));
        assert!(!is_held_here(&path));
        let first = take(Mode::Exclusive);
        assert!(is_held_here(&path) && !is_held_here(&other));
        std::thread::scope(|scope| {
            assert!(!scope.spawn(|| is_held_here(&path)).join().unwrap(), "another thread holds it");
            // The thread that lets go need not be the one that took the lock.
            scope.spawn(|| drop(first));
        });
        assert!(!is_held_here(&path));
        let _shared = take(Mode::Shared);
        assert!(!is_held_here(&path), "a shared lock keeps nobody out of what others read");
    }

    #[test]
    fn exclusive_excludes_and_shared_shares() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let take = |mode| FileLock::acquire(&path, mode, "testing", Duration::ZERO);
        let first = take(Mode::Shared).unwrap();
        let second = take(Mode::Shared).unwrap();
        assert_eq!(take(Mode::Exclusive).unwrap_err().code(), Code::StoreLocked);
        drop((first, second));
        let third = take(Mode::Exclusive).unwrap();
        let refused = take(Mode::Shared).unwrap_err();
        assert!(refused.message().contains(&format!("pid {}", std::process::id())), "{refused}");
        let held = third.held();
        drop(third);
        let fourth = take(Mode::Exclusive).unwrap();
        assert!(fourth.follows(&held) && !fourth.follows(&Held::default()));
        drop(fourth);
        let fifth = take(Mode::Exclusive).unwrap();
        assert!(!fifth.follows(&held), "somebody held it in between");
        drop(fifth);
        take(Mode::Exclusive).unwrap();
        assert!(path.exists());
    }
}
