//! The way back over an operation of git, and its steps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::goal::{GitGoal, gone};
use super::later::written;
use super::log::{KEPT, LoggedOperation, operations};
use super::objects::named;
use super::operations::{NewGitOperation, RepositoryNow};
use super::parts::PartsBack;
use super::plan::{IndexEntries, KeptPart, RepositoryPlan, moved_on, plan, plan_to};
use super::states::OperationEdge;
use super::unheld::parts;
use crate::checkpoint::capture::request::Take;
use crate::checkpoint::catalog::entries::EntryChange;
use crate::checkpoint::history::journal::unquoted;
use crate::checkpoint::history::request::{Expected, Preview, Restore, Restored};
use crate::checkpoint::records::workspace::Scope;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::git::index_lock::IndexLock;
use crate::git::line::FilesWritten;
use crate::git::ref_moves::RefMove;
use crate::git::user_repository::{UserRepository, require_git};
use crate::model::checkpoint::CheckpointKind;
use crate::model::id::ObjectId;
use crate::model::path::RelPath;
use crate::model::repository::{RepositoryState, STASH};
use crate::sys::interrupt::Interrupt;
use crate::sys::process::exists;
use crate::worktree::repository_state::RepositoryPlace;
use crate::worktree::restore::KeepReason;

/// The run of a person's own commands.
const RUN: &str = "local";

/// The beginning of the name of an action of which git itself tells; the number of its process follows.
pub const OF_GIT: &str = "git-";

/// The way back over an operation.
pub struct GitUndo {
    /// The moment to which it leads.
    pub goal: GitGoal,
    /// The steps in the repository.
    pub plan: RepositoryPlan,
    /// The steps of the files; `None` where none are known to have changed.
    pub files: Option<(Restore, Preview)>,
    place: RepositoryPlace,
    before: Arc<RepositoryState>,
    /// The repository as the plan has found it, and the entries of its index where git can read them.
    seen: (Arc<RepositoryState>, Option<Vec<u8>>),
    /// The packs of objects that git has removed meanwhile.
    packs: Vec<Vec<u8>>,
}

impl GitUndo {
    /// Returns true if there is nothing to take back, and nothing that stays.
    pub fn is_nothing(&self) -> bool {
        let changes = self.files.as_ref().is_some_and(|(_, preview)| !preview.plan.changes_nothing());
        self.plan.is_nothing() && !changes && !self.is_part()
    }

    /// Returns true if something stays as it is that was to go back.
    pub fn is_part(&self) -> bool {
        !self.plan.kept.is_empty() || self.has_kept_files()
    }

    /// Returns true if files stay as they are that the operation has changed.
    pub fn has_kept_files(&self) -> bool {
        let stays = |(_, why): &(RelPath, KeepReason)| matches!(why, KeepReason::ChangedSince);
        let plan = self.files.as_ref().map(|(_, preview)| &preview.plan);
        plan.is_some_and(|plan| !plan.conflict.is_empty() || plan.keep.iter().any(stays))
    }

    /// Returns the first part which the plan changes and that is another one now than the plan has found, for people.
    fn changed_since(&self, now: &RepositoryState) -> Result<Option<&'static str>> {
        let (seen, index) = &self.seen;
        if self.plan.refs.iter().any(|one| now.refs.get(&one.name) != one.from.as_ref()) {
            return Ok(Some("refs have"));
        }
        let stash = |state: &RepositoryState| (state.refs.get(STASH).cloned(), state.stash.clone());
        if self.plan.stash.is_some() && stash(now) != stash(seen) {
            return Ok(Some("the stash has"));
        }
        if !self.plan.operation.is_empty() && now.operation != seen.operation {
            return Ok(Some("a merge, rebase or similar operation in progress has"));
        }
        // `git status` writes other times of the same entries.
        if self.plan.index && now.index != seen.index {
            let entries = self.repository().index_entries(now.index.as_deref())?;
            return Ok((Some(entries) != *index).then_some("the index has"));
        }
        Ok(None)
    }

    /// Returns the top of the work tree.
    pub fn top(&self) -> &Path {
        &self.place.top
    }

    fn repository(&self) -> UserRepository {
        UserRepository::at(&self.place.dir, &self.place.common)
    }
}

