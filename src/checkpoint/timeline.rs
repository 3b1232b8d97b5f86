//! The checkpoints of one workspace, and everything that acts on them: a facade over the rooms of this folder.
//!
//! Reading is [`Timeline::catalog`]. Methods here tie the rooms: they lock the workspace for writes, and pass the catalog on.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::capture::Audit;
use super::capture::capturer::Capturer;
use super::capture::request::{Selection, Take, Taken};
use super::catalog::checkpoint::Checkpoint;
use super::catalog::diff::Present;
use super::catalog::listing::{CheckpointList, ListFilter};
use super::catalog::open::Catalog;
use super::history::interrupted::{RESTORING, in_progress};
use super::history::journal::Line;
use super::history::request::{Preview, Restore, RestoreStage, Restored};
use super::locked::Locked;
use super::records::home::Home;
use super::records::lock::LOCK_WAIT;
use super::records::repositories::{self, KeptRepository};
use super::records::state::WorkspaceState;
use super::records::workspace::{Scope, Workspace};
use super::remote::receive::Received;
use super::runs::at_work::Codons;
use super::runs::client::left_runs;
use super::runs::codon::{CodonMark, Departure, NewCodon};
use super::runs::list::ListedRun;
use super::runs::narrow::TrackedNow;
use super::runs::rollback::RolledBack;
use super::runs::run::{RunDetails, RunEnding, Running};
use crate::error::{Code, Result};
use crate::model::change::ChangeSource;
use crate::model::checkpoint::CheckpointKind;
use crate::model::cost::Cost;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::policy::Policy;
use crate::store::{BOUNDS, Bounds, Slice, Store};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::memory;
use crate::sys::progress::Progress;
use crate::worktree::repository::BroughtBack;

/// The checkpoints of one workspace, and everything that acts on them.
pub struct Timeline {
    catalog: Catalog,
    capturer: Capturer,
    codons: Codons,
}

