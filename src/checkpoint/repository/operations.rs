//! Operations of git in a workspace: noted before they begin, and again when they have ended.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::log::{
    GitEnd, GitLogLine, GitOperation, KEPT, LoggedOperation, append, mark_open, may_be_open, operations, remove,
    rewrite, verbs_of,
};
use super::states::OperationEdge;
use super::states_log;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::WorkspaceLock;
use crate::checkpoint::records::workspace::{Scope, Workspace};
use crate::checkpoint::timeline::Timeline;
use crate::error::Result;
use crate::git::door::is_pitons;
use crate::git::user_repository::UserRepository;
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::model::meta::quote;
use crate::model::path::RelPath;
use crate::model::policy::Durability;
use crate::model::redact::redact;
use crate::model::repository::{REMOTES, RepositoryState};
use crate::model::text::{cut, printable};
use crate::store::{Log, Store};
use crate::sys::clock::{now_ms, rfc3339};
use crate::sys::interrupt::Interrupt;
use crate::worktree::git_index::stage_the_same;
use crate::worktree::repository_state::RepositoryPlace;

/// The longest command that is written down, in characters.
const MAX_COMMAND: usize = 160;

/// A repository, and its state at one moment.
#[derive(Clone, Debug)]
pub struct RepositoryNow {
    place: RepositoryPlace,
    state: Arc<RepositoryState>,
}

impl RepositoryNow {
    /// Returns its directories.
    pub(super) fn place(&self) -> &RepositoryPlace {
        &self.place
    }

    /// Returns its state.
    pub(super) fn state(&self) -> &Arc<RepositoryState> {
        &self.state
    }

    /// Returns git on its directories.
    pub(super) fn repository(&self) -> UserRepository {
        UserRepository::at(&self.place.dir, &self.place.common)
    }

    /// Reads the repository whose work tree contains a directory; `None` outside of all.
    ///
    /// # Errors
    /// As [`RepositoryPlace::state`], and those of git where it has to tell.
    pub fn around(dir: &Path) -> Result<Option<RepositoryNow>> {
        RepositoryPlace::around(dir).map(RepositoryNow::at).transpose()
    }

    /// Returns true if git itself tells of its commands here, by the repository's own configuration.
    pub fn tells_itself(&self) -> bool {
        is_pitons(OsStr::from_bytes(&self.place.configuration()))
    }

    /// Reads a repository.
    ///
    /// # Errors
    /// As [`RepositoryNow::around`].
    pub(super) fn at(place: RepositoryPlace) -> Result<RepositoryNow> {
        let repository = UserRepository::at(&place.dir, &place.common);
        let state = match repository.has_ref_table() {
            true => place.state_beside(repository.table_state()?)?,
            false => place.state()?,
        };
        Ok(RepositoryNow { place, state: Arc::new(state) })
    }
}

/// An operation of git that is about to begin.
#[derive(Clone, Debug)]
pub struct NewGitOperation {
    /// The repository in which the command runs, and its state before it.
    pub before: RepositoryNow,
    /// The id of the run that it belongs to.
    pub run: String,
    /// The open turn.
    pub turn: Option<String>,
    /// The client's id of the action.
    pub action: Option<String>,
    /// The command, as it came.
    pub command: String,
    /// The operation that it takes back.
    pub over: Option<u64>,
    /// True for a way back of piton's own.
    pub is_way_back: bool,
    /// True for a command that is no git itself, and that may run some.
    pub hidden: bool,
}

