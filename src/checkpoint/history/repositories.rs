//! The repositories (`.git`) that a turn destroyed, and how its undo restores them.
//!
//! A repository that an action is about to destroy is kept with the checkpoint before the action; a `.git` that is a file is in the
//! coverage of each checkpoint. At the end of the turn, one that is not at its place any more is written down as missed. The undo brings
//! it back where nothing else is in its place.

use std::sync::Arc;

use super::journal::{MissedChange, OperationStart, TurnEnd};
use super::request::{Loaded, Restore, Restored};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::repositories::{self, KeptRepository};
use crate::checkpoint::records::windows::OpenTurn;
use crate::checkpoint::repository::noted::NotedState;
use crate::error::{Code, Result};
use crate::model::checkpoint::recorded;
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::meta::quote;
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::text::count;
use crate::model::turn::Attribution;
use crate::worktree::repository_state::RepositoryPlace;
use crate::worktree::restore::Outcome;

impl Catalog {
    /// Lists the repositories that a turn may have deleted: those that were kept before its actions, and those that the checkpoint of
    /// its beginning knows (`coverage`). `share` returns the turn's share in the deletion of a path.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub(super) fn lost_repositories(
        &self,
        turn: &OpenTurn,
        base: &Checkpoint,
        coverage: &Coverage,
        share: &dyn Fn(&RelPath) -> Attribution,
    ) -> Result<Vec<MissedChange>> {
        let kept = self.kept_in_turn((&turn.run, &turn.turn), base.record.ordinal())?;
        let is_kept = |path: &RelPath| kept.iter().any(|(kept, _)| kept.path == *path);
        let missed = |path: &RelPath, who, saved: Option<ObjectId>| {
            let why = if saved.is_some() {
                "the repository was deleted"
            } else {
                "the repository no longer exists and was not saved"
            };
            MissedChange { path: quote(path.as_bytes()), why: why.to_owned(), who, saved }
        };
        let mut lost = Vec::new();
        for (path, content) in coverage.repositories.iter().filter(|(path, _)| !is_kept(path) && self.is_gone(path)) {
            let who = share(path);
            if who.may_have_deleted() {
                lost.push(missed(path, who, Some(base.id).filter(|_| !content.is_empty())));
            }
        }
        // The repository of the workspace itself is in no checkpoint, but its state is noted.
        let own = RelPath::parse(b".git")?;
        if !is_kept(&own) && self.is_gone(&own) && share(&own).may_have_deleted() && self.had_repository(base)? {
            lost.push(missed(&own, share(&own), None));
        }
        let gone = kept.iter().filter(|(kept, _)| !kept.is_in_place(&self.workspace.path));
        lost.extend(gone.map(|(kept, checkpoint)| missed(&kept.path, Attribution::Sure, Some(checkpoint.id))));
        Ok(lost)
    }

    /// Returns true if the workspace had a repository of its own at a checkpoint or at one of those after it. In doubt it was the one
    /// around the workspace.
    fn had_repository(&self, base: &Checkpoint) -> Result<bool> {
        let around = self.workspace.path.parent().and_then(RepositoryPlace::around);
        let is_own = |noted: &NotedState| {
            around.as_ref().is_none_or(|around| noted.identity.is_some() && noted.identity != around.identity())
        };
        let all = self.all()?;
        let mut since = all.checkpoints.iter().filter(|one| one.record.ordinal() >= base.record.ordinal());
        since.try_fold(false, |known, one| Ok(known || self.noted_state(one, false)?.as_ref().is_some_and(is_own)))
    }

    /// Returns the command that restores the newest kept copy of the repository at a path, of whatever turn.
    pub(super) fn newest_kept(&self, path: &RelPath) -> Option<String> {
        let kept = repositories::of(&self.workspace.dir).into_iter().rfind(|kept| kept.path == *path)?;
        let all = self.all().ok()?; // without the list no command can be named
        let of = all.checkpoints.iter().find(|one| one.record.ordinal() == kept.ordinal)?;
        Some(self.restore_command_at(of, path))
    }

    /// As [`Catalog::kept_in_turn`], with the `.git` files that the checkpoint of the turn's beginning contains.
    fn saved_in_turn(&self, turn: &TurnEnd) -> Result<Vec<(KeptRepository, Checkpoint)>> {
        let base = self.checkpoint_of(turn.base)?;
        let mut found = self.kept_in_turn((&turn.run, &turn.turn), base.record.ordinal())?;
        for file in KeptRepository::files_in(&self.coverage(&base.tree)?, base.record.ordinal()) {
            if found.iter().all(|(known, _)| known.path != file.path) {
                found.push((file, base.clone()));
            }
        }
        Ok(found)
    }

    /// Lists the repositories that were kept for the actions of a turn after a moment, of each path the first one, each with its
    /// checkpoint.
    fn kept_in_turn(&self, (run, turn): (&str, &str), since: u64) -> Result<Vec<(KeptRepository, Checkpoint)>> {
        let kept = repositories::of(&self.workspace.dir);
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let (all, name) = (self.all()?, recorded(turn));
        let of_turn = |one: &&Checkpoint| {
            let record = &one.record;
            record.ordinal() >= since && record.run() == run && record.turn.as_ref() == Some(&name)
        };
        let mut found: Vec<(KeptRepository, Checkpoint)> = Vec::new();
        for kept in kept.into_iter().filter(|kept| kept.ordinal >= since) {
            let checkpoint = all.checkpoints.iter().find(|one| one.record.ordinal() == kept.ordinal);
            let Some(checkpoint) = checkpoint.filter(of_turn).cloned() else { continue };
            if found.iter().all(|(known, _)| known.path != kept.path) {
                found.push((kept, checkpoint));
            }
        }
        Ok(found)
    }

    /// Adds to the undo of a turn the repositories that it brings back, and says of the others what is in their place.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub(super) fn with_repositories(&self, mut restore: Restore, turn: &TurnEnd) -> Result<Restore> {
        let Some(expected) = &mut restore.expected else { return Ok(restore) };
        let names_one = |path: &RelPath| path.components().any(|name| name == b".git");
        if !expected.missed.keys().any(names_one) {
            return Ok(restore);
        }
        let expected = Arc::make_mut(expected);
        for (kept, checkpoint) in self.saved_in_turn(turn)? {
            let Some(why) = expected.missed.remove(&kept.path) else { continue };
            if kept.is_in_place(&self.workspace.path) {
                continue;
            }
            if kept.is_occupied(&self.workspace.path) {
                let command = self.restore_command_at(&checkpoint, &kept.path);
                let text = format!("something else is in its place; move that away, then run `{command}`");
                expected.missed.insert(kept.path, text);
            } else if kept.has_data() {
                restore.repositories.push(kept);
            } else {
                expected.missed.insert(kept.path, why);
            }
        }
        Ok(restore)
    }

    /// Returns the repositories that an interrupted undo of a turn has still to bring back.
    ///
    /// # Errors
    /// When the checkpoints cannot be listed.
    pub(super) fn repositories_of_step(&self, begin: &OperationStart) -> Result<Vec<KeptRepository>> {
        let history = self.history()?;
        let is_whole_undo = begin.kind == OperationKind::Undo && !begin.partial;
        let turn = history.turns.iter().find(|turn| is_whole_undo && Some(&turn.op) == begin.over.as_ref());
        let Some(turn) = turn else { return Ok(Vec::new()) };
        let is_missed = |kept: &KeptRepository| {
            let path = quote(kept.path.as_bytes());
            turn.missed.iter().any(|missed| missed.path == path) && !kept.is_occupied(&self.workspace.path)
        };
        let kept = self.saved_in_turn(turn)?.into_iter().map(|(kept, _)| kept);
        Ok(kept.filter(is_missed).collect())
    }

    /// Applies a plan with `work`, in a workspace whose directory is made again if it was deleted, and then brings the kept repositories
    /// of the restore back.
    ///
    /// # Errors
    /// Those of `work`; `disk-full`, `permission`.
    pub(super) fn apply_with_repositories(
        &self,
        restore: &Restore,
        restored: &mut Restored,
        work: impl FnOnce() -> Result<Outcome>,
    ) -> Result<Outcome> {
        self.in_root(|| self.bring_back_repositories(restore, work()?, restored))
    }

    /// Brings the kept repositories of a restore back, and adds them to its outcome. A path that is in the way, or missing in one, is
    /// part of the result.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    fn bring_back_repositories(
        &self,
        restore: &Restore,
        mut outcome: Outcome,
        restored: &mut Restored,
    ) -> Result<Outcome> {
        for kept in &restore.repositories {
            let path = self.shown(&kept.path);
            match repositories::bring_back(kept, &self.workspace.path) {
                Ok(back) => {
                    let damaged = Some(back.damaged.len() as u64).filter(|damaged| *damaged > 0);
                    let damaged = damaged.map(|damaged| count(damaged, "object"));
                    let lost = |damaged| format!("{damaged} of `{path}` changed after it was saved and is lost");
                    restored.warnings.extend(damaged.map(lost));
                    let left = kept.left.as_ref().map(|left| count(left.count, "file"));
                    restored.warnings.extend(left.map(|left| format!("`{path}` lacks {left} that were not saved")));
                    outcome.created.push(kept.path.clone());
                }
                Err(error) if error.code() == Code::Conflict => {
                    restored.conflicts.push((kept.path.clone(), error.text()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(outcome)
    }
}

/// Says what a redo leaves in place that the turn had deleted.
pub(super) fn left_by_redo(restore: &Restore, loaded: &Loaded) -> Vec<String> {
    if restore.kind != OperationKind::Redo || restore.expected.is_none() {
        return Vec::new();
    }
    let repositories = restore.only.iter().flatten().filter(|path| path.name() == b".git");
    let mut left: Vec<String> = repositories
        .map(|path| format!("`{}` was not deleted: piton never deletes a repository", path.display()))
        .collect();
    if loaded.manifest.iter().next().is_none() {
        left.push("the directory of the workspace was not deleted".to_owned());
    }
    left
}
