//! One file of a client or a shell: read, backed up, replaced whole, or removed. A link to it stays a link.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::backups;
use super::notes::Made;
use crate::checkpoint::Home;
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::clock::now_ms;
use crate::sys::fs::durable::{replace_kept, replace_with_mode, sync_dir};

/// A file as it was found.
pub(crate) struct ClientFile {
    /// The path at which the client looks for it.
    path: PathBuf,
    /// Its real path, behind links.
    real: PathBuf,
    there: Option<(Vec<u8>, Metadata)>,
}

impl ClientFile {
    /// Reads a file that is to be text; absent is no error.
    ///
    /// # Errors
    /// `bad-path` for a link that leads nowhere and for what is no file; `bad-utf8`; I/O errors.
    pub(crate) fn read(path: &Path) -> Result<ClientFile> {
        let file = ClientFile::read_bytes(path)?;
        match file.bytes().map(std::str::from_utf8) {
            Some(Err(_)) => {
                Err(Error::new(Code::BadUtf8, "the file is not UTF-8").path(path).hint("it was not changed"))
            }
            _ => Ok(file),
        }
    }

    /// Reads a file, whatever bytes are in it.
    ///
    /// # Errors
    /// As [`ClientFile::read`], without `bad-utf8`.
    pub(crate) fn read_bytes(path: &Path) -> Result<ClientFile> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                if path.symlink_metadata().is_ok() {
                    return Err(Error::new(Code::BadPath, "the link leads nowhere")
                        .path(path)
                        .hint("fix or remove it"));
                }
                return Ok(ClientFile { path: path.to_owned(), real: path.to_owned(), there: None });
            }
            Err(error) => return Err(error).at("resolving", path),
        };
        let facts = real.metadata().at("checking", &real)?;
        if !facts.is_file() {
            return Err(Error::new(Code::BadPath, "this is not a regular file").path(path).hint("move it away"));
        }
        let bytes = std::fs::read(&real).at("reading", &real)?;
        Ok(ClientFile { path: path.to_owned(), real, there: Some((bytes, facts)) })
    }

    /// Returns where the client looks for it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its content, if it is there.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.there.as_ref().map(|(bytes, _)| bytes.as_slice())
    }

    /// Returns the text in it, if it is there and is text.
    pub(crate) fn text(&self) -> Option<&str> {
        self.bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Returns true if its owner has made it read-only.
    pub(crate) fn is_read_only(&self) -> bool {
        self.there.as_ref().is_some_and(|(_, facts)| facts.permissions().mode() & 0o222 == 0)
    }

    /// Replaces its content, or makes it with `mode`; the directories it needs are noted as `made`. With a content that it had before,
    /// it gets the time that it had then.
    ///
    /// # Errors
    /// `permission` if it is read-only; `stale-selection` if it changed since it was read; I/O errors. It is whole in every case.
    pub(crate) fn replace(&self, home: &Home, made: &Made, content: &[u8], mode: u32) -> Result<()> {
        self.refuse_read_only()?;
        self.back_up(home)?;
        let parent = self.real.parent().unwrap_or(Path::new("/"));
        // A directory for a file that others may read has to be open to them too.
        made.create(parent, if mode & 0o077 == 0 { 0o700 } else { 0o755 })?;
        self.refuse_changed()?;
        match &self.there {
            None => {
                backups::forget_blank(home, &self.real)?;
                made.add_file(&self.real)?;
                replace_with_mode(&self.real, content, mode)
            }
            Some((_, facts)) => {
                replace_kept(&self.real, content, facts)?;
                backups::changed(home, &self.real, content).map_or(Ok(()), |time| self.set_time(time))
            }
        }
    }

    /// Removes the file, or the link to it, that is piton's as a whole.
    ///
    /// # Errors
    /// As [`ClientFile::replace`].
    pub(crate) fn remove_whole(&self, home: &Home) -> Result<()> {
        self.back_up(home)?;
        std::fs::remove_file(&self.path).at("removing", &self.path)
    }

    /// Returns what is to be left of it when all in it was piton's: a file that was there blank is so again, and behind a link it is
    /// left, empty. Nothing: it goes.
    pub(crate) fn emptied(&self, home: &Home) -> Option<Vec<u8>> {
        backups::blank_content(home, &self.real).or_else(|| self.path.is_symlink().then(Vec::new))
    }

    /// Returns its real path, behind links.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// Forgets how it was before piton wrote into it: it is so again, or others have changed it since.
    ///
    /// # Errors
    /// `permission`.
    pub(crate) fn forget(&self, home: &Home, made: &Made) -> Result<()> {
        backups::forget_blank(home, &self.real)?;
        made.forget_file(&self.real)
    }

    /// Removes it, with the directories that were made for it and are empty.
    ///
    /// # Errors
    /// As [`ClientFile::replace`].
    pub(crate) fn remove(&self, home: &Home, made: &Made) -> Result<()> {
        self.refuse_read_only()?;
        self.back_up(home)?;
        self.refuse_changed()?;
        std::fs::remove_file(&self.real).at("removing", &self.real)?;
        sync_dir(self.real.parent().unwrap_or(Path::new("/")))?;
        made.remove_empty()
    }

    fn set_time(&self, time: SystemTime) -> Result<()> {
        let set = File::options().write(true).open(&self.real).and_then(|file| file.set_modified(time));
        set.at("setting the time of", &self.real)
    }

    /// Refuses a file that its owner has made read-only. Its directory would allow to replace it all the same.
    ///
    /// # Errors
    /// `permission`.
    pub(crate) fn refuse_read_only(&self) -> Result<()> {
        if !self.is_read_only() {
            return Ok(());
        }
        Err(Error::new(Code::Permission, "the file is read-only and was not changed")
            .path(&self.path)
            .hint("make it writable (`chmod u+w`) and try again"))
    }

    fn refuse_changed(&self) -> Result<()> {
        if ClientFile::read_bytes(&self.path)?.bytes() == self.bytes() {
            return Ok(());
        }
        Err(Error::new(Code::StaleSelection, "another program has just changed the file")
            .path(&self.path)
            .hint("try again"))
    }

    fn back_up(&self, home: &Home) -> Result<()> {
        let Some((bytes, facts)) = &self.there else {
            return Ok(());
        };
        // A file system without times has no time to keep.
        let changed = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        backups::keep(home, &self.real, bytes, changed, now_ms())
    }
}
