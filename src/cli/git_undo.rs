//! `piton git-undo`: takes back what a command of git did to refs, the index, the stash and files.

use clap::Args;

use super::confirm::{agreed, finished};
use super::context::Context;
use super::exit::Exit;
use super::print;
use super::report;
use crate::checkpoint::history::request::Preview;
use crate::checkpoint::repository::goal::GitGoal;
use crate::checkpoint::repository::log::{GitOperation, LoggedOperation};
use crate::checkpoint::repository::plan::{KeptPart, title};
use crate::checkpoint::repository::undo::{GitUndo, GitUndone};
use crate::doors::replies;
use crate::error::{Code, Error, Result};
use crate::git::ref_moves::RefMove;
use crate::git::user_repository::TreeSwitch;
use crate::model::path::RelPath;
use crate::model::repository::{RefValue, is_in_progress};
use crate::model::text::printable;
use crate::protocol::{GitOperationItem, GitOperationsDocument, GitUndoDocument, KeptItem, NoStep, RefMoveItem};
use crate::sys::interrupt::Flow;

/// The operations that a list shows.
const LISTED: usize = 20;

/// The digits of an object's id that people read.
pub(super) const SHORT: usize = 7;

/// The way to more, where nothing is known.
const HINT: &str = "`piton doctor` shows whether git calls piton.";

/// The verb, whose effect on a server nothing here takes back.
const PUSH: &str = "push";

/// The arguments of `piton git-undo`.
#[derive(Debug, Args)]
pub(super) struct GitUndoArgs {
    /// A git operation shown by `--list` (g-7) [default: the newest that is not undone]
    pub operation: Option<String>,
    /// List the git commands that can be undone, newest first
    #[arg(long, conflicts_with_all = ["operation", "yes", "preview", "to"])]
    pub list: bool,
    /// Restore the repository, but not the files, to its state at this checkpoint
    #[arg(long, value_name = "CHECKPOINT", conflicts_with = "operation")]
    pub to: Option<String>,
    /// Do not ask
    #[arg(long, short = 'y')]
    pub yes: bool,
    /// Only show what would be done
    #[arg(long)]
    pub preview: bool,
}

impl GitUndoArgs {
    /// Returns the arguments that list the commands.
    pub(super) fn listing() -> GitUndoArgs {
        GitUndoArgs { operation: None, list: true, to: None, yes: false, preview: false }
    }
}

/// Takes a command of git back.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn git_undo(context: &mut Context, args: &GitUndoArgs) -> Result<Exit> {
    // The checkpoint is one of this directory's workspace, and commands of git are noted for the whole repository.
    let goal = match &args.to {
        Some(to) => {
            let mut timeline = context.timeline()?;
            timeline.keep_repository();
            let checkpoint = timeline.catalog().resolve(to)?;
            let noted = timeline.catalog().noted_state(&checkpoint, true)?;
            Some((checkpoint, noted))
        }
        None => None,
    };
    context.work_at_repository();
    let mut timeline = context.timeline()?;
    if args.list {
        return list(context, &timeline.newest_git_operations(LISTED)?);
    }
    timeline.catalog().refuse_interrupted()?;
    let way = match goal {
        Some((checkpoint, noted)) => Some(timeline.git_undo_to(&checkpoint, noted, &|| Flow::Continue)?),
        None => {
            let number = args.operation.as_deref().map(number).transpose()?;
            timeline.git_undo(number, &|| Flow::Continue)?
        }
    };
    let Some(way) = way else {
        let message =
            format!("Nothing to undo: piton knows no git command here whose changes are still in place. {HINT}");
        match context.json {
            true => print::json(&NoStep { operation: None, message })?,
            false => print::say(&message),
        }
        return Ok(Exit::Nothing);
    };
    let shown = preview(context, &way);
    if context.json && (args.preview || !args.yes) {
        print::json(&document(&way, None))?;
        return Ok(if args.preview { Exit::Done } else { Exit::Refused });
    }
    if !context.json {
        print::data(&shown)?;
    }
    let does_nothing =
        way.plan.is_nothing() && way.files.as_ref().is_none_or(|(_, preview)| preview.plan.changes_nothing());
    if does_nothing {
        match context.json {
            true => print::json(&document(&way, None))?,
            false => print::data(report::NOTHING)?,
        }
        return Ok(if way.is_part() { Exit::Part } else { Exit::Nothing });
    }
    if args.preview {
        return Ok(Exit::Done);
    }
    if !args.yes
        && let Some(exit) = agreed("Undo it")
    {
        return Ok(exit);
    }
    let is_part = way.is_part();
    let mut told = document(&way, None);
    let undone = timeline.take_git_back(way, &|| Flow::Continue)?;
    print::settled(timeline.leave());
    told.by = undone.by.map(name);
    done(context, &told, &undone, is_part)
}

