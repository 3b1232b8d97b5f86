//! `piton restore`: brings files back.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::choose;
use super::confirm::{agreed, ask_first, finished};
use super::context::Context;
use super::exit::Exit;
use super::named::{checkpoint, is_path, neither_checkpoint_nor_path, refuse_path_too, split, tell_replaced};
use super::path_words::{self, TypedPaths, is_pattern};
use super::print;
use super::recover::{RecoverArgs, recover};
use super::report::RESTORED;
use super::rollback::{RollbackArgs, rollback_to};
use super::stop;
use crate::checkpoint::catalog::held::refusal;
use crate::checkpoint::catalog::selector::is_counted;
use crate::checkpoint::history::request::{Preview, Restore};
use crate::checkpoint::records::repositories::KeptRepository;
use crate::checkpoint::{Checkpoint, Timeline};
use crate::doors::stdio;
use crate::error::{Code, Error, Result};
use crate::filter::PathLimits;
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::text::{count, printable, shell_word};
use crate::protocol::{ExportDocument, List};

/// The arguments of `piton restore`.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// A checkpoint (12, 12.1, id, label, 10m, 13:20, t-3, latest), CHECKPOINT:PATH, or only a path, to restore its newest different
    /// version [default: the newest checkpoint that differs from the files]
    pub checkpoint: Option<String>,
    /// Restore only these paths and everything below them; patterns such as 'src/**/*.rs' work too
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Do not change this path, or paths that match this pattern (repeatable)
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["go_on", "abort"])]
    pub except: Vec<PathBuf>,
    /// Restore only these paths; a word after `--` is never a checkpoint
    #[arg(last = true, value_name = "PATH")]
    pub only: Vec<PathBuf>,
    /// Choose files and hunks interactively in the terminal
    #[arg(long, short = 'i', conflicts_with_all = ["yes", "json", "preview", "to", "go_on", "abort"])]
    pub interactive: bool,
    /// Write into this directory, which must be empty or not exist; with --run: roll back to `last-success`, CODON[:TYPE] or a checkpoint
    #[arg(long, value_name = "DIR|TARGET")]
    pub to: Option<PathBuf>,
    /// Roll this run back: restore the files, and let the run continue from there
    #[arg(long, requires = "to", conflicts_with_all = ["checkpoint", "local", "go_on", "abort"])]
    pub run: Option<String>,
    /// Keep files created after the checkpoint
    #[arg(long)]
    pub keep_new: bool,
    /// Also replace or delete existing ignored and secret files whose paths you did not give
    #[arg(long)]
    pub local: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
    /// Finish an interrupted restore
    #[arg(long = "continue", conflicts_with_all = ["checkpoint", "abort", "to"])]
    pub go_on: bool,
    /// Abort an interrupted restore, and put the files back as they were before it
    #[arg(long, conflicts_with_all = ["checkpoint", "to"])]
    pub abort: bool,
}

/// Returns the paths of `piton restore PATH` and `piton restore -- PATH…`, which name no checkpoint.
///
/// # Errors
/// `ambiguous-checkpoint` for a word that is both.
fn paths_alone(context: &Context, timeline: &mut Timeline, args: &RestoreArgs) -> Result<Vec<PathBuf>> {
    let Some(word) = args.checkpoint.as_deref() else { return Ok(args.only.clone()) };
    let has_options = args.to.is_some() || args.keep_new || args.local || !args.except.is_empty();
    if !args.paths.is_empty() || !args.only.is_empty() || has_options {
        return Ok(Vec::new());
    }
    match timeline.catalog().resolve(word) {
        Ok(found) => refuse_path_too(context, timeline, word, &found, "restore").map(|()| Vec::new()),
        Err(error) if error.code() == Code::NoSuchCheckpoint => {
            let all = timeline.catalog().all()?;
            match is_path(context, timeline, word, &all.checkpoints)? {
                true => Ok(vec![PathBuf::from(word)]),
                false if is_pattern(word) => Err(pattern_alone(word)),
                false => Ok(Vec::new()),
            }
        }
        // It is reported when the checkpoint is looked for.
        Err(_) => Ok(Vec::new()),
    }
}

/// Refuses a pattern without a checkpoint: the files that it matches may have their newest versions in several.
fn pattern_alone(word: &str) -> Error {
    let text = format!("the pattern `{}` needs a checkpoint before it", printable(word));
    let word = shell_word(word);
    Error::new(Code::BadRequest, text)
        .hint(format!("for example, `piton restore latest {word}`; `piton find {word}` lists the matching files"))
}

