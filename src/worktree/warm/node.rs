//! The directories of a warm tree.

use std::sync::Arc;

use super::super::walk::{DirState, Visited};
use crate::error::Result;
use crate::filter::Level;
use crate::model::build::{Emit, emit_tree};
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::name;
use crate::model::path::RelPath;
use crate::model::stamp::KnownFile;
use crate::model::tree::{Mode, TreeEntry};

use super::super::probe::perm_of;

/// A captured file or link.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) name: Box<[u8]>,
    pub(super) known: KnownFile,
}

impl Leaf {
    /// Returns its entry in a manifest.
    pub(super) fn entry(&self) -> ManifestEntry {
        entry_of(&self.known)
    }
}

/// Returns what a manifest says of a file or link that is captured.
pub(super) fn entry_of(known: &KnownFile) -> ManifestEntry {
    let kind = if known.is_link() { EntryKind::Link } else { EntryKind::File };
    ManifestEntry { kind, perm: perm_of(known.stamp.mode), id: known.id, size: known.stamp.size }
}

/// The tree object of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Built {
    /// Something in it or below may have changed.
    Stale,
    /// It is not in the checkpoint: the walk only passed through it, and nothing below is captured.
    Absent,
    /// Its tree object, as it is now.
    Tree(ObjectId),
}

/// A directory that was looked into.
pub(super) struct DirNode {
    pub(super) state: DirState,
    /// The ignore rules that hold in it.
    pub(super) level: Option<Arc<Level>>,
    /// True if a rule names it as wanted.
    pub(super) pinned: bool,
    /// Its permission bits, `0..=0o7777`.
    pub(super) perm: u16,
    /// True if it is recorded for itself, not only if something below is.
    pub(super) recorded: bool,
    /// True if private files are looked for in it, which ignore rules close.
    pub(super) local: bool,
    /// True if nothing directly in it was left out.
    pub(super) whole: bool,
    /// The blob of the ignore file that was applied.
    pub(super) applied: Option<ObjectId>,
    /// Names that told which directories are generated.
    pub(super) marks: Box<[Box<[u8]>]>,
    /// Sorted by name.
    pub(super) leaves: Vec<Leaf>,
    /// Sorted by name.
    pub(super) dirs: Vec<(Box<[u8]>, DirNode)>,
    /// The state of its tree object.
    pub(super) built: Built,
}

impl DirNode {
    /// Makes a node of a directory that was visited.
    pub(super) fn of(visited: &Visited) -> DirNode {
        DirNode {
            state: visited.place.state,
            level: visited.place.level.clone(),
            pinned: visited.place.pinned,
            perm: visited.perm,
            recorded: visited.recorded,
            local: visited.place.local,
            whole: visited.whole,
            applied: visited.applied,
            marks: visited.marks.clone(),
            leaves: Vec::new(),
            dirs: Vec::new(),
            built: Built::Stale,
        }
    }

    /// Returns the index of a name among the directories, or the one where it would be.
    fn seat(&self, name: &[u8]) -> std::result::Result<usize, usize> {
        // Mostly it is the last one, because trees are built in order.
        match self.dirs.last() {
            Some((last, _)) if **last < *name => Err(self.dirs.len()),
            Some((last, _)) if **last == *name => Ok(self.dirs.len() - 1),
            _ => self.dirs.binary_search_by(|(dir, _)| (**dir).cmp(name)),
        }
    }

    /// Returns the directory of a name.
    pub(super) fn dir(&self, name: &[u8]) -> Option<&DirNode> {
        self.seat(name).ok().map(|at| &self.dirs[at].1)
    }

    /// Returns the directory of a name, to be changed.
    pub(super) fn dir_mut(&mut self, name: &[u8]) -> Option<&mut DirNode> {
        self.seat(name).ok().map(|at| &mut self.dirs[at].1)
    }

    /// Returns the leaf of a name.
    pub(super) fn leaf(&self, name: &[u8]) -> Option<&Leaf> {
        let at = self.leaves.binary_search_by(|leaf| (*leaf.name).cmp(name)).ok()?;
        Some(&self.leaves[at])
    }

    /// Returns the leaf of a name, to be changed.
    pub(super) fn leaf_mut(&mut self, name: &[u8]) -> Option<&mut Leaf> {
        let at = self.leaves.binary_search_by(|leaf| (*leaf.name).cmp(name)).ok()?;
        Some(&mut self.leaves[at])
    }

    /// Puts a directory under a name.
    pub(super) fn put_dir(&mut self, name: &[u8], node: DirNode) {
        match self.seat(name) {
            Ok(at) => self.dirs[at].1 = node,
            Err(at) => self.dirs.insert(at, (name.into(), node)),
        }
    }

