//! Workspaces: finds the directory of an event, and its identity.
//!
//! A workspace has a random id made at first sight and is looked up by canonical path. The place in the file system is
//! recorded as evidence of "moved" and "gone" only: a re-clone at the same path is the same workspace. A directory that
//! was renamed takes its history with it, if it is proved that it is the same one, and gone from its place.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::ground::Ground;
use super::home::Home;
use super::identity::{self, AddingLock, Identity, permissions};
use super::place::{DirNode, Place};
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::fs::durable::create_private_dir;

/// Files and directories whose presence makes a directory a project's root.
const MARKERS: &[&str] = &[
    ".git",
    ".hg",
    ".jj",
    ".svn",
    ".piton.yaml",
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Makefile",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "deno.json",
    "CMakeLists.txt",
];

/// Directories that are never captured as trees, and whose whole subtree belongs to the system.
const SYSTEM: &[&str] =
    &["/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr"];

/// Directories that are never captured as trees themselves; the directories inside may be workspaces.
const BROAD: &[&str] = &[
    "/",
    "/home",
    "/root",
    "/media",
    "/mnt",
    "/opt",
    "/srv",
    "/tmp",
    "/var",
    "/var/tmp",
    "/var/lib",
    "/Users",
    "/usr/local",
];

/// The part of a workspace that is captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it, by the rules of [`crate::filter`].
    Tree,
    /// Only paths that an action is about to destroy: the directory is too broad to capture.
    TargetsOnly,
}

/// A workspace known to piton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// 16 lowercase hex digits.
    pub id: String,
    /// The canonical path.
    pub path: PathBuf,
    /// The part of it that is captured, judged anew by its path.
    pub scope: Scope,
    /// RFC 3339, when it was first seen.
    pub since: String,
    /// Its records: stamps, journal, state, lock.
    pub dir: PathBuf,
    /// The place of its directory, as it was recorded.
    pub place: Option<Place>,
    /// The permission bits of its directory, as they were recorded.
    pub mode: Option<u32>,
    /// The directory that the history belonged to before the last adoption.
    pub was: Option<PathBuf>,
    /// The id of the workspace above that the directory is a part of since an adoption.
    pub part_of: Option<String>,
}

impl Workspace {
    /// Finds the workspace of exactly this directory, or makes it known. A known one is found by its path even if its directory
    /// was deleted.
    ///
    /// # Errors
    /// `workspace-gone` when an unknown directory does not exist, `bad-path` when it is none; I/O errors.
    pub fn open(home: &Home, path: &Path) -> Result<Workspace> {
        let (path, facts) = match canonical_dir(path) {
            Err(error) if error.code() == Code::WorkspaceGone => return Workspace::at(home, path)?.ok_or(error),
            found => found?,
        };
        refuse_own(home, &path)?;
        if let Some(known) = Workspace::known(home)?.into_iter().find(|workspace| workspace.path == path) {
            if let Err(error) = identity::keep(home, &known.dir) {
                tracing::warn!(%error, "the second copy of a workspace's record could not be written");
            }
            return Ok(known.renewed(home, &facts));
        }
        create_private_dir(&home.workspaces())?;
        let lock = AddingLock::acquire(home)?;
        let known = Workspace::listed(home, true)?;
        if let Some(known) = known.iter().find(|workspace| workspace.path == path) {
            return Ok(known.clone());
        }
        match moved_here(&known, &path, &facts) {
            Some(moved) => {
                let adopted = identity::adopt(home, moved, (&path, Some(&facts)), &lock)?;
                identity::tell_moved(home, &moved.path, &path);
                Ok(adopted)
            }
            None => {
                let created = Workspace::create(home, path, &facts)?;
                if let Some(before) = seems_moved(&known, &facts) {
                    identity::tell_unproved(home, &before.path, &created.path);
                }
                Ok(created)
            }
        }
    }

