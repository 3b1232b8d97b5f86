//! The record of sentences that a client's model was told in a session, and is still to be told.
//!
//! A sentence waits for an event whose reply reaches the model, and is told once. Warnings of one kind are folded, and stay within a
//! budget; losses and restores are always told. *Invariant:* the record of a named session is read and written under a lock, so that two
//! hooks of one session, each a process of its own, never tell the same.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::loss::Loss;
use crate::model::redact::redact;
use crate::model::text::count;
use crate::sys::fs::durable::replace_cache;
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::fs::mark::FileMark;

/// The most notes that wait.
const MOST: usize = 20;

/// The most different losses of a session that are checked for work from before the first turn.
const MOST_ASKED: usize = 64;

/// The longest wait for another process that tells.
const PATIENCE: Duration = Duration::from_millis(500);

/// The characters of one token, on the average of English text.
const CHARS_OF_TOKEN: usize = 4;

/// The end of the names of records, which no run's id has.
pub const ENDING: &str = "~told";

/// The sort of a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Something that no checkpoint holds, or that was brought back. It is told in any case.
    Loss,
    /// A warning; its kind.
    Warning(String),
    /// Anything else.
    Other,
}

/// A sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    subject: Subject,
    text: String,
    /// The number of further warnings of its kind that wait.
    #[serde(default)]
    more: u64,
}

impl Note {
    /// Makes a note of a sentence; without its secrets.
    pub fn of(subject: Subject, text: &str) -> Note {
        Note { subject, text: redact(text), more: 0 }
    }

    /// Makes notes of sentences of no particular sort.
    pub fn others(texts: impl IntoIterator<Item = String>) -> Vec<Note> {
        texts.into_iter().map(|text| Note::of(Subject::Other, &text)).collect()
    }
}

/// The length of a journal when it was last looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalMark {
    /// Bytes.
    pub length: u64,
    /// Whole lines that could be read, without those of turns.
    pub lines: usize,
}

/// The record of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToldRecord {
    /// The notes that wait.
    waiting: Vec<Note>,
    /// The length up to which the journal of each workspace was reported, by workspace id.
    pub journals: BTreeMap<String, JournalMark>,
    /// True once the model was told that the cap of the store cannot be met.
    pub is_cap_told: bool,
    /// The clients at work without events of which the model was told.
    pub silent: BTreeSet<String>,
    /// The losses of actions that were checked for work from before the first turn, each by its hash.
    asked: BTreeSet<u64>,
    /// The kinds of warnings that were told in full.
    kinds: BTreeSet<String>,
    /// The tokens that were spent.
    spent: u64,
    /// True once the model was told that the budget is used up.
    is_end_told: bool,
}

impl ToldRecord {
    /// Returns true if no note waits.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true if a warning of this subject was said in full, or waits.
    pub fn has(&self, subject: &Subject) -> bool {
        let is_told = |kind: &String| self.kinds.contains(kind);
        matches!(subject, Subject::Warning(kind) if is_told(kind))
            || self.waiting.iter().any(|note| note.subject == *subject)
    }

    /// Returns true if losses with this hash were not checked yet for older work, and may be.
    pub fn may_ask(&self, losses: u64) -> bool {
        self.asked.len() < MOST_ASKED && !self.asked.contains(&losses)
    }

    /// Notes that losses with this hash are checked; false if they were already.
    pub fn note_asked(&mut self, losses: u64) -> bool {
        self.may_ask(losses) && self.asked.insert(losses)
    }

    /// Keeps notes; a further warning of a kind that waits already is only counted.
    pub fn keep(&mut self, notes: Vec<Note>) {
        for note in notes {
            let is_like = |known: &Note| match (&known.subject, &note.subject) {
                (Subject::Warning(known), Subject::Warning(new)) => known == new,
                _ => known.subject == note.subject && known.text == note.text,
            };
            match self.waiting.iter_mut().find(|known| is_like(known)) {
                Some(known) if matches!(known.subject, Subject::Warning(_)) => known.more += 1,
                Some(_) => {}
                None => self.waiting.push(note),
            }
        }
        while self.waiting.len() > MOST {
            let oldest = self.waiting.iter().position(|note| note.subject != Subject::Loss).unwrap_or(0);
            self.waiting.remove(oldest);
        }
    }

    /// Takes the notes that wait, as sentences for the model, within a budget in tokens.
    pub fn tell(&mut self, budget: u64) -> Vec<String> {
        let (mut said, mut is_short) = (Vec::new(), false);
        for note in std::mem::take(&mut self.waiting) {
            let (text, kind) = match note.subject {
                Subject::Loss => {
                    said.push(note.text);
                    continue;
                }
                Subject::Other => (note.text, None),
                Subject::Warning(kind) if self.kinds.contains(&kind) => {
                    // Behind a space it says what one of its kind is about.
                    let kind = kind.split(' ').next().unwrap_or(&kind);
                    let kind = kind.strip_prefix("external-").unwrap_or(kind);
                    (format!("piton: {} more of the kind `{kind}`", note.more + 1), None)
                }
                Subject::Warning(kind) if note.more > 0 => {
                    (format!("{} ({} more of this kind)", note.text, note.more), Some(kind))
                }
                Subject::Warning(kind) => (note.text, Some(kind)),
            };
            let tokens = text.chars().count().div_ceil(CHARS_OF_TOKEN) as u64;
            if self.spent + tokens > budget {
                is_short = true;
                continue;
            }
            self.spent += tokens;
            self.kinds.extend(kind);
            said.push(text);
        }
        if is_short && !std::mem::replace(&mut self.is_end_told, true) {
            let budget = count(budget, "token");
            said.push(format!(
                "piton: this session's warnings have used up their {budget} (`limits.told_tokens`); from now on, only losses and restores are reported"
            ));
        }
        said
    }
}

