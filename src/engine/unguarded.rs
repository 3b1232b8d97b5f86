//! Actions that run although no checkpoint could be taken before them: kept before the client is answered, and reported to its model.

use std::sync::{Arc, Mutex, PoisonError};

use super::decision::{ActionDecision, Decision, Protection, Stance};
use super::session::Session;
use super::told::{Note, Subject};
use super::workspace::OpenWorkspace;
use crate::checkpoint::Workspace;
use crate::checkpoint::records::action_log::{ActionProtection, ActionRecord};
use crate::checkpoint::records::unguarded;
use crate::error::Result;
use crate::model::text::{count, printable};

/// The most actions that one note names.
const NAMED: usize = 3;

/// The actions that ran unguarded while no runtime directory took them.
#[derive(Debug, Default)]
pub(super) struct UnguardedMemory(Mutex<Vec<ActionRecord>>);

impl UnguardedMemory {
    fn add(&self, record: ActionRecord) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Brings what is kept here and in the runtime directory into the records of the workspace.
    fn settle(&self, workspace: &Workspace) -> Result<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unguarded::append(workspace, &kept)?;
        kept.clear();
        drop(kept);
        unguarded::settle(workspace)
    }
}

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
    // One that is held back does not run; one that a person agrees to runs with their knowledge.
    if decision.stance != Stance::Proceed {
        return;
    }
    let why = decision.protection.fault().map(printable);
    let record = ActionRecord { protection, why, ..record };
    if let Err(error) = unguarded::keep(&open.workspace, &record) {
        tracing::warn!(%error, "an unguarded action is kept in memory alone");
        open.unguarded.add(record);
    }
}

impl Session {
    /// Has the worker bring unguarded actions into the records of a workspace, if some wait. Returns notes of those that no process of
    /// piton has reported.
    pub(super) fn settle_unguarded(&mut self, open: &OpenWorkspace) -> Vec<Note> {
        let is_waiting = unguarded::are_waiting(&open.workspace);
        if !is_waiting && open.unguarded.is_empty() {
            return Vec::new();
        }
        let root = &open.workspace.path;
        let is_here = |cwd: &std::path::Path| {
            cwd.starts_with(root) && self.engine.root_around(cwd).is_ok_and(|around| around == *root)
        };
        let claimed = unguarded::claim(&open.workspace, is_here);
        let memory = Arc::clone(&open.unguarded);
        self.queue(
            open,
            move |timeline, _| memory.settle(timeline.workspace()),
            |_, settled| {
                // They wait on, and the next event tries again.
                if let Err(error) = settled {
                    tracing::debug!(%error, "unguarded actions could not be recorded");
                }
            },
        );
        note_of_claimed(&claimed).into_iter().collect()
    }
}

/// Returns a note of actions that piton learned of afterwards.
fn note_of_claimed(claimed: &[ActionRecord]) -> Option<Note> {
    let first = claimed.first()?;
    let named: Vec<String> =
        claimed.iter().take(NAMED).map(|record| format!("`{}`", printable(&record.command))).collect();
    let more = if claimed.len() > NAMED { ", …" } else { "" };
    let why = first.why.as_deref().map(|why| format!(" ({})", printable(why))).unwrap_or_default();
    Some(Note::of(
        Subject::Loss,
        &format!(
            "piton: not protected: {} ran without a checkpoint since {}{why}: {}{more}. `piton undo` may not restore what they changed.",
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
            "piton: not protected: no checkpoint{place} before this action: {}. `piton undo` may not restore what it deletes or overwrites.",
            printable(why)
        );
        Note::of(Subject::Loss, &text)
    };
    own.into_iter().chain(others).map(note).collect()
}