    /// As [`Workspace::open`], for a caller that only reads. A directory without a record gets none, and nothing is written.
    ///
    /// # Errors
    /// As [`Workspace::open`].
    pub fn open_to_read(home: &Home, path: &Path) -> Result<Workspace> {
        // An error is the same as that of opening.
        let Ok((here, facts)) = canonical_dir(path) else { return Workspace::open(home, path) };
        let known = Workspace::known(home)?;
        let is_recorded = known.iter().any(|workspace| workspace.path == here)
            || moved_here(&known, &here, &facts).is_some()
            || seems_moved(&known, &facts).is_some()
            || !identity::unowned(home)?.is_empty();
        if is_recorded {
            return Workspace::open(home, path);
        }
        refuse_own(home, &here)?;
        let id = random_id()?;
        let dir = home.workspaces().join(&id);
        let identity = Identity::new(id, &here, rfc3339(now_ms()), &facts);
        identity.workspace(dir).ok_or_else(|| Error::new(Code::Internal, "cannot create a workspace's record"))
    }

    /// Returns the known workspace of a path, whether its directory exists or not.
    ///
    /// # Errors
    /// As [`Workspace::known`].
    pub fn at(home: &Home, path: &Path) -> Result<Option<Workspace>> {
        let path = real_path(path);
        Ok(Workspace::known(home)?.into_iter().find(|workspace| workspace.path == path))
    }

    /// Returns true if the directory is missing, and may be made again: it was deleted, and not moved or unmounted.
    pub fn is_deleted(&self) -> bool {
        let is_missing = self.path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        is_missing && Ground::now(std::iter::empty()).may_be_made_again(&self.path, self.place.as_ref())
    }

    /// Returns true if the directory was made a part of a workspace above it, which is still there.
    fn is_part(&self, known: &[Workspace]) -> bool {
        let is_above =
            |other: &Workspace| Some(&other.id) == self.part_of.as_ref() && self.path.starts_with(&other.path);
        known.iter().any(is_above)
    }

    /// Records the place and the permissions of the directory again if they are not as before.
    fn renewed(self, home: &Home, facts: &Metadata) -> Workspace {
        let is_as_before = self.mode == Some(permissions(facts));
        if is_as_before && self.place.as_ref().is_some_and(|place| place.is_of(facts)) {
            return self;
        }
        match AddingLock::acquire(home).and_then(|lock| identity::renew(home, &self, facts, &lock)) {
            Ok(renewed) => renewed,
            Err(error) => {
                tracing::warn!(%error, "the place of a workspace could not be recorded");
                self
            }
        }
    }

    /// Lists all workspaces known to this home, the oldest first. A lost or damaged record is written anew from its
    /// second copy; without one it is passed over (its checkpoints stay in the store).
    ///
    /// # Errors
    /// When the directory of workspaces cannot be listed.
    pub fn known(home: &Home) -> Result<Vec<Workspace>> {
        Workspace::listed(home, false)
    }

    fn listed(home: &Home, thorough: bool) -> Result<Vec<Workspace>> {
        let mut known: Vec<Workspace> =
            identity::all(home, thorough)?.into_iter().filter_map(|(dir, it)| it.workspace(dir)).collect();
        known.sort_by(|a, b| (&a.since, &a.id).cmp(&(&b.since, &b.id)));
        Ok(known)
    }

    fn create(home: &Home, path: PathBuf, facts: &Metadata) -> Result<Workspace> {
        let unowned = identity::unowned(home)?;
        let found = unowned.iter().find(|id| identity::is_of(&home.workspaces().join(id), &path));
        let id = found.map_or_else(random_id, |id| Ok(id.clone()))?;
        let dir = home.workspaces().join(&id);
        create_private_dir(&dir)?;
        let identity = Identity::new(id, &path, rfc3339(now_ms()), facts);
        identity.write(&dir)?;
        identity::keep(home, &dir)?;
        if found.is_none() && !unowned.is_empty() {
            identity::tell(home, &path, &unowned);
        }
        identity
            .workspace(dir)
            .ok_or_else(|| Error::new(Code::Internal, "a workspace's record was changed by another program"))
    }
}

