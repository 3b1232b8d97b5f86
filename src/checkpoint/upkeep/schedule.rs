//! The schedule of maintenance: when a round is due, and what has been found twice.
//!
//! A clock that jumps must prune nothing. So the home has a clock of its own, *seen time*, which only goes forward. In one
//! boot it goes with the time since the start of the machine. Over a start of the machine the wall clock decides, and counts
//! as one interval at most. Checkpoints that are old, and directories that are gone, are only noted by the first look. They
//! go with a later look, an interval after it, that still finds them so. A prune by a person is shown, and takes the wall
//! clock at its word.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checkpoint::records::home::Home;
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::sys::clock::{boot_id, is_same_boot, now_ms, since_boot_ms};
use crate::sys::fs::durable::replace_cache;

/// The milliseconds of an hour.
pub const HOUR: i64 = 3_600_000;

/// The milliseconds of a day.
const DAY: i64 = 24 * HOUR;

/// A moment, by the wall clock and by the time since the start of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// Milliseconds since 1970.
    pub wall: i64,
    /// The id of the boot; empty where none was known.
    pub boot: String,
    /// Milliseconds since that boot.
    pub since_boot: i64,
}

impl Moment {
    /// Returns the present.
    pub fn now() -> Moment {
        Moment { wall: now_ms(), boot: boot_id(), since_boot: since_boot_ms() }
    }

    fn is_of_boot(&self, other: &Moment) -> bool {
        is_same_boot(&other.boot, &self.boot) == Some(true)
    }

    /// Returns the time that has certainly passed since an earlier moment, as far as `interval` for one of another boot.
    fn passed_since(&self, earlier: &Moment, interval: i64) -> i64 {
        match self.is_of_boot(earlier) {
            true => self.since_boot.saturating_sub(earlier.since_boot).max(0),
            false => self.wall.saturating_sub(earlier.wall).clamp(0, interval),
        }
    }

    /// Returns true if no time would count from `earlier` on until this clock has caught up with it.
    fn is_behind(&self, earlier: &Moment) -> bool {
        match self.is_of_boot(earlier) {
            true => self.since_boot < earlier.since_boot,
            false => self.wall < earlier.wall,
        }
    }
}

/// The findings that wait for a second look, each with the seen time of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Found {
    /// Old checkpoints, by their ids.
    old: BTreeMap<String, i64>,
    /// Workspaces whose directories are gone, by their ids; with the wall clock's time too.
    orphans: BTreeMap<String, (i64, i64)>,
}

/// The state of maintenance between two rounds: the file `upkeep.json` in piton's home.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schedule {
    /// Seen time at the moment `at`, in milliseconds.
    seen: i64,
    /// The moment of the last change of this state.
    at: Moment,
    /// Seen time at the end of the last round.
    last: i64,
    /// Seen time of the last try of a process that was about to end.
    tried: Option<i64>,
    found: Found,
}

impl Schedule {
    /// Begins to count: the first round comes after an interval.
    fn from(now: Moment) -> Schedule {
        Schedule { at: now, ..Schedule::default() }
    }

    /// Reads the state. Without one, or with a damaged one, counting begins now.
    pub(super) fn read(home: &Home, now: &Moment) -> (Schedule, bool) {
        let known = std::fs::read(home.path().join("upkeep.json")).ok(); // without it counting begins now
        let known: Option<Schedule> = known.and_then(|bytes| serde_json::from_slice(&bytes).ok()); // as a lost one
        known.map_or_else(|| (Schedule::from(now.clone()), true), |known| (known, false))
    }

    /// Writes the state.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn write(&self, home: &Home) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Code::Internal, "writing the schedule of maintenance").caused_by(error))?;
        replace_cache(&home.path().join("upkeep.json"), &text)
    }

    /// Goes on to the present. Returns true if the state has to be written: a clock went back, so that time would not count
    /// before it has caught up.
    pub fn go_on(&mut self, now: &Moment, interval: i64) -> bool {
        let is_behind = now.is_behind(&self.at);
        self.seen = self.seen.saturating_add(now.passed_since(&self.at, interval));
        self.at = now.clone();
        is_behind
    }

    /// Returns the milliseconds until the next round; 0 if it is due.
    pub fn due_in(&self, interval: i64) -> i64 {
        interval.saturating_sub(self.seen.saturating_sub(self.last)).max(0)
    }

    /// Returns true if no process that was about to end has tried a round within the interval.
    pub fn may_try(&self, interval: i64) -> bool {
        self.tried.is_none_or(|tried| self.seen.saturating_sub(tried) >= interval)
    }

    /// Notes the try of a process that is about to end.
    pub fn tries(&mut self) {
        self.tried = Some(self.seen);
    }

    /// Returns the judge of what a plan finds. A round, which has an interval, asks for two looks.
    pub fn looks(&self, interval: Option<i64>) -> Looks {
        Looks { interval, at: (self.seen, self.at.wall), before: self.found.clone(), now: Found::default() }
    }

    /// Notes the end of a round, or of a prune by a person.
    pub fn ended(&mut self, looks: Looks) {
        // A prune by a person judges no age for a second look.
        if looks.interval.is_some() {
            self.found.old = looks.now.old;
        }
        self.found.orphans = looks.now.orphans;
        self.last = self.seen;
    }
}

