//! File names that usually hold secrets. Letter case does not matter.
//!
//! Only names that almost always mean a secret are here: a restore keeps a secret that stands there, unless it is named.
//! So `config.json` is plain, but for that of Docker.

use std::sync::LazyLock;

use crate::model::words::{
    BACKUP_ENDINGS, SECRET_FILE_ENDINGS, SECRET_FILE_NAMES, SECRET_FILE_PATHS, SECRET_FILE_PATTERNS, SECRET_KEY_STEMS,
    SHARED_ENV_ENDINGS,
};

/// The longest file name that is checked, in bytes. Linux has no longer ones.
const LONGEST: usize = 255;

/// The ending of environment files.
const ENV: &str = ".env";

/// The lists, prepared once: each file name of a capture is compared with all of them.
static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let mut names: Vec<&[u8]> = SECRET_FILE_NAMES.iter().map(|name| name.as_bytes()).collect();
    names.sort_unstable();
    let endings = SECRET_FILE_ENDINGS.iter().map(|ending| NamePattern::ending(ending));
    let place = |path: &&'static str| {
        let (dir, file) = path.rsplit_once('/').unwrap_or_default();
        (dir.as_bytes(), NamePattern::of(file))
    };
    Lists {
        names,
        patterns: SECRET_FILE_PATTERNS.iter().map(|pattern| NamePattern::of(pattern)).chain(endings).collect(),
        places: SECRET_FILE_PATHS.iter().map(place).collect(),
    }
});

/// The names of secrets.
struct Lists {
    /// The whole names, sorted.
    names: Vec<&'static [u8]>,
    /// The patterns and endings.
    patterns: Vec<NamePattern>,
    /// The patterns that count only in a directory of this name, or of this end of a path.
    places: Vec<(&'static [u8], NamePattern)>,
}

/// A pattern for whole file names.
struct NamePattern {
    /// The texts between the `*` of the pattern; a single one is the whole name.
    parts: Vec<&'static [u8]>,
    /// The least length of a name that matches.
    least: usize,
    /// The first byte of each name that matches; `None` if the pattern begins with `*`. Most names differ here.
    first: Option<u8>,
    /// The last byte of each name that matches; `None` if the pattern ends with `*`.
    last: Option<u8>,
}

impl NamePattern {
    /// Compiles a pattern. A `*` matches any text.
    fn of(pattern: &'static str) -> NamePattern {
        let parts: Vec<&[u8]> = pattern.as_bytes().split(|byte| *byte == b'*').collect();
        let least = parts.iter().map(|part| part.len()).sum();
        let first = parts.first().and_then(|part| part.first()).copied();
        let last = parts.last().and_then(|part| part.last()).copied();
        NamePattern { parts, least, first, last }
    }

    /// Prepares an ending, before which a name has to begin.
    fn ending(ending: &'static str) -> NamePattern {
        let (parts, last) = (vec![&[][..], ending.as_bytes()], ending.as_bytes().last().copied());
        NamePattern { parts, least: ending.len() + 1, first: None, last }
    }

