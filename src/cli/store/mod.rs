//! `piton store`: all workspaces and their sizes, and the verbs that prune, delete, adopt, clear and move what is stored.

mod clear;
mod relocate;
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::adopt::{AdoptArgs, adopt};
use super::context::Context;
use super::exit::Exit;
use super::pin::{DeleteArgs, delete};
use super::print;
use super::prune::{PruneArgs, prune};
use crate::error::Result;
use crate::model::policy::{Backup, Policy};
use crate::settings;

/// The arguments of `piton store`.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    pub(super) verb: StoreVerb,
}

/// The verbs about the store.
#[derive(Debug, Subcommand)]
pub(super) enum StoreVerb {
    /// Show how much space the store uses, and list its workspaces
    Status,
    /// List all workspaces
    List,
    /// Remove the entire history of the workspace given by --workspace, or of all workspaces
    Clear(ClearArgs),
    /// Move the store to another directory
    Move(MoveArgs),
    /// Drop the checkpoints that retention no longer keeps, in all workspaces, and free the space
    Prune(PruneArgs),
    /// Attach the history of a moved directory to its new location
    Adopt(AdoptArgs),
    /// Delete checkpoints of this workspace
    Delete(DeleteArgs),
}

/// The arguments of `piton store clear`.
#[derive(Debug, Args)]
pub(super) struct ClearArgs {
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

/// The arguments of `piton store move`.
#[derive(Debug, Args)]
pub(super) struct MoveArgs {
    /// The new directory; it must be empty or not exist
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
    match &args.verb {
        StoreVerb::Status => {
            let policy = common_policy(context)?;
            crate::checkpoint::upkeep::relocate::sweep(&context.home)?;
            context.home.tag(policy.backup == Backup::Skip)?;
            status::status(context, &policy)
        }
        StoreVerb::List => status::list(context, &common_policy(context)?),
        StoreVerb::Clear(args) => clear::clear(context, &common_policy(context)?, args.yes),
        StoreVerb::Move(args) => {
            // It reports mistakes in the settings.
            common_policy(context)?;
            relocate::relocate(context, &args.to, args.yes)
        }
        StoreVerb::Prune(args) => prune(context, args),
        StoreVerb::Adopt(args) => adopt(context, args),
        StoreVerb::Delete(args) => delete(context, args),
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
