//! States of repositories in the store of private files.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::checkpoint::catalog::open::{Catalog, RecentState};
use crate::checkpoint::locked::Locked;
use crate::checkpoint::records::lock::LOCK_WAIT;
use crate::checkpoint::repository::log::LoggedOperation;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::meta::{quote, unquote};
use crate::model::path::RelPath;
use crate::model::policy::Durability;
use crate::model::repository::RepositoryState;
use crate::model::sink::ObjectSink;
use crate::model::tree::{self, Mode, TreeEntry};
use crate::store::{Batch, Landing, NewCommit, Store};
use crate::sys::clock::now_ms;

/// The names of the parts of a state.
const REFS: &[u8] = b"refs";
const INDEX: &[u8] = b"index";
const STASH: &[u8] = b"stash";
const OPERATION: &[u8] = b"operation";

const OBJECTS: &[u8] = b"objects";

/// The largest part that is read, in bytes.
const MAX_PART: u64 = 256 << 20;

/// The largest index that stays in memory, in bytes.
const MOST_RECENT: usize = 16 << 20;

/// A moment of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationEdge {
    /// Before it.
    Before,
    /// After it.
    After,
}

/// Both moments.
const EDGES: [OperationEdge; 2] = [OperationEdge::Before, OperationEdge::After];

/// Returns the number of a moment of an operation.
fn number(op: u64, edge: OperationEdge) -> u64 {
    op * 2 + u64::from(edge == OperationEdge::After)
}

impl Catalog {
    /// Returns the name of the ref of a state.
    pub(super) fn state_ref(&self, op: u64, edge: OperationEdge) -> String {
        format!("refs/piton/{}/git/{}", self.workspace.id, number(op, edge))
    }

    /// Returns the name of the ref of a state at checkpoints.
    pub(super) fn noted_ref(&self, state: u64) -> String {
        format!("refs/piton/{}/git/at-{state}", self.workspace.id)
    }

    /// Returns the state at an operation; `None` where it is not kept.
    ///
    /// # Errors
    /// As [`Catalog::kept_state`].
    pub(super) fn repository_state(&self, op: u64, edge: OperationEdge) -> Result<Option<Arc<RepositoryState>>> {
        self.kept_state(&self.state_ref(op, edge), true)
    }

    /// Returns the state after an operation, with the index; `None` where it is not known.
    ///
    /// # Errors
    /// As [`Catalog::kept_state`].
    pub(crate) fn state_after(&self, operation: &LoggedOperation) -> Result<Option<Arc<RepositoryState>>> {
        // The state of one that has moved nothing is the one before it.
        let Some(end) = &operation.end else { return Ok(None) };
        let edge = if end.moved { OperationEdge::After } else { OperationEdge::Before };
        self.repository_state(operation.begin.op, edge)
    }

    /// Returns true if HEAD leads to another commit after an operation; `None` where that is not known.
    ///
    /// # Errors
    /// As [`Catalog::kept_state`].
    pub(crate) fn has_moved_head(&self, op: u64) -> Result<Option<bool>> {
        let [before, after] = [OperationEdge::Before, OperationEdge::After].map(|edge| self.state_ref(op, edge));
        let (before, after) = (self.kept_state(&before, false)?, self.kept_state(&after, false)?);
        Ok(before.zip(after).map(|(before, after)| before.head_commit() != after.head_commit()))
    }