/// An operation that was taken back.
#[derive(Debug)]
pub struct GitUndone {
    /// The number of the operation that has done it: `piton git-undo g-N` takes it back in turn.
    pub by: Option<u64>,
    /// The files that changed; `None` where none had to.
    pub files: Option<Restored>,
}

impl IndexEntries {
    /// Reads the entries of three indexes.
    ///
    /// # Errors
    /// `conflict` for an index that git does not read: the shared part of a split one may be gone.
    fn read(
        repository: &UserRepository,
        (before, after, now): (&RepositoryState, Option<&RepositoryState>, &RepositoryState),
    ) -> Result<IndexEntries> {
        let entries = |state: &RepositoryState| repository.index_entries(state.index.as_deref());
        Ok(IndexEntries { before: entries(before)?, after: after.map(entries).transpose()?, now: entries(now)? })
    }
}

/// Returns false if a repository is another one than that of an identity. Where that is not known otherwise, the commits of the state that
/// it had tell.
///
/// # Errors
/// Returns the errors of git, and those of `before`.
pub(super) fn is_same_repository(
    place: &RepositoryPlace,
    known: Option<&str>,
    before: impl FnOnce() -> Result<Option<Arc<RepositoryState>>>,
) -> Result<bool> {
    let now = place.identity();
    if let Some(is_same) = known.zip(now.as_deref()).and_then(|(known, now)| RepositoryPlace::is_same(known, now)) {
        return Ok(is_same);
    }
    let commits = before()?.map(|before| named(&before)).unwrap_or_default();
    if commits.is_empty() {
        return Ok(known.is_none());
    }
    let lacking = UserRepository::at(&place.dir, &place.common).lacking(&commits)?;
    Ok(lacking.len() < commits.len())
}

