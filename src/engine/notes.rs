//! Notes that a client's model has not got yet: files that were restored without its knowledge, and warnings that the
//! client could not pass on at once.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::collision_notes::{self, CollisionPart};
use super::decision::{ActionDecision, Decision};
use super::session::Session;
use super::silence::judge::Silence;
use super::told::{JournalMark, Note, Subject, ToldRecord};
use super::unguarded::{note_of_claimed, notes_of_unguarded};
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::history::journal::{Journal, Line, OperationEnd, OperationStart, unquoted};
use crate::checkpoint::records::unguarded;
use crate::checkpoint::upkeep::usage::UNMET_STEP;
use crate::model::coverage::not_held_sentence;
use crate::model::door::Door;
use crate::model::effect::Warning;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::text::{count, printable};
use crate::sys::interrupt::Interrupt;

/// Paths that a note names.
const NAMED: usize = 8;

impl Session {
    /// Returns the sentences for the model in the reply to an event: those that wait, and `new` ones. Where replies to this event do not
    /// reach the model, the new ones wait too.
    pub(super) fn notices(&mut self, workspace: Option<&OpenWorkspace>, mut new: Vec<Note>) -> Vec<String> {
        if let Some(open) = workspace {
            new.extend(notes_of_silence(&self.silence(open)));
            new.extend(self.settle_unguarded(open));
        }
        if !self.reaches_model {
            self.keep_notes(new);
            return Vec::new();
        }
        let back = workspace.and_then(|workspace| self.journal_news(workspace));
        let cap = workspace.and_then(|workspace| self.unmet_cap(workspace));
        let mut state = self.state();
        let told = &mut state.told;
        if new.is_empty() && back.is_none() && cap.is_none() && told.look().is_idle() {
            return Vec::new();
        }
        let budget = workspace.map_or(u64::MAX, |open| open.in_force().policy.limits.told_tokens);
        told.change(|record| {
            record.keep(new);
            if let Some(news) = back {
                record.keep(news.note(record.journals.get(&news.workspace)).into_iter().collect());
                record.journals.insert(news.workspace, news.now);
            }
            if let Some(cap) = cap.filter(|_| !record.is_cap_told) {
                record.is_cap_told = true;
                record.keep(vec![cap]);
            }
            record.tell(budget)
        })
    }

    /// Has the worker bring unguarded actions into the records of a workspace, if some wait. Returns notes of those that no process of
    /// piton has reported.
    fn settle_unguarded(&mut self, open: &OpenWorkspace) -> Vec<Note> {
        if !open.unguarded.is_waiting(&open.workspace) {
            return Vec::new();
        }
        let root = &open.workspace.path;
        let is_here =
            |cwd: &Path| cwd.starts_with(root) && self.engine.root_around(cwd).is_ok_and(|around| around == *root);
        let claimed = unguarded::claim(&open.workspace, is_here);
        let memory = Arc::clone(&open.unguarded);
        let work = move |timeline: &mut Timeline, _: Interrupt<'_>| memory.settle(timeline.workspace());
        self.queue(open, work, |_, settled| {
            // They wait on, and the next event tries again.
            if let Err(error) = settled {
                tracing::debug!(%error, "unguarded actions could not be recorded");
            }
        });
        note_of_claimed(&claimed).into_iter().collect()
    }

    /// Keeps notes for an event whose reply reaches the model.
    pub(super) fn keep_notes(&self, notes: Vec<Note>) {
        if !notes.is_empty() {
            self.state().told.change(|record| record.keep(notes));
        }
    }

    /// Adds the sentences for the model to the answer to an action. A client that says which of its replies reach the model gets the warnings
    /// as such sentences too, those of an action that is held back excepted: it does not run.
    pub(super) fn with_notices(&mut self, decision: Decision) -> Decision {
        let Decision::Action(mut action) = decision else { return decision };
        // A refusal says its own reason, and not every client passes on more than that.
        if self.tells_model && action.stance.reason().is_some() {
            return Decision::Action(action);
        }
        let is_known = self.has_named_work(&action);
        // A command of git within an action of a client: the client's own event has named the work to all listeners.
        if is_known && self.door.is(Door::Git) {
            leave_out_collisions(&mut action);
        }
        let own = self.workspace().ok(); // without it only the notes of a workspace are left out
        let outside = Note::others(std::mem::take(&mut action.notices));
        let is_kept = self.tells_model || !self.reaches_model;
        let mut new = if is_kept { notes_of_action(&action) } else { Vec::new() };
        // The model gets the number of further warnings, and a person has read it.
        if is_known {
            leave_out_collisions(&mut action);
        }
        if let Some(open) = &own {
            action.silent = self.silence(open);
            new.extend(notes_of_silence(&action.silent));
        }
        action.notices = self.notices(own.as_deref(), new.into_iter().chain(outside).collect());
        Decision::Action(action)
    }

