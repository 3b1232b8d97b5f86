//! Removals without a wait. The file system frees the content of a file when its last name is removed and its last
//! descriptor is closed.
//!
//! That can take longer than everything else. ext4 mounted with `discard` and without a journal tells the disk of each
//! file, and waits: 0.4 ms on a virtual disk. A large file takes long anywhere. So a handle holds the content until one
//! of a few threads closes it. The kernel does that for a process that is killed. A process that ends by itself calls
//! [`wait`], for otherwise the kernel would close the remaining handles one by one.

use std::mem;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use super::dir::Dir;
use super::stat::Stat;
use crate::error::Result;
use crate::sys::mount;
use crate::sys::process::descriptor_limit;

/// The threads that close gathered handles: they wait for the disk, not for processors.
const CLOSERS: usize = 4;

/// The part of a process's descriptors that may be held.
const SHARE: u64 = 4;

/// Counts the contents that this process holds.
static HELD: Mutex<u64> = Mutex::new(0);
static LET_GO: Condvar = Condvar::new();

/// Removes names, and has their contents freed on other threads. That begins when this is dropped, so that pending
/// syncs do not wait for it; with many handles it begins earlier.
pub struct DeferredUnlink {
    gathered: Mutex<Vec<Handle>>,
    /// The device of the file system on which open handles are known to do no harm.
    dev: u64,
    /// The most that this process may hold.
    most: u64,
}

/// An object without a name that this process keeps.
struct Handle(Option<OwnedFd>);

impl Drop for Handle {
    fn drop(&mut self) {
        // The content is freed first, and counted as freed after that.
        drop(self.0.take());
        *held() -= 1;
        LET_GO.notify_all();
    }
}

impl DeferredUnlink {
    /// Returns one that holds nothing back: each file is freed at once, by the thread that removes it.
    pub fn none() -> DeferredUnlink {
        DeferredUnlink { gathered: Mutex::default(), dev: 0, most: 0 }
    }

    /// For names on the file system of `root`. On network file systems it is as [`DeferredUnlink::none`]: they would
    /// give an open file a new name.
    pub fn beside(root: &Dir) -> DeferredUnlink {
        let most = descriptor_limit() / SHARE;
        DeferredUnlink::at_most(most, root)
    }

    fn at_most(most: u64, root: &Dir) -> DeferredUnlink {
        let is_ours = matches!(mount::foreign(root.path()), Ok(None));
        match root.stat_self() {
            Ok(own) if is_ours => DeferredUnlink { gathered: Mutex::default(), dev: own.dev, most },
            _ => DeferredUnlink::none(),
        }
    }

    /// Removes a name that is not a directory; `seen` is what it stands for.
    ///
    /// # Errors
    /// As [`Dir::unlink`].
    pub fn unlink(&self, dir: &Dir, name: &[u8], seen: &Stat) -> Result<()> {
        // Opened before the name is removed: afterwards the file cannot be reached.
        let handle = self.hold(dir, name, seen);
        dir.unlink(name)?;
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.extend(handle);
        // One half is closed while the other half is gathered.
        if gathered.len() as u64 > self.most / 2 {
            let much = mem::take(&mut *gathered);
            drop(gathered);
            let_go(much);
        }
        Ok(())
    }

    /// Opens a handle; `None` where there is nothing to gain, or no descriptor to spare.
    fn hold(&self, dir: &Dir, name: &[u8], seen: &Stat) -> Option<Handle> {
        // A file with other names is not freed by this removal.
        if seen.dev != self.dev || seen.links > 1 {
            return None;
        }
        {
            let mut held = held();
            if *held >= self.most {
                return None;
            }
            *held += 1;
        }
        let handle = Handle(dir.handle(name).ok());
        handle.0.is_some().then_some(handle)
    }
}

impl Drop for DeferredUnlink {
    fn drop(&mut self) {
        let_go(mem::take(self.gathered.get_mut().unwrap_or_else(PoisonError::into_inner)));
    }
}

fn held() -> MutexGuard<'static, u64> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes handles on threads of their own. Without a thread they are closed here.
fn let_go(mut handles: Vec<Handle>) {
    let each = handles.len().div_ceil(CLOSERS);
    while !handles.is_empty() {
        let part = handles.split_off(handles.len().saturating_sub(each));
        // Without a thread the handles are dropped, and so closed, here.
        let _ = Builder::new().name("deferred".to_owned()).spawn(move || drop(part));
    }
}

/// Waits until nothing is held any more.
pub fn wait() {
    let _none = LET_GO.wait_while(held(), |held| *held > 0).unwrap_or_else(PoisonError::into_inner);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::*;

    /// Files without a name that this process has open below `dir`.
    fn nameless(dir: &Path) -> usize {
        let open = fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
        open.filter(|path| path.starts_with(dir) && path.as_os_str().as_bytes().ends_with(b" (deleted)")).count()
    }

    fn files(dir: &Path, count: usize) -> Vec<Vec<u8>> {
        let names: Vec<Vec<u8>> = (0..count).map(|i| format!("file{i}").into_bytes()).collect();
        for i in 0..count {
            fs::write(dir.join(format!("file{i}")), vec![b'x'; 5000]).unwrap();
        }
        names
    }

    #[test]
    fn names_go_at_once_and_contents_until_it_is_waited_for() {
        for most in [0, 3, u64::MAX] {
            let temp = tempfile::tempdir().unwrap();
            let root = Dir::open_root(temp.path()).unwrap();
            let deferred = DeferredUnlink::at_most(most, &root);
            for name in files(temp.path(), 100) {
                let seen = root.stat(&name).unwrap().unwrap();
                deferred.unlink(&root, &name, &seen).unwrap();
                assert_eq!(root.stat(&name).unwrap(), None);
                assert!(nameless(temp.path()) as u64 <= most, "{most}");
            }
            drop(deferred);
            wait();
            assert_eq!(nameless(temp.path()), 0, "{most}");
        }
    }

    #[test]
    fn what_is_gathered_is_held_until_the_end() {
        let temp = tempfile::tempdir().unwrap();
        let root = Dir::open_root(temp.path()).unwrap();
        let deferred = DeferredUnlink::at_most(u64::MAX, &root);
        files(temp.path(), 2);
        fs::hard_link(temp.path().join("file1"), temp.path().join("other")).unwrap();
        for name in [b"file0", b"file1"] {
            let seen = root.stat(name).unwrap().unwrap();
            deferred.unlink(&root, name, &seen).unwrap();
        }
        assert_eq!(nameless(temp.path()), 1, "what has another name is not freed at all");
        drop(deferred);
        wait();
        assert_eq!(nameless(temp.path()), 0);
    }

    #[test]
    fn what_is_not_there_or_cannot_be_held_is_as_ever() {
        let temp = tempfile::tempdir().unwrap();
        let root = Dir::open_root(temp.path()).unwrap();
        files(temp.path(), 1);
        let seen = root.stat(b"file0").unwrap().unwrap();
        for deferred in [DeferredUnlink::none(), DeferredUnlink::beside(&root)] {
            files(temp.path(), 1);
            deferred.unlink(&root, b"file0", &seen).unwrap();
            assert!(deferred.unlink(&root, b"file0", &seen).is_err());
        }
        wait();
    }
}
