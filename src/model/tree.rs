//! git tree objects: entries, their order, and the encoding, after git's `tree.c` and `base_name_compare`.

use std::cmp::Ordering;

use super::id::ObjectId;
use crate::error::{Code, Error, Result};

/// What a tree entry is. Only the modes that piton writes; permission bits beyond "executable" live in the sidecar
/// records of [`super::meta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    File,
    Executable,
    Link,
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
    pub name: Vec<u8>,
    pub mode: Mode,
    pub id: ObjectId,
}

/// git's order: bytes, with directories compared as if their name ended in `/`.
fn compare(a: &TreeEntry, b: &TreeEntry) -> Ordering {
    let common = a.name.len().min(b.name.len());
    let next = |entry: &TreeEntry| entry.name.get(common).copied().or((entry.mode == Mode::Dir).then_some(b'/'));
    a.name[..common].cmp(&b.name[..common]).then_with(|| next(a).cmp(&next(b)))
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
/// names with `/`, `.` or `..`, duplicate or empty names, another order. What decodes encodes to the same bytes.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<TreeEntry>> {
    let mut entries = Vec::with_capacity(bytes.len() / 40);
    while !bytes.is_empty() {
        let (entry, rest) = decode_one(bytes)?;
        entries.push(entry);
        bytes = rest;
    }
    if !entries.is_sorted_by(|a, b| compare(a, b).is_lt()) {
        return Err(damaged("is not in git's order"));
    }
    let mut names: Vec<&[u8]> = entries.iter().map(|entry: &TreeEntry| entry.name.as_slice()).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(damaged("holds a name twice"));
    }
    Ok(entries)
}

fn decode_one(bytes: &[u8]) -> Result<(TreeEntry, &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ').ok_or_else(|| damaged("is cut"))?;
    let mode = Mode::parse(&bytes[..space]).ok_or_else(|| damaged("has an entry of unknown mode"))?;
    let rest = &bytes[space + 1..];
    let nul = rest.iter().position(|byte| *byte == 0).ok_or_else(|| damaged("is cut"))?;
    let name = rest[..nul].to_vec();
    if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
        return Err(damaged("has an impossible name"));
    }
    let id: [u8; 20] =
        rest.get(nul + 1..nul + 21).and_then(|id| id.try_into().ok()).ok_or_else(|| damaged("is cut"))?;
    Ok((TreeEntry { name, mode, id: ObjectId::from_bytes(id) }, &rest[nul + 21..]))
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
