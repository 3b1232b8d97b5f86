//! `piton install git`: the setting and the hooks by which the user's own git asks piton, in one repository or for the user.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::client_file::ClientFile;
use super::git_hooks::{are_in, hook_in, hooks_out};
use super::installation::{Direction, FileChange, Installation};
use super::notes::GitDoors;
use super::place::{GIT, GitScope, home, variable};
use crate::cli::print;
use crate::cli::print::Consent;
use crate::error::{Code, Error, Result};
use crate::git::door::config::{with_line, without_line};
use crate::git::door::hooks::{GitHook, small};
use crate::git::door::{KEY, is_off, is_pitons, program_of, value};
use crate::git::users::{UsersFiles, UsersGit, UsersRepository, UsersSetting, resolved};
use crate::model::text::printable;
use crate::sys::process::user;

/// The first git that has both hooks, and the second form of the question.
pub(crate) const OLDEST: (u32, u32) = (2, 28);

impl Installation<'_> {
    /// Puts the git door in, or takes it out.
    pub(super) fn git(&mut self, scope: &GitScope) -> Result<()> {
        let git = UsersGit::at(&scope.dir);
        require_version(&git)?;
        match (self.direction, scope.global) {
            (Direction::In, false) => self.repository_in(scope, &git.repository()?),
            (Direction::Out, false) => self.repository_out(scope, &git.repository()?),
            (Direction::In, true) => self.global_in(scope, &git),
            (Direction::Out, true) => self.global_out(&git),
        }
    }

    fn repository_in(&mut self, scope: &GitScope, repository: &UsersRepository) -> Result<()> {
        let git = UsersGit::at(&repository.top);
        let values = git.settings(KEY, UsersFiles::All)?;
        refuse_others(&values, &["local", "worktree"])?;
        for file in worktree_files(&repository.common) {
            refuse_others(&git.settings(KEY, UsersFiles::One(&file))?, &["local", "worktree", "command"])?;
        }
        let config = repository.common.join("config");
        // With the user's setting, one of the repository would be the same once more.
        let is_global = values.last().is_some_and(|last| last.scope == "global" && self.is_current(last));
        if !is_global {
            // Where that cannot be done, nobody is to be asked.
            self.setting(&git, &config, None)?;
        }
        let consent = self.consent(repository, scope.yes)?;
        let is_own = is_own(repository, &git)?;
        if !is_global {
            self.setting_in(&git, &config, is_own)?;
        }
        match consent {
            None => {
                self.hooks_in(&repository.hooks, is_own && repository.real_hooks().starts_with(&repository.common));
                Ok(())
            }
            Some(refused) => {
                self.worked = true;
                Err(refused)
            }
        }
    }

    fn global_in(&mut self, scope: &GitScope, git: &UsersGit) -> Result<()> {
        refuse_others(&git.settings(KEY, UsersFiles::Global)?, &["global"])?;
        let config = global_file()?;
        self.setting(git, &config, None)?;
        self.setting_in(git, &config, true)?;
        // Where all repositories have one directory of hooks, its hooks belong to this.
        let hooks = git.global_path("core.hooksPath")?.filter(|dir| dir.is_absolute());
        let Some(hooks) = hooks else {
            if !self.dry_run {
                print::say(
                    "piton: git calls piton in all repositories. To also install a repository's hooks, run \
                     `piton install git` there",
                );
            }
            return Ok(());
        };
        match self.committed(&hooks, scope.yes)? {
            None => {
                self.hooks_in(&hooks, false);
                Ok(())
            }
            Some(refused) => {
                self.worked = true;
                Err(refused)
            }
        }
    }

    /// Puts the setting into a file. `is_own` is true for one that is of one user and one machine.
    fn setting_in(&mut self, git: &UsersGit, config: &Path, is_own: bool) -> Result<()> {
        self.noted(config)?;
        let content = if is_own { small(OsStr::new(&self.program)) } else { None };
        let small = self.small_program(content, config).unwrap_or_else(|error| {
            print::say(&format!("piton: git will start piton each time, which is slower: {}", error.text()));
            None
        });
        let change = self.setting(git, config, small.as_deref())?;
        self.carry_out(GIT, &change)?;
        if small.is_none() { self.remove_program(config) } else { Ok(()) }
    }

    /// Plans the setting in a file, and has git read it before it is written.
    fn setting(&self, git: &UsersGit, config: &Path, small: Option<&Path>) -> Result<FileChange> {
        refuse_locked(config)?;
        let there = ClientFile::read_bytes(config)?;
        let value = value(OsStr::new(&self.program), small.map(Path::as_os_str));
        let after = with_line(&value, there.bytes().unwrap_or_default()).map_err(|error| error.path(config))?;
        let read = git.settings(KEY, UsersFiles::Text(&after))?;
        if read.last().is_none_or(|last| last.value != value) {
            return Err(Error::new(Code::Conflict, "git would not parse the setting as intended")
                .path(config)
                .hint(format!("check the lines that contain `{KEY}`; nothing was changed")));
        }
        FileChange::of(there, Some(after), 0o644)
    }

    /// Puts the hooks into a directory. `is_own` is true for one that is of one user and one machine. A hook that cannot be put in is
    /// told, and the others go in: each of them is of use alone.
    fn hooks_in(&mut self, dir: &Path, is_own: bool) {
        for hook in GitHook::ALL {
            if let Err(error) = self.put_in(dir, hook, is_own) {
                self.hook_failed(error);
            }
        }
    }

    fn put_in(&mut self, dir: &Path, hook: GitHook, is_own: bool) -> Result<()> {
        let path = dir.join(hook.name());
        self.noted(&path)?;
        self.unlinked(&path)?;
        let program = self.program.clone();
        let content = if is_own { hook.program(OsStr::new(&program)) } else { None };
        let small = self.small_program(content, &path).unwrap_or_else(|error| {
            print::say(&format!("piton: the hook {} will be a script, which is slower: {}", hook.name(), error.text()));
            None
        });
        hook_in(self, dir, hook, OsStr::new(&program), small.as_deref())?;
        self.remove_program(&path)
    }

    /// Tells that a hook is not as it is to be, and goes on: all else is done.
    fn hook_failed(&mut self, error: Error) {
        self.worked = true;
        self.fail(GIT, error);
    }

    fn repository_out(&mut self, scope: &GitScope, repository: &UsersRepository) -> Result<()> {
        let git = UsersGit::at(&repository.top);
        self.setting_out(&repository.common.join("config"))?;
        let own = repository.common.join("hooks");
        // Its hooks may have been elsewhere when they were put in.
        let noted = GitDoors::of(&self.context.home).all()?;
        let noted =
            noted.into_iter().filter(|path| path.file_name().is_some_and(|name| GitHook::named(name).is_some()));
        let mut dirs: Vec<PathBuf> = noted.filter_map(|path| path.parent().map(Path::to_owned)).collect();
        dirs.retain(|dir| dir.starts_with(&repository.top) || dir.starts_with(&repository.common));
        dirs.push(own);
        let is_shared = is_outside(repository, &repository.real_hooks());
        dirs.push(repository.hooks.clone());
        // Any of them may be a link that leads out of the repository.
        dirs.retain(|dir| !is_outside(repository, &resolved(dir)));
        dirs.sort();
        dirs.dedup();
        for dir in dirs {
            self.hooks_out(&dir)?;
        }
        if !self.dry_run
            && let Some(last) = git.settings(KEY, UsersFiles::All)?.last()
            && program_of(&last.value).is_some()
        {
            let file = print::path(&last.file);
            print::say(&format!(
                "piton: git still calls piton here, because of {file}. To stop that, run `piton uninstall git --global`"
            ));
        }
        if is_shared && are_in(&repository.hooks) {
            match self.agreed(&shared(&repository.real_hooks()), scope.yes) {
                None => self.hooks_out(&repository.hooks)?,
                Some(refused) => {
                    self.worked = true;
                    return Err(refused);
                }
            }
        }
        Ok(())
    }

    fn global_out(&mut self, git: &UsersGit) -> Result<()> {
        self.setting_out(&global_file()?)?;
        match git.global_path("core.hooksPath")?.filter(|dir| dir.is_absolute()) {
            Some(hooks) => self.hooks_out(&hooks),
            None => Ok(()),
        }
    }

    /// Takes out what was put into a file: the setting, or a hook. An error is told, and kept for the end.
    pub(super) fn git_file_out(&mut self, path: &Path) {
        let done = match path.file_name().and_then(GitHook::named) {
            Some(_) => self.hooks_out(path.parent().unwrap_or(path)),
            None => self.setting_out(path),
        };
        match done {
            Ok(()) => self.worked = true,
            Err(error) => self.fail(GIT, error),
        }
    }

    fn setting_out(&mut self, config: &Path) -> Result<()> {
        let there = ClientFile::read_bytes(config)?;
        if let Some(text) = there.bytes() {
            let after = without_line(text);
            if after != text {
                refuse_locked(config)?;
                let after = if after.is_empty() { self.emptied(&there)? } else { Some(after) };
                self.carry_out(GIT, &FileChange::of(there, after, 0o644)?)?;
            }
        }
        self.remove_program(config)?;
        self.forgotten(config)
    }

    fn hooks_out(&mut self, dir: &Path) -> Result<()> {
        for hook in GitHook::ALL {
            match hooks_out(self, dir, hook) {
                Ok(()) => self.forgotten(&dir.join(hook.name()))?,
                Err(error) => self.hook_failed(error),
            }
        }
        Ok(())
    }

    fn noted(&self, path: &Path) -> Result<()> {
        if self.dry_run { Ok(()) } else { GitDoors::of(&self.context.home).add(path) }
    }

    fn forgotten(&self, path: &Path) -> Result<()> {
        if self.dry_run { Ok(()) } else { GitDoors::of(&self.context.home).remove(path) }
    }

    fn is_current(&self, setting: &UsersSetting) -> bool {
        program_of(&setting.value).is_some_and(|program| program == self.program.as_str())
    }

    /// Returns the reason for which hooks of a repository stay as they are, if somebody else's have to change and nobody agrees.
    fn consent(&self, repository: &UsersRepository, yes: bool) -> Result<Option<Error>> {
        let hooks = repository.real_hooks();
        if is_outside(repository, &hooks) {
            let refused = self.agreed(&shared(&hooks), yes);
            if refused.is_some() {
                return Ok(refused);
            }
        }
        self.committed(&hooks, yes)
    }

    /// Returns the same for a directory that git would commit.
    fn committed(&self, hooks: &Path, yes: bool) -> Result<Option<Error>> {
        let mut there = hooks.ancestors().filter(|dir| dir.is_dir());
        let Some(dir) = there.next() else { return Ok(None) };
        let git = UsersGit::at(dir);
        // In a `.git`, and outside of all repositories, nothing is committed.
        let Ok(repository) = git.repository() else { return Ok(None) };
        if !hooks.starts_with(&repository.top) {
            return Ok(None);
        }
        for hook in GitHook::ALL {
            if !UsersGit::at(&repository.top).is_ignored(&hooks.join(hook.name()))? {
                let what = format!("the hooks in {} are committed with the project", print::path(hooks));
                return Ok(self.agreed(&what, yes));
            }
        }
        Ok(None)
    }

    fn agreed(&self, what: &str, yes: bool) -> Option<Error> {
        if yes || self.dry_run {
            return None;
        }
        let question = format!("piton: {what}. Change them?");
        let is_agreed = !self.context.json && print::ask(&question) == Consent::Yes;
        (!is_agreed).then(|| {
            Error::new(Code::Conflict, format!("{what}, and were not changed"))
                .hint("to change them, add --yes; everything else was done")
        })
    }
}

