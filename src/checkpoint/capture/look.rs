//! Looks without storing, and compares the paths that an action or a restore names with the disk.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::capturer::Capturer;
use super::knowledge::PriorKnowledge;
use super::observe::{Destination, Observation, PlainRequest, told};
use super::request::{Selection, Take};
use super::warmth::Warmth;
use crate::checkpoint::catalog::diff::Present;
use crate::checkpoint::catalog::layers::joined;
use crate::checkpoint::catalog::open::Catalog;
use crate::error::{Code, Result};
use crate::model::change::{Changes, Dirty, Reach};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::Extent;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::policy::Durability;
use crate::model::stamp::KnownPaths;
use crate::model::tree::Mode;
use crate::sys::interrupt::Flow;
use crate::worktree::{Target, Warm, rewritten};

/// Lists the paths at `targets` that differ from the tree, whatever the watcher reported.
pub(super) fn inspect(
    catalog: &Catalog,
    tree: &mut Warm,
    targets: &[Target],
    control: &dyn Fn() -> Flow,
) -> Result<Dirty> {
    tree.inspect(&PlainRequest::new(catalog).on_workspace(), targets, control)
}

impl Capturer {
    /// Looks at the workspace as it is now; nothing is stored.
    ///
    /// # Errors
    /// `workspace-gone`, and those of reading.
    pub(crate) fn look(&mut self, catalog: &Catalog, take: &Take, control: &dyn Fn() -> Flow) -> Result<Present> {
        catalog.require_root(take.draft.kind)?;
        if let Some(present) = self.look_at_tree(catalog, take, control)? {
            return Ok(present);
        }
        let all = catalog.all()?;
        let warmth = mem::take(&mut self.warmth);
        let held = warmth.stamps_at(&take.selection.only)?;
        let before = PriorKnowledge::gather(catalog, &take.selection, &all.checkpoints, held, control)?;
        let observed = Observation::scan(catalog, take, &before, Destination::Nowhere, control);
        // Only the earlier knowledge is kept: content that was merely hashed is not in the store.
        self.warmth = match warmth {
            Warmth::Cold(_) => Warmth::Cold(Some(before.stamps)),
            warm => warm,
        };
        let Observation { coverage, root, fresh, scan, private, private_root, .. } = observed?;
        let (manifest, known) = scan.map(|scan| (scan.capture.manifest, scan.capture.known)).unwrap_or_default();
        let root = private_root.map_or(Ok(root), |private| catalog.together(root, private, &fresh))?;
        let manifest = joined(manifest, &private.manifest);
        Ok(Present { manifest, private, coverage, root, fresh, known: Some(known) })
    }

    /// Returns the present state, where the tree is known to hold it.
    fn look_at_tree(&mut self, catalog: &Catalog, take: &Take, control: &dyn Fn() -> Flow) -> Result<Option<Present>> {
        let selection = &take.selection;
        if take.draft.kind.is_typed() || selection.extent(catalog.workspace.scope) != Extent::Tree {
            return Ok(None);
        }
        let named: &[Target] = if selection.names_targets() { &selection.targets } else { &[] };
        self.sync_and_compare(catalog, named, control)?;
        if catalog.finds_nothing(take.draft.kind) {
            return Ok(None);
        }
        let Some(tree) = self.warmth.unchanged().map(|tree| &tree.warm) else { return Ok(None) };
        let held = tree.holds_all(&catalog.workspace.path, &selection.targets);
        let Some(root) = tree.built().filter(|_| held) else { return Ok(None) };
        let Some(private_root) = tree.built_private() else { return Ok(None) };
        let (private, fresh) = (tree.private(), HashMap::new());
        let root = match private_root {
            Some(private_root) => catalog.whole_of(root, private_root)?,
            None => root,
        };
        let (manifest, coverage) = (joined(tree.manifest(), &private.manifest), told(tree.coverage(), &private));
        Ok(Some(Present { manifest, private, coverage, root, fresh, known: None }))
    }

    /// Asks for the changes, and compares `targets` with the disk, if there is a tree.
    fn sync_and_compare(&mut self, catalog: &Catalog, targets: &[Target], control: &dyn Fn() -> Flow) -> Result<()> {
        self.sync(&catalog.workspace.path);
        let compares = !targets.is_empty() && catalog.workspace.path.is_dir();
        if let (Warmth::Live(tree, _), true) = (&mut self.warmth, compares) {
            let named = inspect(catalog, &mut tree.warm, targets, control)?;
            self.warmth.add(Changes::Paths(named));
        }
        Ok(())
    }