    /// Puts a leaf under a name.
    pub(super) fn put_leaf(&mut self, name: &[u8], known: KnownFile) {
        let leaf = Leaf { name: name.into(), known };
        if self.leaves.last().is_none_or(|last| *last.name < *name) {
            return self.leaves.push(leaf);
        }
        match self.leaves.binary_search_by(|leaf| (*leaf.name).cmp(name)) {
            Ok(at) => self.leaves[at] = leaf,
            Err(at) => self.leaves.insert(at, leaf),
        }
    }

    /// Takes the directory of a name out.
    pub(super) fn take_dir(&mut self, name: &[u8]) -> Option<DirNode> {
        self.seat(name).ok().map(|at| self.dirs.remove(at).1)
    }

    /// Takes the leaf of a name out.
    pub(super) fn take_leaf(&mut self, name: &[u8]) -> Option<Leaf> {
        let at = self.leaves.binary_search_by(|leaf| (*leaf.name).cmp(name)).ok()?;
        Some(self.leaves.remove(at))
    }

    /// All files and links in it and below, with their paths, in no order to rely on.
    pub(super) fn visit<'n>(&'n self, path: &RelPath, each: &mut dyn FnMut(RelPath, &'n Leaf)) {
        for leaf in &self.leaves {
            each(path.join(&leaf.name), leaf);
        }
        for (name, node) in &self.dirs {
            node.visit(&path.join(name), each);
        }
    }

    /// As [`DirNode::visit`], but only for `wanted` ones, so that no paths are built for the others.
    pub(super) fn visit_some(
        &self,
        path: &RelPath,
        wanted: &dyn Fn(&Leaf) -> bool,
        each: &mut dyn FnMut(RelPath, &Leaf),
    ) {
        self.leaves.iter().filter(|leaf| wanted(leaf)).for_each(|leaf| each(path.join(&leaf.name), leaf));
        for (name, node) in &self.dirs {
            node.visit_some(&path.join(name), wanted, each);
        }
    }

    /// All directories below it, with their paths.
    pub(super) fn visit_dirs<'n>(&'n self, path: &RelPath, each: &mut dyn FnMut(RelPath, &'n DirNode)) {
        for (name, node) in &self.dirs {
            let path = path.join(name);
            node.visit_dirs(&path, each);
            each(path, node);
        }
    }

    /// Tells whether nothing in it or below was left out.
    pub(super) fn is_whole(&self) -> bool {
        self.whole && self.dirs.iter().all(|(_, node)| node.is_whole())
    }

    /// Tells whether a checkpoint holds the directory.
    pub(super) fn is_in(&self) -> bool {
        match self.built {
            Built::Tree(_) => true,
            Built::Absent => false,
            Built::Stale => {
                self.recorded
                    || self.leaves.iter().any(|leaf| !leaf.known.private)
                    || self.dirs.iter().any(|(_, node)| node.is_in())
            }
        }
    }

    /// Returns its entries in the part of a checkpoint that git shows, in the order of the names.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], ManifestEntry)> {
        let shared = self.leaves.iter().filter(|leaf| !leaf.known.private);
        let mut leaves = shared.map(|leaf| (&*leaf.name, leaf.entry())).peekable();
        let dirs = self.dirs.iter().filter(|(_, node)| node.is_in());
        let mut dirs = dirs.map(|(name, node)| (&**name, ManifestEntry::dir(node.perm))).peekable();
        std::iter::from_fn(move || match (leaves.peek(), dirs.peek()) {
            (Some((leaf, _)), Some((dir, _))) if leaf < dir => leaves.next(),
            (_, Some(_)) => dirs.next(),
            (_, None) => leaves.next(),
        })
    }

    /// Builds the trees that are stale, children first.
    pub(super) fn build(&mut self, emit: Emit<'_>) -> Result<Option<ObjectId>> {
        match self.built {
            Built::Tree(id) => return Ok(Some(id)),
            Built::Absent => return Ok(None),
            Built::Stale => {}
        }
        let entries = self.tree_entries(false, emit)?;
        if entries.is_empty() && !self.recorded {
            self.built = Built::Absent;
            return Ok(None);
        }
        let id = emit_tree(entries, emit)?;
        self.built = Built::Tree(id);
        Ok(Some(id))
    }

    /// Returns the entries of its tree object, the trees below built.
    pub(super) fn tree_entries(&mut self, is_root: bool, emit: Emit<'_>) -> Result<Vec<TreeEntry>> {
        let mut entries = Vec::with_capacity(self.leaves.len() + self.dirs.len() + 1);
        for (name, node) in &mut self.dirs {
            if let Some(id) = node.build(emit)? {
                entries.push(TreeEntry { name: name::to_stored(name, is_root), mode: Mode::Dir, id });
            }
        }
        for leaf in self.leaves.iter().filter(|leaf| !leaf.known.private) {
            let mode = leaf.entry().mode();
            entries.push(TreeEntry { name: name::to_stored(&leaf.name, is_root), mode, id: leaf.known.id });
        }
        Ok(entries)
    }
}
