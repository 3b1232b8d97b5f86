//! The objects that operations of git leave without a name: kept, so that a `git gc` does not make the way back end early.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{KEPT, operations};
use super::operations::{NewGitOperation, RepositoryNow};
use super::states::OperationEdge;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Result};
use crate::git::user_repository::UserRepository;
use crate::model::path::RelPath;
use crate::model::repository::{RefValue, RepositoryState};

/// The largest pack that is kept of one operation, in bytes.
const MAX_PACK: u64 = 32 << 20;

/// The most objects of an operation in progress that are looked at.
const MOST_NAMED: usize = 1000;

/// Returns the commits that the log of a stash names, the oldest first.
pub(super) fn stashes(log: &[u8]) -> impl Iterator<Item = String> {
    let id = |line: &[u8]| {
        let id = line.split(|byte| *byte == b' ').nth(1)?;
        match RefValue::parse(id) {
            Some(RefValue::Object(id)) => Some(id),
            _ => None,
        }
    };
    log.split(|byte| *byte == b'\n').filter_map(id)
}

/// Returns the log of a stash without the entries of some objects. Each line has the object of the one before it, as git writes it.
pub(super) fn without(log: &[u8], gone: &[String]) -> Vec<u8> {
    let (mut kept, mut last) = (Vec::new(), None::<Vec<u8>>);
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (Some(old), Some(new), Some(rest)) = (words.next(), words.next(), words.next()) else { continue };
        if gone.iter().any(|id| id.as_bytes() == new) {
            continue;
        }
        let old = last.unwrap_or_else(|| if kept.is_empty() { vec![b'0'; new.len()] } else { old.to_vec() });
        kept.extend([old.as_slice(), b" ", new, b" ", rest].concat());
        last = Some(new.to_vec());
    }
    kept
}

/// Returns the commits that a state names by its refs.
pub(super) fn named(state: &RepositoryState) -> Vec<String> {
    let object = |value: &RefValue| match value {
        RefValue::Object(id) => Some(id.clone()),
        RefValue::Symbolic(_) => None,
    };
    let ids: BTreeSet<String> = state.refs.values().filter_map(object).collect();
    ids.into_iter().collect()
}

/// Returns the objects that files of an operation in progress name: the commits of a merge, the work that a rebase has put aside. Files
/// that have anything else are passed over.
pub(super) fn named_in(operation: &BTreeMap<RelPath, Vec<u8>>) -> Vec<String> {
    let is_id = |word: &&[u8]| matches!(word.len(), 40 | 64) && word.iter().all(u8::is_ascii_hexdigit);
    let words = |text: &[u8]| -> Option<Vec<String>> {
        let words: Vec<&[u8]> = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        let text = |word: &&[u8]| String::from_utf8_lossy(word).to_lowercase();
        words.iter().all(is_id).then(|| words.iter().map(text).collect())
    };
    let ids: BTreeSet<String> = operation.values().filter_map(|text| words(text)).flatten().collect();
    ids.into_iter().take(MOST_NAMED).collect()
}

/// Returns the objects that one state names and another one does not.
fn left(before: &RepositoryState, now: &RepositoryState) -> Vec<String> {
    let all = |state: &RepositoryState| -> BTreeSet<String> {
        named(state).into_iter().chain(stashes(&state.stash)).chain(named_in(&state.operation)).collect()
    };
    all(before).difference(&all(now)).cloned().collect()
}

impl Timeline {
    /// Keeps the objects that an operation has left without a name. A pack that would be too large is not kept.
    pub(super) fn keep_lost(&mut self, op: u64, edge: OperationEdge, now: &RepositoryNow) -> Result<()> {
        let Some(before) = self.catalog().repository_state(op, OperationEdge::Before)? else { return Ok(()) };
        let state = now.state();
        let ids = left(&before, state);
        let index = before.index.as_deref().filter(|_| before.index != state.index);
        if ids.is_empty() && index.is_none() {
            return Ok(());
        }
        let repository = UserRepository::at(&now.place().dir, &now.place().common);
        // A file of an operation may name what never was there.
        let lacking = repository.lacking(&named_in(&before.operation))?;
        let ids: Vec<String> = ids.into_iter().filter(|id| !lacking.contains(id)).collect();
        // Of an index that git cannot read, nothing is known.
        let staged = index.and_then(|index| repository.staged(index, before.commit()).ok()).unwrap_or_default();
        let all = [ids.as_slice(), &staged].concat();
        let pack_of = |ids: &[String]| repository.pack_of(ids, &named(state), MAX_PACK);
        let pack = match pack_of(&all) {
            Err(error) if error.code() == Code::TooLarge && !staged.is_empty() => pack_of(&ids),
            packed => packed,
        };
        match pack {
            Ok(Some(pack)) => self.lock("git")?.keep_objects(op, edge, &pack),
            Ok(None) => Ok(()),
            // git itself keeps them for some weeks.
            Err(error) => {
                tracing::warn!(%error, op, "objects that a command of git has left without a name are not kept");
                Ok(())
            }
        }
    }

    /// Does the same for operations that are open while another command of git begins, which may remove these objects.
    pub(super) fn keep_lost_of_open(&mut self, new: &NewGitOperation) -> Result<()> {
        let top = &new.before.place().top;
        let known = operations(&self.workspace().dir)?;
        let open = known
            .iter()
            .rev()
            .take(KEPT)
            .filter(|one| one.end.is_none() && !(one.begin.action.is_some() && one.begin.action == new.action));
        for one in open {
            let is_here = one.begin.place().is_ok_and(|place| place == *top);
            if is_here && !self.catalog().has_kept_objects(one.begin.op)? {
                self.keep_lost(one.begin.op, OperationEdge::Before, &new.before)?;
            }
        }
        Ok(())
    }
}
