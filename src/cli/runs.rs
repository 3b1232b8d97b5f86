//! `piton runs`: the runs of a workspace and their timelines.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::print;
use crate::checkpoint::Home;
use crate::checkpoint::runs::list::{Branch, ListedRun};
use crate::doors::replies;
use crate::error::Result;
use crate::model::text::{count, printable};
use crate::protocol::spelling;

/// The arguments of `piton runs`.
#[derive(Debug, Args)]
pub(super) struct RunsArgs {
    /// Show runs as a tree, with sub-agents' runs, forks and timelines below their origin
    #[arg(long)]
    pub tree: bool,
    /// Maximum number of runs to list; the newest are shown
    #[arg(long, short = 'n', default_value_t = 50)]
    pub limit: usize,
}

/// Lists runs.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn runs(context: &mut Context, args: &RunsArgs) -> Result<Exit> {
    let timeline = context.timeline_to_read()?;
    let (rows, faults) = timeline.runs()?;
    let shown = &rows[rows.len().saturating_sub(args.limit)..];
    if context.json {
        print::json(&replies::runs(shown, faults.clone(), &context.home))?;
    } else if rows.is_empty() {
        print::data("No runs yet.\n")?;
    } else {
        let lines = RunLines { home: &context.home, is_tree: args.tree };
        let mut text = if args.tree { lines.tree(shown) } else { lines.list(shown) };
        if shown.len() < rows.len() {
            add_line!(text, "… and {} older; use -n to show more", rows.len() - shown.len());
        }
        print::data(&text)?;
    }
    faults.iter().for_each(|fault| print::warning(fault));
    let exit = match (faults.is_empty(), rows.is_empty()) {
        (false, _) => Exit::Damaged,
        (true, true) => Exit::Nothing,
        (true, false) => Exit::Done,
    };
    Context::leave(timeline);
    Ok(exit)
}

/// The lines about runs.
struct RunLines<'c> {
    home: &'c Home,
    /// True if each run stands below the one it comes from.
    is_tree: bool,
}

impl RunLines<'_> {
    /// Newest first.
    fn list(&self, rows: &[ListedRun]) -> String {
        let mut text = String::new();
        for row in rows.iter().rev() {
            add_line!(text, "{}", self.line(row));
        }
        text
    }

    fn line(&self, row: &ListedRun) -> String {
        let mut text = format!("{}  {}", print::bold(&row.run), spelling(&replies::run_state(row)));
        if let Some(codon) = &row.running {
            text.push_str(&format!(" {}", printable(&codon.id)));
        }
        let (client, named) = replies::names_of(row, self.home);
        if let Some(client) = client {
            text.push_str(&format!("  {}", printable(&client)));
        }
        if let Some(named) = named {
            text.push_str(&format!("  named {}", printable(&named)));
        }
        if let Some(parent) = row.state.parent.as_ref().filter(|_| !self.is_tree) {
            text.push_str(&format!("  below {}", printable(parent)));
        }
        text.push_str(&format!("  {}", count(row.checkpoints, "checkpoint")));
        if row.branches.len() > 1 {
            text.push_str(&format!(", {}", count(row.branches.len() as u64, "timeline")));
        }
        if let Some(last) = &row.last {
            let codon = printable(last.record.codon_id.as_deref().unwrap_or_default());
            text.push_str(&format!("  last {} {codon} ({})", last.record.kind.as_str(), last.record.number));
        }
        let since = print::faint(&print::local_time(&row.since));
        text.push_str(&format!("  {since}"));
        if let Some(goal) = &row.state.goal {
            text.push_str(&format!("  {}", printable(goal)));
        }
        text
    }

    /// Oldest first; each run below the one it comes from.
    fn tree(&self, rows: &[ListedRun]) -> String {
        let known: BTreeSet<&str> = rows.iter().map(|row| row.run.as_str()).collect();
        let mut below: BTreeMap<Option<&str>, Vec<&ListedRun>> = BTreeMap::new();
        for row in rows {
            let above = row.above().filter(|above| known.contains(above) && *above != row.run);
            below.entry(above).or_default().push(row);
        }
        let mut text = String::new();
        let mut shown = BTreeSet::new();
        let tops = below.get(&None).cloned().unwrap_or_default();
        let mut pending: Vec<(usize, &ListedRun)> = tops.into_iter().rev().map(|row| (0, row)).collect();
        while let Some((depth, row)) = pending.pop() {
            self.add_branches(&mut text, depth, row);
            shown.insert(row.run.as_str());
            let children = below.get(&Some(row.run.as_str())).into_iter().flatten().rev();
            pending
                .extend(children.filter(|child| !shown.contains(child.run.as_str())).map(|child| (depth + 1, *child)));
        }
        // Runs that name each other as parents stand below nothing.
        for row in rows.iter().filter(|row| !shown.contains(row.run.as_str())) {
            self.add_branches(&mut text, 0, row);
        }
        text
    }

    fn add_branches(&self, text: &mut String, depth: usize, row: &ListedRun) {
        let indent = "  ".repeat(depth);
        let forked = row.state.origin.as_ref().map(|origin| format!("  forked from {}:{}", origin.run, origin.number));
        add_line!(text, "{indent}{}{}", self.line(row), forked.unwrap_or_default());
        if row.branches.len() > 1 {
            for branch in &row.branches {
                add_line!(text, "{indent}  {}", timeline_line(branch));
            }
        }
    }
}

fn timeline_line(branch: &Branch) -> String {
    let own = count(branch.checkpoints.len() as u64, "checkpoint");
    let from =
        branch.from.as_ref().map(|origin| format!(", continues from checkpoint {} of {}", origin.number, origin.run));
    let name = branch.name.rsplit('/').next().unwrap_or_default();
    format!("timeline {name}: {own}{}", from.unwrap_or_default())
}
