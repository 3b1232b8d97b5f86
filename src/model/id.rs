//! Object ids: SHA-1 over git's `"{kind} {length}\0"` header and the content, as git computes them.
//!
//! The hash detects collision attacks (`sha1-checked`), as git's own does: a file crafted to collide is refused instead
//! of being taken for an object that is already stored.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::str::FromStr;

use sha1_checked::{Digest, Sha1};

use crate::error::{Code, Error, Result};

/// The id of a git object: 20 bytes, 40 lowercase hex digits in text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId([u8; 20]);

/// The kind of a git object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A checkpoint's record, with its tree and parents.
    Commit,
    /// A directory: names, modes and ids.
    Tree,
    /// Content of a file, or the target of a link.
    Blob,
}

impl ObjectKind {
    /// git's name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Commit => "commit",
            ObjectKind::Tree => "tree",
            ObjectKind::Blob => "blob",
        }
    }
}

impl ObjectId {
    /// The id of the empty tree, which git knows without being told.
    pub const EMPTY_TREE: ObjectId = ObjectId([
        0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92, 0x88, 0xfb, 0xee,
        0x49, 0x04,
    ]);

    /// From raw bytes.
    pub fn from_bytes(bytes: [u8; 20]) -> ObjectId {
        ObjectId(bytes)
    }

    /// From 40 hex digits, in either case; `None` for anything else.
    pub fn from_hex(digits: &[u8]) -> Option<ObjectId> {
        let digits: &[u8; 40] = digits.try_into().ok()?;
        // In plain loops over arrays, which become a few vector instructions: lists of refs have thousands of ids.
        let values = digits.map(value);
        let seen = values.iter().fold(0, |seen, value| seen | value);
        let (mut id, pairs) = ([0; 20], values.as_chunks::<2>().0);
        for (byte, [high, low]) in id.iter_mut().zip(pairs) {
            *byte = high << 4 | low;
        }
        (seen & NO_DIGIT == 0).then_some(ObjectId(id))
    }

    /// Returns the raw bytes.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// Returns the first seven hex digits, as lists show them.
    pub fn short(&self) -> String {
        self.to_string()[..7].to_owned()
    }

    /// Hashes a whole object.
    ///
    /// # Errors
    /// `conflict` when the content contains a SHA-1 collision attack.
    pub fn of(kind: ObjectKind, content: &[u8]) -> Result<ObjectId> {
        let mut hasher = ObjectHasher::new(kind, content.len() as u64);
        hasher.update(content);
        hasher.finish()
    }
}

/// Returns the first seven digits of an id as a person may type them: digits alone would read as a number.
pub fn short_selector(id: &str) -> String {
    let short = id.get(..7).unwrap_or(id);
    if short.bytes().all(|byte| byte.is_ascii_digit()) { format!("id:{short}") } else { short.to_owned() }
}

impl Ord for ObjectId {
    /// Compares the bytes. The first eight of a hash decide, and are one number: thousands of ids are sorted and searched.
    fn cmp(&self, other: &ObjectId) -> Ordering {
        let first = |id: &ObjectId| id.0.first_chunk().map(|first| u64::from_be_bytes(*first));
        first(self).cmp(&first(other)).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for ObjectId {
    fn partial_cmp(&self, other: &ObjectId) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A map from ids. They are hashes themselves, so their first bytes are hash enough.
pub type IdMap<V> = HashMap<ObjectId, V, BuildHasherDefault<IdHasher>>;

/// A set of ids.
pub type IdSet = HashSet<ObjectId, BuildHasherDefault<IdHasher>>;

/// Takes the first bytes of an id for its hash.
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    /// Ids are all of one length.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const TEXT: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 40];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [TEXT[usize::from(byte >> 4)], TEXT[usize::from(byte & 15)]];
        }
        // Digits are text.
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for ObjectId {
    type Err = Error;

    fn from_str(text: &str) -> Result<ObjectId> {
        if text.len() != 40 {
            return Err(Error::new(Code::BadRequest, format!("an object id has 40 hex digits, got {}", text.len())));
        }
        let odd = || Error::new(Code::BadRequest, "an object id has only hex digits");
        ObjectId::from_hex(text.as_bytes()).ok_or_else(odd)
    }
}

impl serde::Serialize for ObjectId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for ObjectId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<ObjectId, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(|error: Error| serde::de::Error::custom(error.message()))
    }
}

/// A value that no digit has.
const NO_DIGIT: u8 = 0x80;

/// Returns the value of a hex digit; [`NO_DIGIT`] for other bytes.
fn value(byte: u8) -> u8 {
    let (digit, letter) = (byte.wrapping_sub(b'0'), (byte | 0x20).wrapping_sub(b'a'));
    if digit < 10 {
        digit
    } else if letter < 6 {
        letter + 10
    } else {
        NO_DIGIT
    }
}

/// Hashes an object piece by piece; its length must be known beforehand.
pub struct ObjectHasher(Sha1);

impl ObjectHasher {
    /// Begins with git's header for `kind` and `length` content bytes.
    pub fn new(kind: ObjectKind, length: u64) -> ObjectHasher {
        let mut sha1 = Sha1::new();
        sha1.update(format!("{} {length}\0", kind.as_str()).as_bytes());
        ObjectHasher(sha1)
    }

    /// Adds content.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the id of what was added.
    ///
    /// # Errors
    /// `conflict` when the content contains a SHA-1 collision attack.
    pub fn finish(self) -> Result<ObjectId> {
        let outcome = self.0.try_finalize();
        if outcome.has_collision() {
            return Err(Error::new(Code::Conflict, "the content contains a SHA-1 collision attack and was not stored"));
        }
        let mut id = [0u8; 20];
        id.copy_from_slice(outcome.hash());
        Ok(ObjectId(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        let table: &[(ObjectKind, &[u8], &str)] = &[
            (ObjectKind::Blob, b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
            (ObjectKind::Blob, b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),
            (ObjectKind::Tree, b"", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
        ];
        for (kind, content, expected) in table {
            assert_eq!(ObjectId::of(*kind, content).unwrap().to_string(), *expected);
        }
        assert_eq!(ObjectId::of(ObjectKind::Tree, b"").unwrap(), ObjectId::EMPTY_TREE);
    }

    #[test]
    fn parsing_refuses_what_is_not_an_id() {
        for bad in ["", "abc", &"g".repeat(40), &"a".repeat(41)] {
            assert!(bad.parse::<ObjectId>().is_err(), "{bad}");
        }
        for byte in 0..=u8::MAX {
            let digits: Vec<u8> = [[b'0'; 39].as_slice(), &[byte]].concat();
            let expected = char::from(byte).to_digit(16).map(|digit| digit as u8);
            let last = |id: ObjectId| id.as_bytes()[19];
            assert_eq!(ObjectId::from_hex(&digits).map(last), expected, "{byte}");
        }
    }

    #[test]
    fn a_short_id_is_a_selector() {
        assert_eq!(short_selector("4288064a00000000000000000000000000000000"), "id:4288064");
        assert_eq!(short_selector("428806a000000000000000000000000000000000"), "428806a");
    }

    #[test]
    fn ids_are_in_the_order_of_their_bytes() {
        let id = |at: usize, value: u8| {
            let mut bytes = [7; 20];
            bytes[at] = value;
            ObjectId::from_bytes(bytes)
        };
        let ids = [id(0, 0), id(7, 6), id(8, 0), id(19, 6), id(19, 7), id(19, 8), id(7, 200), id(0, 255)];
        assert!(ids.is_sorted_by(|one, two| one < two && one.as_bytes() < two.as_bytes()));
    }
}
