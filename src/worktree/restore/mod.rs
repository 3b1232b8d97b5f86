//! Bringing files back: a pure plan, and its application with a proof per path.
//!
//! Invariant: what is replaced or deleted is exactly what the `pre-restore` checkpoint holds, checked immediately before
//! the act. Invariant: nothing is written through a link or into a `.git`. Invariant: paths that no checkpoint covers
//! are never touched.

mod apply;
mod plan;
mod prove;
mod stage;

pub use apply::{Copy, Outcome, apply, clean_temporaries, export};
pub use plan::{Conflict, Plan, PlanInput, Replace, plan};
pub use prove::Saved;
