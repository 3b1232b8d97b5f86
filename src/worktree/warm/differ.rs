//! Compares a warm tree with the disk: by names, kinds and stamps, and in idle time by content.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::node::DirNode;
use super::tree::Warm;
use crate::error::Result;
use crate::model::change::{Dirty, Reach};
use crate::model::path::RelPath;
use crate::model::stamp::{KnownPaths, Stamp};
use crate::sys::interrupt::Interrupt;
use crate::worktree::capture::{open_root, refuse_never};
use crate::worktree::content::{is_other, newest};
use crate::worktree::probe::stamp_of;
use crate::worktree::request::Request;
use crate::worktree::walk::{self, Candidate, ContentSource, Visited, WalkResult};

impl Warm {
    /// Compares the content of captured files whose stamps are unchanged, and returns those whose content is another:
    /// they were written in a way that changed no time. From then on they are read at every look.
    ///
    /// Up to `count` of those that were written since `since` (the file system's clock), the newest first; and up to `count` from
    /// the `from`-th on.
    ///
    /// # Errors
    /// `shutting-down` when `control` said so; `workspace-gone`.
    pub fn recheck(
        &mut self,
        request: &Request<'_>,
        (since, from, count): (i64, u64, usize),
        control: Interrupt<'_>,
    ) -> Result<Vec<RelPath>> {
        let root = open_root(request.root)?;
        let known = self.known();
        let all = known.entries();
        let mut recent: Vec<usize> = (0..all.len()).filter(|at| newest(&all[*at].1) >= since).collect();
        recent.sort_by_key(|at| std::cmp::Reverse(newest(&all[*at].1)));
        recent.truncate(count);
        let first = from as usize % all.len().max(1);
        let rolling = (first..all.len()).chain(0..first).take(count);
        let chosen: BTreeSet<usize> = recent.into_iter().chain(rolling).collect();
        let mut wrong = Vec::new();
        for (path, known) in chosen.into_iter().map(|at| &all[at]) {
            let is_file = known.stamp.mode & libc::S_IFMT == libc::S_IFREG;
            let as_captured = || root.lstat(path).is_ok_and(|stat| stamp_of(&stat) == known.stamp);
            if known.proven && is_file && as_captured() && is_other(&root, path, known, control)? {
                wrong.push(path.clone());
            }
        }
        self.distrust(&wrong);
        Ok(wrong)
    }

    /// Returns true if a path is not what was captured: for a file, by its mode and content and not by its times.
    ///
    /// # Errors
    /// As [`Warm::recheck`].
    pub fn has_changed(&self, root: &Path, path: &RelPath, control: Interrupt<'_>) -> Result<bool> {
        let root = open_root(root)?;
        let Some(known) = self.known_of(path) else { return Ok(true) };
        let is_same = |now: Stamp| (now.mode, now.size) == (known.stamp.mode, known.stamp.size);
        let is_file = known.stamp.mode & libc::S_IFMT == libc::S_IFREG;
        let may_be_same = is_file && root.lstat(path).is_ok_and(|stat| is_same(stamp_of(&stat)));
        Ok(!may_be_same || is_other(&root, path, &known, control)?)
    }

    /// Returns the paths to look at again, so that the tree holds what a whole capture would hold.
    ///
    /// # Errors
    /// As [`crate::worktree::capture`].
    pub fn differences(&self, request: &Request<'_>, control: Interrupt<'_>) -> Result<Differences> {
        refuse_never(request)?;
        let root = open_root(request.root)?;
        let known = self.known();
        let found = walk::walk(
            &Request { known: &known, extent: request.extent.clone(), spare: self.spare(), ..*request },
            &root,
            control,
        )?;
        let mut nodes: BTreeMap<RelPath, &DirNode> = BTreeMap::new();
        self.root.visit_dirs(&RelPath::root(), &mut |path, node| _ = nodes.insert(path, node));
        Ok(self.compare(found, &known, nodes, &|_| true))
    }

    /// Compares the result of a walk with the knowledge of the same paths and those below: `known`, `nodes`, and the
    /// gaps that are `within`.
    pub(super) fn compare(
        &self,
        mut found: WalkResult,
        known: &KnownPaths,
        mut nodes: BTreeMap<RelPath, &DirNode>,
        within: &dyn Fn(&RelPath) -> bool,
    ) -> Differences {
        let (mut paths, mut doubtful) = (Vec::<(RelPath, Reach)>::new(), Vec::new());
        let names = names_of(&found);
        // The files are sorted already, unless several directories were looked at one by one.
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut expected = known.entries().iter().peekable();
        for file in &found.files {
            while let Some((gone, _)) = expected.next_if(|(path, _)| *path < file.path) {
                paths.push((gone.clone(), Reach::Entry));
            }
            let known = expected.next_if(|(path, _)| *path == file.path).map(|(_, known)| known);
            let known = known.filter(|_| !self.retained.contains_key(&file.path));
            if matches!(file.source, ContentSource::Known(_)) && known.is_some() {
                // Its stamp proves that it is as captured.
            } else if known.is_some_and(|known| known.stamp == file.stamp) {
                doubtful.push((file.path.clone(), Reach::Entry));
            } else {
                paths.push((file.path.clone(), Reach::Entry));
            }
        }
        paths.extend(expected.map(|(gone, _)| (gone.clone(), Reach::Entry)));
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
        let gone = skipped.iter().filter(|(path, _)| within(path) && !found.skipped.contains_key(*path));
        paths.extend(appeared.chain(gone).map(|(path, _)| (path.clone(), Reach::Entry)));
        let repositories = &self.coverage.repositories;
        let moved = found.repositories.iter().filter(|(path, content)| repositories.get(*path) != Some(*content));
        let gone = repositories.iter().filter(|(path, _)| within(path) && !found.repositories.contains_key(*path));
        paths.extend(moved.chain(gone).map(|(path, _)| (path.clone(), Reach::Entry)));
        Differences { changed: Dirty::new(paths), doubtful: Dirty::new(doubtful), names }
    }
}

/// The names that the same file has, for files with several: `(device, inode)` to paths.
type Names = HashMap<(u64, u64), Vec<RelPath>>;

/// Returns the names of the files with several that a walk met.
fn names_of(found: &WalkResult) -> Names {
    let mut names = Names::new();
    for Candidate { path, stamp, .. } in &found.files {
        if stamp.links > 1 && stamp.mode & libc::S_IFMT == libc::S_IFREG {
            names.entry((stamp.dev, stamp.ino)).or_default().push(path.clone());
        }
    }
    names
}

/// The differences between the tree and the disk.
pub struct Differences {
    /// Paths that are not as they were captured.
    pub changed: Dirty,
    /// Files whose times prove nothing: they were written shortly before their capture, or a process has them open for
    /// writing.
    pub doubtful: Dirty,
    /// The files with several names.
    names: Names,
}

impl Differences {
    /// Returns the other names of the file at `path`: a change of it may have been reported for one of them only.
    pub fn other_names<'d>(&'d self, path: &'d RelPath) -> impl Iterator<Item = &'d RelPath> {
        let all = self.names.values().filter(|names| names.contains(path));
        all.flatten().filter(move |name| *name != path)
    }
}

fn is_same(node: &DirNode, visited: &Visited) -> bool {
    let root = visited.place.path.is_root();
    let itself = root || (node.perm == visited.perm && node.recorded == visited.recorded);
    let ruled = node.applied == visited.applied && node.marks == visited.marks;
    // A path that rules leave out is new: the directory does not count as captured as a whole any more.
    let complete = visited.whole || !node.whole;
    itself && ruled && complete && node.state == visited.place.state
}
