//! The state of the repository beside each checkpoint.
//!
//! The file `git-states` of a workspace has one JSON line for each checkpoint, the newest last. It names a state by a number, and
//! `refs/piton/<workspace>/git/at-<number>` leads to that. Checkpoints between which nothing has moved name the same one. The repository is
//! read before the checkpoint, and the state is written behind the answer, because a large index takes time. A torn or damaged line is passed
//! over: the repository of that checkpoint is not known then.

use std::collections::{BTreeSet, HashSet};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::log::unquoted_top;
use super::operations::{RepositoryNow, is_alike, quoted_top};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::open::{Catalog, ReadBeside};
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::mishaps;
use crate::checkpoint::records::pins::Pins;
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::ObjectId;
use crate::model::repository::RepositoryState;
use crate::sys::fs::durable::{append_private, replace_cache};
use crate::worktree::repository_state::RepositoryPlace;

/// The name of the file.
const NAME: &str = "git-states";

/// The newest states that are kept at least.
const KEPT: u64 = 50;

/// The size in bytes from which on the file is written anew.
const LONG: u64 = 256 << 10;

/// The most lines that it has then, but for those of pinned checkpoints.
const LINES: usize = 400;

/// The end of the file in which the last line is looked for, in bytes.
const TAIL: u64 = 32 << 10;

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BesideLine {
    /// The place of the checkpoint in the sequence of its workspace.
    checkpoint: u64,
    /// The state; `None` where the repository could not be read.
    state: Option<u64>,
    /// The highest number of a state up to here.
    newest: u64,
    /// The mark of the repository's files; `None` if one of them was from just now.
    mark: Option<ObjectId>,
    /// The top of the work tree, from the root of the file system on; percent-encoded.
    top: String,
    /// The identity of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository: Option<String>,
}

/// The repository as a checkpoint finds it.
pub(crate) enum Beside {
    /// Nothing has moved since the last line.
    Same(BesideLine),
    /// Something may have moved.
    Read(ReadBeside),
    /// It could not be read.
    Unread(Error, Box<BesideLine>),
}

/// The state of the repository at a checkpoint.
pub struct StateBeside {
    /// The state.
    pub state: Arc<RepositoryState>,
    /// The top of its work tree, from the root of the file system on; percent-encoded.
    top: String,
    /// Its identity, where one was known.
    pub(super) identity: Option<String>,
}

impl StateBeside {
    /// Returns the top of its work tree.
    ///
    /// # Errors
    /// `store-damaged` for a text that is no path.
    pub(super) fn top(&self) -> Result<PathBuf> {
        unquoted_top(&self.top)
    }
}

impl Catalog {
    /// Looks at the repository around the workspace; `None` where there is none, or where the workspace is too broad to be captured.
    pub(crate) fn repository_beside(&self) -> Option<Beside> {
        let place = RepositoryPlace::around(&self.workspace.path).filter(|_| self.workspace.scope == Scope::Tree)?;
        let marked = place.mark();
        // A damaged or torn last line costs one look.
        let last = last_line(&self.workspace.dir).unwrap_or_default();
        let mark = marked.as_ref().copied().unwrap_or_default();
        if let Some(last) = last.filter(|last| mark.is_some() && last.mark == mark) {
            return Some(Beside::Same(last));
        }
        let read = marked.and_then(|mark| {
            let state = Arc::clone(RepositoryNow::at(place.clone())?.state());
            Ok(Beside::Read(ReadBeside { place: place.clone(), state, mark, checkpoints: Vec::new() }))
        });
        Some(read.unwrap_or_else(|error| {
            let top = quoted_top(&place).unwrap_or_default();
            let line = BesideLine { checkpoint: 0, state: None, newest: 0, mark, top, repository: place.identity() };
            Beside::Unread(error, Box::new(line))
        }))
    }

