//! The state of one session of a client: its run and its turn, shared by all of its connections.
//!
//! Every event of a hook is a process of its own, so the state of a named session is kept beside the store. Another
//! process or another daemon continues from it. The file is not synced: a power cut costs at worst one more checkpoint.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard::Turns;
use super::scan_time::ScanTime;
use super::told::Told;
use crate::checkpoint::Home;
use crate::checkpoint::runs::client::RunClient;
use crate::sys::fs::durable::{create_private_dir, replace_cache};
use crate::sys::fs::mark::FileMark;

/// The number of sessions in memory from which on those that no connection uses are dropped.
const MANY: usize = 256;

/// The number of agents, each a sub-agent of the next, that are followed.
const DEEPEST: usize = 8;

/// The age from which on files of unused sessions are removed.
const OLD: Duration = Duration::from_hours(14 * 24);

/// One session's state.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionState {
    /// The run, `local` for a session without a name.
    pub run: String,
    /// The open turn, with the checkpoints that protect it.
    pub turns: Turns,
    /// The name by which the session's client calls itself.
    pub client: Option<String>,
    /// True if the client is a person's shell, or a git outside of all clients: only the door tells that, and not the client's name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_persons: bool,
    /// The client's own name of the session, where that is no id of piton's.
    pub named: Option<String>,
    /// The run that this one is a part of: a sub-agent's is its agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The run in whose turn this one works, where it is a sub-agent's: some clients tell that once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<String>,
    /// The time that scans for steps have used.
    pub(super) scans: ScanTime,
    /// The workspaces and runs for which the client is noted, with what is noted there.
    #[serde(skip)]
    pub noted: HashMap<(String, String), RunClient>,
    /// The record of what the client's model was told, in a file of its own.
    #[serde(skip)]
    pub told: Told,
    /// The file that keeps the state; `None` for a session without a name.
    #[serde(skip)]
    file: Option<PathBuf>,
    /// The mark of the file when it was last read or written.
    #[serde(skip)]
    mark: Option<FileMark>,
}

/// Returns the mark of the file, which shows that another process replaced it. A file that cannot be looked at counts
/// as missing.
fn mark(file: &Path) -> Option<FileMark> {
    FileMark::behind(file).ok().flatten()
}

impl SessionState {
    /// Makes the state of a session without a name, which ends with its connection.
    pub fn unnamed() -> SessionState {
        SessionState { run: "local".to_owned(), ..SessionState::default() }
    }

    /// Notes by which names the client calls itself and the session, and the run above it; kept where that is news.
    pub fn tell_client(&mut self, client: Option<String>, named: Option<String>, parent: Option<String>) {
        let is_news = |told: &Option<String>, known: &Option<String>| told.is_some() && told != known;
        if is_news(&client, &self.client) || is_news(&named, &self.named) || is_news(&parent, &self.parent) {
            self.client = client.or(self.client.take());
            self.named = named.or(self.named.take());
            self.parent = parent.or(self.parent.take());
            self.keep();
        }
    }

    /// Notes whether the client is a person's; kept where that is news.
    pub fn is_of_person(&mut self, is_persons: bool) {
        if self.is_persons != is_persons {
            self.is_persons = is_persons;
            self.keep();
        }
    }

    /// Notes the run in whose turn this one works, or that it does so no more; kept where that is news.
    pub fn works_in(&mut self, above: Option<&str>) {
        if self.above.as_deref() != above {
            self.above = above.map(str::to_owned);
            self.keep();
        }
    }

    /// Returns true if the session has a name, and so a run of its own.
    pub fn is_named(&self) -> bool {
        self.file.is_some()
    }

    /// Writes the state to its file, if the session has a name.
    pub fn keep(&mut self) {
        let Some(file) = &self.file else { return };
        let text = serde_json::to_vec(self).unwrap_or_default();
        if let Err(error) = replace_cache(file, &text) {
            tracing::warn!(%error, "the turn is known only to this process");
        }
        // Marked after our own write, which is no change by another process.
        self.mark = mark(file);
    }

    /// Reads the file; `None` when it is missing or damaged.
    fn load(run: &str, file: &Path) -> Option<SessionState> {
        let mark = mark(file);
        let text = std::fs::read(file).ok()?;
        let state: SessionState = serde_json::from_slice(&text).ok()?;
        Some(SessionState { mark, ..state.named(run, file) })
    }

    /// Returns the state as that of a run, which this file keeps.
    fn named(self, run: &str, file: &Path) -> SessionState {
        let told = file.parent().map(|sessions| Told::of(sessions, run)).unwrap_or_default();
        SessionState { run: run.to_owned(), told, file: Some(file.to_owned()), ..self }
    }

