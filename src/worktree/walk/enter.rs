//! The content of a directory that decides over the rest of it: a repository, its maker's mark, its ignore file.

use std::collections::HashSet;
use std::sync::Arc;

use rustix::fs::FileType;

use super::super::git_dir::GitDir;
use super::super::git_index;
use super::super::names::Names;
use super::super::read::{self, Content, WHOLE};
use super::listing::Here;
use super::walk_dir::{DirState, Repo, Repository, Tracked, WalkDir};
use super::walker::Walker;
use crate::error::Result;
use crate::filter::secret::is_secret;
use crate::filter::{Level, generated, level};
use crate::model::coverage::{MOST_REPOSITORIES, Pattern, SkipReason};
use crate::model::path::RelPath;
use crate::sys::libgit2::are_committed;

impl Walker<'_> {
    /// Applies what the directory itself holds: a repository, the mark of its maker, its ignore file (which is given
    /// back, so that what is recorded is what was applied).
    pub(super) fn settle(&mut self, place: &mut WalkDir, here: &Here<'_>, names: &Names) -> Option<Content> {
        if place.state != DirState::Open {
            let has = |name: &[u8]| names.contains(name);
            if place.local && (generated::made_inside(place.path.name(), &has) || self.is_tagged(place, &has)) {
                place.local = false;
            }
            return None;
        }
        let shown = place.shown();
        let has = |name: &[u8]| {
            if shown { names.contains(name) } else { here.lstat(name).is_ok() }
        };
        let mut lines = Vec::new();
        if has(b".git") && !self.enter_repository(place, &mut lines) {
            return None;
        }
        let named = place.path.is_root() || place.pinned;
        if !named && (generated::made_inside(place.path.name(), &has) || self.is_tagged(place, &has)) {
            (place.state, place.local) = (DirState::Ignored, false);
            return None;
        }
        let excluded = lines.len();
        let content = has(b".gitignore").then(|| self.ignore_file(&place.path, here)).flatten();
        if let Some(content) = &content {
            lines.append(&mut level::lines(&content.bytes));
        }
        let outside = if place.in_extent { excluded } else { lines.len() };
        place.level = Level::push(place.level.take(), &place.path, lines.iter().map(String::as_str));
        let patterns = lines.into_iter().take(outside).map(|text| Pattern { base: place.path.clone(), text });
        self.found.excludes.extend(patterns);
        content
    }

    /// Tells whether the directory is a cache by its tag.
    fn is_tagged(&self, place: &WalkDir, has: &dyn Fn(&[u8]) -> bool) -> bool {
        // A tag that cannot be read counts as none.
        let tag = || read::whole(self.root, &place.path.join(generated::CACHE_TAG), WHOLE).ok();
        has(generated::CACHE_TAG) && tag().is_some_and(|content| content.bytes.starts_with(generated::CACHE_SIGNATURE))
    }

    fn ignore_file(&self, dir_path: &RelPath, here: &Here<'_>) -> Option<Content> {
        let stat = here.lstat(b".gitignore").ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        let cap = self.request.limits.file_bytes.min(WHOLE);
        read::whole(self.root, &dir_path.join(b".gitignore"), cap).ok()
    }

    /// Takes in the repository whose `.git` stands in `place`; false when that is a workspace of its own.
    fn enter_repository(&mut self, place: &mut WalkDir, lines: &mut Vec<String>) -> bool {
        let worktree = place.path.under(self.root.path());
        let Some(git) = GitDir::of(&worktree) else {
            return true;
        };
        if git.linked && !place.path.is_root() && !place.forced {
            self.skip(&place.path, SkipReason::LinkedWorktree);
            place.state = DirState::Excluded;
            return false;
        }
        // The target of a link is a repository in another directory.
        let is_link = || worktree.join(".git").is_symlink();
        if !place.path.is_root() && self.found.repositories.len() < MOST_REPOSITORIES && !is_link() {
            let pointer = git.pointer.clone().unwrap_or_default();
            self.found.repositories.insert(place.path.join(b".git"), pointer);
        }
        let shown = place.path.display();
        // Before it is read: what is written meanwhile is noticed by the next look at the marks.
        let marks = git.marks();
        let tracked = tracked(&git, &place.path).unwrap_or_else(|error| {
            let text = format!("ignored files that git tracks in `{shown}` are not captured: {error}");
            self.found.warnings.push(text);
            Tracked::new([])
        });
        let exclude = git.exclude();
        let own =
            Repository { base: place.path.clone(), git, marks, tracked: Arc::new(tracked), staged: Arc::default() };
        place.repo = Some(Arc::new(Repo { own, parent: place.repo.take() }));
        match exclude {
            Ok(content) => lines.append(&mut level::lines(&content)),
            Err(error) => {
                let text = format!("`info/exclude` of the repository in `{shown}` is ignored: {error}");
                self.found.warnings.push(text);
            }
        }
        true
    }
}

/// Returns the paths that the repository at `base` tracks, from its index. A path with the name of a secret counts only if the commit of
/// HEAD contains it, because a file that was only staged has not been shared. An ignored file is looked up in HEAD when a walk comes to it.
pub(crate) fn tracked(git: &GitDir, base: &RelPath) -> Result<Tracked> {
    let mut paths = git_index::tracked(&git.dir)?;
    let secrets: Vec<RelPath> = paths.iter().filter(|path| is_secret(path.as_bytes())).cloned().collect();
    if !secrets.is_empty() {
        let committed = are_committed(&git.dir, secrets.iter().map(RelPath::to_path));
        let staged = secrets.into_iter().zip(committed).filter(|(_, is_committed)| !is_committed);
        let staged: HashSet<RelPath> = staged.map(|(path, _)| path).collect();
        paths.retain(|path| !staged.contains(path));
    }
    Ok(Tracked::new(paths.into_iter().map(|path| below(base, path))))
}

/// Returns the path of something in the repository at `base`.
fn below(base: &RelPath, path: RelPath) -> RelPath {
    if base.is_root() {
        return path;
    }
    path.components().fold(base.clone(), |dir, name| dir.join(name))
}
