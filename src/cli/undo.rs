//! `piton undo` and `piton redo`.

use clap::Args;

use super::confirm::{ask_first, ask_to_move, finished};
use super::context::Context;
use super::exit::Exit;
use super::print;
use super::report;
use crate::checkpoint::history::request::Restore;
use crate::checkpoint::history::undo::Direction;
use crate::doors::replies;
use crate::error::Result;
use crate::protocol::NoStep;
use crate::sys::interrupt::Flow;

/// The arguments of `piton undo` and `piton redo`.
#[derive(Debug, Args)]
pub(super) struct StepArgs {
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
}

/// Undoes the last restore.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn undo(context: &mut Context, args: &StepArgs) -> Result<Exit> {
    step(context, args, Direction::Undo)
}

/// Redoes the restore that was undone last.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn redo(context: &mut Context, args: &StepArgs) -> Result<Exit> {
    step(context, args, Direction::Redo)
}

fn step(context: &mut Context, args: &StepArgs, direction: Direction) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    timeline.catalog().refuse_interrupted()?;
    let Some(next) = timeline.catalog().next_step(direction)? else {
        let message = timeline.catalog().why_no_step(direction)?;
        if context.json {
            print::json(&NoStep { operation: None, message })?;
        } else {
            print::data(&format!("{message}\n"))?;
        }
        return Ok(Exit::Nothing);
    };
    let word = match direction {
        Direction::Undo => "Undo",
        Direction::Redo => "Redo",
    };
    if !context.json {
        print::data(&report::step(word, &replies::over(&next)))?;
    }
    let preview = timeline.preview_step(direction, &next, &|| Flow::Continue)?;
    let moves_only = preview.plan.changes_nothing() && next.moved.is_some() && !args.preview && !context.json;
    // The result is the only document: a step over nothing is taken without a word before it.
    let is_silent = context.json && args.yes && !args.preview && preview.plan.changes_nothing();
    let answered = match moves_only {
        true => ask_to_move(context, "No file changes, only the run moves.", args.yes, word)?,
        false if is_silent && preview.plan.conflict.is_empty() => None,
        false => ask_first(context, &preview, (args.yes, args.preview), word)?,
    };
    if let Some(exit) = answered.filter(|exit| *exit != Exit::Nothing || args.preview) {
        return Ok(exit);
    }
    let restore = Restore::stepping(direction, &next, "local")?;
    let restore = if args.yes { restore } else { restore.agreeing(&preview) };
    let restored = timeline.restore(&restore, &|| Flow::Continue)?;
    print::settled(timeline.leave());
    finished(context, &restored, if direction == Direction::Undo { "Undone" } else { "Redone" }, Some(&preview))
}
