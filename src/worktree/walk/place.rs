//! A directory on the walk, with everything that rules above it have decided.

use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use super::super::keep::PathList;
use super::Candidate;
use crate::filter::Level;
use crate::model::path::RelPath;

/// What the rules say of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Ignored or generated: only paths captured before or tracked by git are looked at.
    Ignored,
    /// Over the count guard: as `Ignored`.
    Over,
    /// Excluded by configuration, or a workspace of its own: only targets are looked at.
    Excluded,
}

/// A directory to visit.
pub(super) struct Place {
    pub(super) path: RelPath,
    pub(super) state: State,
    /// Rules that hold in it.
    pub(super) level: Option<Arc<Level>>,
    /// The innermost repository it belongs to.
    pub(super) repo: Option<Rc<Repo>>,
    /// Whether the extent reaches it, and so everything below.
    pub(super) in_extent: bool,
    /// Whether it lies in a recursive target: everything below is captured.
    pub(super) forced: bool,
    /// Whether a rule names it as wanted, so that its maker's mark does not close it.
    pub(super) pinned: bool,
    pub(super) depth: usize,
}

impl Place {
    /// The root, to which no rule applies.
    pub(super) fn root(in_extent: bool, forced: bool) -> Place {
        Place {
            path: RelPath::root(),
            state: State::Open,
            level: None,
            repo: None,
            in_extent,
            forced,
            pinned: true,
            depth: 0,
        }
    }

    /// Whether all that is in it is looked at.
    pub(super) fn shown(&self) -> bool {
        self.forced || (self.in_extent && self.state == State::Open)
    }

    /// Whether paths captured before or tracked by git are looked at.
    pub(super) fn keeps(&self) -> bool {
        self.state != State::Excluded
    }
}

/// A git repository around a directory.
pub(super) struct Repo {
    /// What its index tracks, relative to the workspace's root.
    pub(super) tracked: PathList<'static, RelPath>,
    pub(super) parent: Option<Rc<Repo>>,
}

impl Repo {
    /// The repository and those around it.
    pub(super) fn chain(innermost: &Option<Rc<Repo>>) -> impl Iterator<Item = &Repo> {
        std::iter::successors(innermost.as_deref(), |repo| repo.parent.as_deref())
    }
}

/// What waits on the walk's stack.
pub(super) enum Item {
    Dir(Place),
    File(Candidate),
}

impl Item {
    /// Byte order of the paths, a directory standing where the paths below it stand.
    pub(super) fn order(&self, other: &Item) -> Ordering {
        let (a, b) = (self.key(), other.key());
        let common = a.0.len().min(b.0.len());
        let next = |(path, is_dir): (&[u8], bool)| path.get(common).copied().or(is_dir.then_some(b'/'));
        a.0[..common].cmp(&b.0[..common]).then_with(|| next(a).cmp(&next(b)))
    }

    fn key(&self) -> (&[u8], bool) {
        match self {
            Item::Dir(place) => (place.path.as_bytes(), true),
            Item::File(candidate) => (candidate.path.as_bytes(), false),
        }
    }
}
