//! The git door: whether this repository's git asks piton, by whole settings and hooks that nobody has written over, and answers.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::clients::is_this;
use super::git_answers::doubt;
use super::report::{DoctorReport, Surroundings, quoted_path};
use crate::cli::context::Context;
use crate::cli::install::git::{OLDEST, dotted, global_file};
use crate::cli::install::git_hook_link::is_link;
use crate::cli::install::git_hooks::text;
use crate::cli::install::{has_git_doors, place::GIT};
use crate::cli::print;
use crate::doors::protection::{HookFault, SetGit};
use crate::error::{Code, Result};
use crate::git::door::hooks::{ASIDE, GitHook, program_of as program_of_hook, small};
use crate::git::door::{KEY, is_off, is_pitons, program_of, small_of};
use crate::git::users::{UsersFiles, UsersGit, UsersRepository, UsersSetting};
use crate::model::policy::GitAnswers;
use crate::model::text::printable;
use crate::settings;
use crate::sys::process::may_run;

/// The step that puts it in, or mends it.
const INSTALL: &str = "piton install git";

/// The answer that everything may have changed, behind the token.
const EVERYTHING: &[u8] = b"\0/\0";

/// Looks at the git door.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let Some(root) = &at.root else { return };
    let found = match FoundDoor::at(root) {
        Ok(Some(found)) => found,
        Ok(None) => return,
        Err(error) => return report.note(GIT, format!("cannot tell whether it calls piton: {}", error.text())),
    };
    let Some(fault) = found.fault() else {
        match found.values.last() {
            Some(last) if program_of(&last.value).is_some() => {
                works(&found, last, report);
                answers(at.context, &found.repository.top, report);
            }
            Some(last) if !is_off(&last.value) => {
                let shown = match last.value.to_str() {
                    Some("true") => "git's own program".to_owned(),
                    _ => format!("another program ({})", printable(&last.value.to_string_lossy())),
                };
                report.note(GIT, format!("`{KEY}` is already used by {shown}, and piton does not replace it"));
            }
            Some(last) if matches!(last.scope.as_str(), "local" | "worktree") => {
                let file = print::path(&last.file);
                report.note(
                    GIT,
                    format!(
                        "its commands are not guarded: {file} sets `{KEY}` to off. Remove that, then run `{INSTALL}`"
                    ),
                );
            }
            _ => report.note(GIT, format!("its commands are not guarded; to guard them, run `{INSTALL}`")),
        }
        return;
    };
    let text = format!("its commands are not guarded: {}", fault.what);
    if fault.step == INSTALL {
        report.wrong(GIT, text, fault.step);
    } else {
        report.open(GIT, text, fault.step);
    }
}

/// Says of a whole door whether it answers, and which of its parts are missing.
fn works(found: &FoundDoor, last: &UsersSetting, report: &mut DoctorReport) {
    if let Some(what) = slow(&last.value) {
        report.note(GIT, format!("{what}; to write it again, run `{}`", found.step()));
    }
    match tried(&found.repository.top, &last.value) {
        Err(what) => {
            let step = format!("run `{}`; if that does not help, report this message", found.step());
            report.open(GIT, format!("it calls piton but gets no answer: {what}"), step);
        }
        Ok(()) if found.asks_by_hooks() => {
            report.well(GIT, "it calls piton before it destroys files, moves refs or pushes");
        }
        Ok(()) => {
            report.well(GIT, "it calls piton before it destroys files");
            report.note(
                GIT,
                format!("commands that only move refs, and pushes, are not guarded; to guard them, run `{INSTALL}`"),
            );
        }
    }
}

/// Says why the small program of a setting is not as it is to be. Where it is gone, git asks piton itself.
fn slow(value: &OsStr) -> Option<String> {
    let place = small_of(value)?;
    let place = Path::new(&place);
    let is = match text(place) {
        None => "missing",
        there if there == program_of(value).and_then(|program| small(&program)) => return None,
        Some(_) => "of a different build",
    };
    Some(format!("its helper program, which saves it from starting piton each time, is {is} ({})", print::path(place)))
}

/// Says what git is told of changed files, where the settings want the paths.
fn answers(context: &Context, top: &Path, report: &mut DoctorReport) {
    let read = settings::load(Some(top), context.home.path(), &[]);
    // A mistake in the settings is told by their own check.
    if read.map_or(GitAnswers::All, |read| read.policy.git_answers) != GitAnswers::Paths {
        return;
    }
    match doubt(&context.home, top) {
        None => report.well(GIT, "piton lists the changed paths for git"),
        Some(why) => report.note(GIT, format!("piton reports to git that any file might have changed: {why}")),
    }
    let cache = UsersGit::at(top).settings("core.untrackedCache", UsersFiles::All);
    if cache.is_ok_and(|values| values.last().is_none_or(|last| is_off(&last.value))) {
        report.note(GIT, "to spare it the search for new files, run `git config core.untrackedCache true`");
    }
}

/// Asks as git does, and looks at the answer.
fn tried(top: &Path, value: &OsStr) -> std::result::Result<(), String> {
    let line = [value.as_bytes(), b" \"$@\""].concat();
    let mut command = Command::new("sh");
    command.arg("-c").arg(OsStr::from_bytes(&line)).arg(value).args(["2", "piton-doctor"]).current_dir(top);
    match command.stdin(Stdio::null()).output() {
        Err(error) => Err(format!("cannot start sh: {error}")),
        Ok(output) if output.status.success() && output.stdout.ends_with(EVERYTHING) => Ok(()),
        Ok(output) => {
            let says = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("{}: {}", output.status, says.lines().last().unwrap_or("it printed no message")))
        }
    }
}

