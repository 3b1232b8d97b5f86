//! The two files in which a person changes settings, and how they are written.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::context::Context;
use crate::error::{Code, Error, IoContext, Result};
use crate::settings::change::SettingsScope;
use crate::settings::{WORKSPACE_FILE, user_file};
use crate::sys::fs::durable::{create_private_dir, replace_kept, replace_with_mode};

/// A settings file that a verb changes.
pub(super) struct SettingsFile {
    pub path: PathBuf,
    pub scope: SettingsScope,
}

impl SettingsFile {
    /// Returns the user's own file; with `workspace` the one of that workspace, with `.` of the one around the working directory.
    ///
    /// # Errors
    /// `bad-request` without a home directory; `bad-path` for what is no directory of a workspace.
    pub(super) fn of(context: &mut Context, workspace: Option<&Path>) -> Result<SettingsFile> {
        let Some(dir) = workspace else {
            let path = user_file().ok_or_else(|| {
                let text = "there is no home directory, so you have no settings file";
                Error::new(Code::BadRequest, text).hint("set HOME or XDG_CONFIG_HOME")
            })?;
            return Ok(SettingsFile { path, scope: SettingsScope::User });
        };
        if dir.as_os_str() == OsStr::new(".") {
            context.use_surrounding_workspace();
        }
        let root = context.root()?;
        if context.is_outside() || !root.is_dir() {
            return Err(Error::new(Code::BadPath, "this is not the directory of a workspace").path(dir).hint(
                "for the workspace that contains the working directory, run `piton config set KEY VALUE --workspace`",
            ));
        }
        Ok(SettingsFile { path: root.join(WORKSPACE_FILE), scope: SettingsScope::Workspace })
    }

    /// Replaces the content, which was `before`. A link to the user's file stays one.
    ///
    /// # Errors
    /// `stale-selection` if another program has changed the file; `bad-path` for a link that leads nowhere; I/O errors. The file is whole
    /// in every case.
    pub(super) fn write(&self, before: Option<&str>, after: &str) -> Result<()> {
        let (real, facts) = match self.path.canonicalize() {
            Ok(real) => (real.clone(), Some(real.metadata().at("reading the status of", &real)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if self.path.is_symlink() {
                    return Err(Error::new(Code::BadPath, "the link leads nowhere").path(&self.path).hint("remove it"));
                }
                (self.path.clone(), None)
            }
            Err(error) => return Err(error).at("resolving", &self.path),
        };
        if facts.is_some() != before.is_some() || before.is_some_and(|before| !has_content(&real, before)) {
            return Err(Error::new(Code::StaleSelection, "another program has just changed the file")
                .path(&self.path)
                .hint("try again"));
        }
        match facts {
            Some(facts) => replace_kept(&real, after.as_bytes(), &facts),
            None => {
                create_private_dir(real.parent().unwrap_or(Path::new("/")))?;
                // A workspace's file is for all who work there.
                let mode = if self.scope == SettingsScope::User { 0o600 } else { 0o644 };
                replace_with_mode(&real, after.as_bytes(), mode)
            }
        }
    }
}

fn has_content(path: &Path, content: &str) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes == content.as_bytes())
}
