//! `piton uninstall --all`: takes out all that was installed anywhere. The store stays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::installation::{Direction, Installation};
use super::notes::{GitDoors, HookedProjects};
use super::place::{GIT, InstallScope, Target, home, variable};
use crate::agents::Client;
use crate::checkpoint::{Home, Workspace};
use crate::cli::at_work::ProcessAtWork;
use crate::cli::context::Context;
use crate::cli::daemon::{end_running, ended};
use crate::cli::exit::Exit;
use crate::cli::print;
use crate::error::{IoContext, Result};
use crate::git::door::hooks::GitHook;
use crate::model::text::shell_word;
use crate::protocol::InstallDocument;
use crate::settings::{WORKSPACE_FILE, user_file};
use crate::shell::HookedShell;

/// The name of the rows of units.
const SYSTEMD: &str = "systemd";

/// Takes everything out, ends the daemon, and says where the store is.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn uninstall(context: &Context, dry_run: bool) -> Result<Exit> {
    let user = InstallScope::at(context, home()?, false)?;
    let mut work = Installation::begin(context, Direction::Out, dry_run)?;
    user.clients().for_each(|client| work.apply(&user, Target::Client(client)));
    HookedShell::ALL.into_iter().for_each(|shell| work.apply(&user, Target::Shell(shell)));
    let noted = HookedProjects::of(&context.home);
    let mut absent: Vec<PathBuf> = Vec::new();
    for root in projects(context, &noted, &user.root)? {
        if root.is_dir() {
            let project = InstallScope::at(context, root, true)?;
            project.clients().for_each(|client: Client| work.apply(&project, Target::Client(client)));
        } else if noted.all()?.contains(&root) {
            absent.push(root);
        }
    }
    let absent_projects = absent.clone();
    absent.extend(git_doors_out(context, &mut work)?);
    let dir = unit_dir(&user.root);
    let units = units(&dir);
    for unit in &units {
        if let Err(error) = if dry_run { Ok(()) } else { disable(&dir, unit) } {
            work.fail(SYSTEMD, error);
        }
        work.remove(SYSTEMD, unit);
    }
    let lines_went = work.changed().any(|name| HookedShell::named(name).is_ok());
    if !dry_run {
        noted.keep(&absent_projects)?;
        end_processes(context, &mut work)?;
    }
    if context.json {
        let store = Some(context.home.path().to_string_lossy().into_owned());
        print::json(&InstallDocument { dry_run, files: work.rows.clone(), store })?;
        return Ok(work.exit());
    }
    for root in &absent {
        print::say(&format!(
            "piton: {} has hooks but does not exist now; uninstall again when it is back",
            print::path(root)
        ));
    }
    for unit in units.iter().filter(|_| !dry_run) {
        let name = shell_word(&unit.file_name().unwrap_or_default().to_string_lossy());
        let steps = format!("systemctl --user stop {name} && systemctl --user daemon-reload");
        print::say(&format!("piton: to make systemd forget its unit, run: {steps}"));
    }
    if lines_went && !dry_run {
        print::note("piton: shells that are open now continue to call piton until they end");
    }
    if !dry_run {
        print::data(&remains(context, &work)?)?;
    }
    Ok(work.exit())
}

/// Takes the git door out wherever it was put in, and returns the directories that are not there now.
fn git_doors_out(context: &Context, work: &mut Installation<'_>) -> Result<Vec<PathBuf>> {
    let mut absent: Vec<PathBuf> = Vec::new();
    let mut done: BTreeSet<PathBuf> = BTreeSet::new();
    for path in GitDoors::of(&context.home).all()? {
        let dir = path.parent().unwrap_or(&path);
        // All hooks of a directory are removed together.
        if path.file_name().and_then(GitHook::named).is_some() && !done.insert(dir.to_owned()) {
            continue;
        }
        // Without the directory there is nothing to take out, but a project may be away as a whole.
        if dir.is_dir() || dir.parent().is_some_and(Path::is_dir) {
            work.git_file_out(&path);
        } else {
            absent.push(dir.to_owned());
        }
    }
    if let Err(error) = work.remove_variables_program() {
        work.fail(GIT, error);
    }
    absent.sort();
    // Of a repository that is away, its own directory is named.
    absent.dedup_by(|inner, outer| inner.starts_with(outer));
    Ok(absent)
}

