//! Lists of checkpoints, with what happened after each.

use super::diff::{Change, Present, Stat, is_file_change};
use super::timeline::{Checkpoint, Timeline};
use crate::error::{Code, Result};
use crate::model::checkpoint::Kind;
use crate::model::effect::Class;
use crate::model::path::RelPath;
use crate::worktree::Flow;

/// Which checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct Query {
    pub run: Option<String>,
    pub kind: Option<Kind>,
    /// Only checkpoints after which this path, or something below it, changed.
    pub path: Option<RelPath>,
    /// Only ordinals below this one.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: usize,
    /// Base captures too.
    pub with_base: bool,
}

/// One checkpoint and what happened after it.
#[derive(Clone, Debug)]
pub struct Row {
    pub checkpoint: Checkpoint,
    /// What the action after the checkpoint did, up to the next one; up to now for the newest. `None` for checkpoints
    /// that hold only a part of the workspace.
    pub stat: Option<Stat>,
    /// Classes of effects after it, up to the next one, that no restore undoes.
    pub external: Vec<Class>,
}

/// A list, newest first.
#[derive(Clone, Debug)]
pub struct Listing {
    pub rows: Vec<Row>,
    /// How many matched before the limit.
    pub total: usize,
    /// Refs that could not be read.
    pub faults: Vec<String>,
}

impl Timeline {
    /// Lists checkpoints.
    ///
    /// # Errors
    /// `store-damaged`; a workspace that is gone is listed without what happened after the newest.
    pub fn listing(&mut self, query: &Query, control: &dyn Fn() -> Flow) -> Result<Listing> {
        let known = self.all()?;
        let (all, mut faults) = (known.checkpoints.as_slice(), known.broken.clone());
        let present = match self.present(control) {
            Ok(present) => Some(present),
            Err(error) if error.code() == Code::WorkspaceGone => None,
            Err(error) => {
                faults.push(format!("what changed since the newest checkpoint is not known: {}", error.text()));
                None
            }
        };
        let externals = &self.history()?.externals;
        let mut rows = Vec::new();
        let mut total = 0;
        // What comes next, for what happened after a checkpoint; and of what is shown.
        let (mut next, mut shown): (Option<&Checkpoint>, Option<&Checkpoint>) = (None, None);
        for checkpoint in all.iter().rev() {
            let base = checkpoint.record.kind == Kind::Turn;
            let next = following(&mut next, checkpoint, is_whole(checkpoint) && !base);
            let shown = following(&mut shown, checkpoint, !base || query.with_base);
            if !wanted(checkpoint, query) || (query.path.is_some() && !is_whole(checkpoint)) {
                continue;
            }
            if let Some(path) = &query.path
                && !self.after(checkpoint, next, present.as_ref())?.iter().any(|change| change.path.starts_with(path))
            {
                continue;
            }
            total += 1;
            if rows.len() >= query.limit {
                continue;
            }
            let stat = match is_whole(checkpoint) && (next.is_some() || present.is_some()) {
                true => Some(self.stat(&self.after(checkpoint, next, present.as_ref())?)?),
                false => None,
            };
            // Base captures are not shown: what happened after one belongs to the checkpoint before it.
            let until = shown.map_or(u64::MAX, |next| next.record.ordinal);
            let after = externals.iter().filter(|e| (checkpoint.record.ordinal..until).contains(&e.after));
            let mut external: Vec<Class> = after.map(|external| external.class).collect();
            external.sort();
            external.dedup();
            rows.push(Row { checkpoint: checkpoint.clone(), stat, external });
        }
        Ok(Listing { rows, total, faults })
    }

    /// Changes from a checkpoint to the next one, or to now.
    fn after(&self, from: &Checkpoint, next: Option<&Checkpoint>, present: Option<&Present>) -> Result<Vec<Change>> {
        let mut changes = match (next, present) {
            (Some(next), _) => self.changes_between(from, next)?,
            (None, Some(present)) => self.changes_to_present(from, present)?,
            (None, None) => Vec::new(),
        };
        changes.retain(is_file_change);
        Ok(changes)
    }
}

/// What was there before, `seen` from the newest on; `checkpoint` takes its place if it counts.
fn following<'c>(
    seen: &mut Option<&'c Checkpoint>,
    checkpoint: &'c Checkpoint,
    counts: bool,
) -> Option<&'c Checkpoint> {
    if counts { seen.replace(checkpoint) } else { *seen }
}

fn wanted(checkpoint: &Checkpoint, query: &Query) -> bool {
    let record = &checkpoint.record;
    query.run.as_ref().is_none_or(|run| record.run == *run)
        && query.kind.is_none_or(|kind| record.kind == kind)
        && query.before.is_none_or(|before| record.ordinal < before)
        && (record.kind != Kind::Turn || query.with_base || query.kind == Some(Kind::Turn))
}

/// Whether a checkpoint holds the whole workspace: not narrowed by tracked-file patterns or to some paths.
fn is_whole(checkpoint: &Checkpoint) -> bool {
    !checkpoint.record.kind.is_typed() && checkpoint.record.is_whole()
}
