//! The tasks of a worker for the time when nothing waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::watcher::{self, SharedStatus, WatcherStatus, note};
use crate::checkpoint::Timeline;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::records::unguarded;
use crate::checkpoint::upkeep::rounds::{RoundEnd, Rounds};
use crate::error::Code;
use crate::model::checkpoint::CheckpointKind;
use crate::model::policy::{Policy, Watching};
use crate::store::{BRIEF, IDLE};
use crate::sys::interrupt::Flow;
use crate::sys::interrupt::Interrupt;
use crate::sys::memory;
use crate::watch::ChangeSignal;

/// The number of times in a row that the start of a watcher gives way to a job.
const GIVE_WAY: u32 = 3;

/// The longest time that a worker packs loose objects at its end. Also for dropping checkpoints, where nobody waits.
const AT_END: Duration = Duration::from_millis(300);

/// A task for the time when no job waits. They are done in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleTask {
    /// Start the watcher, or trust again what it reports. At once.
    Watch,
    /// Write the stamps where nothing is watched, remove leftovers, apply retention.
    Settle,
    /// Compress the objects that a large checkpoint left uncompressed, and pack many loose objects.
    Recompress,
    /// Empty the log. Do a round of maintenance for all of piton's home, if one is due.
    Maintain,
    /// Scan without a watcher, so that new content is read before an event waits for it (`watcher: poll`).
    Poll,
    /// Write the stamps, look whether anything was missed, and give memory back.
    Audit,
}

impl IdleTask {
    /// Returns how long after the last job it is done.
    pub(super) fn after(self) -> Duration {
        Duration::from_millis(match self {
            IdleTask::Watch => 0,
            IdleTask::Settle => 100,
            IdleTask::Recompress => 1000,
            IdleTask::Maintain => 3000,
            IdleTask::Poll => 10_000,
            IdleTask::Audit => 30_000,
        })
    }

    /// Returns the next task; a poll is repeated for as long as there is no job.
    pub(super) fn next(self, watching: Watching) -> Option<IdleTask> {
        match (self, watching) {
            (IdleTask::Watch, _) => Some(IdleTask::Settle),
            (IdleTask::Settle, _) => Some(IdleTask::Recompress),
            (IdleTask::Recompress, _) => Some(IdleTask::Maintain),
            (IdleTask::Maintain | IdleTask::Poll, Watching::Poll) => Some(IdleTask::Poll),
            (IdleTask::Maintain | IdleTask::Poll, Watching::Recommended | Watching::None) => Some(IdleTask::Audit),
            (IdleTask::Audit, _) => None,
        }
    }
}

/// The reasons for an idle task to end early.
pub(super) struct IdleWaits<'a> {
    /// Stops a task where a job waits.
    pub give_way: Interrupt<'a>,
    /// Stops a task that does not give way to jobs, where an action waits for the capture of its named paths.
    pub press: Interrupt<'a>,
}

/// The facts that idle tasks remember of one another.
pub(super) struct Idle {
    /// The rounds of maintenance, which the workers of a process share.
    rounds: Arc<Rounds>,
    /// Given by the watcher for each change.
    signal: ChangeSignal,
    /// True if a watcher was refused: it is tried once.
    is_refused: bool,
    /// The number of times in a row that the start of the watcher has given way to a job.
    gave_way: u32,
}

impl Idle {
    /// Remembers nothing yet.
    pub(super) fn new(rounds: Arc<Rounds>, signal: ChangeSignal) -> Idle {
        Idle { rounds, signal, is_refused: false, gave_way: 0 }
    }

    /// Returns true if no watcher can be started.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Does a task.
    pub(super) fn run(
        &mut self,
        task: IdleTask,
        timeline: &mut Timeline,
        status: &SharedStatus,
        waits: &IdleWaits<'_>,
    ) {
        let give_way = waits.give_way;
        match task {
            IdleTask::Watch => self.watch(timeline, status, waits),
            IdleTask::Settle => {
                settle_unguarded(timeline);
                settle(timeline, give_way);
            }
            IdleTask::Recompress => {
                let fault = timeline.recompress(IDLE, give_way).err().map(|error| error.text());
                if let Some(fault) = &fault {
                    tracing::warn!(fault, "packs could not be compressed");
                }
                note(status, |status| status.fault = fault);
            }
            IdleTask::Maintain => {
                flush(timeline);
                self.maintain(timeline, give_way);
            }
            IdleTask::Poll => {
                let polled = timeline.take(&Take::of(CheckpointKind::Turn, "local", "polling"), give_way);
                if let Err(error) = polled.map(drop) {
                    tracing::debug!(%error, "not polled");
                }
                self.maintain(timeline, give_way);
            }
            IdleTask::Audit => {
                settle_unguarded(timeline);
                audit(timeline, status, give_way);
                // A round that gave way a moment ago was not tried again before.
                self.maintain(timeline, give_way);
            }
        }
    }

    fn maintain(&self, timeline: &Timeline, give_way: Interrupt<'_>) {
        if self.rounds.go_round(timeline.policy().retention.interval_hours, give_way) != RoundEnd::NotDue {
            // A round knows every object for a moment.
            memory::give_back();
        }
    }

