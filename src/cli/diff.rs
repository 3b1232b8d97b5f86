//! `piton diff`: what changed since a checkpoint, or between two.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::context::Context;
use super::exit::Exit;
use super::named::{checkpoint, is_known, neither_checkpoint_nor_path, refuse_path_too, tell_replaced, unknown_path};
use super::print::{self, stat_text};
use super::screen::columns;
use crate::checkpoint::catalog::diff::{Change, LiveSide, Present, is_file_change};
use crate::checkpoint::catalog::words::is_turn;
use crate::checkpoint::{Checkpoint, Timeline};
use crate::doors::{contents, replies};
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::text::{padded, width};
use crate::sys::interrupt::Flow;

/// The arguments of `piton diff`.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// One or two checkpoints, or a turn (t-3), then paths [default: compare the newest checkpoint with the current files]
    #[arg(value_name = "CHECKPOINT|TURN|PATH")]
    pub what: Vec<OsString>,
    /// Show the changes of a turn, by its name in `piton list --turns` or its name in the client [default: the newest]
    #[arg(long, value_name = "TURN", num_args = 0..=1, default_missing_value = "")]
    pub turn: Option<String>,
    /// The run of that turn
    #[arg(long, value_name = "RUN", requires = "turn")]
    pub run: Option<String>,
    /// Show only the summary
    #[arg(long)]
    pub stat: bool,
    /// Only these paths
    #[arg(last = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// The widest bar of a file's added and removed lines, in columns.
const WIDEST_BAR: usize = 24;

/// The two sides of a comparison and the paths that count.
struct Compared {
    from: Checkpoint,
    /// `None`: the files as they are now.
    to: Option<Checkpoint>,
    /// Everything, when empty.
    paths: Vec<RelPath>,
}

/// Reads what was typed: a word that names a checkpoint is one, as long as only checkpoints stand before it.
fn compared(context: &Context, timeline: &mut Timeline, args: &DiffArgs) -> Result<Compared> {
    let mut words = args.what.iter();
    let mut sides: Vec<Checkpoint> = Vec::new();
    let mut paths = Vec::new();
    for word in words.by_ref() {
        let named = timeline.catalog().resolve(&word.to_string_lossy());
        match named {
            Ok(checkpoint) if sides.len() < 2 => {
                refuse_path_too(context, timeline, &word.to_string_lossy(), &checkpoint, "diff")?;
                tell_replaced(timeline, &word.to_string_lossy(), &checkpoint);
                sides.push(checkpoint);
            }
            Ok(_) => {
                paths.push(PathBuf::from(word));
                break;
            }
            Err(error) => {
                let path = context.path(timeline.workspace(), Path::new(word));
                if !path.is_ok_and(|path| is_known(timeline, &path, &sides).unwrap_or(false)) {
                    return Err(neither_checkpoint_nor_path(&word.to_string_lossy(), error));
                }
                paths.push(PathBuf::from(word));
                break;
            }
        }
    }
    paths.extend(words.map(PathBuf::from));
    paths.extend(args.paths.iter().cloned());
    let paths = context.paths(timeline.workspace(), &paths)?;
    let mut sides = sides.into_iter();
    let from = match sides.next() {
        Some(from) => from,
        None => checkpoint(timeline, None)?,
    };
    let compared = Compared { from, to: sides.next(), paths };
    let ends: Vec<Checkpoint> = [Some(compared.from.clone()), compared.to.clone()].into_iter().flatten().collect();
    for path in &compared.paths {
        let known = is_known(timeline, path, &ends);
        let ends: Vec<&Checkpoint> = ends.iter().collect();
        if !known.map_err(|error| timeline.catalog().blamed(error, &ends))? {
            return Err(unknown_path(path, "neither side of the comparison contains that path"));
        }
    }
    Ok(compared)
}

/// Shows differences.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn diff(context: &mut Context, args: &DiffArgs) -> Result<Exit> {
    let mut timeline = context.timeline_to_read()?;
    let first = args.what.first().and_then(|word| word.to_str()).filter(|word| is_turn(word) && args.turn.is_none());
    if let Some(turn) = args.turn.as_deref().or(first) {
        let turn = Some(turn).filter(|turn| !turn.is_empty());
        let words = args.what.iter().skip(usize::from(first.is_some()));
        let typed: Vec<PathBuf> = words.map(PathBuf::from).chain(args.paths.iter().cloned()).collect();
        let paths = context.paths(timeline.workspace(), &typed)?;
        return super::turns::diff(context, &mut timeline, (turn, args.run.as_deref()), (&paths, args.stat));
    }
    let compared = compared(context, &mut timeline, args)?;
    let present =
        if compared.to.is_none() { Some(timeline.present(Some(&compared.from), &|| Flow::Continue)?) } else { None };
    let shown = show(context, &timeline, &compared, present.as_ref(), args.stat);
    shown.map_err(|error| timeline.catalog().blamed(error, &contents::ends(&compared.from, compared.to.as_ref())))
}

fn show(
    context: &Context,
    timeline: &Timeline,
    compared: &Compared,
    present: Option<&Present>,
    only_stat: bool,
) -> Result<Exit> {
    let Compared { from, to, paths } = compared;
    let (mut changes, live) = match (to, present) {
        (Some(to), _) => (timeline.catalog().changes_between(from, to)?, LiveSide::Neither),
        (None, Some(present)) => (timeline.catalog().changes_to_present(from, present)?, LiveSide::New),
        (None, None) => (Vec::new(), LiveSide::Neither),
    };
    changes.retain(|change| paths.is_empty() || paths.iter().any(|path| change.path.starts_with(path)));
    if context.json {
        let mut reply = contents::diff(timeline, from, to.as_ref(), &changes)?;
        if only_stat {
            reply.patch.clear();
        }
        print::json(&reply)?;
        return Ok(Exit::Done);
    }
    if changes.is_empty() {
        print::data("No differences.\n")?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    let mut patches = String::new();
    let screen = columns();
    let (files, directories): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(|change| is_file_change(change));
    let named = |change: &Change| format!("{}{}", context.leading(), change.path.display());
    let names = changes.iter().map(|change| width(&named(change))).max().unwrap_or(0).min(60);
    for change in files {
        let patch = timeline.catalog().patch_of(change, live)?;
        let how = match contents::fate(change) {
            "changed" => String::new(),
            fate => format!(" ({fate})"),
        };
        let numbers =
            if patch.binary { "binary".to_owned() } else { format!("+{}/-{}", patch.lines.plus, patch.lines.minus) };
        let line = format!(" {} | {numbers}{how}", padded(&named(change), names));
        let room = screen.map_or(0, |screen| screen.saturating_sub(width(&line) + 1).min(WIDEST_BAR));
        add_line!(text, "{line}{}", print::bar(patch.lines, room));
        patches.push_str(&patch.text);
    }
    for change in &directories {
        add_line!(text, " {} | directory ({})", padded(&named(change), names), contents::fate(change));
    }
    let apart = match directories.len() {
        0 => String::new(),
        1 => ", 1 directory".to_owned(),
        many => format!(", {many} directories"),
    };
    let summary = format!(" {}{apart}", stat_text(&replies::stat(&timeline.catalog().stat(&changes, live)?)));
    add_line!(text, "{summary}");
    if !only_stat && !patches.is_empty() {
        text.push('\n');
        text.push_str(&print::patch(&print::harmless(&patches)));
        // On a screen the beginning of a long patch is out of sight.
        if screen.is_some() {
            add_line!(text, "\n{summary}");
        }
    }
    print::pages(&text)?;
    Ok(Exit::Done)
}
