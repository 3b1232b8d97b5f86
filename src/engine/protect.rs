//! What the worker does for an action: hold, take, and note what cannot be undone.

use crate::checkpoint::capture::gaps::Gap;
use crate::checkpoint::capture::take::{Take, Taken};
use crate::checkpoint::history::journal::{External, Line};
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::Result;
use crate::model::effect::{Class, Verdict};
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::sys::clock::{now_ms, rfc3339};

use super::guard::Slot;
use crate::sys::interrupt::Interrupt;

/// What an action's checkpoint became.
#[derive(Debug)]
pub enum Protected {
    Taken(Box<Taken>),
    /// This checkpoint holds everything that the action may destroy, as it stands now.
    Held(Checkpoint),
}

/// The turn's protection, for an action that is not the first of its turn.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The checkpoint that protects the turn.
    pub slot: Slot,
    /// True if the action may destroy more than its targets.
    pub reaches_all: bool,
    /// True if the client waits for answers: then every checkpoint of the turn came before the action it was taken for, and a later
    /// one protects as well as the first.
    pub waits: bool,
}

/// The classes of what an action does, for the record.
pub fn classes(verdict: &Verdict) -> Vec<Class> {
    let mut classes: Vec<Class> = verdict.effects.iter().map(|effect| effect.class).collect();
    classes.sort();
    classes.dedup();
    classes
}

/// Holds or takes: an action gets a checkpoint of its own if something that it may destroy changed since the last one.
///
/// # Errors
/// As [`Timeline::take`].
pub fn protect(
    timeline: &mut Timeline,
    take: &Take,
    standing: Option<&Standing>,
    control: Interrupt<'_>,
) -> Result<Protected> {
    let taken = |taken: Taken| Protected::Taken(Box::new(taken));
    let Some(standing) = standing else { return timeline.take(take, control).map(taken) };
    // The state of a session may be damaged: an id that is none protects nothing, and a checkpoint is taken.
    let slot: Option<ObjectId> = standing.slot.id.parse().ok();
    if !standing.reaches_all {
        for checkpoint in timeline.protecting(slot, standing.waits)? {
            if timeline.holds(&checkpoint.id, &take.targets, control)? {
                return Ok(Protected::Held(checkpoint));
            }
        }
        return timeline.take(take, control).map(taken);
    }
    // Taking compares everything with the last checkpoint, and records nothing where nothing differs.
    let further = Take { held: slot, always: false, ..take.clone() };
    let found = timeline.take(&further, control)?;
    let protects = found.unchanged && (standing.waits || Some(found.checkpoint.id) == slot);
    Ok(if protects { Protected::Held(found.checkpoint) } else { taken(found) })
}

/// A checkpoint as the turn remembers it.
pub fn slot_of(checkpoint: &Checkpoint) -> Slot {
    Slot { id: checkpoint.id.to_string(), ordinal: checkpoint.record.ordinal }
}

/// Lists what an action names and its checkpoint does not hold.
///
/// `repositories` are those in which the action destroys what it does not name.
pub fn not_held(timeline: &Timeline, protected: &Protected, take: &Take, repositories: &[RelPath]) -> Vec<Gap> {
    let named = match protected {
        _ if take.targets.is_empty() => Ok(Vec::new()),
        Protected::Taken(taken) => Ok(timeline.gaps_in(taken, &take.targets)),
        Protected::Held(checkpoint) => timeline.gaps_of(checkpoint, &take.targets),
    };
    let checkpoint = match protected {
        Protected::Taken(taken) => &taken.checkpoint,
        Protected::Held(checkpoint) => checkpoint,
    };
    let left_out = timeline.repositories_left_out(checkpoint, repositories);
    let gaps = named.and_then(|named| left_out.map(|left_out| named.into_iter().chain(left_out).collect()));
    gaps.unwrap_or_else(|error| {
        tracing::warn!(%error, "what the checkpoint leaves out could not be read");
        Vec::new()
    })
}

/// Writes the external effects of an action into the journal, so that a later restore can name them. `reason` is that of a
/// checkpoint before the action, redacted already.
///
/// # Errors
/// Returns the errors of the journal.
pub fn note_externals(
    timeline: &mut Timeline,
    verdict: &Verdict,
    (run, turn): (&str, Option<&str>),
    reason: &str,
) -> Result<()> {
    let external = verdict.warnings.iter().filter(|warning| warning.class.is_external()).collect::<Vec<_>>();
    if external.is_empty() {
        return Ok(());
    }
    let after = timeline.newest_ordinal()?;
    let time = rfc3339(now_ms());
    let lines: Vec<Line> = external
        .into_iter()
        .map(|warning| {
            Line::External(External {
                after,
                class: warning.class,
                severity: warning.severity,
                message: crate::model::redact::redact(&warning.message),
                action: Some(reason.strip_prefix("before ").unwrap_or(reason).to_owned()),
                run: run.to_owned(),
                turn: turn.map(str::to_owned),
                time: time.clone(),
            })
        })
        .collect();
    timeline.note(&lines)
}
