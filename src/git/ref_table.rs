//! Refs of a repository of the user that keeps them as a table (`reftable`): git tells of them, and writes them.
//!
//! Source of the format: git's `Documentation/technical/reftable`. Some files of an operation in progress are refs there.

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

/// A line of the stash's log.
struct StashLine<'l> {
    id: &'l str,
    name: &'l str,
    email: &'l str,
    /// Seconds since the epoch, and the zone.
    date: &'l str,
    message: &'l str,
}

impl StashLine<'_> {
    /// Reads a line of a file of that log.
    fn read(line: &str) -> Option<StashLine<'_>> {
        let (head, message) = line.split_once('\t')?;
        let (ids, who) = (head.get(..head.find('<')?)?, head.get(head.find('<')? + 1..)?);
        let (email, date) = who.split_once("> ")?;
        let mut words = ids.trim_end().splitn(3, ' ');
        let (_old, id) = (words.next()?, words.next()?);
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
        let told = self.ask(self.command().args(["for-each-ref", "--include-root-refs", REFS]), None)?;
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
            && let Ok(target) = self.ask(self.command().args(["symbolic-ref", "-q", "HEAD"]), None)
        {
            state.refs.insert(HEAD.to_vec(), RefValue::Symbolic(target.trim_ascii().to_vec()));
        }
        if state.refs.contains_key(STASH) {
            state.stash = self.stash_log()?;
        }
        Ok(state)
    }

    fn stash_log(&self) -> Result<Vec<u8>> {
        let told = self.ask(self.command().args(["log", "-g", "--date=raw", LOG, "refs/stash", "--"]), None)?;
        let told = String::from_utf8_lossy(&told).into_owned();
        let (mut log, mut old) = (String::new(), NONE.to_owned());
        for line in told.lines().rev() {
            let words: Vec<&str> = line.split('\0').collect();
            let [id, name, email, place, message] = words.as_slice() else { continue };
            let date = place.split_once('{').map_or("", |(_, date)| date.trim_end_matches('}'));
            log.push_str(&format!("{old} {id} {name} <{email}> {date}\t{message}\n"));
            old = (*id).to_owned();
        }
        Ok(log.into_bytes())
    }

    /// Puts a log of the stash in the place of the present one, in the form of a file; an empty one removes the stash.
    ///
    /// # Errors
    /// Returns the errors of git.
    pub(super) fn put_table_stash(&self, log: &[u8]) -> Result<()> {
        self.ask(self.command().args(["update-ref", "-d", "refs/stash"]), None)?;
        let log = String::from_utf8_lossy(log).into_owned();
        for line in log.lines().filter_map(StashLine::read) {
            let mut command = self.command();
            command.env("GIT_COMMITTER_NAME", line.name).env("GIT_COMMITTER_EMAIL", line.email);
            command.env("GIT_COMMITTER_DATE", line.date);
            self.ask(command.args(["stash", "store", "-m", line.message, line.id]), None)?;
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
        for (who, name, email) in [("A B <a@b.c>", "A B", "a@b.c"), ("<>", "", ""), ("Ä <x y>", "Ä", "x y")] {
            let text = format!("{old} {id} {who} 17 +0130\tOn main: a\tb");
            let line = StashLine::read(&text).unwrap();
            assert_eq!((line.id, line.name, line.email), (id.as_str(), name, email), "{text}");
            assert_eq!((line.date, line.message), ("17 +0130", "On main: a\tb"), "{text}");
        }
        for text in ["", "a", "a b\tc", "a b <c\td"] {
            assert!(StashLine::read(text).is_none(), "{text}");
        }
    }
}
