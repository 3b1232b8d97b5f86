//! Taking a checkpoint.
//!
//! Crash order: objects → ref (compare-and-swap) → state → stamps. Each later thing may be missing and is found again
//! from the earlier ones: a crash between two of them costs a scan or a number, never a checkpoint.

use std::sync::Arc;
use std::time::Instant;

use super::seen::{Before, Into, Scan, Seen};
use crate::checkpoint::catalog::dropped::{self, DroppedCheckpoint};
use crate::checkpoint::catalog::retention::{DropReason, plan};
use crate::checkpoint::catalog::selector::Selector;
use crate::checkpoint::records::state::{Detached, State};
use crate::checkpoint::timeline::{Checkpoint, LOCK_WAIT, Timeline};
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::{CheckpointKind, Record};
use crate::model::cost::Cost;
use crate::model::coverage::{Coverage, Extent, SkipReason};
use crate::model::effect::{Class, Takes};
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::policy::Secrets;
use crate::model::redact::redact;
use crate::store::{BOUNDS, Batch, NewCommit, Slice};
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::interrupt::Flow;
use crate::sys::memory;
use crate::worktree::Target;
use crate::worktree::stamps::Stamps;

use crate::checkpoint::records::workspace::Scope;

/// What a checkpoint is taken for.
#[derive(Clone, Debug)]
pub struct Take {
    pub kind: CheckpointKind,
    pub run: String,
    pub turn: Option<String>,
    pub codon_id: Option<String>,
    pub codon_name: Option<String>,
    /// When the codon began, milliseconds since the epoch.
    pub since: Option<i64>,
    /// One line for people. Secrets are taken out of it when it is recorded.
    pub reason: String,
    pub effects: Vec<Class>,
    /// Paths that are about to be destroyed: captured whatever the rules say.
    pub targets: Vec<Target>,
    /// Whether targets know no budget (before a restore).
    pub unlimited: bool,
    /// Record it even when nothing changed.
    pub always: bool,
    pub pinned: bool,
    /// Only these paths; empty means everything.
    pub only: Vec<RelPath>,
    /// Whose `.git` goes with the targets; others are left alone although the directories around them are emptied.
    pub takes: Takes,
    /// The checkpoint that protects the turn already: what equals it, or the workspace's newest, is not recorded again.
    pub held: Option<ObjectId>,
    /// When it was asked for: what [`Timeline::sync_ahead`] has heard since need not be asked again. Changes after that moment
    /// need not be in the checkpoint.
    pub asked: Option<Instant>,
}

impl Take {
    /// A request for looking, which is not recorded.
    pub(in crate::checkpoint) fn any() -> Take {
        Take::of(CheckpointKind::Auto, "local", "looking")
    }

    /// Whether it names what an action is about to destroy. What a restore names is everything that it could touch; what it will
    /// touch is looked at once that is known ([`Timeline::take_before`]).
    pub(in crate::checkpoint) fn names_targets(&self) -> bool {
        !self.targets.is_empty() && !self.unlimited
    }

    /// A plain request of a kind, for a run, with a reason.
    pub fn of(kind: CheckpointKind, run: &str, reason: &str) -> Take {
        Take {
            kind,
            run: run.to_owned(),
            turn: None,
            codon_id: None,
            codon_name: None,
            since: None,
            reason: reason.to_owned(),
            effects: Vec::new(),
            targets: Vec::new(),
            unlimited: false,
            always: kind.is_typed(),
            pinned: false,
            only: Vec::new(),
            takes: Takes::Repositories,
            held: None,
            asked: None,
        }
    }
}

/// A checkpoint that was taken, or the equal one that was there already.
#[derive(Clone, Debug)]
pub struct Taken {
    pub checkpoint: Checkpoint,
    /// Nothing had changed since `checkpoint`.
    pub unchanged: bool,
    pub coverage: Arc<Coverage>,
    /// Paths that differ from the run's previous checkpoint (from the workspace's, for a run's first); `None` if that one is damaged.
    pub changed: Option<u64>,
    pub ms: f64,
    /// Where the time went.
    pub cost: Cost,
    pub warnings: Vec<String>,
}

