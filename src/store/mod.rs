//! The shared bare repository of all workspaces (rank 2). libgit2 lives here and nowhere else.
//!
//! A valid bare git repository at `$PITON_HOME/store.git`: ordinary git reads it. Objects are written by our own loose and
//! pack writers (`batch`), refs by compare-and-swap, and refs are listed by our own reader, which reports broken ones.
//! User, system and environment configuration of git is ignored. No `git` binary is run.
//!
//! Invariant: an object is durable before a ref names it. Invariant: everything that writes holds the store lock shared
//! from its first "already there" until its ref has moved; what deletes objects takes it exclusively and changes the
//! epoch.

mod batch;
mod consolidate;
mod debris;
mod deflate;
pub mod foreign;
pub mod health;
mod index;
mod layout;
mod lazy;
pub mod log;
mod loose;
mod pack;
mod patch;
mod present;
mod quarantine;
mod reader;
mod ready;
mod recompress;
mod refs;

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{ObjectType, Oid, Repository};

pub use batch::{Batch, BatchStats, Landing, NewCommit};
pub use consolidate::BOUNDS;
pub use layout::FSCK_IGNORED;
pub use log::Log;
pub use patch::{FilePatch, between};
pub use quarantine::{Arrival, Quarantine};
pub use reader::Reader;
pub use recompress::{COMMAND, IDLE, Slice};
pub use refs::{RefEntry, RefMarks};

use crate::error::{Code, Error, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::tree::{self, TreeEntry};
use crate::sys::lock::{FileLock, Mode};

/// Most matches that a prefix search gives.
const MAX_MATCHES: usize = 50;

/// The store. Belongs to one thread; batches may be used from several.
pub struct Store {
    repo: Repository,
    home: PathBuf,
    git_dir: PathBuf,
    /// When the directory of packs last changed before `repo` was opened.
    packs: (i64, i64),
    /// A light pack that is being compressed, with the locks that keeps.
    recompressing: Option<Box<recompress::Recompression>>,
    /// From how many bytes on a batch is not compressed yet.
    light_from: u64,
    /// Light packs that are damaged.
    refused: Vec<String>,
    ready: ready::Ready,
}

/// A commit, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub tree: ObjectId,
    pub parents: Vec<ObjectId>,
    pub message: String,
    /// Milliseconds since the epoch; git keeps whole seconds.
    pub time_ms: i64,
}

impl Store {
    /// Opens the store below `home`, making it when it does not exist and mending missing empty directories.
    ///
    /// # Errors
    /// `store-damaged` for a store that is not a repository or was made by a newer piton; `permission`, `disk-full`.
    pub fn open(home: &Path) -> Result<Store> {
        let git_dir = layout::prepare(home)?;
        let packs = layout::packs_changed(&git_dir)?;
        let repo = layout::open_repository(&git_dir)?;
        Ok(Store {
            repo,
            home: home.to_owned(),
            git_dir,
            packs,
            recompressing: None,
            light_from: batch::LIGHT_FROM,
            refused: Vec::new(),
            ready: ready::Ready::default(),
        })
    }

    /// piton's own directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The bare repository.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Changes when the store loses or replaces objects.
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

    /// In the idle time of a process that goes on: makes ready what the next checkpoint needs.
    pub fn prepare(&self) {
        self.ready.fill(&self.git_dir.join("objects"));
    }

