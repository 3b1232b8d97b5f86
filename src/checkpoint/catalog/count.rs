//! Counting the paths that differ between two trees.
//!
//! A checkpoint tells how many paths changed since the one before. The trees of that one were mostly written by this
//! process a moment ago, so they are kept.

use std::collections::HashMap;

use super::checkpoint::Checkpoint;
use super::diff::plain;
use super::open::Catalog;
use crate::error::Result;
use crate::model::build::MAX_DEPTH;
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::name;
use crate::model::tree::{self, Mode, Side};
use crate::worktree::PrivatePart;

/// Two versions of one directory.
type Pair = (Option<ObjectId>, Option<ObjectId>);

impl Catalog {
    /// Counts the paths that [`Catalog::changes`] would give, at a lower price: names that are the same are passed over.
    pub(crate) fn count_changes(
        &self,
        old: ObjectId,
        new: ObjectId,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<u64> {
        let mut count = 0_u64;
        // Level by level, each pair once with its number of occurrences: shared trees may stand for more paths than can
        // be visited.
        let mut level = HashMap::from([((Some(old), Some(new)), 1_u64)]);
        let mut depth = 0;
        while !level.is_empty() && depth <= MAX_DEPTH {
            let mut below = HashMap::new();
            for ((old, new), times) in level {
                let (here, dirs) = self.count_level(depth == 0, (old, new), fresh)?;
                count = count.saturating_add(here.saturating_mul(times));
                for pair in dirs {
                    let sum: &mut u64 = below.entry(pair).or_default();
                    *sum = sum.saturating_add(times);
                }
            }
            level = below;
            depth += 1;
        }
        Ok(count)
    }

    /// Counts the paths that differ between a checkpoint and what was observed, private ones among them.
    pub(crate) fn count_since(
        &self,
        base: &Checkpoint,
        root: ObjectId,
        fresh: &HashMap<ObjectId, Vec<u8>>,
        private: &PrivatePart,
    ) -> Result<u64> {
        let (old, new) = (&self.own_part(base)?.manifest, &private.manifest);
        let is_file = |entry: &ManifestEntry| entry.kind != EntryKind::Dir;
        let differs = old
            .differences(new)
            .into_iter()
            .filter(|(_, old, new)| old.iter().chain(new.iter()).any(|entry| is_file(entry)));
        // A layer that is gone or was never made says nothing.
        let counts = base.record.layer.is_some() && !self.is_layer_expired(base)?;
        let private = if counts { differs.count() as u64 } else { 0 };
        Ok(self.count_changes(base.tree, root, fresh)?.saturating_add(private))
    }

    /// Counts the names that differ between two versions of a directory, and names the pairs of subtrees that differ.
    fn count_level(
        &self,
        is_root: bool,
        (old, new): Pair,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<(u64, Vec<Pair>)> {
        let (mut count, mut dirs) = (0, Vec::new());
        if old != new {
            let contents = (self.tree_bytes(old, fresh)?, self.tree_bytes(new, fresh)?);
            for (stored, (old, new)) in tree::differing(&contents.0, &contents.1)? {
                if old == new || (is_root && stored == name::RESERVED_ROOT) {
                    continue;
                }
                let subtree = |side: &Side| side.and_then(|(mode, id)| (mode == Mode::Dir).then_some(id));
                let (old_dir, new_dir) = (subtree(&old), subtree(&new));
                if old_dir.is_some() || new_dir.is_some() {
                    dirs.push((old_dir, new_dir));
                }
                count += u64::from(plain(old, new_dir) != plain(new, old_dir));
            }
            let mut recent = self.trees.borrow_mut();
            for (id, content) in [(old, contents.0), (new, contents.1)] {
                if let Some(id) = id {
                    recent.put(id, content);
                }
            }
        }
        Ok((count, dirs))
    }

    fn tree_bytes(&self, id: Option<ObjectId>, fresh: &HashMap<ObjectId, Vec<u8>>) -> Result<Vec<u8>> {
        let Some(id) = id else { return Ok(Vec::new()) };
        let recent = || self.trees.borrow_mut().take(&id);
        match fresh.get(&id).cloned().or_else(recent) {
            Some(content) => Ok(content),
            None => self.tree_content(&id),
        }
    }
}
