//! `piton undo` and `piton redo`.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::choose;
use super::confirm::{Agreement, agreed, agreed_part};
use super::context::Context;
use super::deleted;
use super::exit::Exit;
use super::git_undo::{GitUndoArgs, git_undo};
use super::path_words::{self, TypedPaths};
use super::print;
use super::report;
use super::step_report::{heading, make_preview_absolute, make_result_absolute, others_after, others_before};
use super::stop;
use super::undo_args::{self, RedoArgs, UndoArgs};
use crate::checkpoint::catalog::words::is_git_command;
use crate::checkpoint::history::group::{StepDone, StepPreview, Stepping};
use crate::checkpoint::history::operations::UndoStep;
use crate::checkpoint::history::request::Restored;
use crate::checkpoint::history::step_choice::StepChoice;
use crate::checkpoint::history::undo::{Direction, may_undo};
use crate::checkpoint::{Timeline, Workspace};
use crate::doors::replies;
use crate::engine::parts::OUTSIDE;
use crate::error::{Code, Error, Result};
use crate::model::operation::OperationKind;
use crate::model::run::run_id;
use crate::model::text::{count, printable, shell_word};
use crate::model::turn::Attribution;
use crate::protocol::{ErrorBody, NoStep, PreviewReply, RestoreReply};

/// Undoes the newest turn, restore or rollback, or a chosen turn.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn undo(context: &mut Context, args: &UndoArgs) -> Result<Exit> {
    if args.interactive {
        choose::require_screen("`piton undo` undoes everything; `piton undo -- PATH` undoes a single path")?;
    }
    if let Some(operation) = args.what.first().filter(|word| args.what.len() == 1 && is_git_command(word)) {
        if args.interactive {
            let text = "a git command can only be undone as a whole; you cannot choose paths";
            let hint = format!("to undo it, run `piton git-undo {}`", shell_word(operation));
            return Err(Error::new(Code::BadRequest, text).hint(hint));
        }
        let operation = Some(operation.clone());
        return git_undo(
            context,
            &GitUndoArgs { operation, list: false, to: None, yes: args.yes, preview: args.preview },
        );
    }
    if args.git {
        let (to, yes, preview) = (args.to.clone(), args.yes, args.preview);
        return git_undo(context, &GitUndoArgs { operation: None, list: false, to, yes, preview });
    }
    let mut timeline = context.timeline_to_read()?;
    let named = undo_args::read(context, &mut timeline, args)?;
    let known = timeline.catalog().all()?;
    let TypedPaths { paths, limits } =
        path_words::read(context, &timeline, &named.paths, &args.except, &known.checkpoints)?;
    let mut choice = StepChoice {
        turn: named.turn,
        run: args.run.as_deref().map(run_id),
        paths,
        limits: Arc::new(limits),
        include: args.include.iter().map(|included| included.share()).collect(),
        session: None,
    };
    if args.interactive {
        return match in_deleted(context, &mut timeline, &choice)? {
            Some(there) => choose::undo(&there, &mut there.timeline()?, choice),
            None => choose::undo(context, &mut timeline, choice),
        };
    }
    if args.hunk {
        // The person sees each hunk.
        choice.include.push(Attribution::Likely);
        return super::hunks::undo(context, &mut timeline, &choice);
    }
    let how = How { yes: args.yes, only: args.preview };
    match &choice.run {
        Some(run) if choice.turn.is_none() && choice.is_of_all_paths() => {
            let run = run.clone();
            run_of_turns(context, &mut timeline, how, (&run, choice))
        }
        _ => match in_deleted(context, &mut timeline, &choice)? {
            Some(there) => {
                step(&there, &mut there.timeline()?, how, Direction::Undo, choice, &mut Documents::default())
            }
            None => step(context, &mut timeline, how, Direction::Undo, choice, &mut Documents::default()),
        },
    }
}