/// The judge of what may go for its age, by this look and earlier ones.
#[derive(Debug)]
pub struct Looks {
    /// The least time between two looks; `None` for a prune by a person.
    interval: Option<i64>,
    /// The present, as seen time and by the wall clock.
    at: (i64, i64),
    before: Found,
    now: Found,
}

impl Looks {
    /// Returns true if a checkpoint that is too old may go; else it is noted for a later look.
    pub fn may_go(&mut self, id: &ObjectId) -> bool {
        let id = id.to_string();
        let first = self.before.old.get(&id).copied().unwrap_or(self.at.0);
        self.now.old.insert(id, first);
        self.interval.is_none_or(|interval| self.at.0.saturating_sub(first) >= interval)
    }

    /// Returns true if a workspace whose directory is gone has been so for `days`; else it is noted for a later look.
    pub fn may_go_as_orphan(&mut self, workspace: &str, days: Option<u32>) -> bool {
        let first = self.before.orphans.get(workspace).copied().unwrap_or(self.at);
        self.now.orphans.insert(workspace.to_owned(), first);
        let Some(least) = days.map(|days| i64::from(days) * DAY) else { return false };
        match self.interval {
            Some(interval) => self.at.0.saturating_sub(first.0) >= least.max(interval),
            None => self.at.1.saturating_sub(first.1) >= least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::ObjectKind;

    const YEAR: i64 = 365 * DAY;
    const T0: i64 = 1_767_225_600_000;

    fn moment(boot: &str, wall: i64, since_boot: i64) -> Moment {
        Moment { wall, boot: boot.to_owned(), since_boot }
    }

    fn begun() -> Schedule {
        Schedule::from(moment("a", T0, HOUR))
    }

    fn id(n: u8) -> ObjectId {
        ObjectId::of(ObjectKind::Blob, &[n]).unwrap()
    }

    #[test]
    fn a_round_is_due_after_an_interval_of_the_running_machine() {
        let mut schedule = begun();
        assert_eq!(schedule.due_in(DAY), DAY);
        for hour in 1..24 {
            assert!(!schedule.go_on(&moment("a", T0 + hour * HOUR, HOUR + hour * HOUR), DAY));
            assert!(schedule.due_in(DAY) > 0, "{hour}");
        }
        schedule.go_on(&moment("a", T0 + DAY, HOUR + DAY), DAY);
        assert_eq!(schedule.due_in(DAY), 0);
        schedule.ended(schedule.looks(Some(DAY)));
        assert_eq!(schedule.due_in(DAY), DAY);
    }

    #[test]
    fn in_one_boot_the_wall_clock_does_not_matter() {
        for jump in [-50 * YEAR, -YEAR, -1, YEAR, 50 * YEAR, i64::MAX - T0, i64::MIN + T0] {
            let mut schedule = begun();
            assert!(!schedule.go_on(&moment("a", T0.saturating_add(jump), 2 * HOUR), DAY), "{jump}");
            assert_eq!(schedule.due_in(DAY), DAY - HOUR, "{jump}");
        }
    }

    #[test]
    fn over_a_start_of_the_machine_an_interval_counts_at_most() {
        let mut schedule = begun();
        schedule.go_on(&moment("b", T0 + 50 * YEAR, 0), DAY);
        assert_eq!((schedule.seen, schedule.due_in(DAY)), (DAY, 0));
        // The clock is set right again: what is said counts from there on.
        schedule.ended(schedule.looks(Some(DAY)));
        assert!(schedule.go_on(&moment("c", T0 + HOUR, 0), DAY), "the clock went back");
        assert_eq!(schedule.due_in(DAY), DAY);
        assert!(!schedule.go_on(&moment("c", T0 + HOUR + DAY, DAY), DAY));
        assert_eq!(schedule.due_in(DAY), 0);
        // Without an id of the boot only the wall clock is left.
        let mut schedule = Schedule::from(moment("", T0, 5 * HOUR));
        schedule.go_on(&moment("", T0 + 2 * HOUR, 0), DAY);
        assert_eq!(schedule.due_in(DAY), DAY - 2 * HOUR);
    }

    #[test]
    fn what_is_old_goes_with_the_second_look_and_only_if_it_still_is() {
        let mut schedule = begun();
        let mut looks = schedule.looks(Some(DAY));
        assert!(!looks.may_go(&id(1)) && !looks.may_go(&id(2)));
        schedule.ended(looks);
        // A look too early changes nothing.
        schedule.go_on(&moment("a", T0, HOUR + DAY - 1), DAY);
        assert!(!schedule.looks(Some(DAY)).may_go(&id(1)));
        // A jump over years and a start of the machine count as one interval.
        schedule.go_on(&moment("a", T0, HOUR + DAY), DAY);
        let mut looks = schedule.looks(Some(DAY));
        assert!(looks.may_go(&id(1)) && !looks.may_go(&id(3)));
        schedule.ended(looks);
        // The second one was not old in this look: it begins anew.
        schedule.go_on(&moment("a", T0, HOUR + 2 * DAY), DAY);
        let mut looks = schedule.looks(Some(DAY));
        assert!(!looks.may_go(&id(2)) && looks.may_go(&id(3)));
        assert!(begun().looks(None).may_go(&id(9)), "a person has seen it");
    }

    #[test]
    fn an_orphan_goes_after_its_days_in_seen_time() {
        let mut schedule = begun();
        let mut looks = schedule.looks(Some(DAY));
        assert!(!looks.may_go_as_orphan("w", Some(7)) && !looks.may_go_as_orphan("w", Some(0)));
        schedule.ended(looks);
        for start in 1..7 {
            // Each start of the machine finds another century.
            schedule.go_on(&moment(&format!("boot {start}"), T0 + start * 100 * YEAR, 0), DAY);
            let mut looks = schedule.looks(Some(DAY));
            assert!(!looks.may_go_as_orphan("w", Some(7)), "{start}");
            assert!(looks.may_go_as_orphan("w", Some(0)) && !looks.may_go_as_orphan("w", None));
            schedule.ended(looks);
        }
        schedule.go_on(&moment("boot 6", T0, DAY), DAY);
        let mut looks = schedule.looks(Some(DAY));
        assert!(looks.may_go_as_orphan("w", Some(7)));
        // A workspace that came back is forgotten.
        schedule.ended(schedule.looks(Some(DAY)));
        assert!(!schedule.looks(Some(DAY)).may_go_as_orphan("w", Some(7)));
        // A person has seen the plan, and the wall clock counts.
        let mut schedule = begun();
        let mut looks = schedule.looks(None);
        assert!(looks.may_go_as_orphan("w", Some(0)) && !looks.may_go_as_orphan("w", Some(7)));
        schedule.ended(looks);
        schedule.go_on(&moment("b", T0 + 7 * DAY, 0), DAY);
        assert!(schedule.looks(None).may_go_as_orphan("w", Some(7)));
        assert!(!schedule.looks(Some(DAY)).may_go_as_orphan("w", Some(7)));
    }

    #[test]
    fn a_process_that_ends_tries_once_an_interval() {
        let mut schedule = begun();
        for day in 1..3 {
            assert!(schedule.may_try(DAY));
            schedule.tries();
            assert!(!schedule.may_try(DAY));
            schedule.go_on(&moment("a", T0, HOUR + day * DAY), DAY);
        }
    }

    #[test]
    fn a_damaged_state_begins_anew() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        let now = Moment::now();
        assert!(Schedule::read(&home, &now).1);
        let mut schedule = begun();
        let mut looks = schedule.looks(Some(DAY));
        looks.may_go(&id(1));
        schedule.ended(looks);
        schedule.write(&home).unwrap();
        assert_eq!(Schedule::read(&home, &now), (schedule, false));
        std::fs::write(home.path().join("upkeep.json"), b"{\"seen\": tru").unwrap();
        assert_eq!(Schedule::read(&home, &now), (Schedule::from(now.clone()), true));
        assert!(now.since_boot > 0);
    }
}
