//! Bounds what targets may cost: the budget for paths that only they bring in, and the weight of what is left out.

use std::os::fd::AsFd;

use rustix::fs::FileType;

use super::super::beneath::names_in;
use super::walker::Walker;
use crate::model::coverage::Weight;
use crate::model::path::RelPath;

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
