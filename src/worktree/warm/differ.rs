//! What differs between a warm tree and the disk, by names, kinds and stamps; nothing is read.

use std::collections::{BTreeMap, BTreeSet};

use super::Warm;
use super::node::Node;
use crate::error::Result;
use crate::model::change::{Dirty, Reach};
use crate::model::path::RelPath;
use crate::worktree::capture::{open_root, refuse_never};
use crate::worktree::request::{Flow, Request};
use crate::worktree::walk::{self, Source, Visited};

impl Warm {
    /// The paths to look at again for the tree to hold what a whole capture would hold.
    ///
    /// # Errors
    /// As [`crate::worktree::capture`].
    pub fn differences(&self, request: &Request<'_>, control: &dyn Fn() -> Flow) -> Result<Dirty> {
        refuse_never(request)?;
        let root = open_root(request.root)?;
        let known = self.known();
        let found = walk::walk(&Request { known: &known, extent: request.extent.clone(), ..*request }, &root, control)?;
        let mut paths: Vec<(RelPath, Reach)> = Vec::new();
        let mut unseen: BTreeSet<RelPath> = known.entries().iter().map(|(path, _)| path.clone()).collect();
        for file in &found.files {
            let same = matches!(file.source, Source::Known(_)) && self.entry(&file.path).is_some();
            if !same {
                paths.push((file.path.clone(), Reach::Entry));
            }
            unseen.remove(&file.path);
        }
        paths.extend(unseen.into_iter().map(|path| (path, Reach::Entry)));
        let mut nodes: BTreeMap<RelPath, &Node> = BTreeMap::new();
        self.root.visit_dirs(&RelPath::root(), &mut |path, node| _ = nodes.insert(path, node));
        for visited in found.visited.iter().filter(|visited| !visited.place.path.is_root()) {
            let path = &visited.place.path;
            if !nodes.remove(path).is_some_and(|node| is_same(node, visited)) {
                paths.push((path.clone(), Reach::Subtree));
            }
        }
        paths.extend(nodes.into_keys().map(|path| (path, Reach::Entry)));
        let skipped = &self.coverage.skipped;
        let appeared = found.skipped.iter().filter(|(path, why)| skipped.get(*path) != Some(*why));
        let gone = skipped.iter().filter(|(path, _)| !found.skipped.contains_key(*path));
        paths.extend(appeared.chain(gone).map(|(path, _)| (path.clone(), Reach::Entry)));
        Ok(Dirty::new(paths))
    }
}

fn is_same(node: &Node, visited: &Visited) -> bool {
    node.perm == visited.perm && node.recorded == visited.recorded && node.state == visited.place.state
}
