//! The state of a git repository, as far as commands of git move it: HEAD, refs, index, stash, and an operation in progress.
//!
//! It is kept as a small tree. The blob `refs` has lines `VALUE NAME`, in the order of the names. `index` and `stash` are the very bytes
//! of these files. The tree `operation` has one blob for each file of a merge, rebase or the like. Names in it are percent-encoded. All of
//! it is read back as untrusted input.

use std::collections::BTreeMap;

use super::meta::{quote, unquote};
use super::path::RelPath;
use crate::error::{Code, Error, Result};

/// The name under which HEAD stands among the refs.
pub const HEAD: &[u8] = b"HEAD";

/// The ref of the newest stash.
pub const STASH: &[u8] = b"refs/stash";

/// The beginning of the name of a ref that says where another repository's branch was.
pub const REMOTES: &[u8] = b"refs/remotes/";

/// The beginning of the name of a branch.
const BRANCHES: &[u8] = b"refs/heads/";

/// The list of the commits that a cherry-pick or a revert has before it.
const SEQUENCE: &str = "sequencer/todo";

/// Files and directories that are there only while a command of git is in progress, with its verb. The first one counts: a
/// rebase may stop in a cherry-pick.
const IN_PROGRESS: &[(&str, &str)] = &[
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("rebase-merge", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
];

/// The beginning of a value that names another ref.
const SYMBOLIC: &str = "ref: ";

/// The value of a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefValue {
    /// An object, in hex digits: 40 of SHA-1, or 64 of SHA-256.
    Object(String),
    /// Another ref.
    Symbolic(Vec<u8>),
}

impl RefValue {
    /// Reads the content of a ref's file; `None` for what is none.
    pub fn parse(text: &[u8]) -> Option<RefValue> {
        let text = text.trim_ascii();
        if let Some(target) = text.strip_prefix(SYMBOLIC.trim_end().as_bytes()) {
            let target = target.trim_ascii();
            return (!target.is_empty()).then(|| RefValue::Symbolic(target.to_owned()));
        }
        let is_id = matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit);
        is_id.then(|| RefValue::Object(String::from_utf8_lossy(text).to_lowercase()))
    }

    fn encoded(&self) -> String {
        match self {
            RefValue::Object(id) => id.clone(),
            RefValue::Symbolic(target) => format!("@{}", quote(target)),
        }
    }

    fn decoded(word: &str) -> Option<RefValue> {
        match word.strip_prefix('@') {
            Some(target) => unquote(target).ok().map(RefValue::Symbolic),
            None => RefValue::parse(word.as_bytes()).filter(|value| matches!(value, RefValue::Object(_))),
        }
    }
}

/// The state of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepositoryState {
    /// All refs by their names, with `HEAD`.
    pub refs: BTreeMap<Vec<u8>, RefValue>,
    /// The bytes of the index; `None` where there is none.
    pub index: Option<Vec<u8>>,
    /// The bytes of the log of the stash: one line each, the newest last. Empty without a stash.
    pub stash: Vec<u8>,
    /// The files of an operation in progress, as paths in the git directory.
    pub operation: BTreeMap<RelPath, Vec<u8>>,
}

impl RepositoryState {
    /// Returns the commit that HEAD leads to, in hexadecimal digits; `None` where its branch has none.
    pub fn head_commit(&self) -> Option<&str> {
        let value = match self.refs.get(HEAD)? {
            RefValue::Symbolic(branch) => self.refs.get(branch)?,
            value @ RefValue::Object(_) => value,
        };
        match value {
            RefValue::Object(id) => Some(id),
            RefValue::Symbolic(_) => None,
        }
    }

    /// Returns the branch that HEAD names, without `refs/heads/`; `None` for a detached HEAD.
    pub fn branch(&self) -> Option<&[u8]> {
        match self.refs.get(HEAD)? {
            RefValue::Symbolic(target) => Some(target.strip_prefix(BRANCHES).unwrap_or(target)),
            RefValue::Object(_) => None,
        }
    }

    /// Returns the commit that is checked out, in hex digits; `None` before the first one.
    pub fn commit(&self) -> Option<&str> {
        let value = match self.refs.get(HEAD)? {
            RefValue::Symbolic(target) => self.refs.get(target)?,
            object @ RefValue::Object(_) => object,
        };
        match value {
            RefValue::Object(id) => Some(id),
            RefValue::Symbolic(_) => None,
        }
    }

    /// Returns the number of stashes.
    pub fn stashes(&self) -> usize {
        self.stash.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count()
    }

    /// Returns the command of git that is in progress, by its verb; `None` if there is none.
    pub fn in_progress(&self) -> Option<&'static str> {
        let has = |name: &str| self.operation.keys().any(|path| is_at_or_below(path, name));
        let is_revert = || {
            let todo = self.operation.iter().find(|(path, _)| path.as_bytes() == SEQUENCE.as_bytes());
            todo.is_some_and(|(_, text)| text.starts_with(b"revert"))
        };
        match IN_PROGRESS.iter().find(|(name, _)| has(name))? {
            (_, "cherry-pick") if is_revert() => Some("revert"),
            (_, verb) => Some(verb),
        }
    }

    /// Returns the blob of the refs.
    pub fn encoded_refs(&self) -> Vec<u8> {
        let line = |(name, value): (&Vec<u8>, &RefValue)| format!("{} {}\n", value.encoded(), quote(name));
        self.refs.iter().map(line).collect::<String>().into_bytes()
    }

    /// Reads the blob of the refs.
    ///
    /// # Errors
    /// `store-damaged` for what piton would not have written.
    pub fn decoded_refs(bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, RefValue>> {
        let damaged = || Error::new(Code::StoreDamaged, "a saved state of a repository has an unknown line");
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let read = |line: &str| {
            let (value, name) = line.split_once(' ').ok_or_else(damaged)?;
            let name = unquote(name).ok().filter(|name| is_ref_name(name)).ok_or_else(damaged)?;
            Ok((name, RefValue::decoded(value).ok_or_else(damaged)?))
        };
        text.lines().map(read).collect()
    }
}

