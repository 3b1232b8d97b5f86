//! The tree objects of a warm tree: only those above a change are built.

use super::node::Built;
use super::tree::Warm;
use crate::error::Result;
use crate::model::build::{Emit, emit_tree, records_entry};
use crate::model::coverage::SkipReason;
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::meta;
use crate::model::path::RelPath;
use crate::model::tree::TreeEntry;

impl Warm {
    /// Returns the root tree. Builds stale trees and gives them to `emit`, children before parents.
    ///
    /// # Errors
    /// Returns the errors of `emit`. Trees that it took before an error count as built, and no others do.
    pub fn build(&mut self, emit: Emit<'_>) -> Result<ObjectId> {
        self.build_shards(emit)?;
        if self.own.is_none() {
            self.own = Some(self.build_own(emit)?);
            self.tree = None;
        }
        if let Some(tree) = self.tree {
            return Ok(tree);
        }
        let mut entries = self.root.tree_entries(true, emit)?;
        entries.extend(self.own.iter().filter_map(|(_, own)| own.clone()));
        let tree = emit_tree(entries, emit)?;
        self.tree = Some(tree);
        Ok(tree)
    }

    /// Returns the root tree, if nothing has changed since it was built.
    pub fn built(&self) -> Option<ObjectId> {
        self.tree.filter(|_| self.own.is_some() && self.unsure.is_empty())
    }

    /// Returns the root of the private layer, which is built if it is stale and given to `emit`; `None` where there is nothing
    /// private.
    ///
    /// # Errors
    /// Returns the errors of `emit`.
    pub fn build_private(&mut self, emit: Emit<'_>) -> Result<Option<ObjectId>> {
        if let Some((_, tree)) = &self.private.tree {
            return Ok(*tree);
        }
        let part = self.private();
        let tree = part.build(emit)?;
        self.private.tree = Some((part, tree));
        Ok(tree)
    }

    /// Returns the root of the private layer, if nothing has changed since it was built.
    pub fn built_private(&self) -> Option<Option<ObjectId>> {
        self.private.tree.as_ref().map(|(_, tree)| *tree)
    }

    fn build_shards(&mut self, emit: Emit<'_>) -> Result<()> {
        while let Some(dir) = self.unsure.first().cloned() {
            let content = self.node(&dir).and_then(|node| {
                let skipped = self.skipped_in(&dir);
                let skipped = skipped.iter().map(|(path, reason)| (path.name(), *reason));
                meta::shard(node.entries(), skipped, &self.coverage.defaults)
            });
            let id = match &content {
                None => None,
                Some(content) => {
                    let id = ObjectId::of(ObjectKind::Blob, content)?;
                    emit(ObjectKind::Blob, id, content)?;
                    Some(id)
                }
            };
            self.unsure.remove(&dir);
            let before = match id {
                Some(id) => self.shards.insert(dir, id),
                None => self.shards.remove(&dir),
            };
            if before != id {
                self.own = None;
            }
        }
        Ok(())
    }

    /// Returns the paths directly in a directory that are listed as left out.
    fn skipped_in(&self, dir: &RelPath) -> Vec<(&RelPath, SkipReason)> {
        let below = self
            .coverage
            .skipped
            .range(dir.clone()..)
            .take_while(|(path, _)| path.as_bytes().starts_with(dir.as_bytes()));
        below.filter(|(path, _)| path.parent().as_ref() == Some(dir)).map(|(path, why)| (path, *why)).collect()
    }

    fn build_own(&mut self, emit: Emit<'_>) -> Result<(Option<ObjectId>, Option<TreeEntry>)> {
        let info = match meta::info(&self.coverage) {
            None => None,
            Some(content) => {
                let id = ObjectId::of(ObjectKind::Blob, &content)?;
                emit(ObjectKind::Blob, id, &content)?;
                Some(id)
            }
        };
        let blobs = self.shards.iter().map(|(dir, id)| (meta::shard_names(dir), *id));
        let entry = records_entry(blobs.chain(info.map(|id| (meta::info_names(), id))), emit)?;
        Ok((info, entry))
    }

    /// Marks the trees above a path, and the record of its directory, to be built anew.
    pub(super) fn stale(&mut self, path: &RelPath) {
        self.tree = None;
        let Some(parent) = path.parent() else { return };
        // A directory of private files may belong to the shared part from now on, or not any more.
        if std::iter::successors(Some(parent.clone()), RelPath::parent).any(|dir| self.private.dirs.contains(&dir)) {
            self.private.tree = None;
        }
        let mut node = &mut self.root;
        let mut at = RelPath::root();
        node.built = Built::Stale;
        for name in parent.components() {
            let Some(next) = node.dir_mut(name) else { break };
            next.built = Built::Stale;
            if !next.recorded {
                // The directory itself may be new or gone.
                self.unsure.insert(at.clone());
            }
            at = at.join(name);
            node = next;
        }
        self.unsure.insert(parent);
    }
}
