//! The input of a restore, and its outcome.

use std::io::Write;

use crate::error::Result;
use crate::model::id::ObjectId;
use crate::model::manifest::Manifest;
use crate::model::path::RelPath;
use crate::model::stamp::KnownFile;

/// The source of the contents of files and links: the border to the store, which this module does not know. Several
/// threads ask at once.
pub trait BlobSource: Sync {
    /// Tells whether the blob is there.
    ///
    /// # Errors
    /// When the source cannot answer.
    fn has(&self, id: &ObjectId) -> Result<bool>;

    /// Writes the blob's content to `out` and says how long it was.
    ///
    /// # Errors
    /// When it is missing or damaged; those of `out`.
    fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64>;

    /// Returns the blob's whole content, proved to be that of its id, if it is small enough to be held in memory.
    /// `size` is what the manifest says of it.
    ///
    /// # Errors
    /// As [`BlobSource::copy`].
    fn read(&self, id: &ObjectId, size: u64) -> Result<Option<Vec<u8>>>;

    /// Returns the length of the blob, where the source can tell it: what is copied is hashed on its way then.
    ///
    /// # Errors
    /// When the source cannot answer.
    fn size(&self, id: &ObjectId) -> Result<Option<u64>> {
        // A source that cannot tell needs no id.
        let _ = id;
        Ok(None)
    }
}

/// The content of the pre-restore checkpoint: only exactly this may be replaced or deleted.
#[derive(Clone, Copy)]
pub struct Saved<'a> {
    /// The paths that stood there, and their content.
    pub present: &'a Manifest,
    /// The knowledge of a file after that capture; `None` has it read and hashed again.
    pub known: &'a (dyn Fn(&RelPath) -> Option<KnownFile> + Sync),
}

/// The outcome of applying a plan, in byte order of the paths. Paths that the plan itself keeps or calls a conflict are
/// not repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Paths that were not there before.
    pub created: Vec<RelPath>,
    /// Paths whose content, kind or permissions are now the target's.
    pub replaced: Vec<RelPath>,
    /// Paths that are gone now.
    pub deleted: Vec<RelPath>,
    /// Paths that turned out to have to stay: directories that are not empty, directories that were there already.
    pub kept: Vec<(RelPath, String)>,
    /// Paths that should have changed and did not, and why.
    pub failed: Vec<(RelPath, String)>,
    /// Paths that changed, but not in every respect: owner, ACL and extended attributes that could not be kept.
    pub warnings: Vec<(RelPath, String)>,
    /// True if it was stopped before its end; what was left undone is in `failed`.
    pub stopped: bool,
}

impl Outcome {
    /// Tells whether every step of the plan was done.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && !self.stopped
    }

    /// Returns every path that was changed.
    pub fn changed(&self) -> impl Iterator<Item = &RelPath> {
        self.created.iter().chain(&self.replaced).chain(&self.deleted)
    }

    /// Sorts all lists by path.
    pub(super) fn sort(&mut self) {
        self.created.sort_unstable();
        self.replaced.sort_unstable();
        self.deleted.sort_unstable();
        self.kept.sort_unstable();
        self.failed.sort_unstable();
        self.warnings.sort_unstable();
    }
}