/// Returns true for a file, as a path in the git directory, that is there only while a command of git is in progress.
pub fn is_in_progress(path: &RelPath) -> bool {
    IN_PROGRESS.iter().any(|(name, _)| is_at_or_below(path, name))
}

fn is_at_or_below(path: &RelPath, name: &str) -> bool {
    path.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Returns true for a name that git takes for a ref, and that cannot lead out of its directory.
pub fn is_ref_name(name: &[u8]) -> bool {
    let is_plain = |byte: &u8| *byte > b' ' && *byte != 0x7f && !b"~^:?*[\\".contains(byte);
    let parts = || name.split(|byte| *byte == b'/');
    let is_part = |part: &[u8]| !part.is_empty() && !part.starts_with(b".") && !part.ends_with(b".lock");
    let is_known = name == HEAD || name.starts_with(b"refs/");
    is_known && name.iter().all(is_plain) && parts().all(is_part) && !name.windows(2).any(|two| two == b"..")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_read_as_git_writes_them() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        for (text, expected) in [
            (format!("{id}\n"), Some(RefValue::Object(id.to_owned()))),
            ("ref: refs/heads/main\n".to_owned(), Some(RefValue::Symbolic(b"refs/heads/main".to_vec()))),
            ("ref:refs/heads/x".to_owned(), Some(RefValue::Symbolic(b"refs/heads/x".to_vec()))),
            ("ref: \n".to_owned(), None),
            (id[1..].to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(RefValue::parse(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["HEAD", "refs/heads/main", "refs/heads/a/b.c", "refs/stash", "refs/heads/ä"] {
            assert!(is_ref_name(name.as_bytes()), "{name}");
        }
        for name in
            ["main", "refs/heads/../../x", "refs//x", "refs/heads/.x", "refs/heads/x.lock", "refs/a b", "/refs/x", ""]
        {
            assert!(!is_ref_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_is_checked_out_and_in_progress_is_known() {
        let id = "a1".repeat(20);
        let state = |head: &str, files: &[&str]| {
            let content = |path: &str| if path.ends_with("todo") { b"revert a1 x".to_vec() } else { Vec::new() };
            let refs = [("HEAD", head.to_owned()), ("refs/heads/main", id.clone())];
            let refs = refs.iter().filter_map(|(name, text)| {
                RefValue::parse(text.as_bytes()).map(|value| (name.as_bytes().to_vec(), value))
            });
            let operation = files.iter().map(|path| (RelPath::parse(path.as_bytes()).unwrap(), content(path)));
            RepositoryState { refs: refs.collect(), operation: operation.collect(), ..RepositoryState::default() }
        };
        for (head, files, branch, is_there, verb) in [
            ("ref: refs/heads/main", &[][..], Some("main"), true, None),
            ("ref: refs/heads/new", &["MERGE_HEAD", "MERGE_MSG"], Some("new"), false, Some("merge")),
            (id.as_str(), &["rebase-merge/done", "CHERRY_PICK_HEAD"], None, true, Some("rebase")),
            (id.as_str(), &["rebase-apply/applying", "rebase-apply/next"], None, true, Some("am")),
            (id.as_str(), &["rebase-apply/next"], None, true, Some("rebase")),
            (id.as_str(), &["CHERRY_PICK_HEAD"], None, true, Some("cherry-pick")),
            (id.as_str(), &["REVERT_HEAD"], None, true, Some("revert")),
            (id.as_str(), &["sequencer/opts"], None, true, Some("cherry-pick")),
            (id.as_str(), &["sequencer/opts", "sequencer/todo"], None, true, Some("revert")),
            (id.as_str(), &["BISECT_LOG"], None, true, Some("bisect")),
            ("", &["AUTO_MERGE", "SQUASH_MSG"], None, false, None),
        ] {
            let state = state(head, files);
            assert_eq!(state.branch(), branch.map(str::as_bytes), "{head} {files:?}");
            assert_eq!((state.commit().is_some(), state.in_progress()), (is_there, verb), "{head} {files:?}");
        }
    }

    proptest! {
        #[test]
        fn refs_come_back_as_they_were(names in proptest::collection::btree_set("[a-zä%@-]{1,9}(/[a-z0-9]{1,5})?", 0..9), flip in any::<bool>()) {
            let value = |name: &str| match flip {
                true => RefValue::Symbolic(format!("refs/heads/{name}").into_bytes()),
                false => RefValue::Object("a1".repeat(20)),
            };
            let refs = names.iter().map(|name| (format!("refs/{name}").into_bytes(), value(name))).collect();
            let state = RepositoryState { refs, ..RepositoryState::default() };
            prop_assert_eq!(RepositoryState::decoded_refs(&state.encoded_refs()).unwrap(), state.refs);
        }

        #[test]
        fn no_bytes_are_taken_for_refs_by_a_guess(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(refs) = RepositoryState::decoded_refs(&bytes) {
                prop_assert!(refs.keys().all(|name| is_ref_name(name)));
            }
        }
    }
}