    /// Returns true if it matches a whole name.
    fn matches(&self, name: &[u8]) -> bool {
        let is_end = |end: Option<u8>, byte: Option<&u8>| end.is_none() || end == byte.copied();
        if name.len() < self.least || !is_end(self.first, name.first()) || !is_end(self.last, name.last()) {
            return false;
        }
        let (first, last, between) = match self.parts.as_slice() {
            [] => return name.is_empty(),
            [whole] => return name == *whole,
            [first, between @ .., last] => (first, last, between),
        };
        let Some(mut rest) = name.strip_prefix(*first) else { return false };
        for part in between {
            let Some(at) = rest.windows(part.len()).position(|window| window == *part) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.len() >= last.len() && rest.ends_with(last)
    }
}

/// Returns whether a *file* at this path is taken for a secret. Only its name and the last two directories above it count.
pub fn is_secret(path: &[u8]) -> bool {
    let at = path.iter().rposition(|byte| *byte == b'/');
    let (parent, name) = at.map_or((&[][..], path), |at| (&path[..at], &path[at + 1..]));
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..name.len()) else { return false };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let original = without_backup(lower);
    is_name(lower, parent) || (original.len() < lower.len() && is_name(original, parent))
}

/// Strips the ending of a backup copy, or an editor's marks. Returns other names unchanged.
fn without_backup(name: &[u8]) -> &[u8] {
    // Emacs writes `#name#`, Vim `.name.swp`.
    if let Some(inner) = name.strip_prefix(b"#").and_then(|rest| rest.strip_suffix(b"#")) {
        return inner;
    }
    let original = BACKUP_ENDINGS.iter().find_map(|ending| Some((name.strip_suffix(ending.as_bytes())?, ending)));
    match original {
        Some((original, ending)) if ending.starts_with(".sw") => original.strip_prefix(b".").unwrap_or(original),
        Some((original, _)) => original,
        None => name,
    }
}

/// Returns true if a lower-case file name is that of a secret, in the directory `parent`.
fn is_name(name: &[u8], parent: &[u8]) -> bool {
    let lists = &*LISTS;
    let in_place = |(dir, file): &(&[u8], NamePattern)| is_end_of(parent, dir) && file.matches(name);
    let is_one = lists.names.binary_search(&name).is_ok()
        || is_key(name)
        || lists.patterns.iter().any(|pattern| pattern.matches(name))
        || lists.places.iter().any(in_place);
    is_one && !is_shared(name)
}

/// Returns true if a directory's path ends with the names `end`, in any case.
fn is_end_of(dir: &[u8], end: &[u8]) -> bool {
    let Some(at) = dir.len().checked_sub(end.len()) else { return false };
    dir[at..].eq_ignore_ascii_case(end) && (at == 0 || dir[at - 1] == b'/')
}

/// Returns true for the name of a private key with a word after it: `id_rsa_github`. The public key has an ending.
fn is_key(name: &[u8]) -> bool {
    let is_word = |rest: &[u8]| rest.len() > 1 && matches!(rest[0], b'_' | b'-') && !rest.contains(&b'.');
    SECRET_KEY_STEMS.iter().any(|stem| name.strip_prefix(stem.as_bytes()).is_some_and(is_word))
}

/// Returns true for the name of an example file: `.env.sample`, `.env-sample`, `sample.env`.
fn is_shared(name: &[u8]) -> bool {
    let stem = name.strip_suffix(ENV.as_bytes()).unwrap_or(name);
    SHARED_ENV_ENDINGS.iter().any(|ending| {
        let word = ending.trim_start_matches('.').as_bytes();
        let before = stem.strip_suffix(word);
        before.is_some_and(|before| before.last().is_none_or(|sign| matches!(sign, b'.' | b'-' | b'_')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_and_their_plain_twins() {
        let pairs = include_str!("../../tests/data/secret-names.txt").lines().filter(|line| !line.starts_with("# "));
        let mut count = 0;
        for pair in pairs {
            let (secret, twin) = pair.split_once(' ').unwrap();
            for (name, expected) in [(secret, true), (twin, false)] {
                assert_eq!(is_secret(name.as_bytes()), expected, "{name}");
                assert_eq!(is_secret(name.to_uppercase().as_bytes()), expected, "{name} in capitals");
                assert_eq!(is_secret(format!("a/b.c/{name}").as_bytes()), expected, "{name} further down");
            }
            count += 1;
        }
        assert!(count >= 120, "{count}");
    }

    #[test]
    fn the_lists_are_in_lower_case() {
        let lists = [SECRET_FILE_NAMES, SECRET_FILE_ENDINGS, SECRET_FILE_PATTERNS, SECRET_FILE_PATHS, BACKUP_ENDINGS];
        for word in lists.into_iter().flatten() {
            assert_eq!(*word, word.to_lowercase(), "a name is compared in lower case");
        }
    }

    #[test]
    fn a_name_alone_or_too_long_is_plain() {
        let plain = ".pem .key env .environment key monkey credentials .tfstate .env/main.py secrets/a.yaml .kube/x/config ~ # ##";
        for name in plain.split_whitespace() {
            assert!(!is_secret(name.as_bytes()), "{name}");
        }
        assert!(!is_secret(format!("{}.pem", "x".repeat(300)).as_bytes()), "no file system has such a name");
    }
}
