//! Moves piton's home to another directory.
//!
//! At its old place a symbolic link to the new one stays, so that clients, hooks and `PITON_HOME` need no change. The link
//! and the directory change places in one step. On one file system the directory itself goes; else a whole, durable copy
//! is made first, while the locks of all workspaces and of the store are held.
//!
//! *Invariant:* killed at any point, the old path leads to a whole home. Killed after the step, the old content is left
//! beside it, and the next look at the store removes it. Killed before it, a copy is left at the new place, and the next
//! move takes it away. A note with a number of its own, in the home and in its copy, proves whose it is.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::clear::refuse_at_work;
use super::leftover_copy::{MoveNote, NOTE, remove};
use super::rounds::UpkeepLock;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::identity::AddingLock;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::workspace::{Scope, Workspace};
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::dir::Dir;
use crate::sys::fs::durable::sync_dir;
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::fs::space::DiskSpace;
use crate::sys::interrupt::Flow;
use crate::sys::mount::foreign;
use crate::sys::progress::{Amount, Stage, WorkControl};

/// The longest wait for a process that is at work in the store.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes of a file that are copied between two checks of the interrupt.
const PIECE: u64 = 16 << 20;

/// A move, as it is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// The present directory.
    pub from: PathBuf,
    /// The new one.
    pub to: PathBuf,
    /// Bytes of all files.
    pub bytes: u64,
    /// True if the files have to be copied to another file system.
    pub is_copy: bool,
}

fn refused(text: &str, path: &Path, hint: &str) -> Error {
    Error::new(Code::Conflict, text).path(path).hint(hint)
}

impl Relocation {
    /// Plans the move of a home to a directory that does not exist, or is empty.
    ///
    /// # Errors
    /// `conflict` where it would not be safe; `disk-full`; I/O errors.
    pub fn plan(home: &Home, to: &Path) -> Result<Relocation> {
        let name = to.file_name().ok_or_else(|| refused("the store is already there", to, "name a new directory"))?;
        let above = to.parent().unwrap_or(Path::new("/"));
        let above = above.canonicalize().at("resolving", above)?;
        let (from, to) = (home.path().to_owned(), above.join(name));
        if to.starts_with(&from) || from.starts_with(&to) {
            return Err(refused("one of the two directories is inside the other", &to, "give a directory next to it"));
        }
        let known = Workspace::known(home)?;
        // Of the files outside every workspace, a checkpoint contains only those that an action names.
        let is_around = |workspace: &&Workspace| workspace.scope == Scope::Tree && to.starts_with(&workspace.path);
        if let Some(around) = known.iter().find(is_around) {
            let hint = "give a directory outside of all projects";
            return Err(refused("the store must not lie in a workspace", &around.path, hint));
        }
        if let Some(kind) = foreign(&above)? {
            let text = format!("locks and syncs are not reliable on a network file system ({kind})");
            return Err(refused(&text, &above, "give a directory on a local file system"));
        }
        let is_left = to.read_link().is_ok_and(|link| link == to);
        let is_free =
            is_left || to.symlink_metadata().is_err() || to.read_dir().is_ok_and(|mut dir| dir.next().is_none());
        let is_own = || MoveNote::read(&from).is_some_and(|note| note.to == to && note.proves_copy(&from));
        if !is_free && !is_own() {
            return Err(refused("something is already there", &to, "give a directory that does not exist or is empty"));
        }
        known.iter().try_for_each(refuse_at_work)?;
        // The link comes to lie where the home is now.
        let device = |path: &Path| path.metadata().map(|facts| facts.dev()).at("checking", path);
        let is_copy = device(&above)? != device(&from)?;
        let bytes = weight(&from)?;
        let space = DiskSpace::at(&above)?;
        if is_copy && space.free < bytes.saturating_add(space.floor()) {
            let text = format!("the copy needs {} MB", bytes / 1_000_000);
            return Err(Error::new(Code::DiskFull, text)
                .path(&above)
                .hint("free some space there or prune the store first"));
        }
        Ok(Relocation { from, to, bytes, is_copy })
    }

    /// Moves it, and returns the home at its new place. `control` may stop a copy.
    ///
    /// # Errors
    /// `conflict` if somebody is at work; `store-locked`; `shutting-down` when it was stopped; I/O errors. Before the last step
    /// the home is where it was.
    pub fn carry_out(&self, home: &Home, control: WorkControl<'_>) -> Result<Home> {
        let _upkeep = UpkeepLock::take(home, "moving the store", PATIENCE)?;
        let _adding = AddingLock::acquire(home)?;
        let known = Workspace::known(home)?;
        let mut locks = Vec::new();
        for workspace in &known {
            refuse_at_work(workspace)?;
            // Renamed files keep their locks; those of copied ones would be lost.
            if self.is_copy {
                locks.push(WorkspaceLock::acquire(&workspace.dir, "moving the store", PATIENCE)?);
            }
        }
        let _store = FileLock::acquire(&self.from.join("store.lock"), Mode::Exclusive, "moving the store", PATIENCE)?;
        MoveNote::give_up(&self.from)?;
        free_place(&self.to)?;
        if self.is_copy { self.copy(control) } else { self.rename() }?;
        let moved = Home::at(&self.to)?;
        sweep(&moved)?;
        Ok(moved)
    }

