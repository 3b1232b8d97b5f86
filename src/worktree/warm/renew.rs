//! Brings a warm tree up to date: finds the names to look at again, and puts the results in place.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::node::Leaf;
use super::tree::{PrivateFiles, Warm, has_names};
use crate::error::Result;
use crate::filter::verdict::is_never_captured;
use crate::filter::{generated, secret};
use crate::model::change::{Dirty, Reach};
use crate::model::coverage::{Extent, SkipReason};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::stamp::{KnownFile, KnownPaths};
use crate::sys::interrupt::Interrupt;
use crate::worktree::beneath::Root;
use crate::worktree::capture::{Gathered, open_root, refuse_never};
use crate::worktree::content::Doubts;
use crate::worktree::read::{self, WHOLE};
use crate::worktree::request::{Request, Sinks, Stats};
use crate::worktree::units::{database_of, logs_of};
use crate::worktree::walk::{self, Again, Candidate, ContentSource, Repo, WalkResult};

/// The outcome of an attempt to bring a warm tree up to date.
#[derive(Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The tree is what the workspace is now.
    Done {
        /// The cost of looking at what changed.
        stats: Stats,
        /// Directories whose rules have changed, so that other directories below them need watches.
        ruled: BTreeSet<RelPath>,
        /// Directories that rules admit anew, so that changes in them may have given no event until now.
        reached: BTreeSet<RelPath>,
    },
    /// Everything has to be scanned; the reason, for logs. The tree is still valid, but the caller drops it.
    Rescan(&'static str),
}

/// The reason for a scan.
const TOO_MANY: &str = "there are more files than a checkpoint may contain";

/// The result of one look again.
struct Looked {
    started: Instant,
    stats: Stats,
    /// The highest directories that were looked into and were not admitted before.
    reached: BTreeSet<RelPath>,
    /// Devices and inodes of captured files that were not known to have several names.
    linked: HashSet<(u64, u64)>,
}

impl Warm {
    /// Looks again at dirty paths; new content goes to `sink`.
    ///
    /// # Errors
    /// As [`crate::worktree::capture`]. The caller drops the tree then, and also when it cannot keep the sink's
    /// content.
    pub fn renew(
        &mut self,
        request: &Request<'_>,
        dirty: &Dirty,
        sinks: Sinks<'_>,
        control: Interrupt<'_>,
    ) -> Result<Renewed> {
        if !self.serves(request) {
            return Ok(Renewed::Rescan("the rules of what is captured have changed"));
        }
        refuse_never(request)?;
        let root = open_root(request.root)?;
        if root.identity()? != self.identity {
            return Ok(Renewed::Rescan("the root is another directory"));
        }
        let started = Instant::now();
        let (paths, mut ruled) = match self.paths(&root, dirty) {
            Ok(found) => found,
            Err(why) => return Ok(Renewed::Rescan(why)),
        };
        if paths.is_empty() {
            return Ok(Renewed::Done { stats: Stats::default(), ruled, reached: BTreeSet::new() });
        }
        let looked =
            |warm: &mut Warm, paths: &BTreeSet<RelPath>| warm.look_again(request, &root, paths, sinks, control);
        let Some(first) = looked(self, &paths)? else { return Ok(Renewed::Rescan(TOO_MANY)) };
        let (mut stats, mut reached) = (first.stats, first.reached);
        stats.walk_us += (first.started - started).as_micros() as u64;
        let others = self.other_names(&first.linked);
        if !others.is_empty() {
            let others = Dirty::new(others.into_iter().map(|path| (path, Reach::Entry)));
            let (paths, others_ruled) = match self.paths(&root, &others) {
                Ok(found) => found,
                Err(why) => return Ok(Renewed::Rescan(why)),
            };
            let Some(second) = looked(self, &paths)? else { return Ok(Renewed::Rescan(TOO_MANY)) };
            stats.add(&second.stats);
            reached.extend(second.reached);
            ruled.extend(others_ruled);
        }
        Ok(Renewed::Done { stats, ruled, reached })
    }

