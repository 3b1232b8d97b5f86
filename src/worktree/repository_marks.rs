//! Marks of a repository, which show without reading it whether its state has changed.
//!
//! A [`RepositoryPlace::mark`] looks at each file. A [`StandingMark`] looks at directories instead of the files of refs: all gits put a new
//! file in the place of the old one, so that the directory changes. It costs less, and a program that writes into such a file goes unseen.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::repository_state::{OPERATION, RepositoryPlace, below};
use crate::error::{IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::stamp::times_prove;
use crate::sys::clock::file_clock;
use crate::sys::fs::mark::FileMark;

/// The most files and directories of refs that are looked at before a checkpoint.
const MOST: usize = 10_000;

/// Directories in which a command of git in progress writes into its files.
const WRITTEN_INTO: &[&str] = &["rebase-apply", "rebase-merge", "sequencer"];

/// Files and directories of a repository, as they were seen at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingMark(Vec<(PathBuf, FileMark)>);

impl StandingMark {
    /// Returns true if all of them are as they were.
    pub fn holds(&self) -> bool {
        self.0.iter().all(|(path, seen)| marked(path).is_ok_and(|now| now == Some(*seen)))
    }
}

impl RepositoryPlace {
    /// Returns a mark of the files that make the state: as long as it is the same, so is the state. `None` where one of them has
    /// changed so short a time ago that a further change could go unseen.
    ///
    /// # Errors
    /// Errors of listing and of looking.
    pub fn mark(&self) -> Result<Option<ObjectId>> {
        let mut paths = Vec::new();
        for name in ["HEAD", "index"].iter().chain(OPERATION) {
            paths.extend(files_of(&self.dir, name)?);
        }
        for root in self.roots() {
            for name in ["packed-refs", "refs", "reftable", "logs/refs/stash"] {
                paths.extend(files_of(root, name)?);
            }
        }
        paths.sort_unstable();
        let (mut text, mut is_proved, now) = (Vec::new(), true, file_clock());
        for path in paths {
            let Some(mark) = marked(&path)? else { return Ok(None) };
            is_proved &= mark == FileMark::NONE || times_prove(mark.mtime, mark.ctime, now);
            text.extend_from_slice(path.as_os_str().as_bytes());
            text.push(0);
            for number in [mark.dev, mark.ino, mark.size, mark.mtime.cast_unsigned(), mark.ctime.cast_unsigned()] {
                text.extend_from_slice(&number.to_le_bytes());
            }
        }
        if is_proved { ObjectId::of(ObjectKind::Blob, &text).map(Some) } else { Ok(None) }
    }

    /// Returns the mark of the directories of refs, and of single files. `None` where one has changed just now, or where git writes into
    /// files that are there: a rebase is in progress.
    ///
    /// # Errors
    /// Errors of listing and of looking.
    pub fn standing_mark(&self) -> Result<Option<StandingMark>> {
        let mut paths = vec![self.dir.clone(), self.dir.join("HEAD"), self.dir.join("index")];
        for name in WRITTEN_INTO {
            if marked(&self.dir.join(name))? != Some(FileMark::NONE) {
                return Ok(None);
            }
        }
        for root in self.roots() {
            paths.push(root.to_owned());
            paths.extend(
                ["packed-refs", "reftable", "reftable/tables.list", "logs/refs/stash"].map(|name| root.join(name)),
            );
            paths.extend(below(root, Path::new("refs"), MOST)?.1.into_iter().map(|dir| root.join(dir)));
        }
        let mut seen = Vec::with_capacity(paths.len());
        for path in paths {
            let Some(mark) = marked(&path)? else { return Ok(None) };
            seen.push((path, mark));
        }
        let now = file_clock();
        let is_proved =
            seen.iter().all(|(_, mark)| *mark == FileMark::NONE || times_prove(mark.mtime, mark.ctime, now));
        Ok(is_proved.then_some(StandingMark(seen)))
    }

    /// Returns the directories that have refs: a linked worktree has some of its own.
    fn roots(&self) -> impl Iterator<Item = &Path> {
        let own = (self.dir != self.common).then_some(self.dir.as_path());
        std::iter::once(self.common.as_path()).chain(own)
    }
}

/// Returns the mark of a file or directory, also of one that is not there. `None` for a link: what is behind it can change elsewhere.
fn marked(path: &Path) -> Result<Option<FileMark>> {
    match path.symlink_metadata() {
        Ok(facts) if facts.is_symlink() => Ok(None),
        Ok(facts) => Ok(Some(FileMark::from(&facts))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Some(FileMark::NONE))
        }
        Err(error) => Err(error).at("checking", path),
    }
}

