//! The objects that operations of git leave without a name: kept, so that a `git gc` does not make the way back end early.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{KEPT, operations};
use super::operations::{NewGitOperation, RepositoryNow};
use super::plan::{
    GONE, INDEX, IndexEntries, KeptPart, LOST, RepositoryPlan, WITHOUT_INDEX, keep_without_objects, object,
};
use super::states::OperationEdge;
use crate::checkpoint::timeline::Timeline;
use crate::error::{Code, Result};
use crate::git::user_objects::{ObjectsAside, contents};
use crate::git::user_repository::UserRepository;
use crate::model::path::RelPath;
use crate::model::repository::{RefValue, RepositoryState, STASH};

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
                tracing::warn!(%error, op, "could not save objects that a git command left unreferenced");
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

impl Timeline {
    /// Returns the packs that restore the objects that the plan needs and git has removed. Parts whose objects no pack contains are
    /// kept as they are. The packs of operations older than `since` are not needed.
    pub(super) fn objects_back(
        &self,
        since: u64,
        before: &RepositoryState,
        plan: &mut RepositoryPlan,
        found: &RepositoryNow,
        index: Option<&IndexEntries>,
    ) -> Result<Vec<Vec<u8>>> {
        let (repository, now) = (found.repository(), found.state());
        let mut commits: Vec<String> = plan.refs.iter().filter_map(object).collect();
        commits.extend(plan.stash.iter().flat_map(|log| stashes(log)));
        let index = index.filter(|_| plan.index);
        let staged = index.map(|index| contents(&index.before)).unwrap_or_default();
        let named = named(now);
        let of_operation = if plan.operation.is_empty() { Vec::new() } else { named_in(&before.operation) };
        let lost = |repository: &UserRepository| -> Result<(Vec<String>, bool, bool)> {
            let lacks = |ids: &[String]| repository.lacking(ids).map(|lacking| !lacking.is_empty());
            Ok((repository.torn(&commits, &named)?, lacks(&staged)?, lacks(&of_operation)?))
        };
        let (mut torn, mut is_index_lost, mut is_operation_lost) = lost(&repository)?;
        let mut packs = Vec::new();
        if !torn.is_empty() || is_index_lost || is_operation_lost {
            // A later one may have left without a name what this one leads to.
            for one in self.git_operations()?.into_iter().filter(|one| one.begin.op >= since) {
                packs.extend(self.catalog().kept_objects(one.begin.op)?);
            }
            if !packs.is_empty() {
                let aside = ObjectsAside::new()?;
                let beside = repository.with_aside(aside.path());
                packs.iter().try_for_each(|pack| beside.unpack(pack))?;
                (torn, is_index_lost, is_operation_lost) = lost(&beside)?;
            }
        }
        keep_without_objects(plan, &torn);
        // Without its lost entries, the list may be the present one.
        plan.stash.take_if(|log| *log == now.stash && !plan.refs.iter().any(|one| one.name == STASH));
        if is_operation_lost {
            plan.keep_operation(GONE);
        }
        if is_index_lost {
            // git could neither commit nor stash with it.
            plan.index = false;
            plan.kept.push(KeptPart { what: INDEX.to_owned(), why: LOST.to_owned() });
            plan.keep_operation(WITHOUT_INDEX);
        }
        Ok(packs)
    }
}
