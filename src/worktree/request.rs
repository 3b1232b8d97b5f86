//! The request for a capture, and its answer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::walk::early::Early;
use super::walk::walk_dir::Visited;
use crate::error::Result;
use crate::model::build::{Emit, build};
use crate::model::coverage::{Coverage, Defaults, Extent};
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::path::RelPath;
use crate::model::policy::{Ignored, Limits, Secrets};
use crate::model::sink::{HashOnly, ObjectSink};
use crate::model::stamp::KnownPaths;
use crate::sys::progress::Progress;

/// Budget of targeted capture in bytes, for what only a target brings in.
pub const TARGET_BYTES: u64 = 256 << 20;

/// Budget of targeted capture in files.
pub const TARGET_FILES: u64 = 20_000;

/// Budget of recursive targets in bytes, where the directory is too broad to be captured as a whole.
pub const SPARING_BYTES: u64 = 64 << 20;

/// Budget of recursive targets in files and directories there.
pub const SPARING_FILES: u64 = 5000;

/// The room for what targets bring in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TargetBudget {
    /// [`TARGET_BYTES`] and [`TARGET_FILES`], for paths that only targets bring in.
    #[default]
    Wide,
    /// [`SPARING_BYTES`] and [`SPARING_FILES`] below recursive targets, whatever the rules say. All else that is named has the budget of
    /// `Wide`.
    Sparing,
    /// The targets alone are captured, before anything else: all that is at and below them has [`SPARING_BYTES`] and [`SPARING_FILES`].
    First,
    /// No target is named: links lead to them. Each has the budget of `Sparing`, and all together have that of `Wide`. No file is larger
    /// than a private one, and no file system is entered that is mounted below a target.
    Linked,
}

impl TargetBudget {
    /// Returns true if there is a budget below recursive targets.
    pub fn is_sparing(self) -> bool {
        self != TargetBudget::Wide
    }
}

/// A path to capture whatever ignore rules, excludes, the size cap or the count guard say, because an action or a
/// restore is about to destroy it. `.git` entries, piton's own store and its temporary files are never captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path in the workspace; nothing needs to stand there.
    pub path: RelPath,
    /// True if everything below it counts too.
    pub recursive: bool,
}

/// The paths of files that earlier checkpoints hold privately.
pub trait PrivatePaths {
    /// Returns true if a path is one of them. It is asked for files that are new, and that nothing but the rules admits.
    fn have(&self, path: &RelPath) -> bool;
}

/// No file was private.
#[cfg(test)]
pub struct NonePrivate;

#[cfg(test)]
impl PrivatePaths for NonePrivate {
    fn have(&self, _path: &RelPath) -> bool {
        false
    }
}

/// One capture.
pub struct Request<'a> {
    /// The workspace's root; may itself be reached through symbolic links.
    pub root: &'a Path,
    /// True if that was deleted: the capture finds nothing there.
    pub is_deleted: bool,
    /// The knowledge of the last capture; makes its paths sticky: captured while they exist, whatever ignore rule appears.
    pub known: &'a KnownPaths,
    /// Further sticky paths, captured before but without stamps.
    pub sticky: &'a BTreeSet<RelPath>,
    /// The private files of earlier checkpoints.
    pub private: &'a dyn PrivatePaths,
    /// Captured in addition to `extent`.
    pub targets: &'a [Target],
    /// True if targets are free of [`TARGET_BYTES`] and [`TARGET_FILES`], and include secrets even under
    /// [`Secrets::Never`]: for what a restore is about to overwrite.
    pub unlimited_targets: bool,
    /// The room for what targets bring in.
    pub budget: TargetBudget,
    /// True if targets belong to the part that git shows: patterns of tracked files name them.
    pub wanted_targets: bool,
    /// True if it is recorded when files changed that only a target brings in ([`Coverage::changed`]).
    pub dates: bool,
    /// The part that is looked at. Ignore rules of the directories above [`Extent::Paths`] hold and are recorded.
    pub extent: Extent,
    /// Bounds on sizes, counts and memory.
    pub limits: Limits,
    /// The treatment of untracked secret files.
    pub secrets: Secrets,
    /// Configured excludes, in the dialect of `.gitignore`, relative to the root. They overrule stickiness and git.
    pub exclude: &'a [String],
    /// Directories that are never captured (piton's home), recognised by device and inode.
    pub never: &'a [PathBuf],
    /// The usual permission bits of the previous checkpoint, kept when given.
    pub defaults: Option<Defaults>,
    /// The private files that may come in beside the known ones.
    pub spare: Spare,
    /// Scouts that began when the capture did, for a walk of the whole tree.
    pub early: Option<&'a Early>,
    /// Counts the files that were found and read.
    pub progress: &'a Progress,
}

/// The room for private files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spare {
    /// True if such files are looked for at all.
    pub looks: bool,
    /// The number of files that were not known before.
    pub files: u64,
    /// The bytes that known ones may grow, and others may have.
    pub bytes: u64,
}