fn done(context: &Context, told: &GitUndoDocument, undone: &GitUndone, is_part: bool) -> Result<Exit> {
    let mut exit = if is_part { Exit::Part } else { Exit::Done };
    if context.json {
        print::json(told)?;
        return Ok(exit);
    }
    let what = match (&told.operation, told.kept.as_slice()) {
        (Some(operation), _) => format!("Undone: {}\n", printable(&operation.command)),
        (None, [_, ..]) => "The repository was restored, except for the parts listed above as kept.\n".to_owned(),
        (None, _) => "The repository is as it was at that checkpoint.\n".to_owned(),
    };
    print::data(&what)?;
    let back = undone.by.map(|by| format!("piton undo {}", name(by)));
    match (&undone.files, back) {
        (Some(files), back) if finished(context, files, ("Restored", back.as_deref()), None)? == Exit::Part => {
            exit = Exit::Part;
        }
        (None, Some(back)) => print::data(&format!("To reverse this: `{back}`\n"))?,
        _ => {}
    }
    Ok(exit)
}

fn name(op: u64) -> String {
    format!("g-{op}")
}

fn number(text: &str) -> Result<u64> {
    text.strip_prefix("g-").unwrap_or(text).parse().map_err(|_| {
        let said = format!("`{}` is not a git operation", printable(text));
        Error::new(Code::BadRequest, said).hint("git operations are named g-1, g-2, …; `piton list --git` lists them")
    })
}

fn list(context: &Context, newest: &[LoggedOperation]) -> Result<Exit> {
    let operations: Vec<GitOperationItem> = newest.iter().map(item).collect();
    if context.json {
        print::json(&GitOperationsDocument { operations })?;
        return Ok(Exit::Done);
    }
    if operations.is_empty() {
        print::data(&format!("piton knows no git command that has changed something here. {HINT}\n"))?;
        return Ok(Exit::Done);
    }
    let mut text = "Git commands, newest first\n\n".to_owned();
    for one in &operations {
        let undone = one.undone.as_ref().map(|by| format!("  [undone by {by}]")).unwrap_or_default();
        add_line!(
            text,
            "  {:>5}  {}  {}  {}{undone}",
            one.op,
            print::local_time(&one.time),
            printable(&one.run),
            printable(&one.command)
        );
    }
    add_line!(text, "\n  piton undo --git      undo the newest one (asks first)");
    add_line!(text, "  piton undo g-N        undo another one");
    print::data(&text)?;
    Ok(Exit::Done)
}

fn item(one: &LoggedOperation) -> GitOperationItem {
    GitOperationItem {
        op: one.begin.name(),
        time: one.begin.time.clone(),
        run: one.begin.run.clone(),
        turn: one.begin.turn.clone(),
        command: one.begin.command.clone(),
        repository: one.begin.place().map(|place| place.to_string_lossy().into_owned()).unwrap_or_default(),
        ended: one.end.as_ref().map(|end| end.time.clone()),
        undone: one.undone.map(name),
    }
}

/// Returns a value of a ref for people.
fn value(value: Option<&RefValue>) -> String {
    match value {
        None => "none".to_owned(),
        Some(RefValue::Object(id)) => id.get(..SHORT).unwrap_or(id).to_owned(),
        Some(RefValue::Symbolic(target)) => {
            let text = String::from_utf8_lossy(target);
            printable(text.strip_prefix("refs/heads/").unwrap_or(&text))
        }
    }
}

fn moved(one: &RefMove) -> String {
    let what = title(&one.name);
    match (&one.from, &one.to) {
        (None, to) => format!("{what} is restored, at {}", value(to.as_ref())),
        (Some(from), None) => format!("{what} is deleted; it did not exist before (now at {})", value(Some(from))),
        (from, to) => format!("{what} moves back from {} to {}", value(from.as_ref()), value(to.as_ref())),
    }
}

