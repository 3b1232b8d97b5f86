//! The hook that git calls most, as a small program: one file in piton's home, to which links in directories of hooks lead.
//!
//! A link leads nowhere on another machine and in another container, and once piton's home is gone. git takes it for no hook then,
//! while a program of another kind of machine would make git fail.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::installation::Installation;
use super::notes::Made;
use super::place::GIT;
use crate::checkpoint::Home;
use crate::cli::print;
use crate::error::{IoContext, Result};
use crate::git::door::hooks::GitHook;
use crate::protocol::InstallOutcome;
use crate::sys::fs::aside::put_link;
use crate::sys::fs::durable::{create_private_dir, replace_with_mode};
use crate::sys::process::may_run;

/// The directory of the program in piton's home.
const DIR: &str = "bin";

/// The name of the program, by which a link to it is known.
const NAME: &str = "piton-git-hook";

/// Returns the place of the program.
fn place(home: &Home) -> PathBuf {
    home.path().join(DIR).join(NAME)
}

/// Returns true for a link to such a program, whether it leads somewhere or not.
pub(crate) fn is_link(path: &Path) -> bool {
    // Anything that cannot be read as a link is none.
    std::fs::read_link(path).is_ok_and(|target| target.file_name() == Some(OsStr::new(NAME)))
}

impl Installation<'_> {
    /// Writes the program, and returns its place; `None` where there is none for this machine, or it cannot be run there.
    ///
    /// # Errors
    /// `permission`, `disk-full`.
    pub(super) fn hook_program(&self, hook: GitHook) -> Result<Option<PathBuf>> {
        let place = place(&self.context.home);
        let Some(content) = hook.program(OsStr::new(&self.program)) else { return Ok(None) };
        if self.dry_run {
            return Ok(Some(place));
        }
        // One that cannot be read is written anew.
        if !may_run(&place) || std::fs::read(&place).ok().as_ref() != Some(&content) {
            create_private_dir(&self.context.home.path().join(DIR))?;
            replace_with_mode(&place, &content, 0o700)?;
        }
        Ok(may_run(&place).then_some(place))
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
            put_link(program, path)?;
        }
        self.tell(GIT, done, path)
    }

    /// Takes such a link out.
    ///
    /// # Errors
    /// `permission`.
    pub(super) fn link_out(&mut self, path: &Path) -> Result<()> {
        if !self.dry_run {
            std::fs::remove_file(path).at("removing", path)?;
        }
        self.tell(GIT, InstallOutcome::Removed, path)
    }
}

/// Removes the program, once no hook leads to it.
///
/// # Errors
/// `permission`.
pub(super) fn remove_program(home: &Home) -> Result<()> {
    let place = place(home);
    match std::fs::remove_file(&place) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        removed => removed.at("removing", &place)?,
    }
    // It stays where something else is in it.
    let _ = std::fs::remove_dir(home.path().join(DIR));
    Ok(())
}