    /// Returns the state of the repository at a checkpoint; `None` where that is not known or not kept any more.
    ///
    /// # Errors
    /// `store-damaged`; errors of reading.
    pub fn state_beside(&self, checkpoint: &Checkpoint) -> Result<Option<StateBeside>> {
        if self.is_foreign(checkpoint) {
            return Ok(None);
        }
        let ordinal = checkpoint.record.ordinal();
        let line = lines(&self.workspace.dir)?.into_iter().rev().find(|line| line.checkpoint == ordinal);
        let Some((state, line)) = line.and_then(|line| Some((line.state?, line))) else { return Ok(None) };
        let state = self.kept_state(&self.beside_ref(state))?;
        Ok(state.map(|state| StateBeside { state, top: line.top, identity: line.repository }))
    }
}

impl Timeline {
    /// Writes the state of the repository that the last checkpoints have found, if that is not done yet. Called behind the answer to
    /// whoever wanted the checkpoint.
    pub fn keep_repository(&mut self) {
        if self.catalog().read_beside.borrow().is_none() {
            return;
        }
        let kept = self.lock("git").and_then(|locked| locked.keep_beside());
        if let Err(error) = kept {
            not_known(self.catalog(), &error);
        }
    }
}

impl Locked<'_> {
    /// Notes what some new checkpoints have found. Without it they are as good as ever.
    pub(crate) fn note_beside(&self, checkpoints: &[u64], found: Option<Beside>) {
        let noted = match found {
            None => Ok(()),
            Some(Beside::Same(last)) => self.note_lines(checkpoints, &last),
            Some(Beside::Unread(error, line)) => {
                not_known(self.catalog, &error);
                let newest = last_line(&self.catalog.workspace.dir).unwrap_or_default().map_or(0, |last| last.newest);
                self.note_lines(checkpoints, &BesideLine { newest, ..*line })
            }
            Some(Beside::Read(read)) => self.note_read(checkpoints, read),
        };
        noted.unwrap_or_else(|error| not_known(self.catalog, &error));
    }

    fn note_read(&self, checkpoints: &[u64], mut read: ReadBeside) -> Result<()> {
        let same = |known: &ReadBeside| known.mark.is_some() && known.mark == read.mark;
        if let Some(known) = self.catalog.read_beside.borrow_mut().as_mut().filter(|known| same(known)) {
            known.checkpoints.extend_from_slice(checkpoints);
            return Ok(());
        }
        // One state at most waits in memory.
        let kept = self.keep_beside();
        read.checkpoints.extend_from_slice(checkpoints);
        *self.catalog.read_beside.borrow_mut() = Some(read);
        kept
    }

    /// Writes the state that waits in memory.
    pub(crate) fn keep_beside(&self) -> Result<()> {
        let catalog = &*self.catalog;
        let Some(read) = catalog.read_beside.borrow_mut().take() else { return Ok(()) };
        let (now, mark, checkpoints) = (RepositoryNow::of(read.place, read.state), read.mark, read.checkpoints);
        let last = last_line(&catalog.workspace.dir)?;
        let newest = last.as_ref().map_or(0, |last| last.newest);
        let (top, repository) = (quoted_top(now.place())?, now.place().identity());
        let known = last.filter(|last| last.top == top && last.repository == repository).and_then(|last| last.state);
        let standing = known.map(|state| catalog.kept_state(&catalog.beside_ref(state))).transpose()?.flatten();
        if let Some(state) = known.filter(|_| standing.is_some_and(|standing| is_alike(&standing, &now))) {
            let line = BesideLine { checkpoint: 0, state: Some(state), newest, mark, top, repository };
            return self.note_lines(&checkpoints, &line);
        }
        let state = newest + 1;
        let message = format!("the repository beside checkpoints ({state})\n");
        self.keep_state_as((&catalog.beside_ref(state), &message), now.state(), false)?;
        let line = BesideLine { checkpoint: 0, state: Some(state), newest: state, mark, top, repository };
        self.note_lines(&checkpoints, &line)?;
        if state.is_multiple_of(KEPT) { self.shorten_beside() } else { Ok(()) }
    }

    fn note_lines(&self, checkpoints: &[u64], like: &BesideLine) -> Result<()> {
        let line = |checkpoint: &u64| encoded(&BesideLine { checkpoint: *checkpoint, ..like.clone() });
        let text: String = checkpoints.iter().map(line).collect::<Result<_>>()?;
        let path = self.catalog.workspace.dir.join(NAME);
        // The line before may be torn.
        append_private(&path)
            .and_then(|mut file| file.write_all(format!("\n{text}").as_bytes()))
            .at("noting the repository beside a checkpoint", &path)
    }

    /// Writes the file anew if it is long.
    pub(crate) fn tidy_beside(&self) -> Result<()> {
        let path = self.catalog.workspace.dir.join(NAME);
        if path.metadata().is_ok_and(|facts| facts.len() > LONG) { self.shorten_beside() } else { Ok(()) }
    }

    /// Drops the lines of checkpoints that are gone, and the oldest states that no pinned checkpoint names.
    fn shorten_beside(&self) -> Result<()> {
        let dir = &self.catalog.workspace.dir;
        let (all, pins, known) = (self.catalog.all()?, Pins::load(dir)?, lines(dir)?);
        let newest = known.last().map_or(0, |last| last.newest);
        let there: HashSet<u64> = all.checkpoints.iter().map(|one| one.record.ordinal()).collect();
        let pinned = all.checkpoints.iter().filter(|one| pins.holds(&one.record));
        let pinned: HashSet<u64> = pinned.map(|one| one.record.ordinal()).collect();
        let early = known.len().saturating_sub(LINES);
        let is_kept = |(at, line): &(usize, &BesideLine)| {
            let is_new = *at >= early && line.state.is_none_or(|state| state + KEPT > newest);
            let is_last = at + 1 == known.len();
            is_last || (there.contains(&line.checkpoint) && (is_new || pinned.contains(&line.checkpoint)))
        };
        let kept: Vec<&BesideLine> = known.iter().enumerate().filter(is_kept).map(|(_, line)| line).collect();
        let text: String = kept.iter().map(|line| encoded(line)).collect::<Result<_>>()?;
        replace_cache(&dir.join(NAME), text.as_bytes())?;
        let states = |lines: &mut dyn Iterator<Item = &BesideLine>| lines.filter_map(|line| line.state).collect();
        let (old, left): (BTreeSet<u64>, BTreeSet<u64>) =
            (states(&mut known.iter()), states(&mut kept.iter().copied()));
        self.catalog.drop_kept(old.difference(&left).map(|state| self.catalog.beside_ref(*state)))
    }
}

