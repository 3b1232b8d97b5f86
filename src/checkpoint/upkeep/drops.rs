//! Drops checkpoints, pins them, and deletes them on demand.
//!
//! Many are dropped in slices, and the workspace's lock is free between two of them. A slice first writes the ledger, then
//! keeps the numbers, flushes the log and deletes the refs: killed in between, it leaves checkpoints, and no gap that
//! nothing explains. At the beginning, and whenever another process had the lock, it is judged anew which ones may go.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::dropped::{DroppedCheckpoint, Ledger};
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::catalog::retention::{DropReason, Kept, StayReason, plan, still};
use crate::checkpoint::history::journal::Journal;
use crate::checkpoint::history::operations::History;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::checkpoint::records::pins::Pins;
use crate::checkpoint::records::state::{Detached, WorkspaceState};
use crate::checkpoint::records::window_log::WindowLog;
use crate::checkpoint::repository::log::ends;
use crate::checkpoint::runs::at_work::open_runs;
use crate::checkpoint::runs::run::Run;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::sys::clock::now_ms;
use crate::sys::interrupt::{Flow, Interrupt};

/// The refs that are deleted while the lock is held once: some ten milliseconds.
const SLICE: usize = 256;

/// The pause between two slices, in which another process gets the lock.
const BETWEEN: Duration = Duration::from_millis(1);

/// A ref to delete, and the checkpoints that go with it.
struct DropStep {
    name: String,
    target: ObjectId,
    /// The notes for the ledger; of a base capture there is none.
    notes: Vec<DroppedCheckpoint>,
    /// The ids of the checkpoints.
    ids: Vec<ObjectId>,
    /// The run of a branch, which may have nothing left afterwards.
    run: Option<String>,
}

/// A checkpoint that cannot be deleted, with the reason.
fn refusal(checkpoint: &Checkpoint, why: &str, hint: &str) -> Error {
    let text = format!("checkpoint {} ({}) {why}", checkpoint.record.number, checkpoint.id.short());
    Error::new(Code::Conflict, text).hint(hint)
}

/// Returns the checkpoints from which moved runs go on.
fn moved(state: &WorkspaceState) -> Vec<ObjectId> {
    state.detached.values().flat_map(Detached::points).collect()
}

/// Returns the checkpoints at the ends of the turns that can be undone, and those with which open turns began.
fn of_turns(history: &History, log: &mut WindowLog) -> Result<Vec<ObjectId>> {
    let open = log.windows()?.turns.iter().map(|turn| turn.base);
    Ok(history.ends_of_turns().chain(open).collect())
}

/// Returns the checkpoints that the records of a workspace name.
///
/// # Errors
/// When the journal cannot be read.
pub(super) fn named(dir: &Path) -> Result<Vec<ObjectId>> {
    let mut named = History::of(Journal::in_dir(dir).read()?).needed();
    named.extend(moved(&WorkspaceState::load(dir)));
    Ok(named)
}

impl Catalog {
    /// Returns the facts by which checkpoints stay. Open runs are looked for only if `with_runs`.
    ///
    /// # Errors
    /// When journal, pins or marks cannot be read: nothing may be dropped then.
    pub fn kept(&self, with_runs: bool) -> Result<Kept> {
        let history = self.history()?;
        let mut needed: HashSet<ObjectId> = history.needed().into_iter().collect();
        let mut of_turns: HashSet<ObjectId> = of_turns(&history, &mut self.windows.borrow_mut())?.into_iter().collect();
        of_turns.extend(ends(&self.workspace.dir)?);
        // A run whose next checkpoint follows one keeps it.
        needed.extend(moved(&self.state()));
        let dir = &self.workspace.dir;
        let open_runs = if with_runs { open_runs(dir)? } else { BTreeSet::new() };
        Ok(Kept { needed, of_turns, open_runs, pins: Pins::load(dir)? })
    }

