//! Bringing files back.
//!
//! select → `pre-restore` checkpoint (if it fails, nothing is touched) → plan against what it captured → journal
//! `Restoring`, durable → apply with a proof per path → journal `Restored`. A replaced or deleted file is therefore
//! always in the `pre-restore` checkpoint; a file that could not be captured is a conflict and stays.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::agreed::Agreed;
use super::blobs::Blobs;
use super::interrupted::stopped;
use super::journal::{Line, OperationEnd, OperationStart, quoted, unquoted};
use super::logged_limits::LoggedLimits;
use super::request::{Near, Preview, Restore, RestoreStage, Restored, Resume};
use super::target::incomplete;
use crate::checkpoint::capture::capturer::Capturer;
use crate::checkpoint::capture::observe::Observation;
use crate::checkpoint::catalog::diff::{LiveSide, Stat};
use crate::checkpoint::catalog::layers::joined;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::locked::Locked;
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::model::manifest::Manifest;
use crate::model::path::RelPath;
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::interrupt::Flow;
use crate::sys::memory;
use crate::worktree::Warm;
use crate::worktree::restore::{KeepReason, Outcome, Plan, Saved, apply};

impl Capturer {
    /// Shows what a restore would do; nothing is stored or touched.
    ///
    /// # Errors
    /// `no-such-checkpoint`, `workspace-gone`, `store-damaged`, and those of reading.
    pub(crate) fn preview(
        &mut self,
        catalog: &Catalog,
        restore: &Restore,
        control: &dyn Fn() -> Flow,
    ) -> Result<Preview> {
        let near = Near::of(restore);
        let loaded = catalog.load_whole_target(restore, near.as_ref())?;
        let take = catalog.safety_take(restore, &loaded);
        let present = self.look_before(catalog, restore, &loaded, &take, control)?;
        let there = match &near {
            Some(near) => Cow::Owned(near.part_of(&present.manifest)),
            None => Cow::Borrowed(&present.manifest),
        };
        let plan =
            catalog.plan_for(restore, &loaded, &there, (&present.coverage, &present.private), &Agreed::Anything)?;
        let planned: BTreeSet<&RelPath> = plan.touched().collect();
        let mut changes = catalog.changes(present.root, loaded.root, &present.fresh)?;
        changes.retain(|change| planned.contains(&change.path));
        let lines = catalog.line_counts(&changes, LiveSide::Old).map_err(incomplete)?;
        let stat = Stat::of(&changes, &lines);
        let externals = catalog.externals_after(restore, &loaded.checkpoint)?;
        let warnings = catalog.warnings_of(restore, &loaded, &plan)?;
        let digest = restore.digest(&plan)?;
        // A step over a turn acts on nothing but what the turn has left.
        let outside_edits = match restore.expected {
            Some(_) => Vec::new(),
            None => catalog.outside_edits(&plan, &restore.run)?,
        };
        let shares = restore.expected.as_ref().map(|expected| expected.shares.clone()).unwrap_or_default();
        let repositories = restore.repositories.iter().map(|kept| kept.path.clone()).collect();
        let is_private =
            |path: &&RelPath| [&loaded.private, &present.private].iter().any(|private| private.manifest.contains(path));
        let private = plan.touched().filter(is_private).cloned().collect();
        let target = loaded.checkpoint;
        Ok(Preview {
            target,
            plan: plan.into(),
            digest,
            stat,
            lines,
            externals,
            warnings,
            outside_edits,
            shares,
            repositories,
            private,
        })
    }
}

