//! Recorded actions, in the words of the protocol.

use std::collections::HashMap;

use crate::checkpoint::Timeline;
use crate::checkpoint::history::recorded::ListedAction;
use crate::checkpoint::records::action_log::ActionProtection;
use crate::checkpoint::records::unguarded;
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::protocol::{ActionItem, CheckpointStatus};

/// The most actions that one item lists.
const MOST: usize = 100;

/// Makes items of actions; of many, the newest.
///
/// # Errors
/// When the checkpoints cannot be listed.
pub fn actions(timeline: &Timeline, listed: Vec<ListedAction>) -> Result<Vec<ActionItem>> {
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let all = timeline.catalog().all()?;
    let numbers: HashMap<ObjectId, Number> = all.checkpoints.iter().map(|one| (one.id, one.record.number)).collect();
    let left_out = listed.len().saturating_sub(MOST);
    let item = |ListedAction { record, lost }| ActionItem {
        n: record.checkpoint.and_then(|id| numbers.get(&id).copied()).filter(|number| !number.is_none()),
        command: record.command,
        effects: record.effects.into_iter().map(Into::into).collect(),
        opaque: record.is_opaque,
        lost,
        status: status(record.protection),
        run: record.run,
        turn: record.turn,
        action: record.action,
        time: record.time,
        reason: record.why,
    };
    Ok(listed.into_iter().skip(left_out).map(item).collect())
}

/// Returns the actions that ran without a checkpoint; of many, the newest.
///
/// # Errors
/// When the checkpoints cannot be listed.
pub fn unguarded(timeline: &Timeline) -> Result<Vec<ActionItem>> {
    let listed = unguarded::list(timeline.workspace()).into_iter();
    actions(timeline, listed.map(|record| ListedAction { record, lost: None }).collect())
}

fn status(protection: ActionProtection) -> CheckpointStatus {
    match protection {
        ActionProtection::None => CheckpointStatus::None,
        ActionProtection::Taken => CheckpointStatus::Taken,
        ActionProtection::Held => CheckpointStatus::Held,
        ActionProtection::Late => CheckpointStatus::Late,
        ActionProtection::Failed => CheckpointStatus::Failed,
        ActionProtection::Off => CheckpointStatus::Off,
    }
}
