//! The place of piton's own files.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::error::{Code, Error, IoContext, Result};
use crate::sys::fs::durable::{create_private_dir, replace_cache};

/// The signature of a tag (<https://bford.info/cachedir/>).
const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55";

/// The whole tag.
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55
# Programs that make backups leave this directory out: piton drops and repacks what is in it all the time.
# `backup: include` in piton's settings takes this file away.
";

/// `$PITON_HOME`: the store, the workspaces' records, trusted settings. Mode 0700.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// `$PITON_HOME`, else `$XDG_DATA_HOME/piton`, else `~/.local/share/piton`; created when missing.
    ///
    /// # Errors
    /// `workspace-refused` when none of them is known or the value is relative, `bad-path` when it is not a directory; I/O
    /// errors of creating it.
    pub fn locate() -> Result<Home> {
        Home::at(&Home::place()?)
    }

    /// Returns the path by which the directory is found: that of a link, if it was moved.
    ///
    /// # Errors
    /// `workspace-refused` when none is known.
    pub fn place() -> Result<PathBuf> {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        named("PITON_HOME")
            .or_else(|| named("XDG_DATA_HOME").map(|dir| dir.join("piton")))
            .or_else(|| std::env::home_dir().filter(|dir| dir.is_absolute()).map(|dir| dir.join(".local/share/piton")))
            .ok_or_else(|| {
                Error::new(Code::WorkspaceRefused, "cannot determine where piton's store is: no home directory is set")
                    .hint("set PITON_HOME to an absolute path")
            })
    }

    /// piton's own directories: this one, the link that was left where it was moved from, and that of the user's settings.
    pub fn own_dirs(&self) -> Vec<PathBuf> {
        let settings = crate::settings::user_file().and_then(|file| Some(file.parent()?.to_owned()));
        let link = Home::place().ok().filter(|place| *place != self.0);
        let others = link.into_iter().chain(settings).filter(|dir| dir.is_absolute());
        std::iter::once(self.0.clone()).chain(others).collect()
    }

    /// Returns true if a real path is one of piton's own directories, or in one. The path need not exist.
    ///
    /// # Errors
    /// When the working directory is gone.
    pub fn is_inside(&self, path: &Path) -> Result<bool> {
        let object = |path: &Path| path.metadata().ok().map(|facts| (facts.dev(), facts.ino()));
        // Compared by device and inode too: bind mounts and file systems that ignore case give it other names.
        let above: HashSet<(u64, u64)> = path.ancestors().filter_map(object).collect();
        for own in self.own_dirs() {
            // A directory that does not exist yet gets its real name from those above it.
            let own = resolved(&own)?;
            let is_same = |dir: PathBuf| object(&dir).is_some_and(|dir| above.contains(&dir));
            if path.starts_with(&own) || directories(&own).any(is_same) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns a given directory; created when missing.
    ///
    /// # Errors
    /// As [`Home::locate`].
    pub fn at(path: &Path) -> Result<Home> {
        if !path.is_absolute() {
            return Err(Error::new(Code::WorkspaceRefused, "the location of piton's store must be an absolute path")
                .path(path)
                .hint("set PITON_HOME to an absolute path"));
        }
        if path.exists() && !path.is_dir() {
            return Err(Error::new(Code::BadPath, "the location of piton's store must be a directory")
                .path(path)
                .hint("set PITON_HOME to another path"));
        }
        create_private_dir(path)?;
        Ok(Home(path.canonicalize().at("resolving", path)?))
    }

    /// Puts the tag there by which programs that make backups leave the home out, or takes it away. A file of that name
    /// which is no tag stays.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub fn tag(&self, is_wanted: bool) -> Result<()> {
        let path = self.0.join("CACHEDIR.TAG");
        match std::fs::read(&path) {
            Err(_) if is_wanted => replace_cache(&path, TAG.as_bytes()),
            Ok(text) if !is_wanted && text.starts_with(SIGNATURE.as_bytes()) => {
                std::fs::remove_file(&path).at("removing", &path)
            }
            _ => Ok(()),
        }
    }

    /// Returns the directory itself, canonical.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory of all workspaces' records.
    pub fn workspaces(&self) -> PathBuf {
        self.0.join("workspaces")
    }
}

/// Returns the real path of a directory. Its last parts need not exist.
///
/// # Errors
/// When the working directory is gone.
pub fn resolved(dir: &Path) -> Result<PathBuf> {
    let mut real = PathBuf::new();
    for part in std::path::absolute(dir).at("resolving", dir)?.components() {
        if part == Component::ParentDir {
            real.pop();
            continue;
        }
        real.push(part);
        if let Ok(found) = real.canonicalize() {
            real = found;
        }
    }
    Ok(real)
}

/// Lists a directory and all directories below it.
fn directories(top: &Path) -> impl Iterator<Item = PathBuf> {
    let mut open = vec![top.to_owned()];
    std::iter::from_fn(move || {
        let dir = open.pop()?;
        // If piton cannot list a directory of its own, it cannot write there either.
        let listing = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        open.extend(
            listing.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
        Some(dir)
    })
}
