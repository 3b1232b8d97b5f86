//! Listing what a capture looks at.
//!
//! Directories are opened one by one beneath the root's handle, never through a link. A directory is walked in one of
//! three ways: by the rules; only for paths that are forced (captured before, tracked by git, targets) where the rules
//! leave it out; or wholly, where it is a recursive target.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use rustix::io::Errno;

use super::capture::{Flow, Request, Target};
use super::git_dir::{self, GitDir};
use super::git_index;
use super::read::checked;
use crate::error::Result;
use crate::filter::{CACHEDIR_SIGNATURE, Matcher, Rules, effective_patterns, is_made, is_secret_name};
use crate::model::coverage::{Extent, Pattern, SkipReason};
use crate::model::path::RelPath;
use crate::model::policy::Secrets;
use crate::sys::dir::{Dir, FileKind, Status};

/// Targets of one capture: at most this many files and bytes beyond what the rules capture.
const TARGET_FILES: u64 = 20_000;
const TARGET_BYTES: u64 = 256 << 20;
/// Restore's temporary files begin with this; they are never captured.
pub const TEMPORARY: &[u8] = b".piton-tmp-";
/// Ignore files above this many bytes are not read for rules.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// A file or link to be captured.
#[derive(Clone, Debug)]
pub struct Found {
    pub path: RelPath,
    pub status: Status,
    /// Captured only because it is a target.
    pub targeted: bool,
    /// The size cap does not hold for it.
    pub uncapped: bool,
}

impl Found {
    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.status.kind == FileKind::Link
    }
}

/// What a walk saw.
#[derive(Default)]
pub struct Seen {
    pub files: Vec<Found>,
    /// Captured directories and their permission bits.
    pub dirs: Vec<(RelPath, u16)>,
    /// Directories walked only for forced paths.
    pub passed: Vec<(RelPath, u16)>,
    pub skipped: BTreeMap<RelPath, SkipReason>,
    /// Effective patterns of `info/exclude`.
    pub excludes: Vec<Pattern>,
    pub tracked: BTreeSet<RelPath>,
    pub warnings: Vec<String>,
}

/// How a directory is walked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Rules,
    ForcedOnly,
    Whole,
}

/// The `.gitignore` matchers above a directory.
struct Level {
    matcher: Matcher,
    above: Option<Rc<Level>>,
}

struct Pending {
    path: RelPath,
    way: Way,
    levels: Option<Rc<Level>>,
}

struct Walk<'a> {
    request: &'a Request<'a>,
    root: &'a Dir,
    rules: Rules,
    never: Vec<(u64, u64)>,
    /// Sorted by path.
    targets: Vec<&'a Target>,
    target_files: u64,
    target_bytes: u64,
    seen: Seen,
}

/// Walks the workspace.
pub fn walk(request: &Request<'_>, root: &Dir, control: &dyn Fn() -> Flow) -> Result<Seen> {
    let identity = |path: &std::path::PathBuf| path.metadata().ok().map(|facts| (facts.dev(), facts.ino()));
    let mut walk = Walk {
        request,
        root,
        rules: Rules::new(request.exclude, &[]),
        never: request.never.iter().filter_map(identity).collect(),
        targets: {
            let mut targets: Vec<&Target> = request.targets.iter().collect();
            targets.sort();
            targets
        },
        target_files: 0,
        target_bytes: 0,
        seen: Seen::default(),
    };
    walk.enter_repository(&RelPath::root());
    let mut pending = vec![Pending { path: RelPath::root(), way: Way::Rules, levels: None }];
    while let Some(dir) = pending.pop() {
        checked(control)?;
        walk.directory(&dir, &mut pending)?;
    }
    walk.seen.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walk.seen)
}

