//! Lists of checkpoints, with the changes after each.

use std::collections::BTreeMap;

use super::checkpoint::Checkpoint;
use super::diff::{Change, LiveSide, Present, Stat, is_file_change};
use super::gaps::Gap;
use super::open::Catalog;
use crate::checkpoint::records::pins::Pins;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::effect::Class;
use crate::model::path::RelPath;

/// A choice of checkpoints to list.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Only checkpoints of the run with this id; `None` means all runs.
    pub run: Option<String>,
    /// Only checkpoints of this kind; `None` means all kinds.
    pub kind: Option<CheckpointKind>,
    /// Only checkpoints after which this path, or something below it, changed.
    pub path: Option<RelPath>,
    /// Only ordinals below this one.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: usize,
    /// True if base captures are listed too.
    pub with_base: bool,
}

/// One checkpoint and the changes after it.
#[derive(Clone, Debug)]
pub struct ListedCheckpoint {
    /// The checkpoint of this row.
    pub checkpoint: Checkpoint,
    /// The changes of the action after the checkpoint, up to the next one; up to now for the newest. Of a checkpoint that patterns
    /// narrowed, only changes that they cover are counted. `None` for checkpoints of named paths.
    pub stat: Option<Stat>,
    /// Classes of effects after it, up to the next one, that no restore undoes.
    pub external: Vec<Class>,
    /// Names its first missing or damaged path, if one is known.
    pub damaged: Option<String>,
    /// Lists the paths that its action named and it does not hold.
    pub gaps: Vec<Gap>,
    /// True if it is pinned now.
    pub is_pinned: bool,
}

/// A list, newest first.
#[derive(Clone, Debug)]
pub struct CheckpointList {
    /// The checkpoints that matched, at most as many as the limit.
    pub rows: Vec<ListedCheckpoint>,
    /// The number of those that matched before the limit.
    pub total: usize,
    /// Refs that could not be read.
    pub faults: Vec<String>,
}

impl Catalog {
    /// Lists checkpoints. `present` is the workspace as it is now.
    ///
    /// # Errors
    /// `store-damaged`; a missing workspace is listed without the changes after the newest checkpoint.
    pub(crate) fn listing(&self, query: &ListFilter, present: Result<Present>) -> Result<CheckpointList> {
        let known = self.all()?;
        let (all, mut faults) = (known.checkpoints.as_slice(), self.broken(&known)?);
        let present = match present {
            Ok(present) => Some(present),
            Err(error) if error.code() == Code::WorkspaceGone => None,
            Err(error) => {
                faults.push(format!("what changed since the newest checkpoint is not known: {}", error.text()));
                None
            }
        };
        let externals = &self.history()?.externals;
        let pins = Pins::load(&self.workspace.dir).unwrap_or_else(|error| {
            faults.push(error.text());
            Pins::default()
        });
        let (mut rows, mut unread) = (Vec::new(), Vec::new());
        let mut total = 0;
        // The checkpoint that follows in time tells what happened after one; `shown` is the same among the shown rows.
        let (mut next, mut shown): (Option<&Checkpoint>, Option<&Checkpoint>) = (None, None);
        // A narrowed checkpoint is also followed by the next typed one of its run, whose patterns go on from its own.
        let mut typed: BTreeMap<&str, &Checkpoint> = BTreeMap::new();
        for checkpoint in all.iter().rev() {
            let record = &checkpoint.record;
            let (base, everywhere) = (record.kind() == CheckpointKind::Turn, record.looked_everywhere());
            let mut next = following(&mut next, checkpoint, record.is_whole() && !base);
            if record.kind().is_typed() && everywhere {
                let newer = typed.insert(record.run(), checkpoint).filter(|_| !record.is_whole());
                next = next.into_iter().chain(newer).min_by_key(|newer| newer.record.ordinal());
            }
            let shown = following(&mut shown, checkpoint, !base || query.with_base);
            if !wanted(checkpoint, query) || (query.path.is_some() && !everywhere) {
                continue;
            }
            // If that is not known, the row is listed: it says that it is damaged.
            if let Some(path) = &query.path
                && self.touches(checkpoint, next, present.as_ref(), path).is_ok_and(|touches| !touches)
            {
                continue;
            }
            total += 1;
            if rows.len() >= query.limit {
                continue;
            }
            let live = if next.is_some() { LiveSide::Neither } else { LiveSide::New };
            let after = || self.stat(&self.after(checkpoint, next, present.as_ref())?, live).map(Some);
            let stat = match everywhere && (next.is_some() || present.is_some()) {
                true => Catalog::if_it_fits(after()).unwrap_or_else(|error| {
                    // The damage may be in the following checkpoint, which may be no row.
                    unread.push((error, next.cloned()));
                    None
                }),
                false => None,
            };
            // Base captures are not shown: what happened after one belongs to the checkpoint before it.
            let until = shown.map_or(u64::MAX, |next| next.record.ordinal);
            let after = externals.iter().filter(|e| (checkpoint.record.ordinal..until).contains(&e.after));
            let mut external: Vec<Class> = after.map(|external| external.class).collect();
            external.sort();
            external.dedup();
            let is_told = checkpoint.record.flags.iter().any(|flag| flag == "not-held");
            // If the gaps cannot be read, the flag alone tells of them.
            let gaps = if is_told { self.gaps_at(checkpoint).unwrap_or_default() } else { Vec::new() };
            let is_pinned = pins.holds(&checkpoint.record);
            rows.push(ListedCheckpoint {
                checkpoint: checkpoint.clone(),
                stat,
                external,
                damaged: None,
                gaps,
                is_pinned,
            });
        }
        self.mark_damaged(&mut rows, unread, &mut faults)?;
        Ok(CheckpointList { rows, total, faults })
    }

