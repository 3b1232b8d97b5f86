//! `piton undo --hunk`: choosing among the hunks of a turn, as `git add -p` does.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write, stderr, stdin};

use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::print;
use super::report;
use super::stop;
use super::undo::{finished, told};
use crate::checkpoint::Timeline;
use crate::checkpoint::history::group::Stepping;
use crate::checkpoint::history::hunks::HunkedFile;
use crate::checkpoint::history::step_choice::StepChoice;
use crate::checkpoint::history::undo::Direction;
use crate::error::{Code, Error, Result};
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
        let text = "hunks are chosen on a terminal, and there is none";
        return Err(Error::new(Code::BadRequest, text).hint("name paths instead: `piton undo -- PATH`"));
    }
    let control = stop::flow;
    let Some(mut stepping) = Stepping::choose(timeline, Direction::Undo, choice, "local", &control)? else {
        let message = timeline.catalog().why_no_step(Direction::Undo)?;
        print::data(&format!("{message}\n"))?;
        return Ok(Exit::Nothing);
    };
    let Some(turn) = stepping.step.turn.clone() else {
        let text = "the newest thing to undo is a restore, which has no hunks";
        return Err(Error::new(Code::BadRequest, text).hint("name a turn: `piton undo --hunk --turn TURN`"));
    };
    let files = timeline.catalog().hunked_files(&turn, stepping.changes())?;
    let mut chosen = BTreeSet::new();
    let mut parts: Vec<(HunkedFile, Vec<usize>)> = Vec::new();
    for mut file in files {
        let (places, is_end) = chosen_hunks(context, &file)?;
        if !places.is_empty() && permissions_too(context, &file)? {
            file.take_permissions_back();
        }
        let is_whole = places.len() == file.hunks.len().max(1) && file.permissions.is_none();
        if !places.is_empty() {
            chosen.insert(file.path.clone());
        }
        if !places.is_empty() && !is_whole {
            parts.push((file, places));
        }
        if is_end {
            break;
        }
    }
    if chosen.is_empty() {
        print::say("Nothing was chosen, and nothing was changed.");
        return Ok(Exit::Refused);
    }
    let composed = if parts.is_empty() { None } else { Some(timeline.without_hunks(&turn, &parts)?.id) };
    let parts = parts.iter().map(|(file, _)| file.path.clone()).collect();
    stepping.choose_hunks(chosen, &parts, composed);
    let preview = stepping.preview(timeline, &control)?;
    let next = (&stepping.step.clone(), stepping.is_open);
    let said = told(context, "Undo", next, &preview);
    print::data(&said)?;
    if preview.changes_nothing() {
        print::data(report::NOTHING)?;
        return Ok(Exit::Nothing);
    }
    if let Some(exit) = agreed("Undo") {
        return Ok(exit);
    }
    stepping.agree(&preview);
    let done = stepping.take(timeline, &control)?;
    print::settled(timeline.leave());
    finished(context, (next, &done), (report::UNDID, &format!("piton redo{}", context.option())), (&preview, &said))
}

/// Asks if the permissions of a file go back with its chosen hunks, where they changed too. A file that goes as a whole takes them along.
fn permissions_too(context: &Context, file: &HunkedFile) -> Result<bool> {
    let Some((before, after)) = file.permissions else { return Ok(false) };
    if file.hunks.is_empty() {
        return Ok(true);
    }
    let name = format!("{}{}", context.leading(), file.path.display());
    let question = format!("{name}: its permissions changed from {before:04o} to {after:04o}: undo that too [y,n,?]?");
    Ok(matches!(asked(&question)?, Answer::Yes | Answer::All))
}

/// Asks about each hunk of a file, or about the file where it has none. Returns the places of the chosen ones, and whether the
/// rest of the files is to be kept.
fn chosen_hunks(context: &Context, file: &HunkedFile) -> Result<(Vec<usize>, bool)> {
    let name = format!("{}{}", context.leading(), file.path.display());
    if file.hunks.is_empty() {
        print::data(&print::patch(&print::harmless(&file.patch)))?;
        return Ok(match asked(&format!("{name} as a whole: undo it [y,n,q,?]?"))? {
            Answer::Yes | Answer::All => (vec![0], false),
            Answer::No | Answer::Done => (Vec::new(), false),
            Answer::Quit => (Vec::new(), true),
        });
    }
    let (mut chosen, all) = (Vec::new(), file.hunks.len());
    for (place, hunk) in file.hunks.iter().enumerate() {
        print::data(&print::patch(&print::harmless(&hunk.text)))?;
        match asked(&format!("({}/{all}) {name}: undo this hunk [y,n,a,d,q,?]?", place + 1))? {
            Answer::Yes => chosen.push(place),
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
        // If stderr is closed, no person can be asked, and the input has ended too.
        let _ = write!(stderr(), "{} ", printable(question));
        let mut line = String::new();
        let read = stdin().read_line(&mut line);
        match line.trim() {
            _ if !read.is_ok_and(|length| length > 0) => return Ok(Answer::Quit),
            "y" => return Ok(Answer::Yes),
            "n" => return Ok(Answer::No),
            "a" => return Ok(Answer::All),
            "d" => return Ok(Answer::Done),
            "q" => return Ok(Answer::Quit),
            _ => print::data(HELP)?,
        }
    }
}
