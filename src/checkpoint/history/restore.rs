//! Bringing files back.
//!
//! select → `pre-restore` checkpoint (if it fails, nothing is touched) → plan against what it captured → journal
//! `Restoring`, durable → apply with a proof per path → journal `Restored`. What is replaced or deleted is therefore
//! always in the `pre-restore` checkpoint; what could not be captured is a conflict and stays.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use super::agreed::Agreed;
use super::interrupted::{RESTORING, Resume, refusal};
use super::journal::{Begin, End, External, Journal, Line, OpKind, quoted, unquoted};
use crate::checkpoint::capture::take::Take;
use crate::checkpoint::timeline::{Checkpoint, Timeline};
use crate::error::{Code, Error, Result};
use crate::filter::{CaptureJudge, CoverageView, Denial, Tracked, Verdict};
use crate::model::checkpoint::CheckpointKind;
use crate::model::coverage::Coverage;
use crate::model::id::ObjectId;
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::path::RelPath;
use crate::store::BlobReader;
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::interrupt::Flow;
use crate::sys::memory;
use crate::worktree::restore::{BlobSource, KeepReason, Outcome, Plan, PlanInput, Saved, apply, plan};
use crate::worktree::{Target, Warm};

/// What is to be restored.
#[derive(Clone, Debug)]
pub struct Restore {
    pub target: ObjectId,
    pub kind: OpKind,
    pub run: String,
    /// Paths with all that lies below them; empty means the whole tree.
    pub paths: Vec<RelPath>,
    /// Exactly these paths (an undo or redo steps over what an operation changed, and nothing else).
    pub only: Option<BTreeSet<RelPath>>,
    /// Files created since the checkpoint stay.
    pub keep_new: bool,
    /// The operation an undo or redo steps over.
    pub over: Option<String>,
    /// Limits what it may do.
    pub agreed: Agreed,
}

impl Restore {
    /// A restore of the whole tree or of some paths.
    pub fn to(target: ObjectId, run: &str, paths: Vec<RelPath>, keep_new: bool) -> Restore {
        let (only, over, agreed) = (None, None, Agreed::Anything);
        Restore { target, kind: OpKind::Restore, run: run.to_owned(), paths, only, keep_new, over, agreed }
    }

    /// True if a path is among those that are brought back.
    pub(in crate::checkpoint) fn selects(&self, path: &RelPath) -> bool {
        match &self.only {
            Some(only) => only.contains(path),
            None => self.paths.is_empty() || self.paths.iter().any(|ancestor| path.starts_with(ancestor)),
        }
    }
}

/// What a restore would do.
#[derive(Debug)]
pub struct Preview {
    pub target: Checkpoint,
    pub plan: Arc<Plan>,
    /// Names the plan: a restore that is given it does this plan or nothing.
    pub digest: String,
    pub stat: crate::checkpoint::catalog::diff::Stat,
    /// Effects after the target that bringing files back does not undo.
    pub externals: Vec<External>,
    pub warnings: Vec<String>,
}

/// What a restore did.
#[derive(Debug)]
pub struct Restored {
    /// `None` when there was nothing to do.
    pub operation: Option<String>,
    pub target: Checkpoint,
    /// The checkpoint that holds what was there before.
    pub pre_restore: Option<Checkpoint>,
    pub outcome: Outcome,
    pub conflicts: Vec<(RelPath, String)>,
    /// Paths that stay because the plan that was agreed to does not have them.
    pub not_agreed: Vec<RelPath>,
    pub externals: Vec<External>,
    pub warnings: Vec<String>,
}

/// The target of a restore, loaded.
pub(in crate::checkpoint) struct Loaded {
    pub(in crate::checkpoint) checkpoint: Checkpoint,
    manifest: Manifest,
    coverage: Coverage,
}

impl Timeline {
    /// Shows what a restore would do; nothing is stored or touched.
    ///
    /// # Errors
    /// `no-such-checkpoint`, `workspace-gone`, `store-damaged`, and those of reading.
    pub fn preview(&mut self, restore: &Restore, control: &dyn Fn() -> Flow) -> Result<Preview> {
        let loaded = self.load_target(restore.target)?;
        let take = self.safety_take(restore, &loaded);
        let present = self.look_before((restore, &loaded), &take, control)?;
        let plan = self.plan_for(restore, &loaded, (&present.manifest, &present.coverage), &Agreed::Anything)?;
        let planned: BTreeSet<&RelPath> = plan.touched().collect();
        let mut changes = self.changes(present.root, loaded.checkpoint.tree, &present.fresh)?;
        changes.retain(|change| planned.contains(&change.path));
        let stat = self.stat(&changes)?;
        let externals = self.externals_after(&loaded.checkpoint)?;
        let warnings = self.target_warnings(&loaded.coverage);
        let digest = restore.digest(&plan)?;
        Ok(Preview { target: loaded.checkpoint, plan: plan.into(), digest, stat, externals, warnings })
    }

