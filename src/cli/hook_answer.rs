//! `/rollback`, `/undo`, `/redo` and `/turns`, typed into an agent client and answered without its model: previewed, done and told with the texts of
//! the terminal's verbs.

use super::hook::Exchange;
use super::lists::{self, ListLayout};
use super::print::stat_text;
use super::report::{self, Words};
use super::step_report::{others_answer, others_before};
use crate::agents::Ask;
use crate::checkpoint::catalog::held::refusal;
use crate::checkpoint::history::undo::Direction;
use crate::error::{Code, Error};
use crate::model::text::cut;
use crate::protocol::{
    Body, Diff, DiffReply, ErrorBody, ListQuery, ListReply, PreviewReply, RestoreReply, Rollback, Step, StepReply, To,
    TurnListReply, TurnQuery,
};

/// Checkpoints that are listed.
const LISTED: u64 = 15;

/// Attempts before a prompt gives up because files keep changing after the preview.
const TRIES: usize = 4;

/// Longest patch that is shown, in characters.
const MAX_PATCH: usize = 8_000;

/// Returns the text for the person.
///
/// # Errors
/// Returns the engine's refusal with its code.
pub(super) fn answer(talk: &mut Exchange<'_>, ask: &Ask) -> Result<String, ErrorBody> {
    let words = Words::of(talk.client());
    match ask {
        Ask::List => {
            let query = ListQuery { limit: Some(LISTED), ..ListQuery::default() };
            let listing: ListReply = talk.ask(&Body::List(query))?;
            if listing.checkpoints.is_empty() {
                return Ok("piton has no checkpoint of this directory yet.".to_owned());
            }
            Ok(lists::list("Checkpoints, newest first", &listing, &ListLayout::of_client(words)))
        }
        Ask::Diff { checkpoint } => {
            let from = checkpoint.clone();
            let reply: DiffReply = talk.ask(&Body::Diff(Diff { from, ..Diff::default() }))?;
            let (stat, patch) = (stat_text(&reply.stat), cut(&reply.patch, MAX_PATCH));
            Ok(format!("Since checkpoint {checkpoint}: {stat}.\n{patch}"))
        }
        Ask::To { checkpoint, file, files } => {
            let one: Vec<String> = file.iter().cloned().collect();
            match restore(talk, checkpoint, &one, &words) {
                // The words name no one file, and may name several.
                Err(refused) if files.len() > 1 && refused.is(Code::NoSuchPath) => {
                    restore(talk, checkpoint, files, &words)
                }
                done => done,
            }
        }
        Ask::Undo => step(talk, Direction::Undo, &words),
        Ask::Redo => step(talk, Direction::Redo, &words),
        Ask::Turns => {
            let listing: TurnListReply =
                talk.ask(&Body::TurnList(TurnQuery { limit: Some(LISTED), ..TurnQuery::default() }))?;
            Ok(lists::turns(&listing, &ListLayout::of_client(words)))
        }
    }
}

fn restore(talk: &mut Exchange<'_>, checkpoint: &str, files: &[String], words: &Words) -> Result<String, ErrorBody> {
    let path = |file: &String| talk.cwd().map_or_else(|| file.into(), |cwd| cwd.join(file));
    let paths: Vec<String> = files.iter().map(|file| path(file).to_string_lossy().into_owned()).collect();
    let paths = (!paths.is_empty()).then_some(paths);
    let back = |plan: Option<String>| {
        let to = To::Checkpoint(checkpoint.to_owned());
        Rollback { paths: paths.clone(), plan, ..Rollback::to(to) }
    };
    while_files_move(|| {
        let before: PreviewReply = talk.ask(&Body::Preview(back(None)))?;
        if let Some(path) = before.unheld.first() {
            return Err(refusal(before.target.n, std::path::Path::new(path)).into());
        }
        if before.changes_nothing() {
            return Ok(format!("{}{}", report::preview(&before), report::NOTHING));
        }
        // The text shows this plan: another one is refused.
        let after: RestoreReply = talk.ask(&Body::Restore(back(Some(before.plan.digest.clone()))))?;
        Ok(report::answer(&before, &after, report::RESTORED, words.undo) + &rewind(talk, &after))
    })
}

