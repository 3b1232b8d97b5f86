//! Refs of a repository of the user that keeps them as a table (`reftable`): git tells of them, and writes them.
//!
//! Source of the format: git's `Documentation/technical/reftable`. Some files of an operation in progress are refs there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::user_repository::UserRepository;
use crate::error::Result;
use crate::model::path::RelPath;
use crate::model::repository::{HEAD, RefValue, RepositoryState, STASH, is_ref_name};

/// The names beside HEAD and `refs/` that tell of an operation in progress, and that such a repository keeps as refs.
const OF_OPERATION: &[&str] = &["AUTO_MERGE", "BISECT_EXPECTED_REV", "CHERRY_PICK_HEAD", "REBASE_HEAD", "REVERT_HEAD"];

/// The form in which git tells of refs.
const REFS: &str = "--format=%(objectname) %(symref) %(refname)";

/// The form in which git tells of the lines of a ref's log.
const LOG: &str = "--format=%H%x00%gn%x00%ge%x00%gd%x00%gs";

/// The value before the first one of a ref.
const NONE: &str = "0000000000000000000000000000000000000000";

/// A line of the stash's log. Identities and messages may be in any encoding.
struct StashLine<'l> {
    id: &'l str,
    name: &'l [u8],
    email: &'l [u8],
    /// Seconds since the epoch, and the zone.
    date: &'l str,
    message: &'l [u8],
}

impl StashLine<'_> {
    /// Reads a line of a file of that log.
    fn read(line: &[u8]) -> Option<StashLine<'_>> {
        let at = |text: &[u8], byte: u8| text.iter().position(|one| *one == byte);
        let (head, message) = (&line[..at(line, b'\t')?], &line[at(line, b'\t')? + 1..]);
        let (ids, who) = (&head[..at(head, b'<')?], &head[at(head, b'<')? + 1..]);
        let end = who.windows(2).position(|two| two == b"> ")?;
        let (email, date) = (&who[..end], std::str::from_utf8(&who[end + 2..]).ok()?);
        let mut words = ids.trim_ascii_end().splitn(3, |byte| *byte == b' ');
        let (_old, id) = (words.next()?, std::str::from_utf8(words.next()?).ok()?);
        Some(StashLine { id, name: words.next().unwrap_or_default(), email, date, message })
    }
}

impl UserRepository {
    /// Returns true if its refs are a table.
    pub fn has_ref_table(&self) -> bool {
        self.common.join("reftable").symlink_metadata().is_ok()
    }

    /// Returns its refs, the log of its stash in the form of a file, and the refs of an operation in progress.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub fn table_state(&self) -> Result<RepositoryState> {
        let mut state = RepositoryState::default();
        let told = self.ask_briefly(self.command().args(["for-each-ref", "--include-root-refs", REFS]))?;
        for line in told.split(|byte| *byte == b'\n') {
            let mut words = line.splitn(3, |byte| *byte == b' ');
            let (Some(id), Some(target), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let value = match target {
                b"" => RefValue::parse(id),
                target => Some(RefValue::Symbolic(target.to_vec())),
            };
            let Some(value) = value else { continue };
            if is_ref_name(name) {
                state.refs.insert(name.to_vec(), value);
            } else if let (true, RefValue::Object(id)) = (is_of_operation(name), value) {
                state.operation.insert(RelPath::parse(name)?, format!("{id}\n").into_bytes());
            }
        }
        // git does not list the name of a branch without a commit.
        if !state.refs.contains_key(HEAD)
            && let Ok(target) = self.ask_briefly(self.command().args(["symbolic-ref", "-q", "HEAD"]))
        {
            state.refs.insert(HEAD.to_vec(), RefValue::Symbolic(target.trim_ascii().to_vec()));
        }
        if state.refs.contains_key(STASH) {
            state.stash = self.stash_log()?;
        }
        Ok(state)
    }

    fn stash_log(&self) -> Result<Vec<u8>> {
        let mut command = self.command();
        command.args(["log", "-g", "--no-show-signature", "--date=raw", LOG, "refs/stash", "--"]);
        let told = self.ask_briefly(&mut command)?;
        let (mut log, mut old) = (Vec::new(), NONE.as_bytes());
        let lines: Vec<&[u8]> = told.split(|byte| *byte == b'\n').collect();
        for line in lines.into_iter().rev() {
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            let [id, name, email, place, message] = words.as_slice() else { continue };
            let date = place.iter().position(|byte| *byte == b'{').map_or(&b""[..], |at| &place[at + 1..]);
            let date = date.strip_suffix(b"}").unwrap_or(date);
            let parts = [old, b" ", id, b" ", name, b" <", email, b"> ", date, b"\t", message, b"\n"];
            log.extend(parts.concat());
            old = id;
        }
        Ok(log)
    }

