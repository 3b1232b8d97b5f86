//! Notes that a client's model has not got yet: files that were restored without its knowledge, and warnings that the
//! client could not pass on at once.

use super::session::Session;
use super::state::JournalMark;
use super::workspace::OpenWorkspace;
use crate::checkpoint::history::journal::{Journal, Line, unquoted};
use crate::checkpoint::upkeep::usage::UNMET_STEP;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::redact::redact;
use crate::model::text::count;

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
        let back = workspace.map(|workspace| self.brought_back(workspace)).unwrap_or_default();
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

    /// Returns notes of restores in the session's workspace since its last note, or since the session began.
    fn brought_back(&mut self, open: &OpenWorkspace) -> Vec<String> {
        let (id, dir) = (open.workspace.id.clone(), open.workspace.dir.clone());
        let length = std::fs::metadata(dir.join("journal")).map_or(0, |facts| facts.len());
        let told = self.state().told.get(&id).copied();
        if told.is_some_and(|told| told.length == length) {
            return Vec::new();
        }
        let lines = match Journal::in_dir(&dir).read() {
            Ok(contents) => contents.lines,
            Err(error) => {
                tracing::warn!(%error, "what was restored cannot be told");
                return Vec::new();
            }
        };
        let now = JournalMark { length, lines: lines.len() };
        let mut state = self.state();
        state.told.insert(id, now);
        state.keep();
        told.map_or_else(Vec::new, |told| notes_of(&lines, told.lines))
    }
}

/// Returns notes of the operations that ended after the first `before` lines.
fn notes_of(lines: &[Line], before: usize) -> Vec<String> {
    let ended = lines.iter().enumerate().skip(before).filter_map(|(at, line)| match line {
        Line::Restored(end) => Some((at, end)),
        Line::Restoring(_) | Line::Aborted { .. } | Line::External(_) | Line::Turn(_) => None,
    });
    ended
        .filter(|(_, end)| !end.changed.is_empty())
        .map(|(at, end)| {
            let begin = lines[..at].iter().rev().find_map(|line| match line {
                Line::Restoring(begin) if begin.op == end.op => Some(begin.kind),
                _ => None,
            });
            let what = match begin {
                Some(OperationKind::Undo) => "a restore was undone",
                Some(OperationKind::Redo) => "a restore was done again",
                Some(OperationKind::Rollback) => "the work was rolled back",
                Some(OperationKind::Restore | OperationKind::Turn) | None => "files were restored",
            };
            let paths = unquoted(&end.changed).unwrap_or_default();
            let named: Vec<String> = paths.iter().take(NAMED).map(RelPath::display).collect();
            let more = if paths.len() > NAMED { ", …" } else { "" };
            format!(
                "piton: {what} in this workspace, and {} changed: {}{more}. Read files again before you rely on what you knew of them.",
                count(end.changed.len() as u64, "path"),
                named.join(", "),
            )
        })
        .collect()
}
