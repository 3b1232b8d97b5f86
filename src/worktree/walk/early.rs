//! Reading directories before the walk begins: while what was captured before is still being decoded.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::Builder;

use super::super::beneath::Root;
use super::ahead::{self, Ahead};
use super::plan::ReadPlan;
use crate::model::path::RelPath;

/// Fewer directories are read as fast as a thread is begun.
const WORTH: usize = if cfg!(test) { 2 } else { 256 };

/// Scouts that are on their way already. Dropped, they end.
pub struct Early {
    ahead: Arc<Ahead>,
    root: Arc<Root>,
    begun: AtomicBool,
}

impl Early {
    /// Has `dirs` below `root` read, in the order of the walk; `None` where that is not worth it, or cannot be done.
    pub fn start(root: &Path, dirs: Vec<RelPath>) -> Option<Early> {
        let scouts = ahead::scouts();
        if dirs.len() < WORTH || scouts == 0 {
            return None;
        }
        let root = Arc::new(Root::open(root).ok()?);
        let ahead = Arc::new(Ahead::of(ReadPlan::of(dirs)));
        for _ in 0..scouts {
            let (ahead, root) = (Arc::clone(&ahead), Arc::clone(&root));
            // Without scouts the walk reads everything itself.
            let _ = Builder::new().name("scout".to_owned()).spawn(move || ahead.scout(&root));
        }
        Some(Early { ahead, root, begun: AtomicBool::new(false) })
    }

    /// Returns what was read ahead, for one walk of the same directory: a later one would see what was there before it
    /// began.
    pub(super) fn begin(&self, root: &Root) -> Option<&Ahead> {
        let same = matches!((self.root.identity(), root.identity()), (Ok(mine), Ok(other)) if mine == other);
        (same && !self.begun.swap(true, SeqCst)).then_some(&*self.ahead)
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        // A scout that the file system holds up is not waited for.
        self.ahead.close();
    }
}
