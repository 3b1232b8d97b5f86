//! `piton env`: variables by which a shell's own git works on the view.

use std::ffi::OsStr;
use std::io::Write;

use clap::{Args, ValueEnum};

use super::context::Context;
use super::exit::Exit;
use super::print;
use super::view::{prepare_index, up_to_date};
use crate::checkpoint::remote::view::variables;
use crate::error::{IoContext, Result};
use crate::git::{self};

/// Variables of the caller that would lead git elsewhere; those that are set stand in [`variables`].
const ASTRAY: &[&str] = &[
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
];

/// The arguments of `piton env`.
#[derive(Debug, Args)]
pub(super) struct EnvArgs {
    /// The shell to print the variables for
    #[arg(long, value_enum, default_value_t = Shell::Sh)]
    pub shell: Shell,
}

/// The shell whose syntax is printed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Shell {
    /// Any shell with Bourne's syntax
    #[value(alias = "bash", alias = "zsh")]
    Sh,
    Fish,
}

/// Runs `piton env`: prints lines for a shell to evaluate, so that its git works on the view.
///
/// # Errors
/// Returns the errors of making the view, and an error when there is no git.
pub(super) fn env(context: &Context, args: &EnvArgs) -> Result<Exit> {
    let view = up_to_date(context)?;
    if view.work_tree.is_dir() {
        prepare_index(context, &view)?;
    }
    let variables = variables(&view);
    if context.json {
        let map: serde_json::Map<String, serde_json::Value> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_string_lossy().into_owned().into()))
            .collect();
        print::json(&map)?;
        return Ok(Exit::Done);
    }
    let mut text = Vec::new();
    let names: Vec<&str> = variables.iter().map(|(name, _)| *name).collect();
    match args.shell {
        Shell::Sh => {
            for (name, value) in &variables {
                line(&mut text, &format!("export {name}="), &git::sh(value));
            }
            line(&mut text, "unset ", ASTRAY.join(" ").as_bytes());
            line(&mut text, "# to leave: unset ", names.join(" ").as_bytes());
        }
        Shell::Fish => {
            for (name, value) in &variables {
                line(&mut text, &format!("set -gx {name} "), &git::fish(value));
            }
            ASTRAY.iter().for_each(|name| line(&mut text, "set -e ", name.as_bytes()));
            line(&mut text, "# to leave: set -e ", names.join(" ").as_bytes());
        }
    }
    match std::io::stdout().write_all(&text) {
        // The reader has closed the pipe and wants no more.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        written => written.at("writing", OsStr::new("stdout")).map(|()| Exit::Done),
    }
}

fn line(text: &mut Vec<u8>, start: &str, rest: &[u8]) {
    text.extend_from_slice(start.as_bytes());
    text.extend_from_slice(rest);
    text.push(b'\n');
}
