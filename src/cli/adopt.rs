//! `piton adopt`: the history of a moved directory, and a directory that is a part of another workspace.

use std::path::PathBuf;

use clap::Args;

use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::store::common_policy;
use super::{person, print};
use crate::checkpoint::upkeep::adoption::{Adoption, AdoptionChange};
use crate::error::Result;
use crate::model::text::count;
use crate::protocol::AdoptDocument;

/// The arguments of `piton adopt`.
#[derive(Debug, Args)]
pub(super) struct AdoptArgs {
    /// The directory that owns the history now; with --undo, the directory that received it
    #[arg(value_name = "OLD")]
    pub from: PathBuf,
    /// The directory that receives the history; if it contains OLD, OLD becomes a part of it
    #[arg(value_name = "NEW", required_unless_present = "undo", conflicts_with = "undo")]
    pub to: Option<PathBuf>,
    /// Undo the last adoption of this directory
    #[arg(long)]
    pub undo: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Has a directory adopt a history.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn adopt(context: &Context, args: &AdoptArgs) -> Result<Exit> {
    let policy = common_policy(context)?;
    let at = |path: &PathBuf| context.below_cwd(path);
    let plan = match &args.to {
        Some(to) => Adoption::plan(&context.home, &at(&args.from), &at(to), &policy)?,
        None => Adoption::plan_back(&context.home, &at(&args.from), &policy)?,
    };
    if !context.json {
        print::data(&preview(&plan))?;
    }
    if !args.yes && context.json {
        print::json_as_declared(&document(&plan, false))?;
        return Ok(Exit::Refused);
    }
    person::require("the directory would lose its history")?;
    if !args.yes
        && let Some(exit) = agreed("Adopt")
    {
        return Ok(exit);
    }
    let now = plan.carry_out(&context.home, &policy)?;
    if context.json {
        print::json_as_declared(&document(&plan, true))?;
    } else {
        let undo = match plan.change {
            AdoptionChange::Moves(_) | AdoptionChange::Joins => {
                format!(" To undo it, run `piton store adopt --undo {}`.", print::path(&now.path))
            }
            AdoptionChange::GoesBack | AdoptionChange::Leaves => String::new(),
        };
        print::data(&format!("Done.{undo}\n"))?;
    }
    Ok(Exit::Done)
}

fn preview(plan: &Adoption) -> String {
    let (from, to) = (print::path(&plan.of.path), print::path(&plan.to));
    let checkpoints = count(plan.checkpoints, "checkpoint");
    let mut text = match &plan.change {
        AdoptionChange::Moves(_) => format!("The history of {from} ({checkpoints}) moves to {to}.\n"),
        AdoptionChange::Joins => format!(
            "{from} becomes part of the workspace {to}, which records all further work in it.\n\
             Its own {checkpoints} are kept; to list them, run `piton list --workspace {from}`.\n"
        ),
        AdoptionChange::GoesBack => format!("The history of {from} ({checkpoints}) moves back to {to}.\n"),
        AdoptionChange::Leaves => format!("{from} is a workspace of its own again, with its {checkpoints}.\n"),
    };
    if let AdoptionChange::Moves(Some((_, beside))) = &plan.change
        && *beside > 0
    {
        let beside = count(*beside, "checkpoint");
        add_line!(text, "{to}'s own {beside} are also kept; you can find them by ID.");
        add_line!(text, "Earlier changes there can no longer be undone.");
    }
    if plan.is_split {
        add_line!(text, "{from} still exists, so its next checkpoint starts a new history.");
    }
    text
}

fn document(plan: &Adoption, done: bool) -> AdoptDocument {
    let (change, beside) = match &plan.change {
        AdoptionChange::Moves(there) => ("moves", there.as_ref().map_or(0, |(_, beside)| *beside)),
        AdoptionChange::Joins => ("joins", 0),
        AdoptionChange::GoesBack => ("goes-back", 0),
        AdoptionChange::Leaves => ("leaves", 0),
    };
    AdoptDocument {
        from: plan.of.path.to_string_lossy().into_owned(),
        to: plan.to.to_string_lossy().into_owned(),
        change: change.to_owned(),
        checkpoints: plan.checkpoints,
        beside,
        done,
    }
}
