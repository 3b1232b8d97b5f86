//! Looking again at some names of directories that were visited before, and at all that is below them.

use std::sync::Arc;

use rustix::fs::FileType;

use super::super::beneath::Root;
use super::super::names::Names;
use super::super::request::Request;
use super::ahead::Ahead;
use super::candidate::WalkResult;
use super::listing::{Here, Seen};
use super::plan::{ReadPlan, dirs_of};
use super::walk_dir::WalkDir;
use super::walker::Walker;
use crate::error::Result;
use crate::filter::Level;
use crate::sys::interrupt::Interrupt;

/// Fewer known files are looked at as fast as threads are begun.
const WORTH: usize = if cfg!(test) { 2 } else { 4096 };

/// Names to look at again in one directory that was visited before.
pub(crate) struct Again {
    pub(crate) place: WalkDir,
    /// The names in it to look at, as bytes.
    pub(crate) names: Vec<Vec<u8>>,
}

/// Looks again at some names, and at all that is below them, as [`super::walk`] does where it comes to them.
///
/// The known files of `request` have to include all that are known at and below them. With `whole`, the directories in
/// which something is known are read ahead on other threads: for directories that are looked at as wholes.
pub(crate) fn walk_again(
    request: &Request<'_>,
    root: &Root,
    configured: Option<Arc<Level>>,
    whole: bool,
    all: Vec<Again>,
    control: Interrupt<'_>,
) -> Result<WalkResult> {
    let walk = |ahead: &Ahead| {
        let mut walker = Walker::new(request, root, ahead, configured, control);
        for again in all {
            walker.look_again(&again)?;
            walker.go_on()?;
        }
        Ok(walker.found)
    };
    if !whole || request.known.entries().len() < WORTH {
        return walk(&Ahead::default());
    }
    let ahead = Ahead::of(ReadPlan::of(dirs_of(request.known)));
    ahead.scouting(root, || walk(&ahead))
}

impl Walker<'_> {
    /// Looks at single names of a directory. Their neighbours count only for directories: then the parent is listed.
    fn look_again(&mut self, again: &Again) -> Result<()> {
        self.check()?;
        let here = Here::new(self.root, again.place.path.clone(), None);
        let seen: Vec<_> = again.names.iter().map(|name| here.see(name)).collect();
        let is_dir =
            |seen: &Seen| seen.stamp.is_ok_and(|stamp| FileType::from_raw_mode(stamp.mode) == FileType::Directory);
        let beside = if again.place.is_listed() && seen.iter().any(is_dir) {
            self.list(&again.place).map_or_else(|_| Names::default(), |listing| listing.names)
        } else {
            Names::default()
        };
        let first = self.stack.len();
        for (name, seen) in again.names.iter().zip(seen) {
            let before = self.stack.len();
            self.child(&again.place, &here, &beside, name, seen);
            if seen.stamp.is_ok() && self.stack.len() == before {
                self.found.refused.push(again.place.path.join(name));
            }
        }
        self.stack[first..].sort_unstable_by(|a, b| b.order(a));
        Ok(())
    }
}
