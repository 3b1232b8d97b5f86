//! The clocks of a turn: files have times of the wall clock, and the log of actions has times since the start of the machine.

use std::cell::Cell;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::attribution::TICK;
use crate::model::path::RelPath;
use crate::model::turn::Attribution;
use crate::sys::clock::wall_clock_offset;

/// The differences between the two clocks when a turn began and now. They are the same unless the wall clock was set in between.
pub(crate) struct TurnClock {
    offsets: [i64; 2],
    /// True if the two differences gave different answers since the last look.
    is_doubtful: Cell<bool>,
}

impl TurnClock {
    /// Returns the clocks of a turn that began with a difference; `None` where that is not known.
    pub(crate) fn since(began: Option<i64>) -> TurnClock {
        let now = wall_clock_offset();
        TurnClock { offsets: [began.unwrap_or(now), now], is_doubtful: Cell::default() }
    }

    /// Returns the present difference between the clock of files and the time since the start of the machine.
    pub(super) fn offset(&self) -> i64 {
        self.offsets[1]
    }

    /// Returns true if the wall clock was set since the turn began.
    pub(super) fn was_set(&self) -> bool {
        let [began, now] = self.offsets;
        began.abs_diff(now) > TICK.unsigned_abs()
    }

    /// Returns true if a path changed after a moment of the log of actions, by the times of the file.
    pub(crate) fn is_later(&self, root: &Path, path: &RelPath, since: i64) -> bool {
        let later = |offset: i64| changed_after(root, path, since.saturating_add(offset).saturating_add(TICK));
        let [by_first, by_last] = self.offsets.map(later);
        self.is_doubtful.set(self.is_doubtful.get() || by_first != by_last);
        by_first && by_last
    }

    /// Returns a share in a change, which is not certain if the clock was set and the times of the file would tell either way.
    pub(crate) fn doubted(&self, share: Attribution) -> Attribution {
        match (self.is_doubtful.take(), share) {
            (true, Attribution::Sure) => Attribution::Likely,
            (_, share) => share,
        }
    }
}

/// Returns true if what is at a path, or the nearest directory above it that exists, changed at or after a moment of the file
/// system's clock.
pub(crate) fn changed_after(root: &Path, path: &RelPath, since: i64) -> bool {
    let mut at = Some(path.clone());
    while let Some(place) = at {
        if let Ok(facts) = place.under(root).symlink_metadata() {
            return changed_at(&facts) >= since;
        }
        at = place.parent();
    }
    // The directory above a root that was deleted changed at that moment.
    root.parent().and_then(|above| above.symlink_metadata().ok()).is_none_or(|facts| changed_at(&facts) >= since)
}

/// Returns when a file or directory changed, in nanoseconds of the file system's clock.
fn changed_at(facts: &Metadata) -> i64 {
    facts.ctime().saturating_mul(1_000_000_000).saturating_add(facts.ctime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock::since_boot_ns;

    #[test]
    fn a_change_between_the_two_readings_of_a_set_clock_is_not_certain() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "1\n").unwrap();
        let (path, hour) = (RelPath::parse(b"a").unwrap(), 3_600_000_000_000);
        let (now, offset) = (since_boot_ns(), wall_clock_offset());
        for (began, since, is_later, expected, why) in [
            (None, now - hour, true, Attribution::Sure, "nothing is known of the clock before"),
            (None, now + hour, false, Attribution::Sure, "it is older"),
            (Some(offset), now - hour, true, Attribution::Sure, "the clock was not set"),
            (Some(offset + 2 * hour), now - hour, false, Attribution::Likely, "it was set back by two hours"),
            (Some(offset - 2 * hour), now + hour, false, Attribution::Likely, "it was set forward by two hours"),
            (Some(offset + 2 * hour), now - 3 * hour, true, Attribution::Sure, "it is later by both readings"),
        ] {
            let clock = TurnClock::since(began);
            assert_eq!(clock.is_later(dir.path(), &path, since), is_later, "{why}");
            assert_eq!(clock.doubted(Attribution::Sure), expected, "{why}");
            assert_eq!(clock.doubted(Attribution::Sure), Attribution::Sure, "the next path is another one: {why}");
            assert_eq!(clock.doubted(Attribution::Outside), Attribution::Outside, "{why}");
        }
    }
}
