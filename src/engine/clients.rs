//! The processes of the clients whose hooks have called: a daemon stays as long as one of them is there.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use crate::sys::processes::ProcessId;

/// The most processes that are remembered.
const MOST: usize = 256;

/// The processes of clients.
#[derive(Default)]
pub struct LiveClients(Mutex<HashSet<ProcessId>>);

impl LiveClients {
    /// Remembers the process of a client, which waits for the answer to its hook and so is there.
    pub fn note(&self, pid: u32) {
        let Some(process) = ProcessId::of(pid) else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(is_there);
        }
        if known.len() < MOST {
            known.insert(process);
        }
    }

    /// Returns true if one of them is still there.
    pub fn are_any(&self) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(is_there);
        !known.is_empty()
    }
}

/// Returns true for a process that is known to be there.
fn is_there(process: &ProcessId) -> bool {
    process.is_alive() == Some(true)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_client_counts_until_its_process_has_ended() {
        let clients = LiveClients::default();
        clients.note(u32::MAX);
        assert!(!clients.are_any());
        let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        clients.note(process.id());
        clients.note(process.id());
        assert!(clients.are_any());
        drop(process.stdin.take());
        process.wait().unwrap();
        assert!(!clients.are_any());
    }
}
