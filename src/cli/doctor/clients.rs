//! The agent clients: hooks that are there, of this version, calling a program that is there, which the client itself lets run, and
//! which answer.

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::report::{CheckState, DoctorReport, Mend, Surroundings, quoted_path};
use super::trial::{Called, Scratch};
use crate::agents::Client;
use crate::agents::install::HookFile;
use crate::agents::presence::{HookCall, Presence};
use crate::agents::trust::{Doubt, FileText, Level, SettingsFile, TrustQuestion};
use crate::cli::context::Context;
use crate::cli::install::client_file::ClientFile;
use crate::cli::install::{InstallScope, home, is_there, program, variable};
use crate::cli::print;
use crate::doors::protection::{ClientHooks, HookFault};
use crate::error::Result;
use crate::model::text::count;
use crate::sys::etc::etc;
use crate::sys::process::may_run;

/// Looks at the agent clients.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    let (program, home) = match (program(), home()) {
        (Ok(program), Ok(home)) => (program, home),
        (Err(error), _) | (_, Err(error)) => {
            return report.open("clients", error.text(), "fix this, then run `piton doctor` again");
        }
    };
    let mut scratch = None;
    let mut any = false;
    let user = InstallScope::at(at.context, home.clone(), false);
    // Where the home directory itself is asked about, there is no project.
    let project = at.root.clone().filter(|root| *root != home);
    let project = project.map(|root| InstallScope::at(at.context, root, true)).transpose();
    let (user, project) = match (user, project) {
        (Ok(user), Ok(project)) => (user, project),
        (Err(error), _) | (_, Err(error)) => {
            return report.open("clients", error.text(), "fix this, then run `piton doctor` again");
        }
    };
    for client in Client::ALL {
        let scopes = [Some(&user), project.as_ref()];
        let found: Vec<InstalledHooks<'_>> =
            scopes.into_iter().flatten().map(|scope| InstalledHooks::read(client, scope, &program)).collect();
        let hooked = found.iter().any(InstalledHooks::any);
        any |= hooked || is_there(client, &home);
        if !hooked && is_there(client, &home) {
            let text = format!("{} is installed but has no piton hooks, so it is not guarded", client.title());
            report.wrong(client.name(), text, format!("piton install {}", client.name()));
        }
        for found in found.iter().filter(|found| found.any()) {
            found.judge(at, &mut scratch, report);
        }
    }
    if !any {
        report.note("clients", "no agent client that piton supports was found here");
    }
}

/// Returns the clients with hooks for what happens below `root`, as far as files tell: none is tried. Hooks for the user and for
/// the project count as one.
pub(crate) fn hooked(context: &Context, root: &Path) -> Vec<ClientHooks> {
    // Without a home or a program there are no hooks that this piton could tell of.
    let (Ok(program), Ok(home)) = (program(), home()) else { return Vec::new() };
    let at = Surroundings { context, root: Some(root.to_owned()) };
    let (Ok(user), Ok(project)) =
        (InstallScope::at(context, home.clone(), false), InstallScope::at(context, root.to_owned(), true))
    else {
        return Vec::new();
    };
    let scopes = if root == home { vec![&user] } else { vec![&user, &project] };
    let of_client = |client: Client| {
        let all = scopes.iter().map(|scope| InstalledHooks::read(client, scope, &program));
        let faults: Vec<Option<HookFault>> = all.filter(InstalledHooks::any).map(|hooks| hooks.cause(&at)).collect();
        let fault = faults.iter().cloned().collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().next());
        (!faults.is_empty()).then_some(ClientHooks { client, fault })
    };
    Client::ALL.into_iter().filter_map(of_client).collect()
}

/// The hooks in one client's files of one scope.
struct InstalledHooks<'s> {
    client: Client,
    scope: &'s InstallScope,
    rows: Vec<(HookFile, PathBuf, Result<Presence>)>,
    /// A file that was written for another value of `on_failure`, and is right otherwise.
    other_form: Option<PathBuf>,
}