impl Timeline {
    /// Notes that an operation of git begins, and keeps the state of the repository. `files` is the checkpoint that holds the files
    /// as they are now. Returns its number; `None` where the action is noted already.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn begin_git(&mut self, new: &NewGitOperation, files: Option<ObjectId>) -> Result<Option<u64>> {
        let RepositoryNow { place, state } = &new.before;
        self.keep_lost_of_open(new)?;
        let locked = self.lock("git")?;
        let known = operations(&locked.catalog.workspace.dir)?;
        let is_same = |one: &&LoggedOperation| {
            one.begin.run == new.run && new.action.is_some() && one.begin.action == new.action && one.end.is_none()
        };
        if known.iter().rev().take(KEPT).any(|one| is_same(&one)) {
            return Ok(None);
        }
        let top = quoted_top(place)?;
        // git tells of a command of which its client has told already: one that has moved nothing yet is the same.
        let is_ours = |last: &&LoggedOperation| {
            !new.is_way_back && last.end.is_none() && last.begin.run == new.run && (new.hidden || !last.begin.hidden)
        };
        if let Some(open) = known.last().filter(is_ours)
            && open.begin.top == top
            && locked.catalog.repository_state(open.begin.op, OperationEdge::Before).ok().flatten().as_ref()
                == Some(state)
        {
            return Ok(None);
        }
        let op = known.last().map_or(1, |newest| newest.begin.op + 1);
        let synced = locked.is_synced(new.hidden);
        locked.keep_state((op, OperationEdge::Before), state, synced)?;
        let verbs = verbs_of(&new.command);
        let begin = GitOperation {
            op,
            unheld: locked.catalog.unheld_before(new, &verbs, files),
            repository: place.identity(),
            time: rfc3339(now_ms()),
            run: new.run.clone(),
            turn: new.turn.clone(),
            action: new.action.clone(),
            command: cut(&printable(&redact(&new.command)), MAX_COMMAND),
            top,
            files,
            over: new.over,
            way_back: new.is_way_back,
            hidden: new.hidden,
            verbs: Some(verbs),
        };
        append(&locked.catalog.workspace.dir, &GitLogLine::Begin(begin), synced, &locked.lock)?;
        mark_open(&locked.catalog.workspace.dir, true);
        locked.shorten_git(known)?;
        Ok(Some(op))
    }

    /// Notes that the operations of an action have ended, or those of all actions of a run. `ended` is the moment, in milliseconds
    /// since the epoch, where this is noted later.
    ///
    /// # Errors
    /// As [`Timeline::begin_git`], and those of [`RepositoryNow::around`].
    pub fn end_git(
        &mut self,
        run: &str,
        (action, ended): (Option<&str>, Option<i64>),
        control: Interrupt<'_>,
    ) -> Result<()> {
        if !may_be_open(&self.workspace().dir) {
            return Ok(());
        }
        let of_action = |one: &LoggedOperation| {
            one.begin.run == run && one.end.is_none() && (action.is_none() || one.begin.action.as_deref() == action)
        };
        let open = operations(&self.catalog().workspace.dir)?.into_iter().rev().take(KEPT).filter(of_action);
        for one in open.collect::<Vec<_>>() {
            self.end_operation(&one.begin, ended, control)?;
        }
        let dir = &self.workspace().dir;
        if operations(dir)?.iter().rev().take(KEPT).all(|one| one.end.is_some()) {
            mark_open(dir, false);
        }
        Ok(())
    }

    /// Notes that an operation has ended: keeps the state of the repository, and captures the files.
    ///
    /// # Errors
    /// As [`Timeline::begin_git`], and those of [`RepositoryNow::around`].
    pub fn end_operation(&mut self, begin: &GitOperation, ended: Option<i64>, control: Interrupt<'_>) -> Result<()> {
        let now = RepositoryNow::around(&begin.place()?)?;
        if let Some(now) = &now {
            self.keep_lost(begin.op, OperationEdge::After, now)?;
        }
        let before = self.catalog().repository_state(begin.op, OperationEdge::Before)?;
        let moved = before.as_ref() != now.as_ref().map(RepositoryNow::state)
            && !(begin.hidden && before.zip(now.as_ref()).is_some_and(|(before, now)| is_alike(&before, &now.state)));
        let is_whole = self.workspace().scope == Scope::Tree && (moved || !begin.hidden);
        let take = Take::of(CheckpointKind::Turn, &begin.run, "after a git command");
        let files = if is_whole { Some(self.take(&take, control)?.checkpoint.id) } else { None };
        let state = now.map(|now| now.state);
        let unheld = self.catalog().unheld_after(begin);
        let later = self.changed_later(begin, files, (ended, state.as_deref()))?;
        let locked = self.lock("git")?;
        let synced = locked.is_synced(!moved);
        if let Some(state) = state.filter(|_| moved) {
            locked.keep_state((begin.op, OperationEdge::After), &state, synced)?;
        }
        let end = GitEnd { op: begin.op, time: rfc3339(now_ms()), files, later, moved, unheld, stopped: false };
        append(&locked.catalog.workspace.dir, &GitLogLine::End(end), synced, &locked.lock)
    }
}