/// Returns a number for some losses in a session.
pub(super) fn hash_of(losses: &[Loss]) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{losses:?}").hash(&mut hasher);
    hasher.finish()
}

/// A session's record, as this process has it.
#[derive(Debug, Default)]
pub struct Told {
    record: ToldRecord,
    /// The file that keeps it, and the mark of it when it was last read or written; `None` for a session without a name.
    file: Option<(PathBuf, Option<FileMark>)>,
}

impl Told {
    /// Returns the record of a run, in the directory of sessions. It is read when it is first needed.
    pub fn of(sessions: &Path, run: &str) -> Told {
        let file = sessions.join(format!("{run}{ENDING}"));
        Told { record: ToldRecord::default(), file: Some((file, None)) }
    }

    /// Returns the record as it stands.
    pub fn look(&mut self) -> &ToldRecord {
        if let Some((file, known)) = &mut self.file {
            // A file that cannot be looked at counts as missing.
            let mark = FileMark::behind(file).ok().flatten();
            if mark != *known {
                let read = std::fs::read(&*file).ok().and_then(|text| serde_json::from_slice(&text).ok());
                (self.record, *known) = (read.unwrap_or_default(), mark);
            }
        }
        &self.record
    }

    /// Changes the record, alone among all processes.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut ToldRecord) -> T) -> T {
        // Without the lock, a note may be told twice: better than not at all.
        let _lock = self.lock();
        self.look();
        let done = change(&mut self.record);
        if let Some((file, known)) = &mut self.file {
            let text = serde_json::to_vec(&self.record).unwrap_or_default();
            if let Err(error) = replace_cache(file, &text) {
                tracing::warn!(%error, "the messages to the model are known only to this process");
            }
            *known = FileMark::behind(file).ok().flatten();
        }
        done
    }

    fn lock(&self) -> Option<FileLock> {
        let sessions = self.file.as_ref()?.0.parent()?;
        let lock = sessions.with_extension("lock");
        FileLock::acquire(&lock, Mode::Exclusive, "telling a model", PATIENCE)
            .inspect_err(|error| tracing::warn!(%error, "cannot lock the record of messages to the model"))
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(kind: &str, text: &str) -> Note {
        Note::of(Subject::Warning(kind.to_owned()), text)
    }

    #[test]
    fn warnings_of_a_kind_are_folded() {
        let mut record = ToldRecord::default();
        record.keep((1..=4).map(|n| warning("external-database", &format!("piton: write {n}"))).collect());
        record.keep(vec![warning("external-cloud", "piton: cloud"), Note::of(Subject::Loss, "piton: not saved: a")]);
        let said = record.tell(400);
        assert_eq!(said, ["piton: write 1 (3 more of this kind)", "piton: cloud", "piton: not saved: a"]);
        assert_eq!(record.tell(400), [""; 0], "told once");
        record
            .keep(vec![warning("external-database", "piton: write 5"), warning("external-database", "piton: write 6")]);
        assert_eq!(record.tell(400), ["piton: 2 more of the kind `database`"]);
    }

    #[test]
    fn a_budget_bounds_all_but_losses() {
        let mut record = ToldRecord::default();
        let texts: Vec<String> = (0..9).map(|n| format!("{n}{}", "x".repeat(39))).collect();
        record.keep(Note::others(texts.clone()));
        record.keep(vec![Note::of(Subject::Loss, &"y".repeat(400))]);
        let said = record.tell(30);
        assert_eq!(said[..3], texts[..3]);
        assert_eq!(said[3], "y".repeat(400));
        assert!(said[4].contains("used up their 30 tokens") && said.len() == 5, "{said:?}");
        // The end of the budget is told once, and losses are told behind it.
        record.keep(vec![warning("external-cloud", &"z".repeat(80)), Note::of(Subject::Loss, "lost")]);
        assert_eq!(record.tell(30), ["lost"]);
        // A warning that was left out was not told: with a larger budget the next of its kind is told in full.
        record.keep(vec![warning("external-cloud", "in full")]);
        assert_eq!(record.tell(400), ["in full"]);
    }

    #[test]
    fn waiting_notes_are_bounded_and_losses_go_last() {
        let mut record = ToldRecord::default();
        record.keep(vec![Note::of(Subject::Loss, "lost")]);
        record.keep((0..100).map(|n| Note::of(Subject::Other, &n.to_string())).collect());
        let said = record.tell(10_000);
        assert_eq!((said.len(), said[0].as_str(), said[MOST - 1].as_str()), (MOST, "lost", "99"));
    }

    #[test]
    fn two_processes_tell_a_note_once() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = dir.path().join("sessions");
        std::fs::create_dir(&sessions).unwrap();
        let (mut one, mut other) = (Told::of(&sessions, "s"), Told::of(&sessions, "s"));
        one.change(|record| record.keep(vec![warning("external-cloud", "once")]));
        assert!(!other.look().is_idle());
        assert_eq!(other.change(|record| record.tell(400)), ["once"]);
        assert_eq!(one.change(|record| record.tell(400)), [""; 0]);
        // Many at once: each note is told by one of them.
        let all = std::thread::scope(|scope| {
            let each = |n: u64| {
                let mut told = Told::of(&sessions, "s");
                told.change(|record| record.keep(vec![Note::of(Subject::Loss, &n.to_string())]));
                told.change(|record| record.tell(400))
            };
            let threads: Vec<_> = (0..16).map(|n| scope.spawn(move || each(n))).collect();
            let mut all: Vec<String> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
            all.sort();
            all
        });
        let mut expected: Vec<String> = (0..16).map(|n: u64| n.to_string()).collect();
        expected.sort();
        assert_eq!(all, expected);
    }
}
