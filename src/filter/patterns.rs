//! Patterns of paths that a person names in a command: globs over paths of the workspace.
//!
//! `*` and `?` stop at `/`, `**` does not, and dot files match. A pattern that matches a directory matches everything inside it.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Code, Error, Result};
use crate::model::path::RelPath;
use crate::model::text::printable;

/// The longest pattern, in bytes.
const LONGEST: usize = 4096;

/// The globs of one pattern: itself, and everything inside what it matches.
const GLOBS: usize = 2;

/// Compiled patterns.
#[derive(Clone, Debug, Default)]
pub struct PathPatterns {
    texts: Vec<String>,
    set: GlobSet,
}

impl PathPatterns {
    /// Compiles patterns, which are relative to the workspace's root.
    ///
    /// # Errors
    /// `bad-request` for what is not a pattern, and for one that is too long or too large.
    pub fn new(texts: Vec<String>) -> Result<PathPatterns> {
        let mut builder = GlobSetBuilder::new();
        for text in &texts {
            if text.len() > LONGEST {
                return Err(refused(text, &format!("it is longer than {LONGEST} bytes")));
            }
            for glob in [text.clone(), format!("{text}/**")] {
                let glob = GlobBuilder::new(&glob).literal_separator(true).backslash_escape(true).build();
                builder.add(glob.map_err(|error| refused(text, &error.kind().to_string()))?);
            }
        }
        let set = builder.build().map_err(|error| {
            let all = texts.join(" ");
            refused(&all, &error.kind().to_string())
        })?;
        Ok(PathPatterns { texts, set })
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns the patterns as they were given.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Returns true if one of them matches a path or a directory above it.
    pub fn matches(&self, path: &RelPath) -> bool {
        self.set.is_match(path.to_path())
    }

    /// Returns true if one of them that is more than wildcards matches a path: `**` names no file in particular.
    pub fn names(&self, path: &RelPath) -> bool {
        let is_specific = |text: &String| text.contains(|letter: char| !"*?/.".contains(letter));
        self.set.matches(path.to_path()).iter().any(|at| is_specific(&self.texts[at / GLOBS]))
    }

    /// Returns the first pattern that matches none of some paths.
    pub fn unmatched(&self, paths: &[&RelPath]) -> Option<&str> {
        let mut is_matched = vec![false; self.texts.len()];
        let (mut left, mut found) = (self.texts.len(), Vec::new());
        for path in paths {
            if left == 0 {
                break;
            }
            self.set.matches_into(path.to_path(), &mut found);
            for at in &found {
                left -= usize::from(!std::mem::replace(&mut is_matched[at / GLOBS], true));
            }
        }
        is_matched.iter().position(|is| !is).map(|at| self.texts[at].as_str())
    }
}

/// Limits the paths of a command: those that match a pattern, and those that it leaves alone.
#[derive(Clone, Debug, Default)]
pub struct PathLimits {
    /// Patterns of the paths that count, in addition to the paths that are named.
    pub patterns: PathPatterns,
    /// Paths that do not count, each with everything inside it.
    pub except_paths: Vec<RelPath>,
    /// Patterns of paths that do not count.
    pub except: PathPatterns,
}

impl PathLimits {
    /// Returns true if they limit nothing.
    pub fn is_none(&self) -> bool {
        self.patterns.is_empty() && self.except_paths.is_empty() && self.except.is_empty()
    }

    /// Returns true if a path does not count although a path or pattern may name it.
    pub fn excludes(&self, path: &RelPath) -> bool {
        self.except_paths.iter().any(|except| path.starts_with(except)) || self.except.matches(path)
    }

    /// Returns the first pattern that matches none of some paths.
    pub fn unmatched(&self, paths: &[&RelPath]) -> Option<&str> {
        self.patterns.unmatched(paths).or_else(|| self.except.unmatched(paths))
    }

    /// Returns true if a path counts: it is one of `paths` or inside of one, or matches a pattern; without any of both, every path counts.
    pub fn selects(&self, paths: &[RelPath], path: &RelPath) -> bool {
        self.names(paths, path) && !self.excludes(path)
    }

    /// Returns true if a path would count if nothing was excepted.
    pub fn names(&self, paths: &[RelPath], path: &RelPath) -> bool {
        let is_everything = paths.is_empty() && self.patterns.is_empty();
        is_everything || paths.iter().any(|named| path.starts_with(named)) || self.patterns.matches(path)
    }
}

fn refused(pattern: &str, why: &str) -> Error {
    let shown = crate::model::text::cut(&printable(pattern), 60);
    Error::new(Code::BadRequest, format!("`{shown}` is not a pattern: {why}"))
        .hint("`*` and `?` match within a name, `**` across directories; `[*]` matches the character `*`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).unwrap()
    }

    fn patterns(texts: &[&str]) -> PathPatterns {
        PathPatterns::new(texts.iter().map(|text| (*text).to_owned()).collect()).unwrap()
    }

    #[test]
    fn the_dialect() {
        for (pattern, at, expected) in [
            ("src/**/*.rs", "src/a.rs", true),
            ("src/**/*.rs", "src/deep/er/a.rs", true),
            ("src/**/*.rs", "src/a.txt", false),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/*", "src/deep/a.rs", true),
            ("**/gen", "a/gen/b/c", true),
            ("**/*", ".hidden", true),
            ("a[[]1].txt", "a[1].txt", true),
            ("{a,b}/x", "b/x", true),
        ] {
            assert_eq!(patterns(&[pattern]).matches(&path(at)), expected, "{pattern} {at}");
        }
        for bad in ["a[", "{a", "[z-a]", &"a".repeat(LONGEST + 1), &"{a,b}".repeat(800), &"{".repeat(2000)] {
            let refused = PathPatterns::new(vec![(*bad).to_owned()]);
            let is_compiled = refused.is_ok();
            assert!(!is_compiled || bad.starts_with("{a,b}"), "{bad}");
        }
    }

    #[test]
    fn wildcards_alone_name_nothing() {
        for (pattern, expected) in [("**", false), ("**/*", false), ("*.*", false), ("*.env", true), ("config/*", true)]
        {
            assert_eq!(patterns(&[pattern]).names(&path("config/.env")), expected && pattern != "*.env", "{pattern}");
        }
        assert!(patterns(&["**/*.env"]).names(&path("config/.env")));
    }

    #[test]
    fn limits_select_and_except() {
        let limits = PathLimits {
            patterns: patterns(&["src/**/*.rs"]),
            except_paths: vec![path("src/gen")],
            except: patterns(&["**/*_test.rs"]),
        };
        for (at, expected) in [
            ("src/a.rs", true),
            ("src/gen/a.rs", false),
            ("src/a_test.rs", false),
            ("docs/x", true),
            ("docs/b_test.rs", false),
            ("other", false),
        ] {
            assert_eq!(limits.selects(&[path("docs")], &path(at)), expected, "{at}");
        }
        let all = PathLimits { except: patterns(&["**/*.log"]), ..PathLimits::default() };
        assert!(all.selects(&[], &path("a")) && !all.selects(&[], &path("b/c.log")));
    }

    #[test]
    fn a_pattern_without_a_match_is_found() {
        let (first, second) = (path("a.rs"), path("b/c.rs"));
        let paths = [&first, &second];
        assert_eq!(patterns(&["*.rs", "b"]).unmatched(&paths), None);
        assert_eq!(patterns(&["*.rs", "c", "d"]).unmatched(&paths), Some("c"));
        assert_eq!(patterns(&[]).unmatched(&paths), None);
    }
}
