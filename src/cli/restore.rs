//! Verbs that bring files back: restore, undo, redo.

use super::print::{Answer, ask};
use super::report::{self, Words};
use super::verbs::{RestoreArgs, StepArgs};
use super::{Context, Exit, print};
use crate::checkpoint::capture::held::refusal;
use crate::checkpoint::history::restore::{Preview, Restore, Restored};
use crate::checkpoint::history::undo::Direction;
use crate::checkpoint::timeline::Timeline;
use crate::doors::stdio::shared;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::text::count;
use crate::sys::interrupt::Flow;

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
    if let Some(text) = shared::foreign(&timeline, &checkpoint) {
        print::say(&text);
    }
    let restore = Restore::to(checkpoint.id, "local", paths.clone(), args.keep_new);
    let preview = timeline.preview(&restore, &|| Flow::Continue)?;
    if let Some(path) = timeline.unheld(&preview, &paths)?.first() {
        return Err(refusal(preview.target.record.ordinal, path.to_path()));
    }
    if let Some(exit) = ask_first(context, &preview, (args.yes, args.preview), "Restore")? {
        return Ok(exit);
    }
    let restore = if args.yes { restore } else { restore.agreeing(&preview) };
    let restored = timeline.restore(&restore, &|| Flow::Continue)?;
    print::settled(timeline.leave());
    finished(context, &restored, "Restored")
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
            print::data(&preview_text(preview)?)?;
            print::data(report::NOTHING)?;
        }
        return Ok(Some(if conflicts { Exit::Part } else { Exit::Nothing }));
    }
    if !context.json {
        print::data(&preview_text(preview)?)?;
    }
    if only {
        return Ok(Some(Exit::Done));
    }
    if yes { Ok(None) } else { agreed(verb) }
}

/// No file changes, but a run moves: that is asked too.
pub(super) fn ask_to_move(context: &Context, what: &str, yes: bool, question: &str) -> Result<Option<Exit>> {
    if !context.json {
        print::data(&format!("{what}\n"))?;
    }
    if yes { Ok(None) } else { agreed(question) }
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

fn preview_text(preview: &Preview) -> Result<String> {
    Ok(report::preview(&report::read(&shared::preview(preview))?))
}

pub(super) fn finished(context: &Context, restored: &Restored, verb: &str) -> Result<Exit> {
    let outcome = &restored.outcome;
    let part = !outcome.failed.is_empty() || !restored.conflicts.is_empty();
    if context.json {
        print::json(&shared::restored(restored))?;
    } else {
        let back = if verb == "Undone" { "piton redo" } else { Words::TERMINAL.undo() };
        let text = report::outcome(&report::read(&shared::restored(restored))?, verb, back);
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
        let message = timeline.why_no_step(direction)?;
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
        print::data(&report::step(word, &report::read(&shared::over(&next))?))?;
    }
    let preview = timeline.preview_step(direction, &next, &|| Flow::Continue)?;
    let moves_only = preview.plan.changes_nothing() && next.moved.is_some() && !args.preview && !context.json;
    let answered = match moves_only {
        true => ask_to_move(context, "No file changes, only the run moves.", args.yes, word)?,
        false => ask_first(context, &preview, (args.yes, args.preview), word)?,
    };
    if let Some(exit) = answered.filter(|exit| *exit != Exit::Nothing || args.preview) {
        return Ok(exit);
    }
    let restore = Restore::stepping(direction, &next, "local")?;
    let restore = if args.yes { restore } else { restore.agreeing(&preview) };
    let restored = timeline.restore(&restore, &|| Flow::Continue)?;
    print::settled(timeline.leave());
    finished(context, &restored, if direction == Direction::Undo { "Undone" } else { "Redone" })
}
