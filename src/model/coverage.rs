//! Coverage: under which rules a checkpoint was taken, and what it left out and why.

use std::collections::BTreeMap;
use std::fmt;

use super::path::RelPath;

/// Counts the bytes that were not captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Weight {
    /// The bytes that were counted.
    pub bytes: u64,
    /// True if counting ended early: there may be more.
    pub is_least: bool,
}

impl Weight {
    /// Returns all of a file.
    pub fn whole(bytes: u64) -> Weight {
        Weight { bytes, is_least: false }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Weight) -> Weight {
        Weight { bytes: self.bytes.saturating_add(other.bytes), is_least: self.is_least || other.is_least }
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_least { " or more" } else { "" };
        write!(f, "{}{more}", super::text::bytes(self.bytes))
    }
}

/// Paths that one sentence names.
const NAMED: usize = 5;

/// Says what no checkpoint holds: "not saved: cache, vendor/.git (2.0 MB or more) and 3 more"; `None` without paths.
pub fn not_held(paths: impl ExactSizeIterator<Item = (String, Option<Weight>)>) -> Option<String> {
    let more = paths.len().saturating_sub(NAMED);
    let size = |weight: Option<Weight>| weight.map(|weight| format!(" ({weight})")).unwrap_or_default();
    let named: Vec<String> = paths.take(NAMED).map(|(path, weight)| format!("{path}{}", size(weight))).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| format!("not saved: {}{more}", named.join(", ")))
}

/// Says before an action what no checkpoint holds of what it names; `None` without paths.
pub fn not_held_sentence(paths: impl ExactSizeIterator<Item = (String, Option<Weight>)>) -> Option<String> {
    let sentence = not_held(paths)?;
    Some(format!("{sentence}; if this action deletes that, no checkpoint can restore it"))
}

/// The reason why a path is not in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkipReason {
    /// Above the size cap; its size in bytes.
    TooLarge(u64),
    /// Permission denied, or an I/O error while reading. For a directory: everything below it.
    Unreadable,
    /// A FIFO, socket or device.
    Special,
    /// Over the count guard. For a directory: everything below it.
    OverCount,
    /// An untracked file that looks like a secret (`.env`, private keys).
    Secret,
    /// A linked worktree: a workspace of its own.
    LinkedWorktree,
    /// A repository that ignore rules leave out, in which an action is about to destroy something. Answers tell of it; no checkpoint
    /// records it.
    IgnoredRepository,
    /// piton's own store.
    Store,
    /// The targeted-capture budget was used up. For a directory: some or all of what is below it.
    OverBudget(Weight),
    /// Content that contains a SHA-1 collision attack.
    Collision,
    /// Vanished, or replaced by something else, between listing and reading.
    Vanished,
    /// A directory that a tool made and can make again, in what an action is about to destroy.
    Generated(Weight),
    /// A `.git` in what an action is about to destroy: piton never writes there, so it could not bring it back.
    Repository(Weight),
    /// Taken out of the checkpoint later, because a person asked for that.
    Forgotten,
    /// A private file or directory beyond the budget of those.
    Beyond(Weight),
}

