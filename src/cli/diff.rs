//! `piton diff`: what changed since a checkpoint, or between two.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::context::Context;
use super::exit::Exit;
use super::print::{self, stat_text};
use crate::checkpoint::catalog::diff::is_file_change;
use crate::doors::replies;
use crate::error::Result;
use crate::protocol::List;
use crate::sys::interrupt::Flow;

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// A checkpoint
    pub from: String,
    /// Another one [default: the files as they are now]
    pub to: Option<String>,
    /// Only the summary
    #[arg(long)]
    pub stat: bool,
    /// Only these paths
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

pub fn diff(context: &mut Context, args: &DiffArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    let select = context.paths(timeline.workspace(), &args.paths)?;
    let from = timeline.catalog().resolve(&args.from)?;
    let mut changes = match &args.to {
        Some(to) => {
            let to = timeline.catalog().resolve(to)?;
            timeline.catalog().changes_between(&from, &to)?
        }
        None => {
            let present = timeline.present(&|| Flow::Continue)?;
            timeline.catalog().changes_to_present(&from, &present)?
        }
    };
    changes.retain(|change| {
        is_file_change(change) && (select.is_empty() || select.iter().any(|path| change.path.starts_with(path)))
    });
    let stat = timeline.catalog().stat(&changes)?;
    if context.json {
        let files = List::of_paths(changes.iter().map(|change| &change.path));
        print::json(&json!({ "stat": replies::stat(&stat), "files": files }))?;
        return Ok(Exit::Done);
    }
    if changes.is_empty() {
        print::data("No differences.\n")?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    let mut patches = String::new();
    let width = changes.iter().map(|change| change.path.display().chars().count()).max().unwrap_or(0).min(60);
    for change in &changes {
        let patch = timeline.catalog().patch_of(change)?;
        let how = match (&change.old, &change.new) {
            (None, _) => " (new)",
            (_, None) => " (deleted)",
            _ => "",
        };
        let numbers = if patch.binary { "binary".to_owned() } else { format!("+{}/-{}", patch.plus, patch.minus) };
        add_line!(text, " {:<width$} | {numbers}{how}", change.path.display());
        patches.push_str(&patch.text);
    }
    add_line!(text, " {}", stat_text(&stat));
    if !args.stat {
        text.push('\n');
        text.push_str(&print::patch(&print::harmless(&patches)));
    }
    print::data(&text)?;
    Ok(Exit::Done)
}
