//! Settings of the user's own git, read and never written.

use std::path::{Path, PathBuf};

use git2::{Config, ConfigLevel, Repository, RepositoryOpenFlags};

use crate::sys::libgit2::isolate;

/// Returns a text setting as the user's git has it in the work tree `root`: the repository's own, else the user's. An
/// unreadable file has none.
pub fn setting(root: &Path, key: &str) -> Option<String> {
    isolate();
    let none: [&std::ffi::OsStr; 0] = [];
    let own = Repository::open_ext(root, RepositoryOpenFlags::NO_SEARCH, none).and_then(|repo| repo.config());
    own.and_then(|mut config| config.snapshot()).and_then(|config| config.get_string(key)).ok().or_else(|| {
        let mut config = Config::new().ok()?;
        for (file, level) in user_files().into_iter().zip([ConfigLevel::System, ConfigLevel::XDG, ConfigLevel::Global])
        {
            // A missing file has no settings.
            let _ = config.add_file(&file, level, false);
        }
        config.snapshot().ok()?.get_string(key).ok()
    })
}

fn user_files() -> [PathBuf; 3] {
    let home = std::env::home_dir().unwrap_or_default();
    let base = std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = base.unwrap_or_else(|| home.join(".config"));
    [PathBuf::from("/etc/gitconfig"), base.join("git/config"), home.join(".gitconfig")]
}
