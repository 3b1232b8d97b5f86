//! Changed paths in git's words.
//!
//! git takes a path for that entry of the index, and reads the directory anew in which it is. For a directory (with `/` at its end) it
//! takes all entries of the index below it, but of the directories in it only those that a path leads into. So a directory whose
//! content may be another one is named with one name in each directory below it.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Doubt;
use super::survey::{GIT, listed};
use crate::model::change::{Reach, is_rule_file};
use crate::model::path::RelPath;

/// The most entries that are looked at in changed directories.
const MOST_ENTRIES: usize = 10_000;

/// A name in a directory that need not be there: git reads the directory anew.
const ANY_NAME: &[u8] = b"-";

/// The names that are told to git.
pub(super) struct ChangedNames<'t> {
    top: &'t Path,
    /// Directories that git leaves out, and that have no watches.
    ignored: &'t BTreeSet<RelPath>,
    /// Files with several names that are told each time.
    linked: &'t BTreeSet<RelPath>,
    names: BTreeSet<Vec<u8>>,
    left: usize,
}

impl<'t> ChangedNames<'t> {
    /// Begins with those that are told each time. In a directory that git leaves out there may be files that it keeps.
    pub(super) fn new(top: &'t Path, ignored: &'t BTreeSet<RelPath>, linked: &'t BTreeSet<RelPath>) -> Self {
        let always = ignored.iter().map(whole).chain(linked.iter().map(|path| path.as_bytes().to_vec()));
        ChangedNames { top, ignored, linked, names: always.collect(), left: MOST_ENTRIES }
    }

    /// Adds a changed path.
    ///
    /// # Errors
    /// The reason why everything may have changed.
    pub(super) fn add(&mut self, path: &RelPath, reach: Reach) -> Result<(), Doubt> {
        if path.is_root() {
            return Err(Doubt::Once("the top directory of the work tree has changed".to_owned()));
        }
        self.names.insert(path.as_bytes().to_vec());
        if reach == Reach::Subtree {
            self.names.insert(whole(path));
        }
        let facts = match path.under(self.top).symlink_metadata() {
            Ok(facts) => facts,
            // It is gone: git finds that out by its names.
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
                return Ok(());
            }
            Err(error) => return Err(unreadable(path, &error)),
        };
        if facts.is_dir() {
            return if reach == Reach::Subtree { self.below(path) } else { Ok(()) };
        }
        self.file(path, facts.nlink())
    }

    /// Adds a directory and those below it.
    fn below(&mut self, dir: &RelPath) -> Result<(), Doubt> {
        let mut dirs = vec![dir.clone()];
        while let Some(dir) = dirs.pop() {
            self.names.insert(whole(&dir));
            if self.ignored.contains(&dir) {
                continue;
            }
            self.names.insert(dir.join(ANY_NAME).as_bytes().to_vec());
            let found = match listed(self.top, &dir) {
                Ok(found) => found,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(unreadable(&dir, &error)),
            };
            self.left = match self.left.checked_sub(found.len()) {
                Some(left) => left,
                None => return Err(Doubt::Once(format!("{} has changed, and it contains too much", dir.display()))),
            };
            for (path, facts) in found {
                if path.name() == GIT {
                    return Err(Doubt::Outdated(format!("there is a repository in {}", dir.display())));
                }
                if is_rule_file(&path) {
                    return Err(Doubt::Outdated(format!("{} has come", path.display())));
                }
                if facts.is_dir() {
                    dirs.push(path);
                } else {
                    self.file(&path, facts.nlink())?;
                }
            }
        }
        Ok(())
    }

    /// Looks for other names of a file: which ones these are, only a look at the whole tree can tell.
    fn file(&self, path: &RelPath, links: u64) -> Result<(), Doubt> {
        match links > 1 && !self.linked.contains(path) {
            true => Err(Doubt::Outdated(format!("{} has a second name (a hard link)", path.display()))),
            false => Ok(()),
        }
    }

    /// Returns them all.
    pub(super) fn into_names(self) -> Vec<Vec<u8>> {
        self.names.into_iter().collect()
    }
}

fn whole(dir: &RelPath) -> Vec<u8> {
    [dir.as_bytes(), b"/"].concat()
}

fn unreadable(path: &RelPath, error: &std::io::Error) -> Doubt {
    Doubt::Once(format!("{} cannot be checked: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, hard_link, write};

    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn told(top: &Path, changed: &[(&str, Reach)]) -> Result<String, Doubt> {
        let (ignored, linked) = (BTreeSet::from([path("out")]), BTreeSet::from([path("l")]));
        let mut names = ChangedNames::new(top, &ignored, &linked);
        changed.iter().try_for_each(|(text, reach)| names.add(&path(text), *reach))?;
        Ok(String::from_utf8(names.into_names().join(&b' ')).unwrap())
    }

    #[test]
    fn a_directory_is_told_with_all_directories_in_it() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        create_dir_all(top.join("d/e/f")).unwrap();
        create_dir_all(top.join("out/deep")).unwrap();
        write(top.join("d/e/g"), "").unwrap();
        let entry = |text| (text, Reach::Entry);
        let wide = |text| (text, Reach::Subtree);
        for (changed, names) in [
            (&[][..], "l out/"),
            (&[entry("d/e/g"), entry("gone")], "d/e/g gone l out/"),
            (&[wide("gone")], "gone gone/ l out/"),
            (&[wide("d/e/g")], "d/e/g d/e/g/ l out/"),
            (&[entry("d")], "d l out/"),
            (&[wide("d")], "d d/ d/- d/e/ d/e/- d/e/f/ d/e/f/- l out/"),
            (&[wide("out")], "l out out/"),
        ] {
            assert_eq!(told(top, changed).unwrap(), names, "{changed:?}");
        }
        assert!(matches!(told(top, &[wide("")]), Err(Doubt::Once(_))));
        hard_link(top.join("d/e/g"), top.join("h")).unwrap();
        for changed in [entry("h"), wide("d")] {
            assert!(matches!(told(top, &[changed]), Err(Doubt::Outdated(_))), "{changed:?}");
        }
        std::fs::remove_file(top.join("h")).unwrap();
        for inside in ["d/e/.gitignore", "d/e/.git"] {
            write(top.join(inside), "").unwrap();
            assert!(matches!(told(top, &[wide("d")]), Err(Doubt::Outdated(_))), "{inside}");
            std::fs::remove_file(top.join(inside)).unwrap();
        }
    }
}
