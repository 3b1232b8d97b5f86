//! Interrupted restores, as seen without the workspace's lock: a running restore does not count as one. This
//! file also ends them: `restore --continue` and `--abort`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::agreed::Agreed;
use super::journal::{Journal, OperationStart, TurnEnd, unquoted};
use super::operations::History;
use super::request::{Restore, Restored, Resume};
use super::turns::saved_elsewhere;
use crate::checkpoint::catalog::open::Catalog;
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::{is_held_for, while_nobody_writes};
use crate::error::{Code, Error, Result};
use crate::model::operation::OperationKind;
use crate::model::path::RelPath;
use crate::model::text::count;
use crate::sys::interrupt::Flow;
use crate::worktree::restore::Outcome;

/// The reason that a restore writes into the lock.
pub(crate) const RESTORING: &str = "restoring";

/// Returns the interrupted restore in the records of a workspace.
///
/// # Errors
/// Returns the errors of reading the journal and of the lock.
pub fn interrupted(dir: &Path) -> Result<Option<OperationStart>> {
    let read = || Journal::in_dir(dir).read().map(|contents| History::of(contents).interrupted);
    let Some(begin) = read()? else { return Ok(None) };
    // It may have ended since the first reading, so it is read again under the lock.
    if let Some(still) = while_nobody_writes(dir, read)? {
        return Ok(still);
    }
    // A process that holds the lock and restores is running this restore.
    if is_held_for(dir, RESTORING) {
        return Ok(None);
    }
    // Another operation holds the lock, so the restore has released it. If it ended, the journal has its end by now.
    Ok(read()?.filter(|now| now.op == begin.op))
}

/// Refuses while another process restores.
///
/// # Errors
/// `rollback-in-progress`.
pub(crate) fn in_progress(dir: &Path) -> Result<()> {
    if !is_held_for(dir, RESTORING) {
        return Ok(());
    }
    Err(Error::new(Code::RollbackInProgress, "a restore or rollback is running in this workspace")
        .hint("try again when it has finished"))
}

/// Returns the refusal to do anything before an interrupted restore has ended.
fn refusal(begin: &OperationStart) -> Error {
    let text = format!("restore {} to checkpoint {} was interrupted", begin.op, begin.target.short());
    Error::new(Code::RollbackInProgress, text).hint("first run `piton restore --continue` or `piton restore --abort`")
}

/// Returns the error of a restore that was stopped in the middle, and stays open.
pub(super) fn stopped(begin: &OperationStart, outcome: &Outcome) -> Error {
    let (done, left) = (outcome.changed().count(), outcome.failed.len());
    let text = format!(
        "restore {} to checkpoint {} was interrupted: {} changed, {left} left",
        begin.op,
        begin.target.short(),
        count(done as u64, "path")
    );
    Error::new(Code::RollbackInProgress, text)
        .hint("`piton restore --continue` finishes it; `piton restore --abort` reverts it")
}

impl Catalog {
    /// Refuses while an interrupted restore waits, and says how to end it. It is for callers that do not hold the lock.
    ///
    /// # Errors
    /// `rollback-in-progress`.
    pub fn refuse_interrupted(&self) -> Result<()> {
        interrupted(&self.workspace.dir)?.map_or(Ok(()), |begin| Err(refusal(&begin)))
    }
}

