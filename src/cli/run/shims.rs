//! The files that the shells of an agent read when they start, by which each of their commands is judged before it runs.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checkpoint::Home;
use crate::error::Result;
use crate::git;
use crate::sys::fs::durable::{create_private_dir, replace_cache};
use crate::sys::process::own_program;

/// The place of piton's program in the files, with its quotes.
const PROGRAM: &str = "'@PROGRAM@'";

/// The place of the directory of the files, with its quotes.
const DIR: &str = "'@DIR@'";

/// The file that bash reads.
const BASH: (&str, &str) = ("bash_env", include_str!("../../../hooks/shell/run.bash"));

/// The files that zsh reads, in the order in which it does.
const ZSH: [(&str, &str); 5] = [
    (".zshenv", include_str!("../../../hooks/shell/run-zsh/zshenv")),
    (".zprofile", include_str!("../../../hooks/shell/run-zsh/zprofile")),
    (".zshrc", include_str!("../../../hooks/shell/run-zsh/zshrc")),
    (".zlogin", include_str!("../../../hooks/shell/run-zsh/zlogin")),
    (".zlogout", include_str!("../../../hooks/shell/run-zsh/zlogout")),
];

/// The directory of the files, in piton's home. They are the same for each run of one program.
pub(super) struct Shims {
    dir: PathBuf,
}

impl Shims {
    /// Writes the files, where they are not there already.
    ///
    /// # Errors
    /// `disk-full`, `permission`.
    pub(super) fn write(home: &Home) -> Result<Shims> {
        let program = own_program()?;
        let program = String::from_utf8_lossy(&git::sh(program.as_os_str())).into_owned();
        let dir = home.path().join("shims");
        let quoted = String::from_utf8_lossy(&git::sh(dir.as_os_str())).into_owned();
        create_private_dir(&dir)?;
        for (name, template) in [BASH].into_iter().chain(ZSH) {
            // The paths come last, so that nothing in them is taken for a place.
            let parts = template.split(PROGRAM).map(|part| part.replace(DIR, &quoted));
            let text = parts.collect::<Vec<_>>().join(&program);
            let path = dir.join(name);
            if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                replace_cache(&path, text.as_bytes())?;
            }
        }
        Ok(Shims { dir })
    }

    /// Has the shells that a command starts read the files, and those of the user after them.
    pub(super) fn apply(&self, command: &mut Command) {
        let (bash, zsh) = (self.dir.join(BASH.0), &self.dir);
        // Within another run, they name piton's files already.
        let users = |name: &str, own: &Path| {
            std::env::var_os(name).filter(|value| !value.is_empty() && value.as_bytes() != own.as_os_str().as_bytes())
        };
        if let Some(users) = users("BASH_ENV", &bash) {
            command.env("PITON_BASH_ENV", users);
        }
        if let Some(users) = users("ZDOTDIR", zsh) {
            command.env("PITON_ZDOTDIR", users);
        }
        command.env("BASH_ENV", bash).env("ZDOTDIR", zsh);
    }
}
