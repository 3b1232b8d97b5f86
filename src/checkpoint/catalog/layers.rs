//! The private layers of checkpoints: files that ignore rules leave out, secrets, and what an action named.
//!
//! A checkpoint has two parts. The *shared* one is the tree of its commit: git shows it, and a push sends it. The *private* one is a
//! tree of its own in another store (`local.git`), which holds nothing but the private files. The checkpoint's message names it by
//! its sequence. Readers see the *whole* moment: both parts as one tree, put together in memory when somebody asks.
//!
//! A named layer that is gone is *expired*. Its paths count as not looked at, and are never taken for absent.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::open::Catalog;
use crate::error::Result;
use crate::model::build::{self, emit_tree};
use crate::model::checkpoint::Layer;
use crate::model::coverage::{Coverage, Extent};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::manifest::{EntryKind, Manifest, ManifestEntry};
use crate::model::name;
use crate::model::number::Number;
use crate::model::path::RelPath;
use crate::model::tree::{self, Mode, TreeEntry};
use crate::store::{Log, Slice, Store};
use crate::sys::interrupt::Interrupt;
use crate::worktree::PrivatePart;

/// The bytes of trees in memory from which on they are dropped, once nobody works with them.
const ROOM: usize = 8 << 20;

/// The layers that were read.
#[derive(Default)]
pub(super) struct LayerCache {
    /// The roots of layers by their sequence; `None` for expired ones.
    roots: HashMap<u64, Option<ObjectId>>,
    /// The parts by their roots.
    parts: HashMap<ObjectId, Arc<PrivatePart>>,
    /// Objects that the store of private files has to be asked for.
    ids: HashSet<ObjectId>,
    /// Whole trees, by shared and private root.
    wholes: HashMap<(ObjectId, ObjectId), ObjectId>,
    /// The trees that are in no store, by id.
    merged: HashMap<ObjectId, Vec<u8>>,
    /// Bytes of those.
    bytes: usize,
    /// The moments of checkpoints, which hold as long as the listing does.
    pub(super) moments: Moments,
}

/// The private part of a moment, and where it comes from.
#[derive(Debug, Default)]
pub struct CheckpointMoment {
    /// The private files: those of the checkpoint's own layer, and those of other captures.
    pub part: Arc<PrivatePart>,
    /// The root of the tree of those; `None` where there are none.
    pub(super) root: Option<ObjectId>,
    /// The steps that further files come from.
    pub from: BTreeMap<RelPath, Number>,
    /// The files among them that are not private: a step of single paths holds them in its own tree.
    pub(super) shared: BTreeSet<RelPath>,
    /// Files that the checkpoint did not look at, and that a step holds only as they were later.
    pub later: BTreeMap<RelPath, Number>,
}

/// The moments that were put together, as long as the listing of checkpoints holds.
#[derive(Default)]
pub(super) struct Moments {
    /// The number of checkpoints and the newest of them, when these were put together.
    pub(super) of: (usize, Option<ObjectId>),
    /// The checkpoints before later actions, by the places in the sequence of those that they follow: their places in the listing.
    pub(super) followers: Option<HashMap<u64, Vec<usize>>>,
    /// By the id of the checkpoint.
    pub(super) known: HashMap<ObjectId, Arc<CheckpointMoment>>,
}

impl Catalog {
    /// Returns the store of private files; it is made when it does not exist.
    ///
    /// # Errors
    /// As [`Store::open_local`].
    pub(crate) fn local(&self) -> Result<&Store> {
        if let Some(store) = self.local.get() {
            return Ok(store);
        }
        let store = Store::open_local(self.home.path())?;
        Ok(self.local.get_or_init(|| store))
    }

    /// Returns the store of private files, if there is one.
    ///
    /// # Errors
    /// As [`Store::open_local`].
    pub(crate) fn local_if_any(&self) -> Result<Option<&Store>> {
        if self.local.get().is_none() && !Store::has_local(self.home.path()) {
            return Ok(None);
        }
        self.local().map(Some)
    }

    /// Returns the prefix of the refs that keep this workspace's layers.
    pub(crate) fn layer_prefix(&self) -> String {
        format!("refs/piton/{}/local/", self.workspace.id)
    }

    /// Works on the log of private files, which is opened if it is not yet.
    ///
    /// # Errors
    /// Returns the errors of the log and of `work`.
    pub(crate) fn with_local_log<T>(&self, work: impl FnOnce(&mut Log) -> Result<T>) -> Result<T> {
        let mut log = self.local_log.borrow_mut();
        let open = match log.take().filter(Log::is_current) {
            Some(open) => open,
            None => Log::open(&self.workspace.dir.join(self.local()?.log_name()))?,
        };
        work(log.insert(open))
    }

