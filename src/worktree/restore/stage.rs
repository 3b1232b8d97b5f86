//! Staging: every new content is written beside its place, complete and durable, before anything is replaced.

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
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;
use crate::sys::fs::dir::Dir;
use crate::sys::fs::stat::{FileKind, Stat};

/// From this many files on, the file system is synced once instead of each file.
pub(super) const BULK: usize = 32;

/// The longest target of a link that is read; systems have links of 4,096 bytes at most.
const LONGEST_TARGET: usize = 1 << 16;

/// A file or link that waits for its rename.
pub(super) struct Staged {
    /// The directory it waits in: that of its place, or the deepest one above it that exists.
    pub dir: RelPath,
    /// Its temporary name there.
    pub name: Vec<u8>,
    /// Its facts when it was complete.
    pub seen: Stat,
    /// Owner and attributes of the old file that it could not be given.
    pub lost: Vec<String>,
}

/// The outcome of staging one file or link of the plan.
pub(super) enum Staging {
    /// The content waits for its rename.
    Ready(Staged),
    /// The place holds the target already.
    Already,
    /// The place holds something that was not there at the preview.
    Taken,
}

/// A file or link that gets new content.
pub(super) struct Arrival<'a> {
    pub path: &'a RelPath,
    /// The entry that it replaces; `None` for a path that must not exist.
    pub from: Option<&'a ManifestEntry>,
    /// The entry that is to stand there.
    pub to: &'a ManifestEntry,
}

/// Writes contents into temporary files below a root; several threads may.
///
/// Each file is reached from the root again: a directory that was moved away meanwhile is not written to.
pub(super) struct StagingArea<'a> {
    pub root: &'a Dir,
    /// The root's file system.
    pub dev: u64,
    /// The contents, by id.
    pub blobs: &'a dyn BlobSource,
    /// True if all files are synced at once when all are written.
    pub bulk: bool,
}

