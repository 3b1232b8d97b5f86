//! git tree objects: entries, their order, and the encoding, after git's `tree.c` and `base_name_compare`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::id::ObjectId;
use crate::error::{Code, Error, Result};

/// The kind of a tree entry. Only the modes that piton writes; permission bits beyond "executable" live in the sidecar
/// records of [`super::meta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A file that is not executable; octal `100644`.
    File,
    /// An executable file; octal `100755`.
    Executable,
    /// A symbolic link, whose blob is its target; octal `120000`.
    Link,
    /// A directory; octal `40000`.
    Dir,
}

impl Mode {
    /// git's octal text.
    pub fn as_octal(self) -> &'static str {
        match self {
            Mode::File => "100644",
            Mode::Executable => "100755",
            Mode::Link => "120000",
            Mode::Dir => "40000",
        }
    }

    fn parse(text: &[u8]) -> Option<Mode> {
        match text {
            b"100644" => Some(Mode::File),
            b"100755" => Some(Mode::Executable),
            b"120000" => Some(Mode::Link),
            b"40000" => Some(Mode::Dir),
            _ => None,
        }
    }
}

/// One entry of a tree object, under its *stored* name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The bytes of the name, encoded by [`super::name`] where git reserves it.
    pub name: Vec<u8>,
    /// The kind, as git's octal mode tells it.
    pub mode: Mode,
    /// The blob of a file or link, the tree of a directory.
    pub id: ObjectId,
}

/// An entry in the bytes of its tree.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Raw<'t> {
    name: &'t [u8],
    mode: Mode,
    id: ObjectId,
}

/// git's order: bytes, with directories compared as if their name ended in `/`.
fn order(a: (&[u8], Mode), b: (&[u8], Mode)) -> Ordering {
    let common = a.0.len().min(b.0.len());
    let next = |(name, mode): (&[u8], Mode)| name.get(common).copied().or((mode == Mode::Dir).then_some(b'/'));
    a.0[..common].cmp(&b.0[..common]).then_with(|| next(a).cmp(&next(b)))
}

fn compare(a: &TreeEntry, b: &TreeEntry) -> Ordering {
    order((&a.name, a.mode), (&b.name, b.mode))
}

/// Encodes a tree object's content; sorts the entries as git wants them.
///
/// Names must be unique, not empty, without `/` and NUL: the scan and the name escaping guarantee it.
pub fn encode(mut entries: Vec<TreeEntry>) -> Vec<u8> {
    entries.sort_by(compare);
    let mut out = Vec::with_capacity(entries.iter().map(|entry| entry.name.len() + 28).sum());
    for entry in &entries {
        debug_assert!(!entry.name.is_empty() && !entry.name.contains(&b'/') && !entry.name.contains(&0));
        out.extend_from_slice(entry.mode.as_octal().as_bytes());
        out.push(b' ');
        out.extend_from_slice(&entry.name);
        out.push(0);
        out.extend_from_slice(entry.id.as_bytes());
    }
    out
}

/// Decodes a tree object's content.
///
/// # Errors
/// `store-damaged` for anything piton would not have written: cut entries, unknown modes (submodule links among them),
/// names with `/`, `.` or `..`, duplicate or empty names, another order. A decoded tree encodes to the same bytes.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<TreeEntry>> {
    let mut entries = Vec::with_capacity(bytes.len() / 40);
    while !bytes.is_empty() {
        let (entry, rest) = decode_one(bytes)?;
        entries.push(TreeEntry { name: entry.name.to_vec(), mode: entry.mode, id: entry.id });
        bytes = rest;
    }
    if !entries.is_sorted_by(|a, b| compare(a, b).is_lt()) {
        return Err(damaged("is not in git's order"));
    }
    let mut names: Vec<&[u8]> = entries.iter().map(|entry: &TreeEntry| entry.name.as_slice()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(damaged("contains a name twice"));
    }
    Ok(entries)
}

/// One side of a name: what it is, if it is there.
pub type Side = Option<(Mode, ObjectId)>;

