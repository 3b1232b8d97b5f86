//! The times at which files of a workspace changed last, read from the disk without a capture.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::model::path::RelPath;
use crate::worktree::stamps;

/// The longest look.
const PATIENCE: Duration = Duration::from_millis(80);

/// The most changes that are told.
const MOST: usize = 256;

/// The directory of a repository, whose files are git's.
const GIT: &str = ".git";

/// Returns the times, in milliseconds since the epoch, of changes at or after `since`: of captured files, and of directories with
/// captured files whose entries changed. `records` are the workspace's; without any captured file, all files below `root` count.
///
/// The look is bounded: of a large tree it may find only some, or none.
///
/// # Errors
/// When the stamps cannot be read.
pub fn changed_since(records: Option<&Path>, root: &Path, since: i64) -> Result<Vec<i64>> {
    let mut look = ChangeLook { since, until: Instant::now() + PATIENCE, found: Vec::new() };
    let stamps = records.map(|dir| stamps::load(&dir.join("stamps"), &mut |_| {})).transpose()?.flatten();
    let known = stamps.map(|stamps| stamps.known).filter(|known| !known.entries().is_empty());
    match known {
        None => look.walk(root),
        Some(known) => {
            let files = || known.entries().iter().map(|(path, _)| path);
            let dirs: BTreeSet<RelPath> = files().filter_map(RelPath::parent).collect();
            let at = |path: &RelPath| root.join(path.to_path());
            let paths = dirs.iter().map(at).chain(files().map(at));
            // A directory is worth a look before the files in it: it tells of all that came and went.
            let _ = [root.to_owned()].into_iter().chain(paths).all(|path| {
                look.at(&path);
                look.goes_on()
            });
        }
    }
    Ok(look.found)
}

/// A look for changes.
struct ChangeLook {
    since: i64,
    until: Instant,
    found: Vec<i64>,
}

impl ChangeLook {
    /// Returns false once enough was found, or the time is over.
    fn goes_on(&self) -> bool {
        self.found.len() < MOST && Instant::now() < self.until
    }

    /// Looks at one path. One that is gone is told by its directory.
    fn at(&mut self, path: &Path) -> Option<Metadata> {
        // Of one that cannot be looked at, nothing is known to have changed: this only finds clues.
        let facts = path.symlink_metadata().ok();
        if let Some(facts) = &facts {
            // A directory's own times move with its entries, and its ctime with its mode.
            let (seconds, nanos) = match facts.is_dir() {
                true => (facts.mtime(), facts.mtime_nsec()),
                false => (facts.ctime(), facts.ctime_nsec()),
            };
            let at = seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000);
            self.found.extend(Some(at).filter(|at| *at >= self.since));
        }
        facts
    }

    /// Looks at everything below a directory, but at no repository's own files.
    fn walk(&mut self, root: &Path) {
        let mut waiting: Vec<PathBuf> = vec![root.to_owned()];
        while let Some(path) = waiting.pop().filter(|_| self.goes_on()) {
            if self.at(&path).is_some_and(|facts| facts.is_dir()) {
                // A directory that cannot be listed tells nothing.
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(entries.filter(|entry| entry.file_name() != GIT).map(|entry| entry.path()));
            }
        }
    }
}
