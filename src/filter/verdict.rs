//! Tells whether a checkpoint would have captured a path, had it existed then.
//!
//! A restore may remove a path only if the target checkpoint *would* have it: absence proves nothing about paths that
//! were outside its coverage. When in doubt the answer is no, and the path stays.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::level::{self, Level, Ruling};
use super::{Tracked, generated, secret};
use crate::model::coverage::{Coverage, SkipReason};
use crate::model::manifest::{EntryKind, ManifestEntry};
use crate::model::path::RelPath;

/// The target checkpoint as the rules need to see it.
pub trait CoverageView {
    /// Returns the content of the *regular file* `.gitignore` in a directory; `None` where there is none (a link does not count).
    fn gitignore(&self, dir: &RelPath) -> Option<Vec<u8>>;
    /// Returns true if a path is in the checkpoint.
    fn exists(&self, path: &RelPath) -> bool;
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The checkpoint would hold it: its absence says that it was not there.
    Yes,
    /// The checkpoint would not hold it, or that is not known.
    No(Denial),
}

/// A reason against it, or for not knowing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// An ignore rule, or a generated directory.
    Ignored,
    /// A configured exclude, or a name piton never captures (`.git`, its own temporary files).
    Excluded,
    /// The name looks like a secret, and the checkpoint left secrets out.
    Secret,
    /// The checkpoint held private files for a while, which are gone.
    Expired,
    /// The content is above the checkpoint's size cap.
    TooLarge,
    /// The path, or a directory above it, is listed as left out.
    Skipped(SkipReason),
    /// The checkpoint looked at other paths only.
    OutsideExtent,
    /// No pattern of tracked files covers it, or it was a read-only input.
    Untracked,
    /// The checkpoint was over the count guard, or its ignore rules are not all known.
    Partial,
}

impl Denial {
    /// Returns true for what a private layer holds where there is one.
    pub fn is_private(self) -> bool {
        matches!(self, Denial::Ignored | Denial::Secret | Denial::Skipped(SkipReason::Secret))
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Denial::Ignored => f.write_str("ignored when the checkpoint was taken"),
            Denial::Excluded => f.write_str("excluded when the checkpoint was taken"),
            Denial::Secret => f.write_str("looks like a secret; the checkpoint left secrets out"),
            Denial::Expired => f.write_str("the checkpoint's private files have expired"),
            Denial::TooLarge => f.write_str("larger than the checkpoint's size limit"),
            Denial::Skipped(why) => write!(f, "left out of the checkpoint: {why}"),
            Denial::OutsideExtent => f.write_str("the checkpoint only covers other paths"),
            Denial::Untracked => f.write_str("the file matches no pattern in `tracked_files`"),
            Denial::Partial => f.write_str("the checkpoint is incomplete"),
        }
    }
}

/// Names that begin so are a restore's temporary files.
pub const TEMPORARY_PREFIX: &[u8] = b".piton-tmp-";

/// Tells whether a capture never takes an entry of this name, at any depth and even as a target.
pub fn is_never_captured(name: &[u8]) -> bool {
    name == b".git" || name.starts_with(TEMPORARY_PREFIX)
}

/// Returns whether a checkpoint with this coverage would have captured `path`, had it existed then as `entry`. For more
/// than a few paths use one [`CaptureJudge`].
pub fn would_capture(path: &RelPath, entry: &ManifestEntry, coverage: &Coverage, tree: &dyn CoverageView) -> Verdict {
    CaptureJudge::new(coverage, tree).verdict(path, entry)
}

/// Judges many paths against one checkpoint; remembers what it found out about directories.
pub struct CaptureJudge<'a> {
    coverage: &'a Coverage,
    tree: &'a dyn CoverageView,
    configured: Option<Arc<Level>>,
    tracked: Tracked,
    over_count: bool,
    dirs: RefCell<HashMap<RelPath, Inside>>,
}

/// The rules that hold inside of a directory, or why nothing in it is captured.
type Inside = Result<Option<Arc<Level>>, Denial>;

