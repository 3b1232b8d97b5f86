//! `piton turns`: the turns of agents that changed files.

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
    /// Only those of a run
    #[arg(long)]
    pub run: Option<String>,
    /// Most turns to list
    #[arg(long, short = 'n', default_value_t = TURNS)]
    pub limit: usize,
}

/// Lists turns.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn turns(context: &mut Context, args: &TurnsArgs) -> Result<Exit> {
    let mut timeline = context.timeline_to_read()?;
    settle(&mut timeline);
    let reply = replies::turns(&timeline, args.run.as_deref().map(run_id).as_deref(), args.limit)?;
    if context.json {
        print::json_as_declared(&reply)?;
    } else if reply.turns.is_empty() && args.run.is_some() {
        let unguarded = unguarded::section(&reply.unguarded);
        print::data(&format!(
            "{unguarded}No turn of that run has changed files here; `piton list --turns` lists those of all runs.\n"
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
        print::warning(&format!("what open turns have changed is not known: {}", error.text()));
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
        add_line!(text, " It acted elsewhere too: `piton diff {option} --turn {}`", shell_word(&reply.turn.turn));
    }
    if !only_stat {
        text.push('\n');
        text.push_str(&print::patch(&print::harmless(&reply.patch)));
        if reply.cut {
            add_line!(text, "… the rest of the patch is left out: name paths to see it");
        }
    }
    text
}
