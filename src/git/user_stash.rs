//! Puts the stash of a repository of the user back: the ref of the newest one, and the log that lists all.
//!
//! *Invariant:* where the new list cannot be written as a whole, the list of before is written again.

use super::ref_moves::RefMove;
use super::user_repository::{UserRepository, put, remove_if_any};
use crate::error::Result;
use crate::model::repository::{RefValue, RepositoryState, STASH};

impl UserRepository {
    /// Puts the stash back as one state has it; the other state is the present one.
    ///
    /// # Errors
    /// `conflict` where the stash has moved; `disk-full`, `permission`; the errors of git.
    pub fn put_stash(&self, to: &RepositoryState, now: &RepositoryState, reason: &str) -> Result<()> {
        let written = self.write_stash(to, now, reason);
        if written.is_err() {
            let present = self.resolved(STASH);
            let is_of_log = |id: &str| to.stash.split(|byte| *byte == b' ').any(|word| word == id.as_bytes());
            let is_own = |id: &str| [newest(now), newest(to)].contains(&Some(id)) || is_of_log(id);
            if present.as_deref().is_none_or(is_own) {
                let mut there = now.clone();
                there.refs.remove(STASH);
                there.refs.extend(present.map(|id| (STASH.to_vec(), RefValue::Object(id))));
                // The first error is the one to report.
                let _ = self.write_stash(now, &there, reason);
            }
        }
        written
    }

    fn write_stash(&self, to: &RepositoryState, now: &RepositoryState, reason: &str) -> Result<()> {
        if self.has_ref_table() {
            return self.put_table_stash(&to.stash, newest(now));
        }
        let (place, log) = (self.common.join("logs/refs/stash"), to.stash.as_slice());
        if !log.is_empty() {
            // Written first: it fails before anything has moved.
            put(&place, log)?;
        }
        let value = |state: &RepositoryState| state.refs.get(STASH).cloned();
        if value(now) != value(to) {
            let one = RefMove { name: STASH.to_vec(), from: value(now), to: value(to) };
            self.move_refs(&[one], reason)?;
            if !log.is_empty() {
                put(&place, log)?;
            }
        }
        if log.is_empty() {
            remove_if_any(&place)?;
        }
        match newest(to).filter(|newest| newest_in(log) != Some(newest.as_bytes())) {
            Some(newest) => self.store_again(log, newest),
            None => Ok(()),
        }
    }

    /// Stores the newest stash by its own message, where the log lacks it: git takes a stash out of the log before it tells of that.
    fn store_again(&self, log: &[u8], newest: &str) -> Result<()> {
        let subject = self.ask(self.command().args(["log", "-1", "--format=%s", newest]), None)?;
        let subject = String::from_utf8_lossy(&subject).trim().to_owned();
        // git adds no line where the ref does not move.
        self.ask(self.command().args(["update-ref", "-d", "refs/stash"]), None)?;
        if !log.is_empty() {
            // It went with the ref.
            let before = newest_in(log).map(|id| String::from_utf8_lossy(id).into_owned()).unwrap_or_default();
            self.ask(self.command().args(["update-ref", "refs/stash", &before]), None)?;
            put(&self.common.join("logs/refs/stash"), log)?;
        }
        self.ask(self.command().args(["stash", "store", "-m", &subject, newest]), None).map(drop)
    }
}

/// Returns the stash that the ref of a state names.
fn newest(state: &RepositoryState) -> Option<&str> {
    match state.refs.get(STASH)? {
        RefValue::Object(id) => Some(id),
        RefValue::Symbolic(_) => None,
    }
}

/// Returns the object that the newest line of a ref's log names.
fn newest_in(log: &[u8]) -> Option<&[u8]> {
    let line = log.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty())?;
    line.split(|byte| *byte == b' ').nth(1)
}