impl<'a> CaptureJudge<'a> {
    /// Returns a judge that knows nothing yet.
    pub fn new(coverage: &'a Coverage, tree: &'a dyn CoverageView) -> CaptureJudge<'a> {
        CaptureJudge {
            coverage,
            tree,
            // Patterns that cannot be read, which piton would not have recorded, cover nothing.
            tracked: Tracked::new(&coverage.tracked, &coverage.read_only).unwrap_or_else(|_| Tracked::nothing()),
            configured: Level::push(None, &RelPath::root(), coverage.configured.iter().map(String::as_str)),
            over_count: coverage.skipped.values().any(|reason| *reason == SkipReason::OverCount),
            dirs: RefCell::default(),
        }
    }

    /// As [`would_capture`].
    pub fn verdict(&self, path: &RelPath, entry: &ManifestEntry) -> Verdict {
        let denial = self.outside(path).or_else(|| self.by_rules(path, entry)).or_else(|| self.by_content(path, entry));
        denial.map_or(Verdict::Yes, Verdict::No)
    }

    /// As [`would_capture`], of both parts of a checkpoint: its private layer looks for what ignore rules and the names of secrets
    /// leave out of the other one.
    pub fn of_both(&self, path: &RelPath, entry: &ManifestEntry) -> Verdict {
        match self.verdict(path, entry) {
            Verdict::No(Denial::Ignored | Denial::Secret)
                if self.coverage.private && !self.may_be_made(path, entry) =>
            {
                Verdict::Yes
            }
            verdict => verdict,
        }
    }

    /// Tells whether a path is or lies in a directory that a tool may have made, which no layer looks into.
    fn may_be_made(&self, path: &RelPath, entry: &ManifestEntry) -> bool {
        let own = (entry.kind == EntryKind::Dir).then(|| path.clone());
        let above = std::iter::successors(path.parent(), RelPath::parent);
        own.into_iter().chain(above).filter(|dir| !dir.is_root()).any(|dir| {
            let parent = dir.parent().unwrap_or_default();
            let level = self.inside(&parent).ok().flatten();
            let beside = |name: &[u8]| self.may_stand(level.as_ref(), &parent.join(name));
            let name = dir.name();
            // Nobody knows the content of such a directory.
            let inside = generated::made_inside(name, &|_| true);
            inside || generated::made_beside(name, &beside) || self.tree.exists(&dir.join(generated::CACHE_TAG))
        })
    }

    fn outside(&self, path: &RelPath) -> Option<Denial> {
        if !self.coverage.extent.reaches(path) {
            return Some(Denial::OutsideExtent);
        }
        if path.components().any(is_never_captured) {
            return Some(Denial::Excluded);
        }
        let skipped = self.coverage.skip_of(path).map(Denial::Skipped);
        let untracked = (!self.tracked.matches(path)).then_some(Denial::Untracked);
        skipped.or(untracked).or(self.over_count.then_some(Denial::Partial))
    }

    fn by_rules(&self, path: &RelPath, entry: &ManifestEntry) -> Option<Denial> {
        if path.is_root() {
            return None;
        }
        if entry.kind == EntryKind::Dir {
            return self.inside(path).err();
        }
        match self.inside(&path.parent().unwrap_or_default()) {
            Ok(level) => self.file_denial(level.as_ref(), path),
            Err(denial) => Some(denial),
        }
    }

    /// Returns what holds inside of `dir`, asking the directories above it first.
    fn inside(&self, dir: &RelPath) -> Inside {
        if let Some(known) = self.dirs.borrow().get(dir) {
            return known.clone();
        }
        let inside = match dir.parent() {
            None => Ok(None),
            Some(parent) => self
                .inside(&parent)
                .and_then(|level| self.dir_denial(level.as_ref(), dir, &parent).map_or(Ok(level), Err)),
        };
        let inside = inside.and_then(|level| self.level_of(level, dir));
        self.dirs.borrow_mut().insert(dir.clone(), inside.clone());
        inside
    }

    fn level_of(&self, parent: Option<Arc<Level>>, dir: &RelPath) -> Inside {
        if self.coverage.skipped.contains_key(&dir.join(b".gitignore")) {
            return Err(Denial::Partial);
        }
        let outside = self.coverage.excludes.iter().filter(|pattern| pattern.base == *dir);
        let own = self.tree.gitignore(dir).map(|content| level::lines(&content)).unwrap_or_default();
        let lines = outside.map(|pattern| pattern.text.as_str()).chain(own.iter().map(String::as_str));
        Ok(Level::push(parent, dir, lines))
    }

    fn dir_denial(&self, level: Option<&Arc<Level>>, path: &RelPath, parent: &RelPath) -> Option<Denial> {
        match directory_rule(self.configured.as_ref(), level, path, &|name| self.may_stand(level, &parent.join(name))) {
            DirRule::Excluded => Some(Denial::Excluded),
            DirRule::Ignored => Some(Denial::Ignored),
            DirRule::Forced => None,
            DirRule::Open => {
                let own = match self.level_of(level.cloned(), path) {
                    Ok(own) => own,
                    Err(denial) => return Some(denial),
                };
                let inside = |name: &[u8]| self.may_stand(own.as_ref(), &path.join(name));
                let tagged = self.tree.exists(&path.join(generated::CACHE_TAG));
                (tagged || generated::made_inside(path.name(), &inside)).then_some(Denial::Ignored)
            }
        }
    }

    /// Returns whether a maker's mark may have stood there: the checkpoint has it, or would not have it if it had.
    /// `level` are the rules of its directory.
    fn may_stand(&self, level: Option<&Arc<Level>>, mark: &RelPath) -> bool {
        self.tree.exists(mark) || self.coverage.skip_of(mark).is_some() || self.file_denial(level, mark).is_some()
    }

    fn file_denial(&self, level: Option<&Arc<Level>>, path: &RelPath) -> Option<Denial> {
        match Level::ruling(self.configured.as_ref(), path, false) {
            Ruling::Ignore => return Some(Denial::Excluded),
            Ruling::Include { .. } => return None,
            Ruling::Unnamed => {}
        }
        let ignored = path.name() != b".gitignore" && Level::ruling(level, path, false) == Ruling::Ignore;
        ignored.then_some(Denial::Ignored)
    }

    fn by_content(&self, path: &RelPath, entry: &ManifestEntry) -> Option<Denial> {
        if entry.kind != EntryKind::File {
            return None;
        }
        if !self.coverage.secrets && secret::is_secret(path.as_bytes()) {
            return Some(Denial::Secret);
        }
        (entry.size > self.coverage.file_cap).then_some(Denial::TooLarge)
    }
}

