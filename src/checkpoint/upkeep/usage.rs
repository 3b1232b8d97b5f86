//! The stored bytes of each workspace, as the last round of maintenance counted them.
//!
//! The file `usage` in piton's home has the figures of all workspaces. It is a cache: without it nothing is known until the
//! next round. What checkpoints have stored since is in the file `ordinal` of their workspace, which is written anyway.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::checkpoint::catalog::numbers::Noted;
use crate::checkpoint::records::home::Home;
use crate::checkpoint::records::workspace::Workspace;
use crate::error::{Code, Error, Result};
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
    /// Bytes by which those checkpoints that stay in any case are over `retention.total_mb`.
    #[serde(default)]
    pub over: u64,
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
            .map_err(|error| Error::new(Code::Internal, "writing down what workspaces take").caused_by(error))?;
        replace_cache(&home.path().join("usage"), &text)
    }

    /// Returns the bytes that no other workspace reaches, with those that were stored since the count.
    pub fn own_now(&self, workspace: &Workspace) -> u64 {
        let of = self.workspaces.get(&workspace.id).copied().unwrap_or_default();
        of.own + Noted::read(&workspace.dir).stored.saturating_sub(of.by_then)
    }
}
