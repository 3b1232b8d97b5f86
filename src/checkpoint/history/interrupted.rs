//! Whether a restore was interrupted, asked by somebody who does not hold the workspace's lock: one that is being done right now
//! was not. And how it is ended: `restore --continue` and `--abort`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::agreed::Agreed;
use super::journal::{Begin, Journal, unquoted};
use super::operations::History;
use super::restore::{Restore, Restored};
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;
use crate::sys::fs::lock::{FileLock, Mode, holder};
use crate::sys::interrupt::Flow;

/// What who restores writes into the lock.
pub(in crate::checkpoint) const RESTORING: &str = "restoring";

/// The interrupted restore in the records of a workspace.
///
/// # Errors
/// Returns the errors of reading the journal and of the lock.
pub fn interrupted(dir: &Path) -> Result<Option<Begin>> {
    let read = || Journal::in_dir(dir).read().map(|contents| History::of(contents.lines).interrupted);
    let Some(begin) = read()? else { return Ok(None) };
    let lock = dir.join("lock");
    match FileLock::acquire(&lock, Mode::Shared, "looking", Duration::ZERO) {
        // It may have ended since it was read.
        Ok(_lock) => read(),
        Err(error) if error.code() == Code::StoreLocked => {
            let at_work = holder(&lock).contains(&format!("doing {RESTORING}"));
            Ok(Some(begin).filter(|_| !at_work))
        }
        Err(error) => Err(error),
    }
}

/// Refuses while somebody restores.
///
/// # Errors
/// `rollback-in-progress`.
pub(in crate::checkpoint) fn in_progress(dir: &Path) -> Result<()> {
    if !holder(&dir.join("lock")).contains(&format!("doing {RESTORING}")) {
        return Ok(());
    }
    Err(Error::new(Code::RollbackInProgress, "a restore or rollback is being done in this workspace")
        .hint("try again when it has finished"))
}

/// What is said of it.
pub(in crate::checkpoint) fn refusal(begin: &Begin) -> Error {
    let text = format!("restore {} to checkpoint {} was interrupted", begin.op, begin.target.short());
    Error::new(Code::RollbackInProgress, text)
        .hint("end it first: `piton restore --continue` or `piton restore --abort`")
}

/// An interrupted operation that is taken up again.
pub(in crate::checkpoint) struct Resume {
    pub begin: Begin,
    /// Finish it; else go back to where it began.
    pub go_on: bool,
}

impl Timeline {
    /// An error that says what was interrupted and how to end it, if something was. For who does not hold the lock.
    ///
    /// # Errors
    /// `rollback-in-progress`.
    pub fn refuse_interrupted(&self) -> Result<()> {
        interrupted(&self.workspace.dir)?.map_or(Ok(()), |begin| Err(refusal(&begin)))
    }

    /// Goes on with an interrupted restore, or gives it up. Either way the tree is whole afterwards, but for what somebody edited
    /// or created since: that stays, and is listed.
    ///
    /// # Errors
    /// `no-such-checkpoint` when none is interrupted; those of [`Timeline::restore`].
    pub fn resume(&mut self, go_on: bool, control: &dyn Fn() -> Flow) -> Result<Restored> {
        let _lock = self.lock(RESTORING)?;
        let begin = self.history()?.interrupted.clone().ok_or_else(|| {
            Error::new(Code::NoSuchCheckpoint, "no restore was interrupted in this workspace").hint("nothing to do")
        })?;
        let only = begin.only.as_deref().map(unquoted).transpose()?;
        let planned = unquoted(&begin.planned)?;
        self.clean_up_after(&planned)?;
        let rest = self.rest_of(&begin, planned.clone());
        // A directory above that was made writable gets its permissions back.
        let above = planned.iter().flat_map(|path| std::iter::successors(path.parent(), RelPath::parent));
        let touched = || above.filter(|path| !path.is_root()).chain(planned.iter().cloned()).collect();
        let restore = Restore {
            target: if go_on { begin.target } else { begin.pre_restore },
            kind: begin.kind,
            run: begin.run.clone(),
            paths: if go_on { unquoted(&begin.paths)?.into_iter().collect() } else { Vec::new() },
            only: if go_on { only } else { Some(touched()) },
            keep_new: go_on && begin.keep_new,
            over: begin.over.clone(),
            agreed: Agreed::Rest(Arc::new(rest)),
        };
        self.run_restore(&restore, Some(Resume { begin, go_on }), &|_| {}, control)
    }

    fn clean_up_after(&self, planned: &BTreeSet<RelPath>) -> Result<()> {
        // What has no directory yet was staged in the deepest one that there was.
        let above = |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent);
        let dirs: BTreeSet<RelPath> = planned.iter().flat_map(above).collect();
        let removed = crate::worktree::restore::clean_temporaries(&self.workspace.path, dirs)?;
        tracing::info!(removed, "temporary files of the interrupted restore");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::journal::{Line, OpKind};
    use super::*;
    use crate::model::id::{ObjectId, ObjectKind};

    #[test]
    fn who_restores_now_is_not_interrupted() {
        let dir = tempfile::tempdir().unwrap();
        let id = ObjectId::of(ObjectKind::Blob, b"x").unwrap();
        let begin = Begin {
            op: "o-1".into(),
            kind: OpKind::Restore,
            run: "local".into(),
            target: id,
            pre_restore: id,
            paths: vec![],
            only: None,
            planned: vec![],
            keep_new: false,
            over: None,
            time: String::new(),
        };
        let there = || interrupted(dir.path()).unwrap().is_some();
        assert!(!there());
        Journal::in_dir(dir.path()).append(&[Line::Restoring(begin)]).unwrap();
        assert!(there(), "nobody is at work");
        let take = |verb| FileLock::acquire(&dir.path().join("lock"), Mode::Exclusive, verb, Duration::ZERO).unwrap();
        let lock = take(RESTORING);
        assert!(!there(), "somebody restores");
        drop(lock);
        let lock = take("settling");
        assert!(there(), "somebody does something else");
        drop(lock);
        Journal::in_dir(dir.path()).append(&[Line::Aborted { op: "o-1".into() }]).unwrap();
        assert!(!there());
    }
}
