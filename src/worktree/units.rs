//! Reads an `SQLite` database and its log (`-wal` or `-journal`) as one unit. Copies from different moments are a malformed database.
//!
//! A writer copies the log into the database and then restarts the log. A unit is therefore read again until none of its files changed
//! during the read. If that never happens, the database is marked as unstable. piton takes no lock, because a lock could block the writer.
//!
//! Source: the pages "Temporary Files" and "WAL-mode File Format" of the documentation of `SQLite`.

use std::collections::{BTreeMap, BTreeSet};

use super::beneath::Root;
use super::probe::stamp_of;
use super::read::{Content, HeldStill, ReadMark, Refusal, Stored, WHOLE};
use super::walk::{Candidate, ContentSource};
use crate::model::path::RelPath;
use crate::model::stamp::Stamp;

/// The endings of logs.
const LOGS: [&[u8]; 2] = [b"-wal", b"-journal"];

/// The number of times that a unit is read.
const ATTEMPTS: usize = 3;

/// A database whose files are among the candidates of a capture.
#[derive(Debug)]
pub(super) struct Unit {
    /// The index of the database in the candidates.
    database: usize,
    /// The indexes of all its files in the candidates, including the database.
    pub(super) files: Vec<usize>,
    /// The paths of the database and of its possible logs.
    paths: Vec<RelPath>,
}

/// Returns the path of the database that a log belongs to; `None` if the name is not that of a log.
pub(super) fn database_of(log: &RelPath) -> Option<RelPath> {
    let name = LOGS.iter().find_map(|ending| log.name().strip_suffix(*ending)).filter(|name| !name.is_empty())?;
    Some(log.parent()?.join(name))
}

/// Returns the paths of the possible logs of a database.
pub(super) fn logs_of(database: &RelPath) -> Vec<RelPath> {
    let Some(parent) = database.parent() else { return Vec::new() };
    LOGS.iter().map(|ending| parent.join(&[database.name(), ending].concat())).collect()
}

/// Finds the units with at least one file to read, and marks all their files to be read.
pub(super) fn of(files: &mut [Candidate]) -> Vec<Unit> {
    let databases: BTreeSet<RelPath> = files.iter().filter_map(|file| database_of(&file.path)).collect();
    if databases.is_empty() {
        return Vec::new();
    }
    let mut units: BTreeMap<RelPath, Unit> = BTreeMap::new();
    for (at, file) in files.iter().enumerate().filter(|(_, file)| databases.contains(&file.path)) {
        let paths = std::iter::once(file.path.clone()).chain(logs_of(&file.path)).collect();
        units.insert(file.path.clone(), Unit { database: at, files: vec![at], paths });
    }
    for (at, file) in files.iter().enumerate() {
        if let Some(unit) = database_of(&file.path).and_then(|database| units.get_mut(&database)) {
            unit.files.push(at);
        }
    }
    let is_read = |unit: &Unit| unit.files.iter().any(|at| matches!(files[*at].source, ContentSource::Unread));
    let units: Vec<Unit> = units.into_values().filter(is_read).collect();
    for at in units.iter().flat_map(|unit| &unit.files) {
        files[*at].source = ContentSource::Unread;
    }
    units
}

/// The result of reading one file of a unit.
pub(super) trait UnitPart {
    /// The state of the file when it was read.
    fn mark(&mut self) -> &mut ReadMark;
    /// Returns true if both reads returned the same content.
    fn is_same(&self, other: &Self) -> bool;
}

impl UnitPart for Stored {
    fn mark(&mut self) -> &mut ReadMark {
        &mut self.mark
    }

    fn is_same(&self, other: &Stored) -> bool {
        self.id == other.id
    }
}

impl UnitPart for Content {
    fn mark(&mut self) -> &mut ReadMark {
        &mut self.mark
    }

    fn is_same(&self, other: &Content) -> bool {
        self.bytes == other.bytes
    }
}

/// The results for all files of a unit, each with the index of its candidate.
type UnitRead<T> = Vec<(usize, Result<T, Refusal>)>;

impl Unit {
    /// Returns true if all its files fit into memory. Reading them into memory first leaves a writer little time in between.
    pub(super) fn is_small(&self, files: &[Candidate]) -> bool {
        self.files.iter().map(|at| files[*at].stamp.size).sum::<u64>() <= WHOLE
    }