impl Timeline {
    /// Notes of a way back that has ended that it has stopped before it was whole.
    ///
    /// # Errors
    /// `disk-full`, `permission`; errors of reading.
    pub(super) fn note_stopped(&mut self, op: u64) -> Result<()> {
        let locked = self.lock("git")?;
        let dir = &locked.catalog.workspace.dir;
        let ended = operations(dir)?.into_iter().find(|one| one.begin.op == op).and_then(|one| one.end);
        let Some(end) = ended else { return Ok(()) };
        append(dir, &GitLogLine::End(GitEnd { stopped: true, ..end }), locked.is_synced(false), &locked.lock)
    }
}

/// Returns true if two states differ by nothing that somebody would take back: by what git knows of files on the disk, and of other
/// repositories.
fn is_alike(before: &RepositoryState, now: &RepositoryState) -> bool {
    let own = |state: &RepositoryState| {
        let refs = state.refs.iter().filter(|(name, _)| !name.starts_with(REMOTES));
        let refs: Vec<_> = refs.map(|(name, value)| (name.clone(), value.clone())).collect();
        (refs, state.stash.clone(), state.operation.clone())
    };
    own(before) == own(now) && stages_alike(before, now)
}

/// Returns true if the same is staged in two states.
pub(super) fn stages_alike(before: &RepositoryState, now: &RepositoryState) -> bool {
    match (&before.index, &now.index) {
        (before, now) if before == now => true,
        // Of an index that cannot be read, it is not certain.
        (Some(before), Some(now)) => stage_the_same(before, now).unwrap_or_default(),
        _ => false,
    }
}

/// Returns the top of a work tree as it is written down.
fn quoted_top(place: &RepositoryPlace) -> Result<String> {
    let top = place.top.strip_prefix("/").unwrap_or(&place.top);
    Ok(quote(RelPath::from_path(top)?.as_bytes()))
}

/// Forgets all operations of a workspace, with their states.
///
/// # Errors
/// Returns the errors of writing.
pub(crate) fn forget_git(local: Option<&Store>, workspace: &Workspace, lock: &WorkspaceLock) -> Result<()> {
    remove(&workspace.dir, lock)?;
    states_log::remove(&workspace.dir, lock)?;
    let Some(local) = local else { return Ok(()) };
    let log = workspace.dir.join(local.log_name());
    local.complete(&log)?;
    if log.metadata().is_ok_and(|facts| facts.len() > 0) {
        // A record of the log would bring a ref back.
        local.flush(&mut Log::open(&log)?)?;
    }
    let refs = local.refs(&format!("refs/piton/{}/git/", workspace.id))?.into_iter();
    let refs: Vec<_> = refs.filter_map(|entry| Some((entry.name.to_string(), entry.target.ok()?))).collect();
    if refs.is_empty() { Ok(()) } else { local.delete_refs(&refs).map(drop) }
}

impl Locked<'_> {
    /// Returns true if a line is to outlive a power cut. Of an action that may not be a command of git at all, that is too much.
    fn is_synced(&self, is_idle: bool) -> bool {
        self.catalog.policy.durability == Durability::Power && !is_idle
    }

    /// Drops the oldest operations, where there are twice as many as are kept.
    fn shorten_git(&self, known: Vec<LoggedOperation>) -> Result<()> {
        if known.len() < 2 * KEPT {
            return Ok(());
        }
        let all = operations(&self.catalog.workspace.dir)?;
        let is_idle = |one: &LoggedOperation| one.begin.hidden && one.did_nothing();
        let (mut old, mut kept): (Vec<_>, Vec<_>) = all.into_iter().partition(is_idle);
        old.extend(kept.drain(..kept.len().saturating_sub(KEPT)));
        rewrite(&self.catalog.workspace.dir, &kept, &self.lock)?;
        self.catalog.drop_states(old.iter().map(|one| one.begin.op))
    }
}