impl Timeline {
    /// Takes a checkpoint.
    ///
    /// # Errors
    /// `workspace-gone`, `store-locked`, `disk-full`, `permission`, `shutting-down` when `control` stopped it; `bad-request` for a
    /// label that could never be found. Nothing is recorded then.
    pub fn take(&mut self, take: &Take, control: &dyn Fn() -> Flow) -> Result<Taken> {
        if take.kind == CheckpointKind::Manual {
            Selector::check_label(&take.reason)?;
        }
        let lock = self.lock(take.kind.as_str())?;
        let taken = self.take_locked(take, control);
        drop(lock);
        taken.map(|(taken, seen)| {
            let files = seen.totals.0;
            memory::drop_beside(seen, files);
            taken
        })
    }

    /// Drops a leaf that a whole checkpoint of the same moment has made superfluous.
    ///
    /// # Errors
    /// Returns the errors of the lock and of the ref.
    pub fn forget(&mut self, leaf: &Checkpoint) -> Result<()> {
        let _lock = self.lock("dropping a leaf")?;
        self.drop_ref(&leaf.name, leaf.id)
    }

    /// The checkpoints that may hold what an action of a turn is about to destroy: the workspace's newest, if `later` ones count, and
    /// the turn's own. What retention has dropped protects nobody.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn protecting(&mut self, slot: Option<ObjectId>, later: bool) -> Result<Vec<Checkpoint>> {
        let all = self.all()?;
        let newest = all.checkpoints.iter().rev().find(|checkpoint| checkpoint.record.is_whole()).filter(|_| later);
        let own = all.checkpoints.iter().rev().find(|checkpoint| Some(checkpoint.id) == slot);
        let own = own.filter(|own| newest.is_none_or(|newest| newest.id != own.id));
        Ok(newest.into_iter().chain(own).cloned().collect())
    }

    /// True if a checkpoint holds everything that stands at `targets` now. True without targets; false for a damaged checkpoint.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub fn holds(&mut self, held: &ObjectId, targets: &[Target], control: &dyn Fn() -> Flow) -> Result<bool> {
        match self.holds_whole(held, targets, control) {
            Err(error) if matches!(error.code(), Code::StoreDamaged | Code::NoSuchCheckpoint) => Ok(false),
            held => held,
        }
    }

    fn holds_whole(&mut self, held: &ObjectId, targets: &[Target], control: &dyn Fn() -> Flow) -> Result<bool> {
        if !self.store.has(held)? {
            return Ok(false);
        }
        if targets.is_empty() || self.holds_warm(held, targets, control)? {
            return Ok(true);
        }
        let only = targets.iter().map(|target| target.path.clone()).collect();
        let take = Take { targets: targets.to_vec(), only, ..Take::of(CheckpointKind::Auto, "local", "looking") };
        let present = self.look(&take, control)?;
        let tree = self.store.read_commit(held)?.tree;
        let is_near = |path: &RelPath| targets.iter().any(|to| path.starts_with(&to.path) || to.path.starts_with(path));
        let (held, _) = self.load(&tree, &is_near)?;
        // Permissions too: a key that was made private must not come back readable by all.
        let is_named = |path: &RelPath| targets.iter().any(|target| path.starts_with(&target.path));
        let mut named = present.manifest.iter().filter(|(path, _)| is_named(path));
        if !named.all(|(path, entry)| held.get(path).is_some_and(|held| held.same(entry))) {
            return Ok(false);
        }
        self.admits_gaps(&tree, &present.coverage)
    }

    /// The ordinal of the newest checkpoint; 0 when there is none.
    ///
    /// # Errors
    /// Returns the errors of listing.
    pub fn newest_ordinal(&mut self) -> Result<u64> {
        let all = self.all()?;
        Ok(self.next_ordinal(&all.checkpoints) - 1)
    }

    /// The same, with the workspace lock held by the caller; also gives what was captured.
    pub(in crate::checkpoint) fn take_locked(
        &mut self,
        take: &Take,
        control: &dyn Fn() -> Flow,
    ) -> Result<(Taken, Seen)> {
        let started = Instant::now();
        let widened = self.widened(take)?;
        let take = widened.as_ref().unwrap_or(take);
        self.require_workspace()?;
        self.refuse_too_broad(take)?;
        let _shared = self.store.lock_shared(take.kind.as_str(), LOCK_WAIT)?;
        self.store.renew()?;
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        let list_us = started.elapsed().as_micros() as u64;
        // Only what succeeds is put back: after an error the next capture scans.
        let mut warmth = self.take_warmth();
        self.hear(&mut warmth, take, control)?;
        let (mut seen, before, batch) = match self.see_quiet(take, &mut warmth) {
            Some(seen) => (seen, None, None),
            None => {
                let batch = self.store.batch()?;
                let (seen, before) = match self.see_warm(take, &mut warmth, &batch, control)? {
                    Some(seen) => (seen, None),
                    None => {
                        let (seen, before) = self.scan(take, all, warmth.stamps()?, &batch, control)?;
                        (seen, Some(before))
                    }
                };
                (seen, before, Some(batch))
            }
        };
        seen.cost.list_us = list_us;
        let previous = self.newest_of_run(all, &take.run);
        let newest = all.iter().rev().find(|checkpoint| checkpoint.record.is_whole());
        let narrowed = all.iter().rev().find(|c| c.record.kind.is_typed() && c.record.run == take.run);
        let tracked = !seen.coverage.tracked.is_empty() || !seen.coverage.read_only.is_empty();
        let base = narrowed.filter(|_| tracked).or(previous).or(newest);
        let changed = match base {
            // It only says how much changed: a damaged base stops no checkpoint.
            Some(base) => self.count_changes(base.tree, seen.root, &seen.fresh).inspect_err(|error| {
                tracing::warn!(%error, n = base.record.ordinal, "how much changed is not known: the checkpoint before is damaged");
            }).ok(),
            None => Some(seen.totals.0),
        };
        // A base capture only keeps objects alive: any checkpoint of the same content does. So does a further one of a turn.
        let own = take.held.and_then(|held| all.iter().rev().find(|checkpoint| checkpoint.id == held));
        let tip = if take.kind.is_typed() && !take.always { self.typed_at(self.run_tip(&take.run)?.1)? } else { None };
        let measures = match (take.kind, take.held) {
            (CheckpointKind::Turn, _) => [None, None, newest],
            (kind, _) if kind.is_typed() => [None, tip.as_ref(), None],
            (_, Some(_)) => [own, previous, newest],
            (_, None) => [None, previous, None],
        };
        let same = measures.into_iter().flatten().find(|measure| measure.tree == seen.root && !take.always).cloned();
        let is_gone = same.as_ref().map_or(Ok(false), |same| self.store.has(&same.id).map(|has| !has))?;
        if let Some(same) = same.filter(|_| !is_gone) {
            batch.map(Batch::finish).transpose()?;
            self.put_back(warmth, before, &seen, take)?;
            return Ok((self.account(taken(same, true, Some(0), &seen, started)), seen));
        }
        let batch = batch.map_or_else(|| self.store.batch(), Ok)?;
        let checkpoint = self.commit(take, &mut seen, all, batch)?;
        match is_gone {
            false => self.add(known, &checkpoint),
            // It went with its pack, and others may have: what is remembered of them is read again.
            true => self.forget_commits(),
        }
        self.put_back(warmth, before, &seen, take)?;
        Ok((self.account(taken(checkpoint, false, changed, &seen, started)), seen))
    }

    fn account(&mut self, taken: Taken) -> Taken {
        let record = &taken.checkpoint.record;
        tracing::debug!(kind = record.kind.as_str(), n = record.ordinal, cost = ?taken.cost, "checkpoint");
        self.cost = Some(taken.cost);
        taken
    }

    /// Captures by looking at everything.
    fn scan(
        &self,
        take: &Take,
        all: &[Checkpoint],
        held: Option<Stamps>,
        batch: &Batch<'_>,
        control: &dyn Fn() -> Flow,
    ) -> Result<(Seen, Before)> {
        let known = self.known_now(take, all, held, control)?;
        let seen = match self.capture_with(take, &known, Into::Batch(batch), control) {
            Err(error) if error.code() == Code::StoreDamaged => {
                tracing::warn!(%error, "the store lost objects that stamps name; scanning everything");
                self.capture_with(take, &known.distrusted(), Into::Batch(batch), control)?
            }
            other => other?,
        };
        Ok((seen, known))
    }

    pub(in crate::checkpoint) fn require_workspace(&self) -> Result<()> {
        let path = &self.workspace.path;
        // A link in its place would lead piton into somebody else's files.
        if path.is_dir() && path.canonicalize().is_ok_and(|real| real == *path) {
            return Ok(());
        }
        Err(Error::new(Code::WorkspaceGone, "the workspace is not a directory any more")
            .path(path)
            .hint("its checkpoints are kept: `piton restore N --to DIR --workspace PATH` brings files back elsewhere"))
    }

    /// A directory like `/` is captured only where an action is about to destroy something.
    fn refuse_too_broad(&self, take: &Take) -> Result<()> {
        if self.workspace.scope == Scope::Tree || !take.targets.is_empty() || take.kind.is_typed() {
            return Ok(());
        }
        Err(Error::new(Code::WorkspaceRefused, "this directory is too broad to be captured as a whole")
            .path(&self.workspace.path)
            .hint("name a project directory with --workspace, or some paths: `piton checkpoint -- PATH`"))
    }

    fn commit(&self, take: &Take, seen: &mut Seen, all: &[Checkpoint], batch: Batch<'_>) -> Result<Checkpoint> {
        let (branch, tip) = self.run_tip(&take.run)?;
        let ordinal = self.next_ordinal(all);
        let record = self.record(take, seen, ordinal);
        let parents: Vec<ObjectId> = tip.into_iter().collect();
        let commit = NewCommit { tree: seen.root, parents: &parents, message: &record.message(), time_ms: now_ms() };
        let writing = Instant::now();
        let id = batch.put_commit(&commit)?;
        let name = if take.kind.is_typed() {
            branch
        } else {
            format!("{}{}/{ordinal}", self.leaf_prefix(), take.kind.as_str())
        };
        let expect = if take.kind.is_typed() { self.branch_target(&name)? } else { None };
        seen.cost.objects = self.land(batch, &name, expect, id)?.objects;
        self.use_ordinal(ordinal);
        seen.cost.write_us = writing.elapsed().as_micros() as u64;
        // The ordinal is found again from the refs; it is written down before any of them is dropped.
        if take.kind.is_typed() {
            let mut state = self.state();
            if state.detached.remove(&take.run).is_some() {
                self.save_state(&state);
            }
        }
        Ok(Checkpoint { id, tree: seen.root, parents, record: record.into(), name: name.into() })
    }

    fn branch_target(&self, name: &str) -> Result<Option<ObjectId>> {
        let found = self.refs(&self.branch_prefix())?.into_iter().find(|entry| entry.name == name);
        found.map(|entry| entry.target.map_err(|what| Error::new(Code::StoreDamaged, what))).transpose()
    }

    /// The checkpoint stands once its ref does; a state file that cannot be written is found again from the refs.
    fn save_state(&self, state: &State) {
        if let Err(error) = state.save(&self.workspace.dir) {
            tracing::warn!(%error, "the state file could not be written");
        }
    }

    fn record(&self, take: &Take, seen: &Seen, ordinal: u64) -> Record {
        let coverage = &seen.coverage;
        let (files, bytes) = seen.totals;
        // One look at the clock: a record's time less its duration is when its codon began.
        let now = now_ms();
        Record {
            kind: take.kind,
            ordinal,
            workspace: self.workspace.id.clone(),
            run: take.run.clone(),
            turn: take.turn.as_deref().map(redact),
            codon_id: take.codon_id.as_deref().map(redact),
            // The caller may have been less careful: what is recorded may be sent to others.
            codon_name: take.codon_name.as_deref().map(redact),
            reason: redact(&take.reason),
            time: rfc3339(now),
            duration_ms: take.since.map(|since| u64::try_from(now.saturating_sub(since)).unwrap_or(0)),
            effects: take.effects.clone(),
            files,
            bytes,
            skipped: coverage.skipped.len() as u64,
            flags: self.flags(take, seen),
            pinned: take.pinned,
        }
    }

    fn flags(&self, take: &Take, seen: &Seen) -> Vec<String> {
        let (coverage, targeted) = (&seen.coverage, seen.stats.targeted > 0);
        let holds_secrets = self.policy.secrets == Secrets::Always || targeted;
        let secrets = || seen.scan.as_ref().map_or(seen.secrets, Scan::has_secrets);
        let flags = [
            ("partial", coverage.is_partial()),
            ("paths", coverage.extent != Extent::Tree),
            ("tracked", !coverage.tracked.is_empty() || !coverage.read_only.is_empty()),
            ("targeted", targeted && take.kind != CheckpointKind::PreRestore),
            ("secrets", holds_secrets && secrets()),
            ("unstable", !coverage.unstable.is_empty()),
            ("not-held", coverage.skipped.values().any(|why| why.is_of_target())),
        ];
        flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag.to_owned()).collect()
    }

    /// Writes what may be written late: the stamps, the log, and the drops of retention. Called in idle time.
    ///
    /// # Errors
    /// Returns the errors of the lock, the stamps file and the refs; nothing of worth is lost by them.
    pub fn settle(&mut self) -> Result<()> {
        let _lock = self.lock("settling")?;
        // What is heard is written when nobody waits for long, or at the end: it is large, and only a scan needs it.
        if !self.is_live() {
            self.save_stamps()?;
        }
        self.flush()?;
        self.tidy()?;
        self.keep_commits()?;
        self.store.prepare();
        Ok(())
    }

    /// As [`Timeline::settle`], for a process that is about to end and is waited for: a short log stays, and where somebody
    /// else is at work all of it is left to them.
    ///
    /// # Errors
    /// As [`Timeline::settle`].
    pub fn leave(&mut self) -> Result<()> {
        let Some(_lock) = self.lock_if_free("settling")? else { return Ok(()) };
        self.save_stamps()?;
        self.flush_much()?;
        self.keep_commits()?;
        let tidied = self.tidy();
        let stamps = self.stamps.take();
        let known = stamps.as_ref().map_or(0, |stamps| stamps.known.entries().len());
        memory::drop_beside(stamps, known as u64);
        tidied
    }

    /// Under the workspace lock: drops what retention does not keep, and what killed processes left.
    fn tidy(&mut self) -> Result<()> {
        let known = self.all()?;
        let all = known.checkpoints.as_slice();
        self.note_numbers(all)?;
        let mut needed = self.history()?.needed();
        // A run that is to go on from a checkpoint keeps it.
        needed.extend(self.state().detached.values().flat_map(Detached::points));
        let going = plan(all, &needed, &self.policy.retention);
        let going = going.into_iter().filter_map(|(id, why)| all.iter().find(|one| one.id == id).map(|one| (one, why)));
        let going: Vec<(&Checkpoint, DropReason)> = going.collect();
        let noted: Vec<DroppedCheckpoint> = going.iter().filter_map(|(one, why)| why.noted(one, now_ms())).collect();
        dropped::note(&self.workspace.dir, &noted)?;
        for (checkpoint, reason) in going {
            tracing::info!(ordinal = checkpoint.record.ordinal, ?reason, "dropping a checkpoint");
            self.drop_ref(&checkpoint.name, checkpoint.id)?;
        }
        if let Err(error) = self.store.sweep() {
            tracing::warn!(%error, "temporary files of killed processes stay");
        }
        if let Err(error) = self.store.consolidate(BOUNDS) {
            tracing::warn!(%error, "packs could not be consolidated");
        }
        Ok(())
    }

    /// Compresses what large checkpoints had no time to compress, as much as `slice` says or until `control` stops it.
    ///
    /// # Errors
    /// As [`crate::store::Store::recompress`]; nothing is lost by them.
    pub fn recompress(&mut self, slice: Slice, control: &dyn Fn() -> Flow) -> Result<()> {
        self.store.recompress(slice, control).map(drop)
    }
}

fn taken(checkpoint: Checkpoint, unchanged: bool, changed: Option<u64>, seen: &Seen, started: Instant) -> Taken {
    Taken {
        checkpoint,
        unchanged,
        coverage: Arc::clone(&seen.coverage),
        changed,
        ms: started.elapsed().as_secs_f64() * 1000.0,
        cost: Cost { total_us: started.elapsed().as_micros() as u64, ..seen.cost },
        warnings: seen.warnings.clone(),
    }
}

/// Skips as the replies list them, those that matter first.
pub fn listed_skips(coverage: &Coverage) -> Vec<(RelPath, SkipReason)> {
    let mut skips: Vec<(RelPath, SkipReason)> =
        coverage.skipped.iter().map(|(path, why)| (path.clone(), *why)).collect();
    skips.sort_by_key(|(path, why)| (!why.makes_partial(), path.clone()));
    skips
}