/// Returns the git door of a directory, if piton has put one in.
pub(crate) fn set_git(context: &Context, root: &Path) -> Option<SetGit> {
    // Without a note of one, git need not be asked.
    if !has_git_doors(&context.home) {
        return None;
    }
    let found = FoundDoor::at(root).ok()??;
    let is_set = found.values.iter().any(|setting| is_pitons(&setting.value)) || found.asks_by_hooks();
    is_set.then(|| SetGit { fault: found.fault() })
}

/// The git door of a repository, as its settings and files have it.
struct FoundDoor {
    repository: UsersRepository,
    /// The values of the setting, the one that counts last.
    values: Vec<UsersSetting>,
    version: Option<(u32, u32)>,
    hooks: Vec<FoundHook>,
}

/// A hook, as it was found.
struct FoundHook {
    hook: GitHook,
    path: PathBuf,
    /// The program that it asks, if it asks piton.
    program: Option<OsString>,
    is_there: bool,
    may_run: bool,
    /// True if piton's script was here, and ran the hook of before.
    has_next: bool,
}

impl FoundDoor {
    /// Reads it; `None` where there is no repository.
    fn at(root: &Path) -> Result<Option<FoundDoor>> {
        let git = UsersGit::at(root);
        // Without a git, nothing of it is to be guarded.
        let Ok(version) = git.version() else { return Ok(None) };
        let repository = match git.repository() {
            Ok(repository) => repository,
            Err(error) if matches!(error.code(), Code::BadPath | Code::WorkspaceRefused) => return Ok(None),
            Err(error) => return Err(error),
        };
        let values = UsersGit::at(&repository.top).settings(KEY, UsersFiles::All)?;
        let hooks = GitHook::ALL.into_iter().map(|hook| FoundHook::of(&repository.hooks, hook)).collect();
        Ok(Some(FoundDoor { repository, values, version, hooks }))
    }

    fn asks_by_hooks(&self) -> bool {
        self.hooks.iter().all(|hook| hook.program.is_some())
    }

    /// Returns what is wrong with a door that piton has put in.
    fn fault(&self) -> Option<HookFault> {
        let is_set = self.values.iter().any(|setting| is_pitons(&setting.value));
        let has_hooks = self.hooks.iter().any(|hook| hook.program.is_some());
        if !is_set && !has_hooks {
            return None;
        }
        let wrong = |what: String, step: String| Some(HookFault { what, step, is_certain: true });
        let again = |what: String| wrong(what, self.step());
        if let Some(version) = self.version.filter(|version| *version < OLDEST) {
            let what = format!("git is version {}, which is too old to call piton", dotted(version));
            return wrong(what, format!("install git {} or later", dotted(OLDEST)));
        }
        match self.values.last() {
            None => return again(format!("`{KEY}` is no longer set")),
            Some(last) if !is_pitons(&last.value) => {
                let (shown, file) = (printable(&last.value.to_string_lossy()), quoted_path(&last.file));
                let what = format!("{file} sets `{KEY}` to `{shown}`");
                let own = self.values.iter().rev().find(|value| is_pitons(&value.value));
                let flag = if own.is_some_and(|own| own.scope == "global") { " --global" } else { "" };
                return wrong(
                    what,
                    format!("remove that setting, or remove piton's with `piton uninstall {GIT}{flag}`"),
                );
            }
            Some(last) => match program_of(&last.value) {
                None => return again(format!("`{KEY}` is incomplete in {}", print::path(&last.file))),
                Some(program) => {
                    if let Some(what) = not_this(&program) {
                        return again(what);
                    }
                }
            },
        }
        // With the setting of all repositories alone, hooks were never put in here.
        let is_here = has_hooks || self.hooks.iter().any(|hook| hook.has_next) || self.is_set_here();
        self.hooks.iter().filter(|_| is_here).find_map(FoundHook::fault).and_then(again)
    }

    /// Returns true if the setting is in the repository's own file.
    fn is_set_here(&self) -> bool {
        self.values.iter().any(|setting| setting.scope == "local" && is_pitons(&setting.value))
    }

    fn step(&self) -> String {
        let is_global = self.values.last().is_some_and(|last| last.scope == "global");
        let is_own =
            is_global && global_file().is_ok_and(|file| self.values.last().is_some_and(|last| last.file == file));
        if is_own { format!("{INSTALL} --global") } else { INSTALL.to_owned() }
    }
}

impl FoundHook {
    fn of(dir: &Path, hook: GitHook) -> FoundHook {
        let path = dir.join(hook.name());
        let text = text(&path);
        FoundHook {
            hook,
            program: text.as_deref().and_then(program_of_hook),
            is_there: path.symlink_metadata().is_ok(),
            may_run: may_run(&path),
            has_next: dir.join(ASIDE).join(hook.name()).symlink_metadata().is_ok(),
            path,
        }
    }

    fn fault(&self) -> Option<String> {
        let (name, shown) = (self.hook.name(), print::path(&self.path));
        match &self.program {
            None if is_link(&self.path) && !self.path.exists() => {
                Some(format!("the program of the hook {name} no longer exists ({shown})"))
            }
            None if self.is_there => Some(format!("another program has replaced the hook {name} ({shown})")),
            None => Some(format!("the hook {name} is missing ({shown})")),
            Some(_) if !self.may_run => {
                Some(format!("git does not run the hook {name}, because it is not executable ({shown})"))
            }
            Some(program) => not_this(program),
        }
    }
}

/// Says why a program is not this one.
fn not_this(program: &OsStr) -> Option<String> {
    let path = Path::new(program);
    let shown = print::path(path);
    if !path.is_file() || !may_run(path) {
        return Some(format!("it calls {shown}, which does not exist or cannot be run"));
    }
    (!is_this(path)).then(|| format!("it calls {shown}, which is a different build of piton"))
}