    /// Returns true if the session of an agent has named all work that an action destroys already.
    fn has_named_work(&self, action: &ActionDecision) -> bool {
        let parts = CollisionPart::all(action);
        // A git outside of all clients is a person's.
        let is_persons = self.door.is(Door::Git) && self.client.is_some();
        if parts.is_empty() || !self.tells_model || is_persons {
            return false;
        }
        let is_stash = collision_notes::is_stash(&action.effects);
        let mut state = self.state();
        let told = state.told.look();
        parts.iter().all(|part| told.has(&part.subject(is_stash)))
    }

    /// Returns the clients at work without events of which this session is not told yet, and counts them as told.
    fn silence(&self, open: &OpenWorkspace) -> Vec<Silence> {
        open.ear.listen_aside(self.engine.home(), &open.workspace);
        // An event of a client has come just now.
        let is_other = |one: &Silence| self.client.as_deref() != Some(one.client.name());
        let found: Vec<Silence> = open.ear.found().into_iter().filter(is_other).collect();
        let mut state = self.state();
        let is_new = |told: &ToldRecord, one: &Silence| !told.silent.contains(one.client.name());
        let told = state.told.look();
        let is_over = told.silent.iter().any(|name| !found.iter().any(|one| one.client.name() == name));
        if !is_over && !found.iter().any(|one| is_new(told, one)) {
            return Vec::new();
        }
        state.told.change(|record| {
            let new = found.iter().filter(|one| is_new(record, one)).cloned().collect();
            record.silent = found.iter().map(|one| one.client.name().to_owned()).collect();
            new
        })
    }

    /// Returns a note that the cap of the store cannot be met, once in a session. A hook's connection gets no notices.
    fn unmet_cap(&self, open: &OpenWorkspace) -> Option<Note> {
        if self.state().told.look().is_cap_told {
            return None;
        }
        let total = open.in_force().policy.retention.total_bytes;
        let unmet = self.engine.rounds().unmet_cap(total)?;
        Some(Note::of(Subject::Other, &format!("piton: {unmet}; {UNMET_STEP}")))
    }

    /// Returns the journal of the session's workspace, if it has grown since the model was last told of it.
    fn journal_news(&mut self, open: &OpenWorkspace) -> Option<JournalNews> {
        let (workspace, dir) = (open.workspace.id.clone(), open.workspace.dir.clone());
        let length = std::fs::metadata(dir.join("journal")).map_or(0, |facts| facts.len());
        if self.state().told.look().journals.get(&workspace).is_some_and(|told| told.length == length) {
            return None;
        }
        let lines = match Journal::in_dir(&dir).read() {
            Ok(contents) => contents.lines,
            Err(error) => {
                tracing::warn!(%error, "cannot determine what was restored");
                return None;
            }
        };
        // Lines of turns may go when the journal is shortened.
        let operations = lines.iter().filter(|line| !matches!(line, Line::Turn(_))).count();
        Some(JournalNews { workspace, lines, now: JournalMark { length, lines: operations } })
    }
}

/// A journal with lines of which the model may not know.
struct JournalNews {
    /// The workspace's id.
    workspace: String,
    lines: Vec<Line>,
    now: JournalMark,
}

impl JournalNews {
    /// Returns a note of the restores since the model was last told; nothing in a session that begins.
    fn note(&self, told: Option<&JournalMark>) -> Option<Note> {
        notes_of(&self.lines, told?.lines).map(|text| Note::of(Subject::Loss, &text))
    }
}

/// Returns the notes of clients at work without events. No checkpoint may hold what they change, so they are told in any case.
fn notes_of_silence(silent: &[Silence]) -> Vec<Note> {
    let note = |silence: &Silence| {
        let step = "they might be in no checkpoint. Ask the user to run `piton doctor`, which explains why.";
        Note::of(Subject::Loss, &format!("piton: {} in this workspace: {step}", silence.text()))
    };
    silent.iter().map(note).collect()
}