impl SkipReason {
    /// Returns the stable word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            SkipReason::TooLarge(_) => "too-large",
            SkipReason::Unreadable => "unreadable",
            SkipReason::Special => "special",
            SkipReason::OverCount => "over-count",
            SkipReason::Secret => "secret",
            SkipReason::LinkedWorktree => "linked-worktree",
            SkipReason::IgnoredRepository => "ignored-repository",
            SkipReason::Store => "store",
            SkipReason::OverBudget(_) => "over-budget",
            SkipReason::Collision => "collision",
            SkipReason::Vanished => "vanished",
            SkipReason::Generated(_) => "generated",
            SkipReason::Repository(_) => "repository",
            SkipReason::Forgotten => "forgotten",
            SkipReason::Beyond(_) => "beyond",
        }
    }

    /// Returns how much it is, where that was counted.
    pub fn weight(self) -> Option<Weight> {
        match self {
            SkipReason::TooLarge(size) => Some(Weight::whole(size)),
            SkipReason::OverBudget(weight)
            | SkipReason::Generated(weight)
            | SkipReason::Repository(weight)
            | SkipReason::Beyond(weight) => Some(weight),
            SkipReason::Unreadable
            | SkipReason::Special
            | SkipReason::OverCount
            | SkipReason::Secret
            | SkipReason::LinkedWorktree
            | SkipReason::IgnoredRepository
            | SkipReason::Store
            | SkipReason::Collision
            | SkipReason::Vanished
            | SkipReason::Forgotten => None,
        }
    }

    /// Returns true if an action named the path, or a directory above it, and it was left out all the same.
    pub fn is_of_target(self) -> bool {
        matches!(self, SkipReason::OverBudget(_) | SkipReason::Generated(_) | SkipReason::Repository(_))
    }

    /// Returns true if files that an action destroys there are in no checkpoint, and the loss may matter.
    pub fn is_loss(self) -> bool {
        !matches!(self, SkipReason::Special | SkipReason::Vanished)
    }

    /// Returns true if it was left out, whether or not an action named it, and a person may miss it. A linked worktree is a workspace of
    /// its own: it is named where an action is at work in it.
    pub fn is_missed(self) -> bool {
        match self {
            SkipReason::TooLarge(_)
            | SkipReason::Unreadable
            | SkipReason::OverCount
            | SkipReason::Secret
            | SkipReason::OverBudget(_)
            | SkipReason::Collision
            | SkipReason::Beyond(_) => true,
            SkipReason::Special
            | SkipReason::LinkedWorktree
            | SkipReason::IgnoredRepository
            | SkipReason::Store
            | SkipReason::Vanished
            | SkipReason::Generated(_)
            | SkipReason::Repository(_)
            | SkipReason::Forgotten => false,
        }
    }

    /// From the stable word and the recorded weight.
    pub fn parse(word: &str, weight: Weight) -> Option<SkipReason> {
        let size = weight.bytes;
        let all = [
            SkipReason::TooLarge(size),
            SkipReason::Unreadable,
            SkipReason::Special,
            SkipReason::OverCount,
            SkipReason::Secret,
            SkipReason::LinkedWorktree,
            SkipReason::IgnoredRepository,
            SkipReason::Store,
            SkipReason::OverBudget(weight),
            SkipReason::Collision,
            SkipReason::Vanished,
            SkipReason::Generated(weight),
            SkipReason::Repository(weight),
            SkipReason::Forgotten,
            SkipReason::Beyond(weight),
        ];
        all.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Returns whether a checkpoint with such a gap is called partial: something a user would expect in it is missing.
    pub fn makes_partial(self) -> bool {
        match self {
            SkipReason::TooLarge(_)
            | SkipReason::Unreadable
            | SkipReason::OverCount
            | SkipReason::OverBudget(_)
            | SkipReason::Collision
            | SkipReason::Forgotten => true,
            SkipReason::Special
            | SkipReason::Secret
            | SkipReason::LinkedWorktree
            | SkipReason::IgnoredRepository
            | SkipReason::Store
            | SkipReason::Generated(_)
            | SkipReason::Repository(_)
            | SkipReason::Beyond(_)
            | SkipReason::Vanished => false,
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::TooLarge(size) => write!(f, "too large ({})", super::text::bytes(*size)),
            SkipReason::Unreadable => f.write_str("cannot be read"),
            SkipReason::Special => f.write_str("not a file, link or directory"),
            SkipReason::OverCount => f.write_str("over the file-count limit"),
            SkipReason::Secret => f.write_str("looks like a secret and is not tracked by git"),
            SkipReason::LinkedWorktree => f.write_str("a linked git worktree, a workspace of its own"),
            SkipReason::IgnoredRepository => f.write_str("a git repository that ignore rules exclude"),
            SkipReason::Store => f.write_str("piton's own store"),
            SkipReason::OverBudget(_) => f.write_str("over the size limit for files that an action changes"),
            SkipReason::Collision => f.write_str("contains a SHA-1 collision attack"),
            SkipReason::Vanished => f.write_str("vanished while it was captured"),
            SkipReason::Generated(weight) => write!(f, "made by a tool that can make it again ({weight})"),
            SkipReason::Repository(weight) => write!(f, "a repository's own data ({weight})"),
            SkipReason::Forgotten => f.write_str("removed by `piton forget`"),
            SkipReason::Beyond(weight) => write!(f, "ignored, and over the size limit for ignored files ({weight})"),
        }
    }
}

