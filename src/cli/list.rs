//! `piton list`: the checkpoints of a workspace, newest first.

use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::deleted;
use super::exit::Exit;
use super::named::{is_known, run, unknown_path};
use super::print;
use super::report::{self, Words};
use super::unguarded;
use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::listing::ListFilter;
use crate::doors::replies;
use crate::doors::stdio::list_reply;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::text::printable;
use crate::sys::interrupt::Flow;

/// The arguments of `piton list`.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Most checkpoints to list
    #[arg(long, short = 'n', default_value_t = 50)]
    pub limit: usize,
    /// Only those of a run
    #[arg(long)]
    pub run: Option<String>,
    /// Only those of a kind: auto, manual, pre-restore, exit, …
    #[arg(long)]
    pub kind: Option<String>,
    /// Base captures too
    #[arg(long)]
    pub all: bool,
    /// Steps too: the further checkpoints of a turn
    #[arg(long)]
    pub steps: bool,
    /// List the checkpoints that were fetched from other machines instead
    #[arg(long)]
    pub remote: bool,
    /// Only checkpoints after which this path changed
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
}

/// Lists checkpoints.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn list(context: &mut Context, args: &ListArgs) -> Result<Exit> {
    let kind = match &args.kind {
        None => None,
        Some(text) => Some(CheckpointKind::parse(text).ok_or_else(|| {
            let kinds: Vec<&str> = CheckpointKind::ALL.iter().map(|kind| kind.as_str()).collect();
            Error::new(Code::BadRequest, format!("`{}` is not a kind", printable(text)))
                .hint(format!("the kinds are: {}", kinds.join(", ")))
        })?),
    };
    let mut timeline = context.timeline()?;
    if args.remote {
        return super::list_remote::list(context, &mut timeline, args, kind);
    }
    let path = args.path.as_ref().map(|path| context.path(timeline.workspace(), path)).transpose()?;
    let run = args.run.as_deref().map(|named| run(&mut timeline, named)).transpose()?;
    let query = ListFilter {
        run,
        kind,
        path,
        before: None,
        limit: args.limit,
        with_base: args.all,
        with_steps: args.steps || context.is_outside(),
    };
    let listing = timeline.listing(&query, &|| Flow::Continue)?;
    listing.faults.iter().for_each(|fault| print::warning(&format!("the store is damaged: {fault}")));
    let damaged = !listing.faults.is_empty();
    let empty = listing.rows.is_empty();
    if let Some(path) = query.path.as_ref().filter(|_| empty) {
        let all = timeline.catalog().all()?;
        if !is_known(&timeline, path, &all.checkpoints)? {
            return Err(unknown_path(path, "neither the workspace nor a checkpoint of it has that path"));
        }
    }
    if context.json {
        print::json_as_declared(&list_reply(&timeline, listing, current_branch(&timeline)?))?;
    } else if empty {
        let unguarded = replies::unguarded(&timeline)?;
        let hint = unguarded::removal_hint(&unguarded, timeline.workspace());
        let none = unguarded::section(&unguarded) + &none_text(&timeline, &query) + &hint;
        print::data(&(none + &deleted::offers(context)?))?;
    } else {
        let is_outside = context.is_outside();
        let mut listing = list_reply(&timeline, listing, None);
        let (title, words) = match is_outside {
            true => ("Checkpoints of files outside of all workspaces".to_owned(), Words::OUTSIDE),
            false => (format!("Checkpoints for {}", print::path(&timeline.workspace().path)), Words::TERMINAL),
        };
        if is_outside {
            // Every checkpoint there is of single paths.
            listing
                .checkpoints
                .iter_mut()
                .for_each(|row| row.flags.retain(|flag| !matches!(flag.as_str(), "partial" | "paths")));
            let gaps = listing.checkpoints.iter_mut().flat_map(|row| row.not_held.iter_mut());
            gaps.for_each(|gap| gap.item.make_absolute());
        }
        let hint = unguarded::removal_hint(&listing.unguarded, timeline.workspace());
        print::data(&(report::list(&title, &listing, &words) + &hint + &deleted::offers(context)?))?;
    }
    Context::leave(timeline);
    Ok(if damaged {
        Exit::Damaged
    } else if empty {
        Exit::Nothing
    } else {
        Exit::Done
    })
}

/// Returns the branch of the run that recorded a codon last.
fn current_branch(timeline: &Timeline) -> Result<Option<String>> {
    let run = timeline.catalog().newest_run()?;
    run.map_or(Ok(None), |run| timeline.catalog().current_branch(&run))
}

/// Says that no checkpoint is as it was asked for.
fn none_text(timeline: &Timeline, query: &ListFilter) -> String {
    let workspace = print::path(&timeline.workspace().path);
    let run = query.run.as_deref().map(|run| format!(" of run {}", printable(run))).unwrap_or_default();
    let kind = query.kind.map(|kind| format!(" of kind {}", kind.as_str())).unwrap_or_default();
    match &query.path {
        Some(path) => format!("No checkpoint{run}{kind} after which {} changed\n", path.display()),
        None => format!("No checkpoints{run}{kind} for {workspace}\n"),
    }
}