impl InstalledHooks<'_> {
    fn read<'s>(client: Client, scope: &'s InstallScope, program: &str) -> InstalledHooks<'s> {
        let mut other_form = None;
        let both = scope.files(client).zip(scope.files_for(client, !scope.holds));
        let rows = both.map(|(file, other)| {
            let path = scope.path(&file);
            let there = match ClientFile::read(&path) {
                Ok(there) => there,
                Err(error) => return (file, path, Err(error)),
            };
            let presence = |file: &HookFile| file.presence(client, program, there.text());
            match (presence(&file), presence(&other)) {
                (Ok(Presence::Stale(_)), Ok(Presence::Current(calls))) => {
                    other_form = Some(path.clone());
                    (file, path, Ok(Presence::Current(calls)))
                }
                (found, _) => (file, path, found),
            }
        });
        let rows = rows.collect();
        InstalledHooks { client, scope, rows, other_form }
    }

    /// Returns whether anything of piton's is here, or may be in what cannot be read.
    fn any(&self) -> bool {
        self.rows.iter().any(|(_, _, presence)| !matches!(presence, Ok(Presence::None)))
    }

    fn name(&self) -> String {
        let project = if self.scope.project { " (project)" } else { "" };
        format!("{}{project}", self.client.name())
    }

    fn install(&self) -> String {
        let name = self.client.name();
        if self.scope.project {
            format!("cd {} && piton install --project {name}", quoted_path(&self.scope.root))
        } else {
            format!("piton install {name}")
        }
    }

    /// Returns what is wrong with them, and how to mend it; `None` where they call this program.
    fn fault(&self) -> Option<(String, Mend)> {
        let broken = self.rows.iter().find_map(|(_, path, presence)| Some((path, presence.as_ref().err()?)));
        if let Some((path, error)) = broken {
            let text = format!("{}: {}", print::path(path), error.text());
            return Some((text, Mend::Step(format!("fix that file, then run: {}", self.install()))));
        }
        if let Some(call) = self.calls().into_iter().find(|call| !is_program(Path::new(&call.program))) {
            let text = format!("its hooks call {}, which does not exist or cannot be run", call.program);
            return Some((text, Mend::Command(self.install())));
        }
        if let Some(call) = self.calls().into_iter().find(|call| !is_this(Path::new(&call.program))) {
            let text = format!("its hooks call {}, which is a different build of piton", call.program);
            return Some((text, Mend::Command(self.install())));
        }
        let stale = |presence: &Result<Presence>| matches!(presence, Ok(Presence::None | Presence::Stale(_)));
        if let Some((_, path, _)) = self.rows.iter().find(|(_, _, presence)| stale(presence)) {
            let path = print::path(path);
            let text =
                format!("{path} differs from what this piton writes: some hooks are missing, or call another piton");
            return Some((text, Mend::Command(self.install())));
        }
        let (_, path, _) = self.rows.iter().find(|(file, path, _)| {
            let runs = path.metadata().is_ok_and(|facts| facts.permissions().mode() & 0o100 != 0);
            file.executable() && !runs
        })?;
        let text = format!("{} is not executable, so the client skips it", print::path(path));
        Some((text, Mend::Command(format!("chmod u+x {}", quoted_path(path)))))
    }

    /// Returns why they do not run, and how to mend that; `None` where nothing is known against them.
    fn cause(&self, at: &Surroundings<'_>) -> Option<HookFault> {
        if let Some((what, Mend::Command(step) | Mend::Step(step))) = self.fault() {
            return Some(HookFault { what, step, is_certain: true });
        }
        let doubts = self.doubts(at);
        let certain = doubts.iter().find(|doubt| doubt.is_certain);
        let Doubt { what, step, is_certain } = certain.or(doubts.first())?.clone();
        Some(HookFault { what, step, is_certain })
    }

    fn calls(&self) -> Vec<&HookCall> {
        self.rows.iter().flat_map(|(_, _, presence)| calls(presence)).collect()
    }

    fn judge(&self, at: &Surroundings<'_>, scratch: &mut Option<Scratch>, report: &mut DoctorReport) {
        if let Some((text, mend)) = self.fault() {
            return report.row(self.name(), CheckState::Wrong(mend), format!("not guarded: {text}"));
        }
        let doubts = self.doubts(at);
        let trusted = doubts.is_empty();
        for doubt in doubts {
            let text = if doubt.is_certain { format!("not guarded: {}", doubt.what) } else { doubt.what };
            report.open(self.name(), text, doubt.step);
        }
        if let Some(path) = &self.other_form {
            let (value, does) = match self.scope.holds {
                true => ("hold", "lets actions run"),
                false => ("proceed", "blocks actions"),
            };
            let path = print::path(path);
            let text = format!("`on_failure` is `{value}`, but {path} {does} if piton cannot be run");
            report.wrong(self.name(), text, self.install());
        }
        if let Some(called) = self.called() {
            self.attempt(&called, self.calls().len(), trusted, scratch, report);
        }
    }

    /// Returns what the client itself has against them.
    fn doubts(&self, at: &Surroundings<'_>) -> Vec<Doubt> {
        let Some((_, path, _)) = self.rows.first() else { return Vec::new() };
        let commands: Vec<(String, String)> = self
            .rows
            .iter()
            .flat_map(|(_, _, presence)| calls(presence))
            .filter_map(|call| Some((call.event.clone()?, call.command.clone()?)))
            .collect();
        let Ok(home) = home() else { return Vec::new() };
        let folder = at.root.clone().unwrap_or_default();
        let place = |file: &SettingsFile| match file.level {
            Level::User => file.spot.below(&home, variable),
            Level::Project => file.spot.below(&folder, |_| None),
            Level::System => file.spot.below(&etc(), variable),
        };
        self.client.doubts(&TrustQuestion {
            project: self.scope.project,
            folder: &folder,
            file: &path.canonicalize().unwrap_or_else(|_| path.clone()),
            commands: &commands,
            read: &|file| settings_text(&place(file)),
            shown: &|file| print::path(&place(file)),
            drop_ins: &|file| drop_ins(&place(file)),
            variable: &|name| std::env::var(name).ok(),
        })
    }

    /// Returns how the client calls what comes before an action.
    fn called(&self) -> Option<Called> {
        let event = self.client.fixture("", "/", "")?.event;
        let mut shim = None;
        for (file, path, presence) in &self.rows {
            for call in calls(presence) {
                match (&call.event, &call.command) {
                    (Some(told), Some(_)) if told == event && file.executable() => {
                        return Some(Called::Script(path.clone()));
                    }
                    (Some(told), Some(line)) if told == event => return Some(Called::Line(line.clone())),
                    (None, _) => shim = Some(Called::Program(call.program.clone())),
                    _ => {}
                }
            }
        }
        shim
    }

    fn attempt(
        &self,
        called: &Called,
        hooks: usize,
        trusted: bool,
        scratch: &mut Option<Scratch>,
        report: &mut DoctorReport,
    ) {
        let made = match scratch.take() {
            Some(made) => Ok(made),
            None => Scratch::create(),
        };
        let tried = made.and_then(|made| scratch.insert(made).try_hook(self.client, called));
        match tried {
            Err(error) => {
                let text = format!("not guarded: a test call of its hook failed: {}", error.text());
                report.open(self.name(), text, "fix what the message reports");
            }
            Ok(took) if trusted => {
                let text = format!(
                    "{}; a test call of one of them took a checkpoint in {} ms",
                    count(hooks as u64, "hook"),
                    took.as_millis()
                );
                report.well(self.name(), text);
            }
            Ok(_) => {}
        }
    }
}