/// Returns the newest checkpoint from which the files differ, else the newest of all.
fn newest_differing(timeline: &mut Timeline) -> Result<Checkpoint> {
    let newest = checkpoint(timeline, None)?;
    let present = timeline.present(Some(&newest), &stop::flow)?;
    let catalog = timeline.catalog();
    let known = catalog.all()?;
    let mut seen = HashSet::new();
    for one in known.checkpoints.iter().rev().filter(|one| is_counted(one)) {
        if seen.insert(one.tree) && !catalog.changes_to_present(one, &present)?.is_empty() {
            return Ok(one.clone());
        }
    }
    Ok(newest)
}

/// Returns the checkpoint that was typed, or that is meant where none was, and the path of `CHECKPOINT:PATH`.
///
/// # Errors
/// `no-such-checkpoint`, `no-such-path`; `bad-request` without a checkpoint where all files would be restored unasked.
fn typed_checkpoint(
    context: &Context,
    timeline: &mut Timeline,
    args: &RestoreArgs,
) -> Result<(Checkpoint, Option<RelPath>)> {
    match &args.checkpoint {
        Some(what) => {
            let (checkpoint, path) =
                split(context, timeline, what).map_err(|error| neither_checkpoint_nor_path(what, error))?;
            // A word that is neither a path nor a selector is more likely meant as a path of the checkpoint.
            if let Some(path) = &path
                && !timeline.catalog().is_held(&checkpoint, path)?
            {
                return Err(timeline
                    .catalog()
                    .resolve(what)
                    .err()
                    .unwrap_or_else(|| refusal(checkpoint.record.number, &context.place(path))));
            }
            Ok((checkpoint, path))
        }
        None if args.to.is_some() || args.keep_new || args.local => Ok((checkpoint(timeline, None)?, None)),
        // In a directory that is gone, nothing is replaced.
        None if args.yes && timeline.workspace().path.symlink_metadata().is_ok() => {
            checkpoint(timeline, None)?;
            let text = "`piton restore --yes` restores all files, so you must give a checkpoint";
            Err(Error::new(Code::BadRequest, text).hint("for example, `piton restore latest --yes`"))
        }
        None => Ok((newest_differing(timeline)?, None)),
    }
}

/// Restores files, or rolls a run back.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn restore(context: &mut Context, args: &RestoreArgs) -> Result<Exit> {
    if let (Some(run), Some(to)) = (&args.run, &args.to) {
        let how = RollbackArgs {
            target: Vec::new(),
            run: Some(run.clone()),
            keep_new: args.keep_new,
            yes: args.yes,
            preview: args.preview,
        };
        return rollback_to(context, &to.to_string_lossy(), &how);
    }
    if args.interactive {
        let checkpoint = args.checkpoint.as_deref().map_or_else(|| "N".to_owned(), shell_word);
        let all = format!(
            "`piton restore {checkpoint}` restores everything; `piton restore {checkpoint} PATH` restores a single path"
        );
        choose::require_screen(&all)?;
    }
    let mut timeline = context.timeline_to_read()?;
    if args.go_on || args.abort {
        return end_interrupted(context, &mut timeline, args.go_on);
    }
    let alone = paths_alone(context, &mut timeline, args)?;
    if !alone.is_empty() && args.to.is_none() {
        drop(timeline);
        return recover_all(context, alone, args);
    }
    let (checkpoint, named) = typed_checkpoint(context, &mut timeline, args)?;
    if let Some(what) = &args.checkpoint {
        tell_replaced(&timeline, what, &checkpoint);
    }
    if named.is_none() && args.paths.is_empty() && args.only.is_empty() && args.to.is_none() {
        refuse_unnamed(context, checkpoint.record.number)?;
    }
    let typed = [args.paths.as_slice(), args.only.as_slice()].concat();
    let known = std::slice::from_ref(&checkpoint);
    let mut typed = path_words::read(context, &timeline, &typed, &args.except, known)?;
    typed.paths.extend(named);
    if let Some(dir) = &args.to {
        return export(context, &timeline, &checkpoint, &typed, dir);
    }
    let TypedPaths { paths, limits } = typed;
    let limits = Arc::new(limits);
    timeline.catalog().refuse_interrupted()?;
    if let Some(text) = stdio::foreign(&timeline, &checkpoint) {
        print::note(&text);
    }
    if paths.iter().any(is_of_repository) {
        return repositories(context, &mut timeline, &checkpoint, &paths, args);
    }
    let plain = Restore::to(checkpoint.id, "local", paths.clone(), args.keep_new);
    let restore = Restore { local: args.local, limits: Arc::clone(&limits), ..plain };
    let preview = timeline.preview(&restore, &stop::flow)?;
    if let Some(path) = timeline.catalog().unheld(&preview.target, &preview.plan, &paths)?.first() {
        return Err(refusal(preview.target.record.number, &context.place(path)));
    }
    refuse_unmatched(&timeline, &preview, &limits)?;
    if args.interactive {
        return choose::restore(context, &mut timeline, restore, &preview);
    }
    if let Some(exit) = ask_first(context, &preview, (args.yes, args.preview), "Restore")? {
        return Ok(exit);
    }
    let restore = if args.yes { restore } else { restore.agreeing(&preview) };
    let restored = timeline.restore(&restore, &stop::flow)?;
    print::settled(timeline.leave());
    finished(context, &restored, (RESTORED, None), Some(&preview))
}

