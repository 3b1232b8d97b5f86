//! A read-only reader of git's index: which paths git tracks, after git's `gitformat-index`.
//!
//! Versions 2, 3 and 4 (path compression), split indexes (`link`), sparse directories (passed over: their files are not
//! in the work tree). Anything else is an error, which a capture turns into a warning.

use std::path::Path;

use crate::error::{Code, Error, IoContext, Result};
use crate::model::path::RelPath;

/// Indexes above this size are not read.
const MAX_BYTES: u64 = 512 << 20;

/// The paths that git tracks; no index means none.
///
/// # Errors
/// When the index is damaged, of an unknown version or too large.
pub fn tracked(git_dir: &Path) -> Result<Vec<RelPath>> {
    let Some(bytes) = read(&git_dir.join("index"))? else {
        return Ok(Vec::new());
    };
    let index = parse(&bytes)?;
    let mut entries = match index.link {
        None => index.entries,
        Some(link) => {
            let shared = git_dir.join(format!("sharedindex.{}", link.base));
            let base = read(&shared)?.ok_or_else(|| damaged("names a shared index that does not exist"))?;
            merge(parse(&base)?.entries, index.entries, &link)
        }
    };
    entries.retain(|entry| !entry.sparse_dir && !entry.path.is_empty());
    Ok(entries.iter().filter_map(|entry| RelPath::parse(&entry.path).ok()).collect())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match path.metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(error, "reading the status of", path)),
        Ok(facts) if facts.len() > MAX_BYTES => Err(damaged("is too large").path(path)),
        Ok(_) => std::fs::read(path).map(Some).at("reading", path),
    }
}

struct Entry {
    path: Vec<u8>,
    sparse_dir: bool,
}

struct Link {
    /// Hex id of the shared index.
    base: String,
    deleted: Vec<usize>,
    replaced: Vec<usize>,
}

struct Index {
    entries: Vec<Entry>,
    link: Option<Link>,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(n).filter(|end| *end <= self.bytes.len()).ok_or_else(|| damaged("is cut"))?;
        let piece = &self.bytes[self.at..end];
        self.at = end;
        Ok(piece)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(self.take(2)?.iter().fold(0, |n, byte| n << 8 | u16::from(*byte)))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(self.take(4)?.iter().fold(0, |n, byte| n << 8 | u32::from(*byte)))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(self.take(8)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    /// Bytes up to the next NUL, which is consumed.
    fn until_nul(&mut self) -> Result<&'a [u8]> {
        let length =
            self.bytes[self.at..].iter().position(|byte| *byte == 0).ok_or_else(|| damaged("has an endless path"))?;
        let piece = self.take(length)?;
        self.at += 1;
        Ok(piece)
    }

