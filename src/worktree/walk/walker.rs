//! The walker: where the walk stands, and its way from one directory to the next.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::fstat;
use rustix::io::Errno;

use super::super::beneath::{Root, names_in};
use super::super::keep::PathList;
use super::super::names::Names;
use super::super::probe::perm_of;
use super::super::read;
use super::super::request::{Request, SPARING_BYTES, SPARING_FILES, Spare, TARGET_BYTES, TARGET_FILES};
use super::super::stopped::unless_stopped;
use super::ahead::Ahead;
use super::candidate::{Candidate, Class, WalkResult};
use super::listing::{BUFFER, DirListing, Here};
use super::walk_dir::{DirState, Repo, Visited, WalkDir, WalkItem};
use crate::error::{Code, Error, IoContext, Result};
use crate::filter::{Level, generated, level, verdict};
use crate::model::coverage::{Extent, SkipReason};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::stamp::KnownFile;
use crate::sys::interrupt::Interrupt;
use crate::sys::libgit2::CommitTree;

/// Deepest directory that is walked.
pub(super) const MAX_DEPTH: usize = 1024;

/// Directories beyond the count guard of files after which directories are not walked any more.
const SPARE_DIRS: u64 = 100_000;

/// Most entries that one walk looks at to say how much it leaves out; what lies beyond is "or more".
const MAX_WEIGHED: u32 = 5000;

/// Names that are looked at for each private file that may come in, in the directories of such files.
const LISTED: u64 = 4;

/// Returns the configured excludes of a request, compiled.
pub(crate) fn configured(request: &Request<'_>) -> Option<Arc<Level>> {
    Level::push(None, &RelPath::root(), request.exclude.iter().map(String::as_str))
}

/// A walk through a workspace.
pub(super) struct Walker<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) root: &'a Root,
    pub(super) ahead: &'a Ahead,
    pub(super) control: Interrupt<'a>,
    /// The paths of a partial extent.
    pub(super) extent: Option<PathList<'a, &'a RelPath>>,
    pub(super) targets: PathList<'a, &'a RelPath>,
    pub(super) recursive: PathList<'a, &'a RelPath>,
    /// The paths of the last capture, with their facts.
    pub(super) known: PathList<'a, (RelPath, KnownFile)>,
    /// The place in `known` that the walk has come to.
    pub(super) known_at: usize,
    /// Further paths that stay captured, whatever ignore rule appears.
    pub(super) sticky: PathList<'a, &'a RelPath>,
    /// The configured excludes; `None` if there are none.
    pub(super) configured: Option<Arc<Level>>,
    /// Device and inode of directories that are never entered.
    pub(super) never: Vec<(u64, u64)>,
    /// The things to visit next, the nearest last.
    pub(super) stack: Vec<WalkItem>,
    pub(super) buffer: Vec<MaybeUninit<u8>>,
    /// Candidates so far that the count guard counts.
    pub(super) ordinary: u64,
    /// Files and bytes that only targets may still bring in.
    pub(super) budget: (u64, u64),
    /// Files and directories, and bytes, that recursive targets may still bring in, if the walk is a sparing one.
    pub(super) below: (u64, u64),
    /// The device of the target that the walk is in, if a link leads to it.
    pub(super) device: Option<u64>,
    /// The private files that may still come in.
    pub(super) spare: Spare,
    /// The names that may still be looked at in directories of private files alone.
    pub(super) listing: u64,
    /// Entries that may still be weighed.
    pub(super) weighing: u32,
    /// The commits of HEAD of repositories, by the directory of the repository, opened when they are needed.
    pub(super) heads: BTreeMap<PathBuf, CommitTree>,
    pub(super) found: WalkResult,
}