    /// Starts writing objects.
    ///
    /// # Errors
    /// When the object database cannot be opened.
    pub fn batch(&self) -> Result<Batch<'_>> {
        Batch::new(self)
    }

    /// Says that this process goes on, and has [`Store::recompress`] do in idle time what a batch puts off: it may put off more.
    pub fn puts_off(&mut self) {
        self.light_from = batch::LIGHT_SOON;
    }

    /// Whether an object is there.
    ///
    /// # Errors
    /// When the object database cannot be opened.
    pub fn has(&self, id: &ObjectId) -> Result<bool> {
        let odb = self.repo.odb().map_err(git_error)?;
        Ok(odb.exists(to_oid(id)))
    }

    /// Those of `ids` that are not there.
    ///
    /// # Errors
    /// When the object database cannot be opened.
    pub fn missing(&self, ids: &mut dyn Iterator<Item = ObjectId>) -> Result<HashSet<ObjectId>> {
        let odb = self.repo.odb().map_err(git_error)?;
        let unique: HashSet<ObjectId> = ids.collect();
        Ok(unique.into_iter().filter(|id| !odb.exists(to_oid(id))).collect())
    }

    /// What kind of object an id is; `None` when it is not there (or is a tag, which piton never writes).
    ///
    /// # Errors
    /// When the object database cannot be opened.
    pub fn kind_of(&self, id: &ObjectId) -> Result<Option<ObjectKind>> {
        Ok(self.header(id).ok().and_then(|(_, kind)| match kind {
            ObjectType::Commit => Some(ObjectKind::Commit),
            ObjectType::Tree => Some(ObjectKind::Tree),
            ObjectType::Blob => Some(ObjectKind::Blob),
            _ => None,
        }))
    }

    /// The bytes of a blob, in memory.
    ///
    /// # Errors
    /// `store-damaged` when it is missing, cut or of another kind.
    pub fn read_blob(&self, id: &ObjectId) -> Result<Vec<u8>> {
        self.read(id, ObjectType::Blob)
    }

    /// The length of a blob.
    ///
    /// # Errors
    /// `store-damaged` when it is missing.
    pub fn blob_size(&self, id: &ObjectId) -> Result<u64> {
        Ok(self.header(id)?.0 as u64)
    }

    /// Writes a blob's bytes to `out` and gives their number. Large loose blobs are not held in memory. What was
    /// delivered is hashed: a wrong byte anywhere is an error.
    ///
    /// # Errors
    /// `store-damaged`; errors of writing.
    pub fn copy_blob(&self, id: &ObjectId, out: &mut dyn Write) -> Result<u64> {
        self.reader()?.copy_blob(id, out)
    }

    /// Reads blobs from several threads.
    ///
    /// # Errors
    /// When the object database cannot be opened.
    pub fn reader(&self) -> Result<Reader<'_>> {
        Ok(Reader::new(self.repo.odb().map_err(git_error)?, self.git_dir.clone()))
    }

    /// The entries of a tree.
    ///
    /// # Errors
    /// `store-damaged`.
    pub fn read_tree(&self, id: &ObjectId) -> Result<Vec<TreeEntry>> {
        tree::decode(&self.tree_content(id)?).map_err(|error| error.context(format!("tree {id}")))
    }

    /// The bytes of a tree.
    ///
    /// # Errors
    /// `store-damaged` when it is missing.
    pub fn tree_content(&self, id: &ObjectId) -> Result<Vec<u8>> {
        if *id == ObjectId::EMPTY_TREE {
            return Ok(Vec::new());
        }
        self.read(id, ObjectType::Tree)
    }

    /// A commit.
    ///
    /// # Errors
    /// `no-such-checkpoint` when absent, `not-a-checkpoint` for other kinds of object.
    pub fn read_commit(&self, id: &ObjectId) -> Result<Commit> {
        match self.kind_of(id)? {
            None => {
                return Err(Error::new(Code::NoSuchCheckpoint, format!("commit {id} is missing from the store")));
            }
            Some(ObjectKind::Commit) => {}
            Some(kind) => {
                return Err(Error::new(Code::NotACheckpoint, format!("{id} is a {}, not a checkpoint", kind.as_str())));
            }
        }
        let anew;
        let commit = match self.repo.find_commit(to_oid(id)) {
            Ok(commit) => commit,
            Err(error) => {
                anew = layout::open_repository(&self.git_dir)?;
                anew.find_commit(to_oid(id)).map_err(|_| lost(id, &error))?
            }
        };
        Ok(Commit {
            tree: from_oid(commit.tree_id()),
            parents: commit.parent_ids().map(from_oid).collect(),
            message: String::from_utf8_lossy(commit.message_bytes()).into_owned(),
            time_ms: commit.time().seconds().saturating_mul(1000),
        })
    }

    /// All objects whose id begins with these hex digits, at most fifty.
    ///
    /// # Errors
    /// When the object database cannot be listed.
    pub fn resolve_prefix(&self, hex: &str) -> Result<Vec<ObjectId>> {
        let odb = self.repo.odb().map_err(git_error)?;
        let mut found = Vec::new();
        let listed = odb.foreach(|oid| {
            let id = from_oid(*oid);
            if id.to_string().starts_with(hex) && !found.contains(&id) {
                found.push(id);
            }
            found.len() < MAX_MATCHES
        });
        match listed {
            Ok(()) => Ok(found),
            Err(error) if error.code() == git2::ErrorCode::User => Ok(found),
            Err(error) => Err(git_error(error)),
        }
    }

    /// Every commit in the store, named or not.
    ///
    /// # Errors
    /// When the object database cannot be listed.
    pub fn commits(&self) -> Result<Vec<ObjectId>> {
        let odb = self.repo.odb().map_err(git_error)?;
        let mut found = HashSet::new();
        let mut note = |oid: &Oid| {
            // What cannot be read is no commit.
            if odb.read_header(*oid).is_ok_and(|(_, kind)| kind == ObjectType::Commit) {
                found.insert(from_oid(*oid));
            }
            true
        };
        odb.foreach(|oid| note(oid)).map_err(git_error)?;
        Ok(found.into_iter().collect())
    }

    /// Lines that differ between two contents.
    ///
    /// # Errors
    /// `internal` when libgit2 fails.
    pub fn patch(&self, old: Option<&[u8]>, new: Option<&[u8]>, path: &str) -> Result<FilePatch> {
        patch::between(old, new, path)
    }

    fn header(&self, id: &ObjectId) -> Result<(usize, ObjectType)> {
        let header = |repo: &Repository| {
            let odb = repo.odb().map_err(git_error)?;
            odb.read_header(to_oid(id)).map_err(|error| lost(id, &error))
        };
        header(&self.repo).or_else(|error| header(&layout::open_repository(&self.git_dir)?).map_err(|_| error))
    }

    fn read(&self, id: &ObjectId, kind: ObjectType) -> Result<Vec<u8>> {
        let odb = self.repo.odb().map_err(git_error)?;
        reader::read_from(&odb, &self.git_dir, id, kind)
    }

    /// Opens the repository again if packs came or went since: libgit2 sees new ones by itself, but holds on to those
    /// that were consolidated away.
    ///
    /// # Errors
    /// Those of opening.
    pub fn renew(&mut self) -> Result<()> {
        if layout::packs_changed(&self.git_dir)? == self.packs {
            return Ok(());
        }
        self.reopen()
    }

    fn reopen(&mut self) -> Result<()> {
        self.packs = layout::packs_changed(&self.git_dir)?;
        self.repo = layout::open_repository(&self.git_dir)?;
        Ok(())
    }
}