impl Timeline {
    /// Returns the operations of git in this workspace, the oldest first.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub fn git_operations(&self) -> Result<Vec<LoggedOperation>> {
        operations(&self.workspace().dir)
    }

    /// Returns the newest operations of git that have changed something, newest first, and `most` of them at most. Those of a repository
    /// in whose place another one stands are left out.
    ///
    /// # Errors
    /// Returns the errors of git and of reading.
    pub fn newest_git_operations(&self, most: usize) -> Result<Vec<LoggedOperation>> {
        let mut newest = Vec::new();
        for one in self.git_operations()?.into_iter().rev().filter(|one| !one.did_nothing()) {
            if newest.len() == most {
                break;
            }
            if self.is_same_repository(&one)? {
                newest.push(one);
            }
        }
        Ok(newest)
    }

    /// Returns false if another repository stands where an operation was. Where that is not known otherwise, the commits tell.
    fn is_same_repository(&self, operation: &LoggedOperation) -> Result<bool> {
        let top = operation.begin.place()?;
        let Some(place) = RepositoryPlace::at_top(&top) else { return Ok(true) };
        let before = || self.catalog().repository_state(operation.begin.op, OperationEdge::Before);
        is_same_repository(&place, operation.begin.repository.as_deref(), before)
    }

    /// Returns the way back over an operation; without a number, over the newest that is not taken back and that has changed something.
    /// `None` when there is none.
    ///
    /// # Errors
    /// `no-such-turn` for an unknown number; `conflict` for a repository that is gone; errors of git and of reading.
    pub fn git_undo(&mut self, op: Option<u64>, control: Interrupt<'_>) -> Result<Option<GitUndo>> {
        require_git()?;
        self.end_gone(control)?;
        let all = self.git_operations()?;
        if let Some(op) = op {
            let chosen = all.into_iter().find(|one| one.begin.op == op).ok_or_else(|| {
                Error::new(Code::NoSuchTurn, format!("there is no git operation g-{op}"))
                    .hint("`piton list --git` lists the known ones")
            })?;
            return self.way_back(chosen, control).map(Some);
        }
        let open = all.into_iter().rev().filter(|one| one.undone.is_none() && one.begin.over.is_none());
        for one in open.filter(|one| !one.did_nothing()).collect::<Vec<_>>() {
            if !self.is_same_repository(&one)? {
                continue;
            }
            let way = self.way_back(one, control)?;
            if !way.is_nothing() {
                return Ok(Some(way));
            }
        }
        Ok(None)
    }

    /// Notes the end of operations whose git has ended a moment ago: whoever waits for that may be about to.
    pub(super) fn end_gone(&mut self, control: Interrupt<'_>) -> Result<()> {
        let is_gone = |one: &LoggedOperation| {
            let pid = one.begin.action.as_deref().and_then(|action| action.strip_prefix(OF_GIT)?.parse().ok());
            one.end.is_none() && pid.is_some_and(|pid: u32| !exists(pid))
        };
        for one in self.git_operations()?.into_iter().rev().take(KEPT).filter(is_gone).collect::<Vec<_>>() {
            self.end_operation(&one.begin, None, control)?;
        }
        Ok(())
    }

    fn way_back(&mut self, operation: LoggedOperation, control: Interrupt<'_>) -> Result<GitUndo> {
        let top = operation.begin.place()?;
        let place = RepositoryPlace::at_top(&top).ok_or_else(|| gone(&top))?;
        let (op, name) = (operation.begin.op, operation.begin.name());
        if !self.is_same_repository(&operation)? {
            let text = format!("{name} was a command in another repository, which is no longer here");
            return Err(Error::new(Code::Conflict, text).path(&top).hint("`piton list --git` lists those of this one"));
        }
        let before = self.catalog().repository_state(op, OperationEdge::Before)?.ok_or_else(|| {
            Error::new(Code::Pruned, format!("the state of the repository before {name} is no longer kept"))
        })?;
        let after = match &operation.end {
            Some(end) if end.moved => self.catalog().repository_state(op, OperationEdge::After)?,
            Some(_) => Some(Arc::clone(&before)),
            None => None,
        };
        self.way(GitGoal::Before(Box::new(operation)), (before, after), RepositoryNow::at(place)?, control)
    }

    /// Plans the way from a repository as it is now to the state `before`. `after` is the state that the operation has left, where there
    /// is one and its end is known.
    pub(super) fn way(
        &mut self,
        goal: GitGoal,
        (before, after): (Arc<RepositoryState>, Option<Arc<RepositoryState>>),
        found: RepositoryNow,
        control: Interrupt<'_>,
    ) -> Result<GitUndo> {
        let (place, now) = (found.place().clone(), Arc::clone(found.state()));
        let repository = found.repository();
        // Also where nothing is to be done: git itself waits for nobody.
        repository.remove_left_over_lock()?;
        let index = IndexEntries::read(&repository, (&before, after.as_deref(), &now));
        let mut plan = match &goal {
            GitGoal::Before(_) => plan(&before, after.as_deref(), &now, index.as_ref().ok()),
            GitGoal::At(_) => plan_to(&before, &now, index.as_ref().ok()),
        };
        let elsewhere = place.checked_out_elsewhere()?;
        plan.spare(&elsewhere);
        let since = match &goal {
            GitGoal::Before(operation) => operation.begin.op,
            // Objects that a command has left before that moment are not needed.
            GitGoal::At(checkpoint) => {
                let later = self.git_operations()?.into_iter().find(|one| one.begin.time >= checkpoint.record.time);
                later.map_or(u64::MAX, |one| one.begin.op)
            }
        };
        let packs = self.objects_back(since, &before, &mut plan, &found, index.as_ref().ok())?;
        plan.keep_head_without_its_branch(&before, &elsewhere);
        if let (Some(operation), Some(after), Ok(index)) = (goal.operation(), &after, &index) {
            plan.add_switch(&operation.begin, &before, after, index, &found);
        }
        if matches!(goal, GitGoal::At(_)) {
            plan.keep_together(&before, &now);
            plan.tell_put_aside(&now.operation);
        }
        let mut files = None;
        if let Some(operation) = goal.operation() {
            files = self.files_back(operation, &mut plan.kept, control)?;
            plan.kept.extend(self.not_held(operation)?);
        }
        let seen = (now, index.ok().map(|index| index.now));
        Ok(GitUndo { goal, plan, files, place, before, seen, packs })
    }

    /// Returns how the files go back: those that the operation has changed, where they are as it left them. Those that it may have
    /// changed, and that others have changed behind its end, are added to the parts that stay.
    fn files_back(
        &mut self,
        operation: &LoggedOperation,
        kept: &mut Vec<KeptPart>,
        control: Interrupt<'_>,
    ) -> Result<Option<(Restore, Preview)>> {
        let Some(files) = operation.begin.files else { return Ok(None) };
        // Files that are kept apart from the others go back with them.
        let mut restore = Restore { local: true, ..Restore::to(files, RUN, Vec::new(), false) };
        if let Some((end, after)) = operation.end.as_ref().and_then(|end| Some((end, end.files?))) {
            let (from, to) = (self.catalog().checkpoint_of(files)?, self.catalog().checkpoint_of(after)?);
            let changed = self.catalog().changed_entries(&from, &to)?;
            let later = unquoted(&end.later)?;
            if written(&operation.begin) != FilesWritten::None {
                let is_both = |(path, before, _): &&EntryChange| before.is_some() && later.contains(path);
                kept.extend(moved_on(changed.iter().filter(is_both).map(|(path, ..)| path)));
            }
            // A file that the first capture has left out was there: it does not go.
            let held = self.catalog().own_coverage(&from)?;
            let is_left_out = |path: &RelPath, before: &Option<_>| before.is_none() && held.skip_of(path).is_some();
            let states: BTreeMap<RelPath, _> = changed
                .into_iter()
                .filter(|(path, before, _)| !later.contains(path) && !is_left_out(path, before))
                .map(|(path, _, after)| (path, after))
                .collect();
            restore.only = Some(states.keys().cloned().collect());
            restore.expected = Some(Arc::new(Expected { states, ..Expected::default() }));
        }
        let preview = self.preview(&restore, control)?;
        Ok(Some((restore, preview)))
    }

    /// Returns the parts of an operation that no checkpoint holds, and repositories in its files that it has removed: no restore
    /// writes into a `.git` by itself.
    fn not_held(&self, operation: &LoggedOperation) -> Result<Vec<KeptPart>> {
        let end = operation.end.as_ref().map(|end| end.unheld.clone());
        let mut kept = parts(&end.unwrap_or_else(|| self.catalog().unheld_after(&operation.begin)));
        if let Some(files) = operation.begin.files {
            for (path, command) in self.catalog().repositories_gone(&self.catalog().checkpoint_of(files)?)? {
                kept.push(KeptPart {
                    what: format!("the repository `{path}`"),
                    why: format!("to restore it, run `{command}`"),
                });
            }
        }
        Ok(kept)
    }

    /// Returns the capture of the files as they are now; `None` in a directory that is too broad for one.
    fn take_present(&mut self, control: Interrupt<'_>) -> Result<Option<ObjectId>> {
        let take = Take::of(CheckpointKind::Turn, RUN, "before `piton git-undo`");
        let is_tree = self.workspace().scope == Scope::Tree;
        if is_tree { self.take(&take, control).map(|taken| Some(taken.checkpoint.id)) } else { Ok(None) }
    }

    /// Takes an operation back, as its preview has shown.
    ///
    /// # Errors
    /// `busy` while a git is at work; `conflict` where something has moved since the preview: nothing was done then. `stale-plan` where
    /// files have: what git knows is back then, and the next try does the rest.
    pub fn take_git_back(&mut self, way: GitUndo, control: Interrupt<'_>) -> Result<GitUndone> {
        let name = way.goal.name();
        let repository = way.repository();
        // No git changes the index while it is locked.
        let index = repository.lock_index()?;
        let now = RepositoryNow::around(&way.place.top)?.ok_or_else(|| gone(&way.place.top))?;
        if let Some(part) = way.changed_since(now.state())? {
            let text = format!("{part} changed since the preview, so nothing was done");
            return Err(Error::new(Code::StalePlan, text).hint(format!("check again: `piton undo {name} --preview`")));
        }
        let over = way.goal.operation();
        let is_same =
            |one: &LoggedOperation, over: &LoggedOperation| (one.begin.op, one.undone) == (over.begin.op, over.undone);
        if let Some(over) = over
            && !self.git_operations()?.iter().any(|one| is_same(one, over))
        {
            let text = format!("{name} was undone in the meantime, so nothing was done");
            return Err(Error::new(Code::StalePlan, text).hint("check again: `piton list --git`"));
        }
        let new = NewGitOperation {
            before: now,
            run: RUN.to_owned(),
            turn: None,
            action: None,
            command: format!("piton git-undo {name}"),
            over: over.map(|over| over.begin.op),
            is_way_back: true,
            hidden: false,
        };
        let present = self.take_present(control)?;
        let by = self.begin_git(&new, present)?;
        let done = self.write_back(way, (&name, &repository), index, control);
        if let Some(by) = by {
            // Also of one that has stopped on its way: what it has done is known then.
            let ended = self.end_git(RUN, (None, None), control);
            match &done {
                Ok(_) => ended?,
                // The first error is the one to report.
                Err(_) => ended.and_then(|()| self.note_stopped(by)).unwrap_or_default(),
            }
        }
        done.map(|files| GitUndone { by, files })
    }

    /// Brings the parts back. Each part after the index goes back whatever becomes of the others.
    fn write_back(
        &mut self,
        way: GitUndo,
        (name, repository): (&str, &UserRepository),
        index: IndexLock,
        control: Interrupt<'_>,
    ) -> Result<Option<Restored>> {
        let reason = format!("piton git-undo {name}");
        let plan = &way.plan;
        let mut parts = PartsBack::default();
        let refs: Vec<RefMove> = plan.refs.iter().filter(|one| one.name != STASH).cloned().collect();
        parts.bring("objects", !way.packs.is_empty(), || way.packs.iter().try_for_each(|pack| repository.unpack(pack)));
        parts.needs_all_before();
        // git locks the index itself for its switch.
        let index = plan.switch.is_none().then_some(index);
        parts.bring("the files and the index", plan.switch.is_some(), || {
            plan.switch.as_ref().map_or(Ok(()), |switch| repository.switch_files(&way.place.top, switch))
        });
        parts.needs_all_before();
        parts.bring("refs", !refs.is_empty(), || repository.move_refs(&refs, &reason));
        // Between the two, all would look staged.
        parts.needs_all_before();
        parts.bring("the index", plan.index, || {
            index.as_ref().map_or(Ok(()), |index| repository.put_index(index, way.before.index.as_deref()))
        });
        parts.needs_all_before();
        parts.bring("the operation in progress", !plan.operation.is_empty(), || {
            let mut files = plan.operation.iter();
            files.try_for_each(|(path, content)| repository.put_operation(path, content.as_deref()))
        });
        parts.bring("the stash", plan.stash.is_some(), || {
            // Without the entries whose objects are gone.
            let (refs, stash) = (way.before.refs.clone(), plan.stash.clone().unwrap_or_default());
            repository.put_stash(&RepositoryState { refs, stash, ..RepositoryState::default() }, &way.seen.0, &reason)
        });
        drop(index);
        let mut restored = None;
        if let Some((restore, preview)) = way.files.filter(|(_, preview)| !preview.plan.changes_nothing()) {
            parts.bring("files", true, || {
                restored = Some(self.restore(&restore.agreeing(&preview), control)?);
                Ok(())
            });
        }
        parts.ended(name).map(|()| restored)
    }
}