/// Returns the context of a deleted workspace in the working directory, if there is nothing to undo but the turn that deleted it. Says so.
fn in_deleted(context: &Context, timeline: &mut Timeline, choice: &StepChoice) -> Result<Option<Context>> {
    let control = stop::flow;
    if !choice.names_nothing() || context.named_workspace().is_some() {
        return Ok(None);
    }
    let Some(deleted) = deleted::only(context)? else { return Ok(None) };
    if Stepping::choose(timeline, Direction::Undo, choice, "local", &control)?.is_some() {
        return Ok(None);
    }
    let path = deleted.to_string_lossy().into_owned();
    let there = context.at(deleted);
    let mut timeline = there.timeline()?;
    let next = Stepping::choose(&mut timeline, Direction::Undo, choice, "local", &control)?;
    // A person may have deleted it after an older turn.
    let end = next.and_then(|next| next.step.turn.as_ref().map(|turn| turn.end));
    if !end.map_or(Ok(false), |end| timeline.catalog().has_no_files(&end))? {
        return Ok(None);
    }
    if !context.json {
        let (shown, word) = (printable(&path), shell_word(&path));
        print::data(&format!("{shown} was deleted. Running `piton undo --workspace {word}`:\n\n"))?;
    }
    Ok(Some(there))
}

/// Undoes all turns of a run, the newest first.
fn run_of_turns(
    context: &Context,
    timeline: &mut Timeline,
    how: How,
    (run, choice): (&str, StepChoice),
) -> Result<Exit> {
    timeline.settle_group(&stop::flow)?;
    let turns = timeline.catalog().turns_to_undo(run, &choice)?;
    if how.only && turns.len() > 1 && !context.json {
        print::data(&format!(
            "{} of run {}, newest first. This preview compares each turn with the files as they are now. A file that a \
             newer turn changed again is listed as kept for the older turn, but it will be restored anyway.\n\n",
            count(turns.len() as u64, "turn"),
            printable(run)
        ))?;
    }
    let mut documents = Documents { collected: context.json.then(Vec::new) };
    let mut all = Exit::Nothing;
    for (number, turn) in turns.into_iter().enumerate() {
        if number > 0 && !context.json {
            print::data("\n")?;
        }
        let choice = StepChoice { turn: Some(turn), ..choice.clone() };
        let exit = match step(context, timeline, how, Direction::Undo, choice, &mut documents) {
            // The steps before are told all the same.
            Err(error) if number > 0 && context.json => {
                documents.print(Some(&error))?;
                return Ok(Exit::Part);
            }
            exit => exit?,
        };
        all = match exit {
            Exit::Nothing => all,
            Exit::Done if all == Exit::Part => all,
            exit @ (Exit::Done | Exit::Part) => exit,
            other => {
                all = other;
                break;
            }
        };
    }
    documents.print(None)?;
    Ok(all)
}

/// Redoes what was undone last.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn redo(context: &mut Context, args: &RedoArgs) -> Result<Exit> {
    let mut timeline = context.timeline_to_read()?;
    let how = How { yes: args.yes, only: args.preview };
    let choice = StepChoice { turn: args.turn.clone().or_else(|| args.what.clone()), ..StepChoice::default() };
    step(context, &mut timeline, how, Direction::Redo, choice, &mut Documents::default())
}

/// The way in which a step is taken.
#[derive(Clone, Copy, Debug)]
struct How {
    /// Nothing is asked.
    yes: bool,
    /// It is only shown.
    only: bool,
}

/// The JSON documents of a command's steps.
#[derive(Debug, Default)]
struct Documents {
    /// Several steps have one document together; `None` if a step's document is printed by itself.
    collected: Option<Vec<PreviewOrDone>>,
}

/// The document of one step.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum PreviewOrDone {
    Preview(Box<PreviewReply>),
    Done(Box<RestoreReply>),
}

impl Documents {
    /// Prints the document of a step, or keeps it for the one of all steps.
    fn give(&mut self, document: PreviewOrDone) -> Result<()> {
        match &mut self.collected {
            Some(collected) => {
                collected.push(document);
                Ok(())
            }
            None => print::json_as_declared(&document),
        }
    }

