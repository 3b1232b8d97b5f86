//! Reads the state of the git repository around a directory: its refs, index, stash and an operation in progress. Nothing is written,
//! and no git is run. Refs that are a table are read elsewhere (`git/ref_table`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::git_dir::{GitDir, open_regular, read_regular};
use crate::error::{Code, Error, IoContext, Result};
use crate::model::id::{ObjectId, ObjectKind};
use crate::model::path::RelPath;
use crate::model::repository::{HEAD, RefValue, RepositoryState, is_ref_name};

/// The largest index that is kept, in bytes.
const MAX_INDEX: u64 = 64 << 20;

/// The largest file of packed refs, and of the stash's log, in bytes.
const MAX_LIST: u64 = 32 << 20;

/// The largest configuration that is read, in bytes.
const MAX_CONFIG: u64 = 1 << 20;

/// The most refs that are kept.
const MAX_REFS: usize = 200_000;

/// The largest file of a single ref, in bytes.
const MAX_REF: u64 = 4096;

/// The longest line of a log of refs that is read, in bytes.
const MAX_LINE: u64 = 4096;

/// The most bytes of an operation in progress.
const MAX_OPERATION: u64 = 16 << 20;

/// The deepest directory of refs, and of an operation.
const DEEPEST: usize = 32;

/// Files and directories of the git directory that tell of an operation in progress.
pub(super) const OPERATION: &[&str] = &[
    "AUTO_MERGE",
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_FIRST_PARENT",
    "BISECT_HEAD",
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_RUN",
    "BISECT_START",
    "BISECT_TERMS",
    "CHERRY_PICK_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "NOTES_MERGE_WORKTREE",
    "REBASE_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "rebase-apply",
    "rebase-merge",
    "sequencer",
];

/// Files of an operation in progress with names of the branches that it will move, one in a line.
const WORKED_ON: &[&str] =
    &["rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name", "BISECT_START"];

/// The directories of a repository, as its work tree leads to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryPlace {
    /// The top of the work tree.
    pub top: PathBuf,
    /// The directory of HEAD and the index.
    pub dir: PathBuf,
    /// The directory of branches and objects; another one in linked worktrees.
    pub common: PathBuf,
}

impl RepositoryPlace {
    /// Finds the repository whose work tree contains a directory; `None` outside of all.
    pub fn around(dir: &Path) -> Option<RepositoryPlace> {
        dir.ancestors().find_map(|top| {
            let git = GitDir::of(top).filter(|git| git.dir.join("HEAD").symlink_metadata().is_ok())?;
            Some(RepositoryPlace { top: top.to_owned(), dir: git.dir.clone(), common: git.common().to_owned() })
        })
    }

    /// Returns the repository whose work tree has this top; `None` where there is none.
    pub fn at_top(top: &Path) -> Option<RepositoryPlace> {
        RepositoryPlace::around(top).filter(|place| place.top == top)
    }

