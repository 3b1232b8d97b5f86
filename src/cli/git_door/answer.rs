//! The answer to a git that asks which files have changed (`git.fsmonitor_answers`).
//!
//! With `all`, the default, neither a socket nor a parser of settings is used. Then a git that destroys nothing is mostly answered by the
//! small program, which decides by the same rules (`hooks/git/hook.rs`). With `paths`, the daemon is asked, which watches the work
//! tree. A git that rewrites files is told everything all the same: it is to see itself what it overwrites.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::caller;
use crate::checkpoint::Home;
use crate::doors::socket::Link;
use crate::git::line::GitLine;
use crate::model::policy::GitAnswers;
use crate::protocol::GitChangedReply;
use crate::settings::{self, WORKSPACE_FILE};

/// The token where nobody watches.
const NO_TOKEN: &str = "piton";

/// The longest time for which git waits for paths.
const PATIENCE: Duration = Duration::from_millis(300);

/// The name by which the index has a cache of untracked files.
const CACHE: &[u8] = b"UNTR";

/// The name of the key in its section, and the end of its variable's name.
const KEY: &str = "fsmonitor_answers";

/// The variable of the key.
const VARIABLE: &str = "PITON_GIT_FSMONITOR_ANSWERS";

/// The longest settings file.
const MAX_SETTINGS: u64 = 1 << 20;

/// Variables with which git works on another repository than the one that is found from its work tree.
const ASTRAY: &[&str] = &["GIT_COMMON_DIR", "GIT_WORK_TREE"];

/// The file whose time tells when a daemon was last started for git.
const SUMMONED: &str = "daemon/summoned";

/// The time after which a daemon that did not come is started once more.
const AGAIN: Duration = Duration::from_secs(10);

/// Returns the answer: a token, and the changed paths or `/` for everything, each with an end of its own.
///
/// git keeps the token together with its cache of untracked files. Where it is told that everything may have changed, it does not
/// take that into the cache, but it takes the token. So it gets a newer one only if it looks at all directories now, or has no such cache.
pub(super) fn to_git(token: &str) -> String {
    let Some(reply) = changed(token) else { return joined(NO_TOKEN, vec!["/".to_owned()]) };
    let line = caller::line();
    let is_quiet = line.as_ref().is_some_and(GitLine::is_quiet);
    match reply {
        GitChangedReply { token: Some(now), everything: None, paths } if is_quiet => joined(&now, paths),
        GitChangedReply { token: Some(now), .. }
            if is_quiet && (line.is_some_and(|line| line.looks_everywhere() && !has_variables()) || !has_cache()) =>
        {
            joined(&now, vec!["/".to_owned()])
        }
        _ => joined(token, vec!["/".to_owned()]),
    }
}

fn joined(token: &str, paths: Vec<String>) -> String {
    std::iter::once(token.to_owned()).chain(paths).map(|part| part + "\0").collect()
}

/// Returns true if settings come by variables, as with `git -c`: they may decide on untracked files.
fn has_variables() -> bool {
    let text = |name: &str| std::env::var(name).unwrap_or_default().to_lowercase();
    let decides = |text: &str| text.contains("untracked");
    let count: usize = text("GIT_CONFIG_COUNT").parse().unwrap_or_default();
    decides(&text("GIT_CONFIG_PARAMETERS")) || (0..count).any(|at| decides(&text(&format!("GIT_CONFIG_KEY_{at}"))))
}

/// Returns true if git's index here may have a cache of untracked files.
fn has_cache() -> bool {
    let is_own = std::env::var_os("GIT_INDEX_FILE").is_none();
    let index = git_dir().filter(|_| is_own).and_then(|dir| std::fs::read(dir.join("index")).ok());
    index.is_none_or(|index| index.windows(CACHE.len()).any(|part| part == CACHE))
}

/// Returns the git directory that is found from this directory, the top of a work tree.
fn git_dir() -> Option<PathBuf> {
    let found = Path::new(".git").canonicalize().ok()?;
    if found.is_dir() {
        return Some(found);
    }
    let text = std::fs::read_to_string(&found).ok()?;
    Path::new(text.strip_prefix("gitdir: ")?.trim_end_matches('\n')).canonicalize().ok()
}

/// Returns the daemon's answer, which is empty if none came in time; `None` where it is not to be asked.
fn changed(token: &str) -> Option<GitChangedReply> {
    // git calls its hooks at the top of the work tree.
    let top = std::env::current_dir().and_then(|dir| dir.canonicalize()).ok()?;
    if !is_mentioned(&top) || ASTRAY.iter().any(|name| std::env::var_os(name).is_some()) {
        return None;
    }
    // In a linked work tree, git itself sets the variable.
    if let Some(dir) = std::env::var_os("GIT_DIR") {
        Path::new(&dir).canonicalize().ok().filter(|dir| git_dir().as_ref() == Some(dir))?;
    }
    Some(asked(&top, token).unwrap_or_default())
}

fn asked(top: &Path, token: &str) -> Option<GitChangedReply> {
    let until = Instant::now() + PATIENCE;
    let home = Home::locate().ok()?;
    let Some(mut link) = Link::to_running_by(&home, until).ok()? else {
        summon(&home, top);
        return None;
    };
    link.git_changed(top, token, until)
}

/// Returns true if a layer of the settings may hold the key.
fn is_mentioned(top: &Path) -> bool {
    let files = settings::user_file().into_iter().chain([top.join(WORKSPACE_FILE)]);
    let mentions = |text: Vec<u8>| text.windows(KEY.len()).any(|part| part == KEY.as_bytes());
    // A pipe of that name is no settings file, and reading it could last.
    let is_read = |file: &PathBuf| file.metadata().is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_SETTINGS);
    std::env::var_os(VARIABLE).is_some() || files.filter(is_read).any(|file| std::fs::read(file).is_ok_and(mentions))
}

/// Has the daemon start for the next question, if the settings want paths here.
fn summon(home: &Home, top: &Path) {
    let mark = home.path().join(SUMMONED);
    let is_fresh = |file: std::fs::Metadata| file.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age < AGAIN));
    if mark.metadata().is_ok_and(is_fresh) {
        return;
    }
    let is_wanted = settings::load(Some(top), home.path(), &[]);
    if is_wanted.is_ok_and(|read| read.policy.git_answers == GitAnswers::Paths) {
        // Without it, git looks itself.
        if let Err(error) = Link::summon(home).and_then(|()| crate::sys::fs::durable::replace_file(&mark, b"")) {
            tracing::debug!(%error, "no daemon for git");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_program_knows_the_same_words() {
        let source = include_str!("../../../hooks/git/hook.rs");
        let answer = joined(NO_TOKEN, vec!["/".to_owned()]).replace('\0', "\\0");
        for text in [&answer, KEY, &format!("{VARIABLE}="), WORKSPACE_FILE, "/piton/config.yaml"] {
            assert!(source.contains(&format!("b\"{text}\"")), "{text}");
        }
    }
}