    /// Returns the checkpoints that a person names, as far as they may be deleted.
    ///
    /// # Errors
    /// Returns the errors of [`Catalog::resolve`]; `conflict` for one that undo or an open run needs, that is pinned, or that is part
    /// of a run's history.
    pub fn deletable(&self, selectors: &[String]) -> Result<Vec<Checkpoint>> {
        let chosen = self.chosen(selectors)?;
        let known = self.all()?;
        let reasons = self.kept(true)?.reasons(&known.checkpoints);
        let reasons: HashMap<ObjectId, Option<StayReason>> =
            known.checkpoints.iter().map(|one| one.id).zip(reasons).collect();
        for one in &chosen {
            match reasons.get(&one.id).copied().flatten() {
                Some(StayReason::Needed) => {
                    let hint = "after another restore or rollback it can be deleted";
                    return Err(refusal(
                        one,
                        "is the point from which the next undo, redo or checkpoint of a run continues",
                        hint,
                    ));
                }
                Some(StayReason::OfOpenRun) => {
                    return Err(refusal(
                        one,
                        "is the newest of a run that is open",
                        "delete it when the run has ended",
                    ));
                }
                Some(StayReason::Pinned) => {
                    return Err(refusal(
                        one,
                        "is pinned",
                        format!("run `piton pin --remove {}` first", one.record.number).as_str(),
                    ));
                }
                // Not even the newest one is needed by anything but retention; an undo of its turn says that it is gone.
                Some(StayReason::Newest | StayReason::OfTurn) | None => {}
            }
            if one.record.kind.is_typed() {
                let hint = "a run's checkpoints of codons are deleted together, after `retention.runs_days`";
                return Err(refusal(one, "is part of a run's history", hint));
            }
        }
        Ok(chosen)
    }

    /// Returns the checkpoints that a person names, each once, the oldest first.
    ///
    /// # Errors
    /// As [`Catalog::resolve_own`].
    pub fn chosen(&self, selectors: &[String]) -> Result<Vec<Checkpoint>> {
        let mut chosen = BTreeMap::new();
        for selector in selectors {
            let one = self.resolve_own(selector)?;
            chosen.insert(one.record.ordinal, one);
        }
        Ok(chosen.into_values().collect())
    }
}

impl Locked<'_> {
    /// Applies the counts of retention, as much as fits in a slice. Returns false if some are left for another time.
    pub(crate) fn drop_surplus(&self) -> Result<bool> {
        let known = self.catalog.all()?;
        let going = plan(&known.checkpoints, &self.catalog.kept(false)?, &self.catalog.policy.retention, None);
        if going.is_empty() {
            return Ok(true);
        }
        let mut steps = self.steps(&known.checkpoints, &going)?;
        let gone = self.drop_slice(&mut steps)?;
        // Refs that somebody else has moved are looked at the next time.
        Ok(steps.is_empty() || gone.is_empty())
    }

    /// Returns the refs to delete for a plan, the first at the end. A branch goes with all its checkpoints.
    fn steps(&self, all: &[Checkpoint], going: &[(ObjectId, DropReason)]) -> Result<Vec<DropStep>> {
        let (now, reasons) = (now_ms(), going.iter().copied().collect::<HashMap<_, _>>());
        let mut branches: HashMap<&str, Vec<&Checkpoint>> = HashMap::new();
        let mut steps = Vec::new();
        let step = |name: &str, target: ObjectId, with: &[&Checkpoint]| {
            let shown = with.iter().filter(|one| one.record.kind != CheckpointKind::Turn);
            let note = |one: &&Checkpoint| Some(DroppedCheckpoint::new(one, reasons.get(&one.id)?.rule(), now));
            let ids = with.iter().map(|one| one.id).collect();
            let run = with.last().filter(|one| one.record.kind.is_typed()).map(|one| one.record.run.clone());
            DropStep { name: name.to_owned(), target, notes: shown.filter_map(note).collect(), ids, run }
        };
        for one in all.iter().filter(|one| reasons.contains_key(&one.id)) {
            match one.record.kind.is_typed() {
                true => branches.entry(&one.name).or_default().push(one),
                false => steps.push(step(&one.name, one.id, &[one])),
            }
        }
        if !branches.is_empty() {
            // A branch that has moved meanwhile has a checkpoint that is not in the plan, and stays.
            for branch in self.catalog.refs(&self.catalog.branch_prefix())? {
                let target = branch.target.ok().filter(|target| reasons.contains_key(target));
                let with = branches.remove(&*branch.name).unwrap_or_default();
                steps.extend(target.map(|target| step(&branch.name, target, &with)));
            }
        }
        // The slices are taken from the end: packed ones first, which are deleted together, so that their file is written
        // once; then the oldest.
        let packed = self.catalog.store.packed_names()?;
        steps.reverse();
        steps.sort_by_key(|step| packed.contains(&step.name));
        Ok(steps)
    }

    /// Drops what the last of `steps` say, and returns the checkpoints that are gone.
    fn drop_slice(&self, steps: &mut Vec<DropStep>) -> Result<Vec<ObjectId>> {
        let packed = self.catalog.store.packed_names()?;
        let together = steps.iter().rev().take_while(|step| packed.contains(&step.name)).count();
        let slice = steps.split_off(steps.len().saturating_sub(SLICE.max(together)));
        let notes: Vec<DroppedCheckpoint> = slice.iter().flat_map(|step| step.notes.iter().cloned()).collect();
        // Before the refs are deleted: a killed process must not leave an unexplained gap.
        if let Err(error) = Ledger::of_workspace(&self.catalog.workspace.dir).note(&notes, &self.lock) {
            // An explanation is lost by that; a full disk must not keep retention from making room.
            tracing::warn!(%error, "could not record which checkpoints were dropped");
        }
        let refs: Vec<(String, ObjectId)> = slice.iter().map(|step| (step.name.clone(), step.target)).collect();
        let gone: HashSet<String> = self.drop_refs(&refs)?.into_iter().collect();
        tracing::info!(refs = gone.len(), "dropped checkpoints");
        let gone: Vec<DropStep> = slice.into_iter().filter(|step| gone.contains(&step.name)).collect();
        for run in gone.iter().filter_map(|step| step.run.as_deref()) {
            self.forget_run(run)?;
        }
        if let Err(error) = self.drop_states_of_gone() {
            // The next drop does it.
            tracing::warn!(%error, "the states of the repository at dropped checkpoints are still there");
        }
        if let Err(error) = self.shorten_actions() {
            // So does this.
            tracing::warn!(%error, "the actions after dropped checkpoints are still recorded");
        }
        Ok(gone.into_iter().flat_map(|step| step.ids).collect())
    }

    /// Removes the file of a run that has no checkpoints any more.
    fn forget_run(&self, run: &str) -> Result<()> {
        match self.catalog.all()?.checkpoints.iter().any(|one| one.record.run == run) {
            true => Ok(()),
            false => Run::remove(&self.catalog.workspace.dir, run, &self.lock),
        }
    }
}

