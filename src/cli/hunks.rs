//! `piton undo --hunk`: choosing among the hunks of a turn, as `git add -p` does.

use std::collections::BTreeSet;
use std::io::{IsTerminal, stderr, stdin};

use super::choose;
use super::context::Context;
use super::exit::Exit;
use super::print;
use super::report;
use super::stop;
use super::undo::told;
use crate::checkpoint::Timeline;
use crate::checkpoint::history::chosen::{ChosenHunks, ChosenPart, PlannedChange, planned_changes};
use crate::checkpoint::history::group::Stepping;
use crate::checkpoint::history::hunks::HunkedFile;
use crate::checkpoint::history::step_choice::StepChoice;
use crate::checkpoint::history::undo::Direction;
use crate::error::{Code, Error, Result};
use crate::model::manifest::EntryKind;
use crate::model::text::printable;

/// Explains the answers.
const HELP: &str = "y: undo this hunk\nn: keep it\na: undo this and all later hunks of the file\n\
    d: keep this and all later hunks of the file\nq: keep this and all that follow\n";

/// An answer to the question about a hunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    All,
    Done,
    Quit,
}

/// Undoes chosen hunks of a turn.
///
/// # Errors
/// `bad-request` without a terminal, or where the newest thing to undo is no turn; those of an undo.
pub(super) fn undo(context: &Context, timeline: &mut Timeline, choice: &StepChoice) -> Result<Exit> {
    if !stdin().is_terminal() || !stderr().is_terminal() {
        let text = "choosing hunks needs a terminal, and there is none";
        return Err(Error::new(Code::BadRequest, text).hint("give paths instead: `piton undo -- PATH`"));
    }
    let control = stop::flow;
    let Some(mut stepping) = Stepping::choose(timeline, Direction::Undo, choice, "local", &control)? else {
        let message = timeline.catalog().why_no_step(Direction::Undo)?;
        print::data(&format!("{message}\n"))?;
        return Ok(Exit::Nothing);
    };
    if stepping.step.turn.is_none() {
        let text = "the newest thing to undo is a restore, which has no hunks";
        return Err(Error::new(Code::BadRequest, text).hint("choose a turn: `piton undo --hunk --turn TURN`"));
    }
    let preview = stepping.preview(timeline, &control)?;
    if preview.own.plan.changes_nothing() {
        let next = (&stepping.step.clone(), stepping.is_open);
        print::data(&(told(context, "Undo", next, &preview) + report::NOTHING))?;
        return Ok(Exit::Nothing);
    }
    let mut part = ChosenPart::default();
    for change in planned_changes(&preview.own.plan).iter().filter(|change| !is_directory(change)) {
        let file = timeline.catalog().hunked(change, &preview.own)?;
        let name = format!("{}{}", context.leading(), change.path.display());
        let (places, is_end) = chosen_hunks(&name, &file)?;
        let takes_permissions = !places.is_empty() && permissions_too(&name, &file)?;
        let is_whole = places.len() == file.hunks.len().max(1) && takes_permissions == file.permissions.is_some();
        match (places.is_empty(), is_whole) {
            (true, _) => {}
            (false, true) => _ = part.whole.insert(change.path.clone()),
            (false, false) => {
                part.hunks.insert(change.path.clone(), ChosenHunks { places, takes_permissions });
            }
        }
        if is_end {
            break;
        }
    }
    if part.is_empty() {
        print::say("Nothing was chosen, and nothing was changed.");
        return Ok(Exit::Refused);
    }
    let plan = stepping.choose_part(timeline, &preview, &part)?;
    choose::take(context, timeline, stepping, &plan)
}

/// Returns true for a directory that is only created, deleted or given other permissions.
fn is_directory(change: &PlannedChange) -> bool {
    [change.now, change.then].iter().flatten().all(|entry| entry.kind == EntryKind::Dir)
}

/// Asks if the permissions of a file are restored with its chosen hunks, where they changed too. A file that is chosen as a whole takes
/// them along.
fn permissions_too(name: &str, file: &HunkedFile) -> Result<bool> {
    let Some((then, now)) = file.permissions else { return Ok(false) };
    let question = format!("{name}: its permissions changed from {then:04o} to {now:04o}: undo that too [y,n,?]?");
    Ok(matches!(asked(&question)?, Answer::Yes | Answer::All))
}

/// Asks about each hunk of a file, or about the file where it has none. Returns the places of the chosen ones, and whether the
/// rest of the files is to be kept.
fn chosen_hunks(name: &str, file: &HunkedFile) -> Result<(BTreeSet<usize>, bool)> {
    if file.hunks.is_empty() {
        print::data(&print::patch(&print::harmless(&file.patch)))?;
        return Ok(match asked(&format!("{name} as a whole: undo it [y,n,q,?]?"))? {
            Answer::Yes | Answer::All => (BTreeSet::from([0]), false),
            Answer::No | Answer::Done => (BTreeSet::new(), false),
            Answer::Quit => (BTreeSet::new(), true),
        });
    }
    let (mut chosen, all) = (BTreeSet::new(), file.hunks.len());
    for (place, hunk) in file.hunks.iter().enumerate() {
        print::data(&print::patch(&print::harmless(&hunk.text)))?;
        match asked(&format!("({}/{all}) {name}: undo this hunk [y,n,a,d,q,?]?", place + 1))? {
            Answer::Yes => _ = chosen.insert(place),
            Answer::No => {}
            Answer::All => {
                chosen.extend(place..all);
                break;
            }
            Answer::Done => break,
            Answer::Quit => return Ok((chosen, true)),
        }
    }
    Ok((chosen, false))
}

/// Asks until the answer is one. The end of the input keeps all that follows.
fn asked(question: &str) -> Result<Answer> {
    loop {
        let Some(line) = print::answer(&format!("{} ", printable(question))) else { return Ok(Answer::Quit) };
        match line.as_str() {
            "y" => return Ok(Answer::Yes),
            "n" => return Ok(Answer::No),
            "a" => return Ok(Answer::All),
            "d" => return Ok(Answer::Done),
            "q" => return Ok(Answer::Quit),
            _ => print::data(HELP)?,
        }
    }
}
