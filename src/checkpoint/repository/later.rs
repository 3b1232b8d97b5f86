//! The changes of files behind the end of a command of git, which are none of its own.
//!
//! The files are captured some time after the end. The clock of files is some milliseconds late: it cannot tell an edit right behind
//! the end from the command's own writing. Two other facts can. Some verbs write no file at all. After others, each file is as the
//! index has it: one with another content and another time or length was changed by somebody else. Both are asked only where git itself
//! has told of the command: in a line of a shell, other programs may have changed files too.

use std::os::unix::fs::MetadataExt;

use super::log::GitOperation;
use super::undo::OF_GIT;
use crate::checkpoint::catalog::entries::EntryChange;
use crate::checkpoint::history::journal::quoted;
use crate::checkpoint::history::turn_clock::changed_after;
use crate::checkpoint::timeline::Timeline;
use crate::classify::commands;
use crate::error::{Code, Error, Result};
use crate::git::line::{FilesWritten, within};
use crate::model::id::ObjectId;
use crate::model::manifest::EntryKind;
use crate::model::path::RelPath;
use crate::model::repository::RepositoryState;
use crate::worktree::git_index::{SeenFile, seen_in};

/// The verb of commands that bring back files which no index knows.
const STASH: &str = "stash";

impl Timeline {
    /// Returns the paths that differ from before an operation, and that others have changed behind its end. `ended` is the moment of
    /// the end, in milliseconds since the epoch; `state` is the repository's state after it.
    pub(super) fn changed_later(
        &self,
        begin: &GitOperation,
        files: Option<ObjectId>,
        (ended, state): (Option<i64>, Option<&RepositoryState>),
    ) -> Result<Vec<String>> {
        let Some((from, to)) = begin.files.zip(files) else { return Ok(Vec::new()) };
        let (catalog, root, top) = (self.catalog(), &self.workspace().path, begin.place()?);
        // The clock of files is never early, and the moment is cut to milliseconds.
        let since = ended.map(|ended| ended.saturating_add(1).saturating_mul(1_000_000));
        let written = match written(begin) {
            FilesWritten::AsIndexedOnceDone if state.is_some_and(|state| state.operation.is_empty()) => {
                FilesWritten::AsIndexed
            }
            written => written,
        };
        let index = state.and_then(|state| state.index.as_deref());
        // An index that cannot be read tells of nothing.
        let seen = index.and_then(|index| seen_in(index, &mut |_| Err(unread())).ok());
        let entry = |path: &RelPath| {
            let inside = path.under(root).strip_prefix(&top).ok().and_then(|inside| RelPath::from_path(inside).ok());
            seen.as_ref().zip(inside).map(|(seen, inside)| seen.get(&inside).copied())
        };
        let brings_new = begin.over.is_some() || begin.has_verb(STASH);
        let is_later = |(path, before, after): &EntryChange| {
            let is_file = after.as_ref().is_some_and(|after| after.kind != EntryKind::Dir);
            match (written, entry(path), after) {
                (FilesWritten::None, _, _) => true,
                // git has taken it away, or has written what is staged.
                (FilesWritten::AsIndexed, Some(None), None) => false,
                (FilesWritten::AsIndexed, Some(Some(seen)), Some(after)) if seen.id == Some(after.id) => false,
                (FilesWritten::AsIndexed, Some(Some(_)), None) => true,
                (FilesWritten::AsIndexed, Some(None), _) if is_file => true,
                // Another program may have written the index anew, with times of before: the content counts first.
                (FilesWritten::AsIndexed, Some(Some(seen)), _) if differs(self, path, seen) => true,
                (FilesWritten::Any | FilesWritten::AsIndexedOnceDone, Some(None), _)
                    if before.is_none() && is_file && !brings_new =>
                {
                    true
                }
                _ => since.is_some_and(|since| changed_after(root, path, since)),
            }
        };
        let changed = catalog.changed_entries(&catalog.checkpoint_of(from)?, &catalog.checkpoint_of(to)?)?;
        Ok(quoted(changed.iter().filter(|change| is_later(change)).map(|(path, ..)| path)))
    }
}

/// Returns what a command writes into the work tree.
pub(super) fn written(begin: &GitOperation) -> FilesWritten {
    let is_told_by_git = begin.action.as_deref().is_some_and(|action| action.starts_with(OF_GIT));
    // The way to a checkpoint's moment moves no file.
    if begin.way_back && begin.over.is_none() {
        return FilesWritten::None;
    }
    // Of a long command only the beginning is known.
    if begin.command.ends_with('…') {
        return FilesWritten::Any;
    }
    match commands(&begin.command).as_slice() {
        [line] if is_told_by_git && begin.over.is_none() => {
            within(line).map_or(FilesWritten::Any, |line| line.writes())
        }
        _ => FilesWritten::Any,
    }
}

/// Returns true if the file at a path is not the one that git has seen.
fn differs(timeline: &Timeline, path: &RelPath, seen: SeenFile) -> bool {
    // git has to look again itself.
    if seen.seconds == 0 || seen.length == 0 {
        return false;
    }
    // One that cannot be looked at is judged by its time alone.
    path.under(&timeline.workspace().path).symlink_metadata().is_ok_and(|facts| {
        let (seconds, nanos, length) = (facts.mtime() as u32, facts.mtime_nsec() as u32, facts.len() as u32);
        (seconds, length) != (seen.seconds, seen.length) || (seen.nanos != 0 && nanos != seen.nanos)
    })
}

/// Says that the shared part of a split index is not looked at.
fn unread() -> Error {
    Error::new(Code::Conflict, "a split index")
}
