//! The places of things, judged by their names alone.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::model::effect::Scope;

/// The surroundings that the classifier may know. Every path is absolute; nothing is ever looked up here.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The directory the action starts in.
    pub cwd: PathBuf,
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// Paths that lead into the workspace through symbolic links, and where they lead.
    pub aliases: Vec<(PathBuf, PathBuf)>,
    /// Directories, and the top of the repository that git finds from there.
    pub tops: Vec<(PathBuf, PathBuf)>,
    /// Files of the workspace that the action runs, with their texts; `None` for one that is not there, or is no short text.
    pub files: Vec<(PathBuf, Option<Arc<str>>)>,
    /// Files that stand where the action would make one.
    pub existing: Vec<PathBuf>,
    /// Directories in which git is told to check out a commit, its name as it was given, and the files that git would replace
    /// without asking: ignored here, and tracked there.
    pub checkouts: Vec<(PathBuf, String, Vec<PathBuf>)>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Directories of temporary files, whose loss does not matter.
    pub temp_dirs: Vec<PathBuf>,
    /// The directories of piton's store and of the user's settings.
    pub piton: Vec<PathBuf>,
}

/// A place, finer than a [`Scope`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    Plain(Scope),
    /// Inside a `.git` of the workspace.
    Repository,
    /// The workspace lies inside it.
    AboveWorkspace,
    /// The home directory itself, or a dotfile in it.
    HomeSettings,
    /// Piton's own store or settings, or something that contains them and is not above the workspace.
    Piton,
}

impl Context {
    /// Returns a path that leads into the workspace, by its name there.
    pub fn own_name(&self, path: PathBuf) -> PathBuf {
        let mut found = self.aliases.iter().filter_map(|(alias, real)| Some((real, path.strip_prefix(alias).ok()?)));
        let own = found.next().map(|(real, rest)| real.components().chain(rest.components()).collect());
        own.unwrap_or(path)
    }

    /// Returns true if something below a path outside of the workspace leads into it.
    pub fn leads_below(&self, path: &Path) -> bool {
        self.aliases.iter().any(|(alias, _)| alias.starts_with(path))
    }

    /// Returns the place of an absolute path.
    pub fn whereabouts(&self, path: &Path) -> Whereabouts {
        if is_device(path) {
            return Whereabouts::Plain(Scope::Device);
        }
        if self.piton.iter().any(|own| path.starts_with(own)) {
            return Whereabouts::Piton;
        }
        if path.starts_with(&self.workspace) {
            return self.inside_workspace(path);
        }
        if self.workspace.starts_with(path) {
            return Whereabouts::AboveWorkspace;
        }
        if self.piton.iter().any(|own| own.starts_with(path)) {
            return Whereabouts::Piton;
        }
        if self.temp_dirs.iter().any(|temp| path.starts_with(temp)) {
            return Whereabouts::Plain(Scope::Temp);
        }
        match self.home.as_deref().map(|home| path.strip_prefix(home)) {
            Some(Ok(rest)) => home_place(rest),
            Some(Err(_)) | None => Whereabouts::Plain(Scope::System),
        }
    }

    fn inside_workspace(&self, path: &Path) -> Whereabouts {
        let inside = path.strip_prefix(&self.workspace).unwrap_or(path);
        let mut parts = inside.components().map(Component::as_os_str).skip_while(|part| *part != ".git").skip(1);
        let in_git = inside.components().any(|part| part.as_os_str() == ".git");
        let harmless = parts.next().is_some_and(|part| part == "hooks" || part == "info");
        if in_git && !harmless { Whereabouts::Repository } else { Whereabouts::Plain(Scope::Workspace) }
    }

    /// Returns a temporary directory, for `mktemp`.
    pub fn temp_dir(&self) -> PathBuf {
        self.temp_dirs.first().cloned().unwrap_or_else(|| PathBuf::from("/tmp"))
    }
}

fn home_place(rest: &Path) -> Whereabouts {
    match rest.components().next() {
        None => Whereabouts::HomeSettings,
        Some(first) if first.as_os_str().as_encoded_bytes().starts_with(b".") => Whereabouts::HomeSettings,
        Some(_) => Whereabouts::Plain(Scope::Home),
    }
}

/// Devices that hold nothing.
fn is_device(path: &Path) -> bool {
    const HARMLESS: [&str; 11] = [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/tty",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/random",
        "/dev/urandom",
        "/dev/ptmx",
        "/dev/console",
    ];
    HARMLESS.iter().any(|device| path == Path::new(device))
        || ["/dev/fd", "/dev/pts", "/dev/shm", "/dev/tcp", "/dev/udp"]
            .iter()
            .any(|directory| path.starts_with(directory))
        || path.starts_with("/proc/self/fd")
}

/// Joins and removes `.` and `..` by name.
pub(super) fn resolve(cwd: &Path, text: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in cwd.join(text).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
        }
    }
    path
}
