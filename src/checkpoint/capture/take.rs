//! Taking a checkpoint.
//!
//! Crash order: objects → ref (compare-and-swap) → state → stamps. Each later part may be missing and is found again
//! from the earlier ones: a crash between two of them costs a scan or a number, never a checkpoint.

use std::sync::Arc;
use std::time::Instant;

use super::knowledge::PriorKnowledge;
use super::observe::{Destination, LocalBatch, Observation, WholePart};
use super::request::{Draft, Take, Taken};
use super::warm::Attempt;
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::{AllCheckpoints, Catalog};
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::checkpoint::records::repositories::settle;
use crate::checkpoint::records::workspace::Scope;
use crate::error::{Code, Error, Result};
use crate::filter::secret::is_secret;
use crate::model::checkpoint::{CheckpointKind, LATE, Layer, QUIET, Record, recorded};
use crate::model::cost::Cost;
use crate::model::coverage::Extent;
use crate::model::id::ObjectId;
use crate::model::number::Number;
use crate::model::policy::Durability;
use crate::model::redact::redact;
use crate::store::{Batch, Landing, NewCommit};
use crate::sys::clock::{file_clock, now_ms, rfc3339};
use crate::sys::interrupt::Flow;
use crate::sys::progress::{Amount, Stage};

/// The number of checkpoints in which a layer is looked for that may be named again.
const NEAR: usize = 8;