impl Locked<'_> {
    /// Restores.
    ///
    /// # Errors
    /// Before anything is touched: `rollback-in-progress` while an interrupted restore waits, `pre-restore-failed`,
    /// `incomplete-checkpoint` when content of the target is missing, `stale-plan` and `stale-selection` when another
    /// plan was agreed to, and those of [`Capturer::preview`]. Afterwards failures of single paths are part of the
    /// result.
    pub(crate) fn restore(&mut self, restore: &Restore, control: &dyn Fn() -> Flow) -> Result<Restored> {
        self.refuse_interrupted()?;
        self.catalog.refuse_other_step(restore)?;
        self.run_restore(restore, None, &|_| {}, control)
    }

    /// Carries a restore out. The changes of open turns are written down first, so that they are not lost among its own.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(crate) fn run_restore(
        &mut self,
        restore: &Restore,
        resume: Option<Resume>,
        tell: &dyn Fn(RestoreStage<'_>),
        control: &dyn Fn() -> Flow,
    ) -> Result<Restored> {
        let warn = |error: Error| tracing::warn!(%error, "cannot determine which files the open turns have changed");
        if resume.is_none() {
            self.settle_turns(control).unwrap_or_else(warn);
        }
        let restored = self.bring_back(restore, resume, tell, control)?;
        if restored.operation.is_some() {
            let changed: Vec<RelPath> = restored.outcome.changed().cloned().collect();
            self.cut_turns(&changed, control).unwrap_or_else(warn);
        }
        Ok(restored)
    }

    fn bring_back(
        &mut self,
        restore: &Restore,
        resume: Option<Resume>,
        tell: &dyn Fn(RestoreStage<'_>),
        control: &dyn Fn() -> Flow,
    ) -> Result<Restored> {
        let near = Near::of(restore);
        let loaded = self.catalog.load_whole_target(restore, near.as_ref())?;
        let externals = self.catalog.externals_after(restore, &loaded.checkpoint)?;
        let take = self.catalog.safety_take(restore, &loaded);
        let (safety, observed) = self.take_before(restore, &loaded, &take, control).map_err(pre_restore_failed)?;
        let catalog = &*self.catalog;
        let warm = if observed.scan.is_none() { self.capturer.tree() } else { None };
        let present = present(&observed, warm, near.as_ref());
        let mut plan =
            catalog.plan_for(restore, &loaded, &present, (&observed.coverage, &observed.private), &restore.agreed)?;
        catalog.name_left_out(&mut plan, &restore.agreed, &loaded.manifest)?;
        // Checked only now, under the lock and with the plan that would really be done.
        if let Err(stale) = restore.refuse_stale(&plan) {
            self.drop_ref(&safety.checkpoint.name, safety.checkpoint.id)?;
            return Err(stale);
        }
        tell(RestoreStage::Planned(&plan, &loaded.checkpoint));
        let mut restored = Restored {
            // Asked before the swap: afterwards the names lead to other files.
            warnings: catalog.warnings_of(restore, &loaded, &plan)?,
            operation: None,
            target: loaded.checkpoint,
            pre_restore: None,
            outcome: Outcome::default(),
            directories: plan.directories().cloned().collect(),
            conflicts: plan.conflict.iter().map(|(path, why)| (path.clone(), why.to_string())).collect(),
            left: plan.left(),
            changed_since: plan.changed_since().cloned().collect(),
            not_agreed: not_agreed(&plan, &restore.agreed),
            externals,
        };
        if restore.is_idle(&plan) && resume.is_none() && !catalog.moves_run(restore)? {
            // Nothing has to be undone, so the safety checkpoint would only fill the list.
            self.drop_ref(&safety.checkpoint.name, safety.checkpoint.id)?;
            restored.outcome.kept = kept(&plan);
            return Ok(restored);
        }
        let begin = match &resume {
            Some(resume) => resume.begin.clone(),
            None => self.announce(restore, &plan, safety.checkpoint.id)?,
        };
        let known = |path: &RelPath| match &observed.scan {
            Some(scan) => scan.capture.known.get(path).copied(),
            None => warm.and_then(|warm| warm.known_of(path)),
        };
        let saved = Saved { present: &present, known: &known };
        let blobs = Blobs::of(catalog)?;
        let work = || apply(&catalog.workspace.path, &plan, &saved, &blobs, catalog.work(control));
        let applied = catalog.apply_with_repositories(restore, &mut restored, work);
        let mut outcome = self.concluded(&begin, resume.is_some(), applied)?;
        tell(RestoreStage::Applied(&plan));
        outcome.kept.splice(0..0, kept(&plan));
        self.conclude(&begin, resume.as_ref(), &outcome)?;
        (restored.operation, restored.pre_restore) = (Some(begin.op), Some(safety.checkpoint));
        restored.outcome = outcome;
        let manifest = loaded.manifest;
        let present = match present {
            Cow::Owned(present) => present,
            Cow::Borrowed(_) => Manifest::default(),
        };
        let parts = manifest.len() as u64;
        // Freeing millions of entries takes long, and the client waits for the reply.
        memory::drop_beside((present, manifest, take, observed), parts);
        Ok(restored)
    }

    /// Returns the outcome of the steps of a restore. One that changed nothing is noted as aborted, unless it was resumed. One that was
    /// stopped in the middle stays open where a person can end it.
    fn concluded(&self, begin: &OperationStart, is_resumed: bool, applied: Result<Outcome>) -> Result<Outcome> {
        match applied {
            Err(error) if is_resumed => Err(error),
            Err(error) => {
                self.append(&[Line::Aborted { op: begin.op.clone() }])?;
                Err(error)
            }
            // The journal has no end of it, as after a crash.
            Ok(outcome) if outcome.stopped && (is_resumed || self.catalog.is_attended) => Err(stopped(begin, &outcome)),
            Ok(outcome) => Ok(outcome),
        }
    }

    fn announce(&self, restore: &Restore, plan: &Plan, pre_restore: ObjectId) -> Result<OperationStart> {
        let begin = OperationStart {
            op: format!("o-{}", self.catalog.history()?.next),
            kind: restore.kind,
            run: restore.run.clone(),
            target: restore.composed.unwrap_or(restore.target),
            pre_restore,
            paths: quoted(&restore.paths),
            limits: LoggedLimits::of(&restore.limits),
            only: restore.only.as_ref().map(quoted),
            planned: quoted(plan.touched()),
            keep_new: restore.keep_new,
            local: restore.local,
            over: restore.over.clone(),
            partial: restore.partial,
            in_hunks: restore.paths_in_hunks(),
            time: rfc3339(now_ms()),
        };
        // Durable before the first file changes: an interrupted restore has to be known.
        self.append(&[Line::Restoring(begin.clone())])?;
        Ok(begin)
    }

    fn conclude(&self, begin: &OperationStart, resume: Option<&Resume>, outcome: &Outcome) -> Result<()> {
        if resume.is_some_and(|resume| !resume.go_on) {
            self.move_with(begin, true)?;
            return self.append(&[Line::Aborted { op: begin.op.clone() }]);
        }
        let mut changed: BTreeSet<RelPath> = outcome.changed().cloned().collect();
        if resume.is_some() {
            // The changes of the interrupted attempt are part of the operation too.
            changed.extend(unquoted(&begin.planned)?);
        }
        // The run moves before the last line: a restore that dies in between is still open, and `--continue` moves it
        // again.
        self.move_with(begin, false)?;
        let end = OperationEnd {
            op: begin.op.clone(),
            changed: quoted(&changed),
            failed: outcome.failed.len() as u64,
            ordinal: self.catalog.newest_ordinal()?,
        };
        self.append(&[Line::Restored(end)])
    }
}