    /// Looks again at some paths and those below; `None` where there are too many.
    fn look_again(
        &mut self,
        request: &Request<'_>,
        root: &Root,
        paths: &BTreeSet<RelPath>,
        sinks: Sinks<'_>,
        control: Interrupt<'_>,
    ) -> Result<Option<Looked>> {
        let started = Instant::now();
        let known = self.known_at(paths);
        let request = Request { known: &known, extent: Extent::Tree, spare: self.spare(), ..*request };
        let mut found =
            walk::walk_again(&request, root, self.rules.configured.clone(), false, self.again(paths), control)?;
        if !found.over.is_empty() || found.skipped.values().any(|reason| *reason == SkipReason::OverCount) {
            return Ok(None);
        }
        self.doubt_reported(root, &mut found.files, control)?;
        let walked = Instant::now();
        let mut gathered = Gathered::default();
        let mut files = std::mem::take(&mut found.files);
        gathered.read(&request, root, &mut files, sinks, control)?;
        gathered.skipped.append(&mut found.skipped);
        gathered.retain_known(&request);
        let mut stats = gathered.stats;
        stats.walk_us = (walked - started).as_micros() as u64;
        stats.hash_us = walked.elapsed().as_micros() as u64;
        let reached = self.reached(request.root, &found);
        let linked = gathered.known.iter().filter(|(path, known)| has_names(known) && !self.eventless.contains(path));
        let linked = linked.map(|(_, known)| (known.stamp.dev, known.stamp.ino)).collect();
        self.put(paths, gathered, found);
        Ok((self.files <= self.rules.limits.files).then_some(Looked { started, stats, reached, linked }))
    }

    /// Has files read that were reported although no time has changed: a written mapping gives its event when it is
    /// closed. Files that are always reported are left out.
    fn doubt_reported(&self, root: &Root, files: &mut [Candidate], control: Interrupt<'_>) -> Result<()> {
        let mut doubts = Doubts::new();
        for file in files.iter() {
            if let ContentSource::Known(id) = file.source
                && !self.eventless.contains(&file.path)
            {
                doubts.closed_after_writing(
                    &file.path,
                    &KnownFile { stamp: file.stamp, id, proven: true, private: false },
                );
            }
        }
        let wrong = doubts.settle(root, control)?;
        files.iter_mut().filter(|file| wrong.contains(&file.path)).for_each(|file| file.source = ContentSource::Unread);
        Ok(())
    }

    /// Returns the highest of the visited directories that matter only from now on, because of rules or of captured
    /// files in them. They may have changed without an event.
    fn reached(&self, root: &Path, found: &WalkResult) -> BTreeSet<RelPath> {
        let mut reached: BTreeSet<RelPath> = BTreeSet::new();
        for path in found.visited.iter().map(|visited| &visited.place.path) {
            let below = std::iter::successors(path.parent(), RelPath::parent).any(|above| reached.contains(&above));
            let known = || self.node(path).is_some();
            if !below && !known() && (generated::may_be_made(path.name()) || !self.admits(root, path)) {
                reached.insert(path.clone());
            }
        }
        reached
    }

    /// Returns the captured names of files that have got further names, except those that always count as dirty.
    ///
    /// No event reports a new name of a file, nor a write through it.
    fn other_names(&self, linked: &HashSet<(u64, u64)>) -> BTreeSet<RelPath> {
        let mut others = BTreeSet::new();
        if !linked.is_empty() {
            self.root.visit(&RelPath::root(), &mut |path, leaf| {
                if linked.contains(&(leaf.known.stamp.dev, leaf.known.stamp.ino)) && !self.eventless.contains(&path) {
                    others.insert(path);
                }
            });
        }
        others
    }

    /// Tells whether no repository's rules have changed. Their files are looked at each time, because they may be
    /// outside of the workspace.
    pub fn is_settled(&self) -> bool {
        self.repos.values().all(|repo| repo.own.git.marks() == repo.own.marks)
    }

