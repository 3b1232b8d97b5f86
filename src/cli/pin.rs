//! `piton pin` and `piton store delete`: checkpoints that stay, and some that do not.

use clap::Args;

use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::person;
use super::print;
use crate::checkpoint::Checkpoint;
use crate::doors::replies;
use crate::error::Result;
use crate::model::text::printable;
use crate::sys::interrupt::Flow;

/// The arguments of `piton pin`.
#[derive(Debug, Args)]
pub(super) struct PinArgs {
    /// The checkpoints, by number, id or label
    #[arg(required = true, value_name = "ID")]
    pub checkpoints: Vec<String>,
    /// Unpin the checkpoints instead
    #[arg(long)]
    pub remove: bool,
}

/// The arguments of `piton unpin`.
#[derive(Debug, Args)]
pub(super) struct UnpinArgs {
    /// The checkpoints, by number, id or label
    #[arg(required = true, value_name = "ID")]
    pub checkpoints: Vec<String>,
}

/// The arguments of `piton delete`.
#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// The checkpoints, by number, id or label
    #[arg(required = true, value_name = "ID")]
    pub checkpoints: Vec<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
}

/// Pins checkpoints, or unpins them.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn pin(context: &mut Context, args: &PinArgs) -> Result<Exit> {
    match args.remove {
        true => remove(context, &args.checkpoints),
        false => put(context, &args.checkpoints, true),
    }
}

/// Unpins checkpoints.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn unpin(context: &mut Context, args: &UnpinArgs) -> Result<Exit> {
    remove(context, &args.checkpoints)
}

fn remove(context: &mut Context, selectors: &[String]) -> Result<Exit> {
    person::require("retention can delete an unpinned checkpoint, which cannot be restored then")?;
    put(context, selectors, false)
}

fn put(context: &mut Context, selectors: &[String], pinned: bool) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let named = timeline.catalog().chosen(selectors)?;
    let news = timeline.pin(&named, pinned)?;
    if context.json {
        print::json_as_declared(&replies::chosen(&named, &|id| news.contains(id)))?;
    } else {
        let (done, before) = if pinned { ("Pinned", "Pinned already") } else { ("Unpinned", "Not pinned") };
        let line =
            |one: &Checkpoint| format!("{}: {}\n", if news.contains(&one.id) { done } else { before }, described(one));
        print::data(&named.iter().map(line).collect::<String>())?;
    }
    Ok(if news.is_empty() { Exit::Nothing } else { Exit::Done })
}

/// Deletes checkpoints.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn delete(context: &mut Context, args: &DeleteArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let named = timeline.catalog().deletable(&args.checkpoints)?;
    if !args.yes {
        if context.json {
            print::json_as_declared(&replies::chosen(&named, &|_| false))?;
            return Ok(Exit::Refused);
        }
        let lines: String = named.iter().map(|one| format!("  {}\n", described(one))).collect();
        print::data(&format!("Once deleted, these checkpoints cannot be restored:\n{lines}"))?;
    }
    person::require("a deleted checkpoint cannot be restored")?;
    if let Some(exit) = (!args.yes).then(|| agreed("Delete")).flatten() {
        return Ok(exit);
    }
    let gone = timeline.delete(&named, &|| Flow::Continue)?;
    if context.json {
        print::json_as_declared(&replies::chosen(&named, &|id| gone.contains(id)))?;
    } else {
        let line = |one: &Checkpoint| match gone.contains(&one.id) {
            true => format!("Deleted: {}\n", described(one)),
            false => format!("Not deleted, because it is now needed: {}\n", described(one)),
        };
        let hint = "To free the space now, run `piton store prune`; otherwise maintenance frees it later.\n";
        print::data(&format!("{}{hint}", named.iter().map(line).collect::<String>()))?;
    }
    Ok(if gone.len() == named.len() { Exit::Done } else { Exit::Part })
}

/// Returns a checkpoint on one line.
fn described(checkpoint: &Checkpoint) -> String {
    let record = &checkpoint.record;
    let (time, reason) = (print::local_time(&record.time), printable(&record.reason));
    format!("checkpoint {} ({}, {time}) {reason}", record.number, checkpoint.id.short())
}