impl Locked<'_> {
    /// Refuses while an interrupted restore waits, and says how to end it.
    ///
    /// # Errors
    /// `rollback-in-progress`; those of reading the journal.
    pub(crate) fn refuse_interrupted(&self) -> Result<()> {
        self.catalog.history()?.interrupted.as_ref().map_or(Ok(()), |begin| Err(refusal(begin)))
    }

    /// Finishes an interrupted restore, or takes it back. Either way the tree is whole afterwards, except for files
    /// that were edited or created since: these stay, and are listed.
    ///
    /// # Errors
    /// `no-such-checkpoint` when none is interrupted; those of [`Locked::restore`].
    pub(crate) fn resume(&mut self, go_on: bool, control: &dyn Fn() -> Flow) -> Result<Restored> {
        let begin = self.catalog.history()?.interrupted.clone().ok_or_else(|| {
            Error::new(Code::NoSuchCheckpoint, "no restore was interrupted in this workspace").hint("nothing to do")
        })?;
        let mut only = begin.only.as_deref().map(unquoted).transpose()?;
        let planned = unquoted(&begin.planned)?;
        // First, or the leftovers would be captured and planned as the user's files.
        self.catalog.clean_up_after(&planned)?;
        let rest = self.catalog.rest_of(&begin, planned.clone());
        // A directory above that was made writable gets its permissions back.
        let above = planned.iter().flat_map(|path| std::iter::successors(path.parent(), RelPath::parent));
        let touched = || above.filter(|path| !path.is_root()).chain(planned.iter().cloned()).collect();
        let history = self.catalog.history()?;
        let over = history.turns.iter().find(|turn| Some(&turn.op) == begin.over.as_ref());
        let is_back_over = |turn: &&Arc<TurnEnd>| begin.kind == OperationKind::Undo && begin.target == turn.base;
        let from = over
            .filter(|turn| go_on && is_back_over(turn))
            .map_or_else(|| Ok(BTreeMap::new()), |turn| saved_elsewhere(turn))?;
        let lost = self.catalog.lost_versions(&from)?;
        only.iter_mut().for_each(|only| only.retain(|path| !lost.contains(path)));
        let restore = Restore {
            target: if go_on { begin.target } else { begin.pre_restore },
            kind: begin.kind,
            run: begin.run.clone(),
            paths: if go_on { unquoted(&begin.paths)?.into_iter().collect() } else { Vec::new() },
            limits: match &begin.limits {
                Some(limits) if go_on => Arc::new(limits.limits()?),
                _ => Arc::default(),
            },
            only: if go_on { only } else { Some(touched()) },
            keep_new: go_on && begin.keep_new,
            local: begin.local,
            over: begin.over.clone(),
            partial: begin.partial,
            from,
            composed: None,
            expected: None,
            repositories: if go_on { self.catalog.repositories_of_step(&begin)? } else { Vec::new() },
            agreed: Agreed::Rest(Arc::new(rest)),
        };
        self.run_restore(&restore, Some(Resume { begin, go_on }), &|_| {}, control)
    }
}

impl Catalog {
    fn clean_up_after(&self, planned: &BTreeSet<RelPath>) -> Result<()> {
        if self.workspace.is_deleted() {
            return Ok(());
        }
        // A file without a directory was staged in the deepest one that existed.
        let above = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent);
        let dirs: BTreeSet<RelPath> = planned.iter().flat_map(above).collect();
        let removed = crate::worktree::restore::clean_temporaries(&self.workspace.path, dirs)?;
        tracing::info!(removed, "temporary files of the interrupted restore");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::super::journal::Line;
    use super::*;
    use crate::checkpoint::records::lock::{LOCK_WAIT, WorkspaceLock};
    use crate::model::id::{ObjectId, ObjectKind};
    use crate::model::operation::OperationKind;

    fn beginning(op: &str) -> OperationStart {
        let id = ObjectId::of(ObjectKind::Blob, b"x").unwrap();
        OperationStart {
            op: op.into(),
            kind: OperationKind::Restore,
            run: "local".into(),
            target: id,
            pre_restore: id,
            paths: vec![],
            limits: None,
            only: None,
            planned: vec![],
            keep_new: false,
            local: false,
            over: None,
            partial: false,
            in_hunks: Vec::new(),
            time: String::new(),
        }
    }

    #[test]
    fn who_restores_now_is_not_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let there = || interrupted(dir.path()).unwrap().is_some();
        assert!(!there());
        let take = |verb| WorkspaceLock::acquire(dir.path(), verb, Duration::ZERO).unwrap();
        let append = |line| Journal::in_dir(dir.path()).append(&[line], &take("noting")).unwrap();
        append(Line::Restoring(beginning("o-1")));
        assert!(there(), "nobody is at work");
        let lock = take(RESTORING);
        assert!(!there(), "somebody restores");
        drop(lock);
        let lock = take("settling");
        assert!(there(), "somebody does something else");
        drop(lock);
        append(Line::Aborted { op: "o-1".into() });
        assert!(!there());
    }

    #[test]
    fn a_restore_that_ends_before_another_process_takes_the_lock_was_not_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let journal = Journal::in_dir(dir.path());
                for round in 0..300 {
                    let take = |verb| WorkspaceLock::acquire(dir.path(), verb, LOCK_WAIT).unwrap();
                    let op = format!("o-{round}");
                    let lock = take(RESTORING);
                    journal.append(&[Line::Restoring(beginning(&op))], &lock).unwrap();
                    journal.append(&[Line::Aborted { op }], &lock).unwrap();
                    drop(lock);
                    journal.append(&[], &take("taking a checkpoint")).unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                assert_eq!(interrupted(dir.path()).unwrap(), None);
            }
        });
    }
}