/// Leaves out the warning of collisions.
fn leave_out_collisions(action: &mut ActionDecision) {
    action.warnings.retain(|warning| warning.code != collision_notes::CODE);
}

/// Returns the notes of what an action does that files do not undo, and of what no checkpoint holds.
fn notes_of_action(action: &ActionDecision) -> Vec<Note> {
    let own = action.not_held.iter().map(|gap| (gap.path.display(), gap.weight));
    let others = action.others.iter().flat_map(|other| {
        other.not_held.iter().map(|gap| (gap.path.under(&other.root).to_string_lossy().into_owned(), gap.weight))
    });
    let gaps: Vec<_> = own.chain(others).map(|(path, weight)| (printable(&path), weight)).collect();
    let unguarded = notes_of_unguarded(action);
    let lost = not_held_sentence(gaps.into_iter()).map(|text| Note::of(Subject::Loss, &format!("piton: {text}")));
    let is_collision = |warning: &&Warning| warning.code == collision_notes::CODE;
    let note =
        |warning: &Warning| Note::of(Subject::Warning(warning.code.clone()), &format!("piton: {}", warning.message));
    let is_told = action.warnings.iter().any(|warning| is_collision(&warning));
    let work = if is_told { collision_notes::notes(action) } else { Vec::new() };
    let warnings = action.warnings.iter().filter(|warning| !is_collision(warning)).map(note);
    unguarded.into_iter().chain(lost).chain(work).chain(warnings).collect()
}

/// Returns one note of the operations that ended after the first `before` lines, those of turns not counted. An undo that was taken back since is left out, with
/// its redo.
fn notes_of(lines: &[Line], before: usize) -> Option<String> {
    let mut told: Vec<(&OperationStart, &OperationEnd)> = Vec::new();
    let mut begun: Option<&OperationStart> = None;
    for (at, line) in lines.iter().filter(|line| !matches!(line, Line::Turn(_))).enumerate() {
        match line {
            Line::Restoring(begin) => begun = Some(begin),
            Line::Restored(end) => {
                let Some(begin) = begun.take_if(|begin| begin.op == end.op) else { continue };
                if at < before || end.changed.is_empty() {
                    continue;
                }
                let is_back = |(begun, ended): &(&OperationStart, &OperationEnd)| {
                    begin.kind == OperationKind::Redo
                        && begun.kind == OperationKind::Undo
                        && begun.over == begin.over
                        && ended.changed == end.changed
                };
                match told.last().is_some_and(is_back) {
                    true => _ = told.pop(),
                    false => told.push((begin, end)),
                }
            }
            Line::Aborted { .. } => begun = None,
            Line::External(_) | Line::Turn(_) => {}
        }
    }
    let mut happened: Vec<String> = told.iter().map(|(begin, _)| what(begin, lines)).collect();
    happened.dedup();
    let changed: BTreeSet<&String> = told.iter().flat_map(|(_, end)| &end.changed).collect();
    let paths: Vec<String> = changed.iter().map(|path| (*path).clone()).collect();
    let paths = unquoted(&paths).unwrap_or_default();
    let named: Vec<String> = paths.iter().take(NAMED).map(RelPath::display).collect();
    let more = if paths.len() > NAMED { ", …" } else { "" };
    (!told.is_empty()).then(|| {
        format!(
            "piton: in this workspace {}, and {} changed: {}{more}. Read those files again before you use what you remember of them.",
            happened.join(", "),
            count(changed.len() as u64, "path"),
            named.join(", "),
        )
    })
}

/// Says what an operation did.
fn what(begin: &OperationStart, lines: &[Line]) -> String {
    let of_turn = |op: &String| {
        lines.iter().rev().find_map(|line| match line {
            Line::Turn(turn) if turn.op == *op => Some(printable(&turn.turn)),
            _ => None,
        })
    };
    let turn = begin.over.as_ref().and_then(of_turn);
    match (begin.kind, turn) {
        (OperationKind::Undo, Some(turn)) => format!("turn `{turn}` was undone"),
        (OperationKind::Redo, Some(turn)) => format!("turn `{turn}` was redone"),
        (OperationKind::Undo, None) => "a restore was undone".to_owned(),
        (OperationKind::Redo, None) => "a restore was redone".to_owned(),
        (OperationKind::Rollback, _) => "the work was rolled back".to_owned(),
        (OperationKind::Restore | OperationKind::Turn, _) => "files were restored".to_owned(),
    }
}
