//! `piton store`: all workspaces and what they take, whole histories that go, and another place for all of it.

mod clear;
mod relocate;
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::error::Result;
use crate::model::policy::{Backup, Policy};
use crate::settings;

/// The arguments of `piton store`.
#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    verb: StoreVerb,
}

/// The verbs about the store.
#[derive(Debug, Subcommand)]
enum StoreVerb {
    /// Show what the store takes, and the workspaces in it
    Status,
    /// List all workspaces
    List,
    /// Remove whole histories: that of --workspace, or all
    Clear(ClearArgs),
    /// Move the store to another directory
    Move(MoveArgs),
}

/// The arguments of `piton store clear`.
#[derive(Debug, Args)]
struct ClearArgs {
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

/// The arguments of `piton store move`.
#[derive(Debug, Args)]
struct MoveArgs {
    /// The new directory: one that does not exist, or is empty
    #[arg(value_name = "DIR")]
    to: PathBuf,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Works on the store as a whole.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn store(context: &mut Context, args: &StoreArgs) -> Result<Exit> {
    let policy = common_policy(context)?;
    match &args.verb {
        StoreVerb::Status => {
            crate::checkpoint::upkeep::relocate::sweep(&context.home)?;
            context.home.tag(policy.backup == Backup::Skip)?;
            status::status(context, &policy)
        }
        StoreVerb::List => status::list(context, &policy),
        StoreVerb::Clear(args) => clear::clear(context, &policy, args.yes),
        StoreVerb::Move(args) => relocate::relocate(context, &args.to, args.yes),
    }
}

/// Returns the settings that are those of no workspace.
///
/// # Errors
/// Mistakes on the command line; those of files are warned of.
pub(super) fn common_policy(context: &Context) -> Result<Policy> {
    let common = settings::load(None, context.home.path(), &context.flags)?;
    if let Some(typed) = common.mistakes.iter().find(|mistake| mistake.is_typed()) {
        return Err(typed.error());
    }
    common.faults().iter().for_each(|fault| print::warning(fault));
    Ok(common.policy)
}
