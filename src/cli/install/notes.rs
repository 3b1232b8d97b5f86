//! Notes of paths in piton's home, one a line: of what an installation has to find again when it is taken out.

use std::ffi::OsStr;
use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::checkpoint::Home;
use crate::error::{IoContext, Result};
use crate::sys::fs::durable::replace_file;

/// A file of paths.
struct PathNotes(PathBuf);

impl PathNotes {
    fn all(&self) -> Result<Vec<PathBuf>> {
        match std::fs::read(&self.0) {
            Ok(bytes) => {
                let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                Ok(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))).collect())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).at("reading", &self.0),
        }
    }

    /// Adds a path. One that has a line end in it cannot be noted.
    fn add(&self, path: &Path) -> Result<()> {
        let mut noted = self.all()?;
        if noted.iter().any(|one| one == path) || path.as_os_str().as_bytes().contains(&b'\n') {
            return Ok(());
        }
        noted.push(path.to_owned());
        self.write(&noted)
    }

    fn write(&self, paths: &[PathBuf]) -> Result<()> {
        let lines: Vec<u8> = paths.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\n"].concat()).collect();
        replace_file(&self.0, &lines)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut noted = self.all()?;
        let before = noted.len();
        noted.retain(|one| one != path);
        if noted.len() == before { Ok(()) } else { self.write(&noted) }
    }
}

/// The directories and files that installations made, so that taking hooks out takes them away as well.
pub(crate) struct Made {
    dirs: PathNotes,
    files: PathNotes,
}

impl Made {
    /// Returns those noted in piton's home.
    pub(crate) fn of(home: &Home) -> Made {
        let notes = |name: &str| PathNotes(home.path().join(name));
        Made { dirs: notes("made-directories"), files: notes("made-files") }
    }

    /// Notes a file that is about to be made.
    pub(super) fn add_file(&self, file: &Path) -> Result<()> {
        self.files.add(file)
    }

    /// Returns true if piton made a file.
    pub(super) fn has_file(&self, file: &Path) -> Result<bool> {
        Ok(self.files.all()?.iter().any(|made| made == file))
    }

    /// Forgets that piton made a file: it is gone, or its owner's by now.
    pub(super) fn forget_file(&self, file: &Path) -> Result<()> {
        self.files.remove(file)
    }

    /// Makes a directory and what is missing above it; noted first.
    pub(super) fn create(&self, dir: &Path, mode: u32) -> Result<()> {
        let missing: Vec<PathBuf> = dir.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut noted = self.dirs.all()?;
        noted.extend(missing.iter().filter(|dir| !dir.as_os_str().as_bytes().contains(&b'\n')).cloned());
        self.dirs.write(&noted)?;
        for dir in missing.iter().rev() {
            DirBuilder::new().mode(mode).create(dir).at("creating the directory", dir)?;
            // The umask took bits off.
            std::fs::set_permissions(dir, Permissions::from_mode(mode)).at("setting the mode of", dir)?;
        }
        Ok(())
    }

    /// Removes those that are empty, the inner ones first.
    pub(super) fn remove_empty(&self) -> Result<()> {
        let mut noted = self.dirs.all()?;
        if noted.is_empty() {
            return Ok(());
        }
        noted.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
        // One that cannot be removed is not empty, or belongs to another program by now. A project may be away as a whole.
        let others = noted.clone();
        let is_away = |dir: &PathBuf| {
            let mut above = dir.ancestors().skip(1).filter(|above| !others.iter().any(|other| other == above));
            above.next().is_some_and(|above| !above.exists())
        };
        noted.retain(|dir| std::fs::remove_dir(dir).is_err() && (dir.exists() || is_away(dir)));
        self.dirs.write(&noted)
    }
}

/// The projects that have hooks of their own: they need not be workspaces.
pub(super) struct HookedProjects(PathNotes);

impl HookedProjects {
    /// Returns those noted in piton's home.
    pub(super) fn of(home: &Home) -> HookedProjects {
        HookedProjects(PathNotes(home.path().join("hooked-projects")))
    }

    /// Returns their directories.
    pub(super) fn all(&self) -> Result<Vec<PathBuf>> {
        self.0.all()
    }

    /// Notes one.
    pub(super) fn add(&self, root: &Path) -> Result<()> {
        self.0.add(root)
    }

    /// Keeps only those that are `left`.
    pub(super) fn keep(&self, left: &[PathBuf]) -> Result<()> {
        if self.0.all()?.is_empty() { Ok(()) } else { self.0.write(left) }
    }
}

/// The files by which git asks piton: configuration files, and hooks.
pub(super) struct GitDoors(PathNotes);

impl GitDoors {
    /// Returns those noted in piton's home.
    pub(super) fn of(home: &Home) -> GitDoors {
        GitDoors(PathNotes(home.path().join("git-doors")))
    }

    /// Returns their paths.
    pub(super) fn all(&self) -> Result<Vec<PathBuf>> {
        self.0.all()
    }

    /// Notes one.
    pub(super) fn add(&self, path: &Path) -> Result<()> {
        self.0.add(path)
    }

    /// Forgets one.
    pub(super) fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove(path)
    }
}
