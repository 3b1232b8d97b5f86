//! Files that are made before they are needed.
//!
//! A small checkpoint waits mostly for new files: after many deletions, ext4 searches long for a free inode. So a
//! long-lived process makes some in idle time, without names. A file that is needed is written and given its name. The
//! kernel frees those of a process that dies.

use std::cell::RefCell;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::nameless;
use crate::sys::process::descriptor_limit;

/// The number of files that a checkpoint of loose objects can need, with its ref.
const ENOUGH: usize = super::loose::MAX_LOOSE;

/// The part of a process's descriptors that all of them may take.
const SHARE: u64 = 8;

/// Counts those that this process has.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// The files of one store's handle; none until it is filled.
#[derive(Default)]
pub(super) struct Ready(RefCell<Vec<Nameless>>);

struct Nameless(File);

impl Drop for Nameless {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Ready {
    /// Makes files in `dir` up to the number that there should be. A system without such files has none.
    pub(super) fn fill(&self, dir: &Path) {
        let most = descriptor_limit() / SHARE;
        let mut files = self.0.borrow_mut();
        while files.len() < ENOUGH && OPEN.load(Ordering::Relaxed) < most {
            let Ok(file) = nameless::create(dir) else { return };
            OPEN.fetch_add(1, Ordering::Relaxed);
            files.push(Nameless(file));
        }
    }

    /// Gives a file with this content and these permission bits the name `path`, which must be free. Does not wait for
    /// the disk. Returns `false` when that was not possible and nothing was done.
    pub(super) fn put(&self, path: &Path, content: &[u8], mode: u32) -> bool {
        let Some(Nameless(file)) = &self.0.borrow_mut().pop() else { return false };
        let mut file = file;
        let is_written = file.write_all(content).is_ok()
            && (mode == 0o400 || file.set_permissions(Permissions::from_mode(mode)).is_ok());
        // The caller makes the file anew on failure, and reports the error if it persists.
        is_written && nameless::name(file, path).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ready_gets_its_name_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let ready = Ready::default();
        let path = dir.path().join("object");
        assert!(!ready.put(&path, b"none is ready", 0o400));
        ready.fill(dir.path());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(ready.put(&path, b"content", 0o600));
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!ready.put(&path, b"other", 0o400), "the name is taken");
        assert!(!ready.put(&dir.path().join("none/object"), b"other", 0o400));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(ready.0.borrow().len(), ENOUGH - 3);
        ready.fill(dir.path());
        assert_eq!(ready.0.borrow().len(), ENOUGH);
    }
}
