//! The shells: whether a startup file has piton's line, whether the program that it calls is there, and which policies cannot be held.

use std::path::Path;

use super::clients::is_this;
use super::report::{DoctorReport, Surroundings};
use crate::cli::install::home;
use crate::cli::install::startup::{StartupFiles, called};
use crate::cli::print;
use crate::doors::protection::{HookFault, SetShell};
use crate::error::Result;
use crate::model::effect::Stance;
use crate::model::policy::OnFailure;
use crate::settings::Effective;
use crate::shell::HookedShell;
use crate::shell::line::SetupLine;

/// Looks at the shells.
pub(super) fn check(at: &Surroundings<'_>, report: &mut DoctorReport) {
    for shell in HookedShell::ALL {
        let name = shell.name();
        let files = match StartupFiles::of(shell) {
            Ok(files) => files,
            Err(error) => {
                report.note(name, error.text());
                continue;
            }
        };
        match line_of(&files) {
            Err(error) => report.note(name, format!("cannot tell whether it calls piton: {}", error.text())),
            Ok(Some((place, _, None))) => {
                report
                    .well(name, format!("{place} sets up piton, so commands that might destroy something are guarded"));
                limits(at, shell, report);
            }
            Ok(Some((place, _, Some(fault)))) => {
                let text = format!("commands typed in it are not guarded: {place}: {}", fault.what);
                if fault.step.starts_with("piton ") {
                    report.wrong(name, text, fault.step);
                } else {
                    report.open(name, text, fault.step);
                }
            }
            Ok(None) if files.is_there() => {
                report.note(
                    name,
                    format!("commands typed in it are not guarded; to guard them, run `piton install {name}`"),
                );
            }
            Ok(None) => {}
        }
    }
}

/// Returns the shells with a line, as far as files tell.
pub(crate) fn set_shells() -> Vec<SetShell> {
    let set = |shell: HookedShell| {
        let (_, _, fault) = line_of(&StartupFiles::of(shell).ok()?).ok()??;
        Some(SetShell { shell, fault })
    };
    HookedShell::ALL.into_iter().filter_map(set).collect()
}

/// Returns the place of a shell's line, the line, and what is wrong with it. Of several, one with nothing wrong.
fn line_of(files: &StartupFiles) -> Result<Option<(String, SetupLine, Option<HookFault>)>> {
    let lines = files.lines()?.into_iter().map(|(path, line)| {
        let fault = fault(files.shell, &path, &line);
        (print::path(&path), line, fault)
    });
    Ok(lines.min_by_key(|(_, _, fault)| fault.is_some()))
}

fn fault(shell: HookedShell, path: &Path, line: &SetupLine) -> Option<HookFault> {
    let step = match line.is_own {
        true => format!("piton install {}", shell.name()),
        false => format!("change line {} of {} so that it calls piton by its path", line.number, print::path(path)),
    };
    let what = match called(&line.program) {
        Ok(None) => return None,
        Ok(Some(program)) if is_this(&program) => return None,
        Ok(Some(program)) => format!("it calls {}, which is a different build of piton", program.display()),
        Err(error) => error.fact(),
    };
    Some(HookFault { what, step, is_certain: true })
}

/// Notes what a shell cannot do, and where it does not read its file.
fn limits(at: &Surroundings<'_>, shell: HookedShell, report: &mut DoctorReport) {
    // Errors of settings are told by another check.
    let held = at.context.settings().map(|settings| held(&settings)).unwrap_or_default();
    let held = if held.is_empty() { String::new() } else { format!(" (in force: {})", held.join(", ")) };
    let text = match shell {
        HookedShell::Fish => Some(
            "it cannot cancel a command. If a policy denies a command or needs an answer, piton warns and the command \
             still runs",
        ),
        HookedShell::Bash if !held.is_empty() => {
            Some("a command that its history leaves out always runs, even if a policy denies it")
        }
        HookedShell::Bash | HookedShell::Zsh => None,
    };
    if let Some(text) = text {
        report.note(shell.name(), format!("{text}{held}"));
    }
    if shell == HookedShell::Bash
        && let Some(text) = login_shells()
    {
        report.note(shell.name(), text);
    }
}

/// Returns the settings by which a line may be held.
fn held(settings: &Effective) -> Vec<String> {
    let classes = settings.policy.classes.iter().map(|rule| (rule.class.as_str(), rule.answer));
    let all = classes.chain([("collision", Some(settings.policy.collision))]);
    let asked = all.filter_map(|(name, answer)| match answer {
        Some(Stance::Ask) => Some(format!("{name}: ask")),
        Some(Stance::Deny) => Some(format!("{name}: deny")),
        Some(Stance::Allow | Stance::Warn) | None => None,
    });
    let mut held: Vec<String> = asked.collect();
    if settings.policy.on_failure == OnFailure::Hold {
        held.push("on_failure: hold".to_owned());
    }
    held
}

/// Says whether login shells of bash pass over `.bashrc`: they read the first of three other files.
fn login_shells() -> Option<String> {
    let home = home().ok()?;
    let mut profiles = [".bash_profile", ".bash_login", ".profile"].map(|name| home.join(name)).into_iter();
    let profile = profiles.find(|path| path.is_file())?;
    let text = std::fs::read(&profile).ok()?;
    if text.windows(6).any(|part| part == b"bashrc") || text.windows(10).any(|part| part == b"piton init") {
        return None;
    }
    let shown = print::path(&profile);
    Some(format!("its login shells are not guarded: they read {shown}, which does not read .bashrc"))
}
