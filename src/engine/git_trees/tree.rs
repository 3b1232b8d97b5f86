//! One work tree under a watch of its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::log::ChangeLog;
use super::names::ChangedNames;
use super::survey::{GIT, linked};
use super::{Doubt, TreeAnswer, everything};
use crate::git::door::is_off;
use crate::git::users::{UsersFiles, UsersGit};
use crate::model::change::{Changes, Clock, Dirty, Why};
use crate::model::path::RelPath;
use crate::sys::fs::mark::FileMark;
use crate::watch::{Options, Watcher};

/// The beginning of a token.
const TOKEN: &str = "piton:";

/// The longest time that the first watches may take at once.
const START: Duration = Duration::from_secs(30);

/// The most directories that git leaves out and that are told each time.
const MOST_IGNORED: usize = 2_000;

/// A work tree whose changes are known since a moment.
pub(super) struct WatchedTree {
    top: PathBuf,
    watcher: Watcher,
    /// The moment up to which the watcher was asked.
    clock: Clock,
    /// The number that no other watched tree has.
    epoch: u64,
    log: ChangeLog,
    /// Directories that git leaves out, and that have no watches.
    ignored: BTreeSet<RelPath>,
    /// Files with several names.
    linked: BTreeSet<RelPath>,
    /// Files outside of the tree that decide on what git leaves out.
    outside: Vec<(PathBuf, Option<FileMark>)>,
    ready: Instant,
    took: Duration,
}

impl WatchedTree {
    /// Watches a work tree.
    ///
    /// # Errors
    /// The reason why git cannot be answered with paths there.
    pub(super) fn start(top: &Path, cookies: &Path) -> Result<WatchedTree, String> {
        let began = Instant::now();
        let git = UsersGit::at(top);
        let text = |error: crate::error::Error| error.text();
        let repository = git.repository().map_err(text)?;
        if repository.top != top {
            return Err(format!("the work tree's top is {}", repository.top.display()));
        }
        let mut files: Vec<PathBuf> = ["info/exclude", "config"].map(|name| repository.common.join(name)).into();
        files.extend(users_files());
        files.extend(git.config_files().map_err(text)?);
        files.sort_unstable();
        files.dedup();
        let outside = files.into_iter().map(|file| Ok((file.clone(), FileMark::behind(&file)?)));
        let outside = outside.collect::<crate::error::Result<Vec<_>>>().map_err(text)?;
        let folds = git.settings("core.ignorecase", UsersFiles::All).map_err(text)?;
        if folds.last().is_some_and(|setting| !is_off(&setting.value)) {
            return Err("`core.ignorecase` is set".to_owned());
        }
        let shows = git.settings("status.showUntrackedFiles", UsersFiles::All).map_err(text)?;
        if shows.last().is_some_and(|setting| setting.value != "normal") {
            return Err("`status.showUntrackedFiles` is set".to_owned());
        }
        let ignored = ignored(&git)?;
        let options = Options { start_within: START, ..Options::new(cookies) };
        let rules = |dir: &RelPath| !ignored.contains(dir);
        let mut watcher = Watcher::start(top, &rules, options).map_err(|refusal| refusal.to_string())?;
        let (clock, _) = watcher.sync(Clock::default(), &rules, Instant::now() + START);
        // Only now is every change an event.
        if self::ignored(&git)? != ignored {
            return Err("ignore rules have changed in the meantime".to_owned());
        }
        let linked = linked(top, &ignored)?;
        let epoch = clock.watcher();
        let (top, log) = (top.to_owned(), ChangeLog::default());
        let (ready, took) = (Instant::now(), began.elapsed());
        Ok(WatchedTree { top, watcher, clock, epoch, log, ignored, linked, outside, ready, took })
    }

    /// Returns when it was made, and how long that took.
    pub(super) fn made(&self) -> (Instant, Duration) {
        (self.ready, self.took)
    }

    /// Answers a git.
    ///
    /// # Errors
    /// The reason why the tree has to be watched anew.
    pub(super) fn answer(&mut self, token: &str, deadline: Instant) -> Result<TreeAnswer, String> {
        let stands = |(file, mark): &(PathBuf, _)| FileMark::behind(file).is_ok_and(|now| now == *mark);
        if !self.outside.iter().all(stands) {
            return Err("git's configuration or excludes have changed".to_owned());
        }
        let ignored = &self.ignored;
        let (clock, changes) = self.watcher.sync(self.clock, &|dir| !ignored.contains(dir), deadline);
        let changed = match changes {
            Changes::Paths(changed) => changed,
            // The clock stays, so that a later question is told of what comes late.
            Changes::Everything(Why::Late) => return Ok(everything(Some(self.token()), &Why::Late.to_string())),
            Changes::Everything(why) => return Err(why.to_string()),
        };
        self.clock = clock;
        self.note(&changed)?;
        let token_now = self.token();
        let Some(since) = self.look_of(token) else {
            return Ok(everything(Some(token_now), "the token is from another watcher"));
        };
        let mut names = ChangedNames::new(&self.top, &self.ignored, &self.linked);
        match self.log.since(since).try_for_each(|(path, reach)| names.add(path, reach)) {
            Ok(()) => Ok(TreeAnswer { token: Some(token_now), paths: Ok(names.into_names()) }),
            Err(Doubt::Once(why)) => Ok(everything(Some(token_now), &why)),
            Err(Doubt::Outdated(why)) => Err(why),
        }
    }

    /// Notes changed paths.
    fn note(&mut self, changed: &Dirty) -> Result<(), String> {
        let is_index = |path: &RelPath| path.as_bytes() == b".git/index";
        if let Some(rules) = changed.rule_files().find(|path| !is_index(path)) {
            return Err(format!("{} has changed", rules.display()));
        }
        let is_inside = |path: &RelPath| path.components().any(|name| name == GIT);
        if let Some(path) = changed.iter().map(|(path, _)| path).find(|path| is_inside(path) && !is_index(path)) {
            return Err(format!("{} has changed", path.display()));
        }
        let told = changed.iter().filter(|(path, _)| !is_inside(path));
        if self.log.note(told) { Ok(()) } else { Err("too many paths have changed".to_owned()) }
    }

    fn token(&self) -> String {
        format!("{TOKEN}{:016x}:{}", self.epoch, self.log.looks())
    }

    /// Returns the look at whose end a token was given, if it is one of this watcher.
    fn look_of(&self, token: &str) -> Option<u64> {
        let (epoch, look) = token.strip_prefix(TOKEN)?.split_once(':')?;
        let is_own = u64::from_str_radix(epoch, 16) == Ok(self.epoch);
        look.parse().ok().filter(|look| is_own && *look <= self.log.looks())
    }
}

/// Returns the configuration files of git outside of repositories, where they usually are.
fn users_files() -> Vec<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = std::env::home_dir().unwrap_or_default();
    let own = named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("git/config");
    let usual = [home.join(".gitconfig"), own, PathBuf::from("/etc/gitconfig")];
    named("GIT_CONFIG_GLOBAL").into_iter().chain(named("GIT_CONFIG_SYSTEM")).chain(usual).collect()
}

fn ignored(git: &UsersGit) -> Result<BTreeSet<RelPath>, String> {
    let dirs = git.ignored_dirs().map_err(|error| error.text())?;
    if dirs.len() > MOST_IGNORED {
        return Err(format!("git ignores more than {MOST_IGNORED} directories"));
    }
    dirs.iter().map(|dir| RelPath::parse(dir).map_err(|error| error.text())).collect()
}