    /// Returns the paths to look at again, none below another, and those of them that are there because of rules.
    fn paths(&mut self, root: &Root, dirty: &Dirty) -> Result<(BTreeSet<RelPath>, BTreeSet<RelPath>), &'static str> {
        let (mut paths, mut ruled) = (BTreeSet::new(), BTreeSet::new());
        for (path, reach) in dirty.iter() {
            if path.is_root() {
                if reach == Reach::Subtree {
                    return Err("the root itself has changed");
                }
                continue;
            }
            if let Some(base) = self.ruled(root, path) {
                ruled.insert(base);
            } else if !path.components().any(is_never_captured) {
                paths.insert(self.reachable(path));
                paths.extend(self.rest_of_unit(path));
            }
        }
        // In a directory that is looked at as a whole, only its rule files are named.
        for path in dirty.rule_files() {
            ruled.extend(self.ruled(root, path));
        }
        self.follow_repositories(&mut ruled);
        paths.extend(ruled.iter().cloned());
        if paths.contains(&RelPath::root()) {
            return Err("the rules at the root have changed");
        }
        let covered =
            |path: &RelPath| std::iter::successors(path.parent(), RelPath::parent).any(|a| paths.contains(&a));
        let highest = |path: &&RelPath| !covered(path);
        Ok((paths.iter().filter(highest).cloned().collect(), ruled.iter().filter(highest).cloned().collect()))
    }

    /// Returns the directory that a rule file rules, if the file has changed so that it may show or hide paths in
    /// there.
    ///
    /// The file is compared with the rules that were applied, not with the captured file: a change between the two
    /// would hide for good that the rules are old.
    fn ruled(&self, root: &Root, path: &RelPath) -> Option<RelPath> {
        let dir = path.parent()?;
        let node = self.node(&dir)?;
        let name = path.name();
        let open = node.state.is_open();
        // An unreadable file counts as no tag and as no rules, as in the walk.
        let content = || read::whole(root, path, self.rules.limits.file_bytes.min(WHOLE)).ok();
        let changed = match name {
            b".git" => true,
            b".gitignore" => {
                let now = content().and_then(|content| ObjectId::of(ObjectKind::Blob, &content.bytes).ok());
                open && now != node.applied
            }
            generated::CACHE_TAG => {
                !open || content().is_some_and(|content| content.bytes.starts_with(generated::CACHE_SIGNATURE))
            }
            mark if generated::is_mark(mark) => {
                let known = node.marks.iter().any(|known| **known == *mark);
                !open || known != root.lstat(path).is_ok()
            }
            _ => false,
        };
        changed.then_some(dir)
    }

    /// Returns the other known files of the `SQLite` database that a path belongs to. They must be read together.
    fn rest_of_unit(&self, path: &RelPath) -> Vec<RelPath> {
        let database = database_of(path).unwrap_or_else(|| path.clone());
        let files = logs_of(&database).into_iter().chain([database]);
        files.filter(|file| file != path && self.known_of(file).is_some()).collect()
    }

    /// Returns the path itself, or the highest directory above it that was not looked into.
    fn reachable(&self, path: &RelPath) -> RelPath {
        let mut node = &self.root;
        let mut at = RelPath::root();
        for name in path.components() {
            at = at.join(name);
            match node.dir(name) {
                Some(next) => node = next,
                None => break,
            }
        }
        at
    }

    /// Reads git's tracked paths again where they may have changed. These files are looked at each time, because they
    /// may be outside of the workspace.
    fn follow_repositories(&mut self, paths: &mut BTreeSet<RelPath>) {
        let moved = self.repos.values().filter(|repo| repo.own.git.marks() != repo.own.marks);
        let moved: Vec<Arc<Repo>> = moved.cloned().collect();
        for repo in &moved {
            let (own, marks) = (&repo.own, repo.own.git.marks());
            let tracked = walk::tracked(&own.git, &own.base);
            let (Ok(tracked), true) = (tracked, marks.exclude == own.marks.exclude) else {
                paths.insert(own.base.clone());
                continue;
            };
            let is_shared = |path: &RelPath| self.known_of(path).is_some_and(|known| !known.private);
            for path in tracked.not_in(&own.tracked).filter(|path| !is_shared(path)) {
                paths.insert(self.reachable(path));
            }
            // A secret that git does not track any more is private from now on.
            for path in
                own.tracked.not_in(&tracked).filter(|path| secret::is_secret(path.as_bytes()) && is_shared(path))
            {
                paths.insert(self.reachable(path));
            }
            // A file that was only staged may be in the commit of HEAD by now.
            let staged = own.staged.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for path in staged.iter().filter(|path| !is_shared(path)) {
                paths.insert(self.reachable(path));
            }
            let tracked = Arc::new(tracked);
            let own = walk::Repository { marks, tracked, staged: Arc::default(), ..own.clone() };
            self.repos.insert(own.base.clone(), Arc::new(Repo { own, parent: None }));
        }
        if !moved.is_empty() {
            self.rechain();
        }
    }

    /// Links every repository to the one around it.
    fn rechain(&mut self) {
        let bases: Vec<RelPath> = self.repos.keys().cloned().collect();
        for base in bases {
            let parent = base.parent().and_then(|above| self.repo_of(&above));
            if let Some(repo) = self.repos.get(&base) {
                let repo = Arc::new(Repo { own: repo.own.clone(), parent });
                self.repos.insert(base, repo);
            }
        }
    }

    /// Returns the known facts of the paths and those below. None of the paths is the root.
    pub fn known_at(&self, paths: &BTreeSet<RelPath>) -> KnownPaths {
        let mut known: Vec<(RelPath, KnownFile)> = Vec::new();
        for path in paths {
            let Some(parent) = path.parent().and_then(|parent| self.node(&parent)) else { continue };
            known.extend(parent.leaf(path.name()).map(|leaf| (path.clone(), leaf.known)));
            if let Some(dir) = parent.dir(path.name()) {
                dir.visit(path, &mut |path, leaf| known.push((path, leaf.known)));
            }
            known.extend(at_or_below(&self.retained, path).map(|(path, known)| (path.clone(), *known)));
        }
        KnownPaths::new(known)
    }

    /// Returns the paths that have to be looked at again.
    pub(super) fn again(&self, paths: &BTreeSet<RelPath>) -> Vec<Again> {
        let mut names: BTreeMap<RelPath, Vec<Vec<u8>>> = BTreeMap::new();
        for path in paths {
            names.entry(path.parent().unwrap_or_default()).or_default().push(path.name().to_vec());
        }
        names.into_iter().filter_map(|(dir, names)| Some(Again { place: self.place(&dir)?, names })).collect()
    }

    /// Replaces the knowledge of `paths` and those below by the new result.
    fn put(&mut self, paths: &BTreeSet<RelPath>, gathered: Gathered, found: WalkResult) {
        for path in paths {
            self.stale(path);
            self.forget(path);
        }
        for visited in &found.visited {
            self.put_dir(visited);
        }
        let captured: BTreeSet<&RelPath> =
            gathered.entries.iter().chain(&gathered.private).map(|(path, _)| path).collect();
        for (path, known) in &gathered.known {
            self.put_known(path, *known, captured.contains(path));
        }
        for path in &found.refused {
            if let Some(parent) = path.parent().and_then(|parent| self.node_mut(&parent)) {
                parent.whole = false;
            }
        }
        if !found.beyond.is_empty() || !gathered.unstable_private.is_empty() {
            self.private.beyond.extend(found.beyond);
            self.private.unstable.extend(gathered.unstable_private);
            self.private.tree = None;
        }
        let excluded = !found.excludes.is_empty();
        let unstable = !gathered.unstable.is_empty();
        if !gathered.skipped.is_empty() {
            Arc::make_mut(&mut self.coverage).skipped.extend(gathered.skipped);
        }
        self.warnings.extend(found.warnings);
        if !found.repositories.is_empty() {
            Arc::make_mut(&mut self.coverage).repositories.extend(found.repositories);
            self.own = None;
        }
        if excluded || unstable {
            let coverage = Arc::make_mut(&mut self.coverage);
            coverage.unstable.extend(gathered.unstable);
            coverage.unstable.sort_unstable();
            coverage.excludes.extend(found.excludes);
            // Sorted as the walk meets them: a directory comes where the paths below it come.
            coverage.excludes.sort_by_cached_key(|pattern| [pattern.base.as_bytes(), b"/"].concat());
            self.own = None;
        }
    }

    /// Takes out everything at and below a path.
    fn forget(&mut self, path: &RelPath) {
        let Some(parent) = path.parent().and_then(|parent| self.node_mut(&parent)) else { return };
        let leaf = parent.take_leaf(path.name());
        let dir = parent.take_dir(path.name());
        let (mut files, mut bytes, mut secrets, mut private) = (0, 0, 0, 0);
        let mut count = |path: &RelPath, leaf: &Leaf| {
            secrets += u64::from(secret::is_secret(path.as_bytes()));
            if leaf.known.private {
                private += leaf.known.stamp.size;
                return;
            }
            files += 1;
            bytes += leaf.known.stamp.size;
        };
        leaf.iter().for_each(|leaf| count(path, leaf));
        if let Some(dir) = dir {
            dir.visit(path, &mut |path, leaf| count(&path, leaf));
        }
        self.files -= files;
        self.bytes -= bytes;
        self.secrets -= secrets;
        self.private.bytes -= private;
        let PrivateFiles { paths, dirs, unstable, .. } = &mut self.private;
        let gone = [drop_from(paths, path), drop_from(dirs, path), drop_from(unstable, path)];
        if gone.contains(&true) | drop_below(&mut self.private.beyond, path) {
            self.private.tree = None;
        }
        drop_from(&mut self.links, path);
        drop_below(&mut self.retained, path);
        drop_below(&mut self.repos, path);
        if drop_below(&mut self.shards, path) {
            self.own = None;
        }
        let inside: Vec<RelPath> = self
            .eventless
            .range(path.clone()..)
            .take_while(|p| p.as_bytes().starts_with(path.as_bytes()))
            .cloned()
            .collect();
        for one in inside.iter().filter(|one| one.starts_with(path)) {
            self.moved |= self.eventless.remove(one);
        }
        if at_or_below(&self.coverage.skipped, path).next().is_some() {
            drop_below(&mut Arc::make_mut(&mut self.coverage).skipped, path);
        }
        if at_or_below(&self.coverage.repositories, path).next().is_some() {
            drop_below(&mut Arc::make_mut(&mut self.coverage).repositories, path);
            self.own = None;
        }
        let unstable = self.coverage.unstable.iter().any(|unstable| unstable.starts_with(path));
        if unstable || self.coverage.excludes.iter().any(|pattern| pattern.base.starts_with(path)) {
            let coverage = Arc::make_mut(&mut self.coverage);
            coverage.unstable.retain(|unstable| !unstable.starts_with(path));
            coverage.excludes.retain(|pattern| !pattern.base.starts_with(path));
            self.own = None;
        }
    }
}

fn at_or_below<'m, V>(map: &'m BTreeMap<RelPath, V>, top: &RelPath) -> impl Iterator<Item = (&'m RelPath, &'m V)> {
    let near = map.range(top.clone()..).take_while({
        let top = top.clone();
        move |(path, _)| path.as_bytes().starts_with(top.as_bytes())
    });
    let top = top.clone();
    near.filter(move |(path, _)| path.starts_with(&top))
}

/// As [`drop_below`], of a set.
fn drop_from(set: &mut BTreeSet<RelPath>, top: &RelPath) -> bool {
    let near = set.range(top.clone()..).take_while(|path| path.as_bytes().starts_with(top.as_bytes()));
    let inside: Vec<RelPath> = near.filter(|path| path.starts_with(top)).cloned().collect();
    inside.iter().for_each(|path| _ = set.remove(path));
    !inside.is_empty()
}

/// Drops the entries of a path and those below; returns true if there were any.
fn drop_below<V>(map: &mut BTreeMap<RelPath, V>, top: &RelPath) -> bool {
    let inside: Vec<RelPath> = at_or_below(map, top).map(|(path, _)| path.clone()).collect();
    for path in &inside {
        map.remove(path);
    }
    !inside.is_empty()
}
