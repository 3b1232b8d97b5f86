//! `piton undo -i` and `piton restore N -i`: files and hunks are chosen on the whole screen of the terminal.
//!
//! The screen only chooses. Afterwards the chosen part is shown, agreed to and carried out as the command without `-i` does it.

mod items;
mod keys;
mod layout;
mod picker;
mod terminal;

#[cfg(test)]
mod tests;

use std::io::{IsTerminal, stdout};

use self::items::{chosen, details, items};
use self::picker::{Picker, PickerStep};
use self::terminal::{ScreenInput, WholeScreen, screen_size};
use super::confirm::{agreed, ask_first, finished};
use super::context::Context;
use super::exit::Exit;
use super::print;
use super::report;
use super::undo::{git_first, no_step, told, undone};
use crate::checkpoint::Timeline;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::history::chosen::{ChosenPart, ChosenPlan, PlannedChange, planned_changes};
use crate::checkpoint::history::group::{StepPreview, Stepping};
use crate::checkpoint::history::journal::unquoted;
use crate::checkpoint::history::operations::UndoStep;
use crate::checkpoint::history::request::{Preview, Restore};
use crate::checkpoint::history::step_choice::StepChoice;
use crate::checkpoint::history::undo::Direction;
use crate::engine::parts::OUTSIDE;
use crate::error::{Code, Error, Result};
use crate::model::text::{printable, shell_word};
use crate::model::turn::Attribution;
use crate::sys::interrupt::Flow;
use crate::sys::raw_terminal::end_by;

/// The end of a choice.
enum ChoiceEnd {
    /// This part of the plan is to be carried out.
    Part(ChosenPart),
    /// Nothing is to be changed; the exit code for that.
    Nothing(Exit),
}

/// Refuses where there is no screen to choose on. `plain` are the commands to give instead.
///
/// # Errors
/// `bad-request`.
pub(super) fn require_screen(plain: &str) -> Result<()> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let text = match (print::has_person() && stdout().is_terminal(), is_dumb) {
        (false, _) => "-i needs a terminal to choose on, and there is none",
        (true, true) => "-i needs a full-screen terminal, which this one is not (TERM=dumb)",
        (true, false) => return Ok(()),
    };
    Err(Error::new(Code::BadRequest, text).hint(plain))
}

/// Undoes the chosen part of the newest turn or restore, or of a named turn.
///
/// # Errors
/// `bad-request` for a rollback; `stale-plan` if files change between the choice and the question; those of an undo.
pub(super) fn undo(context: &Context, timeline: &mut Timeline, mut choice: StepChoice) -> Result<Exit> {
    // The person sees each change. Those that may be someone else's are not chosen together with the others.
    choice.include.extend(Attribution::ALL.into_iter().filter(|share| *share != Attribution::Outside));
    let Some(stepping) = Stepping::choose(timeline, Direction::Undo, &choice, "local", &|| Flow::Continue)? else {
        no_step(context, timeline, Direction::Undo)?;
        return Ok(Exit::Nothing);
    };
    if let Some(message) = stepping.git_first(timeline, &choice)? {
        return git_first(context, message);
    }
    match stepping.step.turn {
        Some(_) => undo_turn(context, timeline, stepping),
        None => undo_restore(context, timeline, &stepping.step),
    }
}

/// Undoes the chosen part of a turn.
fn undo_turn(context: &Context, timeline: &mut Timeline, mut stepping: Stepping) -> Result<Exit> {
    let preview = stepping.preview(timeline, &|| Flow::Continue)?;
    let step = (&stepping.step.clone(), stepping.is_open);
    let shown = told(context, "Undo", step, &preview);
    if preview.own.plan.changes_nothing() {
        print::data(&(shown + report::NOTHING))?;
        leave_others(&preview);
        return Ok(Exit::Nothing);
    }
    let title = shown.lines().next().unwrap_or_default().to_owned();
    let part = match choice(context, timeline.catalog(), &preview.own, title)? {
        ChoiceEnd::Part(part) => part,
        ChoiceEnd::Nothing(exit) => return Ok(exit),
    };
    leave_others(&preview);
    let plan = stepping.choose_part(timeline, &preview, &part)?;
    take(context, timeline, stepping, &plan)
}

/// Undoes the chosen part of a restore by another restore, so that the rest of it can still be undone.
fn undo_restore(context: &Context, timeline: &mut Timeline, step: &UndoStep) -> Result<Exit> {
    let before = timeline.catalog().checkpoint_of(step.to)?;
    let command = format!("piton restore{} {} -i", context.option(), before.shown());
    if step.moved.is_some() {
        let text = "the newest operation is a rollback, which can only be undone as a whole";
        return Err(Error::new(Code::BadRequest, text)
            .hint(format!("to choose among the files from before it, run `{command}`")));
    }
    print::data(&format!("The newest operation is restore {}, so this runs `{command}`:\n", step.op))?;
    let plain = Restore::to(step.to, "local", Vec::new(), false);
    let plain = Restore { only: Some(unquoted(&step.changed)?), ..plain };
    let preview = timeline.preview(&plain, &|| Flow::Continue)?;
    restore(context, timeline, plain, &preview)
}

