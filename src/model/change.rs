//! Changes since a time: the words that the watcher and the scan share, so that neither need know the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::path::RelPath;

/// A moment in one watcher's life. The default is before every watcher's: since then, everything has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Clock {
    watcher: u64,
    tick: u64,
}

impl Clock {
    /// Returns a moment of the watcher with this number, which is never 0 and never used twice.
    pub fn new(watcher: u64, tick: u64) -> Clock {
        Clock { watcher, tick }
    }

    /// Returns the number of its watcher; 0 for the default.
    pub fn watcher(self) -> u64 {
        self.watcher
    }

    /// Returns the tick, if the clock is one of this watcher; else why nothing can be said since then.
    ///
    /// # Errors
    /// `FirstLook` for the default, `OtherWatcher` for a clock of any other.
    pub fn tick_of(self, watcher: u64) -> Result<u64, Why> {
        match self.watcher {
            own if own == watcher => Ok(self.tick),
            0 => Err(Why::FirstLook),
            _ => Err(Why::OtherWatcher),
        }
    }
}

/// The part of the tree that a dirty path stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// The path itself: a file, a link, a directory's own permissions, or nothing any more.
    Entry,
    /// The path and all that may be below it.
    Subtree,
}

/// Dirty paths in byte order, none of them below a path whose whole subtree is dirty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    paths: BTreeMap<RelPath, Reach>,
    rule_files: BTreeSet<RelPath>,
}

impl Dirty {
    /// From paths in any order.
    pub fn new(paths: impl IntoIterator<Item = (RelPath, Reach)>) -> Dirty {
        let mut all: BTreeMap<RelPath, Reach> = BTreeMap::new();
        for (path, reach) in paths {
            let widest = all.entry(path).or_insert(reach);
            *widest = (*widest).max(reach);
        }
        let rule_files = all.keys().filter(|path| is_rule_file(path)).cloned().collect();
        let wide = all.iter().filter(|(_, reach)| **reach == Reach::Subtree);
        let wide = Dirty { paths: wide.map(|(path, reach)| (path.clone(), *reach)).collect(), ..Dirty::default() };
        all.retain(|path, _| path.parent().is_none_or(|parent| !wide.covers(&parent)));
        Dirty { paths: all, rule_files }
    }

    /// Returns whether `path` is to be looked at.
    pub fn covers(&self, path: &RelPath) -> bool {
        if self.paths.contains_key(path) {
            return true;
        }
        let mut above = path.parent();
        while let Some(dir) = above {
            if self.paths.get(&dir) == Some(&Reach::Subtree) {
                return true;
            }
            above = dir.parent();
        }
        false
    }

    /// Returns whether anything at or below `dir` is to be looked at, or all of it.
    pub fn touches(&self, dir: &RelPath) -> bool {
        self.covers(dir) || self.paths.range(dir.inside_bound()..).next().is_some_and(|(path, _)| path.starts_with(dir))
    }

    /// Returns the paths in byte order.
    pub fn iter(&self) -> impl Iterator<Item = (&RelPath, Reach)> {
        self.paths.iter().map(|(path, reach)| (path, *reach))
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns both together.
    #[must_use]
    pub fn and(self, later: Dirty) -> Dirty {
        if self.is_empty() {
            return later;
        }
        if later.is_empty() {
            return self;
        }
        let rule_files = self.rule_files.iter().chain(&later.rule_files).cloned().collect();
        Dirty { rule_files, ..Dirty::new(self.paths.into_iter().chain(later.paths)) }
    }

    /// Adds the directories whose whole content changed rule files may show or hide: a capture has to look at them again, although
    /// nothing below them may have changed.
    #[must_use]
    pub fn with_ruled(self) -> Dirty {
        let ruled: Vec<_> = self.rule_files.iter().filter_map(|path| Some((ruled_by(path)?, Reach::Subtree))).collect();
        if ruled.is_empty() { self } else { self.and(Dirty::new(ruled)) }
    }

    /// Returns the files that changed and rule what a capture looks at: ignore files, and what git says beside them.
    /// Listed inside of dirty subtrees too, but not where the whole directory is new.
    pub fn rule_files(&self) -> impl Iterator<Item = &RelPath> {
        self.rule_files.iter()
    }
}

/// Returns whether a path is a `.gitignore`, or the `.git/index` or `.git/info/exclude` of a repository.
pub fn is_rule_file(path: &RelPath) -> bool {
    let ends = |tail: &[u8]| {
        let head = path.as_bytes().strip_suffix(tail);
        head.is_some_and(|head| head.is_empty() || head.ends_with(b"/"))
    };
    ends(b".gitignore") || ends(b".git/index") || ends(b".git/info/exclude")
}

/// Returns the directory whose whole content a changed rule file may show or hide. A changed index shows single paths,
/// and only a reader of it can tell which.
fn ruled_by(path: &RelPath) -> Option<RelPath> {
    if path.name() == b".gitignore" {
        return path.parent();
    }
    let git = path.parent().filter(|_| is_rule_file(path) && path.name() == b"exclude")?.parent()?;
    git.parent()
}

/// The reason why nothing less than everything can be said to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// There is no clock to begin from.
    FirstLook,
    /// The clock is another watcher's, perhaps of an earlier process.
    OtherWatcher,
    /// The changes since that clock were forgotten, because a later one was asked for.
    Forgotten,
    /// The kernel's queue of events was full, and some are lost.
    Overflow,
    /// So many paths changed that they are not kept one by one.
    TooManyPaths,
    /// So many directories were deleted that starting afresh is cheaper than letting go of each watch.
    ManyGone,
    /// A file system below the root was mounted or unmounted.
    Mounts,
    /// The root was moved, deleted or replaced.
    RootMoved,
    /// The root itself cannot be watched any more.
    Uncovered,
    /// The events before the question did not all arrive by the deadline.
    Late,
    /// piton's own directory of cookies cannot be used.
    NoCookie,
    /// The operating system refused to continue.
    Failed,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::FirstLook => "first look",
            Why::OtherWatcher => "the watcher was restarted",
            Why::Forgotten => "a later point in time was already queried",
            Why::Overflow => "the queue of events overflowed",
            Why::TooManyPaths => "too many paths changed",
            Why::ManyGone => "many directories were deleted",
            Why::Mounts => "a file system was mounted or unmounted",
            Why::RootMoved => "the root was moved or deleted",
            Why::Uncovered => "the root cannot be watched",
            Why::Late => "the events did not arrive by the deadline",
            Why::NoCookie => "cannot use the directory of the watcher's marker files",
            Why::Failed => "the operating system refused to watch on",
        })
    }
}

