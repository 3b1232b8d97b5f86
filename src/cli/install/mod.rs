//! `piton install` and `uninstall`: hooks in agent clients. The module `agents` decides the contents; here files are
//! read, replaced and backed up. All files of a client are worked out before the first one is written.

mod backups;
pub(super) mod client_file;

use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::exit::{Exit, exit_of};
use super::print;
use crate::agents::Client;
use crate::agents::install::HookFile;
use crate::error::{Code, Error, IoContext, Result};
use crate::protocol::{ClientItem, ClientsDocument, InstallDocument, InstallItem, InstallOutcome, spelling};
use crate::store::between;
use client_file::{ClientFile, Made};

/// The arguments of `piton install` and `piton uninstall`.
#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// Clients by name [default: list them]
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<String>,
    /// All clients that are found
    #[arg(long, conflicts_with = "clients")]
    pub all: bool,
    /// For this project alone
    #[arg(long, conflicts_with = "user")]
    pub project: bool,
    /// For the user [default]
    #[arg(long)]
    pub user: bool,
    /// Only show what would be changed
    #[arg(long)]
    pub dry_run: bool,
}

/// The direction of an installation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

/// One file and what is to become of it.
struct FileChange {
    file: HookFile,
    there: ClientFile,
    /// Nothing: it goes.
    after: Option<String>,
}

impl FileChange {
    fn changes(&self) -> bool {
        self.there.text() != self.after.as_deref()
    }

    fn outcome(&self) -> InstallOutcome {
        match (self.there.text(), &self.after) {
            _ if !self.changes() => InstallOutcome::Unchanged,
            (None, _) => InstallOutcome::Created,
            (Some(_), Some(_)) => InstallOutcome::Changed,
            (Some(_), None) => InstallOutcome::Removed,
        }
    }
}

/// Puts hooks into clients.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn install(context: &Context, args: &InstallArgs) -> Result<Exit> {
    run(context, args, Direction::In)
}

/// Takes hooks out of clients.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn uninstall(context: &Context, args: &InstallArgs) -> Result<Exit> {
    run(context, args, Direction::Out)
}

/// The place of the files of this call.
pub(super) struct InstallScope {
    pub(super) root: PathBuf,
    pub(super) project: bool,
}

impl InstallScope {
    /// Returns the scope of a call: the user's home, or a project.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn of(context: &Context, project: bool) -> Result<InstallScope> {
        let root = if project { context.root()? } else { home()? };
        Ok(InstallScope { root, project })
    }

    /// Returns the clients that have files here.
    fn clients(&self) -> impl Iterator<Item = Client> {
        let project = self.project;
        Client::ALL.into_iter().filter(move |client| !client.files(project).is_empty())
    }

    /// Returns the path of a file of an installation.
    pub(super) fn path(&self, file: &HookFile) -> PathBuf {
        file.spot.below(&self.root, variable)
    }
}

/// Returns the user's home directory.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn home() -> Result<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
        Error::new(Code::BadPath, "no home directory is known").hint("set HOME to an absolute path, or use --project")
    })
}

/// Returns a path from a variable of the environment.
pub(super) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the programs of that name on the path.
fn on_path(name: &str) -> impl Iterator<Item = PathBuf> {
    let dirs = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&dirs).filter(|dir| dir.is_absolute()).collect();
    let name = name.to_owned();
    dirs.into_iter().map(move |dir| dir.join(&name)).filter(|path| path.is_file())
}

/// Returns whether a client is on this machine.
pub(super) fn is_there(client: Client, home: &Path) -> bool {
    client.directory().below(home, variable).is_dir() || on_path(client.program()).next().is_some()
}

/// Returns the path that hooks call: the one on the path if it leads here, which stays right when piton is renewed.
pub(super) fn program() -> Result<String> {
    let here = std::env::current_exe().at("finding", "piton itself")?;
    let same = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == here);
    let path = on_path("piton").find(same).unwrap_or(here);
    let name = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("piton"));
    match path.to_str().filter(|path| name && !path.contains(['\n', '\r'])) {
        Some(path) => Ok(path.to_owned()),
        None => Err(Error::new(Code::BadPath, "hooks cannot call piton by this path")
            .path(&path)
            .hint("put it where the path is plain text, under the name `piton`")),
    }
}

