//! The time that scans for steps use in a session, where nothing is watched.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sys::clock::since_boot_ns;

/// The time that scans may use in any session.
const FREE: Duration = Duration::from_secs(2);

/// The part of a session's time that scans may use.
const SHARE: u32 = 10;

/// Returns the present moment, for [`ScanTime`].
pub(super) fn since_boot() -> Duration {
    Duration::from_nanos(since_boot_ns().unsigned_abs())
}

/// The time that scans for steps have used in a session. Times are since the boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ScanTime {
    /// The time of the first scan.
    began: Duration,
    used: Duration,
}

impl ScanTime {
    /// Returns true if another scan may be done.
    pub(super) fn allows(&self, now: Duration) -> bool {
        self.used <= FREE + now.saturating_sub(self.began) / SHARE
    }

    /// Counts a scan that has ended.
    pub(super) fn add(&mut self, used: Duration, now: Duration) {
        // The first one; or the machine was started anew.
        if self.used.is_zero() || self.began > now {
            *self = ScanTime { began: now.saturating_sub(used), used: Duration::ZERO };
        }
        self.used += used;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_use_a_small_part_of_the_time_of_a_session() {
        let at = Duration::from_secs;
        let mut scans = ScanTime::default();
        assert!(scans.allows(at(1000)));
        scans.add(at(2), at(1000));
        assert!(scans.allows(at(1000)), "some time is free");
        scans.add(at(1), at(1001));
        assert!(!scans.allows(at(1001)));
        assert!(scans.allows(at(1009)), "3 seconds of 11");
        scans.add(at(30), at(1039));
        assert!(!scans.allows(at(1100)) && scans.allows(at(1310)));
        scans.add(at(1), at(5));
        assert!(scans.allows(at(5)), "the machine was started anew");
    }
}
