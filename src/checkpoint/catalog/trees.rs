//! A bounded cache of tree objects that were read or written lately.

use std::collections::HashMap;
use std::mem;

use crate::model::id::ObjectId;

/// The bytes of one generation of kept trees.
const GENERATION: usize = 1 << 20;

/// The contents of recent tree objects, in two generations: a tree that was not used during the last one is dropped.
#[derive(Default)]
pub(super) struct RecentTrees {
    /// Trees that were used since the generations were swapped.
    young: HashMap<ObjectId, Vec<u8>>,
    /// Trees that were used in the generation before.
    old: HashMap<ObjectId, Vec<u8>>,
    /// Bytes of the contents in `young`, at most [`GENERATION`].
    bytes: usize,
}

impl RecentTrees {
    /// Takes a tree out; the caller puts it back.
    pub(super) fn take(&mut self, id: &ObjectId) -> Option<Vec<u8>> {
        let young = self.young.remove(id);
        self.bytes -= young.as_ref().map_or(0, Vec::len);
        young.or_else(|| self.old.remove(id))
    }

    /// Remembers the content of a tree.
    pub(super) fn put(&mut self, id: ObjectId, content: Vec<u8>) {
        if self.bytes + content.len() > GENERATION {
            (self.old, self.bytes) = (mem::take(&mut self.young), 0);
        }
        self.bytes += content.len();
        if let Some(twin) = self.young.insert(id, content) {
            self.bytes -= twin.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectKind;

    #[test]
    fn what_is_kept_is_bounded_and_the_newest() {
        let mut recent = RecentTrees::default();
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