fn to_oid(id: &ObjectId) -> Oid {
    // A SHA-1 id always has the 20 bytes that libgit2 wants.
    Oid::from_bytes(id.as_bytes()).expect("an object id has 20 bytes")
}

fn from_oid(oid: Oid) -> ObjectId {
    let mut bytes = [0u8; 20];
    bytes.copy_from_slice(&oid.as_bytes()[..20]);
    ObjectId::from_bytes(bytes)
}

fn lost(id: &ObjectId, error: &git2::Error) -> Error {
    damaged(id, &format!("cannot be read ({})", error.message()))
}

fn damaged(id: &ObjectId, what: &str) -> Error {
    Error::new(Code::StoreDamaged, format!("object {id} {what}")).hint("run `git fsck --full` in the store")
}

fn damaged_ref(name: &str, what: &str) -> Error {
    Error::new(Code::StoreDamaged, format!("the ref `{name}` cannot be moved: {what}"))
        .hint("run `git fsck --full` in the store")
}

fn git_error(error: git2::Error) -> Error {
    if let Some(refused) = refusal(&error) {
        return Error::io(refused, "working on the store", Path::new("its object directory"));
    }
    Error::new(Code::Internal, format!("the store: {}", error.message())).caused_by(error)
}

/// libgit2 keeps the system's words only, at the end of its message; errors that have codes of their own are known by
/// them.
fn refusal(error: &git2::Error) -> Option<std::io::Error> {
    use libc::{EACCES, EDQUOT, EFBIG, EMFILE, ENOSPC, EPERM, EROFS};
    [ENOSPC, EDQUOT, EFBIG, EACCES, EROFS, EPERM, EMFILE].into_iter().map(std::io::Error::from_raw_os_error).find(
        |known| {
            let words = known.to_string();
            let words = words.split(" (os error").next().unwrap_or_default();
            error.message().ends_with(words)
        },
    )
}

#[cfg(test)]
mod tests;
