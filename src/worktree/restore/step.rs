//! The steps of a restore, and what each can come to.

use crate::model::manifest::ManifestEntry;
use crate::model::path::RelPath;

/// One step, in the order in which they are taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum RestoreStep<'a> {
    /// A directory where nothing is.
    MakeDir(&'a RelPath, &'a ManifestEntry),
    /// A directory in the place of a file or link.
    DirOver(&'a RelPath, &'a ManifestEntry),
    /// A staged file or link where nothing is.
    Place(&'a RelPath, &'a ManifestEntry),
    /// A staged file or link in the place of what is there; of a directory only when it is empty.
    Replace(&'a RelPath, &'a ManifestEntry),
    /// Looks whether everything in a directory may go, before any of it does.
    Vacate(&'a RelPath),
    /// A file or link that goes.
    Remove(&'a RelPath, &'a ManifestEntry),
    /// A directory that goes, if it is empty by then.
    RemoveDir(&'a RelPath, &'a ManifestEntry),
    /// New permissions, in the place of the old ones.
    SetMode(&'a RelPath, &'a ManifestEntry, &'a ManifestEntry),
    /// The permissions of a directory that this restore made.
    FinishDir(&'a RelPath, &'a ManifestEntry),
}

/// The outcome of a step.
pub(super) enum StepOutcome {
    /// The path is now as the plan has it.
    Changed,
    /// It was so already.
    Already,
    /// It stays, for a good reason.
    Kept(String),
    /// It is not what was saved.
    Moved,
    /// It could not be done; the reason, for people.
    Failed(String),
}

impl<'a> RestoreStep<'a> {
    /// Returns the path of the step.
    pub(super) fn path(&self) -> &'a RelPath {
        match self {
            RestoreStep::MakeDir(path, _)
            | RestoreStep::DirOver(path, _)
            | RestoreStep::Place(path, _)
            | RestoreStep::Replace(path, _)
            | RestoreStep::Vacate(path)
            | RestoreStep::Remove(path, _)
            | RestoreStep::RemoveDir(path, _)
            | RestoreStep::SetMode(path, _, _)
            | RestoreStep::FinishDir(path, _) => path,
        }
    }
}
