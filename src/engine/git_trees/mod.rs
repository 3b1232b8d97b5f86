//! Work trees of git whose changes piton tells git itself (`git.fsmonitor_answers: paths`, `docs/GIT.md`).
//!
//! git asks by a token for the paths that have changed since. Each tree has a watcher of its own, which watches all that git looks
//! at: what piton leaves out of checkpoints may be what git has to see. It is made in the background, and until it is there the answer
//! is that everything may have changed.
//!
//! *Invariant:* in doubt the answer is everything. *Invariant:* a token counts for the watcher that gave it, and for no other.

mod log;
mod names;
mod survey;
mod tree;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::tree::WatchedTree;
use crate::checkpoint::Home;
use crate::model::policy::GitAnswers;
use crate::settings;
use crate::settings::marks::SettingsMarks;

/// The longest wait for events that are on their way. A git that waits gives up soon after.
const PATIENCE: Duration = Duration::from_millis(200);

/// The time until a tree that cannot be watched is tried again.
const REST: Duration = Duration::from_secs(10);

/// A tree is watched anew at most for this part of the time.
const SHARE: u32 = 4;

/// The time after which a tree that no git has asked for is let go.
const UNASKED: Duration = Duration::from_hours(1);

/// The answer to a git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeAnswer {
    /// The moment of the answer, for the next question; `None` if there is none to begin from.
    pub token: Option<String>,
    /// The paths, a directory with a `/` at its end; or the reason why it may be everything.
    pub paths: Result<Vec<Vec<u8>>, String>,
}

/// The reason why no paths are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Doubt {
    /// They are not known this time.
    Once(String),
    /// The watcher does not fit the tree any more.
    Outdated(String),
}

/// The trees that gits have asked for.
pub struct GitTrees {
    home: Home,
    flags: Vec<(String, String)>,
    trees: Mutex<HashMap<PathBuf, Arc<Mutex<GitTree>>>>,
}

/// One tree.
struct GitTree {
    asked: Instant,
    /// The setting, and the marks by which an edit of it is noticed.
    setting: Option<(SettingsMarks, GitAnswers)>,
    stage: Stage,
}

/// The stage of a tree's watcher.
enum Stage {
    /// There is none until then, for this reason.
    Resting(Instant, String),
    /// It is being made.
    Starting(JoinHandle<Result<WatchedTree, String>>),
    Watching(Box<WatchedTree>),
}

impl GitTrees {
    /// Makes an empty set.
    pub(super) fn new(home: Home, flags: Vec<(String, String)>) -> GitTrees {
        GitTrees { home, flags, trees: Mutex::default() }
    }

    /// Answers a git in the work tree with this top.
    pub fn answer(&self, top: &Path, token: &str) -> TreeAnswer {
        let tree = {
            let mut trees = locked(&self.trees);
            // One that is locked is being asked for.
            trees.retain(|_, tree| tree.try_lock().map_or(true, |tree| tree.asked.elapsed() < UNASKED));
            Arc::clone(trees.entry(top.to_owned()).or_default())
        };
        let mut tree = locked(&tree);
        tree.asked = Instant::now();
        if tree.setting(top, self) == GitAnswers::All {
            tree.stage = Stage::default();
            return everything(None, "`git.fsmonitor_answers` is `all` here");
        }
        tree.answer(top, token, &self.home)
    }
}

impl Default for GitTree {
    fn default() -> GitTree {
        GitTree { asked: Instant::now(), setting: None, stage: Stage::default() }
    }
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::Resting(Instant::now(), "nothing is watched yet".to_owned())
    }
}

impl GitTree {
    fn setting(&mut self, top: &Path, trees: &GitTrees) -> GitAnswers {
        let marks = SettingsMarks::of(top, trees.home.path());
        if let Some((known, answers)) = &self.setting
            && known.stand(&marks)
        {
            return *answers;
        }
        let read = settings::load(Some(top), trees.home.path(), &trees.flags);
        let answers = read.map_or(GitAnswers::All, |read| read.policy.git_answers);
        self.setting = Some((marks, answers));
        answers
    }

    fn answer(&mut self, top: &Path, token: &str, home: &Home) -> TreeAnswer {
        self.advance(top, home);
        let why = match &mut self.stage {
            Stage::Resting(_, why) => why.clone(),
            Stage::Starting(_) => "piton is starting to watch the work tree".to_owned(),
            Stage::Watching(tree) => match tree.answer(token, Instant::now() + PATIENCE) {
                Ok(answer) => return answer,
                Err(why) => {
                    let (ready, took) = tree.made();
                    self.stage = Stage::Resting(ready + took * SHARE, why.clone());
                    self.advance(top, home);
                    why
                }
            },
        };
        everything(None, &why)
    }

    /// Goes to the next stage, if its time has come.
    fn advance(&mut self, top: &Path, home: &Home) {
        match std::mem::take(&mut self.stage) {
            Stage::Resting(until, _) if Instant::now() >= until => {
                let (top, cookies) = (top.to_owned(), home.path().join("daemon/cookies"));
                let thread = std::thread::Builder::new().name("git tree".to_owned());
                self.stage = match thread.spawn(move || WatchedTree::start(&top, &cookies)) {
                    Ok(thread) => Stage::Starting(thread),
                    Err(error) => Stage::Resting(Instant::now() + REST, error.to_string()),
                };
            }
            Stage::Starting(thread) if thread.is_finished() => {
                let made = thread.join().unwrap_or_else(|_| Err("a bug ended the watcher's start".to_owned()));
                self.stage = match made {
                    Ok(tree) => Stage::Watching(Box::new(tree)),
                    Err(why) => {
                        tracing::info!(top = %top.display(), why, "piton does not list changed paths for git");
                        Stage::Resting(Instant::now() + REST, why)
                    }
                };
            }
            same => self.stage = same,
        }
    }
}

fn everything(token: Option<String>, why: &str) -> TreeAnswer {
    TreeAnswer { token, paths: Err(why.to_owned()) }
}

/// Locks it. After a bug in another question it is used all the same: a tree's stage is replaced as a whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
