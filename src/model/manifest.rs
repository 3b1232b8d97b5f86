//! The content of a workspace at one moment: every captured path with its kind, permissions and content id.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use super::id::ObjectId;
use super::path::RelPath;
use super::tree::Mode;

/// The kind of a captured path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file, executable or not.
    File,
    /// A symbolic link; its content is the target's bytes.
    Link,
    /// A directory; only its name and mode are recorded here.
    Dir,
}

/// One captured path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// The kind, which decides the meaning of the other fields.
    pub kind: EntryKind,
    /// Permission bits, `0..=0o7777`. Links always carry `0o777`.
    pub perm: u16,
    /// The blob of a file or link; the empty tree for directories.
    pub id: ObjectId,
    /// Content bytes; zero for directories.
    pub size: u64,
}

impl ManifestEntry {
    /// Returns a directory with these permission bits.
    pub fn dir(perm: u16) -> ManifestEntry {
        ManifestEntry { kind: EntryKind::Dir, perm, id: ObjectId::EMPTY_TREE, size: 0 }
    }

    /// Returns the mode under which a tree object records it.
    pub fn mode(&self) -> Mode {
        match self.kind {
            EntryKind::Dir => Mode::Dir,
            EntryKind::Link => Mode::Link,
            EntryKind::File if self.perm & 0o100 != 0 => Mode::Executable,
            EntryKind::File => Mode::File,
        }
    }

    /// Returns whether both are the same to a restore: kind, permissions and content (sizes follow from the content).
    pub fn same(&self, other: &ManifestEntry) -> bool {
        self.kind == other.kind && self.perm == other.perm && self.id == other.id
    }
}

/// All captured paths, directories included, the root itself left out. Every entry's parent directories are entries too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest(BTreeMap<RelPath, ManifestEntry>);

/// A path at which two manifests differ, and what each has there.
pub type Difference<'a> = (&'a RelPath, Option<&'a ManifestEntry>, Option<&'a ManifestEntry>);

fn is_same(here: Option<(&RelPath, &ManifestEntry)>, there: Option<(&RelPath, &ManifestEntry)>) -> bool {
    matches!((here, there), (Some((_, here)), Some((_, there))) if here.same(there))
}

impl Manifest {
    /// Nothing captured.
    pub fn new() -> Manifest {
        Manifest::default()
    }

    /// Adds or replaces an entry.
    pub fn insert(&mut self, path: RelPath, entry: ManifestEntry) {
        self.0.insert(path, entry);
    }

    /// Adds the missing parent directories of `path` with `perm`.
    pub fn insert_parents(&mut self, path: &RelPath, perm: u16) {
        let mut parent = path.parent();
        while let Some(dir) = parent.filter(|dir| !dir.is_root() && !self.0.contains_key(dir)) {
            parent = dir.parent();
            self.0.insert(dir, ManifestEntry::dir(perm));
        }
    }

    /// Removes an entry; its children, if any, are the caller's business.
    pub fn remove(&mut self, path: &RelPath) -> Option<ManifestEntry> {
        self.0.remove(path)
    }

    /// Returns the entry of a path.
    pub fn get(&self, path: &RelPath) -> Option<&ManifestEntry> {
        self.0.get(path)
    }

    /// Returns whether a path is captured.
    pub fn contains(&self, path: &RelPath) -> bool {
        self.0.contains_key(path)
    }

    /// Returns all entries in byte order of their paths.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&RelPath, &ManifestEntry)> {
        self.0.iter()
    }

    /// Everything strictly inside `dir`, in byte order.
    pub fn inside(&self, dir: &RelPath) -> impl Iterator<Item = (&RelPath, &ManifestEntry)> {
        let dir = dir.clone();
        let from = Bound::Excluded(dir.inside_bound());
        self.0.range((from, Bound::Unbounded)).take_while(move |(path, _)| path.starts_with(&dir))
    }

    /// Paths at which this manifest and another are not the same to a restore, in byte order, with the entry of each.
    pub fn differences<'a>(&'a self, other: &'a Manifest) -> Vec<Difference<'a>> {
        let (mut these, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut found = Vec::new();
        loop {
            let order = match (these.peek(), others.peek()) {
                (None, None) => return found,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((here, _)), Some((there, _))) => here.cmp(there),
            };
            let here = if order == Ordering::Greater { None } else { these.next() };
            let there = if order == Ordering::Less { None } else { others.next() };
            let (Some((path, _)), is_same) = (here.or(there), is_same(here, there)) else { continue };
            if !is_same {
                found.push((path, here.map(|(_, entry)| entry), there.map(|(_, entry)| entry)));
            }
        }
    }

    /// Returns number of entries, directories included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing is captured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns number of files and links, and their bytes.
    pub fn totals(&self) -> (u64, u64) {
        let files = self.0.values().filter(|entry| entry.kind != EntryKind::Dir);
        files.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.size))
    }
}

impl FromIterator<(RelPath, ManifestEntry)> for Manifest {
    fn from_iter<I: IntoIterator<Item = (RelPath, ManifestEntry)>>(entries: I) -> Manifest {
        Manifest(entries.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn differences_are_in_order_and_complete() {
        let manifest = |text: &str| -> Manifest {
            let entry =
                |word: &str| (path(&word[1..]), ManifestEntry::dir(0o700 + u16::from(word.as_bytes()[0] - b'0')));
            text.split_whitespace().map(entry).collect()
        };
        for (here, there, expected) in [
            ("", "", ""),
            ("1a", "", "a1-"),
            ("", "1a", "a-1"),
            ("1a 1b 1b/c", "1a 1b 1b/c", ""),
            ("1a 1b 1d", "1a 2b 1c", "b12 c-1 d1-"),
            ("1b", "1a 1c", "a-1 b1- c-1"),
            ("1a 1a/x 1a0", "1a 2a/x 1a0 1z", "a/x12 z-1"),
        ] {
            let side =
                |entry: Option<&ManifestEntry>| entry.map_or("-".to_owned(), |entry| (entry.perm - 0o700).to_string());
            let (here, there) = (manifest(here), manifest(there));
            let found = here.differences(&there);
            let found: Vec<String> =
                found.iter().map(|(path, a, b)| [path.display(), side(*a), side(*b)].concat()).collect();
            assert_eq!(found.join(" "), expected);
        }
    }

    #[test]
    fn inside_is_the_whole_subtree_and_nothing_else() {
        let manifest: Manifest = ["a", "a.b", "a/x", "a/x/y", "a0", "ab"]
            .iter()
            .map(|text| (path(text), ManifestEntry::dir(0o755)))
            .collect();
        let inside = |dir: &str| -> Vec<String> { manifest.inside(&path(dir)).map(|(p, _)| p.display()).collect() };
        assert_eq!(inside("a"), ["a/x", "a/x/y"]);
        assert_eq!(inside("a/x"), ["a/x/y"]);
        assert_eq!(inside("").len(), 6);
        assert!(inside("b").is_empty());
    }
}