impl Walk<'_> {
    /// Reads what git says of a repository's working directory; damage is a warning, never a failure.
    fn enter_repository(&mut self, dir: &RelPath) {
        let Some(git) = git_dir::of(&dir.under(self.request.root)) else {
            return;
        };
        if let Some(content) = git_dir::exclude(&git) {
            let patterns = effective_patterns(dir, &content);
            if let Some(matcher) = Matcher::new(dir, &content) {
                self.rules.add_exclude(matcher);
            }
            self.seen.excludes.extend(patterns);
        }
        match git_index::tracked(&git.own) {
            Ok(paths) => self.seen.tracked.extend(paths.into_iter().map(|path| below(dir, &path))),
            Err(error) => self.seen.warnings.push(format!(
                "which files git tracks in {} is not known: {}; ignored files it tracks are not captured",
                dir.display(),
                error.text()
            )),
        }
    }

    fn directory(&mut self, pending: &Pending, next: &mut Vec<Pending>) -> Result<()> {
        let dir = match self.root.open_dir(&pending.path) {
            Ok(dir) => dir,
            Err(errno) => return self.not_opened(pending, errno),
        };
        let Ok(names) = dir.names() else {
            self.seen.skipped.insert(pending.path.clone(), SkipReason::Unreadable);
            return Ok(());
        };
        if !pending.path.is_root() {
            let perm = dir.own_status()?.perm();
            let list = if pending.way == Way::ForcedOnly { &mut self.seen.passed } else { &mut self.seen.dirs };
            list.push((pending.path.clone(), perm));
            if names.binary_search_by(|name| name.as_slice().cmp(b".git")).is_ok() {
                self.enter_repository(&pending.path);
            }
        }
        let levels = self.level_of(pending, &dir, &names);
        for name in names.iter().filter(|name| name.as_slice() != b".git" && !name.starts_with(TEMPORARY)) {
            let Ok(Some(status)) = dir.status(name) else { continue };
            let path = pending.path.join(name);
            match status.kind {
                FileKind::Dir => self.sub_directory((path, &status), pending.way, &names, &levels, next),
                FileKind::Special => self.special(path, pending.way),
                FileKind::File | FileKind::Link => self.file(path, status, pending.way, &levels),
            }
        }
        Ok(())
    }

    /// A directory that cannot be opened: vanished ones are gone, others are listed.
    fn not_opened(&mut self, pending: &Pending, errno: Errno) -> Result<()> {
        if pending.path.is_root() {
            return Err(crate::error::Error::io(errno.into(), "opening the workspace", self.request.root));
        }
        if !matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP) {
            self.seen.skipped.insert(pending.path.clone(), SkipReason::Unreadable);
        }
        Ok(())
    }

    /// Adds the directory's own `.gitignore` to the rules above it. A linked one is not followed, as in git.
    fn level_of(&self, pending: &Pending, dir: &Dir, names: &[Vec<u8>]) -> Option<Rc<Level>> {
        let above = pending.levels.clone();
        if names.binary_search_by(|name| name.as_slice().cmp(b".gitignore")).is_err() {
            return above;
        }
        let status = dir.status(b".gitignore").ok().flatten();
        if status.is_none_or(|status| status.kind != FileKind::File || status.stamp.size > MAX_IGNORE_BYTES) {
            return above;
        }
        let path = pending.path.join(b".gitignore");
        let content = super::read::read_small(self.request.root, &path, MAX_IGNORE_BYTES).ok().flatten();
        match content.and_then(|content| Matcher::new(&pending.path, &content)) {
            Some(matcher) => Some(Rc::new(Level { matcher, above })),
            None => above,
        }
    }

    fn sub_directory(
        &mut self,
        (path, status): (RelPath, &Status),
        way: Way,
        names: &[Vec<u8>],
        levels: &Option<Rc<Level>>,
        next: &mut Vec<Pending>,
    ) {
        if self.never.contains(&(status.stamp.dev, status.stamp.ino)) {
            self.seen.skipped.insert(path, SkipReason::Store);
            return;
        }
        if linked_worktree(&path, self.request).is_some() {
            self.seen.skipped.insert(path, SkipReason::LinkedWorktree);
            return;
        }
        let way = self.way_into(&path, way, names, levels);
        if way != Way::ForcedOnly || self.forced_below(&path) {
            next.push(Pending { path, way, levels: levels.clone() });
        }
    }

    fn way_into(&self, path: &RelPath, way: Way, names: &[Vec<u8>], levels: &Option<Rc<Level>>) -> Way {
        let beside = |name: &str| names.binary_search_by(|found| found.as_slice().cmp(name.as_bytes())).is_ok();
        let inside = |name: &str| tagged(&path.under(self.request.root), name);
        // What a tool made it makes again: not even a target, or removing `node_modules` would cost its whole weight.
        if is_made(path.name(), &beside, &inside) {
            return Way::ForcedOnly;
        }
        if way == Way::Whole || self.is_target(path, true) {
            return Way::Whole;
        }
        if way == Way::ForcedOnly || self.ignored(path, true, levels) || !self.in_extent(path, true) {
            return Way::ForcedOnly;
        }
        Way::Rules
    }

    fn file(&mut self, path: RelPath, status: Status, way: Way, levels: &Option<Rc<Level>>) {
        let before = self.request.known.contains_key(&path) || self.request.sticky.contains(&path);
        let kept = before || self.seen.tracked.contains(&path);
        let target = way == Way::Whole || self.is_target(&path, false);
        if !self.in_extent(&path, false) && !target {
            return;
        }
        let rules_file = path.name() == b".gitignore" && way != Way::ForcedOnly;
        let by_rules = way == Way::Rules && (rules_file || !self.ignored(&path, false, levels));
        let secret = !kept && self.request.secrets != Secrets::Always && is_secret_name(path.name());
        let too_large = status.kind == FileKind::File && status.stamp.size > self.request.limits.file_bytes;
        if (kept || (by_rules && !secret)) && !too_large {
            self.seen.files.push(Found { path, status, targeted: false, uncapped: false });
        } else if target && (!secret || self.request.secrets != Secrets::Never || self.request.unlimited_targets) {
            self.target(path, status);
        } else if kept || by_rules {
            let reason = if secret { SkipReason::Secret } else { SkipReason::TooLarge(status.stamp.size) };
            self.seen.skipped.insert(path, reason);
        }
    }

    /// Captures a path that only its being a target brings in, within the budget.
    fn target(&mut self, path: RelPath, status: Status) {
        self.target_files += 1;
        self.target_bytes += status.stamp.size;
        let over = self.target_files > TARGET_FILES || self.target_bytes > TARGET_BYTES;
        if over && !self.request.unlimited_targets {
            self.target_bytes -= status.stamp.size;
            self.seen.skipped.insert(path, SkipReason::OverBudget);
        } else {
            self.seen.files.push(Found { path, status, targeted: true, uncapped: true });
        }
    }

    fn special(&mut self, path: RelPath, way: Way) {
        if way != Way::ForcedOnly {
            self.seen.skipped.insert(path, SkipReason::Special);
        }
    }

    fn ignored(&self, path: &RelPath, is_dir: bool, levels: &Option<Rc<Level>>) -> bool {
        let mut matchers = Vec::new();
        let mut level = levels.as_ref();
        while let Some(current) = level {
            matchers.push(&current.matcher);
            level = current.above.as_ref();
        }
        matchers.reverse();
        self.rules.decide(&matchers, path, is_dir).is_some()
    }

    fn is_target(&self, path: &RelPath, recursive: bool) -> bool {
        let at = self.targets.partition_point(|target| target.path < *path);
        let mut equal = self.targets[at..].iter().take_while(|target| target.path == *path);
        equal.any(|target| !recursive || target.recursive)
    }

    /// Whether a directory may hold something in the extent, or a file is in it.
    fn in_extent(&self, path: &RelPath, is_dir: bool) -> bool {
        match &self.request.extent {
            Extent::Tree => true,
            Extent::Paths(paths) => {
                paths.iter().any(|wanted| path.starts_with(wanted) || (is_dir && wanted.starts_with(path)))
            }
        }
    }

    /// Whether something below a directory is captured whatever the rules say.
    fn forced_below(&self, dir: &RelPath) -> bool {
        let from = (Bound::Excluded(dir.inside_bound()), Bound::Unbounded);
        let known = self.request.known.range(from.clone()).next().map(|(path, _)| path);
        let others = [self.request.sticky.range(from.clone()).next(), self.seen.tracked.range(from).next()];
        let at = self.request.targets.partition_point(|target| target.path <= dir.inside_bound());
        let target = self.targets.get(at).map(|target| &target.path);
        let wanted = match &self.request.extent {
            Extent::Tree => true,
            Extent::Paths(_) => self.in_extent(dir, true),
        };
        let first = [known, target].into_iter().chain(others).flatten();
        wanted && first.into_iter().any(|path| path.starts_with(dir))
    }
}

/// `path`, which is relative to `dir`, as a path of the workspace.
fn below(dir: &RelPath, path: &RelPath) -> RelPath {
    path.components().fold(dir.clone(), |path, name| path.join(name))
}

fn linked_worktree(path: &RelPath, request: &Request<'_>) -> Option<GitDir> {
    git_dir::of(&path.under(request.root)).filter(|git| git.linked)
}

/// Whether a directory carries a file that says what it is.
fn tagged(dir: &std::path::Path, name: &str) -> bool {
    let file = dir.join(name);
    if name != "CACHEDIR.TAG" {
        return file.is_file();
    }
    let mut start = vec![0u8; CACHEDIR_SIGNATURE.len()];
    let read = std::fs::File::open(file).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && start == CACHEDIR_SIGNATURE
}