/// Refuses a git that is too old.
fn require_version(git: &UsersGit) -> Result<()> {
    match git.version()? {
        Some(version) if version < OLDEST => {
            let (is, wanted) = (dotted(version), dotted(OLDEST));
            Err(Error::new(Code::Internal, format!("git is version {is}, which is too old to call piton"))
                .hint(format!("install git {wanted} or later")))
        }
        _ => Ok(()),
    }
}

/// Returns a version for people.
pub(crate) fn dotted((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

/// Refuses where git asks somebody else, or is told in one of these scopes to ask nobody.
fn refuse_others(values: &[UsersSetting], scopes: &[&str]) -> Result<()> {
    let is_other = |setting: &&UsersSetting| {
        !is_pitons(&setting.value) && (!is_off(&setting.value) || scopes.contains(&setting.scope.as_str()))
    };
    let Some(other) = values.iter().find(is_other) else { return Ok(()) };
    let shown = printable(&other.value.to_string_lossy());
    Err(Error::new(Code::Conflict, format!("`{KEY}` is already `{shown}`, and git accepts only one value"))
        .path(&other.file)
        .hint(
            "nothing was changed, because piton does not replace another program's setting; to use piton, remove \
             that setting first",
        ))
}

/// Returns true in a repository whose git asks nobody else.
pub(crate) fn is_open(dir: &Path) -> bool {
    let asked = UsersGit::at(dir).repository().and_then(|repository| {
        let values = UsersGit::at(&repository.top).settings(KEY, UsersFiles::All)?;
        refuse_others(&values, &["local", "worktree"])
    });
    asked.is_ok()
}

/// Returns the files with settings of single work trees, of which git reads one.
fn worktree_files(common: &Path) -> Vec<PathBuf> {
    let linked = std::fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let dirs = std::iter::once(common.to_owned()).chain(linked.map(|entry| entry.path()));
    dirs.map(|dir| dir.join("config.worktree")).filter(|file| file.is_file()).collect()
}

/// Returns true if the git directory of a repository is this user's, and no others are to write there.
fn is_own(repository: &UsersRepository, git: &UsersGit) -> Result<bool> {
    // One that cannot be looked at is not this user's.
    let is_users = repository.common.metadata().is_ok_and(|facts| facts.uid() == user());
    Ok(is_users && git.settings("core.sharedRepository", UsersFiles::All)?.is_empty())
}

/// Returns true if a directory of hooks, with its links resolved, is outside of a repository: other repositories may use it too.
fn is_outside(repository: &UsersRepository, hooks: &Path) -> bool {
    !hooks.starts_with(resolved(&repository.top)) && !hooks.starts_with(&repository.common)
}

fn shared(hooks: &Path) -> String {
    format!("the hooks in {} might be shared with other repositories", print::path(hooks))
}

/// Refuses a file that git itself is writing just now.
fn refuse_locked(config: &Path) -> Result<()> {
    let mut lock = config.canonicalize().unwrap_or_else(|_| config.to_owned()).into_os_string();
    lock.push(".lock");
    if !Path::new(&lock).exists() {
        return Ok(());
    }
    Err(Error::new(Code::Busy, "git is writing this file now")
        .path(config)
        .hint(format!("try again; if no git is running, remove {}", Path::new(&lock).display())))
}

/// Returns the user's own configuration file, as `git config --global` chooses it.
///
/// # Errors
/// `bad-path` where no home directory is known.
pub(crate) fn global_file() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("GIT_CONFIG_GLOBAL") {
        return Ok(PathBuf::from(named));
    }
    let home = home()?;
    let own = home.join(".gitconfig");
    let config = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let further = config.join("git/config");
    Ok(if !own.exists() && further.exists() { further } else { own })
}
