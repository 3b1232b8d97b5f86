//! Bounds what targets may cost: the budget for paths that only they bring in, and the weight of what is left out.

use std::os::fd::AsFd;

use rustix::fs::FileType;

use super::super::beneath::names_in;
use super::super::request::{SPARING_BYTES, SPARING_FILES, TargetBudget};
use super::walk_dir::WalkDir;
use super::walker::Walker;
use crate::model::coverage::{SkipReason, Weight};
use crate::model::path::RelPath;
use crate::model::stamp::KnownFile;

impl Walker<'_> {
    /// Takes a file of `size` bytes from the budget of targets, if it suffices.
    pub(super) fn spend(&mut self, size: u64) -> bool {
        let (files, bytes) = self.budget;
        let enough = files > 0 && bytes >= size;
        if enough && !self.request.unlimited_targets {
            self.budget = (files - 1, bytes - size);
        }
        enough
    }

    /// Takes a directory below a recursive target from the budget of a sparing walk; notes the directory as left out if nothing is
    /// left. The target of a link has a budget of its own.
    pub(super) fn may_enter(&mut self, place: &WalkDir) -> bool {
        if self.request.budget == TargetBudget::Linked && self.recursive.contains(&place.path) {
            (self.below, self.device) = ((SPARING_FILES, SPARING_BYTES), None);
        }
        if self.below.0 > 0 {
            self.below.0 -= 1;
            return true;
        }
        let weight = self.weigh(&place.path);
        self.skip(&place.path, SkipReason::OverBudget(weight));
        false
    }

    /// Returns true if a directory below the target of a link lies on another file system, which is mounted there. Notes it as left out,
    /// without a look at it.
    pub(super) fn is_mounted_below(&mut self, place: &WalkDir, device: u64) -> bool {
        if !place.forced || self.request.budget != TargetBudget::Linked {
            return false;
        }
        let is_other = *self.device.get_or_insert(device) != device;
        if is_other {
            self.skip(&place.path, SkipReason::OverBudget(Weight { bytes: 0, is_least: true }));
        }
        is_other
    }

    /// Takes a target, to which the rules set no budget, from that of a sparing walk. One that does not fit is noted; if too many were
    /// looked at already, as a part of its directory.
    pub(super) fn may_take(&mut self, place: &WalkDir, path: &RelPath, size: u64) -> bool {
        let is_linked = self.request.budget == TargetBudget::Linked;
        if is_linked && (size > self.request.limits.ignored.file_bytes || (place.forced && !self.spend(size))) {
            self.skip(path, SkipReason::OverBudget(Weight::whole(size)));
            return false;
        }
        if !place.forced && self.request.budget != TargetBudget::First {
            let fits = self.spend(size);
            if !fits {
                self.skip(path, SkipReason::OverBudget(Weight::whole(size)));
            }
            return fits;
        }
        let (files, bytes) = self.below;
        if files == 0 {
            let at = if place.forced { &place.path } else { path };
            let so_far = self.found.skipped.get(at).and_then(|why| why.weight()).unwrap_or_default();
            self.skip(at, SkipReason::OverBudget(so_far.plus(Weight::whole(size))));
            return false;
        }
        // One that does not fit counts too: the walk has looked at it.
        self.below = (files - 1, bytes.saturating_sub(if size <= bytes { size } else { 0 }));
        if size > bytes {
            self.skip(path, SkipReason::OverBudget(Weight::whole(size)));
        }
        size <= bytes
    }

    /// Takes a private file of `size` bytes from what may still come in, if that suffices. One that was there before has its place.
    pub(super) fn admit(&mut self, size: u64, known: Option<&KnownFile>) -> bool {
        let before = known.filter(|known| known.private).map(|known| known.stamp.size);
        let (files, more) = (u64::from(before.is_none()), size.saturating_sub(before.unwrap_or(0)));
        let enough = self.spare.files >= files && self.spare.bytes >= more;
        if enough {
            self.spare.files -= files;
            self.spare.bytes -= more;
        }
        enough
    }

    /// Takes a name from those that may be looked at for private files; false when there were too many.
    pub(super) fn may_list(&mut self) -> bool {
        self.listing > 0
    }

    /// Counts the bytes at and below a path that is left out.
    pub(super) fn weigh(&mut self, path: &RelPath) -> Weight {
        let (mut weight, mut pending) = (Weight::default(), vec![path.clone()]);
        while let Some(path) = pending.pop() {
            if self.weighing == 0 {
                weight.is_least = true;
                break;
            }
            self.weighing -= 1;
            let Ok(stat) = self.root.lstat(&path) else { continue };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                weight = weight.plus(Weight::whole(u64::try_from(stat.st_size).unwrap_or(0)));
                continue;
            }
            match self.root.open_dir(&path).and_then(|dir| names_in(dir.as_fd(), &mut self.buffer)) {
                Ok(names) => pending.extend(names.iter().map(|name| path.join(name))),
                Err(_) => weight.is_least = true,
            }
        }
        weight
    }
}
