//! The limits that the kernel sets to one user's watchers, against what a workspace needs.

use std::path::{Path, PathBuf};

/// The number of instances that a few open workspaces need beside the editors and terminals of a desktop.
const FEW_INSTANCES: u64 = 64;

/// The number of events that one checkout of a large tree makes at once.
const FEW_EVENTS: u64 = 8192;

/// The part of the watches that one workspace may take before other programs miss them, in percent.
const SHARE: u64 = 80;

/// The limits in force; `None` if one cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Directories that one user may watch (`max_user_watches`).
    pub watches: Option<u64>,
    /// Watchers that one user may open (`max_user_instances`).
    pub instances: Option<u64>,
    /// Events that wait in a watcher's queue (`max_queued_events`).
    pub events: Option<u64>,
}

/// A limit that is too small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short {
    /// As `sysctl` calls it.
    pub key: &'static str,
    /// The value in force.
    pub is: u64,
    /// The least value that is enough.
    pub wanted: u64,
    /// The consequence of so few.
    pub why: String,
}

impl Limits {
    /// Reads them from a directory like [`crate::sys::inotify::LIMITS`].
    pub fn read(dir: &Path) -> Limits {
        let number = |name: &str| -> Option<u64> {
            let path: PathBuf = dir.join(name);
            std::fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        Limits {
            watches: number("max_user_watches"),
            instances: number("max_user_instances"),
            events: number("max_queued_events"),
        }
    }

    /// Returns those that are too small for a workspace of so many directories.
    pub fn short(&self, directories: u64) -> Vec<Short> {
        let mut short = Vec::new();
        let mut want = |key, is: Option<u64>, wanted: u64, why: String| {
            if let Some(is) = is.filter(|is| *is < wanted) {
                short.push(Short { key, is, wanted, why });
            }
        };
        let watches = directories.saturating_mul(100) / SHARE;
        let why = format!("the workspace has {directories} directories; those that are not watched are scanned");
        want("fs.inotify.max_user_watches", self.watches, watches.next_power_of_two().max(8192), why);
        let why = "other programs use all watches, so every checkpoint scans the workspace".to_owned();
        want("fs.inotify.max_user_instances", self.instances, FEW_INSTANCES, why);
        let why =
            "many changes at once overflow the queue, and then the next checkpoint scans the workspace".to_owned();
        want("fs.inotify.max_queued_events", self.events, FEW_EVENTS, why);
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_limits_are_listed_with_the_wanted_value() {
        let dir = tempfile::tempdir().unwrap();
        let limits = |watches: &str, instances: &str, events: &str| {
            std::fs::write(dir.path().join("max_user_watches"), watches).unwrap();
            std::fs::write(dir.path().join("max_user_instances"), instances).unwrap();
            std::fs::write(dir.path().join("max_queued_events"), events).unwrap();
            Limits::read(dir.path())
        };
        let short = |limits: Limits, directories: u64| -> Vec<(&'static str, u64)> {
            limits.short(directories).into_iter().map(|short| (short.key, short.wanted)).collect()
        };
        assert_eq!(short(limits("524288\n", "128\n", "16384\n"), 100_000), []);
        assert_eq!(short(limits("8192\n", "128\n", "16384\n"), 5_000), []);
        assert_eq!(short(limits("8192\n", "128\n", "16384\n"), 50_000), [("fs.inotify.max_user_watches", 65536)]);
        let all = short(limits("100", "8", "16"), 10);
        assert_eq!(all.len(), 3, "{all:?}");
        assert_eq!(short(Limits::read(Path::new("/nonexistent")), 1_000_000), []);
    }
}
