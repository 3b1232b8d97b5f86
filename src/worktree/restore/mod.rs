//! Bringing files back: a pure plan, then an application that proves each path before it touches it.
//!
//! [`plan`] compares the target with what the pre-restore checkpoint holds; it does no I/O. [`apply`] stages every new
//! content first, so that a full disk or a damaged store is met while the tree is still as it was. Then it works path by
//! path: what is replaced or deleted must be, at that moment, exactly what the pre-restore checkpoint holds. Everything
//! else stays and is listed.
//!
//! Invariants: no symbolic link is followed, no `.git` is written, directories go only by `rmdir`, unchanged paths are not
//! opened for writing. This module knows no store: contents come through [`BlobSource`].
//!
//! Limits: a process may keep a file open and write to it between the last look and the removal of the displaced file (a few
//! microseconds). It writes into a file without a name then, as with every editor that saves by rename. Times, hard-link
//! identity and sparse holes are not restored.

mod access;
mod apply;
mod attributes;
mod clean;
mod commit;
mod export;
mod outcome;
mod parallel_swap;
mod plan;
mod proof;
mod reason;
mod stage;
mod step;
mod swap;
#[cfg(test)]
mod tests;
mod threads;

pub use apply::apply;
pub use clean::{TEMPORARY_PREFIX, clean_temporaries};
pub use export::export;
pub use outcome::{BlobSource, Outcome, Saved};
pub use plan::{Agree, Agreement, Plan, PlanInput, matches, plan};
pub use reason::{ConflictReason, KeepReason};
