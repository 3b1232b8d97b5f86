//! Saves the files that a restore is going to replace or delete, compared with the disk itself.

use std::collections::HashMap;

use super::request::{Loaded, Restore};
use crate::checkpoint::capture::capturer::Capturer;
use crate::checkpoint::capture::observe::Observation;
use crate::checkpoint::capture::request::{Take, Taken};
use crate::checkpoint::catalog::diff::{Change, Present};
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::locked::Locked;
use crate::error::Result;
use crate::model::id::ObjectId;
use crate::model::tree::Mode;
use crate::sys::interrupt::Flow;
use crate::worktree::Target;

/// The number of times that the checkpoint before a restore is taken. A file that changes even then fails its proof,
/// and stays.
const ATTEMPTS: usize = 3;

impl Locked<'_> {
    /// Takes the checkpoint before a restore to `target`. The files that the restore is going to replace or delete are
    /// compared with the disk itself. If one differs from its captured state, the checkpoint is taken once more.
    pub(super) fn take_before(
        &mut self,
        restore: &Restore,
        target: &Loaded,
        take: &Take,
        control: &dyn Fn() -> Flow,
    ) -> Result<(Taken, Observation)> {
        for _ in 1..ATTEMPTS {
            let (taken, observed) = self.take(take, control)?;
            let whole = self.catalog.whole(&taken.checkpoint)?;
            let touched = self.catalog.touched_by(restore, target, whole, &observed.fresh)?;
            let known = observed.scan.as_ref().map(|scan| &*scan.capture.known);
            if !self.capturer.distrust_moved(self.catalog, &touched, known, control)? {
                return Ok((taken, observed));
            }
            tracing::info!(
                "files changed without an event from the watcher; taking the checkpoint before the restore again"
            );
            self.drop_ref(&taken.checkpoint.name, taken.checkpoint.id)?;
        }
        self.take(take, control)
    }
}

impl Capturer {
    /// Looks at the workspace before a restore to `target`, as [`Locked::take_before`] does.
    pub(super) fn look_before(
        &mut self,
        catalog: &Catalog,
        restore: &Restore,
        target: &Loaded,
        take: &Take,
        control: &dyn Fn() -> Flow,
    ) -> Result<Present> {
        for _ in 1..ATTEMPTS {
            let present = self.look(catalog, take, control)?;
            let touched = catalog.touched_by(restore, target, present.root, &present.fresh)?;
            if !self.distrust_moved(catalog, &touched, present.known.as_deref(), control)? {
                return Ok(present);
            }
        }
        self.look(catalog, take, control)
    }
}

impl Catalog {
    /// Lists the files that a restore to `target` would replace or delete as far as is known, and the paths that it was asked for.
    fn touched_by(
        &self,
        restore: &Restore,
        target: &Loaded,
        root: ObjectId,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<Vec<Target>> {
        let is_file = |change: &Change| change.old.is_some_and(|(mode, _)| mode != Mode::Dir);
        let changes = self.changes(root, target.root, fresh)?.into_iter();
        let touched = changes.filter(|change| is_file(change) && restore.selects(&change.path));
        let touched = touched.map(|change| Target { path: change.path, recursive: false });
        let asked = restore.paths.iter().map(|path| Target { path: path.clone(), recursive: true });
        Ok(asked.chain(touched).collect())
    }
}
