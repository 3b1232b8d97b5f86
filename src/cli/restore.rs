//! Verbs that bring files back: restore, undo, redo.

use super::print::{Answer, ask};
use super::verbs::{RestoreArgs, StepArgs};
use super::{Context, Exit, print};
use crate::checkpoint::restore::{Preview, Restore, Restored};
use crate::checkpoint::timeline::Timeline;
use crate::checkpoint::undo::Direction;
use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;
use crate::model::text::{count, printable};
use crate::sidecar::shared;
use crate::worktree::Flow;

/// Paths of one list that are shown before it is cut.
const SHOWN: usize = 20;

pub fn restore(context: &mut Context, args: &RestoreArgs) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    if args.go_on || args.abort {
        let restored = timeline.resume(args.go_on, &|| Flow::Continue)?;
        print::settled(timeline.leave());
        return finished(context, &restored, if args.go_on { "Finished" } else { "Given up" });
    }
    let checkpoint = timeline.resolve(args.checkpoint.as_deref().unwrap_or_default())?;
    let paths = context.paths(timeline.workspace(), &args.paths)?;
    if let Some(dir) = &args.to {
        return export(context, &timeline, &checkpoint, &paths, dir);
    }
    timeline.refuse_interrupted()?;
    if timeline.is_foreign(&checkpoint) {
        let (id, of) = (checkpoint.id.short(), &checkpoint.record.workspace);
        print::say(&format!("Checkpoint {id} was fetched from another machine (workspace {of}, its own number)."));
    }
    let restore = Restore::to(checkpoint.id, "local", paths.clone(), args.keep_new);
    let preview = timeline.preview(&restore, &|| Flow::Continue)?;
    for path in &paths {
        known_path(&timeline, &preview, path)?;
    }
    if let Some(exit) = ask_first(context, &preview, (args.yes, args.preview), "Restore")? {
        return Ok(exit);
    }
    let restored = timeline.restore(&restore, &|| Flow::Continue)?;
    print::settled(timeline.leave());
    finished(context, &restored, "Restored")
}

/// A path that neither the checkpoint nor the workspace has is a slip of the finger.
fn known_path(timeline: &Timeline, preview: &Preview, path: &RelPath) -> Result<()> {
    let held = timeline.entry_at(&preview.target.tree, path)?.is_some();
    let touched = preview.plan.touched().any(|touched| touched.starts_with(path));
    let kept = preview.plan.keep.iter().any(|(kept, _)| kept.starts_with(path));
    if path.is_root() || held || touched || kept {
        return Ok(());
    }
    Err(Error::new(
        Code::NoSuchCheckpoint,
        format!("checkpoint {} does not hold that path", preview.target.record.ordinal),
    )
    .path(path.to_path())
    .hint("`piton find PATH` says which checkpoints do"))
}

fn export(
    context: &Context,
    timeline: &Timeline,
    checkpoint: &crate::checkpoint::Checkpoint,
    paths: &[RelPath],
    dir: &std::path::Path,
) -> Result<Exit> {
    let outcome = timeline.export(checkpoint, paths, dir)?;
    let text = format!(
        "Wrote {} of checkpoint {} to {}.\n",
        count(outcome.created.len() as u64, "path"),
        checkpoint.record.ordinal,
        print::path(dir)
    );
    if context.json {
        let created = crate::protocol::List::of_paths(outcome.created.iter());
        let failed = crate::protocol::List::of_reasons(outcome.failed.iter().map(|(path, why)| (path, why.clone())));
        print::json(&serde_json::json!({ "to": dir.to_string_lossy(), "created": created, "failed": failed }))?;
    } else {
        print::data(&text)?;
        outcome.failed.iter().for_each(|(path, why)| print::warning(&format!("{}: {why}", path.display())));
    }
    Ok(if outcome.failed.is_empty() { Exit::Done } else { Exit::Part })
}

/// Shows the preview and asks; `Some` when nothing is to be done, or not yet.
pub(super) fn ask_first(
    context: &Context,
    preview: &Preview,
    (yes, only): (bool, bool),
    verb: &str,
) -> Result<Option<Exit>> {
    if context.json && (only || !yes) {
        print::json(&shared::preview(preview))?;
        return Ok(Some(if only { Exit::Done } else { Exit::Refused }));
    }
    if preview.plan.changes_nothing() {
        let conflicts = !preview.plan.conflict.is_empty();
        if context.json {
            print::json(&shared::preview(preview))?;
        } else {
            print::data(&preview_text(preview))?;
            print::data("Nothing to do.\n")?;
        }
        return Ok(Some(if conflicts { Exit::Part } else { Exit::Nothing }));
    }
    if !context.json {
        print::data(&preview_text(preview))?;
    }
    if only {
        return Ok(Some(Exit::Done));
    }
    if yes { Ok(None) } else { agreed(verb) }
}

/// Asks; `Some` unless the answer is yes.
pub(super) fn agreed(question: &str) -> Result<Option<Exit>> {
    match ask(&format!("{question}?")) {
        Answer::Yes => Ok(None),
        Answer::No => {
            print::say("Nothing was changed.");
            Ok(Some(Exit::Refused))
        }
        Answer::Nobody => {
            print::say("Nothing was changed: there is no terminal to ask on. Say --yes to go ahead.");
            Ok(Some(Exit::Refused))
        }
    }
}

