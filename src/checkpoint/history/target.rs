//! The target of a restore, and the plan to get there. Nothing is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use super::agreed::Agreed;
use super::in_use;
use super::journal::External;
use super::recorded::effects_of;
use super::repositories::left_by_redo;
use super::request::{Expected, Loaded, Near, Restore};
use super::spelling::refuse_other_spellings;
use crate::checkpoint::capture::request::{Selection, Take};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::rules::ManifestView;
use crate::checkpoint::records::repositories::KeptRepository;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::repository::log::{LoggedOperation, operations};
use crate::error::{Code, Error, Result};
use crate::filter::{CaptureJudge, Denial, Tracked, Verdict};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::{Coverage, SkipReason};
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::number::Number;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::worktree::restore::{ConflictReason, KeepReason, Plan, PlanInput, plan};
use crate::worktree::{PrivatePart, Target};

impl Catalog {
    /// Loads the tree of one end of an interrupted restore.
    pub(super) fn load_end(&self, id: ObjectId) -> Result<Manifest> {
        self.load_target(id, None).map(|loaded| loaded.manifest)
    }

    /// Reads the checkpoint that a restore goes back to; only the entries `near` the paths of a step over a turn.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn load_target(&self, target: ObjectId, near: Option<&Near>) -> Result<Loaded> {
        let checkpoint = match self.checkpoint_of(target) {
            Err(error) if error.code() == Code::NoSuchCheckpoint => {
                let foreign = self.foreign()?.checkpoints.into_iter();
                { foreign }.find(|checkpoint| checkpoint.id == target).ok_or(error)?
            }
            own => own?,
        };
        let contents = match near {
            None => self.contents(&checkpoint),
            Some(near) => self.contents_near(&checkpoint, &|path| near.holds(path)),
        };
        let (manifest, coverage) = contents.map_err(incomplete)?;
        let private = self.private_part(&checkpoint).map_err(incomplete)?;
        let root = self.whole(&checkpoint).map_err(incomplete)?;
        let mut loaded = Loaded { checkpoint, root, manifest, private, coverage };
        if near.is_none()
            && let Some(beside) = self.whole_beside(&loaded.checkpoint)?
            && let Err(error) = self.add_rest(&mut loaded, &beside)
        {
            // The checkpoint itself is of use all the same.
            tracing::warn!(%error, "the base capture of a narrowed checkpoint cannot be read");
        }
        Ok(loaded)
    }

    /// Reads the checkpoint that a restore goes back to, and the paths that other checkpoints have saved.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn load_whole_target(&self, restore: &Restore, near: Option<&Near>) -> Result<Loaded> {
        let mut loaded = self.load_target(restore.target, near)?;
        let mut by_checkpoint: BTreeMap<ObjectId, BTreeSet<&RelPath>> = BTreeMap::new();
        for (path, id) in restore.from.iter().filter(|(path, _)| restore.selects(path)) {
            by_checkpoint.entry(*id).or_default().insert(path);
        }
        if by_checkpoint.is_empty() {
            return Ok(loaded);
        }
        let (mut private, mut added) = (PrivatePart::clone(&loaded.private), PrivatePart::default());
        for (id, paths) in by_checkpoint {
            let saved = self.checkpoint_of(id).map_err(incomplete)?;
            let own = self.private_part(&saved).map_err(incomplete)?;
            for (path, entry) in self.entries_at(&saved, paths.into_iter()).map_err(incomplete)? {
                let Some(entry) = entry else { continue };
                loaded.manifest.insert(path.clone(), entry);
                if own.manifest.contains(&path) {
                    private.manifest.insert(path.clone(), entry);
                }
                added.manifest.insert(path, entry);
            }
        }
        loaded.private = Arc::new(private);
        loaded.root = self.with_part(loaded.root, added)?;
        Ok(loaded)
    }

    /// Adds what a narrowed checkpoint leaves out, which a base capture of the same moment holds. It is private to the checkpoint:
    /// missing files come back, and those that are there change only by name.
    fn add_rest(&self, loaded: &mut Loaded, beside: &Checkpoint) -> Result<()> {
        let (whole, _) = self.contents(beside)?;
        loaded.root = self.with_rest(&loaded.checkpoint, beside)?;
        let mut private = PrivatePart::clone(&loaded.private);
        for (path, entry) in whole.iter().filter(|(path, _)| !loaded.manifest.contains(path)) {
            private.manifest.insert(path.clone(), *entry);
        }
        for (path, entry) in private.manifest.iter() {
            loaded.manifest.insert(path.clone(), *entry);
        }
        loaded.private = Arc::new(private);
        Ok(())
    }

    /// Returns the warnings for a person before a plan is done.
    pub(super) fn warnings_of(&self, restore: &Restore, loaded: &Loaded, plan: &Plan) -> Result<Vec<String>> {
        let mut warnings = in_use::warnings(plan, &self.workspace.path);
        match self.live_warnings(&restore.run) {
            Ok(live) => warnings.extend(live.into_iter().filter(|_| !plan.changes_nothing())),
            Err(error) => tracing::warn!(%error, "cannot determine which processes are active"),
        }
        warnings.extend(self.target_warnings(&loaded.coverage, &|path| restore.is_about(path)));
        if self.is_layer_expired(&loaded.checkpoint)? {
            let number = loaded.checkpoint.record.number;
            warnings.push(format!(
                "checkpoint {number} saved ignored files and secrets for a limited time, which is over, so it cannot restore them"
            ));
        }
        let is_from_target = |path: &RelPath| restore.selects(path) && !restore.from.contains_key(path);
        warnings.extend(self.moment_notes(&loaded.checkpoint, &is_from_target)?);
        warnings.extend(self.repository_warnings(&loaded.checkpoint, &loaded.coverage, &|path| restore.selects(path))?);
        warnings.extend(self.half_of_git_undo(restore)?);
        if restore.kind == OperationKind::Undo && !plan.changes_nothing() {
            let history = self.history()?;
            let turn = history.turns.iter().find(|turn| Some(&turn.op) == restore.over.as_ref());
            warnings.extend(turn.and_then(|turn| self.commits_during(turn)));
        }
        warnings.extend(left_by_redo(restore, loaded));
        let also = |kept: &KeptRepository| {
            format!("`{}` is restored too, in its state before it was deleted", self.shown(&kept.path))
        };
        warnings.extend(restore.repositories.iter().map(also));
        Ok(warnings)
    }

    /// Warns of an undo over the files that `piton git-undo` has brought back: what it has done in the repository stays.
    fn half_of_git_undo(&self, restore: &Restore) -> Result<Option<String>> {
        let (OperationKind::Undo, Some(over)) = (restore.kind, &restore.over) else { return Ok(None) };
        let history = self.history()?;
        let step = history.undo.iter().find(|step| step.op == *over && step.kind == OperationKind::Restore);
        let Some(step) = step else { return Ok(None) };
        let is_around = |one: &LoggedOperation| {
            let end = one.end.as_ref().filter(|end| end.moved && step.time <= end.time);
            one.begin.over.is_some() && one.undone.is_none() && one.begin.time <= step.time && end.is_some()
        };
        let all = operations(&self.workspace.dir)?;
        Ok(all.iter().find(|one| is_around(one)).map(|one| {
            let (command, name) = (&one.begin.command, one.begin.name());
            format!(
                "this undoes only the file changes of `{command}`; refs, HEAD, the index and the stash are not changed. \
                 To undo all of it, run `piton undo {name}`"
            )
        }))
    }

    /// Returns the request for the `pre-restore` checkpoint. It captures every path that the target holds, whatever
    /// ignore rules, secrets and caps say, because these may be replaced.
    pub(super) fn safety_take(&self, restore: &Restore, loaded: &Loaded) -> Take {
        let file = |path: &RelPath| Target { path: path.clone(), recursive: false };
        let held = loaded.manifest.iter().map(|(path, _)| path);
        let mut targets: Vec<Target> = held.filter(|path| restore.selects(path)).map(file).collect();
        // Files that an operation created are saved too before they are removed again, whatever the rules say of them.
        let created = restore.only.iter().flatten();
        targets.extend(created.filter(|path| !loaded.manifest.contains(path)).map(file));
        let verb = match restore.kind {
            OperationKind::Restore => "restore to",
            OperationKind::Rollback => "rollback to",
            OperationKind::Undo | OperationKind::Turn => "undo, back to",
            OperationKind::Redo => "redo, to",
        };
        let checkpoint = &loaded.checkpoint;
        let target = match (checkpoint.record.number, restore.kind) {
            _ if self.is_foreign(checkpoint) => format!("{} of another machine", checkpoint.id.short()),
            (Number::NONE, OperationKind::Undo | OperationKind::Turn) => "the beginning of a turn".to_owned(),
            (Number::NONE, OperationKind::Redo) => "the end of a turn".to_owned(),
            (Number::NONE, _) => format!("base capture {}", checkpoint.id.short()),
            (number, _) => format!("checkpoint {number}"),
        };
        let reason = format!("before {verb} {target}");
        let mut take = Take::of(CheckpointKind::PreRestore, &restore.run, &reason);
        take.selection = Selection { unlimited: true, ..Selection::with(targets) };
        take.draft.always = true;
        take
    }

    /// Plans the way from the present files to a target.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn plan_for(
        &self,
        restore: &Restore,
        loaded: &Loaded,
        present: &Manifest,
        (coverage, private): (&Coverage, &PrivatePart),
        agreed: &Agreed,
    ) -> Result<Plan> {
        let view = ManifestView { catalog: self, manifest: &loaded.manifest };
        // An undo or redo has the paths that an operation changed. That operation had proven that its new paths did not
        // exist before.
        let stepping = restore.only.is_some();
        // Without its rules nothing proves that the checkpoint would have captured a path: nothing is deleted then.
        let rules_known = self.has_rules(&loaded.manifest)?;
        let judge = CaptureJudge::new(&loaded.coverage, &view);
        // A run's restore leaves inputs alone that are read-only now, even if the target holds them.
        let inputs: &[String] = if loaded.checkpoint.record.kind.is_typed() { &self.policy.read_only } else { &[] };
        let allowed = Tracked::new(&[], inputs)?;
        let made = match stepping {
            true => HashSet::new(),
            false => self.made_since(&loaded.checkpoint, &loaded.coverage, present)?,
        };
        // A directory without a pattern of its own is removed with the tracked files in it.
        let holds_files = |dir: &RelPath| present.inside(dir).any(|(_, entry)| entry.kind != EntryKind::Dir);
        let goes_along = |path: &RelPath, entry: &ManifestEntry| entry.kind == EntryKind::Dir && holds_files(path);
        let is_expired = self.is_layer_expired(&loaded.checkpoint)?;
        // A file where a private directory was: if git shows it, it goes as all such files go.
        let is_dir =
            |manifest: &Manifest, path: &RelPath| manifest.get(path).is_some_and(|at| at.kind == EntryKind::Dir);
        let was_private = |path: &RelPath| {
            let is_in_place = is_dir(&loaded.manifest, path) && present.contains(path) && !is_dir(present, path);
            loaded.private.manifest.contains(path) && !is_in_place
        };
        let is_private = |path: &RelPath| private.manifest.contains(path) || was_private(path);
        let stays = |path: &RelPath, now: Option<&ManifestEntry>| {
            let is_local = now.is_some() && is_private(path) && !restore.names(path);
            // For all that is known, a path has not changed that cannot be looked at.
            let is_hidden = now.is_none() && restore.expected.is_some() && is_out_of_sight(coverage, path);
            let kept = if is_hidden { None } else { restore.keeps(path, now) };
            kept.or(is_local.then_some(KeepReason::Local))
        };
        let covered = |path: &RelPath, entry: &ManifestEntry| match judge.of_both(path, entry) {
            Verdict::No(why) if is_expired && why.is_private() && !stepping => Err(Denial::Expired.to_string()),
            Verdict::Yes | Verdict::No(Denial::Untracked) if !stepping && !allowed.matches(path) => {
                Err("a read-only input".to_owned())
            }
            Verdict::No(Denial::Untracked) if rules_known && goes_along(path, entry) => Ok(()),
            Verdict::No(Denial::Untracked) if rules_known && made.contains(path) => Ok(()),
            _ if !stepping && !rules_known => Err("the checkpoint's ignore rules are lost".to_owned()),
            Verdict::No(why) if !stepping => Err(why.to_string()),
            Verdict::No(_) | Verdict::Yes => Ok(()),
        };
        // A forgotten file was there: its absence must never be restored.
        let target_skipped = |path: &RelPath| match loaded.coverage.skip_of(path) {
            Some(SkipReason::Forgotten) => true,
            skipped => !stepping && skipped.is_some(),
        };
        let present = self.with_directories(present, &loaded.manifest);
        let input = PlanInput {
            target: &loaded.manifest,
            present: &present,
            present_skipped: &coverage.skipped,
            select: restore.planned_paths(),
            keep_new: restore.keep_new,
            covered: &covered,
            target_skipped: &target_skipped,
            stays: &stays,
            agreed: &|path, from, to| agreed.on(path, from, to),
        };
        let mut plan = plan(&input);
        if let Some(only) = &restore.only {
            plan.retain(&|path| only.contains(path));
        }
        restore.limit(&mut plan);
        if let Some(expected) = &restore.expected {
            add_conflicts(&mut plan, expected, (&loaded.manifest, present.as_ref()), coverage);
        }
        refuse_other_spellings(&mut plan, &self.workspace.path);
        Ok(plan)
    }

    /// Adds the directories that are there although a capture of single paths did not come to them: their content is gone.
    fn with_directories<'m>(&self, present: &'m Manifest, target: &Manifest) -> Cow<'m, Manifest> {
        if self.workspace.scope == Scope::Tree {
            return Cow::Borrowed(present);
        }
        let mut whole = present.clone();
        let dirs = target.iter().filter(|(_, entry)| entry.kind == EntryKind::Dir).map(|(path, _)| path.clone());
        let above = target.iter().filter_map(|(path, _)| path.parent()).filter(|dir| !dir.is_root());
        for path in dirs.chain(above) {
            let facts = path.under(&self.workspace.path).symlink_metadata();
            if let Some(facts) = facts.ok().filter(|facts| facts.is_dir() && !whole.contains(&path)) {
                whole.insert(path, ManifestEntry::dir((facts.mode() & 0o7777) as u16));
            }
        }
        Cow::Owned(whole)
    }

    /// Lists the recorded effects that a restore to `target` does not undo. A step over a turn is about the effects of that turn alone.
    pub(super) fn externals_after(&self, restore: &Restore, target: &Checkpoint) -> Result<Vec<External>> {
        let mut actions = self.recorded_actions()?;
        match self.is_foreign(target) {
            // The number of a foreign checkpoint counts elsewhere, so times are compared.
            true => actions.retain(|action| action.time >= target.record.time),
            false => actions.retain(|action| action.after >= target.record.ordinal),
        }
        let history = self.history()?;
        let turn =
            history.turns.iter().find(|turn| restore.expected.is_some() && Some(&turn.op) == restore.over.as_ref());
        if let Some(turn) = turn {
            actions.retain(|action| action.key.as_ref() == Some(&turn.key));
        }
        Ok(actions.iter().flat_map(|action| effects_of(action, turn.is_some() && !restore.partial)).collect())
    }
}