    /// Returns a text that tells the repository from one that is made later at this place; `None` where nothing is known. It has the
    /// directory, if the file system knows when that was made (numbers of files are used again), and the beginning of the log of HEAD.
    pub fn identity(&self) -> Option<String> {
        let facts = self.common.metadata().ok()?; // gone
        let made = facts.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok()); // not known
        let dir = made.map(|made| format!("{}-{}-{}", facts.dev(), facts.ino(), made.as_nanos()));
        let log = self.first_of_log().map(|line| line.to_string());
        (dir.is_some() || log.is_some()).then(|| format!("{} {}", dir.unwrap_or_default(), log.unwrap_or_default()))
    }

    /// Returns the id of the first line of the log of HEAD: that of a clone or of the first commit, with its moment.
    fn first_of_log(&self) -> Option<ObjectId> {
        let mut line = Vec::new();
        // One that cannot be read tells nothing.
        let log = open_regular(&self.common.join("logs/HEAD")).ok()??;
        BufReader::new(log.take(MAX_LINE)).read_until(b'\n', &mut line).ok()?;
        if line.is_empty() { None } else { ObjectId::of(ObjectKind::Blob, &line).ok() }
    }

    /// Returns true if two identities are those of one repository, also if it was copied or brought back; false if they are those of
    /// two. `None` where that cannot be told.
    pub fn is_same(known: &str, now: &str) -> Option<bool> {
        let parts = |text: &str| text.split_once(' ').map(|(dir, log)| (dir.to_owned(), log.to_owned()));
        let ((dir, log), (dir_now, log_now)) = (parts(known)?, parts(now)?);
        match () {
            () if !dir.is_empty() && dir == dir_now => Some(true),
            () if log.is_empty() || log_now.is_empty() => None,
            () => Some(log == log_now),
        }
    }

    /// Returns the branches that other work trees of the repository have checked out, or work on: in a rebase or a bisect.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn checked_out_elsewhere(&self) -> Result<BTreeSet<Vec<u8>>> {
        let linked = self.common.join("worktrees");
        let mut dirs = vec![self.common.clone()];
        match std::fs::read_dir(&linked) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            listing => {
                for entry in listing.at("listing", &linked)? {
                    dirs.push(entry.at("listing", &linked)?.path());
                }
            }
        }
        let mut branches = BTreeSet::new();
        // A bare repository has a HEAD, and no index: nothing is checked out.
        let real = |dir: &Path| dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let own = real(&self.dir);
        let others = dirs.iter().filter(|dir| real(dir) != own && dir.join("index").symlink_metadata().is_ok());
        for head in others.map(|dir| dir.join("HEAD")) {
            let text = read_regular(&head, MAX_REF).at("reading", &head)?.unwrap_or_default();
            if let Some(RefValue::Symbolic(name)) = RefValue::parse(&text) {
                branches.insert(name);
            }
            for name in WORKED_ON {
                let place = head.with_file_name("").join(name);
                let text = read_regular(&place, MAX_LIST).at("reading", &place)?.unwrap_or_default();
                let names = text.split(|byte| *byte == b'\n').map(|line| match line.starts_with(b"refs/") {
                    true => line.to_vec(),
                    false => [b"refs/heads/", line].concat(),
                });
                branches.extend(names.filter(|name| is_ref_name(name)));
            }
        }
        Ok(branches)
    }

    /// Reads the text of its own configuration; empty where that cannot be read.
    pub fn configuration(&self) -> Vec<u8> {
        // git says what is wrong with it.
        read_regular(&self.common.join("config"), MAX_CONFIG).ok().flatten().unwrap_or_default()
    }

    /// Reads the state of a repository whose refs are files.
    ///
    /// # Errors
    /// `too-large` for too many refs; errors of reading.
    pub fn state(&self) -> Result<RepositoryState> {
        // Packed refs come last: a git that packs some meanwhile lists them before it removes their files.
        let mut refs = self.loose()?;
        let packed = self.common.join("packed-refs");
        let listed = read_regular(&packed, MAX_LIST).at("reading refs", &packed)?.unwrap_or_default();
        for (name, value) in packed_refs(&listed) {
            refs.entry(name).or_insert(value);
        }
        refs.extend(self.head()?.map(|value| (HEAD.to_vec(), value)));
        let log = self.common.join("logs/refs/stash");
        let stash = read_regular(&log, MAX_LIST).at("reading", &log)?.unwrap_or_default();
        self.state_beside(RepositoryState { refs, stash, ..RepositoryState::default() })
    }

    /// Reads HEAD; `None` for one that names nothing.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn head(&self) -> Result<Option<RefValue>> {
        let head = self.dir.join("HEAD");
        // The form of old gits, which all of them still read: a link to the file of a branch.
        if let Ok(target) = std::fs::read_link(&head)
            && is_ref_name(target.as_os_str().as_bytes())
        {
            return Ok(Some(RefValue::Symbolic(target.into_os_string().into_vec())));
        }
        let text = read_regular(&head, MAX_REF).at("reading", &head)?.unwrap_or_default();
        Ok(RefValue::parse(&text))
    }

    /// Reads the rest of a state whose refs and stash are known already.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn state_beside(&self, mut known: RepositoryState) -> Result<RepositoryState> {
        let index = self.dir.join("index");
        known.index = read_regular(&index, MAX_INDEX).at("reading", &index)?;
        known.operation.extend(self.operation()?);
        Ok(known)
    }

    /// Returns the refs with files of their own, which count more than packed ones.
    fn loose(&self) -> Result<BTreeMap<Vec<u8>, RefValue>> {
        let mut refs = BTreeMap::new();
        let mut roots = vec![self.common.clone()];
        // A linked worktree has some of its own.
        roots.extend((self.dir != self.common).then(|| self.dir.clone()));
        for root in roots {
            for path in files_below(&root, Path::new("refs"))? {
                let name = path.as_os_str().as_bytes().to_vec();
                if !is_ref_name(&name) {
                    continue;
                }
                // A ref that is gone again is none, or a packed one.
                let place = root.join(&path);
                let text = read_regular(&place, MAX_REF).at("reading a ref", &place)?.unwrap_or_default();
                refs.extend(RefValue::parse(&text).map(|value| (name, value)));
                if refs.len() > MAX_REFS {
                    let text = format!("the repository has more than {MAX_REFS} refs, so they are not saved");
                    return Err(Error::new(Code::TooLarge, text).path(&self.common));
                }
            }
        }
        Ok(refs)
    }

    /// Returns the files of an operation in progress.
    fn operation(&self) -> Result<BTreeMap<RelPath, Vec<u8>>> {
        let (mut found, mut left) = (BTreeMap::new(), MAX_OPERATION);
        for name in OPERATION {
            let place = self.dir.join(name);
            let facts = match place.symlink_metadata() {
                Ok(facts) => facts,
                // Mostly there is none.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error).at("reading", &place),
            };
            let files = match (facts.is_dir(), facts.is_file()) {
                (true, _) => files_below(&self.dir, Path::new(name))?,
                (false, true) => vec![PathBuf::from(name)],
                (false, false) => continue,
            };
            for file in files {
                let path = self.dir.join(&file);
                let Some(bytes) = read_regular(&path, left).at("reading", &path)? else { continue };
                left -= bytes.len() as u64;
                found.insert(RelPath::from_path(&file)?, bytes);
            }
        }
        Ok(found)
    }
}

