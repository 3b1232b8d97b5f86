//! Moves refs of a repository of the user, as git does: with their logs, under git's locks.
//!
//! Refs that name objects, and those that name other refs, move in one transaction, all or none. HEAD follows in one of its own, because
//! git moves it along with its branch. *Invariant:* a ref moves only if it is where it was expected. git compares objects; the names to which
//! symbolic refs lead are compared here, between the moment at which git has locked the refs and the one at which it moves them.

use std::ffi::OsStr;
use std::fs::{OpenOptions, remove_file, rename};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::missing;
use super::user_repository::UserRepository;
use super::users::UsersGit;
use crate::error::{Code, Error, IoContext, Result};
use crate::model::repository::{HEAD, RefValue};
use crate::model::text::printable;
use crate::sys::fs::durable::with_callers_umask;

/// The first git whose transactions know symbolic refs.
const KNOWS_SYMBOLIC: (u32, u32) = (2, 46);

/// The value of a ref that is not there, in a log.
const NONE: &str = "0000000000000000000000000000000000000000";

/// A ref that is to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMove {
    /// Its name.
    pub name: Vec<u8>,
    /// Its value now; `None` if there is none.
    pub from: Option<RefValue>,
    /// The value that it gets; `None` to delete it.
    pub to: Option<RefValue>,
}

impl RefMove {
    /// Returns the same move backwards.
    fn reversed(&self) -> RefMove {
        RefMove { name: self.name.clone(), from: self.to.clone(), to: self.from.clone() }
    }

    fn is_head(&self) -> bool {
        self.name == HEAD
    }

    /// Returns true if git's transactions have no word for it before they knew symbolic refs.
    fn needs_symbolic(&self) -> bool {
        matches!(self.to, Some(RefValue::Symbolic(_)))
    }

    /// Returns its words in a transaction, each with the byte that ends it.
    fn words(&self) -> Vec<u8> {
        use RefValue::{Object, Symbolic};
        let (verb, words): (&str, Vec<&[u8]>) = match (&self.from, &self.to) {
            (None, Some(Object(to))) => ("create", vec![to.as_bytes()]),
            (None, Some(Symbolic(to))) => ("symref-create", vec![to]),
            (Some(Object(from)), Some(Object(to))) => ("update", vec![to.as_bytes(), from.as_bytes()]),
            // An empty word is no expectation: the name to which it leads is compared here.
            (Some(Symbolic(_)), Some(Object(to))) => ("update", vec![to.as_bytes(), b""]),
            (Some(Object(from)), Some(Symbolic(to))) => ("symref-update", vec![to, b"oid", from.as_bytes()]),
            (Some(Symbolic(from)), Some(Symbolic(to))) => ("symref-update", vec![to, b"ref", from]),
            (Some(Object(from)), None) => ("delete", vec![from.as_bytes()]),
            (Some(Symbolic(_)) | None, None) => ("delete", vec![b""]),
        };
        let head = [verb.as_bytes(), b" ", &self.name].concat();
        std::iter::once(head.as_slice()).chain(words).flat_map(|word| [word, b"\0"].concat()).collect()
    }
}

/// A git that moves refs, and that waits for the word to do so.
struct RefTransaction {
    child: Child,
    answers: Box<dyn BufRead>,
}

impl UserRepository {
    /// Moves refs, all or none.
    ///
    /// # Errors
    /// `conflict` if one is not where it was expected, or is locked.
    pub fn move_refs(&self, moves: &[RefMove], reason: &str) -> Result<()> {
        let knows = !moves.iter().any(RefMove::needs_symbolic) || self.knows_symbolic()?;
        let (head, others): (Vec<&RefMove>, Vec<&RefMove>) = moves.iter().partition(|one| one.is_head());
        self.require_links(&head)?;
        let (told, rest): (Vec<&RefMove>, Vec<&RefMove>) =
            others.into_iter().partition(|one| knows || !one.needs_symbolic());
        self.transaction(&told, reason)?;
        let mut done = told;
        for one in rest.into_iter().chain(head) {
            let moved = match &one.to {
                Some(RefValue::Symbolic(target)) if !knows => self.link_under_lock(one, target, reason),
                _ => self.transaction(&[one], reason),
            };
            if let Err(error) = moved {
                return Err(self.move_back(&done, reason, error));
            }
            done.push(one);
        }
        Ok(())
    }