    /// Makes the private layers of the log durable elsewhere, unless that is shorter than so many bytes.
    ///
    /// # Errors
    /// As [`Store::flush`].
    pub(crate) fn flush_local(&self, least: u64) -> Result<()> {
        let Some(store) = self.local_if_any()? else { return Ok(()) };
        let log = self.workspace.dir.join(store.log_name());
        if !log.metadata().is_ok_and(|facts| facts.len() > least) {
            return self.sync_late();
        }
        self.with_local_log(|log| store.flush(log))
    }

    /// Notices new and removed packs of private files.
    ///
    /// # Errors
    /// As [`Store::renew`].
    pub(crate) fn renew_local(&mut self) -> Result<()> {
        self.local.get_mut().map_or(Ok(()), Store::renew)
    }

    /// Compresses private files that were left uncompressed, as much as `slice` allows.
    ///
    /// # Errors
    /// As [`Store::recompress`].
    pub(crate) fn recompress_local(&mut self, slice: Slice, control: Interrupt<'_>) -> Result<()> {
        match self.local.get_mut() {
            Some(local) => local.recompress(slice, control).map(drop),
            None => Ok(()),
        }
    }

    /// Returns the stores that are open: the shared one, and that of private files if it is.
    fn open_stores(&self) -> impl Iterator<Item = &Store> {
        std::iter::once(&self.store).chain(self.local.get())
    }

    /// Makes files for the next checkpoint in both stores, in the idle time of a long-lived process.
    pub(crate) fn prepare(&self) {
        self.open_stores().for_each(Store::prepare);
    }

    /// Closes files of both stores, in the idle time of a long-lived process.
    pub(crate) fn close(&self) {
        self.open_stores().for_each(Store::close);
    }

    /// Completes the private layer of a killed process, and forgets what was read of layers. The caller has taken the workspace's
    /// lock, and another process may have had it.
    pub(super) fn renew_layers(&self) -> Result<()> {
        *self.local_log.borrow_mut() = None;
        self.forget_layers();
        let Some(store) = self.local_if_any()? else { return Ok(()) };
        store.complete(&self.workspace.dir.join(store.log_name()))
    }

    /// Forgets what was read of layers.
    pub(crate) fn forget_layers(&self) {
        *self.layers.borrow_mut() = LayerCache::default();
    }

    /// Makes room: trees that were put together are dropped where they are many. Their ids are not valid any more.
    pub(crate) fn trim_layers(&self) {
        let mut layers = self.layers.borrow_mut();
        if layers.bytes > ROOM {
            *layers = LayerCache::default();
        }
    }

    /// Notes the layer of a new checkpoint.
    pub(crate) fn note_layer(&self, sequence: u64, root: ObjectId) {
        self.layers.borrow_mut().roots.insert(sequence, Some(root));
    }

    /// Returns the root of the private part of a checkpoint; `None` where it has none, or that is expired.
    ///
    /// # Errors
    /// When the store of private files cannot be read.
    pub(crate) fn layer_root(&self, checkpoint: &Checkpoint) -> Result<Option<ObjectId>> {
        let Some(Layer::Sequence(sequence)) = checkpoint.record.layer else { return Ok(None) };
        // A layer of another machine is not here, whatever its number.
        if self.is_foreign(checkpoint) {
            return Ok(None);
        }
        if let Some(root) = self.layers.borrow().roots.get(&sequence) {
            return Ok(*root);
        }
        let root = match self.local_if_any()? {
            None => None,
            Some(store) => {
                let name = format!("{}{sequence}", self.layer_prefix());
                let commit = store.target_of(&name)?;
                // A layer whose commit is damaged counts as expired: the shared part is of use all the same.
                commit.and_then(|commit| store.read_commit(&commit).ok()).map(|commit| commit.tree)
            }
        };
        self.layers.borrow_mut().roots.insert(sequence, root);
        Ok(root)
    }

    /// Returns true if a checkpoint names a private layer that is gone.
    ///
    /// # Errors
    /// When the store of private files cannot be read.
    pub fn is_layer_expired(&self, checkpoint: &Checkpoint) -> Result<bool> {
        let names = matches!(checkpoint.record.layer, Some(Layer::Sequence(_))) && !self.is_foreign(checkpoint);
        Ok(names && self.layer_root(checkpoint)?.is_none())
    }