/// Reads a file of packed refs. A line that is none is passed over, as git does with those that begin with a sign.
fn packed_refs(bytes: &[u8]) -> impl Iterator<Item = (Vec<u8>, RefValue)> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b' ')?;
        let (id, name) = (&line[..at], &line[at + 1..]);
        let value = RefValue::parse(id).filter(|value| matches!(value, RefValue::Object(_)))?;
        is_ref_name(name).then(|| (name.to_vec(), value))
    })
}

/// Returns the regular files below a directory, as paths from `root` on. Symbolic links are passed over.
fn files_below(root: &Path, dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(below(root, dir, MAX_REFS)?.0)
}

/// Returns the regular files below a directory, and that directory with those in it, as paths from `root` on. Symbolic links are passed
/// over.
///
/// # Errors
/// `too-large` for more than `most` files and directories; errors of listing.
pub(super) fn below(root: &Path, dir: &Path, most: usize) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut found, mut dirs, mut pending) = (Vec::new(), Vec::new(), vec![(dir.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((dir, depth)) = pending.pop() {
        let place = root.join(&dir);
        let listing = match std::fs::read_dir(&place) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            listing => listing.at("listing", &place)?,
        };
        for entry in listing {
            let entry = entry.at("listing", &place)?;
            seen += 1;
            if seen > most {
                let text = format!("there are more than {most} files of refs, so they are not checked");
                return Err(Error::new(Code::TooLarge, text)
                    .path(root)
                    .hint("to merge them into one file, run `git pack-refs --all`"));
            }
            let path = dir.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue }; // gone again
            if kind.is_dir() && depth < DEEPEST {
                pending.push((path, depth + 1));
            } else if kind.is_file() {
                found.push(path);
            }
        }
        dirs.push(dir);
    }
    Ok((found, dirs))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const A: &str = "1111111111111111111111111111111111111111";
    pub(crate) const B: &str = "2222222222222222222222222222222222222222";

    pub(crate) fn put(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_state_has_refs_of_both_kinds_the_index_the_stash_and_the_operation() {
        let temp = tempfile::tempdir().unwrap();
        let (top, git) = (temp.path().join("work"), temp.path().join("work/.git"));
        put(&git.join("HEAD"), "ref: refs/heads/main\n");
        put(
            &git.join("packed-refs"),
            &format!("# pack-refs with: peeled\n{A} refs/heads/main\n{A} refs/tags/v1\n^{B}\nnonsense\n"),
        );
        put(&git.join("refs/heads/main"), &format!("{B}\n"));
        put(&git.join("refs/heads/main.lock"), B);
        put(&git.join("refs/heads/torn"), "");
        put(&git.join("refs/remotes/origin/HEAD"), "ref: refs/remotes/origin/main\n");
        put(&git.join("index"), "DIRC");
        put(&git.join("logs/refs/stash"), "a line\n");
        put(&git.join("rebase-merge/git-rebase-todo"), "pick\n");
        put(&git.join("MERGE_HEAD"), A);
        std::os::unix::fs::symlink("/etc", git.join("refs/heads/link")).unwrap();
        let place = RepositoryPlace::around(&top.join("sub/dir")).unwrap();
        assert_eq!((&place.top, &place.dir, &place.common), (&top, &git, &git));
        let state = place.state().unwrap();
        let names: Vec<String> = state.refs.keys().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(names, ["HEAD", "refs/heads/main", "refs/remotes/origin/HEAD", "refs/tags/v1"]);
        assert_eq!(state.refs[&b"refs/heads/main"[..]], RefValue::Object(B.to_owned()));
        assert_eq!((state.index.as_deref(), state.stash.as_slice()), (Some(&b"DIRC"[..]), &b"a line\n"[..]));
        let operation: Vec<String> = state.operation.keys().map(RelPath::display).collect();
        assert_eq!(operation, ["MERGE_HEAD", "rebase-merge/git-rebase-todo"]);
        assert_eq!(RepositoryPlace::around(temp.path()), None);
    }

    #[test]
    fn a_ref_that_cannot_be_read_is_no_missing_ref() {
        let temp = tempfile::tempdir().unwrap();
        let git = temp.path().join(".git");
        put(&git.join("HEAD"), "ref: refs/heads/main\n");
        put(&git.join("refs/heads/main"), &"x".repeat(MAX_REF as usize + 1));
        let error = RepositoryPlace::around(temp.path()).unwrap().state().unwrap_err();
        assert!(error.to_string().contains("refs/heads/main"), "{error}");
    }

    #[test]
    fn a_linked_worktree_has_its_own_head_and_shares_the_branches() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path();
        let own = root.join("main/.git/worktrees/wt");
        put(&own.join("commondir"), "../..\n");
        put(&own.join("HEAD"), &format!("{A}\n"));
        put(&own.join("refs/bisect/bad"), A);
        put(&root.join("main/.git/HEAD"), "ref: refs/heads/main\n");
        put(&root.join("main/.git/refs/heads/main"), B);
        put(&root.join("main/.git/index"), "DIRC");
        put(&root.join("wt/.git"), &format!("gitdir: {}\n", own.display()));
        let place = RepositoryPlace::around(&root.join("wt")).unwrap();
        assert_eq!(place.dir, own);
        let state = place.state().unwrap();
        assert_eq!(state.refs[HEAD], RefValue::Object(A.to_owned()));
        assert_eq!(place.checked_out_elsewhere().unwrap(), [b"refs/heads/main".to_vec()].into());
        let main = RepositoryPlace::around(&root.join("main")).unwrap();
        assert!(main.checked_out_elsewhere().unwrap().is_empty(), "the linked one is on a commit");
        assert!(state.refs.contains_key(&b"refs/heads/main"[..]) && state.refs.contains_key(&b"refs/bisect/bad"[..]));
    }
}