impl Locked<'_> {
    /// Takes a checkpoint, and returns it with the observation.
    pub(crate) fn take(&mut self, take: &Take, control: &dyn Fn() -> Flow) -> Result<(Taken, Observation)> {
        let started = Instant::now();
        // A sync from before may serve, but none from before the request.
        let ahead = take.asked.unwrap_or(started).elapsed().as_nanos();
        let looked = file_clock().saturating_sub(i64::try_from(ahead).unwrap_or(i64::MAX));
        let widened = self.catalog.widened(take)?;
        let take = widened.as_ref().unwrap_or(take);
        self.catalog.require_root(take.draft.kind)?;
        refuse_too_broad(self.catalog, take)?;
        // Held until the ref has moved: no object that counts as "already there" may be deleted before.
        let _shared = self.catalog.store.lock_shared(take.draft.kind.as_str(), LOCK_WAIT)?;
        // Under the lock, and before any object counts as stored: packs may be gone since the last capture.
        self.catalog.store.renew()?;
        self.catalog.renew_local()?;
        let catalog = &*self.catalog;
        let known = catalog.all()?;
        let list_us = started.elapsed().as_micros() as u64;
        // The memory is put back only on success: after an error the next capture scans.
        self.capturer.note_scanning(false);
        let mut attempt = self.capturer.begin(catalog, take, control)?;
        let begins_scan = || self.capturer.note_scanning(true);
        let Observed { mut observed, before, batch, local } =
            observe(catalog, &mut attempt, take, &known, (&begins_scan, control))?;
        observed.cost.list_us = list_us;
        catalog.store.progress().begin(Stage::Recording, Amount::UNKNOWN);
        let changed = match base(&known, &take.draft, &observed) {
            // The base is only for counting changes: a damaged one stops no checkpoint.
            Some(base) => catalog.count_since(base, observed.root, &observed.fresh, &observed.private).inspect_err(|error| {
                tracing::warn!(%error, n = base.record.ordinal, "cannot determine how much changed: the previous checkpoint is damaged");
            }).ok(),
            None => Some(observed.totals.0 + observed.private.files()),
        };
        // A kept repository is found by the number of its own checkpoint.
        let is_own = !observed.repositories.is_empty();
        let same = if is_own { None } else { same(catalog, &known, &take.draft, &observed)? };
        // A person who asks for a checkpoint wants this moment of the repository too.
        let is_asked = take.draft.kind == CheckpointKind::Manual;
        let repository = if is_asked || same.is_none() { catalog.find_repository() } else { None };
        let same = same.filter(|same| !(is_asked && catalog.has_repository_moved(same, repository.as_ref())));
        let is_gone = same.as_ref().map_or(Ok(false), |same| catalog.store.has(&same.id).map(|has| !has))?;
        if let Some(same) = same.filter(|_| !is_gone) {
            // It may be a step of a moment ago, which is named now.
            if !take.draft.soon && self.catalog.policy.durability == Durability::Power {
                self.catalog.sync_late()?;
            }
            // Objects of an unchanged capture are kept too: the warm tree takes them for stored.
            batch.map(Batch::finish).transpose()?;
            local.begun().map(Batch::finish).transpose()?;
            self.capturer.put_back(catalog, attempt, before, &observed, take)?;
            let taken = taken(same, true, Some(0), &observed, started);
            self.capturer.account(&taken);
            return Ok((taken, observed));
        }
        let batch = batch.map_or_else(|| catalog.store.batch(), Ok)?;
        let (beside, checkpoint) = self.commit(&take.draft, &mut observed, &known, (batch, local, looked))?;
        settle(&catalog.workspace.dir, &observed.repositories, checkpoint.record.ordinal(), &self.lock)?;
        match is_gone {
            false => catalog.add(known, &beside.iter().chain([&checkpoint]).collect::<Vec<_>>()),
            // It is gone with its pack, and others may be too: all commits are read again.
            true => catalog.forget_commits(),
        }
        let ordinals = beside.iter().chain([&checkpoint]).map(|one| one.record.ordinal());
        self.note_repository(&ordinals.collect::<Vec<_>>(), repository);
        self.tell_secrets(&mut observed);
        self.capturer.put_back(catalog, attempt, before, &observed, take)?;
        let taken = taken(checkpoint, false, changed, &observed, started);
        self.capturer.account(&taken);
        Ok((taken, observed))
    }

    /// Returns the checkpoint of the same turn that another process has taken while this one waited for the lock. Without
    /// a daemon each hook is a process, and the hooks of one turn come at the same time.
    pub(crate) fn taken_elsewhere(&mut self, take: &Take, control: &dyn Fn() -> Flow) -> Result<Option<Taken>> {
        let (started, draft, catalog) = (Instant::now(), &take.draft, &*self.catalog);
        let may_share = draft.may_share && !draft.always && take.selection.names_targets() && catalog.is_news.get();
        let Some(turn) = draft.turn.as_deref().filter(|_| may_share).map(recorded) else { return Ok(None) };
        let of_turn = |record: &Record| {
            record.kind.is_of_turn() && record.run == draft.run && record.turn.as_ref() == Some(&turn)
        };
        let all = catalog.all()?;
        let Some(checkpoint) = all.newest_whole().filter(|newest| of_turn(&newest.record)).cloned() else {
            return Ok(None);
        };
        if !self.capturer.holds(catalog, &checkpoint.id, &take.selection, control)? {
            return Ok(None);
        }
        let coverage = Arc::new(catalog.coverage_of(&checkpoint)?);
        let ms = started.elapsed().as_secs_f64() * 1000.0;
        let (changed, cost, warnings) = (None, Cost::default(), Vec::new());
        Ok(Some(Taken { checkpoint, unchanged: true, is_shared: true, coverage, changed, ms, cost, warnings }))
    }

    fn commit(
        &self,
        draft: &Draft,
        observed: &mut Observation,
        known: &AllCheckpoints,
        (batch, local, looked): (Batch<'_>, LocalBatch<'_>, i64),
    ) -> Result<(Option<Checkpoint>, Checkpoint)> {
        let catalog = &*self.catalog;
        let (branch, tip) = catalog.run_tip(&draft.run)?;
        let ordinal = catalog.next_ordinal(known);
        let (kind, number) = numbered(catalog, draft, known);
        let synced = catalog.policy.durability == Durability::Power && !draft.soon;
        // The private part first: a checkpoint must not name a layer that is not there.
        let standing = draft.standing.and_then(|id| known.checkpoints.iter().rev().find(|one| one.id == id));
        let (looked, follows) = (Some(looked), standing.map(|standing| standing.record.ordinal()));
        let record = Record { kind, number, looked, follows, ..record(catalog, draft, observed, ordinal) };
        let layer = self.land_layer(observed, known, local, &record, synced)?;
        let parents: Vec<ObjectId> = tip.into_iter().collect();
        // The same goes for the whole workspace beside a narrowed one.
        let (batch, record, beside) = match &observed.whole {
            Some(whole) => self.land_whole(whole, known, (batch, &parents), Record { layer, ..record }, synced)?,
            None => (batch, Record { layer, ..record }, None),
        };
        let ordinal = record.ordinal;
        let commit =
            NewCommit { tree: observed.root, parents: &parents, message: &record.message(), time_ms: now_ms() };
        let writing = Instant::now();
        let id = batch.put_commit(&commit)?;
        let (name, expect) = match draft.kind.is_typed() {
            true => (branch.clone(), catalog.branch_target(&branch)?),
            false => (format!("{}{}/{ordinal}", catalog.leaf_prefix(), kind.as_str()), None),
        };
        observed.cost.objects = self.land(batch, &name, expect, id, synced)?.objects;
        // After the ref: a failed attempt uses up no number.
        catalog.give(ordinal, number);
        observed.cost.write_us = writing.elapsed().as_micros() as u64;
        if draft.kind.is_typed() {
            self.note_attached(&draft.run);
        }
        Ok((beside, Checkpoint { id, tree: observed.root, parents, record: record.into(), name: name.into() }))
    }

    /// Makes the whole workspace durable beside a narrowed checkpoint, as a base capture. Returns the batch for the checkpoint itself,
    /// and its record, which names the base capture. An equal one that is there already is named again.
    fn land_whole<'s>(
        &'s self,
        whole: &WholePart,
        known: &AllCheckpoints,
        (batch, parents): (Batch<'s>, &[ObjectId]),
        record: Record,
        synced: bool,
    ) -> Result<(Batch<'s>, Record, Option<Checkpoint>)> {
        let catalog = &*self.catalog;
        let leaves =
            known.checkpoints.iter().rev().filter(|one| one.record.is_whole() && !one.record.kind().is_typed());
        for one in leaves.take(NEAR).filter(|one| one.tree == whole.root) {
            if one.record.layer == record.layer {
                return Ok((batch, Record { whole: Some(one.record.ordinal()), ..record }, None));
            }
        }
        let ordinal = record.ordinal;
        let (files, bytes) = whole.totals;
        let leaf = Record {
            kind: CheckpointKind::Turn,
            number: Number::NONE,
            codon_id: None,
            codon_name: None,
            duration_ms: None,
            reason: format!("the whole workspace in addition to `{}`", record.kind.as_str()),
            files,
            bytes,
            skipped: whole.coverage.skipped.len() as u64,
            flags: record.flags.iter().filter(|flag| *flag != "tracked").cloned().collect(),
            follows: None,
            ..record.clone()
        };
        let commit = NewCommit { tree: whole.root, parents, message: &leaf.message(), time_ms: now_ms() };
        let id = batch.put_commit(&commit)?;
        let name = format!("{}{}/{ordinal}", catalog.leaf_prefix(), leaf.kind.as_str());
        self.land(batch, &name, None, id, synced)?;
        catalog.give(ordinal, Number::NONE);
        let record = Record { ordinal: ordinal.saturating_add(1), whole: Some(ordinal), ..record };
        let leaf =
            Checkpoint { id, tree: whole.root, parents: parents.to_vec(), record: leaf.into(), name: name.into() };
        Ok((catalog.store.batch()?, record, Some(leaf)))
    }

    /// Makes the private part of a checkpoint durable, and returns the layer that its record names. A layer that is there already
    /// is named again.
    fn land_layer(
        &self,
        observed: &Observation,
        known: &AllCheckpoints,
        local: LocalBatch<'_>,
        record: &Record,
        synced: bool,
    ) -> Result<Option<Layer>> {
        let catalog = &*self.catalog;
        let Some(root) = observed.private_root else {
            local.begun().map(Batch::finish).transpose()?;
            return Ok(observed.coverage.private.then_some(Layer::None));
        };
        let named = known.checkpoints.iter().rev().filter(|one| matches!(one.record.layer, Some(Layer::Sequence(_))));
        for one in named.take(NEAR) {
            if catalog.layer_root(one)? == Some(root) {
                local.begun().map(Batch::finish).transpose()?;
                // The layer may be that of a step of a moment ago.
                if synced {
                    catalog.sync_late()?;
                }
                return Ok(one.record.layer);
            }
        }
        let ordinal = record.ordinal;
        let store = catalog.local()?;
        let batch = local.begun().map_or_else(|| store.batch(), Ok)?;
        let new =
            batch.put_commit(&NewCommit { tree: root, parents: &[], message: &record.message(), time_ms: now_ms() })?;
        let name = format!("{}{ordinal}", catalog.layer_prefix());
        // A process that was killed may have left a layer whose checkpoint never came.
        let expect = store.target_of(&name)?;
        let stats =
            catalog.with_local_log(|log| batch.land(store, Landing { log, name: &name, expect, new, synced }))?;
        catalog.stored.set(catalog.stored.get() + stats.bytes);
        catalog.note_layer(ordinal, root);
        Ok(Some(Layer::Sequence(ordinal)))
    }

    /// Says once for each workspace that its checkpoints hold secrets, and where.
    fn tell_secrets(&self, observed: &mut Observation) {
        let mut paths = observed.private.manifest.iter().map(|(path, _)| path);
        let Some(path) = paths.find(|path| is_secret(path.as_bytes())) else { return };
        if self.catalog.state().told_secrets {
            return;
        }
        let text = format!(
            "`{}` looks like a secret. Checkpoints save it in `local.git`, which git commands and pushes never read. To remove it, run \
             `piton forget`; to save fewer secrets, set `secrets: on-target`. This message is shown once",
            path.display()
        );
        match self.change_state(|state| state.told_secrets = true) {
            Ok(()) => observed.warnings.push(text),
            Err(error) => tracing::warn!(%error, "could not write the state file"),
        }
    }

    /// Notes that a run has its new branch. The checkpoint is complete with its ref: an error here is harmless, because
    /// the refs tell the same.
    fn note_attached(&self, run: &str) {
        if !self.catalog.state().detached.contains_key(run) {
            return;
        }
        if let Err(error) = self.change_state(|state| _ = state.detached.remove(run)) {
            tracing::warn!(%error, "could not write the state file");
        }
    }
}

