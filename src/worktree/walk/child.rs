//! One entry of a directory: whether it becomes a candidate, a directory to visit, a listed gap, or nothing.

use std::sync::PoisonError;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::super::names::Names;
use super::super::read::{Content, ReadMark};
use super::super::request::TargetBudget;
use super::candidate::{Candidate, Class, ContentSource};
use super::listing::{Here, Seen};
use super::walk_dir::{DirState, Repo, WalkDir, WalkItem};
use super::walker::{MAX_DEPTH, Walker};
use crate::filter::level::{Level, Ruling};
use crate::filter::verdict::{DirRule, directory_rule, is_never_captured};
use crate::filter::{database, generated, secret};
use crate::model::coverage::{SkipReason, Weight};
use crate::model::path::RelPath;
use crate::model::policy::Secrets;
use crate::model::stamp::{KnownFile, Stamp};
use crate::sys::libgit2::CommitTree;

/// The stamp of a link, and the file system's clock just before it was taken.
struct LinkSeen {
    stamp: Stamp,
    at: i64,
}

impl Walker<'_> {
    /// Looks at `name` in the open directory of `place`; `names` are the directory's names as far as they were listed.
    pub(super) fn child(&mut self, place: &WalkDir, here: &Here<'_>, names: &Names, name: &[u8], seen: Seen) {
        if is_never_captured(name) {
            return self.never(place, name, seen);
        }
        let stamp = match seen.stamp {
            Ok(stamp) => stamp,
            Err(errno) => return self.unseen(place, &place.path.join(name), errno),
        };
        let kind = FileType::from_raw_mode(stamp.mode);
        if kind == FileType::Directory {
            return self.child_dir(place, here, names, place.path.join(name), stamp.ino);
        }
        let (path, known) = match self.known(&place.path, name) {
            Some((path, known)) => (path.clone(), Some(known)),
            None => (place.path.join(name), None),
        };
        match kind {
            FileType::RegularFile => self.file(place, path, known, stamp),
            FileType::Symlink => self.link(place, here, path, known, LinkSeen { stamp, at: seen.at }),
            _ => self.special(place, &path, known),
        }
    }

    /// Says that a repository's own data is about to be destroyed. No restore writes into a `.git`, so nothing is captured of it.
    fn never(&mut self, place: &WalkDir, name: &[u8], seen: Seen) {
        if name != b".git" || seen.stamp.is_err() || self.request.unlimited_targets {
            return;
        }
        let path = place.path.join(name);
        let mut going: Vec<RelPath> = Vec::new();
        if place.forced || self.targets.contains(&path) {
            going.push(path);
        } else if self.targets.any_below(&path) {
            let below =
                self.request.targets.iter().map(|target| &target.path).filter(|target| target.starts_with(&path));
            going.extend(below.filter(|target| self.root.lstat(target).is_ok()).cloned());
        }
        for path in going {
            let weight = self.weigh(&path);
            self.skip(&path, SkipReason::Repository(weight));
        }
    }

    fn unseen(&mut self, place: &WalkDir, path: &RelPath, errno: Errno) {
        let targeted = place.forced || self.targets.contains(path);
        match errno {
            // A name that was listed and is gone; names from piton's own lists need not exist.
            Errno::NOENT if place.shown() && targeted => self.skip(path, SkipReason::Vanished),
            Errno::NOENT => {}
            _ => self.skip(path, SkipReason::Unreadable),
        }
    }

    fn child_dir(&mut self, place: &WalkDir, here: &Here<'_>, names: &Names, path: RelPath, ino: u64) {
        let is_never = |facts: Stat| self.never.contains(&(facts.st_dev, facts.st_ino));
        if self.never.iter().any(|never| never.1 == ino) && here.lstat(path.name()).is_ok_and(is_never) {
            return self.skip(&path, SkipReason::Store);
        }
        let rule = self.dir_rule(place, here, names, &path);
        let targeted = place.forced || self.recursive.contains(&path);
        let in_extent = place.in_extent || self.in_extent(&path);
        let closed =
            (rule == DirRule::Ignored && place.state == DirState::Open) || (rule == DirRule::Open && place.local);
        let may_be_local = closed && in_extent && self.request.spare.looks;
        let is_made = (targeted || may_be_local) && self.is_made(place, here, names, &path);
        let next = WalkDir {
            state: match rule {
                DirRule::Excluded => DirState::Excluded,
                DirRule::Ignored => DirState::Ignored,
                DirRule::Forced | DirRule::Open => place.state,
            },
            level: place.level.clone(),
            repo: place.repo.clone(),
            in_extent,
            forced: targeted && !is_made,
            local: may_be_local && !is_made,
            pinned: rule == DirRule::Forced,
            depth: place.depth + 1,
            path,
        };
        if is_made && targeted && !next.shown() && !self.request.unlimited_targets && !self.holds_kept(&next) {
            let weight = self.weigh(&next.path);
            self.skip(&next.path, SkipReason::Generated(weight));
        }
        if !next.is_listed() && !self.leads_somewhere(&next) {
            return;
        }
        if next.depth > MAX_DEPTH {
            return self.skip(&next.path, SkipReason::Unreadable);
        }
        self.stack.push(WalkItem::Dir(next));
    }

    /// Tells whether a tool made the directory and can make it again: not even a target, or removing `node_modules` would cost
    /// its whole weight.
    fn is_made(&self, place: &WalkDir, here: &Here<'_>, names: &Names, path: &RelPath) -> bool {
        let beside = |name: &[u8]| names.contains(name) || (!place.is_listed() && here.lstat(name).is_ok());
        let inside = |name: &[u8]| {
            let tag = path.join(name).under(self.root.path());
            tag.symlink_metadata().is_ok()
        };
        generated::made_beside(path.name(), &beside) || generated::made_inside(path.name(), &inside)
    }

    /// Returns what the rules say of a directory, its parent's state included: `Open` keeps it.
    fn dir_rule(&self, place: &WalkDir, here: &Here<'_>, names: &Names, path: &RelPath) -> DirRule {
        let beside = |name: &[u8]| {
            if place.is_listed() { names.contains(name) } else { here.lstat(name).is_ok() }
        };
        let configured = self.configured.as_ref();
        match place.state {
            DirState::Open => directory_rule(configured, place.level.as_ref(), path, &beside),
            DirState::Ignored | DirState::Over if Level::ruling(configured, path, true) == Ruling::Ignore => {
                DirRule::Excluded
            }
            DirState::Ignored | DirState::Over | DirState::Excluded => DirRule::Open,
        }
    }

    fn file(&mut self, place: &WalkDir, path: RelPath, known: Option<&KnownFile>, stamp: Stamp) {
        if place.local {
            self.listing = self.listing.saturating_sub(1);
        }
        let class = self.class(place, &path, known);
        let secret = secret::is_secret(path.as_bytes()) && !is_tracked(place, &path);
        let gap = if secret {
            Some(SkipReason::Secret)
        } else if stamp.size > self.request.limits.file_bytes {
            Some(SkipReason::TooLarge(stamp.size))
        } else {
            None
        };
        let class = class.filter(|class| gap.is_some() || !self.stays_private(place, *class, &path, known));
        let targeted = place.forced || self.targets.contains(&path);
        let sealed = secret && self.request.secrets == Secrets::Never && !self.request.unlimited_targets;
        let is_rationed = targeted
            && match self.request.budget {
                TargetBudget::Wide => false,
                TargetBudget::Sparing => place.forced || (class.is_some() && gap.is_none()),
                TargetBudget::First | TargetBudget::Linked => true,
            };
        if is_rationed && !self.may_take(place, &path, stamp.size) {
            return;
        }
        let class = match (class, gap) {
            (Some(class), None) => class,
            (_, _) if targeted && self.request.wanted_targets && !secret && self.spend(stamp.size) => Class::Wanted,
            (class, gap) => {
                let is_admitted = class.is_some();
                if let Some(gap) = gap.filter(|_| is_admitted) {
                    // The part that git shows leaves it out in any case.
                    self.skip(&path, gap);
                }
                let may_be = match gap {
                    Some(SkipReason::Secret) => self.request.secrets == Secrets::Local,
                    Some(_) if is_admitted => false,
                    _ => true,
                };
                match self.private(place, &path, known, &stamp, may_be && !sealed) {
                    true => Class::Private,
                    false if !targeted || sealed => {
                        return targeted.then_some(gap).flatten().into_iter().for_each(|gap| self.skip(&path, gap));
                    }
                    false if self.spend(stamp.size) => {
                        self.found.beyond.remove(&path);
                        Class::Targeted
                    }
                    false => return self.skip(&path, SkipReason::OverBudget(Weight::whole(stamp.size))),
                }
            }
        };
        let source = reused(known, &stamp, class).filter(|_| !self.is_live(&path)).unwrap_or(ContentSource::Unread);
        self.push(path, stamp, source, class, targeted);
    }

    /// Tells whether a file or link that the rules leave out has its place in the private layer, and takes it from the budget.
    /// One that is beyond it is noted.
    fn private(
        &mut self,
        place: &WalkDir,
        path: &RelPath,
        known: Option<&KnownFile>,
        stamp: &Stamp,
        may_be: bool,
    ) -> bool {
        let is_open = place.state == DirState::Open
            || place.local
            || known.is_some_and(|known| known.private)
            || is_tracked(place, path);
        if !(may_be && self.request.spare.looks && is_open && (place.in_extent || self.in_extent(path))) {
            return false;
        }
        if place.state == DirState::Excluded || Level::ruling(self.configured.as_ref(), path, false) == Ruling::Ignore {
            return false;
        }
        let fits = stamp.size <= self.request.limits.ignored.file_bytes && self.admit(stamp.size, known);
        if !fits {
            self.found.beyond.insert(path.clone(), SkipReason::Beyond(Weight::whole(stamp.size)));
        }
        fits
    }

    /// Tells whether a file may be written through a mapping right now, which moves no time.
    fn is_live(&self, path: &RelPath) -> bool {
        use std::os::fd::AsFd;
        database::is_database(path.name())
            && self.root.open_file(path).is_ok_and(|file| crate::sys::lease::is_written(file.as_fd()))
    }

    fn link(
        &mut self,
        place: &WalkDir,
        here: &Here<'_>,
        path: RelPath,
        known: Option<&KnownFile>,
        LinkSeen { stamp, at: read_at }: LinkSeen,
    ) {
        let targeted = place.forced || self.targets.contains(&path);
        if self.targets.any_below(&path) {
            let text = format!("nothing below `{}` was captured, because it is a symbolic link", path.display());
            self.found.warnings.push(text);
        }
        if self.request.budget.is_sparing() && targeted && !self.may_take(place, &path, stamp.size) {
            return;
        }
        let class = self.class(place, &path, known);
        let class = class.filter(|class| !self.stays_private(place, *class, &path, known));
        let class = match class {
            Some(class) => class,
            None if targeted && self.request.wanted_targets && self.spend(stamp.size) => Class::Wanted,
            None if self.private(place, &path, known, &stamp, true) => Class::Private,
            None if !targeted => return,
            None if self.spend(stamp.size) => Class::Targeted,
            None => return self.skip(&path, SkipReason::OverBudget(Weight::whole(stamp.size))),
        };
        let source = match reused(known, &stamp, class) {
            Some(source) => source,
            None => match here.read_link(path.name()) {
                Ok(target) => ContentSource::Held(Box::new((target, ReadMark::still(stamp, read_at)))),
                Err(errno) => return self.unseen(place, &path, errno),
            },
        };
        self.push(path, stamp, source, class, targeted);
    }

    fn special(&mut self, place: &WalkDir, path: &RelPath, known: Option<&KnownFile>) {
        let targeted = place.forced || self.targets.contains(path);
        if targeted || self.class(place, path, known).is_some() {
            self.skip(path, SkipReason::Special);
        }
    }

    fn push(&mut self, path: RelPath, stamp: Stamp, source: ContentSource, class: Class, targeted: bool) {
        self.stack.push(WalkItem::File(Candidate { path, stamp, source, class, targeted }));
    }

    /// Returns the class that the rules give a file or link; `None` when they leave it out. Size and secrecy are not
    /// their business.
    fn class(&mut self, place: &WalkDir, path: &RelPath, known: Option<&KnownFile>) -> Option<Class> {
        let known = known.is_some_and(|known| !known.private);
        if place.state == DirState::Excluded || !(place.in_extent || self.in_extent(path)) {
            return None;
        }
        let wanted = match Level::ruling(self.configured.as_ref(), path, false) {
            Ruling::Ignore => return None,
            Ruling::Include { .. } => place.state == DirState::Open,
            Ruling::Unnamed => false,
        };
        if known || self.request.sticky.contains(path) {
            return Some(Class::Kept);
        }
        let is_ignored =
            path.name() != b".gitignore" && Level::ruling(place.level.as_ref(), path, false) == Ruling::Ignore;
        let is_open = place.state == DirState::Open && (wanted || !is_ignored);
        let is_shown = is_open || (place.state == DirState::Over && !is_ignored);
        if is_tracked(place, path) && (is_shown || self.is_committed(place, path)) {
            return Some(Class::Tracked);
        }
        is_open.then_some(Class::Ordinary)
    }

    /// Returns true if git tracks a file and the commit of HEAD contains it. No other file was shared. The repository is opened for files
    /// that are ignored or private alone, and once for a walk.
    fn is_committed(&mut self, place: &WalkDir, path: &RelPath) -> bool {
        for own in Repo::all(place.repo.as_ref()).filter(|own| own.tracked.contains(path)) {
            let mut staged = own.staged.lock().unwrap_or_else(PoisonError::into_inner);
            if staged.contains(path) {
                continue;
            }
            let head = self.heads.entry(own.git.dir.clone()).or_insert_with(|| CommitTree::of_head(&own.git.dir));
            let path_there = path.to_path();
            if path_there.strip_prefix(own.base.to_path()).is_ok_and(|inside| head.contains(inside)) {
                return true;
            }
            staged.insert(path.clone());
        }
        false
    }

    /// Returns true for a file that was saved privately before and that no rule ignores any more. It stays private until the commit of
    /// HEAD contains it or the settings include it: a restore can take the rule away, and then no one has decided to share the file.
    fn stays_private(&mut self, place: &WalkDir, class: Class, path: &RelPath, known: Option<&KnownFile>) -> bool {
        let is_included = || matches!(Level::ruling(self.configured.as_ref(), path, false), Ruling::Include { .. });
        let was_private = || known.map_or_else(|| self.request.private.have(path), |known| known.private);
        if !matches!(class, Class::Ordinary | Class::Tracked) || !was_private() || is_included() {
            return false;
        }
        class == Class::Ordinary || !self.is_committed(place, path)
    }

    /// Gives the content of an ignore file that was applied to its candidate, the stack's items from `first` on.
    pub(super) fn hold(&mut self, first: usize, place: &WalkDir, held: Option<Content>) {
        let Some(Content { bytes, mark }) = held else {
            return;
        };
        let path = place.path.join(b".gitignore");
        for item in &mut self.stack[first..] {
            if let WalkItem::File(candidate) = item
                && candidate.path == path
            {
                let unchanged = matches!(candidate.source, ContentSource::Known(_)) && candidate.stamp == mark.stamp;
                if !unchanged {
                    candidate.stamp = mark.stamp;
                    candidate.source = ContentSource::Held(Box::new((bytes, mark)));
                }
                return;
            }
        }
    }
}

fn is_tracked(place: &WalkDir, path: &RelPath) -> bool {
    Repo::chain(place.repo.as_ref()).any(|tracked| tracked.contains(path))
}

/// Returns the content of a file whose stamp proves it unchanged, if it is where the content of such a file has to be.
fn reused(known: Option<&KnownFile>, stamp: &Stamp, class: Class) -> Option<ContentSource> {
    let is_usable = |known: &&KnownFile| known.proven && known.stamp == *stamp && known.private == class.is_private();
    known.filter(is_usable).map(|known| ContentSource::Known(known.id))
}
