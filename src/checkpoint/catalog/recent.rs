//! Tree objects that were read or written lately, and how many paths differ between two of them.
//!
//! A checkpoint tells how many paths changed since the one before. The trees of that one were mostly written by this
//! process a moment ago, so they are kept, up to a bound.

use std::collections::HashMap;
use std::mem;

use super::diff::plain;
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::model::build::MAX_DEPTH;
use crate::model::id::ObjectId;
use crate::model::name;
use crate::model::tree::{self, Mode, Side};

/// Two versions of one directory.
type Pair = (Option<ObjectId>, Option<ObjectId>);

/// Bytes of one generation of kept trees.
const GENERATION: usize = 1 << 20;

/// The contents of recent tree objects. Two generations: what was not used in the last one is dropped.
#[derive(Default)]
pub(in crate::checkpoint) struct Recent {
    young: HashMap<ObjectId, Vec<u8>>,
    old: HashMap<ObjectId, Vec<u8>>,
    bytes: usize,
}

impl Recent {
    /// Takes a tree out; whoever does puts it back.
    fn take(&mut self, id: &ObjectId) -> Option<Vec<u8>> {
        let young = self.young.remove(id);
        self.bytes -= young.as_ref().map_or(0, Vec::len);
        young.or_else(|| self.old.remove(id))
    }

    pub(in crate::checkpoint) fn put(&mut self, id: ObjectId, content: Vec<u8>) {
        if self.bytes + content.len() > GENERATION {
            (self.old, self.bytes) = (mem::take(&mut self.young), 0);
        }
        self.bytes += content.len();
        if let Some(twin) = self.young.insert(id, content) {
            self.bytes -= twin.len();
        }
    }
}

impl Timeline {
    /// How many paths [`Timeline::changes`] would give, at a lower price: names that are the same are passed over.
    pub(in crate::checkpoint) fn count_changes(
        &self,
        old: ObjectId,
        new: ObjectId,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<u64> {
        let mut count = 0_u64;
        // Level by level, each pair once with how often it stands there: shared trees may stand for more paths than can be visited.
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
            let mut recent = self.recent.borrow_mut();
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
        let recent = || self.recent.borrow_mut().take(&id);
        match fresh.get(&id).cloned().or_else(recent) {
            Some(content) => Ok(content),
            None => self.tree_content(&id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectKind;

    #[test]
    fn what_is_kept_is_bounded_and_the_newest() {
        let mut recent = Recent::default();
        let ids: Vec<ObjectId> = (0..100_u8).map(|n| ObjectId::of(ObjectKind::Tree, &[n]).unwrap()).collect();
        for id in &ids {
            recent.put(*id, vec![0; GENERATION / 10]);
            recent.put(*id, vec![0; GENERATION / 10]);
            let kept: usize = recent.young.values().chain(recent.old.values()).map(Vec::len).sum();
            assert!(kept <= 2 * GENERATION && recent.bytes <= GENERATION);
        }
        assert!(recent.take(&ids[0]).is_none() && recent.take(&ids[99]).is_some());
        assert_eq!(recent.bytes, recent.young.values().map(Vec::len).sum::<usize>());
    }
}
