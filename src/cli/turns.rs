//! `piton turns`: the turns of agents that changed files.

use std::path::PathBuf;

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::lists::{self, ListLayout};
use super::print::{self, stat_text};
use super::report::{self, Words};
use super::screen::columns;
use super::unguarded;
use crate::checkpoint::Timeline;
use crate::doors::replies;
use crate::engine::parts::OUTSIDE;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::run::run_id;
use crate::model::text::shell_word;
use crate::protocol::TurnDiffReply;
use crate::sys::interrupt::Flow;

/// The turns that are listed without `--limit`.
pub(super) const TURNS: usize = 20;

/// The arguments of `piton turns`.
#[derive(Debug, Args)]
pub(super) struct TurnsArgs {
    /// List only the turns of this run
    #[arg(long)]
    pub run: Option<String>,
    /// Maximum number of turns to list
    #[arg(long, short = 'n', default_value_t = TURNS)]
    pub limit: usize,
    /// Only turns that changed this path
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,
}

/// Lists turns.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn turns(context: &mut Context, args: &TurnsArgs) -> Result<Exit> {
    let mut timeline = context.timeline_to_read()?;
    settle(&mut timeline);
    let path = args.path.as_ref().map(|path| context.path(timeline.workspace(), path)).transpose()?;
    let reply = replies::turns(&timeline, args.run.as_deref().map(run_id).as_deref(), path.as_ref(), args.limit)?;
    if context.json {
        print::json_as_declared(&reply)?;
    } else if let Some(path) = path.as_ref().filter(|_| reply.turns.is_empty()) {
        let unguarded = unguarded::section(&reply.unguarded);
        let path = path.display();
        print::data(&format!("{unguarded}No turn has changed {path}; `piton list --turns` lists all turns.\n"))?;
    } else if reply.turns.is_empty() && args.run.is_some() {
        let unguarded = unguarded::section(&reply.unguarded);
        print::data(&format!(
            "{unguarded}No turn of that run has changed files here; `piton list --turns` lists the turns of all runs.\n"
        ))?;
    } else {
        let hint = unguarded::removal_hint(&reply.unguarded, timeline.workspace());
        let layout = ListLayout { words: Words::TERMINAL, columns: columns(), folds: true };
        print::data(&(lists::turns(&reply, &layout) + &hint))?;
    }
    Ok(Exit::Done)
}

/// Writes down what open turns have changed so far. An error there is no reason to show nothing.
fn settle(timeline: &mut Timeline) {
    if let Err(error) = timeline.settle_group(&|| Flow::Continue) {
        print::warning(&format!("cannot determine which files the open turns have changed: {}", error.text()));
    }
}

/// Shows what a turn has changed; without a name, the newest.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn diff(
    context: &Context,
    timeline: &mut Timeline,
    (turn, run): (Option<&str>, Option<&str>),
    (paths, only_stat): (&[RelPath], bool),
) -> Result<Exit> {
    settle(timeline);
    let turn = timeline.catalog().turn_or_newest(turn, run.map(run_id).as_deref())?;
    let counts = |path: &RelPath| paths.is_empty() || paths.iter().any(|chosen| path.starts_with(chosen));
    let mut reply = replies::turn_diff(timeline, &turn, &counts)?;
    if only_stat {
        reply.patch.clear();
    }
    match context.json {
        true => print::json_as_declared(&reply)?,
        false => print::pages(&text(&reply, only_stat))?,
    }
    Ok(Exit::Done)
}

fn text(reply: &TurnDiffReply, only_stat: bool) -> String {
    let mut text = report::turn_title(&reply.turn);
    for item in reply.files.items.iter().chain(&reply.directories.items) {
        let why = item.why.as_deref().unwrap_or_default();
        add_line!(text, " {}  ({why})", item.shown());
    }
    let shown = reply.files.items.len() + reply.directories.items.len();
    let left = (reply.files.total + reply.directories.total).saturating_sub(shown);
    if left > 0 {
        add_line!(text, " … and {left} more");
    }
    add_line!(text, " {}", stat_text(&reply.stat));
    for other in &reply.turn.others {
        let option =
            if other == OUTSIDE { "--outside".to_owned() } else { format!("--workspace {}", shell_word(other)) };
        add_line!(
            text,
            " The turn also acted elsewhere; to see its changes there, run `piton diff {option} --turn {}`",
            shell_word(&reply.turn.turn)
        );
    }
    if !only_stat {
        text.push('\n');
        text.push_str(&print::patch(&print::harmless(&reply.patch)));
        if reply.cut {
            add_line!(text, "… the rest of the patch is not shown; give paths to see their changes");
        }
    }
    text
}