/// Names the commands for the other workspaces of a turn.
fn leave_others(preview: &StepPreview) {
    for (root, _) in &preview.others {
        let option = match root.to_string_lossy() {
            root if root == OUTSIDE => "--outside".to_owned(),
            root => format!("--workspace {}", shell_word(&root)),
        };
        print::say(&format!(
            "piton: the turn also changed files elsewhere. To choose among those, run `piton undo -i {option}`"
        ));
    }
}

/// Shows the chosen part of a step, asks, and takes it.
///
/// # Errors
/// `stale-plan` if it is not the part that was chosen any more; those of an undo.
pub(super) fn take(context: &Context, timeline: &mut Timeline, stepping: Stepping, plan: &ChosenPlan) -> Result<Exit> {
    let (mut stepping, control) = (stepping, || Flow::Continue);
    let preview = stepping.preview(timeline, &control)?;
    let next = (&stepping.step.clone(), stepping.is_open);
    let said = told(context, "Undo", next, &preview);
    let asked = plan.refuse_other(&preview.own.plan).and_then(|()| print::data(&said)).map(|()| agreed("Undo"));
    if !matches!(asked, Ok(None)) {
        timeline.discard_choice(plan)?;
    }
    if let Some(exit) = asked? {
        return Ok(exit);
    }
    stepping.agree(&preview);
    let done = stepping.take(timeline, &control)?;
    print::settled(timeline.leave());
    undone(context, (next, &done), (&preview, &said))
}

/// Restores the chosen part of a checkpoint.
///
/// # Errors
/// `stale-plan` if files change between the choice and the question; those of a restore.
pub(super) fn restore(context: &Context, timeline: &mut Timeline, restore: Restore, preview: &Preview) -> Result<Exit> {
    if preview.plan.changes_nothing() {
        let ended = ask_first(context, preview, (false, false), "Restore")?;
        return Ok(ended.unwrap_or(Exit::Nothing));
    }
    let record = &preview.target.record;
    let (time, reason) = (print::local_time(&record.time), printable(&record.reason));
    let title = format!("Restore checkpoint {} ({time}, {reason})", preview.target.shown());
    let part = match choice(context, timeline.catalog(), preview, title)? {
        ChoiceEnd::Part(part) => part,
        ChoiceEnd::Nothing(exit) => return Ok(exit),
    };
    let (restore, plan) = timeline.choose(restore, preview, &part)?;
    let fresh = timeline.preview(&restore, &|| Flow::Continue)?;
    let asked = plan.refuse_other(&fresh.plan).and_then(|()| ask_first(context, &fresh, (false, false), "Restore"));
    if !matches!(asked, Ok(None)) {
        timeline.discard_choice(&plan)?;
    }
    if let Some(exit) = asked? {
        return Ok(exit);
    }
    let restored = timeline.restore(&restore.agreeing(&fresh), &|| Flow::Continue)?;
    print::settled(timeline.leave());
    finished(context, &restored, (report::RESTORED, None), Some(&fresh))
}

/// Has a person choose among the changes of a plan.
fn choice(context: &Context, catalog: &Catalog, preview: &Preview, title: String) -> Result<ChoiceEnd> {
    let changes = planned_changes(&preview.plan);
    let mut picker = Picker::new(title, items(context, &changes, preview));
    let mut screen = WholeScreen::open()?;
    let ended = choose_on(&mut screen, &mut picker, catalog, &changes, preview);
    drop(screen);
    let exit = match ended? {
        ScreenEnd::Step(PickerStep::Accept) => return Ok(ChoiceEnd::Part(chosen(&picker, &changes))),
        ScreenEnd::Step(PickerStep::Interrupt) => Exit::Interrupted,
        ScreenEnd::Step(PickerStep::Quit | PickerStep::Stay) => Exit::Refused,
        ScreenEnd::Signal(signal) => {
            end_by(signal);
            Exit::Interrupted
        }
    };
    print::say("Nothing was changed.");
    Ok(ChoiceEnd::Nothing(exit))
}

/// The end of the screen.
enum ScreenEnd {
    /// By a key.
    Step(PickerStep),
    /// By a signal.
    Signal(i32),
}

/// Shows the choice until it ends.
fn choose_on(
    screen: &mut WholeScreen,
    picker: &mut Picker,
    catalog: &Catalog,
    changes: &[PlannedChange],
    preview: &Preview,
) -> Result<ScreenEnd> {
    loop {
        while let Some(at) = picker.wanted() {
            match catalog.hunked(&changes[at], preview) {
                Ok(file) => picker.supply(at, details(&changes[at], &file)),
                Err(error) => picker.block(at, error.text()),
            }
        }
        let (columns, rows) = screen_size();
        screen.show(picker.draw(columns, rows))?;
        match screen.wait()? {
            ScreenInput::Key(key) => match picker.press(key) {
                PickerStep::Stay => {}
                step => return Ok(ScreenEnd::Step(step)),
            },
            ScreenInput::Redraw => {}
            ScreenInput::Signal(signal) => return Ok(ScreenEnd::Signal(signal)),
            ScreenInput::HungUp => return Ok(ScreenEnd::Step(PickerStep::Quit)),
        }
    }
}