/// Refuses a pattern that matches nothing in the checkpoint, and nothing that the restore is about.
///
/// # Errors
/// `no-such-path`; `store-damaged`.
fn refuse_unmatched(timeline: &Timeline, preview: &Preview, limits: &PathLimits) -> Result<()> {
    let plan = &preview.plan;
    let kept = plan.keep.iter().map(|(path, _)| path);
    let planned: Vec<&RelPath> = plan.touched().chain(kept).chain(plan.conflict.iter().map(|(path, _)| path)).collect();
    // The checkpoint is read only if the plan does not answer it.
    if limits.unmatched(&planned).is_none() {
        return Ok(());
    }
    let (held, _) = timeline.catalog().contents(&preview.target)?;
    let all: Vec<&RelPath> = planned.into_iter().chain(held.iter().map(|(path, _)| path)).collect();
    limits.unmatched(&all).map_or(Ok(()), |pattern| Err(unmatched(preview.target.record.number, pattern)))
}

/// Returns the error for a pattern that matches nothing.
fn unmatched(number: Number, pattern: &str) -> Error {
    let text = format!("`{}` matches no path in checkpoint {number}, and no new path here", printable(pattern));
    Error::new(Code::NoSuchPath, text).hint("`piton find PATTERN` lists the matching files in all checkpoints")
}

/// Restores the newest version that differs of each path.
fn recover_all(context: &mut Context, paths: Vec<PathBuf>, args: &RestoreArgs) -> Result<Exit> {
    let mut all = Exit::Nothing;
    for path in paths {
        let (interactive, yes, preview) = (args.interactive, args.yes, args.preview);
        match recover(context, &RecoverArgs { path, interactive, yes, preview })? {
            Exit::Nothing => {}
            Exit::Done if all == Exit::Part => {}
            exit @ (Exit::Done | Exit::Part) => all = exit,
            other => return Ok(other),
        }
    }
    Ok(all)
}

/// Ends the interrupted restore here, or those in other workspaces of a turn's undo that was begun here.
fn end_interrupted(context: &Context, timeline: &mut Timeline, go_on: bool) -> Result<Exit> {
    let verb = if go_on { "Finished the restore of" } else { "Aborted the restore of" };
    let members = timeline.interrupted_members()?;
    if members.is_empty() || timeline.catalog().history()?.interrupted.is_some() {
        let restored = timeline.resume(go_on, &stop::flow)?;
        print::settled(timeline.leave());
        return finished(context, &restored, (verb, None), None);
    }
    let mut exit = Exit::Done;
    for root in members {
        let mut other = timeline.beside(&root)?;
        print::note(&format!("piton: ending the interrupted restore in {}", print::path(&root)));
        let restored = other.resume(go_on, &stop::flow)?;
        print::settled(other.leave());
        let ended = finished(context, &restored, (verb, None), None)?;
        exit = if ended == Exit::Part { ended } else { exit };
    }
    if go_on {
        print::note("piton: to see what is left to undo in this workspace, run `piton undo --preview`");
    }
    Ok(exit)
}

/// Refuses to bring back files outside every workspace that nobody has named: what stands there belongs to no one project.
///
/// # Errors
/// `bad-request`.
pub(super) fn refuse_unnamed(context: &Context, number: Number) -> Result<()> {
    if !context.is_outside() {
        return Ok(());
    }
    let text = "to restore files outside every workspace, you must give their paths";
    Err(Error::new(Code::BadRequest, text).hint(format!(
        "`piton show --outside {number}` lists the files; then run `piton restore --outside {number} PATH…`"
    )))
}

/// Returns true for a repository's own data, which no checkpoint holds as files.
fn is_of_repository(path: &RelPath) -> bool {
    path.components().any(|name| name == b".git")
}