    /// Returns the state under a ref; `None` where it is not kept. The index, which may be large, is left out unless it is asked for.
    ///
    /// # Errors
    /// `store-damaged`; errors of reading.
    pub(super) fn kept_state(&self, name: &str, index: bool) -> Result<Option<Arc<RepositoryState>>> {
        let Some(store) = self.local_if_any()? else { return Ok(None) };
        let Some(commit) = store.target_of(name)? else { return Ok(None) };
        if let Some(recent) = self.recent_state.borrow().as_ref().filter(|recent| recent.commit == commit) {
            return Ok(Some(Arc::clone(&recent.state)));
        }
        let mut state = RepositoryState::default();
        for entry in store.read_tree_within(&store.read_commit(&commit)?.tree, MAX_PART)? {
            let blob = |id: &ObjectId| store.read_blob_within(id, MAX_PART);
            match entry.name.as_slice() {
                REFS => state.refs = RepositoryState::decoded_refs(&blob(&entry.id)?)?,
                INDEX if !index => {}
                INDEX => state.index = Some(blob(&entry.id)?),
                STASH => state.stash = blob(&entry.id)?,
                OPERATION => state.operation = operation(store, &entry.id)?,
                _ => return Err(Error::new(Code::StoreDamaged, "a saved state of a repository has an unknown part")),
            }
        }
        Ok(Some(Arc::new(state)))
    }

    /// Returns the blob of the index that was kept last, if it is this one: a large index is seldom another one.
    fn recent_index(&self, index: &[u8]) -> Option<ObjectId> {
        let recent = self.recent_state.borrow();
        recent.as_ref().filter(|recent| recent.state.index.as_deref() == Some(index)).and_then(|recent| recent.index)
    }

    /// Returns the name of the ref of the objects that an operation has left without a name, as they were found while it was open,
    /// or at its end.
    fn objects_ref(&self, op: u64, edge: OperationEdge) -> String {
        format!("refs/piton/{}/git/objects-{}", self.workspace.id, number(op, edge))
    }

    /// Returns the packs of the objects that an operation has left without a name.
    ///
    /// # Errors
    /// `store-damaged`; errors of reading.
    pub(super) fn kept_objects(&self, op: u64) -> Result<Vec<Vec<u8>>> {
        let mut packs = Vec::new();
        let Some(store) = self.local_if_any()? else { return Ok(packs) };
        for edge in EDGES {
            let Some(commit) = store.target_of(&self.objects_ref(op, edge))? else { continue };
            let entries = store.read_tree_within(&store.read_commit(&commit)?.tree, MAX_PART)?;
            if let Some(pack) = entries.into_iter().find(|entry| entry.name == OBJECTS) {
                packs.push(store.read_blob_within(&pack.id, MAX_PART)?);
            }
        }
        Ok(packs)
    }

    /// Returns true if objects of an open operation are kept.
    ///
    /// # Errors
    /// Returns the errors of reading.
    pub(super) fn has_kept_objects(&self, op: u64) -> Result<bool> {
        let Some(store) = self.local_if_any()? else { return Ok(false) };
        Ok(store.target_of(&self.objects_ref(op, OperationEdge::Before))?.is_some())
    }

    /// Deletes the states of operations.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(super) fn drop_states(&self, ops: impl Iterator<Item = u64>) -> Result<()> {
        let names = |(op, edge)| [self.state_ref(op, edge), self.objects_ref(op, edge)];
        self.drop_kept(ops.flat_map(|op| EDGES.map(|edge| (op, edge))).flat_map(names))
    }

    /// Deletes refs of states and objects, if they are there.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(super) fn drop_kept(&self, names: impl Iterator<Item = String>) -> Result<()> {
        let Some(store) = self.local_if_any()? else { return Ok(()) };
        let mut refs = Vec::new();
        for name in names {
            refs.extend(store.target_of(&name)?.map(|target| (name, target)));
        }
        self.drop_layers(&refs)
    }
}

fn operation(store: &Store, id: &ObjectId) -> Result<BTreeMap<RelPath, Vec<u8>>> {
    let read = |entry: TreeEntry| {
        let name = std::str::from_utf8(&entry.name).unwrap_or_default();
        Ok((RelPath::parse(&unquote(name)?)?, store.read_blob_within(&entry.id, MAX_PART)?))
    };
    store.read_tree_within(id, MAX_PART)?.into_iter().map(read).collect()
}