    /// Has the directory and a link to its new place change places.
    fn rename(&self) -> Result<()> {
        symlink(&self.to, &self.to).at("making the link", &self.to)?;
        let exchanged = exchange(&self.from, &self.to);
        if exchanged.is_err() {
            // Only the link is there; the next try removes it too.
            let _ = std::fs::remove_file(&self.to);
        }
        exchanged
    }

    fn copy(&self, control: WorkControl<'_>) -> Result<()> {
        // The note comes first, and the copy holds it too.
        let note = MoveNote::write(&self.from, &self.to)?;
        let aside = note.aside();
        control.progress.begin(Stage::Copying, Amount { items: 0, bytes: self.bytes });
        let copied = copy_dir(&self.from, &aside, control).and_then(|()| note.complete(&aside));
        if let Err(error) = copied {
            // The next move removes what is still there; the first error is the one to report.
            let _ = remove(&aside).and_then(|()| MoveNote::remove(&self.from));
            return Err(error);
        }
        std::fs::rename(&aside, &self.to).at("renaming", &aside)?;
        sync_dir(self.to.parent().unwrap_or(Path::new("/")))?;
        let left = note.left();
        symlink(&self.to, left).at("making the link", left)?;
        exchange(&self.from, left)
    }
}

/// Removes what a move has left at the old place: the content of which a copy is in use.
///
/// # Errors
/// When it cannot be removed.
pub fn sweep(home: &Home) -> Result<()> {
    use std::os::unix::ffi::OsStringExt;
    let note = home.path().join(NOTE);
    let Ok(left) = std::fs::read(&note) else { return Ok(()) };
    let left = PathBuf::from(std::ffi::OsString::from_vec(left));
    // Only what a move has put aside, never a home in use.
    if left.as_os_str().as_bytes().ends_with(b".piton-moved") && !home.path().starts_with(&left) {
        // Without its note, content that is half removed proves nothing about this home.
        MoveNote::remove(&left)?;
        remove(&left)?;
    }
    MoveNote::remove(home.path())?;
    std::fs::remove_file(&note).at("removing", &note)
}

/// Returns the new place of a move that was cut short, or of which the old content is still there.
pub fn unfinished(home: &Home) -> Option<PathBuf> {
    MoveNote::read(home.path()).map(|note| note.to)
}

/// Makes room for the new home: an empty directory, or the link of a killed move, goes.
fn free_place(to: &Path) -> Result<()> {
    match to.symlink_metadata() {
        Ok(facts) if facts.is_dir() => std::fs::remove_dir(to).at("removing the empty directory", to),
        Ok(facts) if facts.is_symlink() => std::fs::remove_file(to).at("removing", to),
        _ => Ok(()),
    }
}

/// Has two names of one file system change places.
fn exchange(one: &Path, other: &Path) -> Result<()> {
    let above = |path: &Path| Dir::open_root(path.parent().unwrap_or(Path::new("/")));
    let name = |path: &Path| path.file_name().unwrap_or_default().as_bytes().to_vec();
    if !above(one)?.exchange(&name(one), &above(other)?, &name(other))? {
        let hint = "move it by hand while nothing runs, and set PITON_HOME";
        return Err(refused("this file system cannot exchange two names in one step", one, hint));
    }
    for path in [one, other] {
        sync_dir(path.parent().unwrap_or(Path::new("/")))?;
    }
    Ok(())
}

/// Returns the bytes of all files below a directory.
fn weight(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir).at("listing", dir)? {
        let entry = entry.at("listing", dir)?;
        let facts = entry.metadata().at("checking", entry.path())?;
        bytes += if facts.is_dir() { weight(&entry.path())? } else { facts.len() };
    }
    Ok(bytes)
}

