//! The reasons why a restore leaves a path alone.

use std::fmt;

use crate::model::coverage::SkipReason;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;

/// The reason why a path that the target does not hold stays, although nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// The target would not have captured it, so its absence there proves nothing; why.
    NotCovered(String),
    /// Files created since were asked to be kept.
    KeepNew,
    /// The target skipped it, so it may have existed then.
    SkippedInTarget,
    /// A directory with something in it that stays, for example this path.
    NotEmpty(Option<RelPath>),
    /// Inside a directory that had to make way for a file or link and cannot.
    InsideBlocked(RelPath),
    /// The plan that was agreed to does not have it: it came, or became deletable, later.
    NotAgreed,
    /// It is private, and was not named.
    Local,
    /// It is no longer as the turn, or the undo of it, has left it.
    ChangedSince,
    /// The change is not the turn's own, or not its alone.
    NotOwn(Attribution),
    /// It is not among the paths that were chosen.
    NotChosen,
    /// It is one of the paths that the restore was told to leave alone.
    Excepted,
}

impl KeepReason {
    /// Returns the stable word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            KeepReason::NotCovered(_) => "not-covered",
            KeepReason::KeepNew => "keep-new",
            KeepReason::SkippedInTarget => "skipped-in-target",
            KeepReason::NotEmpty(_) => "not-empty",
            KeepReason::InsideBlocked(_) => "inside-blocked",
            KeepReason::NotAgreed => "not-agreed",
            KeepReason::Local => "local",
            KeepReason::ChangedSince => "changed-since",
            KeepReason::NotOwn(_) => "not-own",
            KeepReason::NotChosen => "not-chosen",
            KeepReason::Excepted => "excepted",
        }
    }
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepReason::NotCovered(why) => write!(f, "the checkpoint would not have captured it: {why}"),
            KeepReason::KeepNew => f.write_str("created since; new files are kept"),
            KeepReason::SkippedInTarget => f.write_str("the checkpoint skipped it"),
            KeepReason::NotEmpty(None) => f.write_str("not empty"),
            KeepReason::NotEmpty(Some(path)) => write!(f, "not empty: `{}` stays", path.display()),
            KeepReason::InsideBlocked(dir) => write!(f, "`{}` stays a directory", dir.display()),
            KeepReason::NotAgreed => f.write_str("it was created after the restore was planned"),
            KeepReason::ChangedSince => f.write_str("it has changed since"),
            KeepReason::NotOwn(share) => f.write_str(share.reason()),
            KeepReason::NotChosen => f.write_str("it was not chosen"),
            KeepReason::Excepted => f.write_str("excluded by --except"),
            KeepReason::Local => {
                f.write_str("local: an ignored, secret or untracked file changes only by name, or with --local")
            }
        }
    }
}

/// The reason why a path that should change cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// The object there is in no checkpoint; why it could not be captured.
    NotSaved(SkipReason),
    /// A FIFO, socket or device is there.
    Special,
    /// This path stays and is in the way: a parent that is not a directory, or something inside.
    Blocked(RelPath),
    /// It belongs to git's own directory, which no restore writes.
    GitDir,
    /// It is no longer as it was in the plan that was agreed to.
    Moved,
    /// The checkpoint to go to does not hold it: why.
    NotHeld(String),
    /// It is a repository's own data, which the restore does not bring back: why, and how it comes back.
    Repository(String),
    /// It was agreed to go and is still there, but rules or limits that came since leave it out.
    LeftOut,
    /// This path is there, and the file system takes both for one name.
    OtherSpelling(RelPath),
}

impl ConflictReason {
    /// Returns the stable word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            ConflictReason::NotSaved(_) => "not-saved",
            ConflictReason::Special => "special",
            ConflictReason::Blocked(_) => "blocked",
            ConflictReason::GitDir | ConflictReason::Repository(_) => "git-dir",
            ConflictReason::Moved => "moved",
            ConflictReason::LeftOut => "left-out",
            ConflictReason::OtherSpelling(_) => "other-spelling",
            ConflictReason::NotHeld(_) => "not-held",
        }
    }
}

impl fmt::Display for ConflictReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConflictReason::NotSaved(why) => write!(f, "the present content is in no checkpoint: {why}"),
            ConflictReason::Special => f.write_str("a FIFO, socket or device is there"),
            ConflictReason::Blocked(path) => write!(f, "`{}` is kept and is in the way", path.display()),
            ConflictReason::GitDir => f.write_str("piton never writes into a `.git`"),
            ConflictReason::NotHeld(why) => f.write_str(why),
            ConflictReason::Repository(why) => f.write_str(why),
            ConflictReason::Moved => f.write_str("it changed after the restore was planned"),
            ConflictReason::OtherSpelling(path) => {
                write!(
                    f,
                    "`{}` exists, and this file system does not distinguish the two names; rename it first",
                    path.display()
                )
            }
            ConflictReason::LeftOut => {
                f.write_str("the rules have changed since the preview and now exclude it; check a new preview")
            }
        }
    }
}
