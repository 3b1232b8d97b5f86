//! Reads the paths that a command of git names (gitglossary, "pathspec"), as far as an action's reach and losses need them.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::reach::normalise;

/// The meaning of one word.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pathspec {
    /// A path, or a pattern of paths: absolute.
    Named(PathBuf),
    /// It spares paths that others name.
    Excluded,
    /// Magic that is not read here: it may name anything in the work tree.
    Any,
}

impl Pathspec {
    /// Reads a word of a command that runs in `dir`, in the work tree `top`.
    pub(super) fn read(word: &str, dir: &Path, top: &Path) -> Pathspec {
        let is_excluded = [":!", ":^", ":(exclude)"].iter().any(|magic| word.starts_with(magic));
        match word.strip_prefix(":/").or_else(|| word.strip_prefix(":(top)")) {
            _ if is_excluded => Pathspec::Excluded,
            Some(rest) => Pathspec::Named(normalise(&top.join(rest))),
            None if word.starts_with(':') => Pathspec::Any,
            None => Pathspec::Named(normalise(&dir.join(word))),
        }
    }
}

/// Returns true if a piece of a path may be a pattern for git.
pub(super) fn has_pattern(part: &Path) -> bool {
    part.as_os_str().as_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Returns what matches the paths that git takes for a pattern below `dir` or above it: the directory is no pattern, and braces are
/// ordinary letters. `None` without a pattern, or for one that cannot be read: git takes it as it stands.
pub(super) fn matcher(path: &Path, dir: &Path) -> Option<GlobMatcher> {
    if !has_pattern(path) {
        return None;
    }
    let shared = path.iter().zip(dir.iter()).take_while(|(one, other)| one == other).count();
    let mut glob = PathBuf::new();
    for (at, part) in path.iter().enumerate() {
        let part = part.to_string_lossy();
        glob.push(if at < shared { globset::escape(&part) } else { part.replace('{', "[{]").replace('}', "[}]") });
    }
    // An unfinished `[` is an ordinary letter for git.
    GlobBuilder::new(&glob.to_string_lossy()).literal_separator(false).build().ok().map(|glob| glob.compile_matcher())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_spare_or_may_be_anything() {
        let named = |path: &str| Pathspec::Named(path.into());
        for (word, expected) in [
            ("a", named("/w/sub/a")),
            (".", named("/w/sub")),
            ("../b", named("/w/b")),
            ("*.rs", named("/w/sub/*.rs")),
            (":/", named("/w")),
            (":/a", named("/w/a")),
            (":(top)a", named("/w/a")),
            (":!a", Pathspec::Excluded),
            (":^a", Pathspec::Excluded),
            (":(exclude)a", Pathspec::Excluded),
            (":(glob)../**/*.rs", Pathspec::Any),
            (":(icase)a", Pathspec::Any),
        ] {
            assert_eq!(Pathspec::read(word, Path::new("/w/sub"), Path::new("/w")), expected, "{word}");
        }
    }

    #[test]
    fn directories_are_no_patterns_and_braces_are_letters() {
        for (path, dir, hit, miss) in [
            ("/w/*.rs", "/w", "/w/a/b.rs", "/w/b.rst"),
            ("/w/[id]/*.tsx", "/w/[id]", "/w/[id]/p.tsx", "/w/i/p.tsx"),
            ("/w/{x}/*", "/w/{x}", "/w/{x}/a", "/w/x/a"),
            ("/w/{a,b}*", "/w", "/w/{a,b}c", "/w/ac"),
            ("/w/*.rs", "/w/[id]", "/w/a.rs", "/v/a.rs"),
        ] {
            let matcher = matcher(Path::new(path), Path::new(dir)).unwrap();
            assert!(matcher.is_match(hit) && !matcher.is_match(miss), "{path} in {dir}");
        }
        assert!(matcher(Path::new("/w/a"), Path::new("/w")).is_none());
    }
}
