//! Staging: every new content is written beside its place, complete and durable, before anything is replaced.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::access::deepest_dir;
use super::attributes;
use super::clean::temporary_name;
use super::outcome::BlobSource;
use super::proof::{Proof, file_id, prove};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectHasher, ObjectId, ObjectKind};
use crate::model::manifest::{Entry, EntryKind};
use crate::model::path::RelPath;
use crate::sys::dir::{Dir, Kind, Stat};

/// From this many files on, the file system is synced once instead of each file.
pub(super) const BULK: usize = 32;

/// A file or link that waits for its rename.
pub(super) struct Staged {
    /// The directory it waits in: that of its place, or the deepest one above it that exists.
    pub dir: RelPath,
    pub name: Vec<u8>,
    /// What it looked like when it was complete.
    pub seen: Stat,
    /// Owner and attributes of the old file that it could not be given.
    pub lost: Vec<String>,
}

/// What became of one file or link of the plan.
pub(super) enum Staging {
    Ready(Staged),
    /// The place holds the target already.
    Already,
    /// The place holds something that was not there at the preview.
    Taken,
}

/// Writes contents into temporary files below a root.
pub(super) struct Stage<'a> {
    pub root: &'a Dir,
    pub blobs: &'a dyn BlobSource,
    /// Whether all files are synced at once when all are written.
    pub bulk: bool,
    pub done: BTreeMap<RelPath, Staging>,
}

impl Stage<'_> {
    /// Stages a path that must not exist.
    pub(super) fn create(&mut self, path: &RelPath, to: &Entry) -> Result<()> {
        let (at, dir) = deepest_dir(self.root, path)?;
        let in_place = path.parent().is_some_and(|parent| parent == at);
        let staging = match if in_place { prove(&dir, path, to, None)? } else { Proof::Absent } {
            Proof::Exact(_) => Staging::Already,
            Proof::Differs => Staging::Taken,
            Proof::Absent => Staging::Ready(self.write(at, &dir, to, None)?),
        };
        self.done.insert(path.clone(), staging);
        Ok(())
    }

    /// Stages what replaces a path; whether it still is what it was is proved right before the rename.
    pub(super) fn replace(&mut self, path: &RelPath, from: &Entry, to: &Entry) -> Result<()> {
        let (at, dir) = deepest_dir(self.root, path)?;
        let in_place = path.parent().is_some_and(|parent| parent == at);
        let staging = match if in_place { dir.stat(path.name())? } else { None } {
            None => Staging::Taken,
            Some(old) => {
                let both_files = from.kind == EntryKind::File && to.kind == EntryKind::File && old.kind == Kind::File;
                Staging::Ready(self.write(at, &dir, to, both_files.then_some((path.name(), &old)))?)
            }
        };
        self.done.insert(path.clone(), staging);
        Ok(())
    }

    fn write(&self, at: RelPath, dir: &Dir, to: &Entry, old: Option<(&[u8], &Stat)>) -> Result<Staged> {
        let name = temporary_name();
        let written = match to.kind {
            EntryKind::Link => self.write_link(dir, &name, to).map(|()| Vec::new()),
            EntryKind::File | EntryKind::Dir => self.write_file(dir, &name, to, old),
        };
        let complete = written.and_then(|lost| {
            let vanished = || Error::new(Code::Conflict, "the temporary file vanished").path(at.to_path());
            Ok((dir.stat(&name)?.ok_or_else(vanished)?, lost))
        });
        match complete {
            Ok((seen, lost)) => Ok(Staged { dir: at, name, seen, lost }),
            Err(error) => {
                // It may not even exist; the first error is the one to tell.
                let _ = dir.unlink(&name);
                Err(error)
            }
        }
    }

    fn write_link(&self, dir: &Dir, name: &[u8], to: &Entry) -> Result<()> {
        let target = self.blobs.read(&to.id)?;
        if ObjectId::of(ObjectKind::Blob, &target)? != to.id {
            return Err(damaged(&to.id));
        }
        dir.symlink(&target, name)
    }

    fn write_file(&self, dir: &Dir, name: &[u8], to: &Entry, old: Option<(&[u8], &Stat)>) -> Result<Vec<String>> {
        let path = dir.path().join(String::from_utf8_lossy(name).as_ref());
        let mut file = dir.create_temp(name)?;
        self.fill(&mut file, to, &path)?;
        let staged = Stat::of_file(&file, &path)?;
        let mut lost = match old {
            Some((name, old)) => attributes::carry_over(dir, name, old, &file, &staged)?,
            None => Vec::new(),
        };
        let permissions = std::fs::Permissions::from_mode(u32::from(to.perm));
        file.set_permissions(permissions).at("setting the permissions of", &path)?;
        let perm = Stat::of_file(&file, &path)?.perm();
        if perm != to.perm {
            lost.push(format!("permissions are {perm:04o} instead of {:04o}", to.perm));
        }
        // One sync of the root's file system does not reach a file on another one that is mounted below it.
        if !self.bulk || staged.dev != self.root.stat_self()?.dev {
            file.sync_all().at("syncing", &path)?;
        }
        Ok(lost)
    }

    /// Writes the content and makes sure that it is the one asked for: a damaged store must not replace good files.
    fn fill(&self, file: &mut File, to: &Entry, path: &Path) -> Result<()> {
        let hasher = ObjectHasher::new(ObjectKind::Blob, to.size);
        let mut out = Checked { file, hasher, total: 0, error: None };
        let copied = self.blobs.copy(&to.id, &mut out);
        let Checked { file, hasher, total, error } = out;
        if let Some(error) = error {
            return Err(Error::io(error, "writing", path));
        }
        copied?;
        let id = if total == to.size {
            Some(hasher.finish()?)
        } else {
            file.rewind().at("reading", path)?;
            file_id(file, total)?
        };
        if id == Some(to.id) { Ok(()) } else { Err(damaged(&to.id)) }
    }
}

fn damaged(id: &ObjectId) -> Error {
    Error::new(Code::StoreDamaged, format!("the content of object {id} is not what its id says"))
        .hint("nothing was changed; run `piton doctor`")
}

/// Hashes what passes through, and remembers the error of the file, which the source may report as it likes.
struct Checked<'a> {
    file: &'a mut File,
    hasher: ObjectHasher,
    total: u64,
    error: Option<std::io::Error>,
}

impl Write for Checked<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.file.write(bytes) {
            Ok(n) => {
                self.hasher.update(&bytes[..n]);
                self.total += n as u64;
                Ok(n)
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let copy = error.raw_os_error().map(std::io::Error::from_raw_os_error);
                self.error = Some(copy.unwrap_or_else(|| std::io::Error::from(error.kind())));
                Err(error)
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}
