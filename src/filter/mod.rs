//! The paths that a capture leaves out, and the reasons: ignore rules, generated directories, secrets (rank 1).
//!
//! Everything here is pure: names and pattern texts in, a ruling out. The walk of `worktree` and the question of a
//! restore ("would that checkpoint have captured this path?") use the same functions, so that they cannot disagree.
//!
//! Strength, strongest first: configured excludes; ignore rules, nearest directory first and within one directory
//! `.gitignore` before `.git/info/exclude`; generated directories. The user's global ignore file never counts: a
//! checkpoint must mean the same on every machine. Below an ignored directory nothing can be included again, as in git.

pub mod database;
pub mod generated;
pub mod level;
mod patterns;
pub mod secret;
mod tracked;
pub mod verdict;

pub use level::{Level, Ruling};
pub use patterns::{PathLimits, PathPatterns};
pub use tracked::{Tracked, literal_roots, subtracts};
pub use verdict::{CaptureJudge, CoverageView, Denial, Verdict, would_capture};