impl StagingArea<'_> {
    /// Stages one file or link.
    pub(super) fn stage(&self, arrival: &Arrival<'_>) -> Result<Staging> {
        let Arrival { path, from, to } = arrival;
        let (at, dir) = deepest_dir(self.root, path)?;
        // A path without a directory neither exists nor is taken.
        let place = path.parent().is_some_and(|parent| parent == at).then_some(&dir);
        let old = match from {
            None => match place.map(|dir| prove(dir, path, to, None)).transpose()? {
                Some(Proof::Exact(_)) => return Ok(Staging::Already),
                Some(Proof::Differs) => return Ok(Staging::Taken),
                Some(Proof::Absent) | None => None,
            },
            // Whether it still is what it was is proved right before the rename.
            Some(from) => match place.map(|dir| dir.stat(path.name())).transpose()?.flatten() {
                None => return Ok(Staging::Taken),
                Some(old) => (from.kind == EntryKind::File && old.kind == FileKind::File).then_some(old),
            },
        };
        let old = old.as_ref().filter(|_| to.kind == EntryKind::File).map(|old| (path.name(), old));
        Ok(Staging::Ready(self.write(at, &dir, to, old)?))
    }

    fn write(&self, at: RelPath, dir: &Dir, to: &ManifestEntry, old: Option<(&[u8], &Stat)>) -> Result<Staged> {
        let name = temporary_name();
        let written = match to.kind {
            EntryKind::Link => self.write_link(dir, &name, to),
            EntryKind::File | EntryKind::Dir => self.write_file(dir, &name, to, old),
        };
        match written {
            Ok((seen, lost)) => Ok(Staged { dir: at, name, seen, lost }),
            Err(error) => {
                // It may not even exist; the first error is the one to tell.
                let _ = dir.unlink(&name);
                Err(error)
            }
        }
    }

    fn write_link(&self, dir: &Dir, name: &[u8], to: &ManifestEntry) -> Result<(Stat, Vec<String>)> {
        let mut target = Destination { bytes: Vec::new(), is_cut: false };
        let copied = self.blobs.copy(&to.id, &mut target);
        let Destination { bytes: target, is_cut } = target;
        if is_cut {
            return Err(Error::new(
                Code::BadPath,
                format!("the target of a link has more than {LONGEST_TARGET} bytes"),
            )
            .path(dir.path())
            .hint("nothing was changed; this system has no links of that length, so leave this path out"));
        }
        copied?;
        if !is_of(&to.id, &target) {
            return Err(damaged(&to.id));
        }
        dir.symlink(&target, name)?;
        let vanished = || Error::new(Code::Conflict, "the temporary link vanished").path(dir.path());
        Ok((dir.stat(name)?.ok_or_else(vanished)?, Vec::new()))
    }

    fn write_file(
        &self,
        dir: &Dir,
        name: &[u8],
        to: &ManifestEntry,
        old: Option<(&[u8], &Stat)>,
    ) -> Result<(Stat, Vec<String>)> {
        let path = dir.path().join(String::from_utf8_lossy(name).as_ref());
        let mut file = dir.create_temp(name)?;
        self.fill(&mut file, to, &path)?;
        let mut lost = match old {
            Some((name, old)) => attributes::carry_over(dir, name, old, &file, &Stat::of_file(&file, &path)?),
            None => Vec::new(),
        };
        let permissions = std::fs::Permissions::from_mode(u32::from(to.perm));
        // After the attributes: a change of the owner clears setuid and setgid bits.
        file.set_permissions(permissions).at("setting the permissions of", &path)?;
        let seen = Stat::of_file(&file, &path)?;
        if seen.perm() != to.perm {
            lost.push(format!("permissions are {:04o} instead of {:04o}", seen.perm(), to.perm));
        }
        // One sync of the root's file system does not reach a file on another one that is mounted below it.
        if !self.bulk || seen.dev != self.dev {
            file.sync_all().at("syncing", &path)?;
        }
        Ok((seen, lost))
    }

    /// Writes the content and makes sure that it is the one asked for, where the source has not proved it: a damaged store
    /// must not replace good files.
    fn fill(&self, file: &mut File, to: &ManifestEntry, path: &Path) -> Result<()> {
        if let Some(content) = self.blobs.read(&to.id, to.size)? {
            return file.write_all(&content).at("writing", path);
        }
        let size = self.blobs.size(&to.id)?.unwrap_or(to.size);
        let hasher = ObjectHasher::new(ObjectKind::Blob, size);
        let mut out = Checked { file, hasher, total: 0, error: None };
        let copied = self.blobs.copy(&to.id, &mut out);
        let Checked { file, hasher, total, error } = out;
        if let Some(error) = error {
            return Err(Error::io(error, "writing", path));
        }
        copied?;
        let id = if total == size {
            Some(hasher.finish()?)
        } else {
            file.rewind().at("reading", path)?;
            file_id(file, total)?
        };
        if id == Some(to.id) { Ok(()) } else { Err(damaged(&to.id)) }
    }
}

fn is_of(id: &ObjectId, content: &[u8]) -> bool {
    ObjectId::of(ObjectKind::Blob, content).is_ok_and(|found| found == *id)
}

fn damaged(id: &ObjectId) -> Error {
    Error::new(Code::StoreDamaged, format!("the content of object {id} does not match its id"))
        .hint("nothing was changed; run `piton doctor`")
}

/// Takes the target of a link, and no more than a link can have: a blob of any length may be called one.
struct Destination {
    bytes: Vec<u8>,
    /// True if there was more than a link can have.
    is_cut: bool,
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > LONGEST_TARGET {
            self.is_cut = true;
            return Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Hashes what passes through, and remembers the error of the file, which the source may report as it likes.
struct Checked<'a> {
    file: &'a mut File,
    hasher: ObjectHasher,
    /// Bytes that were written.
    total: u64,
    /// The first error of the file, if writing ended with one.
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