/// Ends each `piton watch`, and the daemon, which such a process would start again. A `piton run` ends with its agent, and is named.
fn end_processes(context: &Context, work: &mut Installation<'_>) -> Result<()> {
    let (runs, others): (Vec<_>, Vec<_>) =
        ProcessAtWork::all(&context.home).into_iter().partition(|process| process.verb == "run");
    for process in others {
        match process.end() {
            Ok(()) if context.json => {}
            Ok(()) => print::data(&format!("`piton {}` (pid {}) has ended.\n", process.verb, process.pid()))?,
            Err(error) => work.fail(&process.verb, error),
        }
    }
    let stopped = end_running(context)?;
    if let Some(pid) = stopped.filter(|_| !context.json) {
        print::data(&ended(pid))?;
    }
    for run in runs {
        print::say(&format!(
            "piton: `piton run` (pid {}) continues until its agent ends, and starts a daemon again until then",
            run.pid()
        ));
    }
    Ok(())
}

/// Returns the directories that may have hooks of projects.
fn projects(context: &Context, noted: &HookedProjects, home: &Path) -> Result<Vec<PathBuf>> {
    let known = Workspace::known(&context.home)?.into_iter().map(|workspace| workspace.path);
    let mut roots: Vec<PathBuf> = known.chain(noted.all()?).collect();
    roots.sort();
    roots.dedup();
    // Below these are the user's own files, or the system's.
    roots.retain(|root| root != home && root != Path::new("/"));
    Ok(roots)
}

/// Returns the directory of this user's units.
fn unit_dir(home: &Path) -> PathBuf {
    let config = variable("XDG_CONFIG_HOME").filter(|dir| dir.is_absolute()).unwrap_or_else(|| home.join(".config"));
    config.join("systemd/user")
}

fn listed(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns the units by which systemd starts piton. A person has put them there, as their head says.
fn units(dir: &Path) -> Vec<PathBuf> {
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("piton"));
    listed(dir).into_iter().filter(|path| named(path) && starts_piton(path)).collect()
}

/// Removes links as `systemctl disable` does: those that enable a unit, and directories of them that are empty then.
fn disable(dir: &Path, unit: &Path) -> Result<()> {
    for wants in listed(dir).into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "wants")) {
        let link = wants.join(unit.file_name().unwrap_or_default());
        if link.is_symlink() {
            std::fs::remove_file(&link).at("removing", &link)?;
            // One with other links stays.
            let _ = std::fs::remove_dir(&wants);
        }
    }
    Ok(())
}

/// Returns true for a unit whose program is piton.
fn starts_piton(unit: &Path) -> bool {
    let text = std::fs::read_to_string(unit).unwrap_or_default();
    let programs = text.lines().filter_map(|line| line.strip_prefix("ExecStart=")?.split_whitespace().next());
    programs.into_iter().any(|program| program.rsplit('/').next() == Some("piton"))
}

/// Lists the files with a person's settings, which are kept.
fn settings_files(context: &Context) -> Result<Vec<PathBuf>> {
    let known = Workspace::known(&context.home)?.into_iter().map(|workspace| workspace.path.join(WORKSPACE_FILE));
    Ok(user_file().into_iter().chain(known).filter(|path| path.is_file()).collect())
}

/// Says what is kept, and how to delete it.
fn remains(context: &Context, work: &Installation<'_>) -> Result<String> {
    let is_news = work.changed().next().is_some();
    let done = if is_news { "Everything else of piton was removed." } else { "There is nothing else of piton here." };
    let store = context.home.path();
    // A store that was moved has left a link in its place.
    let link = Home::place().ok().filter(|place| place.is_symlink());
    let paths: Vec<PathBuf> = std::iter::once(store.to_owned()).chain(link).collect();
    let settings = settings_files(context)?;
    let shown =
        |paths: &[PathBuf]| paths.iter().map(|path| shell_word(&path.to_string_lossy())).collect::<Vec<_>>().join(" ");
    let mut text = format!(
        "{done} The store with all checkpoints is kept: {}\nTo delete it:  rm -rf {}\n",
        print::path(store),
        shown(&paths)
    );
    if !settings.is_empty() {
        add_line!(text, "Settings files are kept too. To delete them:  rm {}", shown(&settings));
    }
    Ok(text)
}
