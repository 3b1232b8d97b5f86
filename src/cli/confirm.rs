//! Asks before files are changed, and tells what was changed.

use super::context::Context;
use super::exit::Exit;
use super::print;
use super::print::{Consent, PartConsent, ask, ask_part};
use super::report::{self, Words};
use super::step_report::{make_preview_absolute, make_result_absolute};
use crate::checkpoint::history::request::{Preview, Restored};
use crate::doors::replies;
use crate::error::Result;
use crate::protocol::PreviewReply;

/// Shows the preview and asks; `Some` when nothing is to be done, or not yet.
pub(super) fn ask_first(
    context: &Context,
    preview: &Preview,
    (yes, only): (bool, bool),
    verb: &str,
) -> Result<Option<Exit>> {
    if context.json && (only || !yes) {
        print::json_as_declared(&replies::preview(preview))?;
        return Ok(Some(if only { Exit::Done } else { Exit::Refused }));
    }
    if preview.plan.changes_nothing() {
        let conflicts = !preview.plan.conflict.is_empty();
        if context.json {
            print::json_as_declared(&replies::preview(preview))?;
        } else {
            print::data(&report::preview(&shown(context, preview)))?;
            print::data(report::NOTHING)?;
        }
        return Ok(Some(if conflicts { Exit::Part } else { Exit::Nothing }));
    }
    if !context.json {
        print::data(&report::preview(&shown(context, preview)))?;
    }
    if only {
        return Ok(Some(Exit::Done));
    }
    Ok(if yes { None } else { agreed(verb) })
}

/// No file changes, but a run moves: that is asked too.
pub(super) fn ask_to_move(context: &Context, what: &str, yes: bool, question: &str) -> Result<Option<Exit>> {
    if !context.json {
        print::data(&format!("{what}\n"))?;
    }
    Ok(if yes { None } else { agreed(question) })
}

/// Asks; `Some` unless the answer is yes.
pub(super) fn agreed(question: &str) -> Option<Exit> {
    match ask(&format!("{question}?")) {
        Consent::Yes => None,
        Consent::No => {
            print::say("Nothing was changed.");
            Some(Exit::Refused)
        }
        Consent::Nobody => {
            print::say(
                "Nothing was changed: piton asks for confirmation on a terminal. To proceed without one, add --yes.",
            );
            Some(Exit::Refused)
        }
    }
}

/// The answer to a question about a step that leaves some changes as they are.
pub(super) enum Agreement {
    /// Only what is surely the turn's, or absent.
    Part,
    /// Also what may be someone else's.
    All,
    /// Nothing, with the exit code for that.
    Nothing(Exit),
}

/// Asks whether only the safe part of a step is taken, or all of it.
pub(super) fn agreed_part(question: &str) -> Agreement {
    match ask_part(&format!("{question}? [y] all but the changes marked as kept, [a] all changes, [n] nothing: ")) {
        PartConsent::Part => Agreement::Part,
        PartConsent::All => Agreement::All,
        PartConsent::No => {
            print::say("Nothing was changed.");
            Agreement::Nothing(Exit::Refused)
        }
        PartConsent::Nobody => {
            print::say(
                "Nothing was changed: piton asks for confirmation on a terminal. To proceed without one, add --yes.",
            );
            Agreement::Nothing(Exit::Refused)
        }
    }
}

/// Returns a preview for people; outside every workspace its paths are absolute.
fn shown(context: &Context, preview: &Preview) -> PreviewReply {
    let mut reply = replies::preview(preview);
    if context.is_outside() {
        make_preview_absolute(&mut reply);
    }
    reply
}

/// Prints the result of a verb that changed files, and returns its exit code. The words of the preview that was shown are
/// not repeated. `back` is the command that takes it back, where that is not the ordinary one.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn finished(
    context: &Context,
    restored: &Restored,
    (verb, back): (&str, Option<&str>),
    shown: Option<&Preview>,
) -> Result<Exit> {
    let outcome = &restored.outcome;
    let part = !outcome.failed.is_empty() || !restored.conflicts.is_empty();
    if context.json {
        print::json_as_declared(&replies::restored(restored))?;
    } else {
        let back = back.map_or_else(|| format!("{}{}", Words::TERMINAL.undo, context.option()), str::to_owned);
        let said = shown.map(|shown| report::preview(&self::shown(context, shown))).unwrap_or_default();
        let mut reply = replies::restored(restored);
        if context.is_outside() {
            make_result_absolute(&mut reply);
        }
        let text = report::outcome(&reply, verb, &back);
        let news = text.lines().filter(|line| !said.lines().any(|said| said == *line));
        print::data(&news.map(|line| format!("{line}\n")).collect::<String>())?;
        let known = shown.map(|preview| preview.warnings.as_slice()).unwrap_or_default();
        let news = restored.warnings.iter().filter(|warning| !known.contains(warning));
        news.for_each(|warning| print::warning(warning));
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
