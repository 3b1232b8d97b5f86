//! Whether a restore was interrupted, asked by somebody who does not hold the workspace's lock: one that is being done right now
//! was not.

use std::path::Path;
use std::time::Duration;

use super::journal::{Begin, Journal};
use super::operations::History;
use super::timeline::Timeline;
use crate::error::{Code, Error, Result};
use crate::sys::lock::{FileLock, Mode, holder};

/// What who restores writes into the lock.
pub(super) const RESTORING: &str = "restoring";

/// The interrupted restore in the records of a workspace.
///
/// # Errors
/// Those of reading the journal and of the lock.
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
pub(super) fn in_progress(dir: &Path) -> Result<()> {
    if !holder(&dir.join("lock")).contains(&format!("doing {RESTORING}")) {
        return Ok(());
    }
    Err(Error::new(Code::RollbackInProgress, "a restore or rollback is being done in this workspace")
        .hint("try again when it has finished"))
}

/// What is said of it.
pub(super) fn refusal(begin: &Begin) -> Error {
    let text = format!("restore {} to checkpoint {} was interrupted", begin.op, begin.target.short());
    Error::new(Code::RollbackInProgress, text)
        .hint("end it first: `piton restore --continue` or `piton restore --abort`")
}

impl Timeline {
    /// An error that says what was interrupted and how to end it, if something was. For who does not hold the lock.
    ///
    /// # Errors
    /// `rollback-in-progress`.
    pub fn refuse_interrupted(&self) -> Result<()> {
        interrupted(&self.workspace.dir)?.map_or(Ok(()), |begin| Err(refusal(&begin)))
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
