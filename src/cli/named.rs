//! Checkpoints, paths and runs as a person names them, or the error that says which of them does not exist.

use std::path::Path;

use super::context::Context;
use super::print;
use crate::checkpoint::catalog::selector::{Point, Selector};
use crate::checkpoint::catalog::words::is_word;
use crate::checkpoint::{Checkpoint, Timeline};
use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;
use crate::model::run::run_id;
use crate::model::text::{printable, shell_word};

/// The selector of the newest checkpoint.
pub(super) const NEWEST: &str = "@{0}";

/// Returns the checkpoint that `selector` names; the newest without one.
///
/// # Errors
/// As [`Timeline::resolve`].
pub(super) fn checkpoint(timeline: &mut Timeline, selector: Option<&str>) -> Result<Checkpoint> {
    let selector = selector.unwrap_or(NEWEST);
    let found = timeline.catalog().resolve(selector)?;
    tell_replaced(timeline, selector, &found);
    Ok(found)
}

/// Warns that an id named a checkpoint that another one has replaced.
pub(super) fn tell_replaced(timeline: &Timeline, selector: &str, found: &Checkpoint) {
    if let Some(told) = timeline.catalog().told_replaced(selector, found) {
        print::warning(&told);
    }
}

/// Returns the id of a run of this workspace.
///
/// # Errors
/// `no-such-run`.
pub(super) fn run(timeline: &mut Timeline, named: &str) -> Result<String> {
    let run = run_id(named);
    if timeline.catalog().has_run(&run)? {
        return Ok(run);
    }
    Err(Error::new(Code::NoSuchRun, format!("there is no run `{}` in this workspace", printable(named)))
        .hint("`piton list --runs` lists the runs"))
}

