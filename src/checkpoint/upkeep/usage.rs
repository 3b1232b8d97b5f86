//! The stored bytes of each workspace, as the last round of maintenance counted them.
//!
//! The file `usage` in piton's home has the figures of all workspaces. It is a cache: without it nothing is known until the
//! next round. The bytes that checkpoints have stored since are in the file `ordinal` of their workspace, which is
//! written anyway.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checkpoint::catalog::numbers::Noted;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{Code, Error, Result};
use crate::model::text::{bytes, count};
use crate::sys::fs::durable::replace_cache;

/// The stored bytes of all workspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The time of the count, in milliseconds since 1970.
    pub at: i64,
    /// Bytes of all checkpoints, each object once.
    pub stored: u64,
    /// Bytes of objects that several workspaces reach.
    pub shared: u64,
    /// Bytes of those checkpoints that no size drops, where they were more than `retention.total_mb`; else 0.
    #[serde(default)]
    pub floor: u64,
    /// The number of workspaces of which all that is left is such checkpoints.
    #[serde(default)]
    pub at_floor: u64,
    /// The figures of each workspace, by its id.
    pub workspaces: BTreeMap<String, WorkspaceUsage>,
}

/// The stored bytes of one workspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceUsage {
    /// Bytes that no other workspace reaches.
    pub own: u64,
    /// Bytes of its objects that other workspaces reach too.
    pub shared: u64,
    /// The number of its checkpoints, without base captures.
    pub checkpoints: u64,
    /// Bytes that its checkpoints had stored by then, in all its time.
    pub by_then: u64,
}

impl Usage {
    /// Reads the figures of the last round; `None` before the first one, and if the file is damaged.
    pub fn read(home: &Home) -> Option<Usage> {
        let bytes = std::fs::read(home.path().join("usage")).ok()?; // without it nothing is known yet
        serde_json::from_slice(&bytes).ok() // as a damaged cache
    }

    /// Writes the figures.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn write(&self, home: &Home) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Error::new(Code::Internal, "recording the sizes of workspaces").caused_by(error))?;
        replace_cache(&home.path().join("usage"), &text)
    }

    /// Says that a cap of `total` bytes cannot be met; `None` if it can, as far as is known.
    pub fn unmet_cap(&self, total: u64) -> Option<UnmetCap> {
        let over = self.floor.checked_sub(total).filter(|over| *over > 0)?;
        Some(UnmetCap { over, total, at_floor: self.at_floor })
    }

    /// Returns the bytes that no other workspace reaches, with those that were stored since the count.
    pub fn own_now(&self, workspace: &Workspace) -> u64 {
        let of = self.workspaces.get(&workspace.id).copied().unwrap_or_default();
        of.own + Noted::read(&workspace.dir).stored.saturating_sub(of.by_then)
    }
}

/// A cap that cannot be met: what stays in any case takes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnmetCap {
    /// The bytes over the cap.
    pub over: u64,
    /// The cap, in bytes.
    pub total: u64,
    /// The number of workspaces of which nothing more can go.
    pub at_floor: u64,
}

impl std::fmt::Display for UnmetCap {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "cannot keep the store within retention.total_mb ({}): the newest, pinned, labelled and needed checkpoints of \
             {} take {} more",
            bytes(self.total),
            count(self.at_floor, "workspace"),
            bytes(self.over)
        )
    }
}

/// The step where the cap cannot be met.
pub const UNMET_STEP: &str =
    "raise `retention.total_mb`, or remove checkpoints with `piton pin --remove` and `piton store delete`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmet_cap_is_said_until_the_cap_is_raised() {
        let usage = Usage { floor: 5_000_000, at_floor: 2, ..Usage::default() };
        let text = usage.unmet_cap(2_000_000).unwrap().to_string();
        assert!(text.contains("2 workspaces take 3.0 MB more"), "{text}");
        assert_eq!((usage.unmet_cap(5_000_000), Usage::default().unmet_cap(0)), (None, None));
    }

    #[test]
    fn the_figures_are_kept_and_a_damaged_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        assert_eq!(Usage::read(&home), None);
        let of = WorkspaceUsage { own: 7, shared: 8, checkpoints: 9, by_then: 10 };
        let usage =
            Usage { at: 1, stored: 2, shared: 3, workspaces: [("w".to_owned(), of)].into(), ..Usage::default() };
        usage.write(&home).unwrap();
        assert_eq!(Usage::read(&home), Some(usage.clone()));
        std::fs::write(home.path().join("usage"), b"{\"at\":").unwrap();
        assert_eq!(Usage::read(&home), None);
        let records = dir.path().join("w");
        std::fs::create_dir(&records).unwrap();
        let (path, since) = (dir.path().to_owned(), String::new());
        let scope = crate::checkpoint::records::workspace::Scope::Tree;
        let (id, dir) = ("w".to_owned(), records.clone());
        let workspace = Workspace { id, path, scope, since, dir, place: None, was: None, part_of: None, mode: None };
        for (noted, own) in [("", 7), ("12\n", 7), ("12 10\n", 7), ("   12     25\n", 22), ("x 25", 22)] {
            std::fs::write(records.join("ordinal"), noted).unwrap();
            assert_eq!(usage.own_now(&workspace), own, "{noted:?}");
        }
    }
}
