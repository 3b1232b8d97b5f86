//! What differs between a warm tree and the disk, by names, kinds and stamps; nothing is read.

use std::collections::{BTreeMap, BTreeSet};

use super::Warm;
use super::node::Node;
use crate::error::Result;
use crate::model::change::{Dirty, Reach};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::worktree::capture::{open_root, refuse_never};
use crate::worktree::hash::stopped;
use crate::worktree::read::{self, WHOLE};
use crate::worktree::request::{Flow, Request};
use crate::worktree::walk::{self, Source, Visited};

impl Warm {
    /// Reads up to `count` captured files from the `from`-th on, as far as their stamps say that they are what was captured,
    /// and gives those that are not: written in a way that moved no time. They are read whenever they are looked at again.
    ///
    /// # Errors
    /// `shutting-down` when `control` said so; `workspace-gone`.
    pub fn recheck(
        &mut self,
        request: &Request<'_>,
        (from, count): (u64, usize),
        control: &dyn Fn() -> Flow,
    ) -> Result<Vec<RelPath>> {
        let root = open_root(request.root)?;
        let known = self.known();
        let all = known.entries();
        let first = from as usize % all.len().max(1);
        let mut wrong = Vec::new();
        for (path, known) in all[first..].iter().chain(&all[..first]).take(count.min(all.len())) {
            if control() == Flow::Stop {
                return Err(stopped());
            }
            let is_file = known.stamp.mode & libc::S_IFMT == libc::S_IFREG;
            if !known.proven || !is_file || known.stamp.size > WHOLE {
                continue;
            }
            let Ok(content) = read::whole(&root, path, WHOLE) else { continue };
            let same = ObjectId::of(ObjectKind::Blob, &content.bytes).is_ok_and(|id| id == known.id);
            if content.mark.stamp == known.stamp && !same {
                wrong.push(path.clone());
            }
        }
        for path in &wrong {
            let parent = path.parent().and_then(|parent| self.node_mut(&parent));
            if let Some(leaf) = parent.and_then(|parent| parent.leaf_mut(path.name())) {
                leaf.known.proven = false;
            }
        }
        Ok(wrong)
    }

    /// The paths to look at again for the tree to hold what a whole capture would hold.
    ///
    /// # Errors
    /// As [`crate::worktree::capture`].
    pub fn differences(&self, request: &Request<'_>, control: &dyn Fn() -> Flow) -> Result<Differences> {
        refuse_never(request)?;
        let root = open_root(request.root)?;
        let known = self.known();
        let found = walk::walk(&Request { known: &known, extent: request.extent.clone(), ..*request }, &root, control)?;
        let (mut paths, mut doubtful) = (Vec::<(RelPath, Reach)>::new(), Vec::new());
        let mut unseen: BTreeSet<RelPath> = known.entries().iter().map(|(path, _)| path.clone()).collect();
        for file in &found.files {
            let known = self.known_of(&file.path).filter(|_| self.entry(&file.path).is_some());
            if matches!(file.source, Source::Known(_)) && known.is_some() {
                // Its stamp proves that it is what was captured.
            } else if known.is_some_and(|known| known.stamp == file.stamp) {
                doubtful.push((file.path.clone(), Reach::Entry));
            } else {
                paths.push((file.path.clone(), Reach::Entry));
            }
            unseen.remove(&file.path);
        }
        paths.extend(unseen.into_iter().map(|path| (path, Reach::Entry)));
        let mut nodes: BTreeMap<RelPath, &Node> = BTreeMap::new();
        self.root.visit_dirs(&RelPath::root(), &mut |path, node| _ = nodes.insert(path, node));
        for visited in &found.visited {
            let path = &visited.place.path;
            let node = if path.is_root() { Some(&self.root) } else { nodes.remove(path) };
            if !node.is_some_and(|node| is_same(node, visited)) {
                paths.push((path.clone(), Reach::Subtree));
            }
        }
        paths.extend(nodes.into_keys().map(|path| (path, Reach::Entry)));
        let skipped = &self.coverage.skipped;
        let appeared = found.skipped.iter().filter(|(path, why)| skipped.get(*path) != Some(*why));
        let gone = skipped.iter().filter(|(path, _)| !found.skipped.contains_key(*path));
        paths.extend(appeared.chain(gone).map(|(path, _)| (path.clone(), Reach::Entry)));
        Ok(Differences { changed: Dirty::new(paths), doubtful: Dirty::new(doubtful) })
    }
}

/// What differs.
pub struct Differences {
    /// Paths that are not what was captured.
    pub changed: Dirty,
    /// Files that were written so shortly before they were captured that their times prove nothing, or that somebody has open
    /// for writing without their times telling.
    pub doubtful: Dirty,
}

fn is_same(node: &Node, visited: &Visited) -> bool {
    let root = visited.place.path.is_root();
    let itself = root || (node.perm == visited.perm && node.recorded == visited.recorded);
    let ruled = node.applied == visited.applied && node.marks == visited.marks;
    itself && ruled && node.state == visited.place.state
}
