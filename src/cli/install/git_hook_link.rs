//! The small programs in piton's home. To that of a hook, a link in a directory of hooks leads; the others have their names in a
//! configuration file of git, or in variables of an agent's commands.
//!
//! A link leads nowhere on another machine and in another container, and once piton's home is gone. git takes it for no hook then,
//! while a program of another kind of machine would make git fail. Each hook has a program of its own: who writes over the hook writes
//! through the link, and that is to concern one repository alone. So has each configuration file: the program goes with its line.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::client_file::ClientFile;
use super::git_hooks::text;
use super::installation::Installation;
use super::notes::Made;
use super::place::GIT;
use crate::checkpoint::Home;
use crate::cli::print;
use crate::error::{IoContext, Result};
use crate::git::door::hooks::{GitHook, program_of, small};
use crate::model::id::{ObjectId, ObjectKind};
use crate::protocol::InstallOutcome;
use crate::sys::fs::aside::put_link;
use crate::sys::fs::durable::{create_private_dir, replace_with_mode};
use crate::sys::process::may_run;

/// The directory of the programs in piton's home.
const DIR: &str = "bin";

/// The mode of a program: who writes over the hook of one repository is not to change it by mistake.
const MODE: u32 = 0o500;

/// The beginning of the name of each program, by which a link to it is known.
const NAME: &str = "piton-git-hook-";

/// The digits that tell the programs of different hooks apart.
const DIGITS: usize = 16;

/// Returns the place of the program of a hook, a configuration file, or piton itself, which gives variables.
///
/// # Errors
/// Returns the errors of hashing.
fn place(home: &Home, file: &Path) -> Result<PathBuf> {
    let id = ObjectId::of(ObjectKind::Blob, file.as_os_str().as_encoded_bytes())?.to_string();
    Ok(home.path().join(DIR).join(format!("{NAME}{}", &id[..DIGITS])))
}

/// Returns true for a link to such a program, whether it leads somewhere or not.
pub(crate) fn is_link(path: &Path) -> bool {
    let is_ours = |target: PathBuf| target.file_name().is_some_and(|name| name.as_bytes().starts_with(NAME.as_bytes()));
    // Anything that cannot be read as a link is none.
    std::fs::read_link(path).is_ok_and(is_ours)
}

/// Returns true if another program has written its own hook through such a link.
fn is_written_over(path: &Path) -> bool {
    is_link(path) && text(path).is_some_and(|text| program_of(&text).is_none())
}

/// Writes the program that variables name, as long as they have git ask a piton; `None` as for [`Installation::small_program`].
///
/// # Errors
/// `permission`, `disk-full`.
pub(crate) fn variables_program(home: &Home, program: &str) -> Result<Option<PathBuf>> {
    let place = place(home, Path::new(program))?;
    small(OsStr::new(program)).map_or(Ok(None), |content| written(home, place, &content))
}

/// Writes a program at its place; `None` where it cannot be run there.
fn written(home: &Home, place: PathBuf, content: &[u8]) -> Result<Option<PathBuf>> {
    if !may_run(&place) || text(&place).is_none_or(|there| there != content) {
        create_private_dir(&home.path().join(DIR))?;
        replace_with_mode(&place, content, MODE)?;
    }
    Ok(may_run(&place).then_some(place))
}

impl Installation<'_> {
    /// Writes the program of a hook or a configuration file, and returns its place; `None` where there is none for this machine, or it
    /// cannot be run there.
    ///
    /// # Errors
    /// `permission`, `disk-full`.
    pub(super) fn small_program(&self, content: Option<Vec<u8>>, path: &Path) -> Result<Option<PathBuf>> {
        let place = place(&self.context.home, path)?;
        let Some(content) = content else { return Ok(None) };
        if self.dry_run { Ok(Some(place)) } else { written(&self.context.home, place, &content) }
    }

    /// Removes the program that variables name.
    ///
    /// # Errors
    /// `permission`.
    pub(super) fn remove_variables_program(&self) -> Result<()> {
        self.remove_program(Path::new(&self.program))
    }

    /// Gives a hook that another program has written through a link a file of its own.
    ///
    /// # Errors
    /// `permission`, `disk-full`.
    pub(super) fn unlinked(&self, path: &Path) -> Result<()> {
        if self.dry_run || !is_written_over(path) {
            return Ok(());
        }
        let program = std::fs::read_link(path).at("reading the link", path)?;
        let facts = path.metadata().at("checking", path)?;
        let content = std::fs::read(path).at("reading", path)?;
        // The mode that a new file would have had, but for the permission to run it.
        let mode = if facts.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
        replace_with_mode(path, &content, mode)?;
        std::fs::remove_file(&program).at("removing", &program)
    }

    /// Puts a link to the program in the place of a hook, which is free or has a hook of piton's own.
    ///
    /// # Errors
    /// As [`Installation::hook_program`].
    pub(super) fn link_in(&mut self, path: &Path, program: &Path) -> Result<()> {
        let done = match std::fs::read_link(path) {
            Ok(target) if target == program => InstallOutcome::Unchanged,
            _ if path.symlink_metadata().is_ok() => InstallOutcome::Changed,
            _ => InstallOutcome::Created,
        };
        if self.dry_run && done != InstallOutcome::Unchanged && !self.context.json {
            print::data(&format!("{} -> {}\n", print::path(path), print::path(program)))?;
        }
        if !self.dry_run && done != InstallOutcome::Unchanged {
            Made::of(&self.context.home).create(path.parent().unwrap_or(path), 0o755)?;
            let there = ClientFile::read_bytes(path)?;
            let is_as_made = there.bytes().is_none_or(|text| is_link(path) || is_unchanged(text));
            if !is_as_made {
                there.remove_whole(&self.context.home)?;
            }
            put_link(program, path)?;
        }
        self.tell(GIT, done, path)
    }

    /// Takes such a link out, with its program.
    ///
    /// # Errors
    /// `permission`.
    pub(super) fn link_out(&mut self, path: &Path) -> Result<()> {
        if !self.dry_run {
            std::fs::remove_file(path).at("removing", path)?;
            self.remove_program(path)?;
        }
        self.tell(GIT, InstallOutcome::Removed, path)
    }

    /// Removes the program of a file, unless that is a hook that is a link to it.
    ///
    /// # Errors
    /// `permission`.
    pub(super) fn remove_program(&self, path: &Path) -> Result<()> {
        if self.dry_run || is_link(path) {
            return Ok(());
        }
        let program = place(&self.context.home, path)?;
        match std::fs::remove_file(&program) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            removed => removed.at("removing", &program)?,
        }
        // It stays where another hook has its program.
        let _ = std::fs::remove_dir(self.context.home.path().join(DIR));
        Ok(())
    }
}

/// Returns true for a script of piton's that nobody has changed.
fn is_unchanged(text: &[u8]) -> bool {
    let program = program_of(text).unwrap_or_default();
    GitHook::ALL.iter().any(|hook| hook.script(&program) == text || hook.program(&program).as_deref() == Some(text))
}
