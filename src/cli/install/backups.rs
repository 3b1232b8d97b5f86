//! Copies of files as they were before piton changed them: of each file the first one, which is how it was before piton came, and
//! the newest few. Each copy has the time of its file. Taking hooks out needs the copies of blank files alone: the text does not
//! tell whether a file was there. All others are for the person.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::checkpoint::Home;
use crate::error::{IoContext, Result};
use crate::sys::clock::rfc3339;
use crate::sys::fs::durable::{create_private_dir, replace_file};

/// Copies of a file that are kept beside the first one.
const NEWEST: usize = 5;

/// Copies a file's content, with the time of its last change, and removes old copies of it.
///
/// # Errors
/// `disk-full`, `permission`. That old copies cannot be removed is none.
pub(super) fn keep(home: &Home, file: &Path, content: &[u8], changed: SystemTime, now_ms: i64) -> Result<()> {
    let dir = home.path().join("backups");
    let inner = inner(file);
    let copy = dir.join(rfc3339(now_ms).replace(':', "")).join(inner);
    write(&copy, content, changed)?;
    if content.trim_ascii().is_empty() {
        write(&blank(home, file), content, changed)?;
    }
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

/// Returns the time of the last change that a file had when its content was this one, if a copy tells.
pub(super) fn changed(home: &Home, file: &Path, content: &[u8]) -> Option<SystemTime> {
    // Without copies, the time is that of the change.
    let mut all = copies(&home.path().join("backups"), inner(file)).ok()?;
    all.push(blank(home, file));
    let same = all.into_iter().rfind(|copy| std::fs::read(copy).is_ok_and(|there| there == content))?;
    same.metadata().and_then(|facts| facts.modified()).ok()
}

/// Returns the content of a file that was there without any text before piton wrote into it.
pub(super) fn blank_content(home: &Home, file: &Path) -> Option<Vec<u8>> {
    std::fs::read(blank(home, file)).ok()
}

/// Removes the copy of a file that was blank, if there is one.
///
/// # Errors
/// `permission`.
pub(super) fn forget_blank(home: &Home, file: &Path) -> Result<()> {
    let copy = blank(home, file);
    match std::fs::remove_file(&copy) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(error).at("removing", &copy)
        }
        _ => Ok(()),
    }
}

fn inner(file: &Path) -> &Path {
    file.strip_prefix("/").unwrap_or(file)
}

/// Returns the place of the copy of a blank file.
fn blank(home: &Home, file: &Path) -> PathBuf {
    home.path().join("blank-files").join(inner(file))
}

fn write(copy: &Path, content: &[u8], changed: SystemTime) -> Result<()> {
    create_private_dir(copy.parent().unwrap_or(copy))?;
    replace_file(copy, content)?;
    File::options().write(true).open(copy).and_then(|file| file.set_modified(changed)).at("setting the time of", copy)
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
        let time = |n: i64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n.unsigned_abs());
        keep(&home, b, b"b", time(7), 0).unwrap();
        for n in 0..30 {
            keep(&home, a, format!("a{n}").as_bytes(), time(n), n * 1000).unwrap();
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
        assert_eq!((changed(&home, a, b"a26"), changed(&home, a, b"a9")), (Some(time(26)), None));
        assert_eq!(blank_content(&home, b), None);
        keep(&home, b, b" \n", time(8), 9000).unwrap();
        assert_eq!(changed(&home, b, b" \n"), Some(time(8)));
        assert_eq!(blank_content(&home, b).as_deref(), Some(&b" \n"[..]));
        forget_blank(&home, b).unwrap();
        forget_blank(&home, b).unwrap();
        assert_eq!(blank_content(&home, b), None);
    }
}
