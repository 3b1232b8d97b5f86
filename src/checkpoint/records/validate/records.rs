//! The look at the records of one workspace: the log, the state file and the journal.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Damage, NamedCheckpoint, PREFIXES, WorkspaceCheck, fits, is_ref_name, owner};
use crate::checkpoint::catalog::checkpoint::Checkpoint;
use crate::checkpoint::catalog::dropped::Ledger;
use crate::checkpoint::history::journal::Journal;
use crate::checkpoint::history::operations::History;
use crate::checkpoint::records::state::WorkspaceState;
use crate::error::{IoContext, Result};
use crate::model::id::ObjectId;
use crate::store::{RefEntry, Store, log};

/// Returns the refs that the log of a workspace has moved and that are not there, with the commits that they named.
/// `refs` lists the refs below a prefix. The last of the log comes last, with `true`: its writer may have been killed
/// before it moved the ref, and the next writer moves it.
///
/// # Errors
/// When the log cannot be read or refs cannot be listed.
pub(crate) fn gone_from(
    workspace: &str,
    dir: &Path,
    refs: &dyn Fn(&str) -> Result<Vec<RefEntry>>,
) -> Result<Vec<(String, ObjectId, bool)>> {
    let path = dir.join("log");
    let bytes = match std::fs::read(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.at("reading", &path)?,
    };
    let records = log::decode(&bytes).0;
    let last = records.last().map(|record| record.name.clone());
    let moved = records.into_iter().map(|record| (record.name, record.new));
    let mut gone: BTreeMap<String, ObjectId> = moved.filter(|(name, _)| owner(name) == Some(workspace)).collect();
    if !gone.is_empty() {
        for start in PREFIXES {
            let there = refs(&format!("{start}{workspace}/"))?;
            there.iter().filter(|entry| entry.target.is_ok()).for_each(|entry| _ = gone.remove(&*entry.name));
        }
    }
    let is_last = |name: &String| last.as_ref() == Some(name);
    let mut gone: Vec<_> = gone.into_iter().map(|(name, id)| (is_last(&name), name, id)).collect();
    gone.sort();
    Ok(gone.into_iter().map(|(is_last, name, id)| (name, id, is_last)).collect())
}

/// Looks at the records of one workspace, and compares them with the checkpoints that were listed. It reads no object
/// but those that nothing names.
///
/// # Errors
/// When refs or records cannot be read.
pub(crate) fn of_listed(store: &Store, id: &str, dir: &Path, listed: &[Checkpoint]) -> Result<Vec<Damage>> {
    let mut look = WorkspaceCheck::new(store, id);
    for checkpoint in listed {
        let record = checkpoint.record.clone();
        let own = Some(&checkpoint.name).filter(|_| record.workspace == id && !record.kind.is_typed());
        if let Some(Err(why)) = own.map(|name| fits(name, &record)) {
            look.say(Damage::NotAsNamed { name: checkpoint.name.to_string(), why }, None);
        }
        look.know(checkpoint.id, NamedCheckpoint { record, parents: checkpoint.parents.clone() });
    }
    look.at_parents();
    look.at_log(dir)?;
    look.at_state(dir)?;
    look.at_journal(dir)?;
    Ok(look.finish().into_iter().map(|(damage, _)| damage).filter(Damage::is_harm).collect())
}

impl WorkspaceCheck<'_> {
    /// Names the refs that the log has moved and that are not there.
    pub(super) fn at_log(&mut self, dir: &Path) -> Result<()> {
        for (name, id, is_last) in gone_from(self.id, dir, &|prefix| self.store.refs(prefix))? {
            // Reported once, with the repair.
            let before = self.found.len();
            self.found.retain(|(_, about)| about.as_deref() != Some(name.as_str()));
            let is_torn = self.found.len() < before;
            let damage = match is_last && !is_torn {
                true => Damage::Unmoved { name: name.clone(), id },
                false => Damage::NotFromLog { name: name.clone(), id },
            };
            self.say(damage, Some(&name));
        }
        Ok(())
    }

    /// Checks the state file, and the checkpoints that it names.
    pub(super) fn at_state(&mut self, dir: &Path) -> Result<()> {
        let path = dir.join("state.json");
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            read => read.at("reading", &path)?,
        };
        let state: WorkspaceState = match serde_json::from_slice(&bytes) {
            Ok(state) => state,
            Err(error) => {
                self.say(Damage::Records { what: format!("the state file cannot be read: {error}") }, None);
                return Ok(());
            }
        };
        for (run, detached) in state.detached {
            if owner(&detached.branch) != Some(self.id) || !is_ref_name(&detached.branch) {
                self.say(Damage::OddName { name: detached.branch.clone() }, None);
            }
            for from in detached.points() {
                self.must_be(&format!("the state of run {run}"), from);
            }
        }
        Ok(())
    }

    /// Checks the journal, and the checkpoints that the next steps lead to.
    pub(super) fn at_journal(&mut self, dir: &Path) -> Result<()> {
        let contents = Journal::in_dir(dir).read()?;
        let history = History::of(contents);
        if let Some(what) = history.damage() {
            self.say(Damage::Records { what }, None);
        }
        if let Some(begin) = &history.interrupted {
            self.must_be("the interrupted restore", begin.target);
            self.must_be("the interrupted restore", begin.pre_restore);
        }
        // Retention keeps what the newest operation goes back to. Steps back lead to older ones, which it may have dropped.
        let ledger = Ledger::of_workspace(dir);
        for (step, what) in [(history.undo.last(), "the next undo"), (history.redo.last(), "the next redo")] {
            if let Some(step) = step.filter(|step| ledger.pruned(&step.to).is_none()) {
                self.must_be(what, step.to);
            }
        }
        Ok(())
    }
}