/// The rules' word on a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirRule {
    /// By a configured exclude: not even paths captured before are looked at.
    Excluded,
    /// By an ignore rule, or because its maker stands beside it.
    Ignored,
    /// Named by a `!` rule: what it holds does not make it a generated directory.
    Forced,
    /// No rule keeps a walk out of it.
    Open,
}

/// Returns what configured excludes, ignore rules and makers beside it say of a directory.
pub fn directory_rule(
    configured: Option<&Arc<Level>>,
    level: Option<&Arc<Level>>,
    path: &RelPath,
    beside: &dyn Fn(&[u8]) -> bool,
) -> DirRule {
    match Level::ruling(configured, path, true) {
        Ruling::Ignore => return DirRule::Excluded,
        Ruling::Include { literal } => return if literal { DirRule::Forced } else { DirRule::Open },
        Ruling::Unnamed => {}
    }
    match Level::ruling(level, path, true) {
        Ruling::Ignore => DirRule::Ignored,
        Ruling::Include { literal: true } => DirRule::Forced,
        Ruling::Include { literal: false } | Ruling::Unnamed => {
            if generated::made_beside(path.name(), beside) {
                DirRule::Ignored
            } else {
                DirRule::Open
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::coverage::Extent;
    use crate::model::coverage::Pattern;
    use crate::model::id::ObjectId;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn entry(kind: EntryKind, size: u64) -> ManifestEntry {
        ManifestEntry { kind, perm: 0o644, id: ObjectId::EMPTY_TREE, size }
    }

    /// A tree of these files of rules (directory, content) and other entries.
    struct Tree {
        rules: &'static [(&'static str, &'static str)],
        entries: &'static [&'static str],
    }

    impl CoverageView for Tree {
        fn gitignore(&self, dir: &RelPath) -> Option<Vec<u8>> {
            let found = self.rules.iter().find(|(at, _)| *at == dir.display());
            found.map(|(_, content)| content.as_bytes().to_vec())
        }

        fn exists(&self, path: &RelPath) -> bool {
            self.entries.contains(&path.display().as_str())
        }
    }

    const TREE: Tree = Tree {
        rules: &[(".", "*.log\n/ignored/\n!sub/keep.log\n"), ("sub", "!keep.log\n*\n")],
        entries: &["package.json", "venv/pyvenv.cfg", "cache/CACHEDIR.TAG", "Cargo.toml"],
    };

    fn judge(coverage: &Coverage, text: &str, entry: ManifestEntry) -> Verdict {
        would_capture(&path(text), &entry, coverage, &TREE)
    }

    #[test]
    fn rules_of_the_target_decide() {
        let coverage = Coverage {
            configured: vec!["/private/".into(), "*.bin".into()],
            excludes: vec![Pattern { base: path("nested"), text: "*.tmp".into() }],
            ..Coverage::default()
        };
        let no = Verdict::No;
        let table = [
            ("src/a.rs", Verdict::Yes),
            ("a.log", no(Denial::Ignored)),
            ("ignored/deep/a.rs", no(Denial::Ignored)),
            ("sub/a.rs", no(Denial::Ignored)),
            ("sub/.gitignore", Verdict::Yes),
            ("private/a", no(Denial::Excluded)),
            ("deep/x.bin", no(Denial::Excluded)),
            ("nested/deep/x.tmp", no(Denial::Ignored)),
            ("x.tmp", Verdict::Yes),
            ("node_modules/a/b.js", no(Denial::Ignored)),
            ("deep/node_modules/b.js", Verdict::Yes),
            ("target/debug/x", no(Denial::Ignored)),
            ("venv/lib/x.py", no(Denial::Ignored)),
            ("cache/x", no(Denial::Ignored)),
            ("__pycache__/x.pyc", no(Denial::Ignored)),
            (".git/config", no(Denial::Excluded)),
            ("deep/.git/x", no(Denial::Excluded)),
            (".GIT/x", Verdict::Yes),
            (".piton-tmp-1-2", no(Denial::Excluded)),
            (".env", no(Denial::Secret)),
            (".env.example", Verdict::Yes),
        ];
        for (text, expected) in table {
            assert_eq!(judge(&coverage, text, entry(EntryKind::File, 1)), expected, "{text}");
        }
        assert_eq!(judge(&coverage, ".env", entry(EntryKind::Link, 1)), Verdict::Yes);
        assert_eq!(judge(&coverage, "ignored", entry(EntryKind::Dir, 0)), no(Denial::Ignored));
        assert_eq!(judge(&coverage, "ignored", entry(EntryKind::File, 0)), Verdict::Yes);
        let large = entry(EntryKind::File, coverage.file_cap + 1);
        assert_eq!(judge(&coverage, "large", large), no(Denial::TooLarge));
    }

    #[test]
    fn a_mark_that_is_ignored_itself_may_have_stood_there() {
        let view = Tree { rules: &[(".", "*\n!*/\n!keep\n!*.js\n")], entries: &[] };
        let mut coverage = Coverage::default();
        let verdict =
            |coverage: &Coverage, text| would_capture(&path(text), &entry(EntryKind::File, 1), coverage, &view);
        let ignored = Verdict::No(Denial::Ignored);
        for (text, expected) in [
            ("a.js", Verdict::Yes),
            ("src/a.js", Verdict::Yes),
            ("node_modules/a.js", ignored),
            ("venv/a.js", ignored),
            ("sub/node_modules/a.js", ignored),
        ] {
            assert_eq!(verdict(&coverage, text), expected, "{text}");
        }
        let none = Tree { rules: &[], entries: &[] };
        coverage.skipped.insert(path("package.json"), SkipReason::TooLarge(9));
        let file = entry(EntryKind::File, 1);
        assert_eq!(would_capture(&path("node_modules/a.js"), &file, &coverage, &none), ignored);
        assert_eq!(would_capture(&path("sub/node_modules/a.js"), &file, &coverage, &none), Verdict::Yes);
    }

    #[test]
    fn what_no_pattern_tracks_is_denied() {
        let file = entry(EntryKind::File, 1);
        let coverage = Coverage {
            tracked: vec!["src/**/*.ts".into(), "!src/gen".into()],
            read_only: vec!["input/".into()],
            ..Coverage::default()
        };
        for (text, tracked) in [("src/a/b.ts", true), ("src/b.js", false), ("src/gen/a.ts", false), ("input/x", false)]
        {
            let expected = if tracked { Verdict::Yes } else { Verdict::No(Denial::Untracked) };
            assert_eq!(judge(&coverage, text, file), expected, "{text}");
        }
        let bad = Coverage { tracked: vec!["a[".into()], ..Coverage::default() };
        assert_eq!(judge(&bad, "a", file), Verdict::No(Denial::Untracked));
    }

    #[test]
    fn gaps_and_extents_forbid() {
        let file = entry(EntryKind::File, 1);
        let mut coverage =
            Coverage { extent: Extent::Paths(vec![path("a"), path("b/c")]), secrets: true, ..Coverage::default() };
        let no = Verdict::No;
        assert_eq!(judge(&coverage, "a/.env", file), Verdict::Yes);
        assert_eq!(judge(&coverage, "b/d", file), no(Denial::OutsideExtent));
        coverage.skipped.insert(path("a/dir"), SkipReason::Unreadable);
        let skipped = no(Denial::Skipped(SkipReason::Unreadable));
        assert_eq!(judge(&coverage, "a/dir/x", file), skipped);
        assert_eq!(judge(&coverage, "a/directory", file), Verdict::Yes);
        coverage.skipped.insert(path("b/.gitignore"), SkipReason::TooLarge(9));
        assert_eq!(judge(&coverage, "b/c/x", file), no(Denial::Partial));
        coverage.skipped.insert(path("z"), SkipReason::OverCount);
        assert_eq!(judge(&coverage, "a/x", file), no(Denial::Partial));
    }
}