impl Spare {
    /// Returns the room that known private files leave: so many, of so many bytes.
    pub fn beside(limits: &Ignored, (files, bytes): (u64, u64)) -> Spare {
        Spare {
            looks: limits.files > 0,
            files: limits.files.saturating_sub(files),
            bytes: limits.total_bytes.saturating_sub(bytes),
        }
    }

    /// Returns the room that the private ones among these leave.
    pub fn among(limits: &Ignored, known: &KnownPaths) -> Spare {
        let private = known.entries().iter().filter(|(_, known)| known.private);
        Spare::beside(limits, private.fold((0, 0), |(files, bytes), (_, known)| (files + 1, bytes + known.stamp.size)))
    }
}

/// The places to which captured content goes.
#[derive(Clone, Copy)]
pub struct Sinks<'s> {
    /// For the part that git shows.
    pub shared: &'s dyn ObjectSink,
    /// For private files; asked for only where there are any to write.
    pub local: &'s dyn Fn() -> Result<&'s dyn ObjectSink>,
}

impl<'s> Sinks<'s> {
    /// Returns those that hash and drop everything.
    pub fn nowhere() -> Sinks<'s> {
        Sinks { shared: &HashOnly, local: &|| Ok(&HashOnly) }
    }
}

/// The private files of a capture.
#[derive(Clone, Debug, Default)]
pub struct PrivatePart {
    /// The files, and the directories that ignore rules close.
    pub manifest: Manifest,
    /// The part of the workspace that was looked at, and what was left out of it.
    pub coverage: Coverage,
}

impl PrivatePart {
    /// Leaves out the directories that the shared part has.
    pub(super) fn keep_own(&mut self, shared: &Manifest) {
        let is_both = |path: &RelPath, entry: &ManifestEntry| entry.kind == EntryKind::Dir && shared.contains(path);
        let both: Vec<RelPath> =
            self.manifest.iter().filter(|(path, entry)| is_both(path, entry)).map(|(path, _)| path.clone()).collect();
        both.iter().for_each(|path| _ = self.manifest.remove(path));
    }

    /// Returns the number of its files and links.
    pub fn files(&self) -> u64 {
        self.manifest.iter().filter(|(_, entry)| entry.kind != EntryKind::Dir).count() as u64
    }

    /// Builds the trees of the layer, and returns its root; `None` where there is nothing private.
    ///
    /// # Errors
    /// Returns the errors of `emit`.
    pub fn build(&self, emit: Emit<'_>) -> Result<Option<ObjectId>> {
        if self.manifest.is_empty() && self.coverage.skipped.is_empty() {
            return Ok(None);
        }
        build(&self.manifest, &self.coverage, emit).map(Some)
    }
}

/// The result of a capture.
#[derive(Debug)]
pub struct Capture {
    /// Every captured path, in byte order.
    pub manifest: Manifest,
    /// The rules under which they were captured, and what was left out.
    pub coverage: Coverage,
    /// The private files.
    pub private: PrivatePart,
    /// The knowledge to hand in as [`Request::known`] next time; only what lies in the extent. Captured files and links, without
    /// those that only a target brought in. A sticky file that could not be taken this time (too large, unreadable)
    /// stays here with its old id, unproven, so that it is taken again when that is possible.
    pub known: Arc<KnownPaths>,
    /// True if that is what [`Request::known`] was.
    pub same: bool,
    /// The cost of it.
    pub stats: Stats,
    /// Warnings for the user, as sentences.
    pub warnings: Vec<String>,
    pub(super) visits: Visits,
}

/// The directories that a capture looked into, with the rules that hold in them.
#[derive(Default)]
pub(super) struct Visits(pub(super) Vec<Visited>);

impl std::fmt::Debug for Visits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} directories", self.0.len())
    }
}

/// The cost of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Captured directories.
    pub dirs: u64,
    /// Captured files and links.
    pub files: u64,
    /// Bytes of their content.
    pub bytes: u64,
    /// Files and links whose stamp proved them unchanged.
    pub reused: u64,
    /// Files and links that were read.
    pub hashed: u64,
    /// Bytes of their content.
    pub hashed_bytes: u64,
    /// Files and links that only a target brought in.
    pub targeted: u64,
    /// Files and links that are private, those among them.
    pub private: u64,
    /// Microseconds of listing names and comparing stamps.
    pub walk_us: u64,
    /// Microseconds of reading, hashing and handing over content.
    pub hash_us: u64,
}

impl Stats {
    /// Adds what another part of the same capture cost.
    pub(super) fn add(&mut self, other: &Stats) {
        self.dirs += other.dirs;
        self.files += other.files;
        self.bytes += other.bytes;
        self.reused += other.reused;
        self.hashed += other.hashed;
        self.hashed_bytes += other.hashed_bytes;
        self.targeted += other.targeted;
        self.private += other.private;
        self.walk_us += other.walk_us;
        self.hash_us += other.hash_us;
    }
}