/// Does `work` again where files moved between its preview and the act, a few times.
fn while_files_move(mut work: impl FnMut() -> Result<String, ErrorBody>) -> Result<String, ErrorBody> {
    for _ in 0..TRIES {
        match work() {
            Err(refused) if refused.is(Code::StalePlan) => {}
            done => return done,
        }
    }
    let error =
        Error::new(Code::StalePlan, "files in the workspace keep changing after each preview; nothing was done");
    Err(error.hint("stop the program that writes there, then try again").into())
}

/// Steps over the operation that the preview named, and says which it was: an older one is never undone unnamed.
fn step(talk: &mut Exchange<'_>, direction: Direction, words: &Words) -> Result<String, ErrorBody> {
    while_files_move(|| step_once(talk, direction, words))
}

fn step_once(talk: &mut Exchange<'_>, direction: Direction, words: &Words) -> Result<String, ErrorBody> {
    let request = |step: Step| match direction {
        Direction::Undo => Body::Undo(step),
        Direction::Redo => Body::Redo(step),
    };
    let before = match talk.ask(&request(Step { preview: true, ..Step::default() }))? {
        StepReply::Preview(before) => before,
        StepReply::Nothing(nothing) => return Ok(nothing.message.replace(Words::TERMINAL.redo, words.redo)),
        StepReply::Done(_) => return Err(unasked().into()),
    };
    let Some(over) = &before.over else { return Err(unasked().into()) };
    let (word, verb, back) = match direction {
        Direction::Undo => ("Undo", report::UNDID, words.redo),
        Direction::Redo => ("Redo", report::REDID, words.undo),
    };
    let head = report::step(word, over);
    if before.changes_nothing() && over.run.is_none() {
        // It notes that the undo has stopped at this turn: the next one takes an older step.
        if direction == Direction::Undo && over.turn.is_some() {
            let operation = Some(over.operation.clone());
            talk.ask::<StepReply>(&request(Step {
                operation,
                plan: Some(before.plan.digest.clone()),
                ..Step::default()
            }))?;
        }
        let (own, others) = (report::preview(&before), others_before(&before));
        return Ok(format!("{head}{own}{others}{}", report::nothing(&before, direction)));
    }
    let (operation, plan) = (Some(over.operation.clone()), Some(before.plan.digest.clone()));
    let after: RestoreReply = talk.ask(&request(Step { operation, plan, ..Step::default() }))?;
    let rewind = if direction == Direction::Undo { rewind(talk, &after) } else { String::new() };
    let others = others_answer(&before, &after, verb, back);
    Ok(head + &report::answer(&before, &after, verb, back) + &others + &rewind)
}

/// Says how the conversation can go back too, where files did and the client has a command for it.
fn rewind(talk: &Exchange<'_>, after: &RestoreReply) -> String {
    let how = talk.client().how_to_rewind().filter(|_| after.operation.is_some());
    how.map(|how| format!("Only files were restored. To rewind the conversation too: {how}.\n")).unwrap_or_default()
}

fn unasked() -> Error {
    Error::new(Code::Internal, "piton's engine did not answer with a preview of the undo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_tried_again_while_files_move_and_not_for_ever() {
        let refused = |code: Code| Err(ErrorBody::from(Error::new(code, "no")));
        // After so many stale plans; the refusal that ends it, if one does; attempts that are made.
        let table = [
            (0, None, 1),
            (TRIES - 1, None, TRIES),
            (TRIES, Some(Code::StalePlan), TRIES),
            (1, Some(Code::Busy), 2),
            (0, Some(Code::PreRestoreFailed), 1),
        ];
        for (stale, end, made) in table {
            let mut attempts = 0;
            let done = while_files_move(|| {
                attempts += 1;
                match (attempts <= stale, end) {
                    (true, _) => refused(Code::StalePlan),
                    (false, Some(code)) => refused(code),
                    (false, None) => Ok("done".to_owned()),
                }
            });
            assert_eq!(attempts, made, "{stale} {end:?}");
            assert_eq!(
                done.as_deref().map_err(|refused| refused.code.known()),
                end.map_or(Ok("done"), |code| Err(Some(code)))
            );
        }
    }
}