fn preview_text(preview: &Preview) -> String {
    let (target, plan) = (&preview.target.record, &preview.plan);
    let mut text = print::bold(&format!(
        "Back to checkpoint {} ({}, {})",
        target.ordinal,
        print::local_time(&target.time),
        printable(&target.reason)
    ));
    text.push('\n');
    let paths = |list: Vec<&RelPath>| list.into_iter().map(|path| (path.display(), String::new())).collect::<Vec<_>>();
    section(&mut text, "bring back", paths(plan.create.iter().map(|(path, _)| path).collect()));
    section(&mut text, "change", paths(plan.replace.iter().map(|(path, _, _)| path).collect()));
    section(
        &mut text,
        "delete (created since; undo brings them back)",
        paths(plan.delete.iter().map(|(path, _)| path).collect()),
    );
    section(&mut text, "keep", plan.keep.iter().map(|(path, why)| (path.display(), why.to_string())).collect());
    section(
        &mut text,
        "in conflict, left as it is",
        plan.conflict.iter().map(|(path, why)| (path.display(), why.to_string())).collect(),
    );
    if preview.stat.files > 0 {
        add_line!(text, "  {}", super::look::stat_text(&preview.stat));
    }
    for external in &preview.externals {
        let when = print::local_time(&external.time);
        add_line!(text, "  NOT UNDONE: {} ({when})", printable(&external.message));
    }
    for warning in &preview.warnings {
        add_line!(text, "  note: {}", printable(warning));
    }
    text
}

fn section(text: &mut String, title: &str, rows: Vec<(String, String)>) {
    if rows.is_empty() {
        return;
    }
    add_line!(text, "  {title}:");
    for (path, why) in rows.iter().take(SHOWN) {
        let why = if why.is_empty() { String::new() } else { format!("  ({})", printable(why)) };
        add_line!(text, "    {path}{why}");
    }
    if rows.len() > SHOWN {
        add_line!(text, "    … and {} more", rows.len() - SHOWN);
    }
}

pub(super) fn finished(context: &Context, restored: &Restored, verb: &str) -> Result<Exit> {
    let outcome = &restored.outcome;
    let part = !outcome.failed.is_empty() || !restored.conflicts.is_empty();
    if context.json {
        print::json(&shared::restored(restored))?;
    } else {
        let mut text = format!(
            "{verb}: checkpoint {}. {} brought back, {} changed, {} deleted, {} kept.\n",
            restored.target.record.ordinal,
            outcome.created.len(),
            outcome.replaced.len(),
            outcome.deleted.len(),
            outcome.kept.len()
        );
        for (path, why) in outcome.failed.iter().chain(&restored.conflicts) {
            add_line!(text, "  not changed: {}  ({})", path.display(), printable(why));
        }
        for external in &restored.externals {
            add_line!(text, "  NOT UNDONE: {}", printable(&external.message));
        }
        if restored.operation.is_some() {
            let back = if verb == "Undone" { "redo" } else { "undo" };
            add_line!(text, "`piton {back}` takes this back.");
        }
        print::data(&text)?;
        restored.warnings.iter().for_each(|warning| print::warning(warning));
        outcome.warnings.iter().for_each(|(path, why)| print::warning(&format!("{}: {why}", path.display())));
    }
    Ok(if part {
        Exit::Part
    } else if restored.operation.is_none() {
        Exit::Nothing
    } else {
        Exit::Done
    })
}

pub fn undo(context: &mut Context, args: &StepArgs) -> Result<Exit> {
    step(context, args, Direction::Undo)
}

pub fn redo(context: &mut Context, args: &StepArgs) -> Result<Exit> {
    step(context, args, Direction::Redo)
}

fn step(context: &mut Context, args: &StepArgs, direction: Direction) -> Result<Exit> {
    let mut timeline = context.timeline()?;
    timeline.refuse_interrupted()?;
    let Some(next) = timeline.next_step(direction)? else {
        let message = shared::nothing(direction, timeline.checkpoint_before_last_turn()?);
        if context.json {
            print::json(&serde_json::json!({ "operation": null, "message": message }))?;
        } else {
            print::data(&format!("{message}\n"))?;
        }
        return Ok(Exit::Nothing);
    };
    let word = match direction {
        Direction::Undo => "Undo",
        Direction::Redo => "Redo",
    };
    if !context.json {
        print::data(&format!("{word} of operation {} ({})\n", next.op, print::local_time(&next.time)))?;
    }
    let preview = timeline.preview_step(direction, &next, &|| Flow::Continue)?;
    if let Some(exit) = ask_first(context, &preview, (args.yes, args.preview), word)?
        && (exit != Exit::Nothing || args.preview)
    {
        return Ok(exit);
    }
    let restored = timeline.step(direction, &next, "local", &|| Flow::Continue)?;
    print::settled(timeline.leave());
    finished(context, &restored, if direction == Direction::Undo { "Undone" } else { "Redone" })
}
