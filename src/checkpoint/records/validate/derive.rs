//! Derives the place of a lost ref from the commits in the store.

use std::collections::{BTreeSet, HashSet};

use super::{Damage, Repair};
use crate::error::Result;
use crate::model::checkpoint::Record;
use crate::model::id::ObjectId;
use crate::store::Store;

/// All checkpoints in the store, named or not; read when they are first asked for.
#[derive(Default)]
pub(super) struct StoredCommits(Option<Vec<StoredCommit>>);

struct StoredCommit {
    id: ObjectId,
    parents: Vec<ObjectId>,
    record: Record,
}

impl StoredCommits {
    /// Returns the repair of a damage, if there is only one answer. `broken` are the refs that cannot be read.
    ///
    /// # Errors
    /// When the store cannot be listed.
    pub(super) fn repair(
        &mut self,
        store: &Store,
        workspace: &str,
        damage: &Damage,
        broken: &BTreeSet<String>,
    ) -> Result<Option<Repair>> {
        Ok(match damage {
            Damage::TornRef { name, .. } | Damage::NoCommit { name, .. } => {
                let found = self.all(store)?;
                let to = leaf(found, workspace, name).or_else(|| tip(found, store, workspace, name));
                to.map(|to| Repair { name: name.clone(), to })
            }
            Damage::NotFromLog { name, id } | Damage::Unmoved { name, id } if store.read_commit(id).is_ok() => {
                Some(Repair { name: name.clone(), to: *id })
            }
            Damage::Unnamed { id, .. } => name_of(store, workspace, *id, broken)?.map(|name| Repair { name, to: *id }),
            _ => None,
        })
    }

    fn all(&mut self, store: &Store) -> Result<&[StoredCommit]> {
        if self.0.is_none() {
            let mut all = Vec::new();
            for id in store.commits()? {
                // An object that cannot be read is not a candidate.
                if let Ok(commit) = store.read_commit(&id)
                    && let Some(record) = Record::parse(&commit.message)
                {
                    all.push(StoredCommit { id, parents: commit.parents, record });
                }
            }
            self.0 = Some(all);
        }
        Ok(self.0.as_deref().unwrap_or_default())
    }
}

fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    found.next().filter(|_| found.next().is_none())
}

/// Returns the checkpoint of the kind and number that a leaf's name says.
fn leaf(all: &[StoredCommit], workspace: &str, name: &str) -> Option<ObjectId> {
    let rest = name.strip_prefix(&format!("refs/piton/{workspace}/"))?;
    let is_it = |found: &&StoredCommit| {
        found.record.workspace == workspace
            && !found.record.kind.is_typed()
            && rest == format!("{}/{}", found.record.kind.as_str(), found.record.ordinal)
    };
    only(all.iter().filter(is_it)).map(|found| found.id)
}

/// Returns the end of a run that has this one branch.
fn tip(all: &[StoredCommit], store: &Store, workspace: &str, name: &str) -> Option<ObjectId> {
    let run = name.strip_prefix(&format!("refs/heads/{workspace}/"))?;
    let branches = store.refs(&format!("{name}.")).ok()?;
    let of_run = || {
        all.iter().filter(|it| it.record.workspace == workspace && it.record.kind.is_typed() && it.record.run == run)
    };
    let gone_on: HashSet<ObjectId> = of_run().flat_map(|found| found.parents.iter().copied()).collect();
    only(of_run().filter(|found| !gone_on.contains(&found.id))).map(|found| found.id).filter(|_| branches.is_empty())
}

/// Returns a free name for a checkpoint that has none: its own, or for one of a run the run's next branch.
fn name_of(store: &Store, workspace: &str, id: ObjectId, broken: &BTreeSet<String>) -> Result<Option<String>> {
    let Some(record) = store.read_commit(&id).ok().and_then(|commit| Record::parse(&commit.message)) else {
        return Ok(None);
    };
    if record.workspace != workspace {
        return Ok(None);
    }
    let taken = |name: &str| store.refs(name).map(|refs| refs.iter().any(|entry| *entry.name == *name));
    if !record.kind.is_typed() {
        let name = format!("refs/piton/{workspace}/{}/{}", record.kind.as_str(), record.ordinal);
        return Ok(Some(name.clone()).filter(|_| taken(&name).is_ok_and(|taken| !taken)));
    }
    let first = format!("refs/heads/{workspace}/{}", record.run);
    if broken.contains(&first) {
        // The broken one is repaired first, and may name this checkpoint.
        return Ok(None);
    }
    let later = (2u32..100).map(|n| format!("{first}.{n}"));
    for name in std::iter::once(first.clone()).chain(later) {
        if !taken(&name)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