/// An observation, and the means by which it was made.
struct Observed<'s> {
    /// The workspace as it was found.
    observed: Observation,
    /// The knowledge that a scan began with.
    before: Option<PriorKnowledge>,
    /// The written objects; `None` where nothing may be stored.
    batch: Option<Batch<'s>>,
    /// The written objects of the private part.
    local: LocalBatch<'s>,
}

/// Observes the workspace, as cheaply as the memory allows. Calls `begins_scan` where that is not enough.
fn observe<'s>(
    catalog: &'s Catalog,
    attempt: &mut Attempt,
    take: &Take,
    known: &AllCheckpoints,
    (begins_scan, control): (&dyn Fn(), &dyn Fn() -> Flow),
) -> Result<Observed<'s>> {
    let local = LocalBatch::new(catalog);
    if let Some(observed) = attempt.quiet(catalog, take) {
        return Ok(Observed { observed, before: None, batch: None, local });
    }
    let batch = catalog.store.batch()?;
    if let Some(observed) = attempt.changed(catalog, take, (&batch, &local), control)? {
        return Ok(Observed { observed, before: None, batch: Some(batch), local });
    }
    begins_scan();
    let held = attempt.warmth.stamps()?;
    let before = PriorKnowledge::gather(catalog, &take.selection, &known.checkpoints, held, control)?;
    let observed = match Observation::scan(catalog, take, &before, Destination::Batch(&batch, &local), control) {
        Err(error) if error.code() == Code::StoreDamaged => {
            // The stamps promised content that the store does not have: one more scan reads all of it again.
            tracing::warn!(%error, "the store lost objects that the stamps refer to; scanning everything");
            Observation::scan(catalog, take, &before.distrusted(), Destination::Batch(&batch, &local), control)?
        }
        observed => observed?,
    };
    Ok(Observed { observed, before: Some(before), batch: Some(batch), local })
}

