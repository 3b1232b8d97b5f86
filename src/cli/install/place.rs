//! The place of an installation: the directories of clients and shells, and the program that they are to call.

use std::path::{Path, PathBuf};

use crate::agents::Client;
use crate::agents::install::HookFile;
use crate::cli::context::Context;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::policy::OnFailure;
use crate::shell::HookedShell;

/// The name of the git door on the command line, and of its rows.
pub(crate) const GIT: &str = "git";

/// The place of a git door.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitScope {
    /// A directory of the repository.
    pub dir: PathBuf,
    /// True for the setting of all repositories.
    pub global: bool,
    /// True if hooks that are committed or shared may be changed unasked.
    pub yes: bool,
}

impl GitScope {
    /// Returns that of a call.
    pub(crate) fn of(context: &Context, global: bool, yes: bool) -> GitScope {
        let dir = context.named_workspace().unwrap_or_else(|| context.below_cwd(Path::new("")));
        GitScope { dir, global, yes }
    }
}

/// The place of the files of this call.
pub(crate) struct InstallScope {
    pub(crate) root: PathBuf,
    pub(crate) project: bool,
    /// True if the settings want that an action waits when piton fails.
    pub(crate) holds: bool,
    /// The place of the git door.
    pub(crate) git: GitScope,
}

impl InstallScope {
    /// Returns the scope of a call: the user's home, or a project.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(crate) fn of(context: &Context, project: bool) -> Result<InstallScope> {
        let root = if project { context.root()? } else { home()? };
        // Notes of a project find it again under its real name alone.
        let root = if project { root.canonicalize().unwrap_or(root) } else { root };
        InstallScope::at(context, root, project)
    }

    /// Returns the scope whose files lie below a directory.
    ///
    /// # Errors
    /// Mistakes on the command line.
    pub(crate) fn at(context: &Context, root: PathBuf, project: bool) -> Result<InstallScope> {
        // Hooks for the user are there in each workspace, so no single one's settings count for them.
        let on_failure = context.on_failure(project.then_some(root.as_path()))?;
        Ok(InstallScope {
            git: GitScope { dir: root.clone(), ..GitScope::default() },
            root,
            project,
            holds: on_failure == OnFailure::Hold,
        })
    }

    /// Returns a client's files, as this version writes them here.
    pub(crate) fn files(&self, client: Client) -> impl Iterator<Item = HookFile> {
        self.files_for(client, self.holds)
    }

    /// Returns a client's files, as they are where an action waits when piton fails, or goes on.
    pub(crate) fn files_for(&self, client: Client, holds: bool) -> impl Iterator<Item = HookFile> {
        client.files(self.project).iter().map(move |file| if holds { file.holding() } else { *file })
    }

    /// Returns the clients that have files here.
    pub(super) fn clients(&self) -> impl Iterator<Item = Client> {
        let project = self.project;
        Client::ALL.into_iter().filter(move |client| !client.files(project).is_empty())
    }

    /// Returns the path of a file of an installation.
    pub(crate) fn path(&self, file: &HookFile) -> PathBuf {
        file.spot.below(&self.root, variable)
    }
}

/// Returns the user's home directory.
///
/// # Errors
/// Returns the error of what could not be done.
pub(crate) fn home() -> Result<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
        Error::new(Code::BadPath, "the home directory is unknown")
            .hint("set HOME to an absolute path, or use --project")
    })
}

/// Returns a path from a variable of the environment.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the programs of that name on the path.
pub(crate) fn on_path(name: &str) -> impl Iterator<Item = PathBuf> {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&dirs).filter(|dir| dir.is_absolute()).collect();
    let name = name.to_owned();
    dirs.into_iter().map(move |dir| dir.join(&name)).filter(|path| path.is_file())
}

/// Returns the word by which a shell calls this program: `piton` where that leads here, else the path.
///
/// # Errors
/// As [`program`].
pub(crate) fn word() -> Result<String> {
    let program = program()?;
    let is_first = on_path("piton").next().is_some_and(|first| first.as_os_str() == program.as_str());
    Ok(if is_first { "piton".to_owned() } else { program })
}

/// Returns whether a client is on this machine.
pub(crate) fn is_there(client: Client, home: &Path) -> bool {
    client.directory().below(home, variable).is_dir() || on_path(client.program()).next().is_some()
}

/// Returns the path that hooks call: the one on the path if it leads here, which stays right when piton is renewed.
pub(crate) fn program() -> Result<String> {
    let here = std::env::current_exe().at("finding", "piton itself")?;
    let same = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == here);
    let path = on_path("piton").find(same).unwrap_or(here);
    let name = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("piton"));
    match path.to_str().filter(|path| name && !path.contains(['\n', '\r'])) {
        Some(path) => Ok(path.to_owned()),
        None => Err(Error::new(Code::BadPath, "hooks cannot call piton by this path")
            .path(&path)
            .hint("move it to a UTF-8 path without line breaks, and name it `piton`")),
    }
}

/// A client or a shell, by its name, or git.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Client(Client),
    Shell(HookedShell),
    Git,
}

impl Target {
    /// Returns the client or shell of a name.
    ///
    /// # Errors
    /// `bad-request` with the names of clients.
    pub(super) fn named(name: &str) -> Result<Target> {
        match HookedShell::named(name) {
            _ if name == GIT => Ok(Target::Git),
            Ok(shell) => Ok(Target::Shell(shell)),
            Err(_) => Ok(Target::Client(Client::named(name)?)),
        }
    }

    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Target::Client(client) => client.name(),
            Target::Shell(shell) => shell.name(),
            Target::Git => GIT,
        }
    }
}
