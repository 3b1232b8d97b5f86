//! One file of a client: read, backed up, replaced whole, or removed. A link to it stays a link.

use std::fs::{DirBuilder, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::backups;
use crate::checkpoint::Home;
use crate::error::{Code, Error, IoContext, Result};
use crate::sys::clock::now_ms;
use crate::sys::fs::durable::{replace_file, replace_with_mode, sync_dir};

/// A file as it was found.
pub(crate) struct ClientFile {
    /// The path at which the client looks for it.
    path: PathBuf,
    /// Its real path, behind links.
    real: PathBuf,
    text: Option<String>,
    mode: Option<u32>,
}

impl ClientFile {
    /// Reads it; absent is no error.
    ///
    /// # Errors
    /// `bad-path` for a link that leads nowhere and for what is no file; `bad-utf8`; I/O errors.
    pub(crate) fn read(path: &Path) -> Result<ClientFile> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                if path.symlink_metadata().is_ok() {
                    return Err(Error::new(Code::BadPath, "the link leads nowhere")
                        .path(path)
                        .hint("mend or remove it"));
                }
                return Ok(ClientFile { path: path.to_owned(), real: path.to_owned(), text: None, mode: None });
            }
            Err(error) => return Err(error).at("resolving", path),
        };
        let facts = real.metadata().at("looking at", &real)?;
        if !facts.is_file() {
            return Err(Error::new(Code::BadPath, "it is no ordinary file").path(path).hint("move it away"));
        }
        let bytes = std::fs::read(&real).at("reading", &real)?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::new(Code::BadUtf8, "the file is not UTF-8").path(path).hint("it was not touched"))?;
        let mode = facts.permissions().mode() & 0o7777;
        Ok(ClientFile { path: path.to_owned(), real, text: Some(text), mode: Some(mode) })
    }

    /// Returns where the client looks for it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what is in it, if it is there.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Replaces its content, or makes it with `mode`; the directories it needs are noted as `made`.
    ///
    /// # Errors
    /// `stale-selection` if it changed since it was read; I/O errors. It is whole in every case.
    pub(crate) fn replace(&self, home: &Home, made: &Made, text: &str, mode: u32) -> Result<()> {
        self.back_up(home)?;
        let parent = self.real.parent().unwrap_or(Path::new("/"));
        // A directory for a file that others may read has to be open to them too.
        made.create(parent, if mode & 0o077 == 0 { 0o700 } else { 0o755 })?;
        self.refuse_changed()?;
        replace_with_mode(&self.real, text.as_bytes(), self.mode.unwrap_or(mode))
    }

    /// Removes it, with the directories that were made for it and are empty. Behind a link it is left, empty.
    ///
    /// # Errors
    /// As [`ClientFile::replace`].
    pub(crate) fn remove(&self, home: &Home, made: &Made) -> Result<()> {
        self.back_up(home)?;
        self.refuse_changed()?;
        if self.path.is_symlink() {
            return replace_with_mode(&self.real, b"", self.mode.unwrap_or(0o600));
        }
        std::fs::remove_file(&self.real).at("removing", &self.real)?;
        sync_dir(self.real.parent().unwrap_or(Path::new("/")))?;
        made.remove_empty()
    }

    fn refuse_changed(&self) -> Result<()> {
        if ClientFile::read(&self.path)?.text == self.text {
            return Ok(());
        }
        Err(Error::new(Code::StaleSelection, "another program changed the file just now")
            .path(&self.path)
            .hint("try again"))
    }

    fn back_up(&self, home: &Home) -> Result<()> {
        let Some(text) = &self.text else {
            return Ok(());
        };
        backups::keep(home, &self.real, text, now_ms())
    }
}

/// The directories that installations made, one a line, so that taking hooks out takes them away as well.
pub(crate) struct Made(PathBuf);

impl Made {
    /// Returns those noted in piton's home.
    pub(crate) fn of(home: &Home) -> Made {
        Made(home.path().join("made-directories"))
    }

    fn noted(&self) -> Result<Vec<PathBuf>> {
        match std::fs::read(&self.0) {
            Ok(bytes) => {
                let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
                Ok(lines.map(|line| PathBuf::from(std::ffi::OsStr::from_bytes(line))).collect())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).at("reading", &self.0),
        }
    }

    fn note(&self, dirs: &[PathBuf]) -> Result<()> {
        let lines: Vec<u8> = dirs.iter().flat_map(|dir| [dir.as_os_str().as_bytes(), b"\n"].concat()).collect();
        replace_file(&self.0, &lines)
    }

    /// Makes a directory and what is missing above it; noted first.
    fn create(&self, dir: &Path, mode: u32) -> Result<()> {
        let missing: Vec<PathBuf> = dir.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut noted = self.noted()?;
        noted.extend(missing.iter().filter(|dir| !dir.as_os_str().as_bytes().contains(&b'\n')).cloned());
        self.note(&noted)?;
        for dir in missing.iter().rev() {
            DirBuilder::new().mode(mode).create(dir).at("creating the directory", dir)?;
            // The umask took bits off.
            std::fs::set_permissions(dir, Permissions::from_mode(mode)).at("setting the mode of", dir)?;
        }
        Ok(())
    }

    /// Removes those that are empty, the inner ones first.
    fn remove_empty(&self) -> Result<()> {
        let mut noted = self.noted()?;
        if noted.is_empty() {
            return Ok(());
        }
        noted.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
        // A directory that cannot be removed is not empty, or belongs to another program by now.
        noted.retain(|dir| std::fs::remove_dir(dir).is_err() && dir.exists());
        self.note(&noted)
    }
}