fn run(context: &Context, args: &InstallArgs, direction: Direction) -> Result<Exit> {
    let scope = InstallScope::of(context, args.project)?;
    let clients: Vec<Client> = match (args.all, direction) {
        (true, Direction::Out) => scope.clients().collect(),
        (true, Direction::In) => {
            let home = home()?;
            scope.clients().filter(|client| is_there(*client, &home)).collect()
        }
        (false, _) => args.clients.iter().map(|name| Client::named(name)).collect::<Result<_>>()?,
    };
    if clients.is_empty() {
        return list(context, &scope, args.all);
    }
    let program = program()?;
    let (mut rows, mut failed, mut worked) = (Vec::new(), None, false);
    for client in clients {
        match one(context, &scope, client, &program, direction, args.dry_run) {
            Ok(done) => {
                worked = true;
                rows.extend(done);
            }
            Err(error) => {
                rows.push(InstallItem {
                    client: client.name().to_owned(),
                    done: InstallOutcome::Failed,
                    path: None,
                    code: Some(error.code().into()),
                    message: Some(error.text()),
                });
                print::say(&format!("piton: {}: {}", client.name(), error.text()));
                failed.get_or_insert(error);
            }
        }
    }
    if context.json {
        print::json(&InstallDocument { dry_run: args.dry_run, files: rows })?;
    }
    Ok(match failed {
        None => Exit::Done,
        Some(_) if worked => Exit::Part,
        Some(error) => exit_of(&error),
    })
}

/// Says which clients there are, if none was named or found.
fn list(context: &Context, scope: &InstallScope, all: bool) -> Result<Exit> {
    let home = home()?;
    let mut text = String::new();
    let mut rows = Vec::new();
    for client in Client::ALL {
        let is_there = is_there(client, &home);
        let installed = client.files(scope.project).iter().any(|file| {
            let text = ClientFile::read(&scope.path(file)).ok().and_then(|there| there.text().map(str::to_owned));
            text.is_some_and(|text| file.remove(client, &text).is_ok_and(|without| without.as_deref() != Some(&text)))
        });
        let state = if installed {
            "hooks"
        } else if is_there {
            "found"
        } else {
            "not found"
        };
        add_line!(text, "{:<14} {state:<10} {}", client.name(), client.title());
        rows.push(ClientItem { client: client.name().to_owned(), found: is_there, hooks: installed });
    }
    if context.json {
        print::json(&ClientsDocument { clients: rows })?;
    } else {
        print::data(&text)?;
        let hint = if all { "no client was found; name one" } else { "name clients, or use --all" };
        print::say(&format!("piton: nothing was done: {hint}"));
    }
    Ok(Exit::Nothing)
}

/// One client: everything is worked out, then written.
fn one(
    context: &Context,
    scope: &InstallScope,
    client: Client,
    program: &str,
    direction: Direction,
    dry_run: bool,
) -> Result<Vec<InstallItem>> {
    let files = client.files(scope.project);
    if files.is_empty() {
        return Err(Error::new(Code::BadRequest, format!("{} has no hooks of single projects", client.title()))
            .hint("install it for the user: without --project"));
    }
    let mut steps = Vec::new();
    for file in files {
        let path = scope.path(file);
        let there = ClientFile::read(&path)?;
        let after = match (direction, there.text()) {
            (Direction::In, text) => Some(file.merge(client, program, text).map_err(|error| error.path(&path))?),
            (Direction::Out, None) => None,
            (Direction::Out, Some(text)) => file.remove(client, text).map_err(|error| error.path(&path))?,
        };
        steps.push(FileChange { file: *file, there, after });
    }
    let mut rows = Vec::new();
    for step in &steps {
        let path = step.there.path();
        rows.push(InstallItem {
            client: client.name().to_owned(),
            done: step.outcome(),
            path: Some(path.to_string_lossy().into_owned()),
            code: None,
            message: None,
        });
        if dry_run {
            show(context, step)?;
            continue;
        }
        write(context, scope, step)?;
        if !context.json && (step.changes() || direction == Direction::In) {
            print::data(&format!("{:<9} {:<14} {}\n", spelling(&step.outcome()), client.name(), print::path(path)))?;
        }
    }
    if direction == Direction::In
        && let Some(advice) = client.advice()
    {
        print::say(&format!("piton: {advice}"));
    }
    Ok(rows)
}

fn show(context: &Context, step: &FileChange) -> Result<()> {
    if context.json || !step.changes() {
        return Ok(());
    }
    let name = step.there.path().to_string_lossy().into_owned();
    let (before, after) = (step.there.text().map(str::as_bytes), step.after.as_deref().map(str::as_bytes));
    let patch = between(before, after, name.trim_start_matches('/').as_bytes())?;
    print::data(&print::patch(&print::harmless(&patch.text)))
}

fn write(context: &Context, scope: &InstallScope, step: &FileChange) -> Result<()> {
    if !step.changes() {
        return Ok(());
    }
    let made = Made::of(&context.home);
    match &step.after {
        Some(text) => {
            let mode = match (scope.project, step.file.executable()) {
                (false, false) => 0o600,
                (false, true) => 0o700,
                (true, false) => 0o644,
                (true, true) => 0o755,
            };
            step.there.replace(&context.home, &made, text, mode)
        }
        None => step.there.remove(&context.home, &made),
    }
}