    /// Prints the one document of all steps, if they were kept for it, with the error that ended them.
    fn print(self, error: Option<&Error>) -> Result<()> {
        #[derive(Serialize)]
        struct Steps {
            steps: Vec<PreviewOrDone>,
            #[serde(skip_serializing_if = "Option::is_none")]
            error: Option<ErrorBody>,
        }
        let error = error.map(ErrorBody::from);
        self.collected.map_or(Ok(()), |steps| print::json_as_declared(&Steps { steps, error }))
    }
}

fn step(
    context: &Context,
    timeline: &mut Timeline,
    how: How,
    direction: Direction,
    mut choice: StepChoice,
    documents: &mut Documents,
) -> Result<Exit> {
    let How { yes, only } = how;
    let control = stop::flow;
    let Some(mut stepping) = Stepping::choose(timeline, direction, &choice, "local", &control)? else {
        no_step(context, timeline, direction)?;
        return Ok(Exit::Nothing);
    };
    if let Some(message) = stepping.git_first(timeline, &choice)? {
        return git_first(context, message);
    }
    let (word, verb) = words(direction, stepping.is_of_part());
    let (next, is_open) = (stepping.step.clone(), stepping.is_open);
    let mut preview = stepping.preview(timeline, &control)?;
    if context.json && (only || !yes) {
        documents.give(PreviewOrDone::Preview(replies::step_preview((&next, is_open), &preview).into()))?;
        return Ok(if only { Exit::Done } else { Exit::Refused });
    }
    let mut said = String::new();
    if !context.json {
        said = told(context, word, (&next, is_open), &preview);
        if direction == Direction::Undo && choice.names_nothing() {
            print::data(&(passed_over(timeline, &next)? + &deleted::offers(context)?))?;
        }
        print::data(&said)?;
    }
    let mut has_agreed = yes;
    if direction == Direction::Undo && stepping.leaves_others() && !only && !yes {
        match agreed_part(word) {
            Agreement::Nothing(exit) => return Ok(exit),
            Agreement::Part => {}
            Agreement::All => {
                choice.include.extend(Attribution::ALL.into_iter().filter(|share| *share != Attribution::Outside));
                if let Some(wider) = Stepping::choose(timeline, direction, &choice, "local", &control)? {
                    stepping = wider;
                    preview = stepping.preview(timeline, &control)?;
                    said = told(context, word, (&next, is_open), &preview);
                    print::data(&said)?;
                }
            }
        }
        has_agreed = true;
    }
    let is_stuck = preview.leaves_part(direction == Direction::Undo && !only); // a preview compares older turns too
    if preview.changes_nothing() && next.moved.is_none() {
        let reply = replies::step_preview((&next, is_open), &preview);
        match context.json {
            true => documents.give(PreviewOrDone::Preview(reply.into()))?,
            false => print::data(&nothing(timeline, direction, &next, &reply)?)?,
        }
        (!only).then(|| stepping.pass(timeline)).transpose()?;
        return Ok(if is_stuck { Exit::Part } else { Exit::Nothing });
    }
    if preview.changes_nothing() && !context.json {
        print::data("No file changes; only the position of the run moves.\n")?;
    }
    if only {
        return Ok(Exit::Done);
    }
    if !has_agreed && let Some(exit) = agreed(word) {
        return Ok(exit);
    }
    if !yes {
        stepping.agree(&preview);
    }
    let done = stepping.take(timeline, &control)?;
    print::settled(timeline.leave());
    if context.json {
        documents.give(PreviewOrDone::Done(replies::step_done((&next, is_open), &done).into()))?;
        return Ok(exit(&done));
    }
    let back = back(context, timeline, direction, &next)?;
    finished(context, ((&next, is_open), &done), (verb, &back), (&preview, &said))
}

