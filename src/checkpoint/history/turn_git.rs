//! The part of a turn that undoing its files does not take back: what it did in the repository.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::journal::TurnEnd;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::records::windows::OpenTurn;
use crate::checkpoint::repository::log::{LoggedOperation, operations};
use crate::error::{Code, Error, Result};
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::repository::RefValue;
use crate::model::text::{cut, printable, shell_word};
use crate::sys::clock::ms_of;
use crate::sys::libgit2::CommitTree;
use crate::worktree::repository_state::RepositoryPlace;
use crate::worktree::{HeadMove, git_index, head_moves, is_loose_since};

/// The most commits that a warning names.
const MOST_NAMED: usize = 5;

/// The longest subject of a commit in a warning, in characters.
const LONGEST_SUBJECT: usize = 60;

/// The git commands that leave the files of a commit, and HEAD at that commit.
const COMMITTED_VERBS: &[&str] = &["merge", "pull", "rebase", "cherry-pick", "revert", "am", "reset", "switch"];

/// The maximum difference between a new file's time and the clock.
const FILE_CLOCK_LAG: Duration = Duration::from_millis(20);

/// Returns the earliest time of a file that was created during a turn that began at `began` (RFC 3339).
fn first_file_time(began: &str) -> Option<SystemTime> {
    let began = u64::try_from(ms_of(began)?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(began))?.checked_sub(FILE_CLOCK_LAG)
}

/// The files that were in the index after a git command of a turn that writes files: git wrote such a file. The index at the end of the
/// turn may also contain files that a person wrote during the command and that the agent added later.
#[derive(Default)]
pub(super) struct WrittenByGit {
    /// After a command that leaves the files of a commit, each with that commit. A person may have staged others meanwhile.
    committed: BTreeMap<(RelPath, ObjectId), String>,
    /// After other commands. A blob that was created during the turn may be a person's file that `git add` added, so it is left out.
    staged: BTreeSet<(RelPath, ObjectId)>,
    /// The commits that were looked at, by their ids.
    commits: RefCell<BTreeMap<String, CommitTree>>,
}

impl WrittenByGit {
    /// Returns true if git wrote this content to a path of the work tree `root`.
    pub(super) fn has(&self, root: &Path, path: &RelPath, id: ObjectId) -> bool {
        let file = (path.clone(), id);
        let is_committed = |commit: &String| self.is_in(root, commit, path, id);
        self.staged.contains(&file) || self.committed.get(&file).is_some_and(is_committed)
    }

    /// Returns true if a commit has a file.
    fn is_in(&self, root: &Path, commit: &str, path: &RelPath, id: ObjectId) -> bool {
        let mut commits = self.commits.borrow_mut();
        if !commits.contains_key(commit) {
            let Some(place) = RepositoryPlace::at_top(root) else { return false };
            commits.insert(commit.to_owned(), CommitTree::of_commit(&place.dir, commit));
        }
        commits.get_mut(commit).is_some_and(|tree| tree.has(path.to_path(), &id.to_string()))
    }
}

impl Catalog {
    /// Returns the operation of git by which a turn switched branches, if that still stands. Undoing the turn's files one by one would
    /// mix the files of two branches.
    ///
    /// # Errors
    /// When the operations of git cannot be read.
    pub fn branch_switch_of(&self, turn: &TurnEnd) -> Result<Option<LoggedOperation>> {
        let is_switch = |one: &LoggedOperation| {
            let has_moved = one.end.as_ref().is_some_and(|end| end.moved);
            one.begin.is_of_turn(&turn.run, &turn.turn) && has_moved && one.undone.is_none() && one.begin.over.is_none()
        };
        for one in operations(&self.workspace.dir)?.into_iter().rev() {
            // `git checkout FILE` moves no HEAD.
            if is_switch(&one) && one.begin.may_switch() && self.has_moved_head(one.begin.op)? != Some(false) {
                return Ok(Some(one));
            }
        }
        Ok(None)
    }

    /// Returns the command that switches back to the branch or commit before a turn, if the turn switched branches and HEAD is still
    /// on another one. It serves repositories without the git integration.
    ///
    /// # Errors
    /// When HEAD cannot be read.
    pub fn way_back_from_switch(&self, turn: &TurnEnd) -> Result<Option<String>> {
        let Some(from) = &turn.switched_from else { return Ok(None) };
        let Some(place) = RepositoryPlace::at_top(&self.workspace.path) else { return Ok(None) };
        let is_back = match place.head()? {
            Some(RefValue::Symbolic(branch)) => branch.strip_prefix(b"refs/heads/") == Some(from.as_bytes()),
            Some(RefValue::Object(id)) => id == *from,
            None => true,
        };
        Ok((!is_back).then(|| format!("git checkout {}", shell_word(from))))
    }

    /// Returns the files that git commands of a turn wrote.
    ///
    /// # Errors
    /// When the operations of git, or the states at them, cannot be read.
    pub(super) fn written_by_git(&self, turn: &OpenTurn) -> Result<WrittenByGit> {
        let mut found = WrittenByGit::default();
        let since = first_file_time(&turn.began).unwrap_or(SystemTime::UNIX_EPOCH);
        for one in operations(&self.workspace.dir)? {
            let is_own = one.begin.is_of_turn(&turn.run, &turn.turn) && !one.begin.hidden;
            if !is_own || !one.begin.writes_files() || one.begin.place()? != self.workspace.path {
                continue;
            }
            let Some(state) = self.state_after(&one)? else { continue };
            let Some(index) = &state.index else { continue };
            let none_shared = &mut |_: &str| Err(Error::new(Code::Conflict, "a kept index refers to another file"));
            let seen = git_index::seen_in(index, none_shared).unwrap_or_default(); // damage makes fewer changes sure
            let written = seen.into_iter().filter_map(|(path, seen)| Some((path, seen.id?)));
            if COMMITTED_VERBS.iter().any(|verb| one.begin.has_verb(verb)) {
                let commit = state.head_commit().unwrap_or_default();
                found.committed.extend(written.map(|file| (file, commit.to_owned())));
            } else {
                let is_older = |id: ObjectId| !is_loose_since(&self.workspace.path, &id.to_string(), since);
                found.staged.extend(written.filter(|(_, id)| is_older(*id)));
            }
        }
        Ok(found)
    }

    /// Names the commits that were made during a turn: undoing its files leaves them.
    pub(super) fn commits_during(&self, turn: &TurnEnd) -> Option<String> {
        let (from, to) = (ms_of(&turn.began)?.div_euclid(1000), ms_of(&turn.time)?.div_euclid(1000));
        let moves = head_moves(&self.workspace.path);
        // git logs whole seconds. A commit in the first second may be older than the turn.
        let since = first_file_time(&turn.began)?;
        let is_later = |one: &HeadMove| one.seconds > from || is_loose_since(&self.workspace.path, &one.id, since);
        let is_during = |one: &&HeadMove| one.is_commit() && (from..=to).contains(&one.seconds) && is_later(one);
        let commits: Vec<&HeadMove> = moves.iter().filter(is_during).collect();
        let shown = |one: &&HeadMove| format!("{} {}", &one.id[..7], cut(&printable(one.subject()), LONGEST_SUBJECT));
        let names: Vec<String> = commits.iter().rev().take(MOST_NAMED).map(shown).collect();
        let more = commits.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("commits made during this turn are kept: {}{more}", names.join(", ")))
    }
}