impl Timeline {
    /// Drops checkpoints, for a moment at a time, and returns those that are gone. One that is needed by now stays.
    /// `control` may stop it between two moments. Each moment waits for the lock for `patience`.
    ///
    /// # Errors
    /// Returns the errors of the lock, if nothing is gone yet, and of writing; some may be gone by then.
    pub fn drop_all(
        &mut self,
        going: &[(ObjectId, DropReason)],
        patience: Duration,
        control: Interrupt<'_>,
    ) -> Result<HashSet<ObjectId>> {
        let (mut gone, mut steps): (HashSet<ObjectId>, Option<Vec<DropStep>>) = (HashSet::new(), None);
        loop {
            let locked = match self.lock_within("dropping checkpoints", patience) {
                Err(error) if error.code() == Code::StoreLocked && !gone.is_empty() => return Ok(gone),
                locked => locked?,
            };
            let mut rest = match steps.take().filter(|_| !locked.catalog.is_news.get()) {
                Some(rest) => rest,
                None => {
                    let known = locked.catalog.all()?;
                    let left: Vec<_> = going.iter().filter(|(id, _)| !gone.contains(id)).copied().collect();
                    let left = still(&known.checkpoints, &locked.catalog.kept(true)?, &left);
                    locked.steps(&known.checkpoints, &left)?
                }
            };
            if rest.is_empty() {
                return Ok(gone);
            }
            gone.extend(locked.drop_slice(&mut rest)?);
            drop(locked);
            if rest.is_empty() || control() == Flow::Stop {
                return Ok(gone);
            }
            steps = Some(rest);
            std::thread::sleep(BETWEEN);
        }
    }

    /// Deletes checkpoints that a person named, and returns those that are gone.
    ///
    /// # Errors
    /// As [`Timeline::drop_all`].
    pub fn delete(&mut self, chosen: &[Checkpoint], control: Interrupt<'_>) -> Result<HashSet<ObjectId>> {
        let going: Vec<_> = chosen.iter().map(|one| (one.id, DropReason::Deleted)).collect();
        self.drop_all(&going, LOCK_WAIT, control)
    }

    /// Pins checkpoints, or unpins them. Returns those for which that is news.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing.
    pub fn pin(&mut self, chosen: &[Checkpoint], pinned: bool) -> Result<Vec<ObjectId>> {
        let locked = self.lock("pinning")?;
        let dir = &locked.catalog.workspace.dir;
        let mut pins = Pins::load(dir)?;
        let news: Vec<ObjectId> = chosen.iter().filter(|one| pins.put(&one.record, pinned)).map(|one| one.id).collect();
        if !news.is_empty() {
            pins.save(dir, &locked.lock)?;
        }
        Ok(news)
    }
}
