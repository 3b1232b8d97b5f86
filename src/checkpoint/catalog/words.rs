//! Words that name a checkpoint through something else: `latest`, a turn (`t-3`), an operation (`o-2`), a command of git (`g-7`), a
//! time, a run.
//!
//! A turn means the checkpoint with which it began, an operation and a command of git the one that was taken before it. A time means the
//! newest checkpoint that is not younger. A run means its newest checkpoint. Labels of the same spelling are older than these words, so
//! a word with two meanings is refused.

use super::checkpoint::Checkpoint;
use super::open::Catalog;
use super::selector::{Selector, matches, shown};
use crate::checkpoint::history::operations::OF_TURN;
use crate::checkpoint::repository::log::operations;
use crate::error::{Code, Error, Result};
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::model::run::run_id;
use crate::sys::clock::{NamedTime, local_minute, ms_of, now_ms};

/// The newest checkpoint.
const LATEST: &str = "latest";

/// The beginning of the names of operations that `undo` steps back over.
const OF_OPERATION: &str = "o-";

/// The beginning of the names of commands of git.
const OF_GIT: &str = "g-";

/// Returns true if a text is one of the words, whatever it names here. The name of a run is an ordinary text.
pub fn is_word(text: &str) -> bool {
    text == LATEST
        || is_turn(text)
        || is_operation(text)
        || is_git_command(text)
        || NamedTime::parse(text, now_ms()).is_some()
}

/// Returns true for the name of a turn (`t-3`), whether there is such a turn or not.
pub fn is_turn(text: &str) -> bool {
    numbered(text, OF_TURN).is_some()
}

/// Returns true for the name of an operation (`o-2`), whether there is such an operation or not.
pub fn is_operation(text: &str) -> bool {
    numbered(text, OF_OPERATION).is_some()
}

/// Returns true for the name of a command of git (`g-7`), whether there is such a command or not.
pub fn is_git_command(text: &str) -> bool {
    numbered(text, OF_GIT).is_some()
}

/// Returns the number that follows the prefix of a name.
fn numbered(text: &str, of: &str) -> Option<u64> {
    text.strip_prefix(of).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// One meaning of a word.
pub(super) struct Meaning {
    /// The kind of thing that it names, for people: `a time`.
    pub what: &'static str,
    /// The checkpoint that is meant.
    pub checkpoint: Checkpoint,
}

impl Catalog {
    /// Returns the meanings of a word, except for ids, labels and codons. `all` is ordered from oldest to newest.
    ///
    /// # Errors
    /// When the journal or the log of git's commands cannot be read.
    pub(super) fn meanings(&self, word: &str, all: &[Checkpoint]) -> Result<Vec<Meaning>> {
        let newest = || matches(&Selector::Back(0), all).first().copied().cloned();
        let run = run_id(word);
        let of_run = |one: &&Checkpoint| one.record.run == run;
        let meanings = [
            ("the newest checkpoint", (word == LATEST).then(newest).flatten()),
            ("a turn", self.of_id(self.base_of_turn(word)?)),
            ("an operation", self.of_id(self.before_operation(word)?)),
            ("a command of git", self.of_id(self.before_git(word)?)),
            ("a time", NamedTime::parse(word, now_ms()).and_then(|time| newest_until(all, time.until).cloned())),
            ("a run", all.iter().rev().find(of_run).cloned()),
        ];
        let known = meanings.into_iter().filter_map(|(what, checkpoint)| Some((what, checkpoint?)));
        Ok(known.map(|(what, checkpoint)| Meaning { what, checkpoint }).collect())
    }

    /// Returns the checkpoint of an id, if it is still here.
    fn of_id(&self, id: Option<ObjectId>) -> Option<Checkpoint> {
        id.and_then(|id| self.checkpoint_of(id).ok()) // a word that leads nowhere is explained
    }

    fn base_of_turn(&self, word: &str) -> Result<Option<ObjectId>> {
        if !is_turn(word) {
            return Ok(None);
        }
        Ok(self.history()?.turns.iter().find(|turn| turn.op == word).map(|turn| turn.base))
    }

    fn before_operation(&self, word: &str) -> Result<Option<ObjectId>> {
        if !is_operation(word) {
            return Ok(None);
        }
        Ok(self.history()?.undo.iter().find(|step| step.op == word).map(|step| step.to))
    }

    fn before_git(&self, word: &str) -> Result<Option<ObjectId>> {
        let Some(op) = numbered(word, OF_GIT) else { return Ok(None) };
        Ok(operations(&self.workspace.dir)?.into_iter().find(|one| one.begin.op == op).and_then(|one| one.begin.files))
    }
}

/// Says why a word names no checkpoint; `None` if it is none of the words.
pub(super) fn explain_word(word: &str, all: &[Checkpoint]) -> Option<Error> {
    let none = |text: String, hint: &str| Some(Error::new(Code::NoSuchCheckpoint, text).hint(hint.to_owned()));
    let typed = shown(word);
    if is_turn(word) {
        return none(
            format!("no turn `{typed}` has changed files here, or its checkpoint is no longer kept"),
            "`piton list --turns` lists the turns",
        );
    }
    if is_operation(word) {
        return none(format!("no operation `{typed}` can be undone here"), "`piton list` shows the checkpoints");
    }
    if is_git_command(word) {
        return none(
            format!("no checkpoint was taken before a git command `{typed}`"),
            "`piton list --git` lists the git commands",
        );
    }
    let is_missing = word == LATEST || NamedTime::parse(word, now_ms()).is_some();
    let oldest = all.iter().find(|one| is_named(one)).filter(|_| is_missing);
    match oldest.map(|one| (one.record.number, ms_of(&one.record.time).map(local_minute).unwrap_or_default())) {
        Some((number, time)) => none(
            format!("no checkpoint is as old as `{typed}`; the oldest is {number}, from {time}"),
            "`piton list` shows the checkpoints",
        ),
        None if is_missing => {
            none("there is no checkpoint in this workspace yet".to_owned(), "`piton checkpoint` takes one")
        }
        None => None,
    }
}

/// Returns true if people name a checkpoint by its time: it has a number, and shows the files before something that happened to them.
fn is_named(checkpoint: &Checkpoint) -> bool {
    !checkpoint.record.number.is_none() && checkpoint.record.kind() != CheckpointKind::PreRestore
}

/// Returns the newest checkpoint that is not younger than a time, in milliseconds since the epoch.
fn newest_until(all: &[Checkpoint], until: i64) -> Option<&Checkpoint> {
    all.iter().rev().filter(|one| is_named(one)).find(|one| ms_of(&one.record.time).is_some_and(|time| time <= until))
}

/// Refuses a word with several meanings, each with the checkpoint that it names.
pub(super) fn refuse_ambiguous(word: &str, meanings: &[Meaning]) -> Error {
    let each = |meaning: &Meaning| format!("{} (checkpoint {})", meaning.what, meaning.checkpoint.shown());
    let text = format!("`{}` is {}", shown(word), meanings.iter().map(each).collect::<Vec<_>>().join(" and "));
    let names: Vec<String> = meanings.iter().map(|meaning| format!("`{}`", meaning.checkpoint.shown())).collect();
    Error::new(Code::AmbiguousCheckpoint, text)
        .hint(format!("write {} instead", names.join(" or ")))
        .candidates(meanings.iter().map(|meaning| meaning.checkpoint.id.to_string()).collect())
}
