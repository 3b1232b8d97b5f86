//! The script by which a shell asks piton before a line runs.

use std::ffi::OsStr;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::print;
use crate::error::Result;
use crate::git;
use crate::shell::{HookedShell, READS};
use crate::sys::clock::now_ms;
use crate::sys::process::own_program;

/// Prints the script.
///
/// # Errors
/// When piton's own path is not known.
pub(super) fn print_script(context: &Context, shell: HookedShell) -> Result<Exit> {
    let program = own_path()?;
    let quoted = match shell {
        HookedShell::Fish => git::fish(&program),
        HookedShell::Bash | HookedShell::Zsh => git::sh(&program),
    };
    // A rule of the user's own may be about any word, so that piton has to see every line.
    let has_rules = context.settings().is_ok_and(|settings| !settings.policy.rules_yaml.is_empty());
    let reads = if has_rules { &[][..] } else { READS };
    print::data(&shell.script(&String::from_utf8_lossy(&quoted), &format!("{:x}", now_ms()), reads))?;
    Ok(Exit::Done)
}

/// Returns the path by which piton was called where that is absolute, so that an update behind a link is followed; else
/// the path of its program.
fn own_path() -> Result<std::ffi::OsString> {
    let called = std::env::args_os().next().filter(|name| is_program(name));
    let searched = || {
        let name = std::env::args_os().next()?;
        let paths = std::env::var_os("PATH")?;
        std::env::split_paths(&paths).map(|dir| dir.join(&name).into_os_string()).find(|path| is_program(path))
    };
    if let Some(path) = called.or_else(searched) {
        return Ok(path);
    }
    let own = own_program()?;
    Ok(own.into_os_string())
}

fn is_program(path: &OsStr) -> bool {
    let path = std::path::Path::new(path);
    path.is_absolute() && path.is_file()
}
