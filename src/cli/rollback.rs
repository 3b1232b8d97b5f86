//! `piton rollback`: a run goes back, and on from there.

use super::confirm::{ask_first, ask_to_move, finished};
use super::context::Context;
use super::exit::Exit;
use super::named::{NEWEST, run};
use super::print;
use super::restore::refuse_unnamed;
use super::stop;
use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::selector::Point;
use crate::checkpoint::history::request::Restore;
use crate::checkpoint::runs::rollback::Aim;
use crate::doors::replies;
use crate::error::{Code, Error, Result};
use crate::model::text::{printable, shell_name};
use clap::Args;

/// The arguments of `piton rollback`.
#[derive(Debug, Args)]
pub(super) struct RollbackArgs {
    /// `last-success`, `codon ID [TYPE]` (start, end, rig-setup, completed, error, skipped), or a checkpoint (number, id, @{0},
    /// RUN:CODON:TYPE, label) [default: the newest checkpoint]
    #[arg(num_args = 0..=3, value_name = "TARGET")]
    pub target: Vec<String>,
    /// The run to roll back [default: the run that recorded a codon last]
    #[arg(long)]
    pub run: Option<String>,
    /// Keep files created after the target
    #[arg(long)]
    pub keep_new: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
}

/// Rolls a run back.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn rollback(context: &mut Context, args: &RollbackArgs) -> Result<Exit> {
    let aim = aim(&args.target)?;
    let timeline = context.timeline()?;
    roll_back(context, timeline, &[aim], args)
}

/// Rolls a run back to a word: `last-success`, `CODON:TYPE`, a checkpoint, or the end of a codon.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn rollback_to(context: &mut Context, word: &str, args: &RollbackArgs) -> Result<Exit> {
    let typed = word.rsplit_once(':').and_then(|(id, kind)| Some((id, Point::parse(kind)?)));
    let aims = match (word, typed) {
        ("last-success", _) => vec![Aim::LastSuccess],
        (_, Some((id, point))) if !id.contains(':') => vec![Aim::Codon { id: id.to_owned(), point }],
        _ => vec![Aim::Checkpoint(word.to_owned()), Aim::Codon { id: word.to_owned(), point: Point::End }],
    };
    let timeline = context.timeline()?;
    roll_back(context, timeline, &aims, args)
}

/// Rolls a run back to the first of the targets that there is.
fn roll_back(context: &mut Context, mut timeline: Timeline, aims: &[Aim], args: &RollbackArgs) -> Result<Exit> {
    timeline.catalog().refuse_interrupted()?;
    let run = going_back(&mut timeline, args.run.as_deref())?;
    let (last, first) = aims.split_last().ok_or_else(|| Error::new(Code::Internal, "a rollback without a target"))?;
    let mut found = None;
    for aim in first {
        match timeline.catalog().aim(aim, &run) {
            Err(error) if error.code() == Code::NoSuchCheckpoint => {}
            other => found = Some(other?),
        }
    }
    let target = match found {
        Some(target) => target,
        None => timeline.catalog().aim(last, &run)?,
    };
    refuse_unnamed(context, target.record.number)?;
    timeline.refuse_running(&run)?;
    let restore = Restore::to(target.id, &run, Vec::new(), args.keep_new);
    let preview = timeline.preview(&restore, &stop::flow)?;
    let question = format!("Roll run {run} back");
    if !context.json {
        print::data(&format!("Run {run} continues from checkpoint {} on a new timeline.\n", target.record.number))?;
    }
    if !preview.plan.changes_nothing() || args.preview || (context.json && !args.yes) {
        if let Some(exit) = ask_first(context, &preview, (args.yes, args.preview), &question)? {
            Context::leave(timeline);
            return Ok(exit);
        }
    } else if let Some(exit) = ask_to_move(context, "No file changes.", args.yes, &question)? {
        return Ok(exit);
    }
    let restore = if args.yes { restore } else { restore.agreeing(&preview) };
    let rolled = timeline.rollback(&restore, &|_| {}, &stop::flow)?;
    print::settled(timeline.leave());
    if context.json {
        print::json_as_declared(&replies::rolled_back(&rolled))?;
        let part = !rolled.restored.outcome.failed.is_empty() || !rolled.restored.conflicts.is_empty();
        return Ok(if part { Exit::Part } else { Exit::Done });
    }
    let exit = finished(context, &rolled.restored, ("Rolled back to", None), Some(&preview))?;
    print::data(&format!("Run {} continues on {}; its old timeline is kept.\n", rolled.run, rolled.next_branch))?;
    // The run has moved, even where no file had to.
    Ok(if exit == Exit::Nothing { Exit::Done } else { exit })
}

fn aim(words: &[String]) -> Result<Aim> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["last-success"] => Ok(Aim::LastSuccess),
        ["codon", id] => Ok(Aim::Codon { id: (*id).to_owned(), point: Point::End }),
        ["codon", id, word] => match Point::parse(word) {
            Some(point) => Ok(Aim::Codon { id: (*id).to_owned(), point }),
            None => Err(Error::new(Code::BadRequest, format!("`{}` is not a checkpoint type", printable(word)))
                .hint(format!("the types are: {}", Point::WORDS.join(", ")))),
        },
        [] => Ok(Aim::Checkpoint(NEWEST.to_owned())),
        [selector] => Ok(Aim::Checkpoint((*selector).to_owned())),
        [selector, path, ..] => Err(Error::new(Code::BadRequest, "a rollback restores everything, not single paths")
            .hint(format!(
                "to restore one file, run `piton restore {} {}`",
                shell_name(selector.as_bytes()),
                shell_name(path.as_bytes())
            ))),
    }
}

/// Returns the run that goes back.
fn going_back(timeline: &mut Timeline, named: Option<&str>) -> Result<String> {
    match named {
        Some(named) => run(timeline, named),
        None => Ok(timeline.catalog().newest_run()?.unwrap_or_else(|| "local".to_owned())),
    }
}
