//! Requests about turns, and steps over them, which the worker answers.

use super::calls::{Called, Rewind, paths, rolled_back, with_fresh};
use crate::checkpoint::Timeline;
use crate::checkpoint::history::group::Stepping;
use crate::checkpoint::history::step_choice::StepChoice;
use crate::checkpoint::history::undo::Direction;
use crate::doors::replies;
use crate::error::{Code, Error, Result};
use crate::model::run::run_id;
use crate::model::text::printable;
use crate::protocol::{NoStep, Step, StepReply, TurnDiff, TurnDiffReply, TurnListReply, TurnQuery};
use crate::sys::interrupt::Interrupt;

/// The session that asks for a step.
pub(super) struct StepAsker<'r> {
    /// Its run.
    pub run: &'r str,
    /// True if the run is its own: then its undo means the newest turn of that run, and of those below it.
    pub is_session: bool,
}

/// Answers `undo` and `redo`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn step(
    timeline: &mut Timeline,
    direction: Direction,
    step: &Step,
    asker: StepAsker<'_>,
    control: Interrupt<'_>,
) -> Result<Called<StepReply>> {
    let run = asker.run;
    let session = asker.is_session.then(|| timeline.catalog().runs_below(run)).transpose()?;
    let choice = StepChoice {
        turn: step.turn.clone(),
        run: step.run.as_deref().map(run_id),
        paths: paths(timeline, step.paths.as_deref())?,
        limits: std::sync::Arc::default(),
        include: step.include.clone(),
        session,
    };
    let Some(mut stepping) = Stepping::choose(timeline, direction, &choice, run, control)? else {
        let message = timeline.catalog().why_no_step_for(direction, choice.session.as_ref())?;
        return Ok(StepReply::Nothing(NoStep { operation: None, message }).into());
    };
    if let Some(message) = stepping.git_first(timeline, &choice)? {
        return Ok(StepReply::Nothing(NoStep { operation: None, message }).into());
    }
    let (next, is_open) = (stepping.step.clone(), stepping.is_open);
    if let Some(named) = step.operation.as_ref().filter(|named| **named != next.op) {
        let text = format!("operation `{}` is not the next one to undo or redo: `{}` is", printable(named), next.op);
        return Err(Error::new(Code::StaleSelection, text).field("operation").candidates(vec![next.op]));
    }
    if step.preview {
        let preview = replies::step_preview((&next, is_open), &stepping.preview(timeline, control)?);
        return Ok(StepReply::Preview(Box::new(preview)).into());
    }
    let agreed = stepping.agree_to_digest(timeline, step.plan.as_deref(), control);
    let done = match agreed {
        Ok(()) => stepping.take(timeline, control),
        Err(error) => Err(error),
    };
    let done = done.map_err(|error| {
        with_fresh(error, || {
            let stepping = Stepping::choose(timeline, direction, &choice, run, control)?;
            stepping.map(|mut fresh| fresh.preview(timeline, control)).transpose()?.map_or_else(
                || Err(Error::new(Code::StaleSelection, "nothing left to undo or redo")),
                |fresh| Ok(replies::step_preview((&next, is_open), &fresh)),
            )
        })
    })?;
    let of_turn = next.turn.as_ref().filter(|_| direction == Direction::Undo).map(|turn| turn.turn.clone());
    let turn = of_turn.filter(|_| step.rewind && done.own.operation.is_some());
    let rewind = Rewind::before(timeline, turn)?;
    let notices = rolled_back(&done.own, &rewind);
    let reply = rewind.in_reply(replies::step_done((&next, is_open), &done));
    Ok(Called { body: StepReply::Done(Box::new(reply)), notices })
}

/// Answers `turn.list`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn turns(timeline: &mut Timeline, query: &TurnQuery, control: Interrupt<'_>) -> Result<TurnListReply> {
    timeline.settle_group(control)?;
    let limit = query.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    replies::turns(timeline, query.run.as_deref().map(run_id).as_deref(), None, limit)
}

/// Answers `turn.diff`.
///
/// # Errors
/// Returns the error of what could not be done.
pub(super) fn turn_diff(timeline: &mut Timeline, diff: &TurnDiff, control: Interrupt<'_>) -> Result<TurnDiffReply> {
    timeline.settle_group(control)?;
    let select = paths(timeline, diff.paths.as_deref())?;
    let turn = timeline.catalog().turn_or_newest(diff.turn.as_deref(), diff.run.as_deref().map(run_id).as_deref())?;
    replies::turn_diff(timeline, &turn, &|path| {
        select.is_empty() || select.iter().any(|chosen| path.starts_with(chosen))
    })
}
