//! Looks at the paths that an action names, whatever the watcher reports of them.
//!
//! A watcher does not tell of a write through a name outside of the workspace, of a store through a mapping, or of a
//! file system that is mounted over a directory. Targets that are about to be destroyed are therefore compared with the
//! disk itself: each named file and each file below a named directory by `lstat`, and a few by content
//! ([`crate::worktree::content`]).

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use super::node::DirNode;
use super::tree::Warm;
use crate::error::Result;
use crate::model::change::{Dirty, Reach};
use crate::model::coverage::Extent;
use crate::model::path::RelPath;
use crate::model::stamp::Stamp;
use crate::sys::interrupt::Interrupt;
use crate::worktree::beneath::{Root, lstat_in};
use crate::worktree::capture::open_root;
use crate::worktree::content::Doubts;
use crate::worktree::probe::stamp_of;
use crate::worktree::request::{Request, Target};
use crate::worktree::walk;

impl Warm {
    /// Compares the files at `targets` with what was captured of them, and returns the paths to look at again.
    ///
    /// Paths that were not captured are not compared: [`Warm::holds_all`] says that the tree does not hold them.
    ///
    /// # Errors
    /// As [`crate::worktree::capture`]. The tree stays valid.
    pub fn inspect(&mut self, request: &Request<'_>, targets: &[Target], control: Interrupt<'_>) -> Result<Dirty> {
        let root = open_root(request.root)?;
        if root.identity()? != self.identity {
            return Ok(Dirty::new([(RelPath::root(), Reach::Subtree)]));
        }
        let mut doubts = Doubts::new();
        let mut moved: Vec<(RelPath, Reach)> = Vec::new();
        let mut tops: BTreeSet<RelPath> = BTreeSet::new();
        let mut beside = Beside { root: &root, open: None };
        for target in targets {
            let path = &target.path;
            let parent = path.parent().and_then(|parent| self.node(&parent));
            if self.node(path).is_some() {
                // A directory without the paths below needs no look: every watcher reports changes of its permissions.
                tops.extend(target.recursive.then(|| path.clone()));
            } else if let Some(leaf) = parent.and_then(|parent| parent.leaf(path.name())) {
                match beside.stamp(path) {
                    Ok(stamp) if stamp == leaf.known.stamp && leaf.known.proven => doubts.named(path, &leaf.known),
                    // An agent's actions on a file follow each other within the step of the clock.
                    Ok(stamp) if stamp == leaf.known.stamp && doubts.unproven(path, &leaf.known) => {}
                    Ok(_) | Err(_) => moved.push((path.clone(), Reach::Entry)),
                }
            }
        }
        if tops.contains(&RelPath::root()) {
            tops = [RelPath::root()].into();
        }
        let covered = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent).any(|a| tops.contains(&a));
        let highest: BTreeSet<RelPath> = tops.iter().filter(|path| !covered(path)).cloned().collect();
        if !highest.is_empty() {
            let below = self.differences_below(request, &root, &highest, control)?;
            moved.extend(below.iter().map(|(path, reach)| (path.clone(), reach)));
            self.doubt_below(&highest, &mut doubts);
        }
        let rewritten = doubts.settle(&root, control)?;
        self.distrust(&rewritten);
        moved.extend(rewritten.into_iter().map(|path| (path, Reach::Entry)));
        Ok(Dirty::new(moved))
    }

    /// Lists the differences at and below some directories, none of them below another.
    fn differences_below(
        &self,
        request: &Request<'_>,
        root: &Root,
        tops: &BTreeSet<RelPath>,
        control: Interrupt<'_>,
    ) -> Result<Dirty> {
        if tops.contains(&RelPath::root()) {
            let found = self.differences(request, control)?;
            return Ok(Dirty::new(
                found.changed.iter().chain(found.doubtful.iter()).map(|(path, r)| (path.clone(), r)),
            ));
        }
        let known = self.known_at(tops);
        let request = Request { known: &known, extent: Extent::Tree, targets: &[], spare: self.spare(), ..*request };
        let configured = self.rules.configured.clone();
        let found = walk::walk_again(&request, root, configured, true, self.again(tops), control)?;
        let mut nodes: BTreeMap<RelPath, &DirNode> = BTreeMap::new();
        for top in tops {
            let Some(node) = self.node(top) else { continue };
            node.visit_dirs(top, &mut |path, node| _ = nodes.insert(path, node));
            nodes.insert(top.clone(), node);
        }
        let within = |path: &RelPath| tops.iter().any(|top| path.starts_with(top));
        let found = self.compare(found, &known, nodes, &within);
        Ok(Dirty::new(found.changed.iter().chain(found.doubtful.iter()).map(|(path, r)| (path.clone(), r))))
    }

    /// Adds the captured files below named directories to the doubted ones.
    fn doubt_below(&self, tops: &BTreeSet<RelPath>, doubts: &mut Doubts) {
        let matters = Doubts::new();
        for top in tops {
            let Some(node) = self.node(top) else { continue };
            node.visit_some(top, &|leaf| matters.matters_below(&leaf.name, &leaf.known), &mut |path, leaf| {
                doubts.below(&path, &leaf.known);
            });
        }
    }
}

/// The directory of the last file, kept open for its neighbours.
struct Beside<'r> {
    root: &'r Root,
    open: Option<(RelPath, OwnedFd)>,
}

impl Beside<'_> {
    fn stamp(&mut self, path: &RelPath) -> Result<Stamp, Errno> {
        let parent = path.parent().unwrap_or_default();
        if self.open.as_ref().is_none_or(|(open, _)| *open != parent) {
            // A directory that may be searched but not read cannot be opened; its entries can be looked at by path.
            let Ok(dir) = self.root.open_dir(&parent) else { return self.root.lstat(path).map(|stat| stamp_of(&stat)) };
            self.open = Some((parent, dir));
        }
        let (_, dir) = self.open.as_ref().ok_or(Errno::NOENT)?;
        lstat_in(dir.as_fd(), path.name()).map(|stat| stamp_of(&stat))
    }
}
