//! Comparing with the disk what an action or a restore names, before its checkpoint is believed to hold it.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::super::seen::{Before, Seen};
use super::super::take::{Take, Taken};
use crate::checkpoint::catalog::diff::{Change, Present};
use crate::checkpoint::history::restore::{Loaded, Restore};
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::model::change::{Changes, Dirty, Reach};
use crate::model::id::ObjectId;
use crate::model::stamp::KnownPaths;
use crate::model::tree::Mode;
use crate::sys::interrupt::Flow;
use crate::worktree::{Target, Warm, rewritten};

/// How often the checkpoint before a restore is taken anew. What moves even then fails its proof, and stays.
const ATTEMPTS: usize = 3;

impl Timeline {
    /// Lists the paths at `targets` that differ from the warm tree, whatever the watcher told.
    pub(super) fn inspect(&self, tree: &mut Warm, targets: &[Target], control: &dyn Fn() -> Flow) -> Result<Changes> {
        let (plain, nothing, never) = (Take::any(), Before::nothing(), [self.home.path().to_owned()]);
        tree.inspect(&self.request(&plain, &nothing, &never), targets, control).map(Changes::Paths)
    }

    /// Asks what changed, and compares `targets` with the disk, where a tree is warm.
    pub(super) fn hear_of(&mut self, targets: &[Target], control: &dyn Fn() -> Flow) -> Result<()> {
        let Some(mut tree) = self.warm.take() else { return Ok(()) };
        let heard = self.sync(&tree);
        self.dirty = mem::replace(&mut self.dirty, Changes::none()).and(heard);
        let known = matches!(self.dirty, Changes::Paths(_)) && !targets.is_empty();
        let named = if known { self.inspect(&mut tree, targets, control) } else { Ok(Changes::none()) };
        // Whatever was found out about single files stays right.
        self.warm = Some(tree);
        self.dirty = mem::replace(&mut self.dirty, Changes::none()).and(named?);
        Ok(())
    }

    /// Takes the checkpoint before a restore to `target`, under the workspace lock, with what the restore is going to replace
    /// or delete compared with the disk itself. If some of it is not what was captured, the checkpoint is taken once more.
    pub(in crate::checkpoint) fn take_before(
        &mut self,
        (restore, target): (&Restore, &Loaded),
        take: &Take,
        control: &dyn Fn() -> Flow,
    ) -> Result<(Taken, Seen)> {
        for _ in 1..ATTEMPTS {
            let (taken, seen) = self.take_locked(take, control)?;
            let touched = self.touched_by((restore, target), seen.root, &seen.fresh)?;
            let known = seen.scan.as_ref().map(|scan| &*scan.capture.known);
            if !self.distrust_moved(&touched, known, control)? {
                return Ok((taken, seen));
            }
            tracing::info!("files changed and nothing told of it: the checkpoint before the restore is taken anew");
            self.drop_ref(&taken.checkpoint.name, taken.checkpoint.id)?;
        }
        self.take_locked(take, control)
    }

    /// Looks at the workspace before a restore to `target`, as [`Timeline::take_before`] does.
    pub(in crate::checkpoint) fn look_before(
        &mut self,
        (restore, target): (&Restore, &Loaded),
        take: &Take,
        control: &dyn Fn() -> Flow,
    ) -> Result<Present> {
        for _ in 1..ATTEMPTS {
            let present = self.look(take, control)?;
            let touched = self.touched_by((restore, target), present.root, &present.fresh)?;
            if !self.distrust_moved(&touched, present.known.as_deref(), control)? {
                return Ok(present);
            }
        }
        self.look(take, control)
    }

    /// The files that a restore to `target` would replace or delete as far as is known, and the paths that it was asked for.
    fn touched_by(
        &self,
        (restore, target): (&Restore, &Loaded),
        root: ObjectId,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<Vec<Target>> {
        let is_file = |change: &Change| change.old.is_some_and(|(mode, _)| mode != Mode::Dir);
        let changes = self.changes(root, target.checkpoint.tree, fresh)?.into_iter();
        let touched = changes.filter(|change| is_file(change) && restore.selects(&change.path));
        let touched = touched.map(|change| Target { path: change.path, recursive: false });
        let asked = restore.paths.iter().map(|path| Target { path: path.clone(), recursive: true });
        Ok(asked.chain(touched).collect())
    }

    /// Compares `targets` with the disk, and has what is not as it was captured looked at again; `known` is what a scan has found,
    /// `None` where the warm tree has. Says whether there was any.
    fn distrust_moved(
        &mut self,
        targets: &[Target],
        known: Option<&KnownPaths>,
        control: &dyn Fn() -> Flow,
    ) -> Result<bool> {
        let moved = match (known, self.warm.take()) {
            (None, Some(mut tree)) => {
                let moved = self.inspect(&mut tree, targets, control);
                self.warm = Some(tree);
                moved?
            }
            (known, warm) => {
                self.warm = warm;
                let none = KnownPaths::default();
                let moved = rewritten(&self.workspace.path, known.unwrap_or(&none), targets, control)?;
                if let Some(tree) = &mut self.warm {
                    tree.distrust(&moved);
                } else if let Some(stamps) = &mut self.stamps {
                    moved.iter().for_each(|path| Arc::make_mut(&mut stamps.known).distrust(path));
                }
                Changes::Paths(Dirty::new(moved.into_iter().map(|path| (path, Reach::Entry))))
            }
        };
        let any = moved != Changes::none();
        self.dirty = mem::replace(&mut self.dirty, Changes::none()).and(moved);
        Ok(any)
    }
}
