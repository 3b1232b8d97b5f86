//! `piton init`: sets piton up on this machine, after a few questions. With the name of a shell, it prints that shell's script.

mod back;
mod choice;
mod script;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::context::{Context, GlobalArgs, named};
use super::doctor;
use super::exit::{Exit, exit_of};
use super::install::InstallScope;
use super::install::installation::{Direction, Installation};
use super::install::place::GitScope;
use super::print;
use crate::error::Result;
use crate::protocol::InitDocument;
use crate::shell::HookedShell;
use choice::Choice;

/// The arguments of `piton init`.
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// Print the script that the startup file of this shell evaluates [default: set everything up]
    #[arg(value_parser = PossibleValuesParser::new(HookedShell::ALL.map(HookedShell::name)).try_map(|name| HookedShell::named(&name)))]
    pub shell: Option<HookedShell>,
    /// Do not ask; use what was found
    #[arg(long, conflicts_with = "shell")]
    pub yes: bool,
}

/// Refuses to set anything up where there is nobody to ask and no `--yes`. Nothing is made, not even piton's own directory.
///
/// # Errors
/// `bad-request`, with the questions and the answers that `--yes` takes.
pub(super) fn refuse_unasked(global: &GlobalArgs, args: &InitArgs) -> Result<()> {
    if args.shell.is_some() || args.yes || print::has_person() {
        return Ok(());
    }
    // One that is gone is reported by the verb itself.
    let cwd = std::env::current_dir().ok();
    let dir = named(global, cwd.as_deref()).or(cwd).unwrap_or_default();
    Err(Choice::found(&dir)?.unasked())
}

/// Sets piton up, or prints the script of a shell.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn init(context: &Context, args: &InitArgs) -> Result<Exit> {
    if let Some(shell) = args.shell {
        return script::print_script(context, shell);
    }
    let git = GitScope::of(context, false, false);
    let found = Choice::found(&git.dir)?;
    let Some(chosen) = (if args.yes { Some(found) } else { found.asked() }) else {
        print::say("\npiton: nothing was changed");
        return Ok(Exit::Refused);
    };
    set_up(context, &chosen)
}

fn set_up(context: &Context, chosen: &Choice) -> Result<Exit> {
    let mut scope = InstallScope::of(context, false)?;
    scope.git = GitScope::of(context, false, false);
    let mut work = Installation::begin(context, Direction::In, false)?;
    chosen.targets().for_each(|target| work.apply(&scope, target));
    if !context.json {
        print::data(&format!("{}\n", installed(&work, chosen)))?;
    }
    let report = doctor::examine(context);
    if !context.json {
        print::data(&format!("{}\n", doctor::text(&report, false)))?;
    }
    let first = back::first_checkpoint(context);
    let failed = first.as_ref().err().map(exit_of);
    if context.json {
        let (n, back) = first.ok().flatten().map_or((None, None), |first| (Some(first.number), first.command));
        print::json(&InitDocument { files: work.rows.clone(), doctor: doctor::document(&report), n, back })?;
    } else {
        match first {
            Ok(Some(first)) => print::data(&first.text)?,
            Ok(None) => print::data(back::BROAD)?,
            Err(error) => print::say(&format!("piton: no checkpoint could be taken: {}", error.text())),
        }
    }
    Ok(match (work.exit(), failed) {
        (Exit::Done, Some(failed)) => failed,
        (Exit::Done, None) => Exit::Done,
        // The rest of it was done.
        _ => Exit::Part,
    })
}

/// Says what the installation has come to, behind the list of its files.
fn installed(work: &Installation<'_>, chosen: &Choice) -> String {
    let again = "To remove all of it again, run `piton uninstall --all`.\n";
    let is_shells = |name: &str| HookedShell::named(name).is_ok();
    if chosen.targets().next().is_none() {
        "Nothing was chosen, and no file was changed.\n".to_owned()
    } else if work.changed().any(is_shells) {
        format!("Open a new terminal to be protected. Terminals that are open now are not. {again}")
    } else if work.changed().next().is_some() {
        again.to_owned()
    } else if work.exit() == Exit::Done {
        "All of this was installed already; nothing was changed.\n".to_owned()
    } else {
        "Nothing was changed.\n".to_owned()
    }
}
