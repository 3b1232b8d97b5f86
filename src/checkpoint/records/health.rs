//! A look for faults in the records of all workspaces.

use std::path::PathBuf;

use super::home::Home;
use super::workspace::Workspace;
use crate::checkpoint::history::interrupted::interrupted;
use crate::checkpoint::history::journal::OperationStart;
use crate::error::{IoContext, Result};
use crate::sys::clock::{boot_id, is_same_boot};

/// The records of a home, as they are found.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The workspaces whose identity can be read.
    pub known: Vec<Workspace>,
    /// Directories of workspaces whose identity cannot be read.
    pub unreadable: Vec<PathBuf>,
    /// Restores that were interrupted, and in which workspace.
    pub interrupted: Vec<(Workspace, OperationStart)>,
    /// Logs from before the last start of the machine that are not applied yet.
    pub unapplied: Vec<PathBuf>,
}

/// Looks at them; nothing is changed.
///
/// # Errors
/// When they cannot be listed or read.
pub fn records(home: &Home) -> Result<Records> {
    let mut records = Records { known: Workspace::known(home)?, ..Records::default() };
    let dir = home.workspaces();
    if !dir.is_dir() {
        return Ok(records);
    }
    let booted = std::fs::read_to_string(home.path().join("boot")).unwrap_or_default();
    let applied = is_same_boot(booted.trim(), &boot_id()) == Some(true);
    for entry in std::fs::read_dir(&dir).at("listing", &dir)? {
        let path = entry.at("listing", &dir)?.path();
        if !records.known.iter().any(|workspace| workspace.dir == path) {
            records.unreadable.push(path.clone());
        }
        let log = path.join("log");
        if !applied && log.metadata().is_ok_and(|facts| facts.len() > 0) {
            records.unapplied.push(log);
        }
    }
    for workspace in &records.known {
        if let Some(begin) = interrupted(&workspace.dir)? {
            records.interrupted.push((workspace.clone(), begin));
        }
    }
    Ok(records)
}
