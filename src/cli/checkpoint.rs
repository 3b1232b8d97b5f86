//! `piton checkpoint`: takes one now.

use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::named::{is_known, unknown_path};
use super::print;
use super::stop;
use crate::checkpoint::Checkpoint;
use crate::checkpoint::capture::request::{Take, Taken, listed_skips};
use crate::checkpoint::upkeep::rounds::Rounds;
use crate::doors::replies::block;
use crate::error::Result;
use crate::model::text::{bytes, count};
use crate::protocol::CreateReply;
use crate::store::COMMAND;

/// The arguments of `piton checkpoint`.
#[derive(Debug, Args)]
pub(super) struct CheckpointArgs {
    /// A label for finding the checkpoint
    pub label: Option<String>,
    /// The label (as in `git commit -m`)
    #[arg(short, long, value_name = "LABEL", conflicts_with = "label")]
    pub message: Option<String>,
    /// Pin the checkpoint, so that retention never drops it
    #[arg(long)]
    pub pin: bool,
    /// Only these paths
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// Takes a checkpoint now.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn checkpoint(context: &mut Context, args: &CheckpointArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let only = context.paths(timeline.workspace(), &args.paths)?;
    if !only.is_empty() {
        let newest: Vec<Checkpoint> = timeline.catalog().all()?.checkpoints.last().cloned().into_iter().collect();
        for path in &only {
            if !is_known(&timeline, path, &newest)? {
                return Err(unknown_path(path, "neither the workspace nor its newest checkpoint contains that path"));
            }
        }
    }
    let label = args.label.as_deref().or(args.message.as_deref());
    let take = Take::by_hand("local", label, only, args.pin)?;
    let taken = timeline.take(&take, &stop::flow)?;
    print::settled(timeline.leave());
    // Where no sidecar has idle time, each command does a little.
    print::settled(timeline.recompress(COMMAND, &stop::flow));
    let hours = timeline.policy().retention.interval_hours;
    Rounds::new(context.home.clone(), context.flags.clone()).before_end(hours);
    if context.json {
        print::json(&CreateReply { checkpoint: block(&taken) })?;
    } else {
        print::data(&taken_text(&taken))?;
    }
    Ok(Exit::Done)
}

fn taken_text(taken: &Taken) -> String {
    let record = &taken.checkpoint.record;
    let id = taken.checkpoint.id.short();
    let mut text = if taken.unchanged {
        format!("Nothing changed since checkpoint {} ({id}).\n", record.number)
    } else {
        format!("Checkpoint {} ({id}): {}, {}.\n", record.number, count(record.files, "file"), bytes(record.bytes))
    };
    let skips = listed_skips(&taken.coverage);
    if !skips.is_empty() {
        add_line!(text, "Not saved, only listed: {}", count(skips.len() as u64, "path"));
        for (path, why) in skips.iter().take(10) {
            add_line!(text, "  {}  {why}", path.display());
        }
        if skips.len() > 10 {
            add_line!(text, "  … and {} more: `piton show {}`", skips.len() - 10, record.number);
        }
    }
    taken.warnings.iter().for_each(|warning| print::warning(warning));
    text
}