    /// Marks the rows whose checkpoints are damaged. `unread` has the errors of comparisons, each with the newer side.
    fn mark_damaged(
        &self,
        rows: &mut [ListedCheckpoint],
        unread: Vec<(Error, Option<Checkpoint>)>,
        faults: &mut Vec<String>,
    ) -> Result<()> {
        // A comparison that met damage has noted it.
        if unread.is_empty() && !self.store.is_suspect() {
            return Ok(());
        }
        let mut holes = self.store.holes_soon();
        let (mut named, mut is_explained) = (BTreeMap::new(), false);
        for row in rows {
            row.damaged = holes.below(row.checkpoint.tree)?;
            named.extend(row.damaged.clone().map(|what| (row.checkpoint.record.ordinal, what)));
        }
        for newer in unread.iter().filter_map(|(_, newer)| newer.as_ref()) {
            named.extend(holes.below(newer.tree)?.map(|what| (newer.record.ordinal, what)));
        }
        for (ordinal, what) in named.into_iter().rev() {
            is_explained = true;
            faults.push(format!("checkpoint {ordinal}: {what}"));
        }
        // Without a place in a checkpoint the error itself is told.
        faults.extend(unread.first().filter(|_| !is_explained).map(|(error, _)| error.fact()));
        Ok(())
    }

    /// Returns true if `path`, or something below it, changed between a checkpoint and the next one, or now.
    fn touches(
        &self,
        from: &Checkpoint,
        next: Option<&Checkpoint>,
        present: Option<&Present>,
        path: &RelPath,
    ) -> Result<bool> {
        // Equal entries mean equal trees: this decides most checkpoints without comparing the rest.
        if let Some(next) = next
            && self.entry_at(&from.tree, path)? == self.entry_at(&next.tree, path)?
        {
            return Ok(false);
        }
        Ok(self.after(from, next, present)?.iter().any(|change| change.path.starts_with(path)))
    }

    /// Lists the changes from a checkpoint to the next one, or to now.
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

/// Returns the checkpoint seen before this one, from the newest on, and replaces it by this one if it counts.
fn following<'c>(
    seen: &mut Option<&'c Checkpoint>,
    checkpoint: &'c Checkpoint,
    counts: bool,
) -> Option<&'c Checkpoint> {
    if counts { seen.replace(checkpoint) } else { *seen }
}

fn wanted(checkpoint: &Checkpoint, query: &ListFilter) -> bool {
    let record = &checkpoint.record;
    query.run.as_ref().is_none_or(|run| record.run() == run)
        && query.kind.is_none_or(|kind| record.kind() == kind)
        && query.before.is_none_or(|before| record.ordinal() < before)
        && (record.kind() != CheckpointKind::Turn || query.with_base || query.kind == Some(CheckpointKind::Turn))
}
