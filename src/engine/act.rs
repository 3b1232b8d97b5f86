//! What the worker does for an action: hold, take, and note what cannot be undone.

use crate::checkpoint::journal::{External, Line};
use crate::checkpoint::take::{Take, Taken};
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::model::effect::{Class, Verdict};
use crate::model::id::ObjectId;
use crate::sys::clock::{now_ms, rfc3339};
use crate::worktree::Target;

use super::worker::Control;

/// What an action's checkpoint became.
#[derive(Debug)]
pub enum Protected {
    Taken(Box<Taken>),
    /// The turn's checkpoint holds everything the action is about to destroy.
    Held,
}

/// The classes of what an action does, for the record.
pub fn classes(verdict: &Verdict) -> Vec<Class> {
    let mut classes: Vec<Class> = verdict.effects.iter().map(|effect| effect.class).collect();
    classes.sort();
    classes.dedup();
    classes
}

/// Holds or takes: an action whose targets changed since the turn's checkpoint `held` gets one of its own.
///
/// # Errors
/// As [`Timeline::take`].
pub fn protect(
    timeline: &mut Timeline,
    take: &Take,
    held: Option<ObjectId>,
    control: Control<'_>,
) -> Result<Protected> {
    if let Some(held) = held
        && timeline.holds(&held, &take.targets, control)?
    {
        return Ok(Protected::Held);
    }
    timeline.take(take, control).map(|taken| Protected::Taken(Box::new(taken)))
}

/// Captures just the named paths while the worker is at something longer. Called inside the worker's own thread.
///
/// # Errors
/// As [`Timeline::take`].
pub fn protect_beside(timeline: &mut Timeline, take: &Take, control: Control<'_>) -> Result<Taken> {
    let only = take.targets.iter().map(|target: &Target| target.path.clone()).collect();
    timeline.take_beside(&Take { only, ..take.clone() }, control)
}

/// Writes the external effects of an action into the journal, so that a later restore can name them.
///
/// # Errors
/// Those of the journal.
pub fn note_externals(timeline: &mut Timeline, verdict: &Verdict, run: &str, turn: Option<&str>) -> Result<()> {
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
                run: run.to_owned(),
                turn: turn.map(str::to_owned),
                time: time.clone(),
            })
        })
        .collect();
    timeline.note(&lines)
}
