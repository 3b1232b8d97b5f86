//! `piton restore`: brings files back.

use std::path::PathBuf;

use clap::Args;

use super::confirm::{ask_first, finished};
use super::context::Context;
use super::exit::Exit;
use super::named::checkpoint;
use super::print;
use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::held::refusal;
use crate::checkpoint::history::request::Restore;
use crate::doors::stdio;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::text::count;
use crate::protocol::{ExportDocument, List};
use crate::sys::interrupt::Flow;

/// The arguments of `piton restore`.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// A checkpoint (number, id, @{0}, label) [default: the newest]
    pub checkpoint: Option<String>,
    /// Only these paths, with all below them
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Into another, absent or empty directory
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Keep files created since
    #[arg(long)]
    pub keep_new: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
    /// Finish an interrupted restore
    #[arg(long = "continue", conflicts_with_all = ["checkpoint", "abort", "to"])]
    pub go_on: bool,
    /// Give an interrupted restore up: back to how it was before
    #[arg(long, conflicts_with_all = ["checkpoint", "to"])]
    pub abort: bool,
}

/// Brings files back.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn restore(context: &mut Context, args: &RestoreArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    if args.go_on || args.abort {
        let restored = timeline.resume(args.go_on, &|| Flow::Continue)?;
        print::settled(timeline.leave());
        return finished(context, &restored, if args.go_on { "Finished" } else { "Given up" }, None);
    }
    let checkpoint = checkpoint(&mut timeline, args.checkpoint.as_deref())?;
    let paths = context.paths(timeline.workspace(), &args.paths)?;
    if let Some(dir) = &args.to {
        return export(context, &timeline, &checkpoint, &paths, dir);
    }
    timeline.catalog().refuse_interrupted()?;
    if let Some(text) = stdio::foreign(&timeline, &checkpoint) {
        print::say(&text);
    }
    let restore = Restore::to(checkpoint.id, "local", paths.clone(), args.keep_new);
    let preview = timeline.preview(&restore, &|| Flow::Continue)?;
    if let Some(path) = timeline.catalog().unheld(&preview.target, &preview.plan, &paths)?.first() {
        return Err(refusal(preview.target.record.number, path.to_path()));
    }
    if let Some(exit) = ask_first(context, &preview, (args.yes, args.preview), "Restore")? {
        return Ok(exit);
    }
    let restore = if args.yes { restore } else { restore.agreeing(&preview) };
    let restored = timeline.restore(&restore, &|| Flow::Continue)?;
    print::settled(timeline.leave());
    finished(context, &restored, "Restored", Some(&preview))
}

fn export(
    context: &Context,
    timeline: &Timeline,
    checkpoint: &crate::checkpoint::Checkpoint,
    paths: &[RelPath],
    dir: &std::path::Path,
) -> Result<Exit> {
    let outcome = timeline.catalog().export(checkpoint, paths, dir)?;
    let text = format!(
        "Wrote {} of checkpoint {} to {}.\n",
        count(outcome.created.len() as u64, "path"),
        checkpoint.record.number,
        print::path(dir)
    );
    if context.json {
        let created = List::of_paths(outcome.created.iter());
        let failed = List::of_reasons(outcome.failed.iter().map(|(path, why)| (path, why.clone())));
        print::json(&ExportDocument { to: dir.to_string_lossy().into_owned(), created, failed })?;
    } else {
        print::data(&text)?;
        outcome.failed.iter().for_each(|(path, why)| print::warning(&format!("{}: {why}", path.display())));
    }
    Ok(if outcome.failed.is_empty() { Exit::Done } else { Exit::Part })
}
