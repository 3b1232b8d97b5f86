//! Process-wide settings of libgit2, and a lookup of paths in the commit of HEAD of a user's repository.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

use git2::{Commit, Config, ConfigLevel, Oid, Repository, RepositoryOpenFlags};

/// Empties libgit2's search paths for user and system configuration, once for the process.
pub fn isolate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for level in [ConfigLevel::System, ConfigLevel::Global, ConfigLevel::XDG, ConfigLevel::ProgramData] {
            #[expect(unsafe_code, reason = "git2 marks process-wide options unsafe")]
            // SAFETY: called once, before this process opens its first repository; no other thread is inside libgit2.
            let set = unsafe { git2::opts::set_search_path(level, "") };
            if let Err(error) = set {
                tracing::warn!(%error, "git configuration outside of the store could not be switched off");
            }
        }
        #[expect(unsafe_code, reason = "git2 marks process-wide options unsafe")]
        // SAFETY: as above.
        let set = unsafe { git2::opts::set_verify_owner_validation(false) };
        if let Err(error) = set {
            tracing::warn!(%error, "the owner check of libgit2 could not be switched off");
        }
    });
}

/// Opens the repository whose directory `git_dir` contains HEAD.
fn open(git_dir: &Path) -> Result<Repository, git2::Error> {
    isolate();
    let none: [&OsStr; 0] = [];
    Repository::open_ext(git_dir, RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::NO_DOTGIT, none)
}

/// Returns for each path, relative to the top of the work tree, whether the commit of HEAD contains it. `git_dir` is the directory that
/// contains HEAD. Every path is missing if there is no commit yet, or if libgit2 cannot read the repository.
pub fn are_committed<'p>(git_dir: &Path, paths: impl Iterator<Item = &'p Path>) -> Vec<bool> {
    let opened = open(git_dir);
    let tree = opened.as_ref().ok().and_then(|repository| repository.head().ok()?.peel_to_tree().ok());
    paths.map(|path| tree.as_ref().is_some_and(|tree| tree.get_path(path).is_ok())).collect()
}

/// The paths in a commit of a repository, for many lookups: each directory is read once.
pub struct CommitTree {
    repository: Option<Repository>,
    root: Option<Oid>,
    dirs: HashMap<PathBuf, HashMap<OsString, Oid>>,
}

impl CommitTree {
    /// Opens the commit of HEAD in the repository whose directory `git_dir` contains HEAD. It has no paths if libgit2 cannot read it, or if
    /// there is no commit yet.
    pub fn of_head(git_dir: &Path) -> CommitTree {
        CommitTree::of(git_dir, &|repository| repository.head()?.peel_to_commit())
    }

    /// Opens a commit by its id. As for HEAD, a commit that cannot be read has no paths.
    pub fn of_commit(git_dir: &Path, id: &str) -> CommitTree {
        CommitTree::of(git_dir, &|repository| repository.find_commit(Oid::from_str(id)?))
    }

    fn of(git_dir: &Path, find: &dyn Fn(&Repository) -> Result<Commit<'_>, git2::Error>) -> CommitTree {
        let repository = open(git_dir).ok(); // has no paths, as documented
        let root = repository.as_ref().and_then(|repository| Some(find(repository).ok()?.tree_id()));
        CommitTree { repository, root, dirs: HashMap::new() }
    }

    /// Returns true if the commit contains a path, which is relative to the top of the work tree.
    pub fn contains(&mut self, path: &Path) -> bool {
        self.entry(path).is_some()
    }

    /// Returns true if the commit contains a path with the object `id`.
    pub fn has(&mut self, path: &Path, id: &str) -> bool {
        self.entry(path).is_some_and(|found| found.to_string() == id)
    }

    fn entry(&mut self, path: &Path) -> Option<Oid> {
        let (dir, name) = (path.parent()?, path.file_name()?);
        self.entries(dir).get(name).copied()
    }

    fn entries(&mut self, dir: &Path) -> &HashMap<OsString, Oid> {
        if !self.dirs.contains_key(dir) {
            let id = match (dir.parent(), dir.file_name()) {
                (Some(parent), Some(name)) => self.entries(parent).get(name).copied(),
                _ => self.root,
            };
            let tree = self.repository.as_ref().zip(id).map(|(repository, id)| repository.find_tree(id));
            let entries = tree.and_then(Result::ok).map(|tree| {
                let entry = |entry: git2::TreeEntry<'_>| (OsStr::from_bytes(entry.name_bytes()).to_owned(), entry.id());
                tree.iter().map(entry).collect()
            });
            self.dirs.insert(dir.to_owned(), entries.unwrap_or_default());
        }
        self.dirs.entry(dir.to_owned()).or_default()
    }
}