    /// Reads its files with `read` until none of them changed during the read, at most [`ATTEMPTS`] times.
    pub(super) fn read<T: UnitPart>(
        &self,
        root: &Root,
        read: &mut dyn FnMut(usize) -> Result<T, Refusal>,
    ) -> UnitRead<T> {
        let mut before = self.stamps(root);
        let mut found: UnitRead<T> = Vec::new();
        for _ in 0..ATTEMPTS {
            let mut again: UnitRead<T> = self.files.iter().map(|at| (*at, read(*at))).collect();
            let after = self.stamps(root);
            // Two writes within one clock tick leave equal times, so the contents must be equal in two reads.
            let is_same = !found.is_empty() && found.iter().zip(&again).all(|(one, two)| is_same(&one.1, &two.1));
            let mut marks = again.iter_mut().filter_map(|(_, read)| Some(read.as_mut().ok()?.mark().held));
            let holds_still = marks.all(|held| held == HeldStill::Proven || (is_same && held == HeldStill::Fresh));
            if before == after && holds_still {
                return again;
            }
            (before, found) = (after, again);
        }
        if let Some((_, Ok(database))) = found.iter_mut().find(|(at, _)| *at == self.database) {
            database.mark().held = HeldStill::Never;
        }
        found
    }

    fn stamps(&self, root: &Root) -> Vec<Option<Stamp>> {
        self.paths.iter().map(|path| root.lstat(path).ok().map(|facts| stamp_of(&facts))).collect()
    }
}

/// Returns true if two reads of a file returned the same content, or both failed.
fn is_same<T: UnitPart>(one: &Result<T, Refusal>, other: &Result<T, Refusal>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.is_same(other),
        (Err(_), Err(_)) => true,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::walk::Class;
    use super::*;
    use crate::model::id::ObjectId;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_log_is_known_by_its_name() {
        for (log, database) in [
            ("app.db-wal", Some("app.db")),
            ("d/app.db-journal", Some("d/app.db")),
            ("-wal", None),
            ("app.db-shm", None),
            ("app.db", None),
        ] {
            assert_eq!(database_of(&path(log)), database.map(path), "{log}");
        }
        assert_eq!(logs_of(&path("d/a")), [path("d/a-wal"), path("d/a-journal")]);
    }

    /// Makes candidates in a directory; those with `=` in front have known content.
    fn candidates(root: &Root, names: &[&str]) -> Vec<Candidate> {
        let candidate = |name: &&str| {
            let (name, is_known) = name.strip_prefix('=').map_or((*name, false), |name| (name, true));
            std::fs::write(root.path().join(name), name).unwrap();
            let stamp = stamp_of(&root.lstat(&path(name)).unwrap());
            let id = "0123456789012345678901234567890123456789".parse::<ObjectId>().unwrap();
            let source = if is_known { ContentSource::Known(id) } else { ContentSource::Unread };
            Candidate { path: path(name), stamp, source, class: Class::Ordinary, targeted: false }
        };
        names.iter().map(candidate).collect()
    }

    #[test]
    fn a_database_is_read_with_its_log_unless_neither_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        for (names, expected) in [
            (&["a", "=b.db", "b.db-wal"][..], &[&["b.db", "b.db-wal"][..]][..]),
            (&["b.db", "=b.db-journal", "=b.db-wal"], &[&["b.db", "b.db-journal", "b.db-wal"]]),
            (&["=b.db", "=b.db-wal"], &[]),
            (&["b.db-wal"], &[]),
            (&["b.db", "c.db"], &[]),
        ] {
            let mut files = candidates(&root, names);
            let units = of(&mut files);
            let shown = |unit: &Unit| unit.files.iter().map(|at| files[*at].path.display()).collect::<Vec<_>>();
            assert_eq!(units.iter().map(shown).collect::<Vec<_>>(), expected, "{names:?}");
            let all = units.iter().flat_map(|unit| &unit.files);
            assert!(all.into_iter().all(|at| matches!(files[*at].source, ContentSource::Unread)));
        }
    }

    #[test]
    fn a_unit_is_read_until_its_files_hold_still_together() {
        for (writes, attempts, is_still) in [(0, 1, true), (1, 2, true), (9, ATTEMPTS, false)] {
            let dir = tempfile::tempdir().unwrap();
            let root = Root::open(dir.path()).unwrap();
            let mut files = candidates(&root, &["b.db", "b.db-wal"]);
            // Their times are older than any tick.
            for file in &files {
                let file = std::fs::File::options().write(true).open(file.path.under(dir.path())).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            }
            let unit = of(&mut files).pop().unwrap();
            let mut reads = 0;
            let found = unit.read(&root, &mut |at| {
                let content = super::super::read::whole(&root, &files[at].path, 1000);
                reads += 1;
                // A writer moves the log into the database, after the database was read and before the log was.
                if reads % 2 == 1 && reads / 2 < writes {
                    std::fs::write(dir.path().join("b.db"), format!("moved {reads}")).unwrap();
                    std::fs::write(dir.path().join("b.db-wal"), format!("anew {reads} at length")).unwrap();
                }
                content
            });
            // A change of the times is one of the two files too.
            assert!(reads / 2 >= attempts && reads / 2 <= ATTEMPTS, "{writes} writes: {reads} reads");
            let marks: Vec<HeldStill> = found.into_iter().map(|(_, read)| read.unwrap().mark.held).collect();
            assert_eq!(marks[0] != HeldStill::Never, is_still, "{writes} writes: {marks:?}");
        }
    }
}