fn document(way: &GitUndo, by: Option<u64>) -> GitUndoDocument {
    let text = |value: &Option<RefValue>| match value {
        None => None,
        Some(RefValue::Object(id)) => Some(id.clone()),
        Some(RefValue::Symbolic(target)) => Some(format!("ref: {}", String::from_utf8_lossy(target))),
    };
    let item_of = |one: &RefMove| RefMoveItem {
        name: String::from_utf8_lossy(&one.name).into_owned(),
        from: text(&one.from),
        to: text(&one.to),
    };
    let kept = |part: &KeptPart| KeptItem { what: part.what.clone(), why: part.why.clone() };
    let checkpoint = match &way.goal {
        GitGoal::At(checkpoint) => Some(checkpoint.record.number),
        GitGoal::Before(_) => None,
    };
    GitUndoDocument {
        operation: way.goal.operation().map(item),
        checkpoint,
        refs: way.plan.refs.iter().map(item_of).collect(),
        stash: way.plan.stash.is_some(),
        index: way.plan.index || way.plan.switch.is_some(),
        in_progress: way.plan.operation.keys().map(RelPath::display).collect(),
        kept: way.plan.kept.iter().map(kept).collect(),
        younger: way.plan.younger.iter().map(kept).collect(),
        files: way.files.as_ref().map(|(_, preview)| replies::preview(preview)),
        by: by.map(name),
    }
}

/// Returns the preview for people.
fn preview(context: &Context, way: &GitUndo) -> String {
    let mut text = match &way.goal {
        GitGoal::Before(operation) => {
            let GitOperation { command, time, run, .. } = &operation.begin;
            let (time, name) = (print::local_time(time), operation.begin.name());
            format!("{} ({name}, {time}, run {})", printable(command), printable(run))
        }
        GitGoal::At(checkpoint) => {
            format!(
                "The repository at checkpoint {} ({})",
                checkpoint.shown(),
                print::local_time(&checkpoint.record.time)
            )
        }
    };
    if context.root().is_ok_and(|root| root != way.top()) {
        text.push_str(&format!(" in {}", print::path(way.top())));
    }
    text.push('\n');
    let operation = way.goal.operation();
    if operation.is_some_and(|one| one.end.is_none()) {
        add_line!(
            text,
            "  note: piton does not know when it ended, so it restores everything that differs from the state before it"
        );
    }
    if operation.is_some_and(|one| one.begin.hidden) {
        let said =
            "this is not a git command; everything that moved in the repository while it ran counts as its change";
        add_line!(text, "  note: {said}");
    }
    for one in &way.plan.refs {
        add_line!(text, "  {}", moved(one));
    }
    if way.plan.stash.is_some() {
        add_line!(text, "  the stash list is restored");
    }
    if way.plan.index {
        add_line!(text, "  the index (what is staged) is restored");
    }
    if let Some(TreeSwitch { from, to }) = &way.plan.switch {
        let [from, to] = [from, to].map(|id| id.get(..SHORT).unwrap_or(id));
        add_line!(text, "  git switches the files and the index from {from} to {to} and keeps uncommitted changes");
    }
    if way.plan.operation.keys().any(is_in_progress) {
        add_line!(text, "  the merge, rebase or similar operation that was in progress is restored");
    } else if !way.plan.operation.is_empty() {
        add_line!(text, "  git's records of its last merge or rebase are restored");
    }
    for part in way.plan.kept.iter().chain(&way.plan.younger) {
        add_line!(text, "  not restored: {}: {}", part.what, part.why);
    }
    if let GitGoal::At(checkpoint) = &way.goal {
        add_line!(text, "  files are not changed; to restore them, run `piton restore {}`", checkpoint.shown());
    }
    if operation.is_some_and(|one| one.begin.has_verb(PUSH)) {
        add_line!(text, "  piton cannot undo what the push changed on the remote");
    }
    let is_shown = |preview: &Preview| !preview.plan.changes_nothing() || way.has_kept_files();
    if let Some((_, preview)) = way.files.as_ref().filter(|(_, preview)| is_shown(preview)) {
        text.push_str(&report::preview(&replies::preview(preview)));
        if way.has_kept_files() {
            let n = preview.target.record.number;
            add_line!(
                text,
                "  checkpoint {n} contains all files from before; to restore one, run `piton restore {n} FILE`"
            );
        }
    }
    text
}
