//! The states of the memory between captures, by which a checkpoint costs only what changed.

use std::collections::BTreeSet;
use std::mem;
use std::sync::Arc;

use super::observe::shape;
use crate::error::Result;
use crate::model::change::{Changes, Dirty, Reach, Why};
use crate::model::path::RelPath;
use crate::worktree::Warm;
use crate::worktree::stamps::{Built, Stamps};

/// The memory's knowledge of the present workspace.
pub(super) enum Warmth {
    /// There is no tree: the next capture scans, with the stamps that may be there.
    Cold(Option<Stamps>),
    /// There is a tree, but the changes since are not known: the next capture scans.
    Scanned(Box<Tree>, Why),
    /// There is a tree, and all changes since are known: the next capture looks at those alone.
    Live(Box<Tree>, PendingLook),
}

/// The workspace as it was captured last.
pub(super) struct Tree {
    /// The tree, up to date as of the last capture.
    pub(super) warm: Warm,
    /// The stamps without the known paths, which the tree has.
    pub(super) stamps: Stamps,
}

/// The paths that the next capture looks at.
#[derive(Default)]
pub(super) struct PendingLook {
    /// The changes since the tree was brought up to date.
    pub(super) dirty: Dirty,
    /// Directories that need another look, because they had no watch at the last one.
    pub(super) again: BTreeSet<RelPath>,
}

impl Default for Warmth {
    /// Returns the state after any error: nothing is known.
    fn default() -> Warmth {
        Warmth::Cold(None)
    }
}

impl Warmth {
    /// Returns the tree that is held in memory.
    pub(super) fn tree(&self) -> Option<&Tree> {
        match self {
            Warmth::Cold(_) => None,
            Warmth::Scanned(tree, _) | Warmth::Live(tree, _) => Some(tree),
        }
    }

    /// Returns the tree that is held in memory, to be changed.
    pub(super) fn tree_mut(&mut self) -> Option<&mut Tree> {
        match self {
            Warmth::Cold(_) => None,
            Warmth::Scanned(tree, _) | Warmth::Live(tree, _) => Some(tree),
        }
    }

    /// Returns the stamps for a scan.
    pub(super) fn stamps(&self) -> Result<Option<Stamps>> {
        match self {
            Warmth::Cold(stamps) => Ok(stamps.clone()),
            Warmth::Scanned(tree, _) | Warmth::Live(tree, _) => tree.as_stamps().map(Some),
        }
    }

    /// Returns the stamps for a scan of just some paths; of a tree only what is known there, since all of it is a large copy.
    pub(super) fn stamps_at(&self, only: &[RelPath]) -> Result<Option<Stamps>> {
        match self {
            Warmth::Scanned(tree, _) | Warmth::Live(tree, _)
                if !only.is_empty() && !only.iter().any(RelPath::is_root) =>
            {
                let known = Arc::new(tree.warm.known_at(&only.iter().cloned().collect()));
                let defaults = Some(tree.warm.defaults());
                Ok(Some(Stamps { known, defaults, built: None, ..tree.stamps.clone() }))
            }
            warmth => warmth.stamps(),
        }
    }

    /// Returns what changed since the tree was brought up to date.
    pub(super) fn changes(&self) -> Changes {
        match self {
            Warmth::Cold(_) => Changes::Everything(Why::FirstLook),
            Warmth::Scanned(_, why) => Changes::Everything(*why),
            Warmth::Live(_, pending) => Changes::Paths(pending.dirty.clone()),
        }
    }

    /// Adds what has changed since.
    pub(super) fn add(&mut self, changes: Changes) {
        *self = match (mem::take(self), changes) {
            (Warmth::Live(tree, PendingLook { dirty, again }), Changes::Paths(later)) => {
                Warmth::Live(tree, PendingLook { dirty: dirty.and(later), again })
            }
            (Warmth::Live(tree, _), Changes::Everything(why)) => Warmth::Scanned(tree, why),
            (scanned, _) => scanned,
        };
    }

    /// Notes that the changes are not known any more.
    pub(super) fn forget_changes(&mut self, why: Why) {
        self.add(Changes::Everything(why));
    }

    /// Returns the tree if nothing has changed since.
    pub(super) fn unchanged(&self) -> Option<&Tree> {
        match self {
            Warmth::Live(tree, pending) if pending.is_empty() => Some(tree),
            Warmth::Live(..) | Warmth::Scanned(..) | Warmth::Cold(_) => None,
        }
    }
}

impl Tree {
    /// Returns the tree's knowledge as stamps, with the trees that were built of this very state.
    pub(super) fn as_stamps(&self) -> Result<Stamps> {
        let shape = shape(&self.warm.manifest(), self.warm.coverage())?;
        let built = self.warm.built().map(|root| Built { shape, root });
        let (known, defaults) = (Arc::new(self.warm.known()), Some(self.warm.defaults()));
        Ok(Stamps { defaults, built, known, ..self.stamps.clone() })
    }
}

impl PendingLook {
    fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.again.is_empty()
    }

    /// Returns all paths that the next capture looks at.
    pub(super) fn due(&self) -> Dirty {
        let again = self.again.iter().map(|path| (path.clone(), Reach::Subtree));
        self.dirty.clone().and(Dirty::new(again))
    }
}