/// Notes for `piton status` that the repository of a checkpoint is not known.
fn not_known(catalog: &Catalog, error: &Error) {
    let text = format!("the repository's state beside a checkpoint was not kept: {}", error.text());
    if let Err(error) = mishaps::note_once(&catalog.home, &text) {
        tracing::warn!(%error, "a mishap could not be written down");
    }
}

fn encoded(line: &BesideLine) -> Result<String> {
    let text = serde_json::to_string(line)
        .map_err(|error| Error::new(Code::Internal, "writing the state of a repository").caused_by(error))?;
    Ok(text + "\n")
}

/// Returns the lines that can be read.
fn lines(dir: &Path) -> Result<Vec<BesideLine>> {
    let path = dir.join(NAME);
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.at("reading the states of the repository", &path)?,
    };
    Ok(parsed(&bytes).collect())
}

/// Returns the last line; `None` without one.
fn last_line(dir: &Path) -> Result<Option<BesideLine>> {
    let path = dir.join(NAME);
    let mut bytes = Vec::new();
    let read = std::fs::File::open(&path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        file.take(TAIL).read_to_end(&mut bytes)
    });
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.at("reading the states of the repository", &path).map(|_| parsed(&bytes).last()),
    }
}

fn parsed(bytes: &[u8]) -> impl Iterator<Item = BesideLine> {
    // A torn line tells nothing.
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// Removes the file.
///
/// # Errors
/// `permission`.
pub(super) fn remove(dir: &Path, _lock: &WorkspaceLock) -> Result<()> {
    let path = dir.join(NAME);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(error, "removing", &path)),
        _ => Ok(()),
    }
}