impl<'a> Walker<'a> {
    /// Begins a walk.
    pub(super) fn new(
        request: &'a Request<'a>,
        root: &'a Root,
        ahead: &'a Ahead,
        configured: Option<Arc<Level>>,
        control: Interrupt<'a>,
    ) -> Walker<'a> {
        let paths = |recursive_only: bool| {
            let targets = request.targets.iter();
            PathList::new(targets.filter(move |target| target.recursive || !recursive_only).map(|target| &target.path))
        };
        let unlimited = request.unlimited_targets;
        Walker {
            request,
            root,
            ahead,
            control,
            extent: match &request.extent {
                Extent::Tree => None,
                Extent::Paths(paths) => Some(PathList::new(paths)),
            },
            targets: paths(false),
            recursive: paths(true),
            known: PathList::sorted(request.known.entries()),
            known_at: 0,
            sticky: PathList::new(request.sticky),
            configured,
            never: request.never.iter().filter_map(|path| identity(path)).collect(),
            stack: Vec::new(),
            buffer: Box::new_uninit_slice(BUFFER).into_vec(),
            ordinary: 0,
            budget: if unlimited { (u64::MAX, u64::MAX) } else { (TARGET_FILES, TARGET_BYTES) },
            below: (SPARING_FILES, SPARING_BYTES),
            device: None,
            spare: request.spare,
            listing: request.limits.ignored.files.saturating_mul(LISTED),
            weighing: MAX_WEIGHED,
            heads: BTreeMap::new(),
            found: WalkResult {
                warnings: complaints(request),
                files: Vec::with_capacity(request.known.entries().len()),
                ..WalkResult::default()
            },
        }
    }

    /// Tells whether `path` itself is named by a partial extent.
    pub(super) fn in_extent(&self, path: &RelPath) -> bool {
        self.extent.as_ref().is_some_and(|extent| extent.contains(path))
    }

    /// Returns an error if the walk was interrupted.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn check(&self) -> Result<()> {
        unless_stopped(self.control)
    }

    /// Empties the stack.
    pub(super) fn go_on(&mut self) -> Result<()> {
        while let Some(item) = self.stack.pop() {
            match item {
                WalkItem::Dir(place) => self.visit(place)?,
                WalkItem::File(candidate) => self.emit(candidate),
            }
        }
        Ok(())
    }

    /// Visits a directory and all below it.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn visit(&mut self, mut place: WalkDir) -> Result<()> {
        self.check()?;
        if self.request.budget.is_sparing() && place.forced && !self.may_enter(&place) {
            return Ok(());
        }
        if place.local && !place.shown() && !self.may_list() {
            let weight = self.weigh(&place.path);
            self.found.beyond.insert(place.path.clone(), SkipReason::Beyond(weight));
            place.local = false;
            if !self.leads_somewhere(&place) {
                return Ok(());
            }
        }
        if place.shown() && !place.forced && !place.path.is_root() && self.is_full() {
            self.skip(&place.path, SkipReason::OverCount);
            place.state = DirState::Over;
            if !self.leads_somewhere(&place) {
                return Ok(());
            }
        }
        let ahead = if place.is_listed() {
            self.ahead.take(&place.path, self.root, &mut self.buffer, self.control)?
        } else {
            None
        };
        let listing = match ahead.map_or_else(|| self.list(&place), Ok) {
            Ok(listing) => listing,
            Err(errno) => return self.unopened(&place, errno),
        };
        if self.never.contains(&(listing.facts.st_dev, listing.facts.st_ino)) {
            self.skip(&place.path, SkipReason::Store);
            return Ok(());
        }
        if self.is_mounted_below(&place, listing.facts.st_dev) {
            return Ok(());
        }
        self.enter(place, listing)
    }

    /// Opens a directory and reads its names; looking at what they name is left for later.
    pub(super) fn list(&mut self, place: &WalkDir) -> std::result::Result<DirListing, Errno> {
        let dir = self.root.open_dir(&place.path)?;
        let facts = fstat(&dir)?;
        let names = if place.is_listed() { names_in(dir.as_fd(), &mut self.buffer)? } else { self.listed_names(place) };
        Ok(DirListing { dir: Some(dir), facts, names, seen: Vec::new() })
    }

    /// The directory is open and its names are to be looked at, unless what it holds closes it.
    pub(super) fn enter(&mut self, mut place: WalkDir, listing: DirListing) -> Result<()> {
        let DirListing { dir, facts, mut names, mut seen } = listing;
        let (here, listed) = (Here::new(self.root, place.path.clone(), dir), place.is_listed());
        let held = self.settle(&mut place, &here, &names);
        if listed && !place.is_listed() {
            names = self.listed_names(&place);
            seen.clear();
        }
        let first = self.stack.len();
        for (n, name) in names.iter().enumerate() {
            if n % 64 == 63 {
                self.check()?;
            }
            let seen = seen.get(n).copied().unwrap_or_else(|| here.see(name));
            self.child(&place, &here, &names, name, seen);
        }
        let whole = place.is_listed() && self.stack.len() - first == names.len();
        let applied = held.as_ref().and_then(|held| ObjectId::of(ObjectKind::Blob, &held.bytes).ok());
        let marks = names.iter().filter(|name| generated::is_mark(name)).map(Into::into).collect();
        self.record(&place, perm_of(facts.st_mode), whole);
        if let Some(visited) = self.found.visited.last_mut() {
            (visited.applied, visited.marks) = (applied, marks);
        }
        self.hold(first, &place, held);
        if self.stack[first..].iter().any(|item| matches!(item, WalkItem::Dir(_))) {
            self.stack[first..].sort_unstable_by(|a, b| b.order(a));
        } else {
            // Names are sorted, and files stand in the order of their names.
            self.stack[first..].reverse();
        }
        self.offer(first);
        Ok(())
    }

    /// Lets scouts read directories that will be visited soon; the walk reads the next one itself.
    pub(super) fn offer(&self, first: usize) {
        let dirs = self.stack[first..].iter().filter_map(|item| match item {
            WalkItem::Dir(place) => Some(place),
            WalkItem::File(_) => None,
        });
        let all = dirs.clone().count();
        let later = dirs.take(all.saturating_sub(1)).filter(|place| place.is_listed());
        self.ahead.offer(later.map(|place| place.path.clone()));
    }

    /// Returns the known facts of a name in a directory. The walk asks in nearly rising order, so the search starts at
    /// the last place.
    pub(super) fn known(&mut self, dir: &RelPath, name: &[u8]) -> Option<&'a (RelPath, KnownFile)> {
        let list = self.request.known.entries();
        let order = |at: usize| order_of(&list[at].0, dir, name);
        let mut from = self.known_at;
        if from < list.len() && order(from).is_eq() {
            self.known_at += 1;
            return Some(&list[from]);
        }
        if from > 0 && order(from - 1).is_ge() {
            from = list[..from].partition_point(|(path, _)| order_of(path, dir, name).is_lt());
        }
        let (mut to, mut step) = (from, 1);
        while to < list.len() && order(to).is_lt() {
            from = to + 1;
            to += step;
            step *= 2;
        }
        let to = to.min(list.len());
        let at = from + list[from..to].partition_point(|(path, _)| order_of(path, dir, name).is_lt());
        let found = list.get(at).filter(|(path, _)| order_of(path, dir, name).is_eq());
        self.known_at = at + usize::from(found.is_some());
        found
    }

    /// Returns the names in a directory.
    pub(super) fn listed_names(&self, place: &WalkDir) -> Names {
        let mut names = Names::default();
        self.targets.names_in(&place.path, &mut names);
        match &self.extent {
            Some(extent) if !place.in_extent => extent.names_in(&place.path, &mut names),
            _ if place.keeps() => {
                self.known.names_in(&place.path, &mut names);
                self.sticky.names_in(&place.path, &mut names);
                Repo::chain(place.repo.as_ref()).for_each(|tracked| tracked.names_in(&place.path, &mut names));
            }
            _ => {}
        }
        names.sort();
        names
    }

    /// Tells whether a directory that is not shown holds anything that is wanted.
    pub(super) fn leads_somewhere(&self, place: &WalkDir) -> bool {
        let (path, wanted) = (&place.path, &self.targets);
        let outside = !place.in_extent && self.extent.as_ref().is_some_and(|extent| extent.any_below(path));
        outside || self.holds_kept(place) || wanted.any_below(path) || wanted.contains(path)
    }

    /// Returns true if a directory that is not shown holds anything that stays captured.
    pub(super) fn holds_kept(&self, place: &WalkDir) -> bool {
        let path = &place.path;
        place.in_extent
            && place.keeps()
            && (self.known.any_below(path)
                || self.sticky.any_below(path)
                || self.sticky.contains(path)
                || Repo::chain(place.repo.as_ref()).any(|tracked| tracked.any_below(path)))
    }

    /// Records the directory itself.
    pub(super) fn record(&mut self, place: &WalkDir, perm: u16, whole: bool) {
        let named = self.targets.contains(&place.path)
            || (place.in_extent && place.keeps() && self.sticky.contains(&place.path));
        let recorded = place.shown() || named;
        let place = place.clone();
        self.found.visited.push(Visited { place, perm, recorded, whole, applied: None, marks: Box::default() });
    }

    /// Returns whether the walk has reached a limit.
    pub(super) fn is_full(&self) -> bool {
        let limit = self.request.limits.files;
        self.ordinary >= limit || self.found.visited.len() as u64 > limit.saturating_add(SPARE_DIRS)
    }

    /// Hands a captured path on.
    pub(super) fn emit(&mut self, mut candidate: Candidate) {
        if candidate.class == Class::Ordinary && self.ordinary >= self.request.limits.files {
            if !candidate.targeted || !self.spend(candidate.stamp.size) {
                self.found.over.push(candidate.path);
                return;
            }
            candidate.class = Class::Targeted;
        }
        self.ordinary += u64::from(candidate.class == Class::Ordinary);
        self.request.progress.add(1, 0);
        self.found.files.push(candidate);
    }

    /// Notes a path that is left out, with the reason.
    pub(super) fn skip(&mut self, path: &RelPath, reason: SkipReason) {
        self.found.skipped.insert(path.clone(), reason);
    }

    /// Notes a directory that could not be opened.
    ///
    /// # Errors
    /// Returns the error of what could not be done.
    pub(super) fn unopened(&mut self, place: &WalkDir, errno: Errno) -> Result<()> {
        if read::is_ours(errno) {
            return Err(errno).at("opening a directory of the workspace", place.path.under(self.root.path()));
        }
        let gone = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP);
        if place.path.is_root() {
            // Nothing at all can be seen: that is no checkpoint with a gap.
            let refused = Error::io(errno.into(), "opening the workspace", self.root.path());
            return Err(if gone {
                Error::new(Code::WorkspaceGone, refused.message()).path(self.root.path())
            } else {
                refused
            });
        }
        let targeted = place.forced || self.targets.contains(&place.path);
        if !gone {
            self.skip(&place.path, SkipReason::Unreadable);
        } else if targeted || errno != Errno::NOENT {
            self.skip(&place.path, SkipReason::Vanished);
        }
        Ok(())
    }
}

