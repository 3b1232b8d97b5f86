//! Finds the paths that a command of git names or spares, as far as an action's reach and losses need them.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::reach::normalise;
use crate::model::pathspec::PathspecMagic;

/// The meaning of one word.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pathspec {
    /// It names paths.
    Named(SpecPaths),
    /// It spares paths that others name.
    Excluded(SpecPaths),
    /// Magic that is not read here: it may name anything in the work tree.
    Any,
    /// Magic that is not read here: it spares nothing for certain.
    Spared,
}

/// A path, or a pattern of paths.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpecPaths {
    /// The absolute path.
    pub path: PathBuf,
    /// The way in which its letters are read.
    pub letters: Letters,
}

/// The way in which the letters of a path are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters {
    /// True if none is a sign of patterns.
    pub is_literal: bool,
    /// True if `*` stops before a `/`.
    pub is_glob: bool,
    /// True if small and capital ones are the same.
    pub folds_case: bool,
}

impl Pathspec {
    /// Reads a word of a command that runs in `dir`, in the work tree `top`.
    pub(super) fn read(word: &str, dir: &Path, top: &Path) -> Pathspec {
        let Some(magic) = PathspecMagic::of(word) else { return Pathspec::Any };
        let PathspecMagic { path, is_from_top, is_excluding, is_literal, is_glob, folds_case, has_more } = magic;
        let path = normalise(&if is_from_top { top } else { dir }.join(path));
        let paths = SpecPaths { path, letters: Letters { is_literal, is_glob, folds_case } };
        match (is_excluding, has_more) {
            (true, true) => Pathspec::Spared,
            (true, false) => Pathspec::Excluded(paths),
            (false, true) => Pathspec::Any,
            (false, false) => Pathspec::Named(paths),
        }
    }
}

impl SpecPaths {
    /// Returns true if it may stand for other paths than its own letters.
    pub(super) fn has_pattern(&self) -> bool {
        self.letters.folds_case || (!self.letters.is_literal && has_pattern(&self.path))
    }

    /// Returns what matches the paths that git takes for a pattern below `dir` or above it: the directory is no pattern, and braces
    /// are ordinary letters. It is empty without a pattern, or for one that cannot be read: git takes it as it stands.
    pub(super) fn matchers(&self, dir: &Path) -> Vec<GlobMatcher> {
        if !self.has_pattern() {
            return Vec::new();
        }
        let Letters { is_literal, is_glob, folds_case } = self.letters;
        let shared = self.path.iter().zip(dir.iter()).take_while(|(one, other)| one == other).count();
        let mut glob = PathBuf::new();
        for (at, part) in self.path.iter().enumerate() {
            let part = part.to_string_lossy();
            let is_as_it_stands = at < shared || is_literal;
            glob.push(if is_as_it_stands {
                globset::escape(&part)
            } else {
                part.replace('{', "[{]").replace('}', "[}]")
            });
        }
        // With other letters, all that stands below goes as well.
        let below = folds_case.then(|| glob.join("**"));
        let built = |glob: PathBuf| {
            let glob = glob.to_string_lossy();
            // An unfinished `[` is an ordinary letter for git.
            GlobBuilder::new(&glob).literal_separator(is_glob).case_insensitive(folds_case).build().ok()
        };
        [glob].into_iter().chain(below).filter_map(built).map(|glob| glob.compile_matcher()).collect()
    }
}

/// Returns true if a piece of a path may be a pattern for git.
pub(super) fn has_pattern(part: &Path) -> bool {
    part.as_os_str().as_bytes().iter().any(|byte| b"*?[".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_spare_or_may_be_anything() {
        let paths = |path: &str, letters: Letters| SpecPaths { path: path.into(), letters };
        let named = |path: &str| Pathspec::Named(paths(path, Letters::default()));
        let spared = |path: &str| Pathspec::Excluded(paths(path, Letters::default()));
        let glob = Letters { is_glob: true, ..Letters::default() };
        let folded = Letters { folds_case: true, ..Letters::default() };
        for (word, expected) in [
            ("a", named("/w/sub/a")),
            (".", named("/w/sub")),
            ("../b", named("/w/b")),
            ("*.rs", named("/w/sub/*.rs")),
            (":/", named("/w")),
            (":", named("/w")),
            (":/a", named("/w/a")),
            (":(top)a", named("/w/a")),
            (":!a", spared("/w/sub/a")),
            (":^a", spared("/w/sub/a")),
            (":(exclude)a", spared("/w/sub/a")),
            (":(exclude,top)a", spared("/w/a")),
            (":(exclude,attr:x)a", Pathspec::Spared),
            (":(glob)../**/*.rs", Pathspec::Named(paths("/w/**/*.rs", glob))),
            (":(icase)a", Pathspec::Named(paths("/w/sub/a", folded))),
            (":(attr:x)a", Pathspec::Any),
            (":(new)a", Pathspec::Any),
        ] {
            assert_eq!(Pathspec::read(word, Path::new("/w/sub"), Path::new("/w")), expected, "{word}");
        }
    }

    #[test]
    fn directories_are_no_patterns_and_braces_are_letters() {
        for (word, dir, hit, miss) in [
            ("*.rs", "/w", "/w/a/b.rs", "/w/b.rst"),
            ("*.tsx", "/w/[id]", "/w/[id]/p.tsx", "/w/i/p.tsx"),
            ("*", "/w/{x}", "/w/{x}/a", "/w/x/a"),
            ("{a,b}*", "/w", "/w/{a,b}c", "/w/ac"),
            ("../*.rs", "/w/[id]", "/w/a.rs", "/v/a.rs"),
            (":(glob)*.rs", "/w", "/w/a.rs", "/w/a/b.rs"),
            (":(icase)A", "/w", "/w/a/b", "/w/b"),
            (":(icase,literal)A*", "/w", "/w/a*", "/w/ab"),
        ] {
            let Pathspec::Named(paths) = Pathspec::read(word, Path::new(dir), Path::new("/w")) else {
                panic!("{word}")
            };
            let matchers = paths.matchers(Path::new(dir));
            let matches = |path: &str| matchers.iter().any(|matcher| matcher.is_match(path));
            assert!(matches(hit) && !matches(miss), "{word} in {dir}");
        }
        for word in ["a", ":(literal)*"] {
            let Pathspec::Named(paths) = Pathspec::read(word, Path::new("/w"), Path::new("/w")) else {
                panic!("{word}")
            };
            assert!(paths.matchers(Path::new("/w")).is_empty(), "{word}");
        }
    }
}