impl Locked<'_> {
    /// Keeps the state at an operation. It outlives a power cut if it is `synced`.
    pub(super) fn keep_state(
        &self,
        (op, edge): (u64, OperationEdge),
        state: &Arc<RepositoryState>,
        synced: bool,
    ) -> Result<()> {
        let message = format!("the repository at g-{op}, {edge:?}\n");
        self.keep_state_as((&self.catalog.state_ref(op, edge), &message), state, synced)
    }

    /// Keeps a state under a ref, with a message for it.
    pub(super) fn keep_state_as(&self, named: (&str, &str), state: &Arc<RepositoryState>, synced: bool) -> Result<()> {
        let catalog = &*self.catalog;
        // Held until the ref has moved: no object that counts as "already there" may be deleted before.
        let _shared = catalog.store.lock_shared("git", LOCK_WAIT)?;
        let store = catalog.local()?;
        let batch = store.batch()?;
        let mut entries = vec![blob(&batch, REFS, &state.encoded_refs())?];
        let mut index = None;
        if let Some(bytes) = &state.index {
            let known = catalog.recent_index(bytes);
            let id = match known.filter(|id| batch.contains(id).unwrap_or_default()) {
                Some(id) => id,
                None => put(&batch, ObjectKind::Blob, bytes)?,
            };
            entries.push(TreeEntry { name: INDEX.to_vec(), mode: Mode::File, id });
            index = Some(id);
        }
        if !state.stash.is_empty() {
            entries.push(blob(&batch, STASH, &state.stash)?);
        }
        if !state.operation.is_empty() {
            let files = state.operation.iter().map(|(path, bytes)| {
                let name = quote(path.as_bytes()).replace('/', "%2F");
                blob(&batch, name.as_bytes(), bytes)
            });
            let id = put(&batch, ObjectKind::Tree, &tree::encode(files.collect::<Result<_>>()?))?;
            entries.push(TreeEntry { name: OPERATION.to_vec(), mode: Mode::Dir, id });
        }
        let commit = self.land_part(batch, entries, named, synced)?;
        let state = Some(state).filter(|state| state.index.as_ref().is_none_or(|index| index.len() <= MOST_RECENT));
        *catalog.recent_state.borrow_mut() = state.map(|state| RecentState { commit, state: Arc::clone(state), index });
        Ok(())
    }

    /// Keeps the pack of the objects that an operation has left without a name.
    pub(super) fn keep_objects(&self, op: u64, edge: OperationEdge, pack: &[u8]) -> Result<()> {
        let catalog = &*self.catalog;
        let _shared = catalog.store.lock_shared("git", LOCK_WAIT)?;
        let batch = catalog.local()?.batch()?;
        let entries = vec![blob(&batch, OBJECTS, pack)?];
        let message = format!("the objects that g-{op} has left without a name\n");
        let synced = catalog.policy.durability == Durability::Power;
        self.land_part(batch, entries, (&catalog.objects_ref(op, edge), &message), synced).map(drop)
    }

    /// Moves a ref to a new commit of some entries, and returns that.
    fn land_part(
        &self,
        batch: Batch<'_>,
        entries: Vec<TreeEntry>,
        (name, message): (&str, &str),
        synced: bool,
    ) -> Result<ObjectId> {
        let (catalog, store) = (&*self.catalog, self.catalog.local()?);
        let tree = put(&batch, ObjectKind::Tree, &tree::encode(entries))?;
        let new = batch.put_commit(&NewCommit { tree, parents: &[], message, time_ms: now_ms() })?;
        let expect = store.target_of(name)?;
        let landing = |log: &mut _| batch.land(store, Landing { log, name, expect, new, synced });
        let stats = catalog.with_local_log(landing)?;
        catalog.stored.set(catalog.stored.get() + stats.bytes);
        Ok(new)
    }
}

fn blob(batch: &Batch<'_>, name: &[u8], bytes: &[u8]) -> Result<TreeEntry> {
    Ok(TreeEntry { name: name.to_vec(), mode: Mode::File, id: put(batch, ObjectKind::Blob, bytes)? })
}

fn put(batch: &Batch<'_>, kind: ObjectKind, bytes: &[u8]) -> Result<ObjectId> {
    let id = ObjectId::of(kind, bytes)?;
    if !batch.contains(&id)? {
        batch.write(kind, id, bytes)?;
    }
    Ok(id)
}