fn calls(presence: &Result<Presence>) -> &[HookCall] {
    match presence {
        Ok(Presence::Current(calls) | Presence::Stale(calls)) => calls,
        Ok(Presence::None) | Err(_) => &[],
    }
}

/// Returns the text of a client's settings file.
fn settings_text(path: &Path) -> FileText {
    match std::fs::read_to_string(path) {
        Ok(text) => FileText::Text(text),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => FileText::Missing,
        Err(error) => FileText::Unreadable(error.to_string()),
    }
}

/// Returns the settings files in a directory, by their names. One that cannot be listed is a file that cannot be read.
fn drop_ins(dir: &Path) -> Vec<(String, FileText)> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Vec::new(),
        Err(error) => return vec![(print::path(dir), FileText::Unreadable(error.to_string()))],
    };
    let is_shown = |name: &str| name.ends_with(".json") && !name.starts_with('.');
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| is_shown(&name.to_string_lossy())));
    paths.sort();
    paths.iter().map(|path| (print::path(path), settings_text(path))).collect()
}

fn is_program(path: &Path) -> bool {
    path.is_file() && may_run(path)
}

/// Returns whether a program is the running one.
pub(super) fn is_this(path: &Path) -> bool {
    let place = |path: &Path| path.metadata().map(|facts| (facts.dev(), facts.ino()));
    let here = std::env::current_exe().and_then(|here| place(&here));
    // A program that is gone, on either side, is not the same.
    here.is_ok_and(|here| place(path).is_ok_and(|there| there == here))
}