    /// Returns the private part of a checkpoint's own capture; an empty one where there is none.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn own_part(&self, checkpoint: &Checkpoint) -> Result<Arc<PrivatePart>> {
        match self.layer_root(checkpoint)? {
            Some(root) => self.layer_of(&root),
            None => Ok(Arc::default()),
        }
    }

    /// Returns the private part with a root.
    fn layer_of(&self, root: &ObjectId) -> Result<Arc<PrivatePart>> {
        if let Some(part) = self.layers.borrow().parts.get(root) {
            return Ok(Arc::clone(part));
        }
        let store = self.local()?;
        let memory = self.memory();
        let ids = std::cell::RefCell::new(HashSet::from([*root]));
        let read_tree = |id: &ObjectId| {
            let entries = store.read_tree_within(id, super::bounds::tree_bound(memory))?;
            ids.borrow_mut().extend(entries.iter().map(|entry| entry.id));
            Ok(entries)
        };
        let read_blob = |id: &ObjectId| store.read_blob_within(id, memory);
        let (manifest, coverage) = build::load(root, &|_| true, memory, &read_tree, &read_blob)?;
        let part = Arc::new(PrivatePart { manifest, coverage });
        let mut layers = self.layers.borrow_mut();
        layers.ids.extend(ids.into_inner());
        layers.parts.insert(*root, Arc::clone(&part));
        Ok(part)
    }

    /// Returns the store that has an object of a checkpoint.
    pub(crate) fn store_of(&self, id: &ObjectId) -> &Store {
        let is_private = self.layers.borrow().ids.contains(id);
        self.local.get().filter(|_| is_private).unwrap_or(&self.store)
    }

    /// Returns the length of a blob of a checkpoint.
    ///
    /// # Errors
    /// `store-damaged` when it is missing.
    pub fn blob_size(&self, id: &ObjectId) -> Result<u64> {
        self.store_of(id).blob_size(id)
    }

    /// Writes the bytes of a blob of a checkpoint to `out`, and returns their number.
    ///
    /// # Errors
    /// `store-damaged`; errors of writing.
    pub fn copy_blob(&self, id: &ObjectId, out: &mut dyn std::io::Write) -> Result<u64> {
        self.store_of(id).copy_blob(id, out)
    }

    /// Returns the epoch of what captures take for stored: of both stores.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn epoch(&self) -> Result<String> {
        let shared = self.store.epoch()?;
        Ok(match Store::local_epoch(self.home.path())? {
            Some(local) => format!("{shared}+{local}"),
            None => shared,
        })
    }

    /// Returns the objects that the store of private files has to be asked for.
    pub(crate) fn private_ids(&self) -> HashSet<ObjectId> {
        self.layers.borrow().ids.clone()
    }

    /// Returns the content of a tree that was put together in memory.
    pub(super) fn merged_tree(&self, id: &ObjectId) -> Option<Vec<u8>> {
        self.layers.borrow().merged.get(id).cloned()
    }

    /// Returns the tree of a narrowed checkpoint together with what it leaves out, which a base capture of the same moment holds.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn with_rest(&self, narrowed: &Checkpoint, beside: &Checkpoint) -> Result<ObjectId> {
        self.merge(Some(self.whole(beside)?), narrowed.tree, true, &HashMap::new())
    }

    /// Returns a tree with the files of a part that is in no store.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn with_part(&self, root: ObjectId, part: PrivatePart) -> Result<ObjectId> {
        match self.keep_part(part)? {
            Some(part) => self.merge(Some(root), part, true, &HashMap::new()),
            None => Ok(root),
        }
    }

    /// Keeps a part that is in no store, and returns the root of its tree.
    pub(super) fn keep_part(&self, part: PrivatePart) -> Result<Option<ObjectId>> {
        let root = part.build(&mut |kind, id, bytes| {
            if kind == ObjectKind::Tree {
                self.keep_tree(id, bytes);
            }
            Ok(())
        })?;
        if let Some(root) = root {
            self.layers.borrow_mut().parts.insert(root, Arc::new(part));
        }
        Ok(root)
    }

    fn keep_tree(&self, id: ObjectId, bytes: &[u8]) {
        let mut layers = self.layers.borrow_mut();
        if layers.merged.insert(id, bytes.to_vec()).is_none() {
            layers.bytes += bytes.len();
        }
    }

    /// Returns both parts as one tree: both are stored.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn whole_of(&self, shared: ObjectId, private: ObjectId) -> Result<ObjectId> {
        self.layer_of(&private)?;
        self.together(shared, private, &HashMap::new())
    }

    /// Returns both parts as one tree. `fresh` has trees that are in no store.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn together(
        &self,
        shared: ObjectId,
        private: ObjectId,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<ObjectId> {
        if let Some(whole) = self.layers.borrow().wholes.get(&(shared, private)) {
            return Ok(*whole);
        }
        let whole = self.merge(Some(shared), private, true, fresh)?;
        self.layers.borrow_mut().wholes.insert((shared, private), whole);
        Ok(whole)
    }

    fn merge(
        &self,
        shared: Option<ObjectId>,
        private: ObjectId,
        is_root: bool,
        fresh: &HashMap<ObjectId, Vec<u8>>,
    ) -> Result<ObjectId> {
        let read = |id: &ObjectId| match fresh.get(id) {
            Some(bytes) => tree::decode(bytes),
            None => self.read_tree(id),
        };
        let mut entries: HashMap<Vec<u8>, TreeEntry> = HashMap::new();
        for entry in shared.map_or_else(|| Ok(Vec::new()), |id| read(&id))? {
            entries.insert(entry.name.clone(), entry);
        }
        for entry in read(&private)? {
            if is_root && entry.name == name::RESERVED_ROOT {
                continue;
            }
            let mut entry = entry;
            if entry.mode == Mode::Dir {
                let below = entries.get(&entry.name).filter(|shared| shared.mode == Mode::Dir).map(|shared| shared.id);
                if below.is_some() {
                    entry.id = self.merge(below, entry.id, false, fresh)?;
                }
            }
            entries.insert(entry.name.clone(), entry);
        }
        emit_tree(entries.into_values().collect(), &mut |_: ObjectKind, id, bytes| {
            self.keep_tree(id, bytes);
            Ok(())
        })
    }

    /// Loads the manifest and coverage of a checkpoint, with a private part.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(super) fn contents_with(&self, checkpoint: &Checkpoint, private: &PrivatePart) -> Result<(Manifest, Coverage)> {
        let (manifest, coverage) = self.load(&checkpoint.tree, &|_| true)?;
        let looked = self.looked_for_private(checkpoint)?;
        Ok((joined(manifest, &private.manifest), covered(coverage, private, looked)))
    }

    /// Loads the coverage of a checkpoint's own capture, of both parts.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(crate) fn own_coverage(&self, checkpoint: &Checkpoint) -> Result<Coverage> {
        self.coverage_with(checkpoint, &*self.own_part(checkpoint)?)
    }

    /// Loads the coverage of a checkpoint, with a private part.
    ///
    /// # Errors
    /// `store-damaged`.
    pub(super) fn coverage_with(&self, checkpoint: &Checkpoint, private: &PrivatePart) -> Result<Coverage> {
        let coverage = self.coverage(&checkpoint.tree)?;
        Ok(covered(coverage, private, self.looked_for_private(checkpoint)?))
    }

    /// Returns true if a checkpoint looked for private files, so that one that it does not hold was not there.
    fn looked_for_private(&self, checkpoint: &Checkpoint) -> Result<bool> {
        Ok(match checkpoint.record.layer {
            None => false,
            Some(Layer::None) => checkpoint.record.looked_everywhere(),
            Some(Layer::Sequence(_)) => checkpoint.record.looked_everywhere() && self.layer_root(checkpoint)?.is_some(),
        })
    }

    /// Deletes refs of layers, each of which is at a commit.
    ///
    /// # Errors
    /// Returns the errors of writing.
    pub(crate) fn drop_layers(&self, refs: &[(String, ObjectId)]) -> Result<()> {
        let Some(store) = self.local_if_any()?.filter(|_| !refs.is_empty()) else { return Ok(()) };
        // Before the refs go: a record must not bring one back.
        self.with_local_log(|log| store.flush(log))?;
        store.delete_refs(refs)?;
        self.forget_layers();
        Ok(())
    }
}

