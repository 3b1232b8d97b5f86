//! Names that git reserves, and how they are stored all the same.
//!
//! git refuses to check out (and `git fsck` reports) tree entries that some file system could take for `.git`: other
//! letter cases, `git~1`, trailing dots or spaces, ignorable Unicode characters, parts behind a backslash. Users do have
//! such files. They are stored with [`PREFIX`] before them and `\` and `%` percent-encoded, and so is every name that
//! already begins with it: the mapping is one to one and needs no table. At the root, `.piton` (piton's own entry) and
//! `.piton~…` get one more `~`.
//!
//! Rules after git's `is_ntfs_dotgit` and `is_hfs_dotgit`.

/// The prefix of escaped names.
pub const PREFIX: &str = "~piton~";

/// piton's own entry in a checkpoint's root tree.
pub const RESERVED_ROOT: &[u8] = b".piton";

/// Returns the name under which `name` is stored; `at_root` for entries of the workspace's root.
pub fn to_stored(name: &[u8], at_root: bool) -> Vec<u8> {
    if at_root && is_reserved_root(name) {
        return [name, b"~"].concat();
    }
    if !is_dot_git(name) && !name.starts_with(PREFIX.as_bytes()) {
        return name.to_vec();
    }
    let mut stored = PREFIX.as_bytes().to_vec();
    for byte in name {
        match byte {
            b'%' => stored.extend_from_slice(b"%25"),
            b'\\' => stored.extend_from_slice(b"%5C"),
            other => stored.push(*other),
        }
    }
    stored
}

/// Returns the user's name of a stored one; the inverse of [`to_stored`]. A name that [`to_stored`] would never have
/// made is given back as it is. Must not be asked for [`RESERVED_ROOT`] at the root.
pub fn from_stored(stored: &[u8], at_root: bool) -> Vec<u8> {
    let name = decoded(stored, at_root);
    let plain = !matches!(name.as_slice(), b"" | b"." | b"..") && to_stored(&name, at_root) == stored;
    if plain { name } else { stored.to_vec() }
}

fn decoded(stored: &[u8], at_root: bool) -> Vec<u8> {
    if at_root && is_reserved_root(stored) {
        return stored.strip_suffix(b"~").unwrap_or(stored).to_vec();
    }
    let Some(mut rest) = stored.strip_prefix(PREFIX.as_bytes()) else {
        return stored.to_vec();
    };
    let mut name = Vec::with_capacity(rest.len());
    while let Some((byte, tail)) = rest.split_first() {
        let (decoded, tail) = match rest.get(..3) {
            Some(b"%25") => (b'%', &rest[3..]),
            Some(b"%5C") => (b'\\', &rest[3..]),
            _ => (*byte, tail),
        };
        name.push(decoded);
        rest = tail;
    }
    name
}

/// `.piton` followed by any number of `~`, in any letter case.
fn is_reserved_root(name: &[u8]) -> bool {
    name.len() >= RESERVED_ROOT.len()
        && name[..RESERVED_ROOT.len()].eq_ignore_ascii_case(RESERVED_ROOT)
        && name[RESERVED_ROOT.len()..].iter().all(|byte| *byte == b'~')
}

/// Returns whether some file system would take `name`, or a part of it behind a backslash, for `.git`.
pub fn is_dot_git(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'\\').any(is_ntfs_dot_git) || is_hfs_dot_git(name)
}

fn is_ntfs_dot_git(name: &[u8]) -> bool {
    let rest = if name.len() >= 4 && name[..4].eq_ignore_ascii_case(b".git") {
        &name[4..]
    } else if name.len() >= 5 && name[..5].eq_ignore_ascii_case(b"git~1") {
        &name[5..]
    } else {
        return false;
    };
    let end = rest.iter().position(|byte| *byte == b':').unwrap_or(rest.len());
    rest[..end].iter().all(|byte| matches!(byte, b' ' | b'.'))
}

fn is_hfs_dot_git(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    text.chars().filter(|c| !is_hfs_ignored(*c)).map(|c| c.to_ascii_lowercase()).eq(".git".chars())
}

/// Characters that HFS+ leaves out when it compares names.
fn is_hfs_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reserved_names() {
        let reserved: &[&[u8]] = &[
            b".git",
            b".GIT",
            b".Git",
            b"git~1",
            b"GIT~1",
            b".git ",
            b".git...",
            b".git::$INDEX_ALLOCATION",
            ".g\u{200c}it".as_bytes(),
            b"a\\.git",
            b".git\\x",
        ];
        for name in reserved {
            assert!(is_dot_git(name), "{}", String::from_utf8_lossy(name));
            let stored = to_stored(name, false);
            assert!(!is_dot_git(&stored), "{}", String::from_utf8_lossy(&stored));
        }
        for name in [&b".gitignore"[..], b"git", b".gitx", b"git~2", b"a.git", b"x\\y"] {
            assert!(!is_dot_git(name), "{}", String::from_utf8_lossy(name));
            assert_eq!(to_stored(name, false), name);
        }
    }

    #[test]
    fn own_entry_is_free_at_the_root() {
        assert_eq!(to_stored(b".piton", true), b".piton~");
        assert_eq!(to_stored(b".piton~", true), b".piton~~");
        assert_eq!(to_stored(b".piton", false), b".piton");
        assert_eq!(from_stored(b".piton~", true), b".piton");
    }

    proptest! {
        #[test]
        fn storing_is_one_to_one(name in "(~piton~)?[.a-gGiITt~1 piton%25C:\\\\]{1,12}", at_root: bool) {
            let stored = to_stored(name.as_bytes(), at_root);
            prop_assert_eq!(from_stored(&stored, at_root), name.as_bytes());
            prop_assert!(!(at_root && stored.eq_ignore_ascii_case(RESERVED_ROOT)));
            prop_assert!(!is_dot_git(&stored));
        }
    }
}
