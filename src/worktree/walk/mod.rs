//! The walk: which paths are candidates, directory by directory, in byte order of their paths.
//!
//! One directory is open at a time; each is opened anew from the root without following links, so that neither depth
//! nor a directory swapped for a link can lead anywhere else. A directory is either shown whole (`readdir`), or, where
//! rules close it, only the names are looked at through which a path captured before, tracked by git or targeted is
//! reached.

mod again;
mod ahead;
mod budget;
pub(super) mod candidate;
mod child;
pub(super) mod early;
mod enter;
mod listing;
mod plan;
pub(super) mod walk_dir;
mod walker;

pub(super) use self::again::{Again, walk_again};
use self::ahead::Ahead;
pub(super) use self::candidate::{Candidate, Class, ContentSource, WalkResult};
pub use self::early::Early;
pub(super) use self::enter::tracked;
use self::plan::ReadPlan;
pub(super) use self::plan::dirs_of;
use self::walk_dir::WalkItem;
pub(super) use self::walk_dir::{DirState, Repo, Repository, Visited, WalkDir};
use self::walker::Walker;
pub(super) use self::walker::{configured, identity};
use super::beneath::Root;
use super::request::Request;
use crate::error::Result;
use crate::model::coverage::Extent;
use crate::model::path::RelPath;
use crate::sys::interrupt::Interrupt;

/// Walks the extent and the targets of `request`.
pub(super) fn walk(request: &Request<'_>, root: &Root, control: Interrupt<'_>) -> Result<WalkResult> {
    // Of a part of the workspace only some of what is known is looked at.
    let whole = request.extent == Extent::Tree;
    if let Some(ahead) = request.early.filter(|_| whole).and_then(|early| early.begin(root)) {
        let found = walk_with(request, root, ahead, control);
        ahead.close();
        return found;
    }
    let ahead = if whole { Ahead::of(ReadPlan::of(dirs_of(request.known))) } else { Ahead::default() };
    ahead.scouting(root, || walk_with(request, root, &ahead, control))
}

fn walk_with(request: &Request<'_>, root: &Root, ahead: &Ahead, control: Interrupt<'_>) -> Result<WalkResult> {
    let configured = configured(request);
    let mut walker = Walker::new(request, root, ahead, configured, control);
    let in_extent = walker.extent.is_none() || walker.in_extent(&RelPath::root());
    let whole = walker.targets.contains(&RelPath::root()) && walker.recursive.contains(&RelPath::root());
    walker.stack.push(WalkItem::Dir(WalkDir::root(in_extent, whole)));
    walker.go_on()?;
    Ok(walker.found)
}
