//! Rounds of maintenance: what a prune does, done by a process that is at hand anyway.
//!
//! A daemon or a sidecar does a round in idle time, and a short command tries one before it ends. A round is due once in
//! `retention.interval_hours` for all of piton's home. It has one owner, which holds `upkeep.lock`. It gives way at once,
//! and the next one goes on: what it has dropped and packed by then stays done, and only its end is written down.
//! *Invariant:* a round waits for no lock of a workspace: where another process writes, it leaves that for the next time.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::forget::{self, Pace};
use super::prune::{PrunePlan, PruneWish};
use super::schedule::{HOUR, Looks, Moment, Schedule};
use super::usage::{UnmetCap, Usage};
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{Code, Error, Result};
use crate::model::policy::Policy;
use crate::settings::{self, Effective, WORKSPACE_FILE};
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::interrupt::{Flow, Interrupt};
use crate::sys::progress::WorkControl;

/// The time after a round that gave way until it is tried again.
const GAVE_WAY: Duration = Duration::from_secs(5);

/// The longest time between two looks at the schedule: another process may have changed it.
const LOOK: Duration = Duration::from_mins(10);

/// The time that a round takes at most of a process that is about to end.
const AT_END: Duration = Duration::from_millis(200);

/// The end of a look at the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEnd {
    /// No round was due, or another process does it.
    NotDue,
    /// It gave way; a later one goes on.
    GaveWay,
    /// It was done.
    Done,
}

/// The right to maintain piton's home, held by one process at a time.
#[derive(Debug)]
pub struct UpkeepLock {
    _lock: FileLock,
}

impl UpkeepLock {
    /// Takes it, waiting at most `wait`.
    ///
    /// # Errors
    /// `store-locked` with the holder's words when the wait is over.
    pub fn take(home: &Home, verb: &str, wait: Duration) -> Result<UpkeepLock> {
        let path = home.path().join("upkeep.lock");
        Ok(UpkeepLock { _lock: FileLock::acquire(&path, Mode::Exclusive, verb, wait)? })
    }

    /// Notes the end of a prune: what a round would have done is done.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn ended(&self, home: &Home, looks: Looks) -> Result<()> {
        let now = Moment::now();
        let (mut schedule, _) = Schedule::read(home, &now);
        schedule.go_on(&now, HOUR);
        schedule.ended(looks);
        schedule.write(home)
    }
}

/// Returns the judge of a plan that a person sees.
pub fn looks_of_person(home: &Home) -> Looks {
    let now = Moment::now();
    let (mut schedule, _) = Schedule::read(home, &now);
    schedule.go_on(&now, HOUR);
    schedule.looks(None)
}

/// Returns the settings of a workspace. Those without a file of their own, which are most, share the common ones.
///
/// # Errors
/// As [`settings::load`].
pub fn policy_of(home: &Path, flags: &[(String, String)], common: &Effective, workspace: &Workspace) -> Result<Policy> {
    match workspace.path.join(WORKSPACE_FILE).symlink_metadata().is_ok() {
        true => settings::load(Some(&workspace.path), home, flags).map(|own| own.policy),
        false => Ok(common.policy.clone()),
    }
}

/// The rounds of one process.
pub struct Rounds {
    home: Home,
    /// Settings from the command line.
    flags: Vec<(String, String)>,
    state: Mutex<State>,
}

/// The cap that the last round could not meet.
#[derive(Default)]
enum LastCap {
    /// Nobody has looked yet.
    #[default]
    Unread,
    Known(Option<UnmetCap>),
}

#[derive(Default)]
struct State {
    /// The time before which the schedule is not looked at.
    quiet_until: Option<Instant>,
    /// The cap that could not be met by the last round, once it was looked for.
    unmet: LastCap,
}

