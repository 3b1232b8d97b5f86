//! Actions that run although no checkpoint could be taken before them: kept before the client is answered, and reported to its model.

use std::path::Path;
use std::sync::Arc;

use super::decision::{ActionDecision, Decision, Protection, Stance};
use super::told::{Note, Subject};
use super::workspace::OpenWorkspace;
use crate::checkpoint::records::action_log::{ActionProtection, ActionRecord};
use crate::checkpoint::records::unguarded::{self, UnguardedCommand};
use crate::error::Error;
use crate::model::policy::OnFailure;
use crate::model::text::{count, printable};

/// The most actions that one note names.
const NAMED: usize = 3;

/// An action that is kept if it runs without its checkpoint.
pub(super) struct UnguardedAction {
    /// The workspace whose files it may destroy.
    pub open: Arc<OpenWorkspace>,
    /// Its record.
    pub record: ActionRecord,
}

impl UnguardedAction {
    /// Returns true if it may destroy more than the paths it names.
    pub(super) fn is_wide(&self) -> bool {
        self.record.is_wide
    }
}

/// Keeps an action that runs without its checkpoint. Must run before its client is answered: a kill later loses nothing.
pub(super) fn keep_unguarded(action: Option<UnguardedAction>, decision: &Decision) {
    let (Some(UnguardedAction { open, record }), Decision::Action(decision)) = (action, decision) else { return };
    let protection = match &decision.protection {
        Protection::Late { .. } => ActionProtection::Late,
        Protection::Failed(_) => ActionProtection::Failed,
        Protection::NotNeeded(_) | Protection::Off(_) | Protection::Taken(_) | Protection::Held(_) => return,
    };
    // One that is kept back does not run; one that a person agrees to runs with their knowledge.
    if decision.stance != Stance::Proceed {
        return;
    }
    let why = decision.protection.fault().map(printable);
    let record = ActionRecord { protection, why, ..record };
    open.unguarded.keep(&open.workspace, record);
}

/// Keeps an action whose part in a workspace could not be judged, unless that stops it.
pub(super) fn keep_unplaced(command: String, cwd: &Path, error: &Error, on_failure: OnFailure) {
    if on_failure == OnFailure::Hold {
        return;
    }
    let command = UnguardedCommand { cwd: Some(cwd.to_owned()), command, why: error.text(), is_told: true };
    if let Err(error) = unguarded::keep_unplaced(command) {
        tracing::warn!(%error, "could not record an unguarded action");
    }
}

/// Returns a note of actions that piton learned of afterwards.
pub(super) fn note_of_claimed(claimed: &[ActionRecord]) -> Option<Note> {
    let first = claimed.first()?;
    let named: Vec<String> =
        claimed.iter().take(NAMED).map(|record| format!("`{}`", printable(&record.command))).collect();
    let more = if claimed.len() > NAMED { ", …" } else { "" };
    let why = first.why.as_deref().map(|why| format!(" ({})", printable(why))).unwrap_or_default();
    Some(Note::of(
        Subject::Loss,
        &format!(
            "piton: not protected: {} ran without a checkpoint since {}{why}: {}{more}. `piton undo` might not restore what they changed.",
            count(claimed.len() as u64, "action"),
            first.time,
            named.join(", ")
        ),
    ))
}

/// Returns notes that an action runs without a checkpoint, here or in another workspace.
pub(super) fn notes_of_unguarded(action: &ActionDecision) -> Vec<Note> {
    let own = action.protection.fault().map(|why| (String::new(), why));
    let others = action.others.iter().filter_map(|other| {
        let why = other.protection.fault()?;
        Some((format!(" in `{}`", printable(&other.root.to_string_lossy())), why))
    });
    let note = |(place, why): (String, &str)| {
        let text = format!(
            "piton: not protected: no checkpoint{place} before this action: {}. `piton undo` might not restore what it deletes or overwrites.",
            printable(why)
        );
        Note::of(Subject::Loss, &text)
    };
    own.into_iter().chain(others).map(note).collect()
}