    /// Reads the file again if another process changed it meanwhile.
    pub(super) fn refresh(&mut self) {
        let Some(file) = self.file.clone().filter(|file| mark(file) != self.mark) else { return };
        if let Some(newer) = SessionState::load(&self.run, &file) {
            *self = SessionState { noted: std::mem::take(&mut self.noted), ..newer };
        }
    }
}

/// Returns the names that the session of a run has given its client and itself, as far as they are kept.
pub fn told_names(home: &Home, run: &str) -> (Option<String>, Option<String>) {
    let state = SessionState::load(run, &dir(home).join(run)).unwrap_or_default();
    (state.client, state.named)
}

fn dir(home: &Home) -> PathBuf {
    home.path().join("sessions")
}

/// A session that connections share.
pub type SharedState = Arc<Mutex<SessionState>>;

/// All sessions with names.
pub struct Sessions {
    /// The directory of the files, one for each name.
    dir: PathBuf,
    /// The states in memory, by run id.
    known: Mutex<HashMap<String, SharedState>>,
}

impl Sessions {
    /// Makes the sessions of a home.
    pub fn of(home: &Home) -> Sessions {
        Sessions { dir: dir(home), known: Mutex::default() }
    }

    /// Returns the session of a run; `true` when it was known before, here or in another process.
    pub fn get(&self, run: &str) -> (SharedState, bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = known.get(run) {
            state.lock().unwrap_or_else(PoisonError::into_inner).refresh();
            return (Arc::clone(state), true);
        }
        // A state that no connection holds can be read from its file again.
        if known.len() >= MANY {
            known.retain(|_, state| Arc::strong_count(state) > 1);
        }
        let file = self.dir.join(run);
        let found = SessionState::load(run, &file);
        let is_old = found.is_some();
        let mut state = found.unwrap_or_else(|| SessionState::default().named(run, &file));
        if !is_old {
            self.begin(&mut state);
        }
        let state = Arc::new(Mutex::new(state));
        known.insert(run.to_owned(), Arc::clone(&state));
        (state, is_old)
    }

    /// Returns the run at the top of those in whose turns a run works, one within the other; `None` for one in its own turns.
    pub fn top(&self, run: &str) -> Option<String> {
        let above = |run: &str| self.get(run).0.lock().unwrap_or_else(PoisonError::into_inner).above.clone();
        let mut top = above(run)?;
        for _ in 0..DEEPEST {
            match above(&top).filter(|next| *next != run) {
                Some(next) => top = next,
                None => break,
            }
        }
        Some(top)
    }

    fn begin(&self, state: &mut SessionState) {
        if let Err(error) = create_private_dir(&self.dir) {
            tracing::warn!(%error, "the turns of this session are known only to this process");
            return;
        }
        state.keep();
        forget_old(&self.dir);
    }
}

/// Removes the files of old sessions.
fn forget_old(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|facts| facts.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            // Another process that removed it first did the same.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::guard::TurnCheckpoint;
    use crate::model::checkpoint::CheckpointKind;
    use crate::model::number::Number;

    #[test]
    fn another_process_goes_on_in_the_turn() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        let slot = TurnCheckpoint { id: "a".repeat(40), number: Number::of(7), kind: CheckpointKind::Auto };
        {
            let (state, known) = Sessions::of(&home).get("s-1");
            assert!(!known);
            let mut state = state.lock().unwrap();
            assert!(state.turns.start("t1"));
            state.turns.fill("w", slot.clone());
            state.keep();
        }
        let sessions = Sessions::of(&home);
        let (state, known) = sessions.get("s-1");
        assert!(known && state.lock().unwrap().turns.current() == Some("t1"));
        assert_eq!(state.lock().unwrap().turns.checkpoint("w"), Some(&slot));
        assert!(Arc::ptr_eq(&state, &sessions.get("s-1").0) && !sessions.get("s-2").1);
        // Changes of another process are seen.
        {
            let (other, _) = Sessions::of(&home).get("s-1");
            let mut other = other.lock().unwrap();
            assert!(other.turns.start("t2"));
            other.keep();
        }
        assert_eq!(sessions.get("s-1").0.lock().unwrap().turns.current(), Some("t2"));
        // A damaged file is made anew.
        std::fs::write(dir.path().join("sessions/s-3"), b"{\"turns\": 5").unwrap();
        let (state, known) = sessions.get("s-3");
        assert!(!known && state.lock().unwrap().turns.current().is_none());
    }
}