/// The changes since a clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Nothing outside of these paths.
    Paths(Dirty),
    /// Perhaps anything: look at all of it.
    Everything(Why),
}

impl Changes {
    /// No change at all.
    pub fn none() -> Changes {
        Changes::Paths(Dirty::default())
    }

    /// Returns both together. In doubt it is everything, for the reason that was there first.
    #[must_use]
    pub fn and(self, later: Changes) -> Changes {
        match (self, later) {
            (Changes::Everything(why), _) | (_, Changes::Everything(why)) => Changes::Everything(why),
            (Changes::Paths(earlier), Changes::Paths(later)) => Changes::Paths(earlier.and(later)),
        }
    }

    /// Returns whether `path` is to be looked at.
    pub fn covers(&self, path: &RelPath) -> bool {
        match self {
            Changes::Paths(dirty) => dirty.covers(path),
            Changes::Everything(_) => true,
        }
    }
}

/// Tells by its path whether the changes of a directory matter.
pub type Admits<'a> = &'a dyn Fn(&RelPath) -> bool;

/// A source that tells what changes in one workspace.
///
/// One implementor, around the watcher; the domain asks it without knowing the watcher.
pub trait ChangeSource: Send {
    /// Returns what changed since the last call. Every change from before the call is covered.
    fn sync(&mut self, admits: Admits<'_>) -> Changes;

    /// Watches `dir` and the directories below it from now on, as far as `admits` allows. Earlier changes there may not
    /// be reported.
    fn watch(&mut self, dir: &RelPath, admits: Admits<'_>);

    /// Places watches for a moment, which takes long in a large tree. Returns true while some are missing; until then
    /// [`ChangeSource::sync`] names their directories as changed.
    fn place_watches(&mut self, admits: Admits<'_>) -> bool;

    /// Sets the paths that are reported each time, because the watcher may miss their changes.
    fn always_report(&mut self, paths: &BTreeSet<RelPath>);

    /// Returns true for a directory that is reported each time because it has no watch: nothing is known of changes there.
    fn is_unwatched(&self, _dir: &RelPath) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn dirty(texts: &[&str]) -> Dirty {
        Dirty::new(texts.iter().map(|text| match text.strip_suffix("/**") {
            Some(dir) => (path(dir), Reach::Subtree),
            None => (path(text), Reach::Entry),
        }))
    }

    #[test]
    fn subtrees_swallow_what_is_below_them() {
        let found = dirty(&["a/b/c", "a-b", "a/**", "a", "b/x", "a/d/**", "b"]);
        let texts: Vec<String> = found.iter().map(|(path, reach)| format!("{path:?} {reach:?}")).collect();
        assert_eq!(texts, ["a Subtree", "a-b Entry", "b Entry", "b/x Entry"]);
        for (text, covered, touched) in [
            ("a", true, true),
            ("a/z/z", true, true),
            ("a-b", true, true),
            ("a-b/c", false, false),
            ("b/y", false, false),
            ("b/x", true, true),
            ("", false, true),
            ("c", false, false),
        ] {
            assert_eq!((found.covers(&path(text)), found.touches(&path(text))), (covered, touched), "{text}");
        }
        assert!(dirty(&["/**", "a", "b/c"]).iter().eq([(&path(""), Reach::Subtree)]));
    }

    #[test]
    fn rules_are_told_from_files() {
        let found = dirty(&[
            "a/.gitignore",
            "x.gitignore",
            ".git/index",
            "s/.git/info/exclude",
            "index",
            "a.git/index",
            "a/**",
        ]);
        let texts: Vec<String> = found.rule_files().map(RelPath::display).collect();
        assert_eq!(texts, [".git/index", "a/.gitignore", "s/.git/info/exclude"]);
        for (changed, ruled) in [
            ("a/.gitignore", Some("a")),
            (".gitignore", Some("")),
            (".git/info/exclude", Some("")),
            ("s/t/.git/info/exclude", Some("s/t")),
            ("info/exclude", None),
            (".git/index", None),
        ] {
            let wide = dirty(&[changed]).with_ruled();
            let found: Vec<&RelPath> =
                wide.iter().filter(|(_, reach)| *reach == Reach::Subtree).map(|(dir, _)| dir).collect();
            assert_eq!(found, ruled.map(path).iter().collect::<Vec<_>>(), "{changed}");
        }
    }

    #[test]
    fn clocks_belong_to_one_watcher() {
        assert_eq!(Clock::new(7, 3).tick_of(7), Ok(3));
        assert_eq!(Clock::new(7, 3).tick_of(8), Err(Why::OtherWatcher));
        assert_eq!(Clock::default().tick_of(8), Err(Why::FirstLook));
    }
}