impl Timeline {
    /// Opens the timeline of a workspace; the store is made when it does not exist.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn open(home: &Home, workspace: Workspace, policy: Policy) -> Result<Timeline> {
        let catalog = Catalog::open(home, workspace, policy)?;
        Ok(Timeline { catalog, capturer: Capturer::default(), codons: Codons::default() })
    }

    /// Serves a person who waits: long work reports to `progress`, and a restore that is stopped in the middle stays open, so that
    /// it can be continued or given up.
    pub fn attend(&mut self, progress: &Progress) {
        self.catalog.store.report_to(progress);
        self.catalog.is_attended = true;
    }

    /// Returns the checkpoints, for reading.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns the workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.catalog.workspace
    }

    /// Returns piton's own directory.
    pub fn home(&self) -> &Home {
        &self.catalog.home
    }

    /// Returns the store, for reading.
    pub fn store(&self) -> &Store {
        &self.catalog.store
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> &Policy {
        &self.catalog.policy
    }

    /// Puts another policy in force.
    pub fn set_policy(&mut self, policy: Policy) {
        self.catalog.policy = policy;
    }

    /// Returns the catalog, and the memory between captures.
    pub(super) fn parts(&mut self) -> (&Catalog, &mut Capturer) {
        (&self.catalog, &mut self.capturer)
    }

    /// Takes the workspace's lock: all writes of refs, log, journal, state and stamps are methods of what it returns.
    pub(super) fn lock(&mut self, verb: &str) -> Result<Locked<'_>> {
        self.lock_within(verb, LOCK_WAIT)
    }

    /// As [`Timeline::lock`], waiting at most `wait`.
    pub(super) fn lock_within(&mut self, verb: &str, wait: Duration) -> Result<Locked<'_>> {
        let lock = self.catalog.acquire(verb, wait)?;
        Ok(Locked { catalog: &mut self.catalog, capturer: &mut self.capturer, codons: &mut self.codons, lock })
    }

    /// Takes the lock if it is free now.
    pub(super) fn lock_if_free(&mut self, verb: &str) -> Result<Option<Locked<'_>>> {
        let lock = self.catalog.acquire_if_free(verb)?;
        let Timeline { catalog, capturer, codons } = self;
        Ok(lock.map(|lock| Locked { catalog, capturer, codons, lock }))
    }

    /// Brings a kept repository back to where it stood.
    ///
    /// # Errors
    /// `conflict` if something stands there, or the directory that contained it no longer exists; `disk-full`, `permission`.
    pub fn bring_back(&mut self, kept: &KeptRepository) -> Result<BroughtBack> {
        // No retention removes it meanwhile.
        let locked = self.lock("restoring")?;
        locked.refuse_interrupted()?;
        repositories::bring_back(kept, &locked.catalog.workspace.path)
    }

    /// Takes a checkpoint.
    ///
    /// # Errors
    /// `workspace-gone`, `store-locked`, `disk-full`, `permission`, `shutting-down` when `control` stopped it. Nothing is recorded
    /// then.
    pub fn take(&mut self, take: &Take, control: &dyn Fn() -> Flow) -> Result<Taken> {
        let mut locked = self.lock(take.draft.kind.as_str())?;
        if let Some(taken) = locked.taken_elsewhere(take, control)? {
            return Ok(taken);
        }
        let (taken, observed) = locked.take(take, control)?;
        // The lock is released before the observation is freed, which takes time.
        drop(locked);
        let parts = observed.parts();
        memory::drop_beside(observed, parts);
        Ok(taken)
    }

    /// Drops a leaf that a whole checkpoint of the same moment has made superfluous.
    ///
    /// # Errors
    /// Returns the errors of the lock and of the ref.
    pub fn forget(&mut self, leaf: &Checkpoint) -> Result<()> {
        self.lock("dropping a leaf")?.drop_ref(&leaf.name, leaf.id)
    }

    /// Looks at the workspace as it is now; of one that is too broad, at the paths of the checkpoint `beside`. Nothing is stored.
    ///
    /// # Errors
    /// `workspace-gone`, and those of reading.
    pub fn present(&mut self, beside: Option<&Checkpoint>, control: &dyn Fn() -> Flow) -> Result<Present> {
        let beside = beside.filter(|_| self.workspace().scope == Scope::TargetsOnly);
        let extent = beside.map(|beside| self.catalog.coverage_of(beside)).transpose()?.map(|coverage| coverage.extent);
        let selection = extent.as_ref().map(Selection::of_extent).unwrap_or_default();
        self.capturer.look(&self.catalog, &Take::for_looking(CheckpointKind::PreRestore, selection), control)
    }

    /// Lists checkpoints.
    ///
    /// # Errors
    /// `store-damaged`; a missing workspace is listed without the changes after the newest checkpoint.
    pub fn listing(&mut self, query: &ListFilter, control: &dyn Fn() -> Flow) -> Result<CheckpointList> {
        let present = self.present(None, control);
        self.catalog.listing(query, present)
    }

    /// Returns true if a checkpoint holds everything that is at the targets of `wanted` now; false for a damaged one.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub fn holds(&mut self, held: &ObjectId, wanted: &Selection, control: &dyn Fn() -> Flow) -> Result<bool> {
        self.capturer.holds(&self.catalog, held, wanted, control)
    }

    // The memory between captures.

    /// Keeps captures in memory from now on.
    pub fn keep_warm(&mut self) {
        self.capturer.keep_tree();
        self.catalog.store.puts_off();
    }

    /// Returns true if there is a warm tree, which tells in which directories changes matter.
    pub fn is_warm(&self) -> bool {
        self.capturer.is_warm()
    }

    /// Returns the links that the last capture found, by what is in memory of it.
    pub fn links(&self) -> Vec<RelPath> {
        self.capturer.links()
    }

    /// Returns true if the next capture looks only at what changed.
    pub fn is_live(&self) -> bool {
        self.capturer.is_live()
    }

    /// Returns the flag that a capture sets when it begins to scan, which a live tree may turn out to need.
    pub fn scanning(&self) -> Arc<AtomicBool> {
        self.capturer.scanning()
    }

    /// Returns true if there is a source of changes.
    pub fn has_change_source(&self) -> bool {
        self.capturer.has_source()
    }

    /// Returns true if changes in a directory matter; all do while nothing was captured.
    pub fn admits(&self, dir: &RelPath) -> bool {
        self.capturer.tree().is_none_or(|tree| tree.admits(&self.catalog.workspace.path, dir))
    }

    /// Asks `source` for changes from now on; without one, every capture scans.
    pub fn set_change_source(&mut self, source: Option<Box<dyn ChangeSource>>) {
        self.capturer.set_source(source);
    }

    /// Asks for the changes ahead of a capture, while the action that causes it is still being judged.
    pub fn sync_ahead(&mut self) {
        self.capturer.sync_ahead(&self.catalog.workspace.path);
    }

    /// Lists the paths that changed at or after `since` (the file system's clock, nanoseconds), as far as is known.
    pub fn touched_since(&mut self, since: i64) -> Vec<RelPath> {
        self.capturer.touched_since(&self.catalog.workspace.path, since)
    }

    /// Returns the cost of the last checkpoint that was taken through this timeline.
    pub fn cost(&self) -> Option<Cost> {
        self.capturer.cost()
    }

    // Idle time.

    /// Builds the trees of a warm tree. Begins to trust the source of changes, once a look has found the earlier ones.
    /// `control` may stop it; the next call does the rest.
    ///
    /// # Errors
    /// `shutting-down` when it was stopped; those of looking. Captures scan then, as before.
    pub fn warm_up(&mut self, control: &dyn Fn() -> Flow) -> Result<()> {
        self.capturer.warm_up(&self.catalog, control)
    }

    /// Looks at everything and counts the changes that the source had not reported.
    ///
    /// # Errors
    /// As [`Timeline::warm_up`].
    pub fn audit(&mut self, control: &dyn Fn() -> Flow) -> Result<Audit> {
        self.capturer.audit(&self.catalog, control)
    }

    /// Writes the stamps if the memory is newer than their file.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing; the old file stays.
    pub fn save_known(&mut self) -> Result<()> {
        self.lock("saving stamps")?.save_stamps()
    }

    /// Compresses the objects that large checkpoints left uncompressed, as much as `slice` allows or until `control`
    /// stops it.
    ///
    /// # Errors
    /// As [`Store::recompress`]; nothing is lost by them.
    pub fn recompress(&mut self, slice: Slice, control: &dyn Fn() -> Flow) -> Result<()> {
        let recompressed = self.catalog.store.recompress(slice, control);
        self.catalog.recompress_local(slice, control)?;
        self.consolidate(BOUNDS, control)?;
        recompressed.map(drop)
    }

    /// Makes one pack of many loose objects or of many small packs, unless `control` stops it.
    ///
    /// # Errors
    /// As [`Store::consolidate`]; nothing is lost by them.
    pub fn consolidate(&mut self, bounds: Bounds, control: &dyn Fn() -> Flow) -> Result<()> {
        self.catalog.store.consolidate(bounds, control).map(drop)
    }

    // The records.

    /// Appends to the journal.
    ///
    /// # Errors
    /// Returns the errors of the lock and the journal.
    pub fn note(&mut self, lines: &[Line]) -> Result<()> {
        self.lock("noting an effect")?.append(lines)
    }

    /// Changes the state file.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing.
    pub fn change_state(&mut self, change: impl FnOnce(&mut WorkspaceState)) -> Result<()> {
        self.lock("changing the state")?.change_state(change)
    }

    /// Fetches other machines' checkpoints from any git server.
    ///
    /// # Errors
    /// When there is no git; those of locks and of the store; `shutting-down` when `control` stopped it. Refs brought over before an
    /// error stay.
    pub fn receive(&mut self, remote: &OsStr, control: Interrupt<'_>) -> Result<Received> {
        let fetched = self.catalog.fetch(remote, control)?;
        self.lock("fetching")?.take_over(fetched)
    }

    // Going back.

    /// Shows what a restore would do; nothing is stored or touched.
    ///
    /// # Errors
    /// `no-such-checkpoint`, `workspace-gone`, `store-damaged`, and those of reading.
    pub fn preview(&mut self, restore: &Restore, control: &dyn Fn() -> Flow) -> Result<Preview> {
        self.capturer.preview(&self.catalog, restore, control)
    }

    /// Restores.
    ///
    /// # Errors
    /// Before anything is touched: `rollback-in-progress` while an interrupted restore waits, `pre-restore-failed`,
    /// `incomplete-checkpoint` when content of the target is missing, `stale-plan` and `stale-selection` when another
    /// plan was agreed to, and those of [`Timeline::preview`]. Afterwards failures of single paths are part of the
    /// result.
    pub fn restore(&mut self, restore: &Restore, control: &dyn Fn() -> Flow) -> Result<Restored> {
        self.lock(RESTORING)?.restore(restore, control)
    }

    /// Finishes an interrupted restore, or takes it back. Either way the tree is whole afterwards, except for files
    /// that were edited or created since: these stay, and are listed.
    ///
    /// # Errors
    /// `no-such-checkpoint` when none is interrupted; those of [`Timeline::restore`].
    pub fn resume(&mut self, go_on: bool, control: &dyn Fn() -> Flow) -> Result<Restored> {
        self.lock(RESTORING)?.resume(go_on, control)
    }

    /// Rolls a run back: restores, and notes that its next typed checkpoint opens a new branch from the target. The run
    /// moves even if no file has to change.
    ///
    /// # Errors
    /// Before anything is touched: `codon-running` while a codon of the run runs, `rollback-in-progress` while another
    /// process restores or an interrupted restore waits, and those of [`Timeline::restore`].
    pub fn rollback(
        &mut self,
        restore: &Restore,
        tell: &dyn Fn(RestoreStage<'_>),
        control: &dyn Fn() -> Flow,
    ) -> Result<RolledBack> {
        let lock = match self.catalog.acquire(RESTORING, Duration::ZERO) {
            Err(error) if error.code() == Code::StoreLocked => {
                in_progress(&self.catalog.workspace.dir)?;
                self.catalog.acquire(RESTORING, LOCK_WAIT)?
            }
            lock => lock?,
        };
        let Timeline { catalog, capturer, codons } = self;
        Locked { catalog, capturer, codons, lock }.rollback(restore, tell, control)
    }

    // Runs and codons.

    /// Lists all runs, in the order in which they began; and refs that could not be read.
    ///
    /// # Errors
    /// Returns the errors of listing and of reading the runs' files.
    pub fn runs(&self) -> Result<(Vec<ListedRun>, Vec<String>)> {
        self.catalog.runs(&self.codons)
    }

    /// Notes that a run begins or continues.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing.
    pub fn start_run(&mut self, begin: &RunDetails) -> Result<()> {
        self.lock("run.start")?.start_run(begin)
    }

    /// Notes that a run has ended, and returns the checkpoint of its end. A codon that still runs is recorded as
    /// `exit`, else changes since the run's last typed checkpoint are. A run that was never begun and has no codons
    /// records nothing.
    ///
    /// # Errors
    /// Returns the errors of the lock, of taking the checkpoint and of writing; then the run stays open.
    pub fn end_run(&mut self, run: &str, status: RunEnding, control: &dyn Fn() -> Flow) -> Result<Option<Taken>> {
        self.lock("run.end")?.end_run(run, status, control)
    }

    /// Notes the end of the runs whose client's process has ended without an event, of their open turns, and of turns whose connection
    /// broke with its process.
    ///
    /// # Errors
    /// Returns the errors of the lock and of writing; then the next call does it.
    pub fn end_left_runs(&mut self, control: &dyn Fn() -> Flow) -> Result<()> {
        let left = left_runs(&self.catalog.workspace.dir)?;
        self.end_left_turns(&left, control)?;
        if left.is_empty() {
            return Ok(());
        }
        let locked = self.lock("run.end")?;
        left.iter().try_for_each(|run| locked.end_left_run(run))
    }

    /// Makes a run whose first typed checkpoint follows `from`. No file is touched.
    ///
    /// # Errors
    /// `conflict` when there is such a run; those of the lock and of writing.
    pub fn fork_run(&mut self, begin: &RunDetails, from: &Checkpoint) -> Result<()> {
        self.lock("run.fork")?.fork_run(begin, from)
    }

    /// Begins a codon, and returns all patterns that are in force from now on. Records nothing. A codon that brings no patterns
    /// brings those of the configuration.
    ///
    /// # Errors
    /// `codon-running` while one of the run runs; `bad-request` for an id or a pattern that is none; those of the lock and
    /// of writing.
    pub fn start_codon(&mut self, run: &str, codon: &NewCodon) -> Result<Vec<String>> {
        codon.check()?;
        self.lock("codon.start")?.start_codon(run, codon)
    }

    /// Records an event of a codon: always, even when no file changed.
    ///
    /// # Errors
    /// `no-such-codon` when it does not run (only `skipped` is allowed for one that never began); `codon-running` when
    /// another process runs it; those of taking a checkpoint.
    pub fn mark_codon(&mut self, run: &str, mark: &CodonMark, control: &dyn Fn() -> Flow) -> Result<Taken> {
        self.lock(mark.kind.as_str())?.mark_codon(run, mark, control)
    }

    /// Records that a client of a run disconnected while its codon ran, or while the run was open.
    ///
    /// # Errors
    /// Returns the errors of taking a checkpoint.
    pub fn exit(
        &mut self,
        run: &str,
        departure: Departure,
        turn: Option<String>,
        control: &dyn Fn() -> Flow,
    ) -> Result<()> {
        self.lock(CheckpointKind::Exit.as_str())?.exit(run, departure, turn, control)
    }

    /// Returns the running codon of a run, if a process really holds it.
    ///
    /// # Errors
    /// Returns the errors of reading and of the lock.
    pub fn running_codon(&self, run: &str) -> Result<Option<Running>> {
        self.codons.running(&self.catalog.workspace.dir, run)
    }

    /// Refuses while a codon of the run runs.
    ///
    /// # Errors
    /// `codon-running`.
    pub fn refuse_running(&self, run: &str) -> Result<()> {
        self.codons.refuse_running(&self.catalog.workspace.dir, run)
    }

    /// Returns the files that a run's patterns match now, and those that they miss; `None` where everything is tracked.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub fn tracked_now(&mut self, run: &str, control: &dyn Fn() -> Flow) -> Result<Option<TrackedNow>> {
        let Timeline { catalog, capturer, .. } = self;
        let looking = Take::of(CheckpointKind::PreRestore, "local", "looking");
        catalog.tracked_now(run, || capturer.look(catalog, &looking, control))
    }
}