/// The usual permission bits of a checkpoint; deviations are recorded per path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Bits of a file that nobody may execute, at most `0o7777`.
    pub file: u16,
    /// Bits of an executable file.
    pub executable: u16,
    /// Bits of a directory.
    pub dir: u16,
}

impl Defaults {
    /// The modes that git itself would create.
    pub const STANDARD: Defaults = Defaults { file: 0o644, executable: 0o755, dir: 0o755 };
}

/// A pattern in the `.gitignore` dialect that came from outside of the tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// The directory it is relative to.
    pub base: RelPath,
    /// One line of the ignore file, as it stands there.
    pub text: String,
}

/// The part of the tree that a capture looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The whole workspace.
    Tree,
    /// Only these paths (and what lies below them).
    Paths(Vec<RelPath>),
}

impl Extent {
    /// Returns true if a capture of this extent looks at `path`.
    pub fn reaches(&self, path: &RelPath) -> bool {
        match self {
            Extent::Tree => true,
            Extent::Paths(paths) => paths.iter().any(|reached| path.starts_with(reached)),
        }
    }
}

/// The recorded coverage of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The part of the workspace that was looked at.
    pub extent: Extent,
    /// Files above this many bytes were left out.
    pub file_cap: u64,
    /// True if untracked secret files were captured like others.
    pub secrets: bool,
    /// Patterns of `.git/info/exclude`, weaker than every `.gitignore` of the tree.
    pub excludes: Vec<Pattern>,
    /// Configured excludes, stronger than every `.gitignore`, relative to the root.
    pub configured: Vec<String>,
    /// Patterns of tracked files: a typed checkpoint recorded nothing else. Empty: everything.
    pub tracked: Vec<String>,
    /// Patterns of inputs that a typed checkpoint left out, because there were such files.
    pub read_only: Vec<String>,
    /// The skipped paths, with their reasons. A skipped directory stands for everything below it.
    pub skipped: BTreeMap<RelPath, SkipReason>,
    /// The `.git` of each repository below the root, which no checkpoint captures: the content of one that is a file, as in a
    /// submodule, and nothing for a directory.
    pub repositories: BTreeMap<RelPath, Vec<u8>>,
    /// Paths captured only because an action was about to destroy them: their absence elsewhere says nothing.
    pub targeted: Vec<RelPath>,
    /// Of a step: when files captured only because of a target changed last, by their ctimes (nanoseconds since 1970); in a workspace of
    /// single paths, all its files. A checkpoint before it that did not look at one may have had it too.
    pub changed: BTreeMap<RelPath, i64>,
    /// Files that never held still while they were read; their content is the last one read.
    pub unstable: Vec<RelPath>,
    /// The usual permission bits, from which only deviations are recorded.
    pub defaults: Defaults,
    /// True if private files were looked for. Not recorded here: the checkpoint's message names its layer.
    pub private: bool,
}

/// The longest content of a `.git` file that is recorded, in bytes: a path as long as one can be, and git's words around it.
pub const MOST_OF_POINTER: usize = 4_200;

/// The most repositories below the root that are recorded.
pub const MOST_REPOSITORIES: usize = 1_000;

impl Coverage {
    /// Returns whether something a user would expect in the checkpoint is missing.
    pub fn is_partial(&self) -> bool {
        self.extent != Extent::Tree || self.skipped.values().any(|reason| reason.makes_partial())
    }

    /// Returns the reason why `path`, or a directory above it, was skipped.
    pub fn skip_of(&self, path: &RelPath) -> Option<SkipReason> {
        let mut current = Some(path.clone());
        while let Some(candidate) = current {
            if let Some(reason) = self.skipped.get(&candidate) {
                return Some(*reason);
            }
            current = candidate.parent();
        }
        None
    }
}

impl Default for Coverage {
    fn default() -> Coverage {
        Coverage {
            extent: Extent::Tree,
            file_cap: 10_000_000,
            secrets: false,
            excludes: Vec::new(),
            configured: Vec::new(),
            tracked: Vec::new(),
            read_only: Vec::new(),
            skipped: BTreeMap::new(),
            repositories: BTreeMap::new(),
            targeted: Vec::new(),
            changed: BTreeMap::new(),
            unstable: Vec::new(),
            defaults: Defaults::STANDARD,
            private: false,
        }
    }
}
