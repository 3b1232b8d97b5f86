//! A look at a whole work tree, for what events do not tell: files with several names, and repositories inside.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::model::path::RelPath;

/// The most files with several names that are told each time.
const MOST_LINKED: usize = 1_000;

/// The directory in which git keeps a repository.
pub(super) const GIT: &[u8] = b".git";

/// Looks at all that git looks at, and returns the files with several names. A write through a name outside of the tree gives no event.
///
/// # Errors
/// The reason why git cannot be answered with paths here.
pub(super) fn linked(top: &Path, ignored: &BTreeSet<RelPath>) -> Result<BTreeSet<RelPath>, String> {
    let mut linked = BTreeSet::new();
    let mut dirs = vec![RelPath::root()];
    while let Some(dir) = dirs.pop() {
        let found = match listed(top, &dir) {
            Ok(found) => found,
            // It is told each time, as long as it has no watch.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => continue,
            Err(error) if error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::NotADirectory => continue,
            Err(error) => return Err(format!("{} cannot be read: {error}", dir.display())),
        };
        for (path, facts) in found {
            if path.name() == GIT {
                match dir.is_root() {
                    true => continue,
                    false => return Err(format!("there is a repository in {}", dir.display())),
                }
            }
            if facts.is_dir() && !ignored.contains(&path) {
                dirs.push(path);
            } else if facts.is_file() && facts.nlink() > 1 {
                linked.insert(path);
            }
        }
        if linked.len() > MOST_LINKED {
            return Err(format!("more than {MOST_LINKED} files have several names"));
        }
    }
    Ok(linked)
}

/// Returns the entries of a directory with their facts. One that goes meanwhile is left out: an event tells of it.
pub(super) fn listed(top: &Path, dir: &RelPath) -> std::io::Result<Vec<(RelPath, Metadata)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir.under(top))? {
        let entry = entry?;
        match entry.metadata() {
            Ok(facts) => found.push((dir.join(entry.file_name().as_bytes()), facts)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