/// Adds to the plan of a step over a turn the paths that it cannot take back although they are the turn's.
fn add_conflicts(plan: &mut Plan, expected: &Expected, (target, present): (&Manifest, &Manifest), coverage: &Coverage) {
    let reason = |path: &RelPath, why: &String| match path.name() == b".git" {
        true => ConflictReason::Repository(why.clone()),
        false => ConflictReason::NotHeld(why.clone()),
    };
    let missed = expected.missed.iter().map(|(path, why)| (path.clone(), reason(path, why)));
    // New files of the turn in a directory that nobody can look into would go.
    let would_go = |(path, state): &(&RelPath, &Option<ManifestEntry>)| {
        state.is_some() && !target.contains(path) && !expected.others.contains_key(*path)
    };
    let hidden = expected.states.iter().filter(would_go).map(|(path, _)| path);
    let hidden = hidden.filter(|path| !present.contains(path) && is_out_of_sight(coverage, path));
    let unreadable = || ConflictReason::NotSaved(SkipReason::Unreadable);
    let known: BTreeSet<RelPath> = plan.conflict.iter().map(|(path, _)| path.clone()).collect();
    let more = missed.chain(hidden.map(|path| (path.clone(), unreadable())));
    plan.conflict.extend(more.filter(|(path, _)| !known.contains(path)).collect::<Vec<_>>());
    plan.conflict.sort_by(|(one, _), (other, _)| one.cmp(other));
}

/// Returns true if a capture could not look at a path: permissions keep it out.
fn is_out_of_sight(coverage: &Coverage, path: &RelPath) -> bool {
    coverage.skip_of(path) == Some(SkipReason::Unreadable)
}

/// Returns the error of a target that cannot be read whole.
pub(super) fn incomplete(error: Error) -> Error {
    match error.code() {
        Code::StoreDamaged | Code::NoSuchCheckpoint => {
            Error::new(Code::IncompleteCheckpoint, format!("part of the checkpoint cannot be read: {}", error.fact()))
                .hint("nothing was changed; choose another checkpoint")
                .caused_by(error)
        }
        _ => error,
    }
}
