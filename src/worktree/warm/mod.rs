//! The warm tree: a workspace as it was captured, kept in memory, so that a capture costs what changed.
//!
//! Made from a whole capture, and brought up to date by looking again at the paths that a watcher names. Each directory
//! keeps the rules that were found to hold in it, what is known of its files, and the id of its tree object. A changed
//! file costs one look, one blob, and the trees above it.
//!
//! *Invariant:* it holds what a whole capture would hold that knew the same, given that every change is named. Where it
//! cannot tell (rules that changed at the root, the count guard), it says so, and everything is looked at. *Invariant:*
//! it is never told of content that is not in the sink: whoever could not keep what the sink took drops the tree.

mod differ;
mod named;
mod node;
mod renew;
mod tree;
mod trees;

pub use self::differ::Differences;
pub use self::renew::Renewed;
pub use self::tree::Warm;