    /// Restores.
    ///
    /// # Errors
    /// Before anything is touched: `rollback-in-progress` while an interrupted restore waits, `pre-restore-failed`,
    /// `incomplete-checkpoint` when content of the target is missing, `stale-plan` and `stale-selection` when something else was
    /// agreed to, and those of [`Timeline::preview`]. Afterwards failures of single paths are part of the result.
    pub fn restore(&mut self, restore: &Restore, control: &dyn Fn() -> Flow) -> Result<Restored> {
        let _lock = self.lock(RESTORING)?;
        if let Some(begin) = &self.history()?.interrupted {
            return Err(refusal(begin));
        }
        self.refuse_other_step(restore)?;
        self.run_restore(restore, None, &|_| {}, control)
    }

    pub(in crate::checkpoint) fn run_restore(
        &mut self,
        restore: &Restore,
        resume: Option<Resume>,
        tell: &dyn Fn(Stage<'_>),
        control: &dyn Fn() -> Flow,
    ) -> Result<Restored> {
        let loaded = self.load_target(restore.target)?;
        let externals = self.externals_after(&loaded.checkpoint)?;
        let warnings = self.target_warnings(&loaded.coverage);
        let take = self.safety_take(restore, &loaded);
        let (safety, seen) = self.take_before((restore, &loaded), &take, control).map_err(pre_restore_failed)?;
        let warm = if seen.scan.is_none() { self.warm.as_ref() } else { None };
        let present = match (&seen.scan, warm) {
            (Some(scan), _) => Cow::Borrowed(&scan.capture.manifest),
            (None, warm) => Cow::Owned(warm.map(Warm::manifest).unwrap_or_default()),
        };
        let mut plan = self.plan_for(restore, &loaded, (&present, &seen.coverage), &restore.agreed)?;
        self.name_left_out(&mut plan, &restore.agreed, &loaded.manifest)?;
        if let Err(stale) = restore.refuse_stale(&plan) {
            self.drop_ref(&safety.checkpoint.name, safety.checkpoint.id)?;
            return Err(stale);
        }
        tell(Stage::Planned(&plan, &loaded.checkpoint));
        let conflicts: Vec<(RelPath, String)> =
            plan.conflict.iter().map(|(path, why)| (path.clone(), why.to_string())).collect();
        let not_agreed = not_agreed(&plan, &restore.agreed);
        if plan.changes_nothing() && resume.is_none() && !self.moves_run(restore)? {
            self.drop_ref(&safety.checkpoint.name, safety.checkpoint.id)?;
            let outcome = Outcome { kept: kept(&plan), ..Outcome::default() };
            let target = loaded.checkpoint;
            return Ok(Restored {
                operation: None,
                target,
                pre_restore: None,
                outcome,
                conflicts,
                not_agreed,
                externals,
                warnings,
            });
        }
        let begin = match &resume {
            Some(resume) => resume.begin.clone(),
            None => self.announce(restore, &plan, safety.checkpoint.id)?,
        };
        let known = |path: &RelPath| match &seen.scan {
            Some(scan) => scan.capture.known.get(path).copied(),
            None => warm.and_then(|warm| warm.known_of(path)),
        };
        let saved = Saved { present: &present, known: &known };
        let applied = apply(&self.workspace.path, &plan, &saved, &Blobs(self.store.reader()?), control);
        let mut outcome = match applied {
            // Nothing was touched: the operation never was, unless an interrupted one goes on waiting.
            Err(error) => {
                if resume.is_none() {
                    Journal::in_dir(&self.workspace.dir).append(&[Line::Aborted { op: begin.op }])?;
                }
                return Err(error);
            }
            Ok(outcome) => outcome,
        };
        tell(Stage::Applied(&plan));
        outcome.kept.splice(0..0, kept(&plan));
        self.conclude(&begin, resume.as_ref(), &outcome)?;
        let operation = Some(begin.op);
        let pre_restore = Some(safety.checkpoint);
        let Loaded { checkpoint: target, manifest, .. } = loaded;
        let present = match present {
            Cow::Owned(present) => present,
            Cow::Borrowed(_) => Manifest::default(),
        };
        let parts = manifest.len() as u64;
        memory::drop_beside((present, manifest, take, seen), parts);
        Ok(Restored { operation, target, pre_restore, outcome, conflicts, not_agreed, externals, warnings })
    }

    /// The tree of one end of an interrupted restore.
    pub(in crate::checkpoint) fn load_end(&mut self, id: ObjectId) -> Result<Manifest> {
        self.load_target(id).map(|loaded| loaded.manifest)
    }

    fn load_target(&mut self, target: ObjectId) -> Result<Loaded> {
        let all = self.all()?;
        let own = all.checkpoints.iter().find(|checkpoint| checkpoint.id == target).cloned();
        let found = match own {
            Some(own) => Some(own),
            None => self.foreign()?.0.into_iter().find(|checkpoint| checkpoint.id == target),
        };
        let checkpoint = found.ok_or_else(|| {
            Error::new(Code::NoSuchCheckpoint, format!("checkpoint {} is not in this workspace", target.short()))
        })?;
        let (manifest, coverage) = self.contents(&checkpoint).map_err(incomplete)?;
        Ok(Loaded { checkpoint, manifest, coverage })
    }

    /// The `pre-restore` checkpoint captures every path that the target holds, whatever ignore rules, secrets and caps
    /// say: those are the ones that may be replaced.
    fn safety_take(&self, restore: &Restore, loaded: &Loaded) -> Take {
        let file = |path: &RelPath| Target { path: path.clone(), recursive: false };
        let held = loaded.manifest.iter().map(|(path, _)| path);
        let mut targets: Vec<Target> = held.filter(|path| restore.selects(path)).map(file).collect();
        // What an operation created is saved too before it is taken away again, whatever the rules say of it.
        let created = restore.only.iter().flatten();
        targets.extend(created.filter(|path| !loaded.manifest.contains(path)).map(file));
        let verb = match restore.kind {
            OpKind::Restore => "restore to",
            OpKind::Rollback => "rollback to",
            OpKind::Undo => "undo, back to",
            OpKind::Redo => "redo, to",
        };
        let target = match self.is_foreign(&loaded.checkpoint) {
            true => format!("{} of another machine", loaded.checkpoint.id.short()),
            false => format!("checkpoint {}", loaded.checkpoint.record.ordinal),
        };
        let reason = format!("before {verb} {target}");
        Take { targets, unlimited: true, always: true, ..Take::of(CheckpointKind::PreRestore, &restore.run, &reason) }
    }

    fn plan_for(
        &self,
        restore: &Restore,
        loaded: &Loaded,
        (present, coverage): (&Manifest, &Coverage),
        agreed: &Agreed,
    ) -> Result<Plan> {
        let gitignore = |dir: &RelPath| {
            let entry = loaded.manifest.get(&dir.join(b".gitignore")).filter(|entry| entry.kind == EntryKind::File)?;
            self.read_record(&entry.id).ok()
        };
        let exists = |path: &RelPath| loaded.manifest.contains(path);
        let view = CoverageView { gitignore: &gitignore, exists: &exists };
        // The paths of an undo or redo are those an operation changed: it had proven that what it created was absent.
        let stepping = restore.only.is_some();
        // Without its rules nothing proves that the checkpoint would have captured a path: nothing is deleted then.
        let rules = loaded
            .manifest
            .iter()
            .filter(|(path, entry)| path.name() == b".gitignore" && entry.kind == EntryKind::File);
        let rules_known = self.has_rules(&mut rules.map(|(_, entry)| entry.id))?;
        let judge = CaptureJudge::new(&loaded.coverage, &view);
        // Inputs that are read-only now are no business of a run's, whatever the target knew of them.
        let inputs: &[String] = if loaded.checkpoint.record.kind.is_typed() { &self.policy.read_only } else { &[] };
        let allowed = Tracked::new(&[], inputs)?;
        let made = self.made_since(&loaded.checkpoint, &loaded.coverage, present)?;
        // A directory that patterns say nothing of goes with what they track in it.
        let holds_files = |dir: &RelPath| present.inside(dir).any(|(_, entry)| entry.kind != EntryKind::Dir);
        let goes_along = |path: &RelPath, entry: &ManifestEntry| entry.kind == EntryKind::Dir && holds_files(path);
        let covered = |path: &RelPath, entry: &ManifestEntry| match judge.verdict(path, entry) {
            Verdict::Yes | Verdict::No(Denial::Untracked) if !stepping && !allowed.matches(path) => {
                Err("a read-only input".to_owned())
            }
            Verdict::No(Denial::Untracked) if rules_known && goes_along(path, entry) => Ok(()),
            Verdict::No(Denial::Untracked) if rules_known && made.contains(path) => Ok(()),
            _ if !stepping && !rules_known => Err("the checkpoint's ignore rules are lost".to_owned()),
            Verdict::No(why) if !stepping => Err(why.to_string()),
            Verdict::No(_) | Verdict::Yes => Ok(()),
        };
        let target_skipped = |path: &RelPath| !stepping && loaded.coverage.skip_of(path).is_some();
        let input = PlanInput {
            target: &loaded.manifest,
            present,
            present_skipped: &coverage.skipped,
            select: &restore.paths,
            keep_new: restore.keep_new,
            covered: &covered,
            target_skipped: &target_skipped,
            agreed: &|path, from, to| agreed.on(path, from, to),
        };
        let mut plan = plan(&input);
        if let Some(only) = &restore.only {
            plan.retain(&|path| only.contains(path));
        }
        Ok(plan)
    }

    fn announce(&self, restore: &Restore, plan: &Plan, pre_restore: ObjectId) -> Result<Begin> {
        let begin = Begin {
            op: format!("o-{}", self.history()?.next),
            kind: restore.kind,
            run: restore.run.clone(),
            target: restore.target,
            pre_restore,
            paths: quoted(&restore.paths),
            only: restore.only.as_ref().map(quoted),
            planned: quoted(plan.touched()),
            keep_new: restore.keep_new,
            over: restore.over.clone(),
            time: rfc3339(now_ms()),
        };
        Journal::in_dir(&self.workspace.dir).append(&[Line::Restoring(begin.clone())])?;
        Ok(begin)
    }

    fn conclude(&mut self, begin: &Begin, resume: Option<&Resume>, outcome: &Outcome) -> Result<()> {
        let journal = Journal::in_dir(&self.workspace.dir);
        if resume.is_some_and(|resume| !resume.go_on) {
            self.move_with(begin, true)?;
            return journal.append(&[Line::Aborted { op: begin.op.clone() }]);
        }
        let mut changed: BTreeSet<RelPath> = outcome.changed().cloned().collect();
        if resume.is_some() {
            // What the interrupted attempt had changed already is part of the operation too.
            changed.extend(unquoted(&begin.planned)?);
        }
        self.move_with(begin, false)?;
        let (all, _) = self.checkpoints()?;
        let end = End {
            op: begin.op.clone(),
            changed: quoted(&changed),
            failed: outcome.failed.len() as u64,
            ordinal: self.next_ordinal(&all) - 1,
        };
        journal.append(&[Line::Restored(end)])
    }

    /// Recorded effects that going back to `target` does not undo.
    fn externals_after(&self, target: &Checkpoint) -> Result<Vec<External>> {
        let history = self.history()?;
        if self.is_foreign(target) {
            // Its number counts elsewhere; times are all that both have.
            let later = history.externals.iter().filter(|external| external.time >= target.record.time);
            return Ok(later.cloned().collect());
        }
        Ok(history.external_since(target.record.ordinal).cloned().collect())
    }
}

/// How far a restore has come.
#[derive(Clone, Copy, Debug)]
pub enum Stage<'p> {
    /// What is there is saved, and this is about to be done; to go back to that checkpoint.
    Planned(&'p Plan, &'p Checkpoint),
    /// The files are back.
    Applied(&'p Plan),
}

/// The store as a restore reads it.
pub(in crate::checkpoint) struct Blobs<'s>(pub(in crate::checkpoint) BlobReader<'s>);

impl BlobSource for Blobs<'_> {
    fn has(&self, id: &ObjectId) -> Result<bool> {
        self.0.has(id)
    }

    fn read(&self, id: &ObjectId, _size: u64) -> Result<Option<Vec<u8>>> {
        self.0.read_blob(id)
    }

    fn size(&self, id: &ObjectId) -> Result<Option<u64>> {
        Ok(self.0.blob_size(id))
    }

    fn copy(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        self.0.copy_blob(id, out)
    }
}

/// What the plan keeps, with reasons for people.
fn kept(plan: &Plan) -> Vec<(RelPath, String)> {
    plan.keep.iter().map(|(path, why)| (path.clone(), why.to_string())).collect()
}

/// What stays because the plan that was agreed to does not have it. What that kept too was shown already.
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

fn incomplete(error: Error) -> Error {
    match error.code() {
        Code::StoreDamaged | Code::NoSuchCheckpoint => {
            Error::new(Code::IncompleteCheckpoint, format!("the checkpoint cannot be read whole: {}", error.text()))
                .hint("nothing was changed; choose another checkpoint")
                .caused_by(error)
        }
        _ => error,
    }
}