/// Copies directories, files and links, durably and with their times. Sockets and the like are made anew by their owners.
fn copy_dir(from: &Path, to: &Path, control: WorkControl<'_>) -> Result<()> {
    std::fs::DirBuilder::new().mode(0o700).create(to).at("creating the directory", to)?;
    for entry in std::fs::read_dir(from).at("listing", from)? {
        let entry = entry.at("listing", from)?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let facts = entry.metadata().at("checking", &path)?;
        if facts.is_dir() {
            copy_dir(&path, &copy, control)?;
        } else if facts.is_symlink() {
            symlink(path.read_link().at("reading the link", &path)?, &copy).at("making the link", &copy)?;
        } else if facts.is_file() {
            let mut source = File::open(&path).at("opening", &path)?;
            let mut options = File::options();
            let mut target = options.write(true).create_new(true).mode(0o600).open(&copy).at("creating", &copy)?;
            copy_content(&mut source, &mut target, &copy, control)?;
            target.set_permissions(facts.permissions()).at("setting the mode of", &copy)?;
            let modified = facts.modified().at("checking", &path)?;
            target.set_modified(modified).and_then(|()| target.sync_all()).at("syncing", &copy)?;
        }
    }
    let permissions = from.metadata().at("checking", from)?.permissions();
    std::fs::set_permissions(to, permissions).at("setting the mode of", to)?;
    sync_dir(to)
}

/// Copies the content of a file to `copy`, in pieces, so that it can be stopped between two of them.
fn copy_content(source: &mut File, target: &mut File, copy: &Path, control: WorkControl<'_>) -> Result<()> {
    let mut copied = PIECE;
    while copied == PIECE {
        if control.flow() == Flow::Stop {
            return Err(Error::new(Code::ShuttingDown, "the move was stopped; the store is where it was"));
        }
        copied = std::io::copy(&mut source.take(PIECE), target).at("copying to", copy)?;
        control.progress.add(u64::from(copied < PIECE), copied);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: fn() -> WorkControl<'static> = || WorkControl::unwatched(&|| Flow::Continue);

    fn home(root: &Path) -> (Home, Workspace) {
        let home = Home::at(&root.join("home")).unwrap();
        std::fs::create_dir_all(root.join("work")).unwrap();
        let workspace = Workspace::open(&home, &root.join("work")).unwrap();
        std::fs::write(home.path().join("store.lock"), "").unwrap();
        (home, workspace)
    }

    #[test]
    fn the_old_path_leads_to_the_new_place_and_nothing_is_left() {
        for is_copy in [false, true] {
            let scratch = tempfile::tempdir().unwrap();
            let root = scratch.path().canonicalize().unwrap();
            let (home, workspace) = home(&root);
            let old = home.path().to_owned();
            let plan = Relocation::plan(&home, &root.join("new")).unwrap();
            assert!(!plan.is_copy && plan.bytes > 0);
            let moved = Relocation { is_copy, ..plan }.carry_out(&home, ALONE()).unwrap();
            assert_eq!(moved.path(), root.join("new"));
            assert_eq!(old.read_link().unwrap(), root.join("new"));
            let found = Workspace::open(&Home::at(&old).unwrap(), &root.join("work")).unwrap();
            assert_eq!(
                (found.id, found.dir),
                (workspace.id, root.join("new/workspaces").join(workspace.dir.file_name().unwrap()))
            );
            let mut left: Vec<_> = std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, ["home", "new", "work"]);
            assert!(!root.join("new").join(NOTE).exists());
            // And once more, from there.
            let again = Relocation::plan(&moved, &root.join("newer")).unwrap().carry_out(&moved, ALONE()).unwrap();
            assert_eq!(Home::at(&old).unwrap(), again);
        }
    }

    #[test]
    fn unsafe_places_are_refused_and_killed_moves_are_tidied_up() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (home, _) = home(&root);
        std::fs::create_dir(root.join("full")).unwrap();
        std::fs::write(root.join("full/a"), "").unwrap();
        for place in ["home/in", "work/in", "full", "/proc/piton"] {
            let refused = Relocation::plan(&home, &root.join(place)).unwrap_err();
            assert_eq!(refused.code(), Code::Conflict, "{place}");
        }
        // Killed before the step: a link to itself, half a copy, a link for the old place.
        let new = root.join("new");
        symlink(&new, &new).unwrap();
        let half = MoveNote::write(home.path(), &new).unwrap().aside();
        std::fs::create_dir(&half).unwrap();
        symlink("nowhere", root.join("home.piton-moved")).unwrap();
        let plan = Relocation { is_copy: true, ..Relocation::plan(&home, &new).unwrap() };
        let moved = plan.carry_out(&home, ALONE()).unwrap();
        assert!(new.join("workspaces").is_dir() && !half.exists());
        // Killed after the step: the old content is left.
        std::fs::create_dir(root.join("home.piton-moved")).unwrap();
        std::fs::write(new.join(NOTE), root.join("home.piton-moved").as_os_str().as_bytes()).unwrap();
        sweep(&moved).unwrap();
        assert!(!root.join("home.piton-moved").exists() && !new.join(NOTE).exists());
    }
}