    /// Puts a log of the stash in the place of the present one, in the form of a file; an empty one removes the stash. `newest` is the
    /// stash that is there. Stashes that are gone from the repository are left out.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub(super) fn put_table_stash(&self, log: &[u8], newest: Option<&str>) -> Result<()> {
        let lines: Vec<StashLine<'_>> = log.split(|byte| *byte == b'\n').filter_map(StashLine::read).collect();
        let gone = self.lacking(&lines.iter().map(|line| line.id.to_owned()).collect::<Vec<_>>())?;
        self.ask(self.command().args(["update-ref", "-d", "refs/stash"]).args(newest), None)?;
        for line in lines.iter().filter(|line| !gone.iter().any(|gone| gone == line.id)) {
            let mut command = self.command();
            command.env("GIT_COMMITTER_NAME", OsStr::from_bytes(line.name));
            command.env("GIT_COMMITTER_EMAIL", OsStr::from_bytes(line.email));
            // A small number is a date only with this sign.
            command.env("GIT_COMMITTER_DATE", format!("@{}", line.date));
            command.args(["stash", "store", "-m"]).arg(OsStr::from_bytes(line.message)).arg(line.id);
            self.ask(&mut command, None)?;
        }
        Ok(())
    }

    /// Moves a ref of an operation in progress; `None` if it is no ref but a file.
    pub(super) fn put_table_operation(&self, path: &RelPath, content: Option<&[u8]>) -> Option<Result<()>> {
        if !self.has_ref_table() || !is_of_operation(path.as_bytes()) {
            return None;
        }
        let name = path.display();
        let mut command = self.command();
        match content.and_then(RefValue::parse) {
            Some(RefValue::Object(id)) => command.args(["update-ref", "--no-deref", &name, &id]),
            _ => command.args(["update-ref", "--no-deref", "-d", &name]),
        };
        Some(self.ask(&mut command, None).map(drop))
    }
}

fn is_of_operation(name: &[u8]) -> bool {
    OF_OPERATION.iter().any(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_log_is_read() {
        let (old, id) = ("0".repeat(40), "a1".repeat(20));
        for (who, name, email) in [
            (&b"A B <a@b.c>"[..], &b"A B"[..], &b"a@b.c"[..]),
            (b"<>", b"", b""),
            (b" <>", b"", b""),
            ("Ä <x y>".as_bytes(), "Ä".as_bytes(), b"x y"),
            (b"Ren\xe9 <\xff>", b"Ren\xe9", b"\xff"),
        ] {
            let text = [format!("{old} {id} ").as_bytes(), who, b" 17 +0130\tOn main: a\tb\xe9"].concat();
            let line = StashLine::read(&text).unwrap();
            assert_eq!((line.id, line.name, line.email), (id.as_str(), name, email), "{text:?}");
            assert_eq!((line.date, line.message), ("17 +0130", &b"On main: a\tb\xe9"[..]), "{text:?}");
        }
        for text in ["", "a", "a b\tc", "a b <c\td"] {
            assert!(StashLine::read(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_stash_comes_back_byte_by_byte() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        let sh = |script: &str| {
            let mut command = std::process::Command::new("sh");
            command.args(["-ec", script]).current_dir(dir.path());
            command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
            command.output().unwrap().status.success()
        };
        let who = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t";
        if !sh("git init -q -b main --ref-format=reftable .") {
            eprintln!("skipped: there is no git that keeps refs as a table");
            return;
        }
        assert!(sh(&format!("{who}; echo 1 > f; git add f; git commit -qm one")));
        for (at, (name, email)) in [(r"Ren\351", r"\377@x"), ("A B", ""), ("x", "y")].into_iter().enumerate() {
            assert!(sh(&format!(
                "{who}; export GIT_COMMITTER_NAME=$(printf '{name}') GIT_COMMITTER_EMAIL=$(printf '{email}') GIT_COMMITTER_DATE='@1{at} +0130'; \
                 echo s{at} > f; git stash push -q -m \"$(printf 'm\\351{at}')\""
            )));
        }
        let repository = UserRepository::at(&git, &git);
        let was = repository.table_state().unwrap();
        let text = was.stash.escape_ascii().to_string();
        assert!(
            text.contains(r"Ren\xe9 <\xff@x> 10 +0130\tOn main: m\xe90") && text.contains("A B <> 11 +0130"),
            "{text}"
        );
        assert!(sh(&format!("{who}; git stash clear")));
        let gone = repository.table_state().unwrap();
        repository.put_stash(&was, &gone, "test").unwrap();
        assert_eq!(repository.table_state().unwrap(), was);
        // One that cannot be stored, behind one that can: the list of before stays as it was.
        let mut broken = was.clone();
        let (from, to) = (b"11 +0130", b"-1 +0130");
        let at = was.stash.windows(from.len()).position(|part| part == from).unwrap();
        broken.stash[at..at + from.len()].copy_from_slice(to);
        assert!(repository.put_stash(&broken, &was, "test").is_err());
        assert_eq!(repository.table_state().unwrap(), was);
    }
}
