//! The user's files: what of them a checkpoint holds, and under which coverage (rank 2).
//!
//! [`capture`] walks the work tree with directory handles that never follow a symbolic link, decides with
//! [`crate::filter`] what to take, re-uses what stamps prove unchanged, and hands everything else to an
//! [`ObjectSink`](crate::model::sink::ObjectSink). It knows no store, and it never writes to the work tree.
//!
//! Invariants: nothing outside of the root is opened through a path below it; nothing but regular files is read;
//! whatever is left out, and would be expected, is listed in the coverage with its reason.

pub mod git_index;
mod look;
pub mod restore;
pub mod stamps;

mod beneath;
mod budget;
mod capture;
mod content;
mod git_dir;
mod hash;
mod keep;
mod names;
mod probe;
mod read;
pub mod repository;
pub mod repository_marks;
pub mod repository_state;
mod request;
mod select;
mod stopped;
mod units;
mod walk;
mod warm;

pub use capture::capture;
pub use content::rewritten;
pub use git_dir::{HeadMove, git_dir_of, head_log, head_moves, is_loose_since, read_regular};
pub use look::{administration_of, files_below, is_linked_worktree, read_small};
pub use probe::{Probe, ProbeKind, probe, stamp_of};
#[cfg(test)]
pub use request::NonePrivate;
pub use request::{
    Capture, PrivatePart, PrivatePaths, Request, SPARING_BYTES, SPARING_FILES, Sinks, Spare, Stats, TARGET_BYTES,
    TARGET_FILES, Target, TargetBudget,
};
pub use walk::Early;
pub use warm::{Differences, Renewed, Warm};
