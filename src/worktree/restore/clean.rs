//! Temporary names, and what a crash left of them.

use std::path::Path;

use crate::error::Result;
use crate::model::path::RelPath;
use crate::sys::clock;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::durable::unique_suffix;
use crate::sys::fs::stat::FileKind;

/// The beginning of every name that a restore creates for a moment in the user's tree. Scans leave such names out.
pub const TEMPORARY_PREFIX: &str = ".piton-tmp-";

/// Returns a name that neither this process nor a dead one with the same pid has used.
pub(super) fn temporary_name() -> Vec<u8> {
    format!("{TEMPORARY_PREFIX}{}-{:x}", unique_suffix(), clock::file_clock()).into_bytes()
}

/// Removes what a crashed restore left in these directories: staged contents, displaced files (whose content the
/// pre-restore checkpoint holds) and empty directories. Returns their number.
///
/// The caller holds the workspace's lock: no restore is at work. Directories that are gone are passed over.
///
/// # Errors
/// I/O errors.
pub fn clean_temporaries(root: &Path, dirs: impl IntoIterator<Item = RelPath>) -> Result<u64> {
    let root = Dir::open_root(root)?;
    let mut removed = 0;
    for path in dirs {
        let Some(dir) = root.find_dir(path.to_path())? else {
            continue;
        };
        for name in dir.names()? {
            if name.starts_with(TEMPORARY_PREFIX.as_bytes()) && remove(&dir, &name)? {
                removed += 1;
            }
        }
    }
    Ok(removed)
}

fn remove(dir: &Dir, name: &[u8]) -> Result<bool> {
    match dir.stat(name)?.map(|stat| stat.kind) {
        Some(FileKind::File | FileKind::Link) => dir.unlink(name).map(|()| true),
        Some(FileKind::Dir) => dir.rmdir(name),
        // A restore makes no such thing.
        Some(FileKind::Other) | None => Ok(false),
    }
}
