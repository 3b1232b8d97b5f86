//! `piton list`: the checkpoints of a workspace, newest first.

use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::deleted;
use super::exit::Exit;
use super::git_undo::{GitUndoArgs, git_undo};
use super::lists::{self, ListLayout};
use super::named::{is_known, run, unknown_path};
use super::print;
use super::report::Words;
use super::runs::{RunsArgs, runs};
use super::screen::columns;
use super::turns::{TURNS, TurnsArgs, turns};
use super::unguarded;
use crate::checkpoint::catalog::listing::ListFilter;
use crate::checkpoint::records::workspace::real_path;
use crate::checkpoint::{Timeline, Workspace};
use crate::doors::replies;
use crate::doors::stdio::list_reply;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::text::{printable, shell_word};

use crate::sys::interrupt::Flow;

/// The arguments of `piton list`.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// List at most this many rows [default: 50; with --turns 20]
    #[arg(long, short = 'n')]
    pub limit: Option<usize>,
    /// List runs instead, with their timelines
    #[arg(long, conflicts_with_all = ["turns", "run", "kind", "all", "steps", "remote", "path"])]
    pub runs: bool,
    /// With --runs: show sub-agents' runs, forks and timelines as a tree
    #[arg(long, requires = "runs")]
    pub tree: bool,
    /// List agents' turns that changed files instead
    #[arg(long, conflicts_with_all = ["kind", "all", "steps", "remote"])]
    pub turns: bool,
    /// List the git commands that `piton undo g-N` can undo instead
    #[arg(long, conflicts_with_all = ["runs", "turns", "run", "kind", "all", "steps", "remote", "path"])]
    pub git: bool,
    /// Only entries of this run
    #[arg(long)]
    pub run: Option<String>,
    /// Only checkpoints of this kind: auto, manual, pre-restore, exit, …
    #[arg(long)]
    pub kind: Option<String>,
    /// Also list base captures
    #[arg(long)]
    pub all: bool,
    /// Also list steps, the further checkpoints of a turn
    #[arg(long)]
    pub steps: bool,
    /// List the checkpoints that were fetched from other machines instead
    #[arg(long)]
    pub remote: bool,
    /// Only checkpoints after which this path changed; with --turns, only turns that changed it
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
}

/// The most workspaces below the directory that are named.
const MOST_BELOW: usize = 3;

/// The rows that are listed without `--limit`.
const DEFAULT_LIMIT: usize = 50;

impl ListArgs {
    /// Returns the arguments of the list of turns.
    fn of_turns(&self) -> TurnsArgs {
        TurnsArgs { run: self.run.clone(), limit: self.limit.unwrap_or(TURNS), path: self.path.clone() }
    }

    /// Returns the most checkpoints to list.
    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT)
    }
}

/// Lists checkpoints, runs or turns.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn list(context: &mut Context, args: &ListArgs) -> Result<Exit> {
    if args.runs {
        return runs(context, &RunsArgs { tree: args.tree, limit: args.limit() });
    }
    if args.git {
        return git_undo(context, &GitUndoArgs::listing());
    }
    if args.turns {
        return turns(context, &args.of_turns());
    }
    let kind = match &args.kind {
        None => None,
        Some(text) => Some(CheckpointKind::parse(text).ok_or_else(|| {
            let kinds: Vec<&str> = CheckpointKind::ALL.iter().map(|kind| kind.as_str()).collect();
            Error::new(Code::BadRequest, format!("`{}` is not a kind", printable(text)))
                .hint(format!("the kinds are: {}", kinds.join(", ")))
        })?),
    };
    let mut timeline = context.timeline_to_read()?;
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
        limit: args.limit(),
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
            return Err(unknown_path(path, "neither the workspace nor any of its checkpoints contains that path"));
        }
    }
    if context.json {
        print::json_as_declared(&list_reply(&timeline, listing, current_branch(&timeline)?))?;
    } else if empty {
        let unguarded = replies::unguarded(&timeline)?;
        let hint = unguarded::removal_hint(&unguarded, timeline.workspace());
        let none = unguarded::section(&unguarded) + &none_text(&timeline, &query) + &hint;
        print::data(&(none + &deleted::offers(context)? + &below(context)?))?;
    } else {
        let is_outside = context.is_outside();
        let mut listing = list_reply(&timeline, listing, None);
        let (title, words) = match is_outside {
            true => ("Checkpoints of files outside every workspace".to_owned(), Words::OUTSIDE),
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
        let elsewhere = deleted::offers(context)? + &below(context)?;
        let layout = ListLayout { words, columns: columns(), folds: kind.is_none() && !args.all };
        print::data(&(lists::list(&title, &listing, &layout) + &hint + &elsewhere))?;
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

/// Lists the workspaces below the directory that have checkpoints, the one used last first, each with the command that lists them.
fn below(context: &Context) -> Result<String> {
    let root = real_path(&context.root()?);
    if context.is_outside() {
        return Ok(String::new());
    }
    let is_below = |one: &Workspace| one.path != root && one.path.starts_with(&root) && one.path.is_dir();
    let has_checkpoints = |one: &Workspace| one.dir.join("ordinal").exists();
    let known = Workspace::known(&context.home)?.into_iter();
    let mut below: Vec<Workspace> = known.filter(is_below).filter(has_checkpoints).collect();
    below.sort_by_key(|one| std::cmp::Reverse(deleted::last_used(one)));
    let mut text = String::new();
    for one in below.iter().take(MOST_BELOW) {
        let path = one.path.to_string_lossy();
        add_line!(
            text,
            "{} is its own workspace; to list its checkpoints, run `piton list -w {}`",
            printable(&path),
            shell_word(&path)
        );
    }
    if below.len() > MOST_BELOW {
        add_line!(
            text,
            "… and {} more below this directory; to list all, run `piton store list`",
            below.len() - MOST_BELOW
        );
    }
    Ok(text)
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
