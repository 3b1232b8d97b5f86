//! `piton install` and `uninstall`: hooks in agent clients, the line in the startup files of shells, and the git door. The modules
//! `agents`, `shell` and `git/door` decide the contents; here files are read, replaced and backed up.

mod backups;
pub(super) mod client_file;
mod everything;
pub(super) mod git;
pub(super) mod git_hook_link;
pub(super) mod git_hooks;
pub(super) mod installation;
mod notes;
pub(super) mod place;
pub(super) mod startup;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::agents::Client;
use crate::checkpoint::Home;
use crate::error::{Code, Error, Result};
use crate::protocol::{ClientItem, ClientsDocument, InstallDocument};
use client_file::ClientFile;
use installation::{Direction, Installation};
use place::{GIT, GitScope};
pub(super) use place::{InstallScope, Target, home, is_there, program, variable, word};

/// The arguments of `piton install` and `piton uninstall`.
#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    /// Clients or shells by name, or git for this repository [default: list the clients]
    #[arg(value_name = "CLIENT|SHELL|git")]
    pub clients: Vec<String>,
    /// All clients that were found; for uninstall, everything of piton except its store
    #[arg(long, conflicts_with = "clients")]
    pub all: bool,
    /// Only for this project
    #[arg(long, conflicts_with = "user")]
    pub project: bool,
    /// For the user [default]
    #[arg(long)]
    pub user: bool,
    /// For git: install for all repositories of the user
    #[arg(long)]
    pub global: bool,
    /// For git: change hooks that are committed or shared with other repositories, without asking
    #[arg(long)]
    pub yes: bool,
    /// Only show what would be changed
    #[arg(long)]
    pub dry_run: bool,
}

/// Returns true if git was made to ask piton anywhere.
pub(super) fn has_git_doors(home: &Home) -> bool {
    notes::GitDoors::of(home).all().is_ok_and(|paths| !paths.is_empty())
}

/// Puts hooks into clients, and the line into startup files of shells.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn install(context: &Context, args: &InstallArgs) -> Result<Exit> {
    run(context, args, Direction::In)
}

/// Takes hooks out of clients, and the line out of startup files; with `--all`, everything that was installed anywhere.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn uninstall(context: &Context, args: &InstallArgs) -> Result<Exit> {
    if args.all && !args.project && !args.user {
        return everything::uninstall(context, args.dry_run);
    }
    run(context, args, Direction::Out)
}

fn run(context: &Context, args: &InstallArgs, direction: Direction) -> Result<Exit> {
    if (args.global || args.yes) && !args.clients.iter().any(|name| name == GIT) {
        return Err(Error::new(Code::BadRequest, "--global and --yes apply only to git")
            .hint("add `git`, as in `piton install git`"));
    }
    let mut scope = InstallScope::of(context, args.project)?;
    scope.git = GitScope::of(context, args.global, args.yes);
    let targets: Vec<Target> = match (args.all, direction) {
        (true, Direction::Out) => scope.clients().map(Target::Client).collect(),
        (true, Direction::In) => {
            let home = home()?;
            scope.clients().filter(|client| is_there(*client, &home)).map(Target::Client).collect()
        }
        (false, _) => args.clients.iter().map(|name| Target::named(name)).collect::<Result<_>>()?,
    };
    if targets.is_empty() {
        return list(context, &scope, args.all);
    }
    let mut work = Installation::begin(context, direction, args.dry_run)?;
    for target in targets {
        work.apply(&scope, target);
    }
    if context.json {
        print::json(&InstallDocument { dry_run: args.dry_run, files: work.rows.clone(), store: None })?;
    }
    Ok(work.exit())
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
        let hint =
            if all { "no client was found; give the name of one" } else { "give the names of clients, or use --all" };
        print::say(&format!("piton: nothing was done: {hint}"));
    }
    Ok(Exit::Nothing)
}
