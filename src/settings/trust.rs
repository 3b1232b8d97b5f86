//! The workspace files that the user trusts, by path and content.
//!
//! A file `$PITON_HOME/trusted`, one line each: the content's id (git's SHA-1 of it, with collision detection) and the
//! percent-quoted path. Another content at the same path is not trusted.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Result;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::meta::quote;
use crate::sys::fs::durable::replace_file;
use crate::sys::fs::lock::{FileLock, Mode};

/// The time to wait for another process that writes the list.
const PATIENCE: Duration = Duration::from_secs(10);

fn line_of(file: &Path, content: &[u8]) -> Result<String> {
    let id = ObjectId::of(ObjectKind::Blob, content)?;
    Ok(format!("{id} {}", quote(file.as_os_str().as_bytes())))
}

/// Returns the file that holds them.
pub(super) fn place(home: &Path) -> PathBuf {
    home.join("trusted")
}

fn lines(home: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(place(home)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Returns whether this very content of the file is trusted.
pub fn is_trusted(home: &Path, file: &Path, content: &[u8]) -> bool {
    line_of(file, content).is_ok_and(|line| lines(home).contains(&line))
}

/// Trusts this very content of the file.
///
/// # Errors
/// I/O errors of writing; `store-locked` if another process holds the lock for too long.
pub fn trust(home: &Path, file: &Path, content: &[u8]) -> Result<()> {
    let line = line_of(file, content)?;
    // Two that trust at the same time both have what the other one wrote.
    let _lock = FileLock::acquire(&home.join("trusted.lock"), Mode::Exclusive, "trusting", PATIENCE)?;
    let path = line.split_once(' ').map(|(_, path)| path.to_owned()).unwrap_or_default();
    let mut kept: Vec<String> =
        lines(home).into_iter().filter(|known| known.split_once(' ').is_none_or(|(_, known)| known != path)).collect();
    kept.push(line);
    replace_file(&place(home), format!("{}\n", kept.join("\n")).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobodys_trust_is_lost() {
        let home = tempfile::tempdir().unwrap();
        let file = |n: usize| PathBuf::from(format!("/w{n}/.piton.yaml"));
        std::thread::scope(|scope| {
            for n in 0..16 {
                let home = home.path();
                scope.spawn(move || trust(home, &file(n), format!("a: {n}").as_bytes()).unwrap());
            }
        });
        for n in 0..16 {
            assert!(is_trusted(home.path(), &file(n), format!("a: {n}").as_bytes()), "{n}");
        }
        trust(home.path(), &file(3), b"b").unwrap();
        assert!(is_trusted(home.path(), &file(3), b"b") && !is_trusted(home.path(), &file(3), b"a: 3"));
        assert_eq!(lines(home.path()).len(), 16);
    }
}