/// Returns the names that differ between the contents of two tree objects, with both sides. Only [`decode`] checks
/// git's order: in a tree without it, a name may be listed that does not differ.
///
/// # Errors
/// `store-damaged` for entries that piton would not have written.
pub fn differing<'t>(old: &'t [u8], new: &'t [u8]) -> Result<BTreeMap<&'t [u8], (Side, Side)>> {
    let mut names: BTreeMap<&[u8], (Side, Side)> = BTreeMap::new();
    let (mut old, mut new) = (old, new);
    while !(old.is_empty() && new.is_empty()) {
        let (left, after_left) = decode_next(old)?;
        let (right, after_right) = decode_next(new)?;
        let first = match (&left, &right) {
            (Some(left), Some(right)) => order((left.name, left.mode), (right.name, right.mode)),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let same = left == right;
        if let Some(left) = left.filter(|_| first.is_le()) {
            old = after_left;
            if !same {
                names.entry(left.name).or_default().0 = Some((left.mode, left.id));
            }
        }
        if let Some(right) = right.filter(|_| first.is_ge()) {
            new = after_right;
            if !same {
                names.entry(right.name).or_default().1 = Some((right.mode, right.id));
            }
        }
    }
    Ok(names)
}

fn decode_next(bytes: &[u8]) -> Result<(Option<Raw<'_>>, &[u8])> {
    if bytes.is_empty() {
        return Ok((None, bytes));
    }
    decode_one(bytes).map(|(entry, rest)| (Some(entry), rest))
}

fn decode_one(bytes: &[u8]) -> Result<(Raw<'_>, &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ').ok_or_else(|| damaged("is cut"))?;
    let mode = Mode::parse(&bytes[..space]).ok_or_else(|| damaged("has an entry with an unknown mode"))?;
    let rest = &bytes[space + 1..];
    let nul = rest.iter().position(|byte| *byte == 0).ok_or_else(|| damaged("is cut"))?;
    let name = &rest[..nul];
    if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
        return Err(damaged("has an impossible name"));
    }
    let id: [u8; 20] =
        rest.get(nul + 1..nul + 21).and_then(|id| id.try_into().ok()).ok_or_else(|| damaged("is cut"))?;
    Ok((Raw { name, mode, id: ObjectId::from_bytes(id) }, &rest[nul + 21..]))
}

fn damaged(what: &str) -> Error {
    Error::new(Code::StoreDamaged, format!("a tree object {what}")).hint("run `git fsck --full` in the store")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(name: &str, mode: Mode) -> TreeEntry {
        TreeEntry { name: name.into(), mode, id: ObjectId::EMPTY_TREE }
    }

    #[test]
    fn directories_sort_as_if_they_ended_in_a_slash() {
        let bytes = encode(vec![entry("a", Mode::Dir), entry("a.b", Mode::File), entry("a0", Mode::File)]);
        let names: Vec<_> = decode(&bytes).unwrap().into_iter().map(|e| String::from_utf8(e.name).unwrap()).collect();
        assert_eq!(names, ["a.b", "a", "a0"]);
    }

    #[test]
    fn damaged_trees_are_refused() {
        let good = encode(vec![entry("a", Mode::File)]);
        for bad in [
            &good[..good.len() - 1],
            b"100644 a",
            b"160000 m\0aaaaaaaaaaaaaaaaaaaa",
            b"100644 ..\0aaaaaaaaaaaaaaaaaaaa",
            b"100664 old\0aaaaaaaaaaaaaaaaaaaa",
            b"100644 b\0aaaaaaaaaaaaaaaaaaaa100644 a\0aaaaaaaaaaaaaaaaaaaa",
            b"100644 a\0aaaaaaaaaaaaaaaaaaaa100644 a.b\0aaaaaaaaaaaaaaaaaaaa40000 a\0aaaaaaaaaaaaaaaaaaaa",
        ] {
            assert_eq!(decode(bad).unwrap_err().code(), Code::StoreDamaged);
        }
        assert!(decode(&[good.clone(), good].concat()).is_err());
    }

    proptest! {
        #[test]
        fn decoding_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            // Only the absence of a panic is of interest for random bytes.
            let _ = decode(&bytes);
        }

        /// Against both decoded whole.
        #[test]
        fn what_differs_is_told(
            old in proptest::collection::btree_map("[a.0]{1,3}", (any::<bool>(), 0..3_u8), 0..12),
            new in proptest::collection::btree_map("[a.0]{1,3}", (any::<bool>(), 0..3_u8), 0..12),
        ) {
            type Given = BTreeMap<String, (bool, u8)>;
            let side = |(dir, id): &(bool, u8)| (if *dir { Mode::Dir } else { Mode::File }, ObjectId::from_bytes([*id; 20]));
            let content = |given: &Given| {
                let entries = given.iter().map(|(name, given)| (name, side(given)));
                encode(entries.map(|(name, (mode, id))| TreeEntry { name: name.as_bytes().to_vec(), mode, id }).collect())
            };
            let named = |name: &str| name != "." && name != "..";
            let (old, new): (Given, Given) = (
                old.into_iter().filter(|(name, _)| named(name)).collect(),
                new.into_iter().filter(|(name, _)| named(name)).collect(),
            );
            let names: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let sides = names.into_iter().map(|name| (name.as_bytes(), (old.get(name).map(side), new.get(name).map(side))));
            let expected: BTreeMap<_, _> = sides.filter(|(_, (old, new))| old != new).collect();
            let (old, new) = (content(&old), content(&new));
            prop_assert_eq!(differing(&old, &new).unwrap(), expected);
            for cut in 0..old.len() {
                let _ = differing(&old[..cut], &new);
            }
        }

        #[test]
        fn round_trip(names in proptest::collection::btree_set("[a-z.0-9-]{1,6}", 0..12)) {
            let entries: Vec<_> = names
                .iter()
                .filter(|name| *name != "." && *name != "..")
                .map(|name| entry(name, if name.len() % 2 == 0 { Mode::Dir } else { Mode::File }))
                .collect();
            let mut decoded = decode(&encode(entries.clone())).unwrap();
            decoded.sort_by(|a, b| a.name.cmp(&b.name));
            prop_assert_eq!(decoded, entries);
        }
    }
}