    /// Puts another policy in force.
    pub(super) fn set_policy(&mut self, policy: Policy, timeline: &mut Timeline, status: &SharedStatus) {
        if policy.watching != timeline.policy().watching {
            self.is_refused = false;
            timeline.set_change_source(None);
            note(status, |status| *status = WatcherStatus::default());
        }
        timeline.set_policy(policy);
    }

    /// Starts the watcher, once there is a tree that changes can be applied to.
    fn watch(&mut self, timeline: &mut Timeline, status: &SharedStatus, waits: &IdleWaits<'_>) {
        let wanted = timeline.policy().watching == Watching::Recommended;
        if !timeline.is_warm() {
            return;
        }
        if wanted && !self.is_refused && !timeline.has_change_source() {
            match watcher::start(timeline, status, self.signal.clone()) {
                Ok(source) => timeline.set_change_source(Some(Box::new(source))),
                Err(refusal) => {
                    self.is_refused = true;
                    tracing::info!(%refusal, "not watched: every checkpoint scans");
                    note(status, |status| status.refused = Some(refusal.to_string()));
                }
            }
        }
        // A client that sends job after job must not keep the watcher from starting: then the next job waits for one
        // look.
        let patient = self.gave_way < GIVE_WAY;
        let looked = timeline.warm_up(if patient { waits.give_way } else { waits.press });
        self.gave_way = match looked {
            Err(error) if error.code() == Code::ShuttingDown => self.gave_way + 1,
            Err(error) => {
                tracing::warn!(%error, "the workspace could not be checked in idle time");
                0
            }
            Ok(()) => 0,
        };
        let warm = timeline.is_live();
        note(status, |status| status.warm = warm);
    }
}

fn audit(timeline: &mut Timeline, status: &SharedStatus, give_way: Interrupt<'_>) {
    save(timeline);
    match timeline.audit(give_way) {
        Ok(audit) => note(status, |status| {
            status.audits += 1;
            status.divergences += audit.missed as u64;
        }),
        Err(error) => tracing::debug!(%error, "not audited"),
    }
    // After a long rest the memory that a large checkpoint needed is given back.
    timeline.catalog().close();
    memory::give_back();
}

/// Writes the rest that waited for idle time, at the end of the worker. Checkpoints that are too many go until `rest_until`.
pub(super) fn finish(timeline: &mut Timeline, idle: &Idle, rest_until: Option<Instant>) {
    let before = |until: Instant| if Instant::now() < until { Flow::Continue } else { Flow::Stop };
    let rest_until = rest_until.unwrap_or_else(|| Instant::now() + AT_END);
    write_rest(timeline, &|| before(rest_until));
    let until = Instant::now() + AT_END;
    if let Err(error) = timeline.consolidate(BRIEF, &|| before(until)) {
        tracing::warn!(%error, "packs could not be consolidated");
    }
    idle.rounds.before_end(timeline.policy().retention.interval_hours);
}

/// Makes late writes durable. Drops what is too much until `control` stops it: the next process does the rest.
fn write_rest(timeline: &mut Timeline, control: Interrupt<'_>) {
    settle(timeline, control);
    flush(timeline);
    save(timeline);
}

fn flush(timeline: &mut Timeline) {
    if let Err(error) = timeline.flush() {
        tracing::warn!(%error, "could not truncate the log");
    }
}

fn save(timeline: &mut Timeline) {
    if let Err(error) = timeline.save_known() {
        tracing::warn!(%error, "the stamps could not be written");
    }
}

/// Brings unguarded actions from the runtime directory into the records, if the store can be written again.
fn settle_unguarded(timeline: &Timeline) {
    if let Err(error) = unguarded::settle(timeline.workspace()) {
        tracing::debug!(%error, "unguarded actions could not be recorded");
    }
}

fn settle(timeline: &mut Timeline, give_way: Interrupt<'_>) {
    if let Err(error) = timeline.settle(give_way) {
        tracing::warn!(%error, "stamps or retention could not be written");
    }
    if let Err(error) = timeline.end_left_runs(give_way) {
        tracing::warn!(%error, "the end of a run could not be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Home, Workspace};

    #[test]
    fn a_worker_that_ends_leaves_the_rest_of_what_retention_drops() {
        let scratch = tempfile::tempdir().unwrap();
        let (home, root) = (Home::at(&scratch.path().join("home")).unwrap(), scratch.path().join("work"));
        std::fs::create_dir(&root).unwrap();
        let mut policy = crate::settings::load(None, home.path(), &[]).unwrap().policy;
        policy.retention.enabled = false;
        let workspace = Workspace::open(&home, &root).unwrap();
        let mut timeline = Timeline::open(&home, workspace, policy.clone()).unwrap();
        for n in 0..300 {
            std::fs::write(root.join("a"), n.to_string()).unwrap();
            timeline.take(&Take::of(CheckpointKind::Manual, "local", "work"), &|| Flow::Continue).unwrap();
        }
        policy.retention.enabled = true;
        (policy.retention.per_workspace, policy.retention.labelled) = (1, 1);
        timeline.set_policy(policy);
        let left = |timeline: &Timeline| timeline.catalog().all().unwrap().checkpoints.len();
        write_rest(&mut timeline, &|| Flow::Stop);
        let after = left(&timeline);
        assert!((2..300).contains(&after), "{after}");
        write_rest(&mut timeline, &|| Flow::Continue);
        assert_eq!(left(&timeline), 1, "{after}");
    }
}
