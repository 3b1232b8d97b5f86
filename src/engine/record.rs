//! The record of an action: written by the worker, once the action has its checkpoint or none is taken.

use std::sync::Arc;

use super::decision::Protection;
use super::event::{Action, Doing};
use super::guard::Due;
use super::names::{named, shown};
use super::protect::{self, Protected};
use super::reach::{ActionReach, gives_secret_away};
use super::session::Session;
use super::unguarded::UnguardedAction;
use super::workspace::OpenWorkspace;
use crate::checkpoint::Timeline;
use crate::checkpoint::records::action_log::{ActionProtection, ActionRecord, ExternalEffect, MAX_NAMED};
use crate::error::Result;
use crate::model::effect::{Confidence, Verdict};
use crate::model::meta::quote;
use crate::model::redact::redact;
use crate::sys::clock::{now_ms, rfc3339};

/// The record of an action, without its protection, which is not known yet.
pub(super) struct NewRecord(ActionRecord);

impl NewRecord {
    /// Returns the action as one that may run unguarded.
    pub(super) fn unguarded(&self, open: &Arc<OpenWorkspace>) -> UnguardedAction {
        UnguardedAction { open: Arc::clone(open), record: self.0.clone() }
    }

    /// Writes the record, on the worker's thread. `is_late` says that the client was answered before.
    pub(super) fn write(self, timeline: &mut Timeline, protected: &Result<Protected>, is_late: bool) {
        let protection = match protected {
            Err(_) => ActionProtection::Failed,
            Ok(_) if is_late => ActionProtection::Late,
            Ok(Protected::Taken(_)) => ActionProtection::Taken,
            Ok(Protected::Held(_)) => ActionProtection::Held,
        };
        let checkpoint = protected.as_ref().ok().map(|held| held.checkpoint().id);
        if let Err(error) = timeline.record_action(ActionRecord { checkpoint, protection, ..self.0 }) {
            tracing::warn!(%error, "an action could not be recorded");
        }
    }
}

impl Session {
    /// Returns the record of an action in a workspace; `None` if no checkpoint is due for it, and files undo all its effects.
    pub(super) fn record_of(
        &self,
        action: &Action,
        verdict: &Verdict,
        reach: &ActionReach,
        due: &Due,
    ) -> Option<NewRecord> {
        let external = verdict.warnings.iter().filter(|warning| warning.class.is_external());
        let external: Vec<ExternalEffect> = external
            .map(|warning| ExternalEffect {
                class: warning.class,
                severity: warning.severity,
                message: redact(&warning.clone().of_saved().message),
                is_saved: warning.on_files.is_some(),
            })
            .collect();
        if *due == Due::Nothing && external.is_empty() {
            return None;
        }
        let command = if let Doing::Shell { command } = &action.what { command.as_str() } else { "" };
        let is_secret = gives_secret_away(command);
        let targets = reach.targets.iter().map(|target| &target.path);
        let known = targets.filter(|path| !is_secret(&path.display())).take(MAX_NAMED);
        let paths: Vec<String> = known.map(|path| quote(path.as_bytes())).collect();
        let is_opaque = verdict.confidence == Confidence::Opaque;
        let (run, turn) = self.recording();
        Some(NewRecord(ActionRecord {
            after: 0,
            checkpoint: None,
            protection: ActionProtection::None,
            command: shown(&named(action)),
            action: action.id.clone(),
            effects: protect::classes(verdict),
            is_opaque,
            is_wide: is_opaque || reach.is_everything || paths.len() < reach.targets.len(),
            named: paths,
            external,
            run,
            turn,
            key: self.state().turns.key().map(str::to_owned),
            time: rfc3339(now_ms()),
            why: None,
        }))
    }

    /// Records an action that is answered without a look at its files.
    pub(super) fn record_quietly(&mut self, open: &OpenWorkspace, record: Option<NewRecord>, protection: &Protection) {
        let Some(NewRecord(record)) = record else { return };
        let (protection, checkpoint) = match protection {
            Protection::Held(turn) => (ActionProtection::Held, turn.id.parse().ok()),
            Protection::Off(_) => (ActionProtection::Off, None),
            _ => (ActionProtection::None, None),
        };
        let record = ActionRecord { checkpoint, protection, ..record };
        self.quietly(open, move |timeline, _| timeline.record_action(record));
    }
}