impl Rounds {
    /// Returns the rounds of a process. `flags` are settings from the command line.
    pub fn new(home: Home, flags: Vec<(String, String)>) -> Rounds {
        Rounds { home, flags, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rest(&self, time: Duration) {
        self.state().quiet_until = Some(Instant::now() + time);
    }

    /// Returns the cap that could not be met by the last round, as far as this process knows. The first call reads it.
    pub fn unmet_cap(&self, total: u64) -> Option<UnmetCap> {
        let read = || Usage::read(&self.home).and_then(|usage| usage.unmet_cap(total));
        let mut state = self.state();
        match state.unmet {
            LastCap::Known(unmet) => unmet,
            LastCap::Unread => {
                let unmet = read();
                state.unmet = LastCap::Known(unmet);
                unmet
            }
        }
    }

    /// Does a round if one is due, until `control` stops it. `hours` is the interval.
    pub fn go_round(&self, hours: u32, control: Interrupt<'_>) -> RoundEnd {
        if self.state().quiet_until.is_some_and(|until| Instant::now() < until) {
            return RoundEnd::NotDue;
        }
        // Also after an error the next look is not at once.
        self.rest(GAVE_WAY);
        match self.due_round(hours, false, control) {
            Ok(end) => end,
            Err(error) if error.code() == Code::ShuttingDown => RoundEnd::GaveWay,
            Err(error) => {
                self.rest(LOOK);
                self.tell(&error);
                RoundEnd::NotDue
            }
        }
    }

    /// Tries a round, before the process ends: for a moment, and at most once an interval.
    pub fn before_end(&self, hours: u32) {
        let until = Instant::now() + AT_END;
        let in_time = || if Instant::now() < until { Flow::Continue } else { Flow::Stop };
        match self.due_round(hours, true, &in_time) {
            Err(error) if error.code() != Code::ShuttingDown => self.tell(&error),
            _ => {}
        }
    }

    fn tell(&self, error: &Error) {
        tracing::warn!(%error, "the store could not be maintained");
        let text = format!("the store could not be maintained: {}", error.text());
        if let Err(error) = mishaps::note_once(&self.home, &text) {
            tracing::warn!(%error, "could not record this");
        }
    }

    fn due_round(&self, hours: u32, at_end: bool, control: Interrupt<'_>) -> Result<RoundEnd> {
        let (interval, now) = (i64::from(hours) * HOUR, Moment::now());
        let look = || {
            let (mut schedule, is_new) = Schedule::read(&self.home, &now);
            let is_behind = schedule.go_on(&now, interval);
            (schedule, is_new || is_behind)
        };
        let (schedule, is_news) = look();
        let due_in = schedule.due_in(interval);
        if !is_news && (due_in > 0 || (at_end && !schedule.may_try(interval))) {
            self.rest(LOOK.min(Duration::from_millis(due_in.unsigned_abs())));
            return Ok(RoundEnd::NotDue);
        }
        let _lock = match UpkeepLock::take(&self.home, "maintenance", Duration::ZERO) {
            Err(error) if error.code() == Code::StoreLocked => return Ok(RoundEnd::NotDue),
            lock => lock?,
        };
        // Another process may have had it meanwhile.
        let (mut schedule, is_news) = look();
        let is_due = schedule.due_in(interval) == 0 && (!at_end || schedule.may_try(interval));
        if is_due && at_end {
            schedule.tries();
        }
        if is_news || (is_due && at_end) {
            schedule.write(&self.home)?;
        }
        if is_due { self.round(schedule, interval, control) } else { Ok(RoundEnd::NotDue) }
    }

    /// Completes a forget that was killed. Where another process is at work, it is left for the next time; a failure is told
    /// and stops nothing.
    fn complete_forget(&self, control: Interrupt<'_>) -> Result<()> {
        match forget::complete(&self.home, Pace::giving_way(control)) {
            Err(error) if error.code() == Code::ShuttingDown => return Err(error),
            Err(error) if error.code() == Code::StoreLocked => {
                tracing::info!(%error, "the rest of a killed `piton forget` is left for later");
            }
            Err(error) => self.tell(&error.context("could not finish a killed `piton forget`")),
            Ok(()) => {}
        }
        Ok(())
    }

    fn round(&self, mut schedule: Schedule, interval: i64, control: Interrupt<'_>) -> Result<RoundEnd> {
        tracing::info!("maintenance begins");
        let common = settings::load(None, self.home.path(), &self.flags)?;
        if let Some(mistake) = common.mistakes.iter().find(|mistake| mistake.may_concern("retention.")) {
            // Nobody knows then how much the person meant to keep.
            return Err(mistake.error());
        }
        self.complete_forget(control)?;
        let mut looks = schedule.looks(Some(interval));
        let policy = |workspace: &Workspace| policy_of(self.home.path(), &self.flags, &common, workspace);
        let total = common.policy.retention.total_bytes;
        let work = WorkControl::unwatched(control);
        let plan = PrunePlan::make(&self.home, &policy, (PruneWish::default(), total), &mut looks, work)?;
        plan.faults.iter().for_each(|fault| tracing::warn!(fault, "nothing of this workspace is deleted"));
        let pruned = plan.carry_out(&self.home, Duration::ZERO, work)?;
        let upkept = &pruned.upkept;
        if control() == Flow::Stop || upkept.is_interrupted {
            tracing::info!(left = upkept.left, "maintenance was postponed");
            return Ok(RoundEnd::GaveWay);
        }
        schedule.ended(looks);
        schedule.write(&self.home)?;
        self.state().unmet = LastCap::Known(Usage::read(&self.home).and_then(|usage| usage.unmet_cap(total)));
        tracing::info!(
            dropped = pruned.gone.len(),
            busy = pruned.busy,
            freed = upkept.freed.saturating_sub(upkept.written),
            left = upkept.left,
            "maintenance is done"
        );
        Ok(RoundEnd::Done)
    }
}