/// Returns the workspace whose directory this surely is: the same one on the same volume, proved to be gone from its place.
fn moved_here<'w>(known: &'w [Workspace], path: &Path, facts: &Metadata) -> Option<&'w Workspace> {
    let node = DirNode::of(facts);
    let is_same = |workspace: &&Workspace| workspace.place.as_ref().is_some_and(|place| place.node == node);
    let mut same = known.iter().filter(is_same).peekable();
    // Mostly there is none, and the mounts need not be looked at.
    same.peek()?;
    let (ground, here) = (Ground::now(std::iter::empty()), Place::of(path, facts));
    same.find(|workspace| {
        let sure = workspace.place.as_ref().is_some_and(|place| place.is_surely(&here));
        sure && ground.standing(&workspace.path, workspace.place.as_ref()).is_proved_gone
    })
}

/// Returns the workspace whose directory this may be: it has the inode that was recorded, and is not at its place.
fn seems_moved<'w>(known: &'w [Workspace], facts: &Metadata) -> Option<&'w Workspace> {
    let node = DirNode::of(facts);
    let is_there = |path: &Path| path.symlink_metadata().is_ok_and(|there| DirNode::of(&there) == node);
    let is_same = |workspace: &&Workspace| workspace.place.as_ref().is_some_and(|place| place.node == node);
    known.iter().filter(is_same).find(|workspace| !is_there(&workspace.path))
}

/// Returns the canonical path of a directory, and its facts.
///
/// # Errors
/// `workspace-gone`, `bad-path`; I/O errors.
pub(crate) fn canonical_dir(path: &Path) -> Result<(PathBuf, Metadata)> {
    let no_dir = || {
        Error::new(Code::BadPath, "a workspace must be a directory")
            .path(path)
            .hint("give the directory that contains it")
    };
    let canonical = path.canonicalize().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Error::new(Code::WorkspaceGone, "the workspace does not exist").path(path).hint("check the path")
        }
        ErrorKind::NotADirectory | ErrorKind::InvalidFilename | ErrorKind::InvalidInput => no_dir(),
        _ => Error::io(error, "resolving", path),
    })?;
    match canonical.metadata() {
        Ok(facts) if facts.is_dir() => Ok((canonical, facts)),
        _ => Err(no_dir()),
    }
}

/// Refuses piton's own directories: guarding the store would be a loop.
///
/// # Errors
/// `workspace-refused`.
pub(crate) fn refuse_own(home: &Home, path: &Path) -> Result<()> {
    if path.starts_with(home.path()) {
        return Err(Error::new(Code::WorkspaceRefused, "this is piton's own store, which is not a workspace")
            .path(path)
            .hint("give a project directory with `--workspace`"));
    }
    Ok(())
}

fn random_id() -> Result<String> {
    let mut bytes = [0u8; 8];
    let source = Path::new("/dev/urandom");
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).at("reading", source)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Judges if a directory is captured as a tree or is too broad for it.
pub fn scope_of(path: &Path) -> Scope {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let above_home = home.is_some_and(|home| home.starts_with(path));
    if above_home || is_system(path) || BROAD.iter().any(|dir| path == Path::new(dir)) {
        Scope::TargetsOnly
    } else {
        Scope::Tree
    }
}

/// Returns true for the directories of the system, and what is in them: no action's targets are captured there.
pub fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|dir| path.starts_with(dir))
        && !path.starts_with("/usr/local/src")
        && !path.starts_with("/usr/src")
}

/// Returns a path by its real name; of one that does not exist, the part that does.
pub fn real_path(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            // `join` of an empty rest leaves a slash at the end.
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}

/// Returns the root of the workspace that contains `start`: that of its project, else `start` itself.
pub fn root_for(start: &Path, known: &[Workspace]) -> PathBuf {
    let canonical = real_path(start);
    project_of(&canonical, known).unwrap_or(canonical)
}

/// Returns the root of the project that contains a path: the nearest known workspace, else the nearest ancestor with a project
/// marker; never the home directory or above. `path` is a real name.
pub fn project_of(path: &Path, known: &[Workspace]) -> Option<PathBuf> {
    let marked = |dir: &Path| MARKERS.iter().any(|marker| dir.join(marker).symlink_metadata().is_ok());
    nearest(path, known, marked)
}

/// Returns the root of the nearest known workspace that contains a path. `path` is a real name.
pub fn known_around(path: &Path, known: &[Workspace]) -> Option<PathBuf> {
    nearest(path, known, |_| false)
}