/// Returns the paths of both parts. Where a path is in both, the private one counts. Only a directory's permissions are those of the
/// shared part: a private one has them if no other part has the directory.
pub(crate) fn joined(shared: Manifest, private: &Manifest) -> Manifest {
    if private.is_empty() {
        return shared;
    }
    let mut all = shared;
    for (path, entry) in private.iter() {
        let is_dir = |entry: &ManifestEntry| entry.kind == EntryKind::Dir;
        if is_dir(entry) && all.get(path).is_some_and(is_dir) {
            continue;
        }
        all.insert(path.clone(), *entry);
    }
    all
}

/// Returns the coverage of both parts; `looked` tells whether private files were looked for.
pub(crate) fn covered(mut shared: Coverage, private: &PrivatePart, looked: bool) -> Coverage {
    shared.private = looked && private.coverage.extent == Extent::Tree;
    shared.skipped.retain(|path, _| !private.manifest.contains(path));
    shared.skipped.extend(private.coverage.skipped.iter().map(|(path, why)| (path.clone(), *why)));
    if !private.coverage.targeted.is_empty() {
        shared.targeted.extend(private.coverage.targeted.iter().cloned());
        shared.targeted.sort_unstable();
    }
    if !private.coverage.unstable.is_empty() {
        shared.unstable.extend(private.coverage.unstable.iter().cloned());
        shared.unstable.sort_unstable();
    }
    shared
}