/// Brings back repositories that were kept, where they are gone.
fn repositories(
    context: &Context,
    timeline: &mut Timeline,
    checkpoint: &Checkpoint,
    paths: &[RelPath],
    args: &RestoreArgs,
) -> Result<Exit> {
    if args.interactive {
        let text = "a repository can only be restored as a whole; you cannot choose files";
        return Err(Error::new(Code::BadRequest, text).hint("run the command without -i"));
    }
    if let Some(other) = paths.iter().find(|path| !is_of_repository(path)) {
        let text = format!("`{}` is a file; files and a repository cannot be restored together", other.display());
        return Err(Error::new(Code::BadRequest, text).hint("restore the files with a separate command"));
    }
    let all = timeline.catalog().repositories_of(checkpoint)?;
    let of = |path: &RelPath| all.iter().find(|kept| kept.path == *path).cloned();
    let mut chosen = Vec::new();
    for path in paths {
        chosen.push(of(path).ok_or_else(|| refusal(checkpoint.record.number, &context.place(path)))?);
    }
    let leading = context.leading();
    let names: Vec<String> = chosen.iter().map(|kept| format!("{leading}{}", kept.path.display())).collect();
    let names = names.join(", ");
    if !context.json {
        let as_it_was =
            if chosen.iter().any(|kept| kept.left.is_some()) { "as far as it was saved" } else { "as it was" };
        print::data(&format!("{names}, {as_it_was} before it was destroyed\n"))?;
    }
    chosen.iter().filter_map(|kept| missing(leading, kept)).for_each(|text| print::warning(&text));
    if args.preview {
        return Ok(Exit::Done);
    }
    if let Some(exit) = Some(()).filter(|()| !args.yes).and_then(|()| agreed("Restore it")) {
        return Ok(exit);
    }
    let (mut files, mut is_part) = (0, chosen.iter().any(|kept| kept.left.is_some()));
    for kept in &chosen {
        let back = timeline.bring_back(kept)?;
        files += back.files;
        is_part |= !back.damaged.is_empty();
        if let Some(text) = damaged(leading, kept, &back.damaged) {
            print::warning(&text);
        }
    }
    if context.json {
        let created = List::of_paths(chosen.iter().map(|kept| &kept.path));
        let to = timeline.workspace().path.to_string_lossy().into_owned();
        print::json(&ExportDocument { to, created, failed: List::default() })?;
    } else {
        print::data(&format!("Restored {names}: {}. `piton undo` cannot undo this.\n", count(files, "file")))?;
    }
    Ok(if is_part { Exit::Part } else { Exit::Done })
}

/// Says what was not kept of a repository; `None` if all was.
fn missing(leading: &str, kept: &KeptRepository) -> Option<String> {
    let left = kept.left.as_ref()?;
    let what = match left.count {
        0 => "a part".to_owned(),
        number => format!("{} ({})", count(number, "file"), left.weight),
    };
    let first = some(left.paths.iter().map(|path| format!("{leading}{}", path.display())), left.count);
    let why = "not saved because over `limits.git_copy_mb` or unreadable";
    Some(format!("missing from {leading}{}: {what}, {why}{first}", kept.path.display()))
}

/// Says which objects of a repository were changed after it was kept; `None` if all are whole.
fn damaged(leading: &str, kept: &KeptRepository, paths: &[RelPath]) -> Option<String> {
    let number = paths.len() as u64;
    let first = some(paths.iter().map(RelPath::display), number);
    let of = kept.path.display();
    let what = count(number, "file");
    (number > 0).then(|| {
        format!(
            "{what} among the objects of {leading}{of} changed after the copy was made, so the contents are lost{first}. To list \
             them, run `git fsck` there"
        )
    })
}

/// Lists the first of some paths behind a colon; nothing without any.
fn some(paths: impl Iterator<Item = String>, number: u64) -> String {
    let first: Vec<String> = paths.take(3).collect();
    let more = if number > first.len() as u64 { ", …" } else { "" };
    if first.is_empty() { String::new() } else { format!(": {}{more}", first.join(", ")) }
}

fn export(
    context: &Context,
    timeline: &Timeline,
    checkpoint: &Checkpoint,
    typed: &TypedPaths,
    dir: &Path,
) -> Result<Exit> {
    let TypedPaths { paths, limits } = typed;
    if !limits.is_none() {
        let (held, _) = timeline.catalog().contents(checkpoint)?;
        if let Some(pattern) = limits.unmatched(&held.iter().map(|(path, _)| path).collect::<Vec<_>>()) {
            return Err(unmatched(checkpoint.record.number, pattern));
        }
    }
    let outcome = timeline.catalog().export(checkpoint, paths, limits, dir, &stop::flow)?;
    if outcome.stopped {
        let written = count(outcome.created.len() as u64, "path");
        let text = format!("interrupted after writing {written} of checkpoint {}", checkpoint.record.number);
        let hint = "remove the directory or choose another one, then run the command again";
        return Err(Error::new(Code::Conflict, text).path(dir).hint(hint));
    }
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
