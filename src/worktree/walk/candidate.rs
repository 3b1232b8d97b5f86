//! The files and links that a walk comes to, and everything else that it tells.

use std::collections::BTreeMap;

use super::super::read::ReadMark;
use super::walk_dir::Visited;
use crate::model::coverage::{Pattern, SkipReason};
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::stamp::Stamp;

/// The reason why a file is a candidate; also its rank when the count guard strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Captured before.
    Kept,
    /// In the index of the user's git.
    Tracked,
    /// Admitted by the rules alone.
    Ordinary,
    /// Only because patterns of tracked files name it; not counted.
    Wanted,
    /// Private: ignore rules leave it out, or it looks like a secret. Not counted; its place is the private layer.
    Private,
    /// Only because it is a target; not counted, not sticky. Its place is the private layer too.
    Targeted,
}

impl Class {
    /// Returns true if the place of such a file is the private layer.
    pub(crate) fn is_private(self) -> bool {
        matches!(self, Class::Private | Class::Targeted)
    }
}

/// The origin of the content of a candidate.
pub(crate) enum ContentSource {
    /// Proven unchanged by its stamp.
    Known(ObjectId),
    /// Read during the walk (links, ignore files).
    Held(Box<(Vec<u8>, ReadMark)>),
    /// To be read and hashed after the walk.
    Unread,
}

/// A file or link to capture.
pub(crate) struct Candidate {
    pub(crate) path: RelPath,
    /// The stamp when the walk saw it.
    pub(crate) stamp: Stamp,
    pub(crate) source: ContentSource,
    pub(crate) class: Class,
    /// True if it is (also) a target: no size cap then.
    pub(crate) targeted: bool,
}

/// The result of a walk.
#[derive(Default)]
pub(crate) struct WalkResult {
    pub(crate) files: Vec<Candidate>,
    /// Paths that are left out, with the reasons.
    pub(crate) skipped: BTreeMap<RelPath, SkipReason>,
    /// Files over the count guard.
    pub(crate) over: Vec<RelPath>,
    /// Patterns that came from outside of the tree (`.git/info/exclude`).
    pub(crate) excludes: Vec<Pattern>,
    /// The `.git` of each repository below the root: the content of a file, nothing for a directory.
    pub(crate) repositories: BTreeMap<RelPath, Vec<u8>>,
    pub(crate) warnings: Vec<String>,
    /// Directories that were looked into, parents before children.
    pub(crate) visited: Vec<Visited>,
    /// Of names to look at again, those that are there and are left out.
    pub(crate) refused: Vec<RelPath>,
    /// Private paths beyond their budget.
    pub(crate) beyond: BTreeMap<RelPath, SkipReason>,
}
