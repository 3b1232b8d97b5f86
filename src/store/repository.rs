//! The store as one thread has it open: its paths, its caches, and its queries.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::commit::Commit;
use super::damage::damaged;
use super::layout;
use super::objects::Objects;
use super::pack_files::StorePaths;
use super::packed_refs::PackedCache;
use super::patch::{self, FilePatch};
use super::ready::Ready;
use super::recompression::Recompression;
use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::sys::fs::lock::{FileLock, Mode};
use crate::sys::progress::Progress;

/// The most bytes of a commit that is read: piton's own take a few hundred.
const LARGEST_COMMIT: u64 = 4 << 20;

/// The most matches of a prefix search.
const MAX_MATCHES: usize = 50;

/// The expected bytes of a batch from which on its objects are not compressed yet.
pub(super) const LIGHT_FROM: u64 = 32 << 20;

/// The same for a long-lived process, which compresses them in its idle time.
pub(super) const LIGHT_SOON: u64 = 4 << 20;

/// The length from which on a batch begins another pack. Its last object may lead beyond it.
pub(super) const PACK_FULL: u64 = 32 << 20;

/// The store. Belongs to one thread; batches may be used from several.
pub struct Store {
    pub(super) objects: Objects,
    /// piton's directory, in which the store's locks and marks are.
    pub(super) home: PathBuf,
    /// The bare repository in it.
    pub(super) git_dir: PathBuf,
    /// A light pack that is being compressed, with the locks that keeps.
    pub(super) recompressing: Option<Box<Recompression>>,
    /// The size from which on a batch is not compressed yet.
    pub(super) light_from: u64,
    /// The length from which on a batch begins another pack.
    pub(super) pack_full: u64,
    /// Light packs that are damaged.
    pub(super) refused: Vec<String>,
    /// Files without names, made ahead for loose objects.
    pub(super) ready: Ready,
    /// The packed refs as they were read last.
    pub(super) packed: PackedCache,
    /// The names of its files in piton's directory.
    pub(super) names: &'static StoreNames,
    /// Counts the objects of long work.
    pub(super) progress: Progress,
}

/// The names of a store's files in piton's directory. Both stores share the locks.
pub(super) struct StoreNames {
    /// The bare repository.
    pub(super) repository: &'static str,
    /// The log of a workspace, among its records.
    pub(super) log: &'static str,
    /// The boot id of the last recovery.
    pub(super) boot: &'static str,
    /// The marks of workspaces that write without syncing.
    pub(super) lazy: &'static str,
    /// The list of packs that another one replaces.
    pub(super) superseded: &'static str,
}

/// The store of the checkpoints.
pub(super) const SHARED: StoreNames =
    StoreNames { repository: "store.git", log: "log", boot: "boot", lazy: "lazy", superseded: "superseded" };

/// The store of private files.
pub(super) const LOCAL: StoreNames = StoreNames {
    repository: "local.git",
    log: "local-log",
    boot: "local-boot",
    lazy: "local-lazy",
    superseded: "local-superseded",
};

impl Store {
    /// Opens the store below `home`, makes it when it does not exist, and writes damaged derived files anew.
    ///
    /// # Errors
    /// `store-damaged` for a store that a newer piton made; `permission`, `disk-full`.
    pub fn open(home: &Path) -> Result<Store> {
        Store::open_as(home, &SHARED)
    }