/// Returns the checkpoint from which changed paths are counted.
fn base<'c>(known: &'c AllCheckpoints, draft: &Draft, observed: &Observation) -> Option<&'c Checkpoint> {
    let of_run = |c: &Checkpoint| c.record.kind().is_typed() && c.record.run() == draft.run;
    let narrowed = !observed.coverage.tracked.is_empty() || !observed.coverage.read_only.is_empty();
    let typed = known.checkpoints.iter().rev().find(|one| narrowed && of_run(one));
    typed.or_else(|| known.newest_of_run(&draft.run)).or_else(|| known.newest_whole())
}

/// Returns the kind and the number of a new checkpoint. A later one of a turn is a step of the turn's. If a step was asked for, and the turn
/// has no checkpoint of its own, it is a base capture.
fn numbered(catalog: &Catalog, draft: &Draft, known: &AllCheckpoints) -> (CheckpointKind, Number) {
    let turn = draft.turn.as_deref().map(recorded);
    let is_of_turn = |one: &&Checkpoint| {
        let record = &one.record;
        turn.is_some() && record.kind().is_of_turn() && record.run() == draft.run && record.turn == turn
    };
    let standing = draft.standing.filter(|_| draft.kind.is_of_turn());
    let standing = standing.and_then(|id| known.checkpoints.iter().rev().find(|one| one.id == id)).filter(is_of_turn);
    match standing.map(|one| one.record.number.main) {
        Some(main) => (CheckpointKind::Step, catalog.number_of_step(known, main)),
        None if matches!(draft.kind, CheckpointKind::Turn | CheckpointKind::Step) => {
            (CheckpointKind::Turn, Number::NONE)
        }
        None => (draft.kind, Number::of(catalog.next_number(known))),
    }
}