/// Returns how `path` stands to the path of `name` in `dir`.
fn order_of(path: &RelPath, dir: &RelPath, name: &[u8]) -> Ordering {
    let (path, dir) = (path.as_bytes(), dir.as_bytes());
    if dir.is_empty() {
        return path.cmp(name);
    }
    let (head, rest) = path.split_at(path.len().min(dir.len()));
    head.cmp(dir).then_with(|| match rest.split_first() {
        Some((slash, rest)) => slash.cmp(&b'/').then_with(|| rest.cmp(name)),
        None => Ordering::Less,
    })
}

/// Device and inode of a directory that exists.
pub(crate) fn identity(path: &std::path::Path) -> Option<(u64, u64)> {
    // A path that does not exist cannot be met on the walk.
    let stat = rustix::fs::stat(path).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Returns what of the request itself cannot be heeded.
fn complaints(request: &Request<'_>) -> Vec<String> {
    let targets = request.targets.iter().map(|target| &target.path);
    let unreachable = targets
        .filter(|path| path.components().any(verdict::is_never_captured))
        .map(|path| format!("`{}` is never captured", path.display()));
    let faulty = request.exclude.iter().filter_map(|pattern| {
        let fault = level::fault(pattern)?;
        Some(format!("the exclude pattern `{pattern}` is ignored: {fault}"))
    });
    unreachable.chain(faulty).collect()
}