    /// Returns true if a checkpoint holds everything that is at the targets of `wanted` now. True without targets; false
    /// for a damaged checkpoint.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub(crate) fn holds(
        &mut self,
        catalog: &Catalog,
        held: &ObjectId,
        wanted: &Selection,
        control: &dyn Fn() -> Flow,
    ) -> Result<bool> {
        match self.holds_whole(catalog, held, wanted, control) {
            // It is named in the answer, and may be a step of a moment ago.
            Ok(true) if catalog.policy.durability == Durability::Power => catalog.sync_late().map(|()| true),
            Err(error) if matches!(error.code(), Code::StoreDamaged | Code::NoSuchCheckpoint) => Ok(false),
            held => held,
        }
    }

    fn holds_whole(
        &mut self,
        catalog: &Catalog,
        held: &ObjectId,
        wanted: &Selection,
        control: &dyn Fn() -> Flow,
    ) -> Result<bool> {
        let targets = &wanted.targets[..];
        // Neither the tree in memory nor a commit in a file of its own tells that the contents went with a pack.
        if catalog.store.lacks_packs()? || !catalog.store.has(held)? {
            return Ok(false);
        }
        if targets.is_empty() || self.tree_tells_held(catalog, held, targets, control)? {
            return Ok(true);
        }
        let only = targets.iter().map(|target| target.path.clone()).collect();
        // With the budget of the checkpoint: what that left out is compared as such.
        let Selection { budget, takes, .. } = *wanted;
        let selection = Selection { budget, only, takes, ..Selection::with(targets.to_vec()) };
        let take = Take::for_looking(CheckpointKind::Auto, selection);
        let present = self.look(catalog, &take, control)?;
        let Some(held) = catalog.all()?.checkpoints.iter().rev().find(|one| one.id == *held).cloned() else {
            return Ok(false);
        };
        let is_near = |path: &RelPath| targets.iter().any(|to| path.starts_with(&to.path) || to.path.starts_with(path));
        let (shared, _) = catalog.load(&held.tree, &is_near)?;
        let there = joined(shared, &catalog.own_part(&held)?.manifest);
        // Permissions too: a key that was made private must not come back readable by all.
        let is_named = |path: &RelPath| targets.iter().any(|target| path.starts_with(&target.path));
        let mut named = present.manifest.iter().filter(|(path, _)| is_named(path));
        if !named.all(|(path, entry)| there.get(path).is_some_and(|held| held.same(entry))) {
            return Ok(false);
        }
        catalog.admits_gaps(&held, &present.coverage)
    }

    /// Returns true if the tree shows that a checkpoint holds the files at `targets`.
    fn tree_tells_held(
        &mut self,
        catalog: &Catalog,
        held: &ObjectId,
        targets: &[Target],
        control: &dyn Fn() -> Flow,
    ) -> Result<bool> {
        self.sync_and_compare(catalog, targets, control)?;
        let Warmth::Live(tree, pending) = &self.warmth else { return Ok(false) };
        let tree = &tree.warm;
        let again = |path: &RelPath| pending.again.iter().any(|dir| path.starts_with(dir) || dir.starts_with(path));
        let known = targets.iter().all(|target| {
            let path = &target.path;
            !pending.dirty.touches(path) && !again(path) && tree.holds(&catalog.workspace.path, target)
        });
        let (true, Some(root)) = (known, tree.built()) else { return Ok(false) };
        let all = catalog.all()?;
        let Some(held) = all.checkpoints.iter().rev().find(|one| one.id == *held) else { return Ok(false) };
        // If the private parts differ, the files themselves are compared.
        if tree.built_private() != Some(catalog.layer_root(held)?) {
            return Ok(false);
        }
        let commit = held.tree;
        if commit == root {
            return Ok(true);
        }
        // Permissions are recorded beside the tree. If those of both differ, the files themselves are compared.
        if catalog.records_of(&commit)? != catalog.records_of(&root)? {
            return Ok(false);
        }
        for target in targets {
            // The trees of the root are known to differ.
            if target.path.is_root() {
                return Ok(false);
            }
            let now: Option<(Mode, ObjectId)> = tree.side(&target.path);
            if catalog.entry_at(&commit, &target.path)? != now {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares `targets` with the disk, and marks changed files to be looked at again. `known` is the result of a
    /// scan; `None` means that of the tree. Returns true if there were any.
    pub(crate) fn distrust_moved(
        &mut self,
        catalog: &Catalog,
        targets: &[Target],
        known: Option<&KnownPaths>,
        control: &dyn Fn() -> Flow,
    ) -> Result<bool> {
        if catalog.workspace.is_deleted() {
            return Ok(false);
        }
        let moved = match (known, self.warmth.tree_mut()) {
            (None, Some(tree)) => inspect(catalog, &mut tree.warm, targets, control)?,
            (known, _) => {
                let none = KnownPaths::default();
                let moved = rewritten(&catalog.workspace.path, known.unwrap_or(&none), targets, control)?;
                match &mut self.warmth {
                    Warmth::Scanned(tree, _) | Warmth::Live(tree, _) => tree.warm.distrust(&moved),
                    Warmth::Cold(Some(stamps)) => {
                        moved.iter().for_each(|path| Arc::make_mut(&mut stamps.known).distrust(path));
                    }
                    Warmth::Cold(None) => {}
                }
                Dirty::new(moved.into_iter().map(|path| (path, Reach::Entry)))
            }
        };
        let any = !moved.is_empty();
        self.warmth.add(Changes::Paths(moved));
        Ok(any)
    }
}
