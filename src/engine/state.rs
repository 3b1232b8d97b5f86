//! What one session of a client has come to: its run and its turn, shared by all of its connections.
//!
//! A hook is a process of its own for every event, so the state of a session that has a name is kept beside the store: another
//! process, or another daemon, goes on where the last one was. Nobody waits for the disk: what a power cut takes is at worst one
//! more checkpoint.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard::Turns;
use crate::checkpoint::Home;
use crate::sys::fs::durable::{create_private_dir, replace_cache};

/// Sessions that are kept in memory; beyond them those that no connection uses are dropped.
const MANY: usize = 256;

/// Files of sessions that nobody touched for so long are removed.
const OLD: Duration = Duration::from_secs(14 * 24 * 3600);

/// How much of a journal there was when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Bytes.
    pub length: u64,
    pub lines: usize,
}

/// One session's state.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Talk {
    /// The run, `local` for a session without a name.
    pub run: String,
    pub turns: Turns,
    /// What the client's model is to be told.
    pub notes: Vec<String>,
    /// How far the journal of each workspace was told, by workspace id.
    pub told: BTreeMap<String, Told>,
    /// A run that was opened and that nothing closed. It ends with its connection.
    #[serde(skip)]
    pub open_run: bool,
    #[serde(skip)]
    file: Option<PathBuf>,
    /// What the file system said of the file when it was last read or written.
    #[serde(skip)]
    mark: Mark,
}

/// Inode and time of modification, by which a file that another process has replaced is noticed.
type Mark = Option<(u64, i64, i64)>;

fn mark(file: &Path) -> Mark {
    let facts = std::fs::metadata(file).ok()?;
    Some((facts.ino(), facts.mtime(), facts.mtime_nsec()))
}

impl Talk {
    /// Of a session without a name, which ends with its connection.
    pub fn unnamed() -> Talk {
        Talk { run: "local".to_owned(), ..Talk::default() }
    }

    /// Keeps what changed, if the session has a name.
    pub fn keep(&mut self) {
        let Some(file) = &self.file else { return };
        let text = serde_json::to_vec(self).unwrap_or_default();
        if let Err(error) = replace_cache(file, &text) {
            tracing::warn!(%error, "the turn is remembered by this process only");
        }
        self.mark = mark(file);
    }

    /// Reads the file; `None` when there is none that can be read.
    fn load(run: &str, file: &Path) -> Option<Talk> {
        let mark = mark(file);
        let text = std::fs::read(file).ok()?;
        let talk: Talk = serde_json::from_slice(&text).ok()?;
        Some(Talk { run: run.to_owned(), file: Some(file.to_owned()), mark, ..talk })
    }

    /// Another process may have gone on meanwhile.
    fn refresh(&mut self) {
        let Some(file) = self.file.clone().filter(|file| mark(file) != self.mark) else { return };
        if let Some(newer) = Talk::load(&self.run, &file) {
            *self = Talk { open_run: self.open_run, ..newer };
        }
    }
}

/// A session that connections share.
pub type SharedTalk = Arc<Mutex<Talk>>;

/// All sessions with names.
pub struct Talks {
    dir: PathBuf,
    known: Mutex<HashMap<String, SharedTalk>>,
}

impl Talks {
    /// The sessions of a home.
    pub fn of(home: &Home) -> Talks {
        Talks { dir: home.path().join("sessions"), known: Mutex::default() }
    }

    /// The session of a run; `true` when it was known before, here or by another process.
    pub fn get(&self, run: &str) -> (SharedTalk, bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(talk) = known.get(run) {
            talk.lock().unwrap_or_else(PoisonError::into_inner).refresh();
            return (Arc::clone(talk), true);
        }
        if known.len() >= MANY {
            known.retain(|_, talk| Arc::strong_count(talk) > 1);
        }
        let file = self.dir.join(run);
        let found = Talk::load(run, &file);
        let is_old = found.is_some();
        let mut talk = found.unwrap_or_else(|| Talk { run: run.to_owned(), file: Some(file), ..Talk::default() });
        if !is_old {
            self.begin(&mut talk);
        }
        let talk = Arc::new(Mutex::new(talk));
        known.insert(run.to_owned(), Arc::clone(&talk));
        (talk, is_old)
    }

    fn begin(&self, talk: &mut Talk) {
        if let Err(error) = create_private_dir(&self.dir) {
            tracing::warn!(%error, "the turns of this session are remembered by this process only");
            return;
        }
        talk.keep();
        forget_old(&self.dir);
    }
}

/// Removes what sessions of long ago left.
fn forget_old(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|facts| facts.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > OLD) {
            // Whoever removed it before did the same.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::guard::Slot;

    #[test]
    fn another_process_goes_on_in_the_turn() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        let slot = Slot { id: "a".repeat(40), ordinal: 7 };
        {
            let (talk, known) = Talks::of(&home).get("s-1");
            assert!(!known);
            let mut talk = talk.lock().unwrap();
            assert!(talk.turns.start("t1"));
            talk.turns.fill("w", slot.clone());
            talk.keep();
        }
        let talks = Talks::of(&home);
        let (talk, known) = talks.get("s-1");
        assert!(known && talk.lock().unwrap().turns.current() == Some("t1"));
        assert_eq!(talk.lock().unwrap().turns.slot("w"), Some(&slot));
        assert!(Arc::ptr_eq(&talk, &talks.get("s-1").0) && !talks.get("s-2").1);
        // What another process does meanwhile is seen.
        {
            let (other, _) = Talks::of(&home).get("s-1");
            let mut other = other.lock().unwrap();
            assert!(other.turns.start("t2"));
            other.keep();
        }
        assert_eq!(talks.get("s-1").0.lock().unwrap().turns.current(), Some("t2"));
        // What is damaged is made anew.
        std::fs::write(dir.path().join("sessions/s-3"), b"{\"turns\": 5").unwrap();
        let (talk, known) = talks.get("s-3");
        assert!(!known && talk.lock().unwrap().turns.current().is_none());
    }
}