/// Returns true if the workspace or one of `checkpoints` has something at `path`.
///
/// # Errors
/// `store-damaged`.
pub(super) fn is_known(timeline: &Timeline, path: &RelPath, checkpoints: &[Checkpoint]) -> Result<bool> {
    if path.is_root() || path.under(&timeline.workspace().path).symlink_metadata().is_ok() {
        return Ok(true);
    }
    for checkpoint in checkpoints {
        if timeline.catalog().is_held(checkpoint, path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if a word is a path: it is no number, and something is at that path, or one of `checkpoints` has it.
///
/// # Errors
/// `store-damaged`.
pub(super) fn is_path(context: &Context, timeline: &Timeline, word: &str, checkpoints: &[Checkpoint]) -> Result<bool> {
    if checkpoints.is_empty() || word.bytes().all(|byte| byte.is_ascii_digit() || b"#.".contains(&byte)) {
        return Ok(false);
    }
    match context.path(timeline.workspace(), Path::new(word)) {
        Ok(path) => Ok(!path.is_root() && is_known(timeline, &path, checkpoints)?),
        // A word that is no path in this workspace is none.
        Err(_) => Ok(false),
    }
}

/// Refuses a word that names a checkpoint if it is a path, too: on the disk, or in the newest checkpoint. `verb` has the commands for both.
///
/// # Errors
/// `ambiguous-checkpoint`; `store-damaged`.
pub(super) fn refuse_path_too(
    context: &Context,
    timeline: &Timeline,
    word: &str,
    checkpoint: &Checkpoint,
    verb: &str,
) -> Result<()> {
    let known = timeline.catalog().all()?;
    let newest = known.checkpoints.last().map_or(&[][..], std::slice::from_ref);
    if !is_path(context, timeline, word, newest)? {
        return Ok(());
    }
    let (number, path) = (checkpoint.shown(), shell_word(word));
    let text = format!("`{}` is both checkpoint {number} and a path", printable(word));
    Err(Error::new(Code::AmbiguousCheckpoint, text)
        .hint(format!("for the checkpoint, run `piton {verb} {number}`; for the path, run `piton {verb} -- {path}`")))
}

/// Replaces the error for an unknown checkpoint by one that says that the word is no path either. Returns other errors unchanged.
pub(super) fn neither_checkpoint_nor_path(word: &str, error: Error) -> Error {
    let is_label = matches!(Selector::parse(word), Ok(Selector::Label(_))) && !is_word(word);
    if error.code() != Code::NoSuchCheckpoint || !is_label {
        return error;
    }
    let text = format!("`{}` is neither a checkpoint nor a path that piton has saved", printable(word));
    Error::new(Code::NoSuchCheckpoint, text)
        .hint("`piton list` shows the checkpoints; `piton find PATTERN` searches them for a path")
}

/// Says that a path is nowhere; `what` names the places.
pub(super) fn unknown_path(path: &RelPath, what: &str) -> Error {
    Error::new(Code::NoSuchPath, what)
        .path(path.to_path())
        .hint("check the spelling; paths are relative to the working directory")
}

/// Returns a path inside a checkpoint: as typed from the working directory, or else from the root of the workspace.
///
/// # Errors
/// `bad-path`; `store-damaged`.
pub(super) fn path_in(context: &Context, timeline: &Timeline, checkpoint: &Checkpoint, typed: &str) -> Result<RelPath> {
    let here = context.path(timeline.workspace(), Path::new(typed));
    let from_root = RelPath::parse(typed.as_bytes());
    match (here, from_root) {
        (Ok(here), Ok(root))
            if !timeline.catalog().is_held(checkpoint, &here)? && timeline.catalog().is_held(checkpoint, &root)? =>
        {
            Ok(root)
        }
        (Ok(here), _) => Ok(here),
        (Err(_), Ok(root)) => Ok(root),
        (Err(error), Err(_)) => Err(error),
    }
}

/// Reads `CHECKPOINT` or `CHECKPOINT:PATH`; a codon selector has colons of its own.
///
/// # Errors
/// As [`Timeline::resolve`]; `bad-path`, `store-damaged`.
pub(super) fn split(context: &Context, timeline: &mut Timeline, what: &str) -> Result<(Checkpoint, Option<RelPath>)> {
    let whole = timeline.catalog().resolve(what);
    if whole.is_ok() || !what.contains(':') {
        return whole.map(|checkpoint| (checkpoint, None));
    }
    let start = if what.starts_with("id:") { "id:".len() } else { 0 };
    let (mut first, mut longest) = (None, None);
    for (at, _) in what.match_indices(':').filter(|(at, _)| *at >= start) {
        match timeline.catalog().resolve(&what[..at]) {
            Ok(checkpoint) => {
                let blamed = |error| timeline.catalog().blamed(error, &[&checkpoint]);
                let path = path_in(context, timeline, &checkpoint, &what[at + 1..]).map_err(blamed)?;
                if timeline.catalog().is_held(&checkpoint, &path)? {
                    return Ok((checkpoint, Some(path)));
                }
                // `run:codon` is longer than `run`.
                longest = Some((checkpoint, path, &what[at + 1..]));
            }
            Err(error) => _ = first.get_or_insert(error),
        }
    }
    match (longest, first) {
        // A codon of a run is meant, or a type that the codon has not recorded. Neither is a path.
        (Some((.., word)), _) if is_specific(&whole) && (Point::parse(word).is_some() || is_codon_missing(&whole)) => {
            whole.map(|checkpoint| (checkpoint, None))
        }
        (Some((checkpoint, path, _)), _) => Ok((checkpoint, Some(path))),
        (None, Some(error)) if !is_specific(&whole) => Err(error),
        _ => whole.map(|checkpoint| (checkpoint, None)),
    }
}

/// Returns true if the error says that the run has no such codon.
fn is_codon_missing(found: &Result<Checkpoint>) -> bool {
    found.as_ref().is_err_and(|error| error.code() == Code::NoSuchCodon)
}

/// Returns true if the error names the run's codon as the cause.
fn is_specific(found: &Result<Checkpoint>) -> bool {
    found.as_ref().is_err_and(|error| matches!(error.code(), Code::NoSuchType | Code::NoSuchCodon))
}
