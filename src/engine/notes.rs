//! Notes that a client's model has not got yet: files that were restored without its knowledge, and warnings that the
//! client could not pass on at once.

use std::collections::BTreeSet;

use super::session::Session;
use super::state::JournalMark;
use super::workspace::OpenWorkspace;
use crate::checkpoint::history::journal::{Journal, Line, OperationEnd, OperationStart, unquoted};
use crate::checkpoint::upkeep::usage::UNMET_STEP;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::redact::redact;
use crate::model::text::{count, printable};

/// Paths that a note names.
const NAMED: usize = 8;

/// The most notes that are kept for a client that does not fetch them.
const MOST: usize = 20;

impl Session {
    /// Takes the pending notes; none for a client whose replies to this event do not reach the model.
    pub(super) fn notices(&mut self, workspace: Option<&OpenWorkspace>) -> Vec<String> {
        if !self.reaches_model {
            return Vec::new();
        }
        let back = workspace.and_then(|workspace| self.brought_back(workspace));
        let cap = workspace.and_then(|workspace| self.unmet_cap(workspace));
        let mut state = self.state();
        let mut notes = std::mem::take(&mut state.notes);
        notes.extend(back.into_iter().chain(cap));
        if !notes.is_empty() {
            state.keep();
        }
        notes
    }

    /// Keeps notes for an event whose reply reaches the model.
    pub(super) fn keep_notes(&self, notes: Vec<String>) {
        if notes.is_empty() {
            return;
        }
        let mut state = self.state();
        state.notes.extend(notes.iter().map(|note| redact(note)));
        let surplus = state.notes.len().saturating_sub(MOST);
        state.notes.drain(..surplus);
        state.keep();
    }

    /// Returns a note that the cap of the store cannot be met, once in a session. A hook's connection gets no notices.
    fn unmet_cap(&self, open: &OpenWorkspace) -> Option<String> {
        if self.state().is_cap_told {
            return None;
        }
        let total = open.in_force().policy.retention.total_bytes;
        let unmet = self.engine.rounds().unmet_cap(total)?;
        self.state().is_cap_told = true;
        Some(format!("piton: {unmet}; {UNMET_STEP}"))
    }

    /// Returns a note of restores in the session's workspace since its last note, or since the session began.
    fn brought_back(&mut self, open: &OpenWorkspace) -> Option<String> {
        let (id, dir) = (open.workspace.id.clone(), open.workspace.dir.clone());
        let length = std::fs::metadata(dir.join("journal")).map_or(0, |facts| facts.len());
        let told = self.state().told.get(&id).copied();
        if told.is_some_and(|told| told.length == length) {
            return None;
        }
        let lines = match Journal::in_dir(&dir).read() {
            Ok(contents) => contents.lines,
            Err(error) => {
                tracing::warn!(%error, "what was restored cannot be told");
                return None;
            }
        };
        // Lines of turns may go when the journal is shortened.
        let operations = lines.iter().filter(|line| !matches!(line, Line::Turn(_))).count();
        let now = JournalMark { length, lines: operations };
        let mut state = self.state();
        state.told.insert(id, now);
        state.keep();
        told.and_then(|told| notes_of(&lines, told.lines))
    }
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
            "piton: in this workspace {}, and {} changed: {}{more}. Read files again before you rely on what you knew of them.",
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
        (OperationKind::Redo, Some(turn)) => format!("the undo of turn `{turn}` was taken back"),
        (OperationKind::Undo, None) => "a restore was undone".to_owned(),
        (OperationKind::Redo, None) => "a restore was done again".to_owned(),
        (OperationKind::Rollback, _) => "the work was rolled back".to_owned(),
        (OperationKind::Restore | OperationKind::Turn, _) => "files were restored".to_owned(),
    }
}