fn nearest(path: &Path, known: &[Workspace], is_root: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let mut dirs = path.ancestors().take_while(|dir| scope_of(dir) == Scope::Tree);
    let found = dirs.find(|dir| {
        let here = known.iter().find(|workspace| workspace.path == *dir);
        // A part of the workspace above it is no root, whatever marks it.
        match here {
            Some(workspace) => !workspace.is_part(known),
            None => is_root(dir),
        }
    });
    found.map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::records::mishaps;
    use crate::checkpoint::upkeep::standing::Standing;

    #[test]
    fn broad_directories_are_targets_only() {
        for (path, scope) in [
            ("/", Scope::TargetsOnly),
            ("/etc/nginx", Scope::TargetsOnly),
            ("/home", Scope::TargetsOnly),
            ("/srv/project", Scope::Tree),
            ("/tmp/x", Scope::Tree),
        ] {
            assert_eq!(scope_of(Path::new(path)), scope, "{path}");
        }
    }

    #[test]
    fn identity_is_by_path_and_survives() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let project = scratch.path().join("project");
        std::fs::create_dir_all(project.join("src")).unwrap();
        let first = Workspace::open(&home, &project).unwrap();
        assert_eq!(Workspace::open(&home, &project).unwrap(), first);
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&project, &link).unwrap();
        assert_eq!(Workspace::open(&home, &link).unwrap(), first);
        assert_eq!(root_for(&project.join("src"), &Workspace::known(&home).unwrap()), first.path);
        assert_eq!(Workspace::open(&home, home.path()).unwrap_err().code(), Code::WorkspaceRefused);
        let gone = Workspace::open(&home, &scratch.path().join("none")).unwrap_err();
        assert_eq!(gone.code(), Code::WorkspaceGone);
    }

    #[test]
    fn a_directory_that_was_renamed_takes_its_history_with_it() {
        let scratch = tempfile::tempdir().unwrap();
        let home = Home::at(&scratch.path().join("home")).unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (old, new) = (root.join("code/project"), root.join("code/renamed"));
        std::fs::create_dir_all(&old).unwrap();
        let first = Workspace::open(&home, &old).unwrap();
        let node = first.place.as_ref().unwrap().node;
        if node.born == 0 {
            eprintln!("skipped: the file system does not tell when a directory was made");
            return;
        }
        std::fs::rename(&old, &new).unwrap();
        let standing = |workspace: &Workspace| {
            Ground::now(std::iter::empty()).standing(&workspace.path, workspace.place.as_ref()).standing
        };
        assert_eq!(standing(&first), Standing::Moved(new.clone()));
        assert_eq!(identity::refuse_adopted(&first).map_err(|error| error.code()), Ok(()));
        let moved = Workspace::open(&home, &new).unwrap();
        assert_eq!((&moved.id, &moved.path, moved.was.as_ref()), (&first.id, &new, Some(&old)));
        assert_eq!(identity::refuse_adopted(&first).unwrap_err().code(), Code::WorkspaceGone);
        assert_eq!(Workspace::open(&home, &new).unwrap(), moved);
        assert!(mishaps::newest(&home).iter().any(|line| line.contains("its history moved with it")));
        // With the directories above it.
        let further = root.join("src/renamed");
        std::fs::rename(root.join("code"), root.join("src")).unwrap();
        assert_eq!(standing(&moved), Standing::Moved(further.clone()));
        assert_eq!(Workspace::open(&home, &further).unwrap().id, first.id);
        // A directory of that name is another one, and so is a copy.
        std::fs::create_dir_all(&old).unwrap();
        assert_ne!(Workspace::open(&home, &old).unwrap().id, first.id);
        // It is not taken from where it still is: a second name, as a mount gives one, proves nothing.
        let there = Workspace::open(&home, &further).unwrap();
        assert!(moved_here(std::slice::from_ref(&there), &old, &further.metadata().unwrap()).is_none());
        std::fs::remove_dir_all(&further).unwrap();
        assert_eq!(standing(&there), Standing::Orphan);
        // Made anew at its place, it is the same workspace, and its place is recorded anew.
        std::fs::create_dir_all(&further).unwrap();
        let anew = Workspace::open(&home, &further).unwrap();
        assert!(anew.id == first.id && anew.place != there.place && standing(&anew) == Standing::Live);
    }
}