/// Returns the words for a step and for one that was taken.
fn words(direction: Direction, is_of_part: bool) -> (&'static str, &'static str) {
    match (direction, is_of_part) {
        (Direction::Undo, false) => ("Undo", report::UNDID),
        (Direction::Undo, true) => ("Undo part of", report::UNDID_PART),
        (Direction::Redo, _) => ("Redo", report::REDID),
    }
}

/// Names the command of git to take back before the files of a turn.
pub(super) fn git_first(context: &Context, message: String) -> Result<Exit> {
    match context.json {
        true => print::json(&NoStep { operation: None, message })?,
        false => print::data(&format!("Nothing was undone: {message}.\n"))?,
    }
    Ok(Exit::Part)
}

/// Says that a step changes nothing, and how to undo an operation before it.
fn nothing(timeline: &Timeline, direction: Direction, next: &UndoStep, reply: &PreviewReply) -> Result<String> {
    let below = below(timeline, direction, next)?.unwrap_or_default();
    Ok(report::nothing(reply, direction) + &below)
}

/// Says that there is no step to take, and names what can be restored elsewhere.
pub(super) fn no_step(context: &Context, timeline: &Timeline, direction: Direction) -> Result<()> {
    let message = timeline.catalog().why_no_step(direction)?;
    let deleted = if direction == Direction::Undo { deleted::offers(context)? } else { String::new() };
    if context.json {
        let message = format!("{message}\n{deleted}").trim_end().to_owned();
        return print::json(&NoStep { operation: None, message });
    }
    print::data(&format!("{message}\n{deleted}{}", elsewhere(context, direction)?))
}

/// Names the commands that undo what was done in the workspaces around and below this one, and to files of none.
fn elsewhere(context: &Context, direction: Direction) -> Result<String> {
    /// The most that are named around, and below.
    const MOST: usize = 3;
    let mut text = String::new();
    if direction == Direction::Redo || context.is_outside() {
        return Ok(text);
    }
    let root = context.root()?;
    let root = root.canonicalize().unwrap_or(root);
    let mut known = Workspace::known(&context.home)?;
    known.sort_by(|one, other| one.path.cmp(&other.path));
    let outside = known.iter().position(|other| other.path == Path::new(OUTSIDE)).map(|at| known.remove(at));
    let is_other = |other: &&Workspace| other.path != root && other.path.is_dir() && may_undo(other);
    // The nearest comes first.
    let above = known.iter().rev().filter(|other| root.starts_with(&other.path)).filter(is_other);
    let below = known.iter().filter(|other| other.path.starts_with(&root)).filter(is_other);
    let named = above.map(|other| ("above", other)).take(MOST).chain(below.map(|other| ("below", other)).take(MOST));
    for (place, other) in named {
        let path = shell_word(&other.path.to_string_lossy());
        add_line!(
            text,
            "Another workspace {place} this one has something to undo; run `piton undo --workspace {path}`."
        );
    }
    if let Some(outside) = outside {
        text.push_str(match may_undo(&outside) {
            true => "To undo a restore of files outside every workspace, run `piton undo --outside`.\n",
            false => "To restore files outside every workspace, give their paths. `piton list --outside` lists their checkpoints.\n",
        });
    }
    Ok(text)
}

/// Names the command that takes a step back.
pub(super) fn back(context: &Context, timeline: &Timeline, direction: Direction, step: &UndoStep) -> Result<String> {
    let option = context.option();
    if direction == Direction::Undo {
        return Ok(format!("piton redo{option}"));
    }
    let history = timeline.catalog().history()?;
    let is_next = history.next_undo().is_some_and(|next| next.op == step.op);
    Ok(if is_next { format!("piton undo{option}") } else { format!("piton undo{option} --turn {}", step.op) })
}