/// Returns the checkpoint that makes another of the same tree superfluous, if there is one.
fn same(
    catalog: &Catalog,
    known: &AllCheckpoints,
    draft: &Draft,
    observed: &Observation,
) -> Result<Option<Checkpoint>> {
    if draft.always {
        return Ok(None);
    }
    let (previous, newest) = (known.newest_of_run(&draft.run), known.newest_whole());
    let tip = if draft.kind.is_typed() { catalog.typed_at(catalog.run_tip(&draft.run)?.1)? } else { None };
    let own = draft.held.and_then(|held| known.checkpoints.iter().rev().find(|checkpoint| checkpoint.id == held));
    // A base capture only keeps objects alive, and any checkpoint of the same content does so. The same goes for a
    // further one of a turn.
    let measures = match (draft.kind, draft.held) {
        (CheckpointKind::Turn | CheckpointKind::Step, _) => [None, None, newest],
        // One that only keeps objects alive may go before a save would.
        (CheckpointKind::Autosave, _) => {
            [None, None, newest.filter(|newest| newest.record.kind != CheckpointKind::Turn)]
        }
        (kind, _) if kind.is_typed() => [None, tip.as_ref(), None],
        // A base capture has no number, and does not stay for long.
        (_, Some(_)) => [own, previous, newest.filter(|newest| newest.record.kind != CheckpointKind::Turn)],
        // No reply named a quiet step, so the turn gets a checkpoint with a row.
        (CheckpointKind::Auto, None) => [None, previous.filter(|previous| !previous.record.is_quiet()), None],
        (_, None) => [None, previous, None],
    };
    for measure in measures.into_iter().flatten().filter(|measure| measure.tree == observed.root) {
        let has_looked = measure.record.layer.is_some() || !observed.coverage.private;
        if has_looked && catalog.layer_root(measure)? == observed.private_root {
            return Ok(Some(measure.clone()));
        }
    }
    Ok(None)
}

/// Refuses to capture a directory like `/` but where an action is about to destroy something.
fn refuse_too_broad(catalog: &Catalog, take: &Take) -> Result<()> {
    let workspace = &catalog.workspace;
    if workspace.scope == Scope::Tree || !take.selection.targets.is_empty() || take.draft.kind.is_typed() {
        return Ok(());
    }
    Err(Error::new(Code::WorkspaceRefused, "this directory is too broad to be captured as a whole")
        .path(&workspace.path)
        .hint("give a project directory with `--workspace`, or some paths: `piton checkpoint -- PATH`"))
}

