//! The wish of a session that changes be saved.

use std::sync::Arc;

use super::decision::Notice;
use super::saves::{Saver, Told, take_for};
use super::session::{Later, Session};
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::records::workspace::Scope;
use crate::error::Code;
use crate::model::checkpoint::CheckpointKind;

impl Session {
    /// Has changes in the session's workspace saved from now on, where that is possible; true if it is.
    pub(super) fn autosave(&mut self, workspace: &OpenWorkspace) -> bool {
        if workspace.workspace.scope != Scope::Tree {
            self.fault("no autosave: this directory is too broad to capture as a whole".to_owned());
            return false;
        }
        let saver = Saver { number: self.number, run: self.run_and_turn().0, told: told(Arc::clone(&self.later)) };
        // Dropped first, so that the old wish does not take the new one with it.
        self.saves = None;
        self.saves = Some(workspace.worker.autosave(saver));
        true
    }

    /// Returns true if changes are saved for this session.
    pub(super) fn is_saved(&self) -> bool {
        self.saves.is_some()
    }

    /// Ends the session's wish, after one more save.
    pub(super) fn end_autosave(&mut self) {
        let Some(wish) = self.saves.take() else { return };
        let Ok(open) = self.workspace() else { return };
        let run = self.run_and_turn().0;
        if open.why_off().is_some() {
            return;
        }
        self.quietly(&open, move |timeline: &mut Timeline, control| {
            let saved = timeline.take(&take_for(&run), control).map(drop);
            drop(wish);
            saved
        });
    }
}

/// Returns the closure that tells a session of its saves.
fn told(later: Later) -> Told {
    Arc::new(move |saved| {
        let notice = match saved {
            None => None,
            Some(Ok(taken)) => Some(Notice::Autosaved(Arc::clone(taken))),
            Some(Err(error)) if error.code() == Code::ShuttingDown => return,
            Some(Err(error)) => Some(Notice::JobFailed { reason: error.text(), kind: Some(CheckpointKind::Autosave) }),
        };
        later(Box::new(move |session| {
            // A client that only waits for saves sends no event with which an edit of the settings would be noticed.
            session.renew();
            let Some(notice) = notice else { return };
            session.note_event();
            if let Notice::JobFailed { reason, .. } = &notice {
                session.fault(format!("an autosave failed: {reason}"));
            }
            session.tell(notice);
        }));
    })
}