    /// Moves refs back, because a further one could not follow them, and returns the error to report.
    fn move_back(&self, done: &[&RefMove], reason: &str, error: Error) -> Error {
        let back: Vec<RefMove> = done.iter().rev().map(|one| one.reversed()).collect();
        match self.transaction(&back.iter().collect::<Vec<_>>(), reason) {
            Ok(()) => error,
            Err(_) => error.context("some refs were moved, others were not"),
        }
    }

    fn knows_symbolic(&self) -> Result<bool> {
        Ok(UsersGit::at(&self.common).version()?.is_some_and(|version| version >= KNOWS_SYMBOLIC))
    }

    /// Moves refs in one transaction. Symbolic ones are looked at while git has locked them.
    fn transaction(&self, moves: &[&RefMove], reason: &str) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        with_callers_umask(|| {
            let mut git = RefTransaction::begin(self, reason)?;
            let words: Vec<u8> = moves.iter().flat_map(|one| one.words()).collect();
            if !git.says(&[b"start\0", words.as_slice(), b"prepare\0"].concat(), "prepare: ok") {
                return Err(git.refused(self));
            }
            self.require_links(moves)?;
            match git.says(b"commit\0", "commit: ok") {
                true => Ok(()),
                false => Err(git.refused(self)),
            }
        })
    }

    /// Requires that symbolic refs lead where they are expected to, and that HEAD is none where it is expected to name a commit.
    fn require_links(&self, moves: &[&RefMove]) -> Result<()> {
        for one in moves {
            let expected = match &one.from {
                Some(RefValue::Symbolic(target)) => Some(target.as_slice()),
                Some(RefValue::Object(_)) if one.is_head() => None,
                _ => continue,
            };
            if self.link(&one.name).as_deref() != expected {
                return Err(self.has_moved(&one.name));
            }
        }
        Ok(())
    }

    fn has_moved(&self, name: &[u8]) -> Error {
        let name = printable(&String::from_utf8_lossy(name));
        Error::new(
            Code::Conflict,
            format!("`{name}` was moved by another process at the same time, so it was not changed"),
        )
        .path(&self.common)
    }

    /// Returns the name to which a symbolic ref leads; `None` for any other ref.
    fn link(&self, name: &[u8]) -> Option<Vec<u8>> {
        let mut command = self.command();
        command.args(["symbolic-ref", "-q"]).arg(OsStr::from_bytes(name));
        // git says by its exit code that it is none.
        let told = self.ask(&mut command, None).ok()?;
        told.strip_suffix(b"\n").map(<[u8]>::to_owned)
    }

    /// Returns the object to which a name leads; `None` where there is none.
    pub(super) fn resolved(&self, name: &[u8]) -> Option<String> {
        let mut command = self.command();
        command.args(["rev-parse", "--verify", "-q"]).arg(OsStr::from_bytes(name));
        // git says by its exit code that there is none.
        let told = self.ask(&mut command, None).ok()?;
        Some(String::from_utf8_lossy(&told).trim().to_owned())
    }
}

impl UserRepository {
    /// Has a ref name another one, under git's own lock of it, for gits whose transactions do not know that. Such a git keeps refs as files.
    fn link_under_lock(&self, one: &RefMove, target: &[u8], reason: &str) -> Result<()> {
        let root = if one.is_head() { self.dir() } else { &self.common };
        let name = OsStr::from_bytes(&one.name);
        let (place, log) = (root.join(name), root.join("logs").join(name));
        let lock = with_suffix(&place, ".lock");
        place.parent().map_or(Ok(()), std::fs::create_dir_all).at("making the directory of", &place)?;
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&lock) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::new(Code::Conflict, "another git command is moving this ref").path(&place));
            }
            file => file.at("locking", &lock)?,
        };
        let old = self.resolved(&one.name);
        let now = match self.link(&one.name) {
            Some(target) => Some(RefValue::Symbolic(target)),
            None => old.clone().map(RefValue::Object),
        };
        let moved = if now == one.from {
            file.write_all(&[b"ref: ", target, b"\n"].concat())
                .and_then(|()| file.sync_all())
                .and_then(|()| rename(&lock, &place))
                .at("writing", &place)
        } else {
            Err(self.has_moved(&one.name))
        };
        if moved.is_err() {
            // The first error is the one to report.
            let _ = remove_file(&lock);
        }
        moved?;
        self.log_link(&log, (old, target), reason)
    }

    /// Adds a line to the log of a ref that has one, as git would.
    fn log_link(&self, log: &Path, (old, target): (Option<String>, &[u8]), reason: &str) -> Result<()> {
        // git writes nothing of a branch without a commit.
        let (Ok(mut file), Some(new)) = (OpenOptions::new().append(true).open(log), self.resolved(target)) else {
            return Ok(());
        };
        // Without an identity git would write none either.
        let Ok(who) = self.ask(self.command().args(["var", "GIT_COMMITTER_IDENT"]), None) else { return Ok(()) };
        let ids = format!("{} {new} ", old.as_deref().unwrap_or(NONE));
        let line = [ids.as_bytes(), who.trim_ascii(), b"\t", reason.as_bytes(), b"\n"].concat();
        file.write_all(&line).at("writing", log)
    }
}