/// Returns the paths that the checkpoint before a restore has saved; only those `near` the paths of a step over a turn.
fn present<'o>(observed: &'o Observation, warm: Option<&Warm>, near: Option<&Near>) -> Cow<'o, Manifest> {
    let shared = match (&observed.scan, warm, near) {
        (Some(scan), _, None) => Cow::Borrowed(&scan.capture.manifest),
        (Some(scan), _, Some(near)) => Cow::Owned(near.part_of(&scan.capture.manifest)),
        (None, Some(warm), Some(near)) => Cow::Owned(warm.manifest_near(&near.paths)),
        (None, warm, _) => Cow::Owned(warm.map(Warm::manifest).unwrap_or_default()),
    };
    let private = &observed.private.manifest;
    match (private.is_empty(), near) {
        (true, _) => shared,
        (false, None) => Cow::Owned(joined(shared.into_owned(), private)),
        (false, Some(near)) => Cow::Owned(joined(shared.into_owned(), &near.part_of(private))),
    }
}

/// Lists what the plan keeps, with reasons for people.
fn kept(plan: &Plan) -> Vec<(RelPath, String)> {
    plan.keep.iter().map(|(path, why)| (path.clone(), why.to_string())).collect()
}

/// Lists the paths that stay because the agreed plan does not have them. Paths that it kept too were shown already.
fn not_agreed(plan: &Plan, agreed: &Agreed) -> Vec<RelPath> {
    let shown = |path: &RelPath| match agreed {
        Agreed::Plan(shown) => shown.keep.binary_search_by(|(at, _)| at.cmp(path)).is_ok(),
        Agreed::Anything | Agreed::Digest(_) | Agreed::Rest(_) => false,
    };
    let kept = plan.keep.iter().filter(|(_, why)| *why == KeepReason::NotAgreed).map(|(path, _)| path);
    kept.filter(|path| !shown(path)).cloned().collect()
}

fn pre_restore_failed(error: Error) -> Error {
    match error.code() {
        Code::WorkspaceGone | Code::ShuttingDown | Code::StoreLocked => error,
        _ => {
            let text =
                format!("the safety checkpoint before the restore failed, so nothing was changed: {}", error.text());
            Error::new(Code::PreRestoreFailed, text).caused_by(error)
        }
    }
}
