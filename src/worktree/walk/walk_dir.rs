//! A directory on the walk, with everything that rules above it have decided.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use super::super::git_dir::{GitDir, GitMarks};
use super::super::keep::PathList;
use super::candidate::Candidate;
use crate::filter::Level;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;

/// The verdict of the rules on a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirState {
    /// Everything in it is looked at by the rules.
    Open,
    /// Ignored or generated: only paths captured before or tracked by git are looked at.
    Ignored,
    /// Over the count guard: as `Ignored`.
    Over,
    /// Excluded by configuration, or a workspace of its own: only targets are looked at.
    Excluded,
}

/// A directory to visit, or one that was visited, with what it itself holds applied.
#[derive(Clone)]
pub(crate) struct WalkDir {
    pub(crate) path: RelPath,
    pub(crate) state: DirState,
    /// Rules that hold in it.
    pub(crate) level: Option<Arc<Level>>,
    /// The innermost repository it belongs to.
    pub(crate) repo: Option<Arc<Repo>>,
    /// True if the extent reaches it, and so everything below.
    pub(crate) in_extent: bool,
    /// True if it lies in a recursive target: everything below is captured.
    pub(crate) forced: bool,
    /// True if ignore rules close it, and private files in it are looked for.
    pub(crate) local: bool,
    /// True if a rule names it as wanted, so that its maker's mark does not close it.
    pub(crate) pinned: bool,
    /// Directories above it, up to the root: 0 for the root.
    pub(crate) depth: usize,
}

/// A directory that was looked into.
pub(crate) struct Visited {
    pub(crate) place: WalkDir,
    /// Its permission bits, `0..=0o7777`.
    pub(crate) perm: u16,
    /// True if it is recorded for itself, not only if something below is.
    pub(crate) recorded: bool,
    /// True if nothing that stands in it was left out.
    pub(crate) whole: bool,
    /// The blob of its ignore file that was applied.
    pub(crate) applied: Option<ObjectId>,
    /// Names in it that told which directories are generated.
    pub(crate) marks: Box<[Box<[u8]>]>,
}

impl DirState {
    /// Tells whether all that is in the directory is looked at.
    pub(crate) fn is_open(self) -> bool {
        self == DirState::Open
    }
}

impl WalkDir {
    /// Returns the root, to which no rule applies.
    pub(super) fn root(in_extent: bool, forced: bool) -> WalkDir {
        WalkDir {
            path: RelPath::root(),
            state: DirState::Open,
            level: None,
            repo: None,
            in_extent,
            forced,
            local: false,
            pinned: true,
            depth: 0,
        }
    }

    /// Tells whether all that is in it is looked at.
    pub(crate) fn shown(&self) -> bool {
        self.forced || (self.in_extent && self.state == DirState::Open)
    }

    /// Tells whether all names in it are looked at, be it for private files alone.
    pub(crate) fn is_listed(&self) -> bool {
        self.shown() || (self.local && self.in_extent)
    }

    /// Tells whether paths captured before or tracked by git are looked at.
    pub(super) fn keeps(&self) -> bool {
        self.state != DirState::Excluded
    }
}

/// The paths that the index of a git repository tracks, from the workspace's root.
pub(crate) type Tracked = PathList<'static, RelPath>;

/// A git repository in the workspace, as it was read.
#[derive(Clone)]
pub(crate) struct Repository {
    /// The place where its work tree begins.
    pub(crate) base: RelPath,
    pub(crate) git: GitDir,
    /// Of its index and its `info/exclude`, from before they were read.
    pub(crate) marks: GitMarks,
    /// The files that its index names.
    pub(crate) tracked: Arc<Tracked>,
    /// Tracked files that the commit of HEAD did not contain when a walk needed to know it. Each copy of the repository has them, until
    /// the index is read again.
    pub(crate) staged: Arc<Mutex<BTreeSet<RelPath>>>,
}

/// A git repository around a directory, and those around it.
pub(crate) struct Repo {
    pub(crate) own: Repository,
    pub(crate) parent: Option<Arc<Repo>>,
}

impl Repo {
    /// Returns what the repository and those around it track.
    pub(super) fn chain(innermost: Option<&Arc<Repo>>) -> impl Iterator<Item = &Tracked> {
        Repo::all(innermost).map(|repository| repository.tracked.as_ref())
    }

    /// Returns the repository and those around it.
    pub(super) fn all(innermost: Option<&Arc<Repo>>) -> impl Iterator<Item = &Repository> {
        std::iter::successors(innermost.map(Arc::as_ref), |repo| repo.parent.as_deref()).map(|repo| &repo.own)
    }
}

/// An element of the walk's stack.
pub(super) enum WalkItem {
    Dir(WalkDir),
    File(Candidate),
}

impl WalkItem {
    /// Byte order of the paths, a directory standing where the paths below it stand.
    pub(super) fn order(&self, other: &WalkItem) -> Ordering {
        let (a, b) = (self.key(), other.key());
        let common = a.0.len().min(b.0.len());
        let next = |(path, is_dir): (&[u8], bool)| path.get(common).copied().or(is_dir.then_some(b'/'));
        a.0[..common].cmp(&b.0[..common]).then_with(|| next(a).cmp(&next(b)))
    }

    fn key(&self) -> (&[u8], bool) {
        match self {
            WalkItem::Dir(place) => (place.path.as_bytes(), true),
            WalkItem::File(candidate) => (candidate.path.as_bytes(), false),
        }
    }
}
