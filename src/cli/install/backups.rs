//! Copies of clients' files as they were before piton changed them: of each file the first one, which is how it was before piton
//! came, and the newest few. Taking hooks out needs none of them; they are for the person.

use std::path::{Path, PathBuf};

use crate::checkpoint::Home;
use crate::error::{IoContext, Result};
use crate::sys::clock::rfc3339;
use crate::sys::fs::durable::{create_private_dir, replace_file};

/// Copies of a file that are kept beside the first one.
const NEWEST: usize = 5;

/// Copies a file's text, and removes old copies of it.
///
/// # Errors
/// `disk-full`, `permission`. That old copies cannot be removed is none.
pub(super) fn keep(home: &Home, file: &Path, text: &str, now_ms: i64) -> Result<()> {
    let dir = home.path().join("backups");
    let inner = file.strip_prefix("/").unwrap_or(file);
    let copy = dir.join(rfc3339(now_ms).replace(':', "")).join(inner);
    create_private_dir(copy.parent().unwrap_or(&dir))?;
    replace_file(&copy, text.as_bytes())?;
    let mut copies = copies(&dir, inner)?;
    let newest = copies.len().saturating_sub(NEWEST);
    for old in copies.drain(..newest).skip(1) {
        // A copy too many does no harm.
        if std::fs::remove_file(&old).is_err() {
            continue;
        }
        for above in old.ancestors().skip(1).take_while(|above| *above != dir) {
            // One that is not empty holds copies of other files.
            if std::fs::remove_dir(above).is_err() {
                break;
            }
        }
    }
    Ok(())
}

/// Returns the copies of a file, oldest first.
fn copies(dir: &Path, inner: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).at("listing", dir)? {
        let copy = entry.at("listing", dir)?.path().join(inner);
        if copy.symlink_metadata().is_ok() {
            found.push(copy);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_copy_and_the_newest_stay() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let (a, b) = (Path::new("/home/you/.a/settings.json"), Path::new("/home/you/.b"));
        keep(&home, b, "b", 0).unwrap();
        for n in 0..30 {
            keep(&home, a, &format!("a{n}"), n * 1000).unwrap();
        }
        let dir = home.path().join("backups");
        let texts = |file: &Path| -> Vec<String> {
            let copies = copies(&dir, file.strip_prefix("/").unwrap()).unwrap();
            copies.iter().map(|copy| std::fs::read_to_string(copy).unwrap()).collect()
        };
        assert_eq!(texts(a), ["a0", "a25", "a26", "a27", "a28", "a29"]);
        assert_eq!(texts(b), ["b"]);
        // Beside the copies nothing stays, not even a directory.
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 6);
    }
}