/// Returns the file or link of a name, or the regular files below the directory of that name; none where nothing is there.
fn files_of(root: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let place = root.join(name);
    match place.symlink_metadata() {
        Ok(facts) if facts.is_dir() => {
            let files = below(root, Path::new(name), MOST)?.0;
            Ok(files.iter().map(|file| root.join(file)).collect())
        }
        Ok(_) => Ok(vec![place]),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Vec::new()),
        Err(error) => Err(error).at("checking", &place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::repository_state::tests::{A, B, put};

    /// Writes a file as git does: a new one takes the place.
    fn replace(path: &Path, text: &str) {
        let lock = path.with_extension("lock");
        put(&lock, text);
        std::fs::rename(&lock, path).unwrap();
    }

    /// Returns the mark once no file is from just now.
    fn settled(place: &RepositoryPlace) -> ObjectId {
        std::iter::repeat_with(|| place.mark().unwrap()).find_map(|mark| mark).unwrap()
    }

    /// Returns the standing mark once nothing is from just now; `None` where there is none.
    fn standing(place: &RepositoryPlace) -> Option<StandingMark> {
        let until = std::time::Instant::now() + std::time::Duration::from_millis(500);
        let mut looks = std::iter::repeat_with(|| place.standing_mark().unwrap());
        looks.find(|mark| mark.is_some() || std::time::Instant::now() > until).flatten()
    }

    #[test]
    fn each_part_of_a_state_changes_its_mark() {
        let temp = tempfile::tempdir().unwrap();
        let (main, own) = (temp.path().join("main/.git"), temp.path().join("main/.git/worktrees/wt"));
        put(&main.join("HEAD"), "ref: refs/heads/main\n");
        put(&main.join("refs/heads/main"), A);
        put(&own.join("commondir"), "../..\n");
        put(&own.join("HEAD"), "ref: refs/heads/other\n");
        put(&temp.path().join("wt/.git"), &format!("gitdir: {}\n", own.display()));
        let place = RepositoryPlace::around(&temp.path().join("wt")).unwrap();
        let mut last = settled(&place);
        assert_eq!(settled(&place), last);
        for (path, text) in [
            (main.join("refs/heads/main"), B),
            (main.join("refs/heads/deep/new"), A),
            (main.join("packed-refs"), "x"),
            (main.join("logs/refs/stash"), "x"),
            (main.join("reftable/tables.list"), "x"),
            (own.join("HEAD"), A),
            (own.join("index"), "DIRC"),
            (own.join("MERGE_HEAD"), A),
            (own.join("rebase-merge/done"), "x"),
            (own.join("refs/bisect/bad"), A),
        ] {
            let standing = standing(&place);
            assert_eq!(
                standing.as_ref().map(StandingMark::holds),
                (!own.join("rebase-merge").exists()).then_some(true)
            );
            replace(&path, text);
            assert!(standing.is_none_or(|standing| !standing.holds()), "{}", path.display());
            assert_eq!(place.mark().unwrap(), None, "{} is from just now", path.display());
            let now = settled(&place);
            assert_ne!(now, last, "{}", path.display());
            std::fs::remove_file(&path).unwrap();
            last = settled(&place);
            assert_ne!(now, last, "{} is gone", path.display());
        }
        // The rest is no matter of the state.
        put(&main.join("objects/aa/bb"), "x");
        put(&main.join("HEAD"), B);
        assert_eq!(settled(&place), last);
    }
}