fn record(catalog: &Catalog, draft: &Draft, observed: &Observation, ordinal: u64) -> Record {
    let (files, bytes) = observed.totals;
    // The clock is read once: a record's time minus its duration has to be the start of its codon.
    let now = now_ms();
    let since = draft.codon.as_ref().and_then(|codon| codon.since);
    Record {
        kind: draft.kind,
        ordinal,
        number: Number::NONE,
        workspace: catalog.workspace.id.clone(),
        run: draft.run.clone(),
        turn: draft.turn.as_deref().map(redact),
        codon_id: draft.codon.as_ref().map(|codon| redact(&codon.id)),
        // Redacted here too, whatever the caller did: a recorded name may be sent to other machines.
        codon_name: draft.codon.as_ref().map(|codon| redact(&codon.name)),
        reason: redact(&draft.reason),
        time: rfc3339(now),
        duration_ms: since.map(|since| u64::try_from(now.saturating_sub(since)).unwrap_or(0)),
        effects: draft.effects.clone(),
        files,
        bytes,
        skipped: observed.coverage.skipped.len() as u64,
        flags: flags(draft, observed),
        pinned: draft.pinned,
        layer: None,
        looked: None,
        follows: None,
        whole: None,
    }
}

fn flags(draft: &Draft, observed: &Observation) -> Vec<String> {
    let (coverage, targeted) = (&observed.coverage, observed.stats.targeted > 0);
    let flags = [
        ("partial", coverage.is_partial()),
        ("paths", coverage.extent != Extent::Tree),
        ("tracked", !coverage.tracked.is_empty() || !coverage.read_only.is_empty()),
        ("targeted", targeted && draft.kind != CheckpointKind::PreRestore),
        ("unstable", !coverage.unstable.is_empty()),
        ("not-held", coverage.skipped.values().any(|why| why.is_of_target())),
        (QUIET, draft.kind == CheckpointKind::Step),
        (LATE, draft.answer_by.is_some_and(|at| Instant::now() > at)),
    ];
    flags.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag.to_owned()).collect()
}

fn taken(
    checkpoint: Checkpoint,
    unchanged: bool,
    changed: Option<u64>,
    observed: &Observation,
    started: Instant,
) -> Taken {
    Taken {
        checkpoint,
        unchanged,
        is_shared: false,
        coverage: Arc::clone(&observed.coverage),
        changed,
        ms: started.elapsed().as_secs_f64() * 1000.0,
        cost: Cost { total_us: started.elapsed().as_micros() as u64, ..observed.cost },
        warnings: observed.warnings.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Home, Timeline, Workspace};
    use crate::model::path::RelPath;
    use crate::worktree::Target;

    #[test]
    fn a_checkpoint_of_the_turn_by_another_process_serves_as_long_as_it_holds_the_targets() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("work");
        std::fs::create_dir(&root).unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(root.join(name), name).unwrap();
        }
        let home = Home::at(&dir.path().join("home")).unwrap();
        let policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
        let open = || Timeline::open(&home, Workspace::open(&home, &root).unwrap(), policy.clone()).unwrap();
        let take = |timeline: &mut Timeline, turn: &str, name: &str| {
            let mut take = Take::of(CheckpointKind::Auto, "r", &format!("before rm {name}"));
            take.selection.targets = vec![Target { path: RelPath::parse(name.as_bytes()).unwrap(), recursive: false }];
            (take.draft.turn, take.draft.may_share) = (Some(turn.to_owned()), true);
            let taken = timeline.take(&take, &|| Flow::Continue).unwrap();
            (taken.checkpoint.record.ordinal, taken.is_shared)
        };
        let (mut one, mut other) = (open(), open());
        assert_eq!(take(&mut one, "t1", "a"), (1, false));
        std::fs::remove_file(root.join("a")).unwrap();
        assert_eq!(take(&mut other, "t1", "b"), (1, true), "it holds what is about to go");
        std::fs::write(root.join("c"), "changed").unwrap();
        assert_eq!(take(&mut other, "t1", "c"), (2, false), "nobody else held the lock");
        assert_eq!(take(&mut one, "t1", "c"), (2, true));
        std::fs::write(root.join("c"), "once more").unwrap();
        assert_eq!(take(&mut other, "t1", "c"), (3, false), "it does not hold the present state");
        assert!(!take(&mut one, "t2", "c").1, "another turn");
    }
}