/// Returns the content of a file in the commit of HEAD; `None` if it has none. `git_dir` is the directory that contains HEAD, and the path
/// is relative to the top of the work tree.
pub fn committed_content(git_dir: &Path, path: &Path) -> Option<Vec<u8>> {
    // A repository that libgit2 cannot read has no content for its caller.
    let repository = open(git_dir).ok()?;
    let tree = repository.head().and_then(|head| head.peel_to_tree()).ok()?;
    let entry = tree.get_path(path).ok()?;
    repository.find_blob(entry.id()).ok().map(|blob| blob.content().to_vec())
}

/// Returns the setting `core.hooksPath` of a repository, as it is written; `None` if it has none. The user's own configuration is not read.
/// `git_dir` is the directory that contains `config`.
pub fn hooks_path(git_dir: &Path) -> Option<PathBuf> {
    isolate();
    // A configuration that libgit2 cannot read is not one that git would follow.
    let config = Config::open(&git_dir.join("config")).ok()?;
    config.get_path("core.hooksPath").ok() // not set
}

/// The size above which a configuration is not read.
const MAX_CONFIG: u64 = 1 << 20;

/// Returns the files with settings that git reads for a repository, those that count most first.
fn configurations(git_dir: &Path) -> impl Iterator<Item = Config> {
    isolate();
    let home = std::env::home_dir();
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let shared = named.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let places = [
        Some(git_dir.join("config")),
        home.map(|home| home.join(".gitconfig")),
        shared.map(|dir| dir.join("git/config")),
        Some(PathBuf::from("/etc/gitconfig")),
    ];
    let is_read = |place: &PathBuf| place.metadata().is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_CONFIG);
    // A configuration that libgit2 cannot read is not one that git would follow.
    places.into_iter().flatten().filter(is_read).filter_map(|place| Config::open(&place).ok())
}

/// Returns the setting `core.hooksPath` that counts in a repository, also that of the user; `None` if it is not set.
pub fn hooks_path_in_force(git_dir: &Path) -> Option<PathBuf> {
    configurations(git_dir).find_map(|config| config.get_path("core.hooksPath").ok()) // not set there
}

/// Returns the commands of filters for contents (gitattributes(5)) that count in a repository; none for those that are not set up.
pub fn filter_commands(git_dir: &Path, filters: &BTreeSet<&str>) -> Vec<String> {
    let all: Vec<Config> = configurations(git_dir).collect();
    let command = |key: String| all.iter().find_map(|config| config.get_string(&key).ok()); // not set there
    let keys = |filter: &&str| ["clean", "smudge", "process"].map(|kind| format!("filter.{filter}.{kind}"));
    filters.iter().flat_map(keys).filter_map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_staged_is_not_committed() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init(dir.path()).unwrap();
        let git_dir = dir.path().join(".git");
        let known = || {
            let paths = ["a", "d/b", "c"].map(Path::new);
            let known = are_committed(&git_dir, paths.into_iter());
            let mut head = CommitTree::of_head(&git_dir);
            assert_eq!(paths.map(|path| head.contains(path)).as_slice(), known);
            assert!(!["a/x", "d/x/y", "d/b/c", ""].iter().any(|path| head.contains(Path::new(path))));
            known
        };
        assert_eq!(known(), [false; 3], "no commit yet");
        std::fs::create_dir(dir.path().join("d")).unwrap();
        for path in ["a", "d/b", "c"] {
            std::fs::write(dir.path().join(path), path).unwrap();
        }
        let mut index = repository.index().unwrap();
        ["a", "d/b"].iter().for_each(|path| index.add_path(Path::new(path)).unwrap());
        let tree = repository.find_tree(index.write_tree().unwrap()).unwrap();
        let who = git2::Signature::now("t", "t@example.org").unwrap();
        repository.commit(Some("HEAD"), &who, &who, "one", &tree, &[]).unwrap();
        index.add_path(Path::new("c")).unwrap();
        index.write().unwrap();
        assert_eq!(known(), [true, true, false]);
        let content = |path: &str| committed_content(&dir.path().join(".git"), Path::new(path));
        assert_eq!((content("d/b"), content("c"), content("d")), (Some(b"d/b".to_vec()), None, None));
        assert_eq!(are_committed(&dir.path().join("nowhere"), [Path::new("a")].into_iter()), [false]);
    }
}
