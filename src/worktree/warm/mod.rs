//! The warm tree: a workspace as it was captured, kept in memory, so that a capture costs what changed.
//!
//! Made from a whole capture, and brought up to date by looking again at the paths that a watcher names. Each directory
//! keeps the rules that hold in it, the known facts of its files, and the id of its tree object. A changed file costs
//! one look, one blob, and the trees above it.
//!
//! *Invariant:* it holds what a whole capture with the same knowledge would hold, if every change is named. Where it
//! cannot tell (rules that changed at the root, the count guard), it says so, and everything is checked. *Invariant:*
//! it holds no content that is not in the sink: a caller that could not keep the sink's content drops the tree.

mod differ;
mod named;
mod node;
mod renew;
mod tree;
mod trees;

pub use self::differ::Differences;
pub use self::renew::Renewed;
pub use self::tree::Warm;