/// Says how to go back over the operation below a turn that has nothing to take back.
fn below(timeline: &Timeline, direction: Direction, step: &UndoStep) -> Result<Option<String>> {
    let history = timeline.catalog().history()?;
    let below = history.next_below(&step.op).filter(|below| direction == Direction::Undo && below.turn.is_none());
    let Some(below) = below else { return Ok(None) };
    // Without that checkpoint there is nothing to name.
    let Ok(before) = timeline.catalog().checkpoint_of(below.to) else { return Ok(None) };
    let before = before.record.number;
    let kind = if below.kind == OperationKind::Rollback { "rollback" } else { "restore" };
    Ok(Some(format!(
        "Before that turn, there was {kind} {}. To restore the files as they were before the {kind}, run `piton restore {before}`.\n",
        below.op
    )))
}

/// Names the turns above the next step at which an undo has stopped already.
fn passed_over(timeline: &Timeline, next: &UndoStep) -> Result<String> {
    let history = timeline.catalog().history()?;
    let above = history.undo.iter().rev().take_while(|step| step.op != next.op).filter(|step| !step.is_undone());
    let mut text = String::new();
    for turn in above.filter_map(|step| step.turn.as_ref()).filter(|turn| turn.is_passed) {
        add_line!(
            text,
            "The changes of the later turn `{}` ({}) were kept; to see them, run `piton diff --turn {}`.",
            printable(&turn.turn),
            turn.op,
            turn.op
        );
    }
    Ok(text)
}

/// Returns the preview of a step for people.
pub(super) fn told(context: &Context, word: &str, step: (&UndoStep, bool), preview: &StepPreview) -> String {
    let mut reply = replies::step_preview(step, preview);
    if context.is_outside() {
        make_preview_absolute(&mut reply);
    }
    let head = reply.over.as_ref().map(|over| report::step(word, over)).unwrap_or_default();
    head + &report::preview(&reply) + &others_before(&reply)
}

/// Prints the result of an undo of a part of a turn, and returns its exit code.
pub(super) fn undone(
    context: &Context,
    done: ((&UndoStep, bool), &StepDone),
    shown: (&StepPreview, &str),
) -> Result<Exit> {
    finished(context, done, (report::UNDID_PART, &format!("piton redo{}", context.option())), shown)
}

/// Prints the result of a step, and returns its exit code.
fn finished(
    context: &Context,
    (step, done): ((&UndoStep, bool), &StepDone),
    (verb, back): (&str, &str),
    (preview, said): (&StepPreview, &str),
) -> Result<Exit> {
    let reply = replies::step_done(step, done);
    let mut shown = reply.clone();
    if context.is_outside() {
        make_result_absolute(&mut shown);
    }
    let mut text = others_after(&reply, verb, back);
    // Where the turn acted in other places alone, there is nothing to say of this one.
    if shown.operation.is_some() || reply.others.is_empty() || shown.done.kept.total + shown.done.failed.total > 0 {
        text.push_str(&report::outcome(&shown, verb, back));
    }
    let is_heading = |line: &str| reply.others.iter().any(|other| heading(&other.workspace) == line);
    let is_new = |line: &&str| !said.lines().any(|known| known == *line) || is_heading(line);
    print::data(&text.lines().filter(is_new).map(|line| format!("{line}\n")).collect::<String>())?;
    let known = preview.own.warnings.as_slice();
    let news = done.own.warnings.iter().filter(|warning| !known.contains(warning));
    news.for_each(|warning| print::warning(warning));
    let outcome = &done.own.outcome;
    outcome.warnings.iter().for_each(|(path, why)| print::warning(&format!("{}: {why}", path.display())));
    Ok(exit(done))
}

fn exit(done: &StepDone) -> Exit {
    let others = done.others.iter().map(|(_, done)| done.as_ref());
    let is_part = others.chain([Ok(&done.own)]).any(|done| done.map_or(true, Restored::is_part));
    let others = done.others.iter().filter_map(|(_, done)| done.as_ref().ok());
    let is_idle = others.chain([&done.own]).all(|done| done.operation.is_none());
    match (is_part, is_idle) {
        (true, _) => Exit::Part,
        (false, true) => Exit::Nothing,
        (false, false) => Exit::Done,
    }
}