    /// Opens the store of private files below `home`, as [`Store::open`] does with that of the checkpoints. No command of git on the one
    /// reaches the other.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_local(home: &Path) -> Result<Store> {
        Store::open_as(home, &LOCAL)
    }

    fn open_as(home: &Path, names: &'static StoreNames) -> Result<Store> {
        let git_dir = layout::prepare(home, names.repository)?;
        Ok(Store { names, ..Store::over(home, &git_dir) })
    }

    /// Returns true if there is a store of private files below `home`.
    pub fn has_local(home: &Path) -> bool {
        home.join(LOCAL.repository).join("config").symlink_metadata().is_ok()
    }

    /// Returns the epoch of the store of private files below `home`, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn local_epoch(home: &Path) -> Result<Option<String>> {
        match layout::epoch(&home.join(LOCAL.repository)) {
            Err(_) if !Store::has_local(home) => Ok(None),
            epoch => epoch.map(Some),
        }
    }

    /// Returns the name of the log that this store has in the directory of each workspace.
    pub fn log_name(&self) -> &'static str {
        self.names.log
    }

    /// Makes a handle of an existing repository.
    pub(super) fn over(home: &Path, git_dir: &Path) -> Store {
        Store {
            objects: Objects::new(git_dir),
            home: home.to_owned(),
            git_dir: git_dir.to_owned(),
            recompressing: None,
            light_from: LIGHT_FROM,
            pack_full: PACK_FULL,
            refused: Vec::new(),
            ready: Ready::default(),
            packed: PackedCache::default(),
            names: &SHARED,
            progress: Progress::NONE,
        }
    }

    /// Reports long work to a sink from now on.
    pub fn report_to(&mut self, progress: &Progress) {
        self.progress = progress.clone();
    }

    /// Returns the sink to which long work is reported; one that drops everything by default.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// piton's own directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the bare repository.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Both.
    pub(super) fn paths(&self) -> StorePaths {
        StorePaths { home: self.home.clone(), git_dir: self.git_dir.clone(), superseded: self.names.superseded }
    }

    /// Returns the epoch, which changes when the store loses or replaces objects.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn epoch(&self) -> Result<String> {
        layout::epoch(&self.git_dir)
    }

    /// Locks against deletion of objects; writers hold it.
    ///
    /// # Errors
    /// `store-locked` after `wait`.
    pub fn lock_shared(&self, verb: &str, wait: Duration) -> Result<FileLock> {
        FileLock::acquire(&self.home.join("store.lock"), Mode::Shared, verb, wait)
    }

    /// Makes files for the next checkpoint, in the idle time of a long-lived process.
    pub fn prepare(&self) {
        self.ready.fill(&self.git_dir.join("objects"));
    }

    /// Closes files of the store, in the idle time of a long-lived process: others may have removed them since.
    pub fn close(&self) {
        self.objects.close();
    }

    /// Notes that this process is long-lived and calls [`Store::recompress`] in idle time, so that a batch may put off
    /// more.
    pub fn puts_off(&mut self) {
        self.light_from = LIGHT_SOON;
    }

    /// Returns true if an object is there, as far as names tell.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn has(&self, id: &ObjectId) -> Result<bool> {
        self.objects.has(id)
    }

    /// Takes out of many `ids` the objects that are in a pack, as far as the packs were listed before; what is left ascends.
    /// Costs a fraction of as many single looks.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn strike_out_packed(&self, ids: &mut Vec<ObjectId>) -> Result<()> {
        let set = self.objects.set()?;
        ids.retain(|id| !set.has(id));
        ids.sort_unstable();
        Ok(())
    }

    /// Returns true if an object is in a pack, as far as the packs were listed before.
    pub fn is_packed(&self, id: &ObjectId) -> bool {
        // If they cannot be listed, it is looked for among loose ones, and that is told there.
        self.objects.set().is_ok_and(|set| set.has(id))
    }

    /// Returns true if packs went since somebody wrote last, and objects with them. Costs one look while no pack came or went.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn lacks_packs(&self) -> Result<bool> {
        self.objects.lacks_packs()
    }

    /// Returns the `ids` that are not there.
    ///
    /// # Errors
    /// When packs cannot be listed.
    pub fn missing(&self, ids: &mut dyn Iterator<Item = ObjectId>) -> Result<HashSet<ObjectId>> {
        let set = self.objects.refresh()?;
        let unique: HashSet<ObjectId> = ids.filter(|id| !set.has(id)).collect();
        Ok(unique.into_iter().filter(|id| !self.objects.is_loose(id)).collect())
    }

    /// Returns what kind of object an id is; `None` when it is not there (or is a tag, which piton never writes).
    ///
    /// # Errors
    /// When packs cannot be listed. An object that cannot be read counts as missing.
    pub fn kind_of(&self, id: &ObjectId) -> Result<Option<ObjectKind>> {
        // A caller may ask for any id: an id that never existed is not noted as missing.
        if !self.objects.has(id)? {
            return Ok(None);
        }
        Ok(self.objects.describe(id).ok().and_then(|(kind, _)| kind))
    }

    /// Returns the length of a blob.
    ///
    /// # Errors
    /// `store-damaged` when it is missing.
    pub fn blob_size(&self, id: &ObjectId) -> Result<u64> {
        Ok(self.objects.describe(id)?.1)
    }

    /// Writes a blob's bytes to `out` and gives their number. Large blobs are not saved in memory. The delivered bytes
    /// are hashed: a wrong byte anywhere is an error.
    ///
    /// # Errors
    /// `store-damaged`; errors of writing.
    pub fn copy_blob(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        self.objects.copy(id, out)
    }

    /// Returns a commit.
    ///
    /// # Errors
    /// `no-such-checkpoint` when absent, `not-a-checkpoint` for other kinds of object, `too-large`.
    pub fn read_commit(&self, id: &ObjectId) -> Result<Commit> {
        if !self.objects.has(id)? {
            return Err(Error::new(Code::NoSuchCheckpoint, format!("commit {id} is missing from the store")));
        }
        let is_too_large = |error: &Error| error.code() == Code::TooLarge;
        let read = self.objects.read(id, LARGEST_COMMIT).map_err(|error| match is_too_large(&error) {
            true => error.hint("no checkpoint is so large; to see which ref points to it, run `piton doctor --refs`"),
            false => error,
        });
        match read? {
            (Some(ObjectKind::Commit), content) => {
                Commit::decode(&content).ok_or_else(|| damaged(id, "is not a valid git commit"))
            }
            (kind, _) => {
                let kind = kind.map_or("tag", ObjectKind::as_str);
                Err(Error::new(Code::NotACheckpoint, format!("{id} is a {kind}, not a checkpoint")))
            }
        }
    }

    /// Returns all objects whose id begins with these hex digits, at most fifty.
    ///
    /// # Errors
    /// When the object database cannot be listed.
    pub fn resolve_prefix(&self, hex: &str) -> Result<Vec<ObjectId>> {
        let mut found = Vec::new();
        self.objects.each_near(hex, &mut |id| {
            if id.to_string().starts_with(hex) && !found.contains(&id) {
                found.push(id);
            }
            found.len() < MAX_MATCHES
        })?;
        Ok(found)
    }

    /// Returns every commit in the store, named or not.
    ///
    /// # Errors
    /// When the objects cannot be listed.
    pub fn commits(&self) -> Result<Vec<ObjectId>> {
        let mut all = HashSet::new();
        self.objects.each(&mut |id| {
            all.insert(id);
            true
        })?;
        // An object that cannot be read is no commit.
        let is_commit =
            |id: &ObjectId| self.objects.describe(id).is_ok_and(|(kind, _)| kind == Some(ObjectKind::Commit));
        Ok(all.into_iter().filter(is_commit).collect())
    }

    /// Lines that differ between two contents.
    ///
    /// # Errors
    /// `internal` when libgit2 fails.
    pub fn patch(&self, old: Option<&[u8]>, new: Option<&[u8]>, path: &[u8]) -> Result<FilePatch> {
        patch::between(old, new, path)
    }

    /// Notices new and removed packs, before any object is taken for stored. The caller holds the store's lock. If
    /// objects were lost, the epoch changes; indexes that cannot be trusted are written anew.
    ///
    /// # Errors
    /// `disk-full`, `permission`; when packs cannot be listed or read.
    pub fn renew(&mut self) -> Result<()> {
        self.objects.account()
    }
}
