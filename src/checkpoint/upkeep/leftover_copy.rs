//! The copy that a killed move of the home has left at the new place, and the proof of whose it is.
//!
//! Before it copies, a move writes a note into the home: a number of its own, and the new place. The copy holds the same
//! note, and when it is whole a second one, which is the last file written in it. So a directory with both notes, in which
//! nothing was written since the second one, is the copy of exactly this home by exactly this move. All that it holds is
//! in the home too, or was removed there since. Anything else at the new place belongs to somebody else and stays.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Code, IoContext, Result};
use crate::sys::clock::now_ms;
use crate::sys::fs::durable::{replace_file, sync_dir, unique_suffix};

/// The note in a copy that is whole: where the old content is left.
pub(super) const NOTE: &str = "moved-from";

/// The note in a home that is being copied, and in its copy.
const MOVING: &str = "moving-to";

/// The note of a move at work, or of one that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MoveNote {
    /// The number that no other move has.
    token: String,
    /// The new place.
    pub(super) to: PathBuf,
    /// The place beside the home at which the old content is left.
    left: PathBuf,
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn left_of(home: &Path) -> PathBuf {
    beside(home, ".piton-moved")
}

impl MoveNote {
    /// Reads the note in a home; `None` where no move is under way, or the note is damaged.
    pub(super) fn read(home: &Path) -> Option<MoveNote> {
        let bytes = std::fs::read(home.join(MOVING)).ok()?;
        let at = bytes.iter().position(|byte| *byte == b'\n')?;
        let token = String::from_utf8(bytes.get(..at)?.to_vec()).ok()?;
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let to = PathBuf::from(std::ffi::OsString::from_vec(bytes.get(at + 1..)?.to_vec()));
        (is_token && to.is_absolute()).then(|| MoveNote { token, to, left: left_of(home) })
    }

    /// Writes the note of a new move into a home. A full disk is a good reason to move, so there it is left out.
    pub(super) fn write(home: &Path, to: &Path) -> Result<MoveNote> {
        let note =
            MoveNote { token: format!("{}-{}", now_ms(), unique_suffix()), to: to.to_owned(), left: left_of(home) };
        let bytes = [note.token.as_bytes(), b"\n", to.as_os_str().as_bytes()].concat();
        match replace_file(&home.join(MOVING), &bytes) {
            Err(error) if error.code() != Code::DiskFull => Err(error),
            Err(error) => {
                tracing::warn!(%error, "if this move is killed, the next one will not recognize its unfinished copy");
                Ok(note)
            }
            Ok(()) => Ok(note),
        }
    }

    /// Takes the note out of a directory.
    pub(super) fn remove(dir: &Path) -> Result<()> {
        let note = dir.join(MOVING);
        if note.symlink_metadata().is_err() {
            return Ok(());
        }
        std::fs::remove_file(&note).at("removing", &note)?;
        sync_dir(dir)
    }

    /// Returns the place of the copy until it is whole.
    pub(super) fn aside(&self) -> PathBuf {
        beside(&self.to, &format!(".piton-moving-{}", self.token))
    }

    /// Returns the place of the old content after the move.
    pub(super) fn left(&self) -> &Path {
        &self.left
    }

    /// Writes into a whole copy where the old content is left.
    pub(super) fn complete(&self, copy: &Path) -> Result<()> {
        replace_file(&copy.join(NOTE), self.left.as_os_str().as_bytes())
    }

    /// True if the new place holds the copy that this move has made of `home`, and nothing was written there since.
    pub(super) fn proves_copy(&self, home: &Path) -> bool {
        let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
        // A directory that cannot be looked at proves nothing.
        let place = |path: &Path| path.metadata().map(|facts| (facts.dev(), facts.ino())).ok();
        let is_apart = place(home).zip(place(&self.to)).is_some_and(|(home, copy)| home != copy);
        // Once the two have changed places, the old path leads to the copy, which is the home then.
        if !is_dir(home) || !is_dir(&self.to) || !is_apart {
            return false;
        }
        let same = MoveNote::read(&self.to).is_some_and(|note| (&note.token, &note.to) == (&self.token, &self.to));
        let whole = self.to.join(NOTE);
        let names = std::fs::read(&whole).is_ok_and(|left| left == self.left.as_os_str().as_bytes());
        let Ok(facts) = whole.symlink_metadata() else { return false };
        same && names && is_older(&self.to, (facts.ctime(), facts.ctime_nsec()))
    }

    /// Removes what a killed move has left of its copy, if there was one. The note goes last, so that this can be killed
    /// as well.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(super) fn give_up(home: &Path) -> Result<()> {
        let Some(note) = MoveNote::read(home) else { return MoveNote::remove(home) };
        let aside = note.aside();
        remove(&aside)?;
        if note.proves_copy(home) {
            // Half removed it would prove nothing, so it is taken away in one step first.
            std::fs::rename(&note.to, &aside).at("renaming", &note.to)?;
            remove(&aside)?;
        }
        // Only a link is removed here: content that is left belongs to a move that was carried out.
        if note.left.is_symlink() {
            remove(&note.left)?;
        }
        MoveNote::remove(home)
    }
}

/// Removes a directory with all that is in it, or a file, or a link.
pub(super) fn remove(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(facts) if facts.is_dir() => std::fs::remove_dir_all(path).at("removing", path),
        Ok(_) => std::fs::remove_file(path).at("removing", path),
        Err(_) => Ok(()),
    }
}

/// True if nothing below a directory was written, made or renamed after that time, and all of it could be looked at.
fn is_older(dir: &Path, whole: (i64, i64)) -> bool {
    let Ok(mut entries) = dir.read_dir() else { return false };
    entries.all(|entry| {
        let Ok((path, facts)) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?))) else { return false };
        (facts.ctime(), facts.ctime_nsec()) <= whole && (!facts.is_dir() || is_older(&path, whole))
    })
}