    /// git's offset encoding: seven bits a byte, most significant first, one added per continuation.
    fn varint(&mut self) -> Result<usize> {
        let mut value = 0usize;
        for i in 0..10 {
            let byte = self.take(1)?[0];
            let base = if i == 0 { 0 } else { value.checked_add(1).ok_or_else(|| damaged("has a bad number"))? };
            value = base
                .checked_mul(128)
                .map(|n| n | usize::from(byte & 0x7f))
                .ok_or_else(|| damaged("has a bad number"))?;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(damaged("has a bad number"))
    }
}

fn parse(bytes: &[u8]) -> Result<Index> {
    // The last 20 bytes are the checksum (zero where `index.skipHash` is set).
    let body = bytes.len().checked_sub(20).map(|end| &bytes[..end]).ok_or_else(|| damaged("is cut"))?;
    let mut cursor = Cursor { bytes: body, at: 0 };
    if cursor.take(4)? != b"DIRC" {
        return Err(damaged("is not an index"));
    }
    let version = cursor.u32()?;
    if !(2..=4).contains(&version) {
        return Err(damaged(&format!("has version {version}")));
    }
    let count = cursor.u32()? as usize;
    let mut entries: Vec<Entry> = Vec::with_capacity(count.min(body.len() / 62 + 1));
    for _ in 0..count {
        let previous = entries.last().map_or(&[][..], |entry| &entry.path);
        let entry = parse_entry(&mut cursor, version, previous)?;
        entries.push(entry);
    }
    Ok(Index { entries, link: parse_extensions(&mut cursor)? })
}

fn parse_entry(cursor: &mut Cursor<'_>, version: u32, previous: &[u8]) -> Result<Entry> {
    let start = cursor.at;
    cursor.take(24)?;
    let mode = cursor.u32()?;
    cursor.take(12 + 20)?;
    let flags = cursor.u16()?;
    if flags & 0x4000 != 0 {
        if version < 3 {
            return Err(damaged("has extended flags in version 2"));
        }
        cursor.u16()?;
    }
    let path = if version == 4 {
        let strip = cursor.varint()?;
        let keep = previous.len().checked_sub(strip).ok_or_else(|| damaged("has a bad path"))?;
        [&previous[..keep], cursor.until_nul()?].concat()
    } else {
        let path = cursor.until_nul()?.to_vec();
        // Entries are padded with one to eight NULs to a multiple of eight bytes; one was consumed.
        let padding = (8 - (cursor.at - start) % 8) % 8;
        cursor.take(padding)?;
        path
    };
    Ok(Entry { path, sparse_dir: mode & 0o170_000 == 0o040_000 })
}

fn parse_extensions(cursor: &mut Cursor<'_>) -> Result<Option<Link>> {
    let mut link = None;
    while cursor.at + 8 <= cursor.bytes.len() {
        let signature = cursor.take(4)?;
        let length = cursor.u32()? as usize;
        let body = cursor.take(length)?;
        match signature {
            b"link" => link = parse_link(body)?,
            // A lower-case signature must be understood; `sdir` only says that sparse directories occur.
            b"sdir" => {}
            [first, ..] if first.is_ascii_uppercase() => {}
            _ => return Err(damaged("has an extension that is not understood")),
        }
    }
    Ok(link)
}

fn parse_link(body: &[u8]) -> Result<Option<Link>> {
    let mut cursor = Cursor { bytes: body, at: 0 };
    let base = cursor.take(20)?;
    if base.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let base = base.iter().map(|byte| format!("{byte:02x}")).collect();
    if cursor.at == body.len() {
        return Ok(Some(Link { base, deleted: Vec::new(), replaced: Vec::new() }));
    }
    Ok(Some(Link { base, deleted: ewah(&mut cursor)?, replaced: ewah(&mut cursor)? }))
}

/// The set bits of an EWAH bitmap, after git's `ewah/ewah_io.c` and `bitmap-format`.
fn ewah(cursor: &mut Cursor<'_>) -> Result<Vec<usize>> {
    let bits = cursor.u32()? as usize;
    let words = cursor.u32()? as usize;
    if words > cursor.bytes.len() / 8 + 1 {
        return Err(damaged("has a bad bitmap"));
    }
    let words: Vec<u64> = (0..words).map(|_| cursor.u64()).collect::<Result<_>>()?;
    cursor.u32()?;
    let mut set = Vec::new();
    let mut at = 0usize;
    let mut words = words.into_iter();
    while let Some(marker) = words.next() {
        let run = ((marker >> 1) & 0xffff_ffff) as usize;
        let run_end = run.checked_mul(64).and_then(|n| n.checked_add(at)).ok_or_else(|| damaged("has a bad bitmap"))?;
        if marker & 1 == 1 {
            set.extend(at..run_end.min(bits));
        }
        at = run_end;
        for _ in 0..(marker >> 33) {
            let word = words.next().ok_or_else(|| damaged("has a bad bitmap"))?;
            set.extend((0..64).filter(|bit| word >> bit & 1 == 1).map(|bit| at + bit));
            at = at.saturating_add(64);
        }
    }
    Ok(set)
}

/// A split index: entries of the shared one that are not deleted or replaced, and those of the index itself. Replacements
/// have an empty path: they keep the shared entry's.
fn merge(base: Vec<Entry>, own: Vec<Entry>, link: &Link) -> Vec<Entry> {
    let deleted: std::collections::HashSet<usize> = link.deleted.iter().copied().collect();
    tracing::trace!(replaced = link.replaced.len(), "split index");
    let kept = base.into_iter().enumerate().filter(|(i, _)| !deleted.contains(i)).map(|(_, entry)| entry);
    kept.chain(own.into_iter().filter(|entry| !entry.path.is_empty())).collect()
}

fn damaged(what: &str) -> Error {
    Error::new(Code::Internal, format!("the repository's index {what}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn git(dir: &Path, args: &[&str]) -> bool {
        let output = Command::new("git")
            .current_dir(dir)
            .args(["-c", "user.name=t", "-c", "user.email=t@t"])
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output();
        match output {
            Ok(output) => {
                assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
                true
            }
            Err(error) => {
                assert!(std::env::var_os("CI").is_none(), "git is required under CI: {error}");
                println!("skipped: no git");
                false
            }
        }
    }

    #[test]
    fn every_version_that_git_writes() {
        let dir = tempfile::tempdir().unwrap();
        if !git(dir.path(), &["init", "-q"]) {
            return;
        }
        std::fs::create_dir_all(dir.path().join("a/deep")).unwrap();
        for name in ["a/deep/one", "a/deep/two words", "a/x", "b"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        git(dir.path(), &["add", "."]);
        let expected = ["a/deep/one", "a/deep/two words", "a/x", "b"];
        let check = |expected: &[&str], what: &str| {
            let mut found: Vec<_> = tracked(&dir.path().join(".git")).unwrap().iter().map(RelPath::display).collect();
            found.sort();
            assert_eq!(found, expected, "{what}");
        };
        for version in ["2", "4", "3"] {
            git(dir.path(), &["update-index", "--index-version", version]);
            check(&expected, version);
        }
        git(dir.path(), &["update-index", "--skip-worktree", "b"]);
        check(&expected, "extended flags");
        git(dir.path(), &["update-index", "--split-index"]);
        std::fs::write(dir.path().join("new"), "n").unwrap();
        git(dir.path(), &["add", "new"]);
        git(dir.path(), &["rm", "-q", "--cached", "a/x"]);
        std::fs::write(dir.path().join("b"), "changed").unwrap();
        check(&["a/deep/one", "a/deep/two words", "b", "new"], "split");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(tail in proptest::collection::vec(any::<u8>(), 0..200), version in 0u8..6, count in 0u8..4) {
            let mut bytes = b"DIRC\0\0\0".to_vec();
            bytes.extend([version, 0, 0, 0, count]);
            bytes.extend(tail);
            bytes.extend([0; 20]);
            // Only the absence of a panic is of interest.
            let _ = parse(&bytes);
            let _ = parse_link(&bytes);
        }
    }
}