impl RefTransaction {
    fn begin(repository: &UserRepository, reason: &str) -> Result<RefTransaction> {
        let mut command = repository.command();
        command.args(["update-ref", "-m", reason, "--no-deref", "--stdin", "-z"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(missing)?;
        let answers: Box<dyn BufRead> = match child.stdout.take() {
            Some(pipe) => Box::new(BufReader::new(pipe)),
            None => Box::new(std::io::empty()),
        };
        Ok(RefTransaction { child, answers })
    }

    /// Tells git something, and returns true once it has answered as expected.
    fn says(&mut self, words: &[u8], answer: &str) -> bool {
        let told =
            self.child.stdin.as_mut().is_some_and(|pipe| pipe.write_all(words).and_then(|()| pipe.flush()).is_ok());
        let mut lines = self.answers.by_ref().lines().map_while(std::result::Result::ok);
        told && lines.any(|line| line == answer)
    }

    /// Returns the error of a git that has refused.
    fn refused(mut self, repository: &UserRepository) -> Error {
        drop(self.child.stdin.take());
        let mut said = String::new();
        if let Some(mut pipe) = self.child.stderr.take() {
            // Words that cannot be read are no words.
            let _ = pipe.read_to_string(&mut said);
        }
        repository.refused("update-ref", &said)
    }
}

impl Drop for RefTransaction {
    fn drop(&mut self) {
        // Without a word more, git gives up what is not committed.
        drop(self.child.stdin.take());
        // It was there a moment ago.
        let _ = self.child.wait();
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: &[u8] = b"refs/heads/main";

    /// A repository with the branches `main`, `x` and `y`, and the last one ahead.
    fn repository() -> (tempfile::TempDir, UserRepository) {
        let dir = tempfile::tempdir().unwrap();
        let repository = UserRepository::at(&dir.path().join(".git"), &dir.path().join(".git"));
        sh(
            &dir,
            "git init -q -b main .; git commit -q --allow-empty -m one; git branch x; git branch y; \
             git checkout -q y; git commit -q --allow-empty -m two; git checkout -q main",
        );
        (dir, repository)
    }

    fn sh(dir: &tempfile::TempDir, script: &str) -> String {
        let mut command = std::process::Command::new("sh");
        command.args(["-ec", script]).current_dir(dir.path());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
            command.env(name, "t");
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{script}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn link(name: &str) -> RefValue {
        RefValue::Symbolic(name.as_bytes().to_vec())
    }

    fn commit(dir: &tempfile::TempDir, name: &str) -> RefValue {
        RefValue::parse(sh(dir, &format!("git rev-parse {name}")).as_bytes()).unwrap()
    }

    fn one(name: &[u8], from: Option<&RefValue>, to: Option<&RefValue>) -> RefMove {
        RefMove { name: name.to_vec(), from: from.cloned(), to: to.cloned() }
    }

    const PICTURE: &str = "git symbolic-ref -q HEAD || git rev-parse HEAD; git for-each-ref --format='%(refname) %(objectname) %(symref)'";

    #[test]
    fn a_ref_moves_only_from_where_it_was_expected() {
        let (main, x) = (link("refs/heads/main"), link("refs/heads/x"));
        let other = b"refs/remotes/o/HEAD";
        // The moves of HEAD, what the repository has done meanwhile, and whether HEAD may go.
        for (meanwhile, may) in [
            ("", true),
            ("git symbolic-ref HEAD refs/heads/x", false),
            ("git checkout -q --detach", false),
            ("git symbolic-ref refs/remotes/o/HEAD refs/heads/x", true),
        ] {
            let (dir, repository) = repository();
            let (two, first) = (commit(&dir, "y"), commit(&dir, "x"));
            sh(&dir, "git symbolic-ref refs/remotes/o/HEAD refs/heads/main");
            for to in [&x, &two, &first] {
                let (dir, repository) = (&dir, &repository);
                let start =
                    "git symbolic-ref HEAD refs/heads/main; git symbolic-ref refs/remotes/o/HEAD refs/heads/main";
                sh(dir, &format!("{start}; git update-ref refs/heads/main x; {meanwhile}"));
                let was = sh(dir, PICTURE);
                let moves = [one(HEAD, Some(&main), Some(to)), one(MAIN, Some(&first), Some(&two))];
                let moved = repository.move_refs(&moves, "test");
                assert_eq!(moved.is_ok(), may, "{meanwhile}: {to:?}: {moved:?}");
                assert!(may != (sh(dir, PICTURE) == was), "all or none: {meanwhile}: {to:?}");
            }
            let moved = repository.move_refs(&[one(other, Some(&main), Some(&x))], "test");
            assert_eq!(moved.is_ok(), !meanwhile.contains("remotes"), "{meanwhile}: {moved:?}");
        }
    }

    #[test]
    fn head_that_names_a_commit_does_not_leave_a_branch() {
        let (dir, repository) = repository();
        let (first, two, x) = (commit(&dir, "x"), commit(&dir, "y"), link("refs/heads/x"));
        for to in [&x, &two] {
            sh(&dir, "git symbolic-ref HEAD refs/heads/main");
            let lost = repository.move_refs(&[one(HEAD, Some(&first), Some(to))], "test");
            assert_eq!(lost.unwrap_err().code(), Code::Conflict);
            assert_eq!(sh(&dir, "git symbolic-ref HEAD"), "refs/heads/main\n");
            sh(&dir, "git checkout -q --detach x");
            repository.move_refs(&[one(HEAD, Some(&first), Some(to))], "test").unwrap();
            let head = sh(&dir, "git rev-parse HEAD; git symbolic-ref -q HEAD || :");
            assert_eq!(head.contains("heads/x"), to == &x, "{head}");
        }
    }

    #[test]
    fn refs_go_back_where_head_cannot_follow() {
        let (dir, repository) = repository();
        let (main, x, first, two) =
            (link("refs/heads/main"), link("refs/heads/x"), commit(&dir, "x"), commit(&dir, "y"));
        let was = sh(&dir, PICTURE);
        std::fs::write(dir.path().join(".git/HEAD.lock"), "").unwrap();
        let moves = [
            one(HEAD, Some(&main), Some(&x)),
            one(b"refs/heads/y", Some(&two), Some(&first)),
            one(b"refs/heads/x", Some(&first), None),
        ];
        assert_eq!(repository.move_refs(&moves, "test").unwrap_err().code(), Code::Conflict);
        assert_eq!(sh(&dir, PICTURE), was);
        assert_eq!(std::fs::read(dir.path().join(".git/HEAD.lock")).unwrap(), b"", "the lock is another git's");
    }

    #[test]
    fn a_git_that_has_no_word_for_it_links_under_the_lock() {
        let (dir, repository) = repository();
        let (main, x, first) = (link("refs/heads/main"), link("refs/heads/x"), commit(&dir, "x"));
        let to_x =
            |from: Option<&RefValue>| repository.link_under_lock(&one(HEAD, from, Some(&x)), b"refs/heads/x", "why");
        for from in [None, Some(&first), Some(&link("refs/heads/y"))] {
            assert_eq!(to_x(from).unwrap_err().code(), Code::Conflict, "{from:?}");
        }
        std::fs::write(dir.path().join(".git/HEAD.lock"), "").unwrap();
        assert_eq!(to_x(Some(&main)).unwrap_err().code(), Code::Conflict);
        remove_file(dir.path().join(".git/HEAD.lock")).unwrap();
        sh(&dir, "git config user.name t; git config user.email t@x");
        to_x(Some(&main)).unwrap();
        assert_eq!(sh(&dir, "git symbolic-ref HEAD; git reflog -1 --format=%gs"), "refs/heads/x\nwhy\n");
        let new = one(b"refs/remotes/o/HEAD", None, Some(&main));
        repository.link_under_lock(&new, b"refs/heads/main", "why").unwrap();
        assert_eq!(sh(&dir, "git symbolic-ref refs/remotes/o/HEAD; git fsck"), "refs/heads/main\n");
        assert!(!dir.path().join(".git/HEAD.lock").exists());
    }
}
